/* SPDX-License-Identifier: MIT
 *
 * External semaphores, and the other API's side of them. An fd for one is the master of a new
 * pseudo-terminal, whose number names it: a character device, as the driver's own are.
 */
#include "private.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define HELD UINT64_MAX

/* CUexternalSemaphoreHandleType */
enum { BINARY_FD = 1, TIMELINE_FD = 9, D3D12_FENCE = 4, D3D11_FENCE = 5, KEYED = 7, KEYED_KMT = 8 };

semaphore *semaphores;

static primitive *primitives;
static bool closes_failed;

/* ---- Primitives ---- */

static primitive *new_primitive(bool counting, bool keyed)
{
    primitive *made = calloc(1, sizeof(*made));
    made->counting = counting;
    made->keyed = keyed;
    made->value = keyed ? HELD : 0;
    made->number = -1;
    made->next = primitives;
    primitives = made;
    return made;
}

/* The latest of that number: numbers are used again. */
static primitive *of_fd(int fd)
{
    int number = -1;
    if (ioctl(fd, TIOCGPTN, &number) != 0)
        return NULL;
    primitive *at = primitives;
    while (at && at->number != number)
        at = at->next;
    return at;
}

int double_make_fd(bool timeline)
{
    int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    int number = -1;
    if (fd < 0 || ioctl(fd, TIOCGPTN, &number) != 0)
        abort();
    double_lock();
    new_primitive(timeline, false)->number = number;
    double_unlock();
    return fd;
}

void *double_make_handle(bool counting, bool keyed)
{
    double_lock();
    primitive *made = new_primitive(counting, keyed);
    double_unlock();
    return made;
}

/* For the engine: takes the wait's effect with it. */
bool double_try_wait(primitive *of, uint64_t value)
{
    if (of->counting)
        return of->value >= value;
    bool ready = of->keyed ? of->value == value : of->value == 1;
    if (ready)
        of->value = of->keyed ? HELD : 0;
    return ready;
}

void double_signal_primitive(primitive *of, uint64_t value)
{
    if (!of->counting && !of->keyed) {
        if (of->value == 1)
            double_note_misuse(); /* signalled twice */
        value = 1;
    } else if (of->counting && value <= of->value) {
        double_note_misuse(); /* goes back */
    }
    of->value = value;
}

void double_signal_handle(void *handle, uint64_t value)
{
    double_lock();
    double_signal_primitive(handle, value);
    double_wake();
    double_unlock();
}

uint64_t double_value_of_handle(void *handle)
{
    double_lock();
    uint64_t value = ((primitive *)handle)->value;
    double_unlock();
    return value;
}

void *double_handle_of_fd(int fd)
{
    double_lock();
    primitive *found = of_fd(fd);
    double_unlock();
    return found;
}

/* ---- Import ---- */

void double_close_on_failed_import(bool on)
{
    closes_failed = on;
}

static primitive *find_primitive(const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc)
{
    switch ((int)desc->type) {
    case BINARY_FD:
    case TIMELINE_FD:
        return of_fd(desc->handle.fd);
    default:
        for (primitive *at = primitives; at; at = at->next) {
            if (at == desc->handle.win32.handle)
                return at;
        }
        return NULL;
    }
}

/* Whether it is a binary's or a timeline's handle the driver does not check. */
static int import(CUexternalSemaphore *out, const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc)
{
    bool is_fd = (int)desc->type == BINARY_FD || (int)desc->type == TIMELINE_FD;
    int result = double_check_current();
    result = result ? result : double_unsafe();
    if (result != 0)
        return result;
    primitive *found = find_primitive(desc);
    if (!found)
        return is_fd ? 999 : R_INVALID_VALUE;
    semaphore *made = calloc(1, sizeof(*made));
    made->alive = true;
    made->owner = double_current();
    made->primitive = found;
    made->next = semaphores;
    semaphores = made;
    if (is_fd)
        close(desc->handle.fd);
    *out = made;
    return 0;
}

EXPORT CUresult CUDAAPI cuImportExternalSemaphore(CUexternalSemaphore *out,
                                                  const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc);
CUresult CUDAAPI cuImportExternalSemaphore(CUexternalSemaphore *out,
                                           const CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC *desc)
{
    int result = double_begin("cuImportExternalSemaphore");
    result = result ? result : import(out, desc);
    if (result != 0 && closes_failed)
        close(desc->handle.fd);
    return double_end(result);
}

static semaphore *find(CUexternalSemaphore handle)
{
    for (semaphore *at = semaphores; at; at = at->next) {
        if (at == handle && at->alive)
            return at;
    }
    double_note_misuse();
    return NULL;
}

static bool in_use(const semaphore *of)
{
    for (const stream *at = streams; at; at = at->next) {
        for (const operation *op = at->first; op; op = op->next) {
            if (op->semaphore == of)
                return true;
        }
    }
    return false;
}

static bool is_busy(const context *asked)
{
    for (const stream *at = streams; at; at = at->next) {
        if (at->owner == asked && at->first)
            return asked->sticky == 0;
    }
    return false;
}

/* Under the lock, but for when it waits. */
static int destroy(CUexternalSemaphore handle)
{
    semaphore *destroyed = find(handle);
    int result = double_unsafe();
    if (result != 0)
        return result;
    if (!destroyed)
        return R_INVALID_HANDLE;
    if (double_current() != destroyed->owner)
        double_note_misuse();
    bool used = in_use(destroyed) && !destroyed->owner->sticky;
    if (used)
        double_note_misuse(); /* every operation must have completed */
    while (!used && is_busy(destroyed->owner)) {
        double_wake();
        double_unlock();
        usleep(200);
        double_lock();
    }
    destroyed->alive = false;
    return destroyed->owner->sticky;
}

API(cuDestroyExternalSemaphore, (CUexternalSemaphore destroyed), destroy(destroyed))

/* ---- Operations ---- */

static uint64_t value_of(const primitive *of, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params)
{
    uint64_t key;
    memcpy(&key, &params->params.reserved[2], sizeof(key));
    return of->keyed ? key : params->params.fence.value;
}

static int check_operation(const CUexternalSemaphore *handles, unsigned count, CUstream on)
{
    const stream *into = double_stream(on);
    if (!into)
        return R_INVALID_HANDLE;
    for (unsigned i = 0; i < count; i++) {
        const semaphore *used = find(handles[i]);
        if (!used)
            return R_INVALID_HANDLE;
        if (used->owner != into->owner) {
            double_note_misuse();
            return R_INVALID_HANDLE;
        }
    }
    return 0;
}

static int operate(operation_kind kind, const CUexternalSemaphore *handles,
                   const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params, unsigned count, CUstream on)
{
    int result = check_operation(handles, count, on);
    for (unsigned i = 0; i < count && result == 0; i++) {
        primitive *of = handles[i]->primitive;
        operation op = {.kind = kind, .semaphore = handles[i], .primitive = of};
        op.value = value_of(of, &params[i]);
        result = double_enqueue(on, op);
    }
    return result;
}

API(cuSignalExternalSemaphoresAsync,
    (const CUexternalSemaphore *handles, const CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS *params,
     unsigned int count, CUstream on),
    operate(OP_SIGNAL_SEMAPHORE, handles, params, count, on))
API(cuWaitExternalSemaphoresAsync,
    (const CUexternalSemaphore *handles, const CUDA_EXTERNAL_SEMAPHORE_WAIT_PARAMS *params,
     unsigned int count, CUstream on),
    operate(OP_WAIT_SEMAPHORE, handles, params, count, on))
