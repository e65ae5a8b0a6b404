/* SPDX-License-Identifier: MIT
 *
 * New signals of a semaphore: the other side's, and our own.
 */
#include "cl_internal.h"

#define WAIT_NOT_RUN "a wait on this semaphore is enqueued and has not run yet"

/* ---- A new signal of the semaphore ---- */

/* Makes a signal of the pool a waiter with one reference, which holds the semaphore. */
static void setup(sp_cl_signal *signal, sp_cl_semaphore *semaphore, uint32_t state)
{
    sp_oneshot_setup(&signal->oneshot, &sp_cl_signal_ops, state);
    signal->semaphore = sp_cl_semaphore_ref(semaphore);
}

static sp_point make_point(sp_cl_signal *signal, uint32_t flags)
{
    return (sp_point){
        .kind = SP_KIND_OPENCL,
        .flags = SP_POINT_BINARY | flags,
        .raw.opencl = {.semaphore = signal->semaphore->handle},
        .waiter = &signal->oneshot.base,
    };
}

/* Has the last wait run, or will it before what is enqueued to `queue` now? A failed one has. */
static sp_status check_last_wait_locked(const sp_cl_semaphore *semaphore, cl_command_queue queue)
{
    const sp_cl_context *context = semaphore->context;
    cl_command_queue waits_on = NULL;
    bool done = false;
    if (!semaphore->last_wait)
        return SP_OK;
    sp_status status = sp_cl_event_is_done(context, semaphore->last_wait, &done);
    if (status != SP_OK)
        return status == SP_ERROR_FAILED ? SP_OK : status;
    if (queue && !done)
        context->cl.get_event_info(semaphore->last_wait, CL_EVENT_COMMAND_QUEUE, sizeof(waits_on),
                                   &waits_on, NULL);
    if (done || (queue && waits_on == queue))
        return SP_OK;
    return sp_fail(SP_ERROR_INVALID_STATE, WAIT_NOT_RUN);
}

/* May the semaphore have a new signal? `queue`: where it is enqueued; NULL: not by us. */
static sp_status check_free_locked(const sp_cl_semaphore *semaphore, cl_command_queue queue)
{
    const sp_cl_signal *current = semaphore->current;
    if (semaphore->untold)
        return sp_fail(SP_ERROR_INVALID_STATE,
                       "nothing tells when a wait on this semaphore has run, since the driver gave "
                       "no reference to its event: import or make the semaphore anew");
    /* Once: a wait may claim the signal, or give it up, any moment. */
    uint32_t state = current ? sp_cl_signal_state(current) : SP_ONESHOT_CONSUMED;
    bool pending = current && sp_cl_signal_is_pending(current, state);
    if (semaphore->submitting || semaphore->stray || pending)
        return sp_fail_signal_pending();
    if (state == SP_ONESHOT_CLAIMED && !sp_cl_signal_gate(current))
        return sp_fail(SP_ERROR_INVALID_STATE, WAIT_NOT_RUN);
    return check_last_wait_locked(semaphore, queue);
}

/* Makes `next` (NULL: none with points) the semaphore's signal. Returns the one before, as a
 * reference, if it never completes now. */
static sp_oneshot *replace_current_locked(sp_cl_semaphore *semaphore, sp_cl_signal *next)
{
    sp_cl_signal *earlier = semaphore->current;
    semaphore->current = next;
    return sp_oneshot_supersede(earlier ? &earlier->oneshot : NULL);
}

sp_status sp_cl_binary_point(sp_cl_semaphore *semaphore, uint32_t flags, sp_point *out)
{
    SP_CHECK_ARGUMENT(semaphore && out, "semaphore and out are required");
    SP_CHECK_ARGUMENT((flags & ~(uint32_t)SP_POINT_UNSUBMITTED) == 0,
                      "SP_POINT_UNSUBMITTED is the only flag");
    sp_cl_context *context = semaphore->context;
    sp_status status = sp_cl_check(context);
    if (status != SP_OK)
        return status;
    sp_cl_signal *signal = sp_pool_get(&context->signals);
    sp_oneshot *earlier = NULL;
    if (!signal)
        return SP_ERROR_OUT_OF_MEMORY;
    setup(signal, semaphore, flags ? SP_ONESHOT_UNSUBMITTED : SP_ONESHOT_SUBMITTED);
    sp_os_mutex_lock(&semaphore->lock);
    status = check_free_locked(semaphore, NULL);
    if (status == SP_OK)
        earlier = replace_current_locked(semaphore, signal);
    sp_os_mutex_unlock(&semaphore->lock);
    sp_oneshot_fail_superseded(earlier);
    if (status != SP_OK) {
        sp_error error = *sp_last_error();
        sp_waiter_unref(&signal->oneshot.base);
        return sp_fail_with(&error);
    }
    *out = make_point(signal, flags);
    return SP_OK;
}

