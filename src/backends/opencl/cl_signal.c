/* SPDX-License-Identifier: MIT
 *
 * One signal of a binary semaphore as a waiter.
 */
#include "cl_internal.h"

/* ---- State ---- */

/* Has the signal's own command failed? */
static sp_status check_signalled(const sp_cl_signal *signal)
{
    bool done = false;
    if (!signal->signalled)
        return SP_OK;
    return sp_cl_event_is_done(signal->semaphore->context, signal->signalled, &done);
}

static bool has_failed(const sp_cl_signal *signal, cl_event event)
{
    return sp_cl_event_status(signal->semaphore->context, event) < 0;
}

bool sp_cl_signal_is_pending(const sp_cl_signal *signal, uint32_t state)
{
    cl_event gate = sp_cl_signal_gate(signal);
    if (!signal->signalled || has_failed(signal, signal->signalled))
        return false;
    return state == SP_ONESHOT_SUBMITTED || (gate && has_failed(signal, gate));
}

static sp_status signal_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    const sp_cl_signal *signal = sp_cl_signal_of(waiter);
    bool done = false;
    *reached = 0;
    if (sp_cl_signal_state(signal) == SP_ONESHOT_UNSUBMITTED)
        return SP_NOT_SUBMITTED;
    if (sp_cl_signal_state(signal) == SP_ONESHOT_CONSUMED)
        return sp_fail(SP_ERROR_INVALID_STATE,
                       "a later point of the same semaphore took this one's place");
    sp_status status = check_signalled(signal);
    cl_event gate = sp_cl_signal_gate(signal);
    if (status == SP_OK && gate)
        status = sp_cl_event_is_done(signal->semaphore->context, gate, &done);
    *reached = done;
    return status;
}

/* `wait`: NULL if the driver gives no reference. */
static void set_last_wait(sp_cl_semaphore *semaphore, cl_event wait)
{
    sp_os_mutex_lock(&semaphore->lock);
    cl_event earlier = semaphore->last_wait;
    semaphore->last_wait = wait;
    semaphore->untold = semaphore->untold || !wait;
    sp_os_mutex_unlock(&semaphore->lock);
    if (earlier)
        sp_cl_release_event(semaphore->context, earlier);
}

bool sp_cl_signal_set_gate(sp_cl_signal *signal, cl_event gate)
{
    sp_cl_semaphore *semaphore = signal->semaphore;
    const sp_cl_driver *cl = &semaphore->context->cl;
    cl_int result = cl->retain_event(gate);
    if (result != CL_SUCCESS) { /* then nothing will tell when the wait is over */
        set_last_wait(semaphore, NULL);
        sp_cl_fail(result, "clRetainEvent");
        sp_waiter_fail_for_good(&signal->oneshot.base, sp_last_error());
        return false;
    }
    set_last_wait(semaphore, cl->retain_event(gate) == CL_SUCCESS ? gate : NULL);
    __atomic_store_n(&signal->gate, gate, __ATOMIC_RELEASE);
    return true;
}

/* ---- Waiting on the host ---- */

/* Enqueues the wait that uses the claimed signal up. */
static sp_status enqueue_wait(sp_cl_signal *signal, bool *enqueued)
{
    sp_cl_context *context = signal->semaphore->context;
    cl_event gate = NULL;
    cl_int result = context->cl.enqueue_wait_semaphores(
        context->wait_queue, 1, &signal->semaphore->handle, NULL, 0, NULL, &gate);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clEnqueueWaitSemaphoresKHR");
    *enqueued = true;
    __atomic_fetch_add(&context->host_waits, 1, __ATOMIC_ACQ_REL);
    if (!sp_cl_signal_set_gate(signal, gate)) {
        sp_cl_let_go(context, gate);
        return sp_waiter_check_failed(&signal->oneshot.base, 1);
    }
    context->cl.release_event(gate);
    result = context->cl.flush(context->wait_queue);
    return result == CL_SUCCESS ? SP_OK : sp_cl_fail(result, "clFlush");
}

static sp_status check_wait_queue(const sp_cl_context *context)
{
    if (context->wait_queue)
        return SP_OK;
    return sp_fail(SP_ERROR_NOT_SUPPORTED,
                   "a host wait on a semaphore is enqueued to a queue, and the context has none: "
                   "set sp_cl_context_desc.wait_queue");
}

