/* SPDX-License-Identifier: MIT
 *
 * A double: see cl_double.h.
 */
#include "cl_double.h"

#include "support/test.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_HANDLES 60 /* a handle carries its number as the signal number of its open file */
#define MAX_AT_ONCE 128

typedef struct payload {
    bool signalled;
} payload;

struct _cl_semaphore_khr {
    cl_context context;
    payload *payload;
    payload own;
    unsigned refs;
    bool for_one_device;
    cl_semaphore_type_khr type;
};

/* A command: what must be done before it, and its event. */
typedef struct command {
    struct command *next;
    bool signals;
    cl_command_queue queue;
    cl_event before; /* NULL: nothing */
    cl_event done;
    cl_event barrier; /* what holds the queue back until then; NULL: nothing does */
    unsigned count;
    payload *payloads[MAX_AT_ONCE];
    cl_semaphore_khr semaphores[MAX_AT_ONCE];
} command;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t enqueue_lock = PTHREAD_MUTEX_INITIALIZER; /* taken before `lock` */
static pthread_t thread;
static bool running, stop;
static command *first;
static command *failed; /* the thread's */
static unsigned mistakes;
static payload handles[MAX_HANDLES];
static unsigned handle_count;
static const cl_hook_functions *real = &cl_hook_real;

/* ---- The thread that moves signals ---- */

static cl_int status_of(cl_event event)
{
    cl_int status = CL_QUEUED;
    if (event)
        real->GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status, NULL);
    return event ? status : CL_COMPLETE;
}

static bool all_signalled_locked(const command *c)
{
    for (unsigned i = 0; i < c->count; i++) {
        if (!c->payloads[i]->signalled)
            return false;
    }
    return true;
}

static void release_semaphore_locked(cl_semaphore_khr semaphore)
{
    if (--semaphore->refs == 0)
        free(semaphore);
}

/* Its event is the caller's to complete, without the lock. */
static void settle_locked(command *c)
{
    for (unsigned i = 0; i < c->count; i++)
        release_semaphore_locked(c->semaphores[i]);
}

/* CL_COMPLETE or an error: it is done. CL_QUEUED: it is not. */
static cl_int try_command_locked(command *c)
{
    cl_int before = status_of(c->before);
    if (before > 0)
        return CL_QUEUED;
    if (before == CL_COMPLETE && !c->signals && !all_signalled_locked(c))
        return CL_QUEUED;
    for (unsigned i = 0; before == CL_COMPLETE && i < c->count; i++) {
        mistakes += c->signals && c->payloads[i]->signalled;
        c->payloads[i]->signalled = c->signals;
    }
    settle_locked(c);
    return before < 0 ? CL_EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST : CL_COMPLETE;
}

static void free_command(command *c)
{
    const cl_event events[] = {c->done, c->barrier, c->before};
    for (unsigned i = 0; i < COUNT_OF(events); i++) {
        if (events[i])
            real->ReleaseEvent(events[i]);
    }
    free(c);
}

/* PoCL 3.1 fails a command on the thread that failed one which it waits for. So the barrier has
 * failed by the marker before it, or is about to, on another thread; if this one failed it, too, it
 * would end twice. One that was made when the marker had failed is left: hence the limit. */
static void await_failure(cl_event barrier)
{
    uint64_t end = sp_now_ns() + UINT64_C(1000000000);
    while (status_of(barrier) > CL_COMPLETE && sp_now_ns() < end)
        usleep(50);
}

/* What reads as failed that other thread may still work on: it is kept until the case is over. */
static void keep_failed(command *c, cl_int status)
{
    await_failure(c->barrier);
    real->SetUserEventStatus(c->done, status);
    c->next = failed;
    failed = c;
}

static void complete(command *c, cl_int status)
{
    if (status < 0) {
        keep_failed(c, status);
        return;
    }
    real->SetUserEventStatus(c->done, status);
    while (status_of(c->barrier) > CL_COMPLETE) /* PoCL: must not be released before it fails */
        usleep(50);
    free_command(c);
}

/* One that is done now, taken out of the list. */
static command *next_to_settle(cl_int *status)
{
    pthread_mutex_lock(&lock);
    command **link = &first;
    while (*link && (*status = try_command_locked(*link)) == CL_QUEUED)
        link = &(*link)->next;
    command *c = *link;
    if (c)
        *link = c->next;
    pthread_mutex_unlock(&lock);
    return c;
}

