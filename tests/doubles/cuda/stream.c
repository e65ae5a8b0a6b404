/* SPDX-License-Identifier: MIT
 *
 * Streams: queues of operations, and the thread that runs them.
 */
#include "private.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

stream *streams;

static pthread_mutex_t engine_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t engine_work = PTHREAD_COND_INITIALIZER;
static bool work_flag, stopping;
static pthread_t engine;
static pid_t engine_process;
static unsigned pending_count; /* under the one lock */

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* ---- Running ---- */

static bool is_ready(operation *op)
{
    switch (op->kind) {
    case OP_WAIT_EVENT:
        return __atomic_load_n(&op->at->done, __ATOMIC_ACQUIRE) >= op->value;
    case OP_WAIT_SEMAPHORE:
        return double_try_wait(op->primitive, op->value);
    case OP_WAIT_MEMORY:
        return __atomic_load_n(op->memory, __ATOMIC_ACQUIRE) >= (uint32_t)op->value;
    case OP_DELAY:
        if (op->until == 0)
            op->until = now_ns() + op->value;
        return now_ns() >= op->until;
    default:
        return true;
    }
}

static void run(operation *op)
{
    if (op->kind == OP_RECORD)
        __atomic_store_n(&op->at->done, op->value, __ATOMIC_RELEASE);
    if (op->kind == OP_SIGNAL_SEMAPHORE)
        double_signal_primitive(op->primitive, op->value);
    if (op->kind == OP_WRITE_MEMORY)
        __atomic_store_n(op->memory, (uint32_t)op->value, __ATOMIC_RELEASE);
}

static void drop_first(stream *of)
{
    operation *op = of->first;
    of->first = op->next;
    if (!of->first)
        of->last = &of->first;
    free(op);
    pending_count--;
}

static bool run_stream(stream *of)
{
    bool progress = false;
    while (of->first && of->owner->sticky == 0 && is_ready(of->first)) {
        run(of->first);
        drop_first(of);
        progress = true;
    }
    return progress;
}

/* Until nothing is ready. True: something is left. */
static bool run_all(void)
{
    bool progress = true;
    while (progress) {
        progress = false;
        for (stream *at = streams; at; at = at->next)
            progress |= run_stream(at);
    }
    return pending_count > 0;
}