/* SP_OK also if another thread did. */
static sp_status start_wait(sp_cl_signal *signal)
{
    sp_status status = sp_oneshot_claim_or_join(&signal->oneshot);
    if (status != SP_OK)
        return status == SP_PENDING ? SP_OK : status;
    bool enqueued = false;
    status = enqueue_wait(signal, &enqueued);
    if (!enqueued)
        sp_oneshot_unclaim(&signal->oneshot);
    return status;
}

/* One step towards the end of the wait: SP_OK reached, TIMEOUT not yet. A signal of ours is waited
 * for until it is there, so that its wait holds up no other on the wait queue, and hangs nothing
 * if it fails. */
static sp_status advance(sp_cl_signal *signal)
{
    const sp_cl_context *context = signal->semaphore->context;
    uint64_t reached = 0;
    bool there = true;
    sp_status status = SP_OK;
    if (sp_cl_signal_state(signal) == SP_ONESHOT_SUBMITTED) {
        status = check_wait_queue(context);
        if (status == SP_OK && signal->signalled)
            status = sp_cl_event_is_done(context, signal->signalled, &there);
        if (status == SP_OK && there)
            status = start_wait(signal);
    }
    if (status == SP_OK)
        status = signal_probe(&signal->oneshot.base, 1, &reached);
    if (status < 0)
        return status;
    return reached ? SP_OK : SP_TIMEOUT;
}

static sp_status signal_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    (void)value;
    sp_cl_signal *signal = sp_cl_signal_of(waiter);
    sp_backoff backoff = {0};
    for (;;) {
        /* What fails it from outside (its context's end) is looked for, too. */
        sp_status status = sp_waiter_check_failed(waiter, 1);
        if (status == SP_OK)
            status = advance(signal);
        if (status != SP_TIMEOUT || sp_now_ns() >= deadline_ns)
            return status;
        sp_backoff_sleep(&backoff, deadline_ns);
    }
}

/* ---- The end of a signal ---- */

static void release_events(sp_cl_context *context, sp_cl_signal *signal)
{
    if (signal->signalled)
        sp_cl_release_event(context, signal->signalled);
    if (signal->gate)
        sp_cl_release_event(context, signal->gate);
    signal->signalled = NULL;
    signal->gate = NULL;
}

static void detach(sp_cl_signal *signal)
{
    sp_cl_semaphore *semaphore = signal->semaphore;
    sp_os_mutex_lock(&semaphore->lock);
    if (semaphore->current == signal)
        semaphore->current = NULL;
    sp_os_mutex_unlock(&semaphore->lock);
}

static void signal_release(sp_waiter *waiter)
{
    sp_cl_signal *signal = sp_cl_signal_of(waiter);
    sp_cl_semaphore *semaphore = signal->semaphore;
    sp_cl_context *context = semaphore->context;
    if (!sp_waiter_is_forked(waiter)) {
        detach(signal);
        if (sp_cl_begin_release(context)) {
            release_events(context, signal);
            sp_cl_end_release(context);
        }
        sp_pool_put(&context->signals, signal);
    }
    sp_cl_semaphore_unref(semaphore);
}

const sp_waiter_ops sp_cl_signal_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_CONSUMING | SP_FEATURE_ONESHOT | SP_FEATURE_BLOCK,
    .backend = SP_BACKEND_OPENCL,
    .name = "opencl semaphore signal",
    .probe = signal_probe,
    .block = signal_block,
    .destroy = signal_release,
};

void sp_cl_signal_end(void *unused, void *object)
{
    (void)unused;
    sp_waiter *waiter = &((sp_cl_signal *)object)->oneshot.base;
    if (!sp_waiter_try_ref(waiter))
        return;
    sp_waiter_probe(waiter, 1);
    sp_cl_end_waiter(waiter);
    sp_waiter_unref(waiter);
}

void sp_cl_signal_drop(void *context, void *object)
{
    const sp_cl_driver *cl = &((sp_cl_context *)context)->cl;
    sp_cl_signal *signal = object;
    if (signal->signalled)
        cl->release_event(signal->signalled);
    if (signal->gate)
        cl->release_event(signal->gate);
    signal->signalled = NULL;
    signal->gate = NULL;
}

cl_semaphore_khr sp_cl_semaphore_from_point(const sp_point *point)
{
    if (!point || !point->waiter || point->waiter->ops != &sp_cl_signal_ops)
        return NULL;
    return sp_cl_signal_of(point->waiter)->semaphore->handle;
}