/* ---- Signalled by us ---- */

typedef struct submission {
    sp_status status;
    bool enqueued; /* the signal may come although the status says no: it would be one too many */
} submission;

static sp_status reserve(sp_cl_semaphore *semaphore, cl_command_queue queue)
{
    sp_os_mutex_lock(&semaphore->lock);
    sp_status status = check_free_locked(semaphore, queue);
    if (status == SP_OK)
        semaphore->submitting = true;
    sp_os_mutex_unlock(&semaphore->lock);
    return status;
}

/* What came of it. `signal`: who stands for the signal now, NULL: nobody. */
static void settle(sp_cl_semaphore *semaphore, sp_cl_signal *signal, const submission *done)
{
    sp_oneshot *earlier = NULL;
    sp_os_mutex_lock(&semaphore->lock);
    semaphore->submitting = false;
    semaphore->stray = done->enqueued && done->status != SP_OK;
    if (done->status == SP_OK)
        earlier = replace_current_locked(semaphore, signal);
    sp_os_mutex_unlock(&semaphore->lock);
    sp_oneshot_fail_superseded(earlier);
}

/* On an out-of-order queue a signal waits for nothing by itself: a marker stands for all before. */
static sp_status mark_before(sp_cl_context *context, cl_command_queue queue, cl_event *marker)
{
    bool out_of_order, done;
    sp_status status = sp_cl_queue_is_out_of_order(context, queue, &out_of_order);
    if (status != SP_OK || !out_of_order)
        return status;
    cl_int result = context->cl.enqueue_marker(queue, 0, NULL, marker);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clEnqueueMarkerWithWaitList");
    status = sp_cl_event_is_done(context, *marker, &done);
    if (status != SP_OK)
        sp_cl_let_go(context, *marker);
    return status;
}

/* *signalled: the event of the command, if the caller wants it. */
static submission enqueue_signal(sp_cl_semaphore *semaphore, cl_command_queue queue,
                                 cl_event *signalled)
{
    const sp_cl_driver *cl = &semaphore->context->cl;
    cl_event marker = NULL;
    sp_status status = mark_before(semaphore->context, queue, &marker);
    if (status != SP_OK)
        return (submission){.status = status};
    cl_int result = cl->enqueue_signal_semaphores(
        queue, 1, &semaphore->handle, NULL, marker != NULL, marker ? &marker : NULL, signalled);
    if (marker)
        sp_cl_let_go(semaphore->context, marker);
    if (result != CL_SUCCESS)
        return (submission){.status = sp_cl_fail(result, "clEnqueueSignalSemaphoresKHR")};
    result = cl->flush(queue);
    if (result == CL_SUCCESS)
        return (submission){.enqueued = true};
    if (signalled)
        sp_cl_let_go(semaphore->context, *signalled);
    return (submission){.enqueued = true, .status = sp_cl_fail(result, "clFlush")};
}

static sp_status signal_without_point(sp_cl_semaphore *semaphore, cl_command_queue queue)
{
    sp_status status = reserve(semaphore, queue);
    if (status != SP_OK)
        return status;
    submission done = enqueue_signal(semaphore, queue, NULL);
    settle(semaphore, NULL, &done);
    return done.status;
}

static sp_status signal_with_point(sp_cl_semaphore *semaphore, cl_command_queue queue,
                                   sp_point *out)
{
    sp_pool *pool = &semaphore->context->signals;
    sp_cl_signal *signal = sp_pool_get(pool);
    cl_event signalled = NULL;
    if (!signal)
        return SP_ERROR_OUT_OF_MEMORY;
    sp_status status = reserve(semaphore, queue);
    if (status != SP_OK) {
        sp_pool_put(pool, signal);
        return status;
    }
    submission done = enqueue_signal(semaphore, queue, &signalled);
    if (done.status == SP_OK) {
        setup(signal, semaphore, SP_ONESHOT_SUBMITTED);
        signal->signalled = signalled;
        *out = make_point(signal, 0);
    }
    settle(semaphore, signal, &done);
    if (done.status != SP_OK)
        sp_pool_put(pool, signal);
    return done.status;
}

sp_status sp_cl_queue_signal_semaphore(sp_cl_context *context, cl_command_queue queue,
                                       sp_cl_semaphore *semaphore, sp_point *out)
{
    SP_CHECK_ARGUMENT(context && queue && semaphore, "context, queue and semaphore are required");
    sp_status status = sp_cl_check(semaphore->context);
    if (status == SP_OK)
        status = sp_cl_check_queue(context, queue);
    if (status == SP_OK && semaphore->context->handle != context->handle)
        status = sp_fail(SP_ERROR_WRONG_CONTEXT, "the semaphore is of another cl_context");
    if (status != SP_OK)
        return status;
    return out ? signal_with_point(semaphore, queue, out) : signal_without_point(semaphore, queue);
}