/* What is left may wait for memory, time or another process: look again soon. */
static void rest(bool something_left)
{
    struct timespec until;
    pthread_mutex_lock(&engine_lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += something_left ? 100000 : 50000000;
    if (until.tv_nsec >= 1000000000) {
        until.tv_nsec -= 1000000000;
        until.tv_sec++;
    }
    if (!work_flag && !stopping)
        pthread_cond_timedwait(&engine_work, &engine_lock, &until);
    work_flag = false;
    pthread_mutex_unlock(&engine_lock);
}

static void *engine_main(void *unused)
{
    while (!__atomic_load_n(&stopping, __ATOMIC_SEQ_CST)) {
        double_lock();
        bool left = run_all();
        double_unlock();
        rest(left);
    }
    return unused;
}

void double_wake(void)
{
    if (pending_count == 0)
        return;
    pthread_mutex_lock(&engine_lock);
    if (engine_process != getpid()) {
        engine_process = getpid();
        pthread_create(&engine, NULL, engine_main, NULL);
    }
    work_flag = true;
    pthread_cond_signal(&engine_work);
    pthread_mutex_unlock(&engine_lock);
}

__attribute__((destructor)) static void stop_engine(void)
{
    if (engine_process == 0 || engine_process != getpid())
        return;
    pthread_mutex_lock(&engine_lock);
    __atomic_store_n(&stopping, true, __ATOMIC_SEQ_CST);
    pthread_cond_signal(&engine_work);
    pthread_mutex_unlock(&engine_lock);
    pthread_join(engine, NULL);
}

unsigned double_pending(void)
{
    double_lock();
    unsigned number = pending_count;
    double_unlock();
    return number;
}

/* ---- Streams ---- */

stream *double_new_stream(context *owner, unsigned flags)
{
    stream *made = calloc(1, sizeof(*made));
    made->alive = true;
    made->owner = owner;
    made->flags = flags;
    made->id = double_new_id();
    made->last = &made->first;
    made->next = streams;
    streams = made;
    return made;
}

stream *double_stream(CUstream handle)
{
    context *current = double_current();
    uintptr_t number = (uintptr_t)handle;
    if (number <= 2)
        return !current ? NULL : number == 2 ? current->per_thread : current->legacy;
    for (stream *at = streams; at; at = at->next) {
        if (at == handle && at->alive)
            return at;
    }
    double_note_misuse();
    return NULL;
}

static void capture_into(const operation *added)
{
    if (added->kind == OP_RECORD)
        added->event->captured = true;
}

int double_enqueue(CUstream handle, operation added)
{
    stream *into = double_stream(handle);
    int result = double_check_current();
    if (result != 0)
        return result;
    if (!into)
        return R_INVALID_HANDLE;
    if (into->owner->sticky)
        return into->owner->sticky;
    if (double_implicit_capture(into))
        return R_CAPTURE_IMPLICIT;
    if (into->capture) {
        capture_into(&added);
        return into->capture == 2 ? R_CAPTURE_INVALIDATED : 0;
    }
    operation *op = malloc(sizeof(*op));
    *op = added;
    op->next = NULL;
    *into->last = op;
    into->last = &op->next;
    pending_count++;
    return 0;
}

void double_drop_all(context *owner)
{
    for (stream *at = streams; at; at = at->next) {
        if (at->owner != owner)
            continue;
        while (at->first)
            drop_first(at);
        at->alive = false;
    }
}

static int create_stream(CUstream *out, unsigned flags)
{
    int result = double_check_current();
    result = result ? result : double_unsafe();
    if (result == 0)
        *out = double_new_stream(double_current(), flags);
    return result;
}

/* What is on it still runs. */
static int destroy_stream(CUstream handle)
{
    stream *destroyed = double_stream(handle);
    int result = double_unsafe();
    if (result != 0)
        return result;
    if (!destroyed)
        return R_INVALID_HANDLE;
    if (double_current() != destroyed->owner)
        double_note_misuse();
    destroyed->alive = false;
    return destroyed->owner->sticky;
}

static int stream_context(CUstream handle, CUcontext *out)
{
    stream *asked = double_stream(handle);
    if (!asked)
        return R_INVALID_HANDLE;
    *out = asked->owner;
    return double_unsafe_stream(asked);
}

static int stream_id(CUstream handle, unsigned long long *out)
{
    stream *asked = double_stream(handle);
    if (!asked)
        return R_INVALID_HANDLE;
    *out = asked->id;
    return double_unsafe_stream(asked);
}

static int is_done(CUstream handle)
{
    stream *asked = double_stream(handle);
    if (!asked)
        return R_INVALID_HANDLE;
    if (asked->owner->sticky)
        return asked->owner->sticky;
    return asked->first ? R_NOT_READY : 0;
}

API(cuStreamCreate, (CUstream * out, unsigned int flags), create_stream(out, flags))
API(cuStreamDestroy_v2, (CUstream destroyed), destroy_stream(destroyed))
API(cuStreamGetCtx, (CUstream asked, CUcontext *out), stream_context(asked, out))
#ifdef WITHOUT_IDS
API(cuStreamGetIdNotExported, (CUstream asked, unsigned long long *out), stream_id(asked, out))
#else
API(cuStreamGetId, (CUstream asked, unsigned long long *out), stream_id(asked, out))
#endif
API(cuStreamQuery, (CUstream asked), double_unsafe() ? R_CAPTURE_UNSUPPORTED : is_done(asked))

/* Not under the lock while it waits. */
EXPORT CUresult CUDAAPI cuStreamSynchronize(CUstream handle);
CUresult CUDAAPI cuStreamSynchronize(CUstream handle)
{
    for (;;) {
        int result = double_begin("cuStreamSynchronize");
        result = result ? result : is_done(handle);
        double_end(result);
        if (result != R_NOT_READY)
            return (CUresult)result;
        usleep(200);
    }
}

/* ---- Work ---- */

static operation memory_operation(operation_kind kind, CUdeviceptr memory, uint32_t value)
{
    return (operation){.kind = kind, .memory = (uint32_t *)(uintptr_t)memory, .value = value};
}

API(cuStreamWaitValue32_v2,
    (CUstream handle, CUdeviceptr memory, uint32_t value, unsigned int flags),
    flags ? R_INVALID_VALUE
          : double_enqueue(handle, memory_operation(OP_WAIT_MEMORY, memory, value)))
API(cuMemsetD32Async, (CUdeviceptr memory, unsigned int value, size_t count, CUstream handle),
    count != 1 ? R_INVALID_VALUE
               : double_enqueue(handle, memory_operation(OP_WRITE_MEMORY, memory, value)))

static int allocate(void **out, size_t size)
{
    *out = calloc(1, size);
    return *out ? 0 : 2;
}

static int device_pointer(CUdeviceptr *out, void *memory)
{
    *out = (CUdeviceptr)(uintptr_t)memory;
    return 0;
}

static int free_memory(void *memory)
{
    free(memory);
    return 0;
}

API(cuMemHostAlloc, (void **out, size_t size, unsigned int flags),
    flags & ~7u ? R_INVALID_VALUE : allocate(out, size))
API(cuMemHostGetDevicePointer_v2, (CUdeviceptr * out, void *memory, unsigned int flags),
    flags ? R_INVALID_VALUE : device_pointer(out, memory))
API(cuMemFreeHost, (void *memory), free_memory(memory))

void double_move_stream(CUstream handle, CUcontext to)
{
    double_lock();
    handle->owner = to;
    handle->id = double_new_id();
    double_unlock();
}

void double_delay(CUstream handle, uint64_t ns)
{
    double_begin("delay");
    double_end(double_enqueue(handle, (operation){.kind = OP_DELAY, .value = ns}));
}