static bool must_stop(void)
{
    pthread_mutex_lock(&lock);
    bool result = stop;
    pthread_mutex_unlock(&lock);
    return result;
}

static void *move_signals(void *unused)
{
    while (!must_stop()) {
        cl_int status;
        command *c = next_to_settle(&status);
        if (c)
            complete(c, status);
        else
            usleep(100);
    }
    return unused;
}

static void append(command *c)
{
    pthread_mutex_lock(&lock);
    command **last = &first;
    while (*last)
        last = &(*last)->next;
    *last = c;
    for (unsigned i = 0; i < c->count; i++) {
        c->payloads[i] = c->semaphores[i]->payload;
        c->semaphores[i]->refs++;
    }
    /* Two waits at a time for one signal. */
    for (command *other = first; other != c && !c->signals; other = other->next) {
        for (unsigned i = 0; !other->signals && i < other->count; i++)
            mistakes += other->payloads[i] == c->payloads[0];
    }
    if (!running)
        running = pthread_create(&thread, NULL, move_signals, NULL) == 0;
    pthread_mutex_unlock(&lock);
}

/* ---- Commands ---- */

static bool is_out_of_order(cl_command_queue queue)
{
    cl_command_queue_properties properties = 0;
    real->GetCommandQueueInfo(queue, CL_QUEUE_PROPERTIES, sizeof(properties), &properties, NULL);
    return (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
}

static cl_context context_of(cl_command_queue queue)
{
    cl_context context = NULL;
    real->GetCommandQueueInfo(queue, CL_QUEUE_CONTEXT, sizeof(context), &context, NULL);
    return context;
}

static cl_int enqueue(cl_command_queue queue, bool signals, cl_uint count,
                      const cl_semaphore_khr *semaphores, cl_uint event_count,
                      const cl_event *events, cl_event *event)
{
    bool free_standing = is_out_of_order(queue);
    if (count == 0 || count > MAX_AT_ONCE || (event_count > 0) != (events != NULL))
        return CL_INVALID_VALUE;
    command *c = calloc(1, sizeof(*c));
    *c = (command){.signals = signals, .queue = queue, .count = count};
    for (cl_uint i = 0; i < count; i++)
        c->semaphores[i] = semaphores[i];
    /* Nothing of another command's comes between: the thread waits for the barrier to end. */
    pthread_mutex_lock(&enqueue_lock);
    if (!free_standing || event_count)
        real->EnqueueMarkerWithWaitList(queue, event_count, events, &c->before);
    cl_int result;
    c->done = real->CreateUserEvent(context_of(queue), &result);
    if (!free_standing)
        real->EnqueueBarrierWithWaitList(queue, 1, &c->done, &c->barrier);
    if (event) {
        real->RetainEvent(c->done);
        *event = c->done;
    }
    append(c);
    pthread_mutex_unlock(&enqueue_lock);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL enqueue_wait(cl_command_queue queue, cl_uint count,
                                       const cl_semaphore_khr *semaphores,
                                       const cl_semaphore_payload_khr *payloads,
                                       cl_uint event_count, const cl_event *events, cl_event *event)
{
    (void)payloads;
    return enqueue(queue, false, count, semaphores, event_count, events, event);
}

static cl_int CL_API_CALL enqueue_signal(cl_command_queue queue, cl_uint count,
                                         const cl_semaphore_khr *semaphores,
                                         const cl_semaphore_payload_khr *payloads,
                                         cl_uint event_count, const cl_event *events,
                                         cl_event *event)
{
    (void)payloads;
    return enqueue(queue, true, count, semaphores, event_count, events, event);
}

cl_command_queue cl_double_queue_of(cl_event event)
{
    cl_command_queue queue = NULL;
    pthread_mutex_lock(&lock);
    for (command *c = first; c && !queue; c = c->next)
        queue = c->done == event ? c->queue : NULL;
    pthread_mutex_unlock(&lock);
    return queue;
}

/* ---- Handles ---- */

int cl_double_export(void)
{
    int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(fd >= 0 && handle_count < MAX_HANDLES);
    assert_true(fcntl(fd, F_SETSIG, (int)++handle_count) == 0);
    return fd;
}

static payload *payload_of(int fd)
{
    int number = fcntl(fd, F_GETSIG);
    return number > 0 && (unsigned)number <= handle_count ? &handles[number - 1] : NULL;
}

void cl_double_signal(int fd)
{
    payload *of = payload_of(fd);
    assert_non_null(of);
    pthread_mutex_lock(&lock);
    mistakes += of->signalled;
    of->signalled = true;
    pthread_mutex_unlock(&lock);
}

bool cl_double_take(int fd)
{
    payload *of = payload_of(fd);
    assert_non_null(of);
    pthread_mutex_lock(&lock);
    bool signalled = of->signalled;
    of->signalled = false;
    pthread_mutex_unlock(&lock);
    return signalled;
}

/* ---- Semaphores ---- */

#define DEVICE_LIST 0x2053

static cl_int read_properties(cl_semaphore_khr made, const cl_semaphore_properties_khr *at)
{
    int fd = -1;
    bool binary = false;
    while (*at) {
        if (*at == CL_SEMAPHORE_TYPE_KHR) {
            binary = at[1] == CL_SEMAPHORE_TYPE_BINARY_KHR;
        } else if (*at == CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR) {
            fd = (int)at[1];
            made->payload = payload_of(fd);
        } else if (*at == DEVICE_LIST && at[1] && !at[2]) {
            made->for_one_device = true;
            at++;
        } else {
            return CL_INVALID_PROPERTY;
        }
        at += 2;
    }
    if (!binary || !made->payload)
        return CL_INVALID_VALUE;
    if (fd >= 0)
        close(fd);
    return CL_SUCCESS;
}

static cl_semaphore_khr CL_API_CALL create(cl_context context,
                                           const cl_semaphore_properties_khr *properties,
                                           cl_int *result)
{
    cl_semaphore_khr made = calloc(1, sizeof(*made));
    made->context = context;
    made->payload = &made->own;
    made->refs = 1;
    made->type = CL_SEMAPHORE_TYPE_BINARY_KHR;
    *result = read_properties(made, properties);
    if (*result == CL_SUCCESS)
        return made;
    free(made);
    return NULL;
}

static cl_int CL_API_CALL get_info(cl_semaphore_khr semaphore, cl_semaphore_info_khr name,
                                   size_t size, void *to, size_t *size_ret)
{
    (void)size_ret;
    if (name == CL_SEMAPHORE_CONTEXT_KHR && size == sizeof(cl_context))
        *(cl_context *)to = semaphore->context;
    else if (name == CL_SEMAPHORE_TYPE_KHR && size == sizeof(cl_semaphore_type_khr))
        *(cl_semaphore_type_khr *)to = semaphore->type;
    else
        return CL_INVALID_VALUE;
    return CL_SUCCESS;
}

static cl_int CL_API_CALL retain(cl_semaphore_khr semaphore)
{
    pthread_mutex_lock(&lock);
    semaphore->refs++;
    pthread_mutex_unlock(&lock);
    return CL_SUCCESS;
}

static cl_int CL_API_CALL release(cl_semaphore_khr semaphore)
{
    pthread_mutex_lock(&lock);
    release_semaphore_locked(semaphore);
    pthread_mutex_unlock(&lock);
    return CL_SUCCESS;
}

bool cl_double_is_for_one_device(cl_semaphore_khr semaphore)
{
    return semaphore->for_one_device;
}

void cl_double_set_type(cl_semaphore_khr semaphore, cl_semaphore_type_khr type)
{
    semaphore->type = type;
}

/* ---- Begin, end ---- */

void cl_double_install(cl_hook_functions *functions)
{
    functions->CreateSemaphoreWithPropertiesKHR = create;
    functions->EnqueueWaitSemaphoresKHR = enqueue_wait;
    functions->EnqueueSignalSemaphoresKHR = enqueue_signal;
    functions->GetSemaphoreInfoKHR = get_info;
    functions->RetainSemaphoreKHR = retain;
    functions->ReleaseSemaphoreKHR = release;
}

unsigned cl_double_mistakes(void)
{
    pthread_mutex_lock(&lock);
    unsigned result = mistakes;
    pthread_mutex_unlock(&lock);
    return result;
}

/* What is left completes: PoCL 3.1 would fail a queue's commands one within the other, with all their
 * locks held. */
void cl_double_finish(void)
{
    pthread_mutex_lock(&lock);
    stop = true;
    bool join = running;
    pthread_mutex_unlock(&lock);
    if (join)
        pthread_join(thread, NULL);
    while (first) {
        command *c = first;
        first = c->next;
        settle_locked(c);
        complete(c, CL_COMPLETE);
    }
    while (failed) {
        command *c = failed;
        failed = c->next;
        free_command(c);
    }
    running = stop = false;
}
