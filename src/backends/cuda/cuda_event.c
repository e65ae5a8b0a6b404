/* SPDX-License-Identifier: MIT
 *
 * Events as waiters: one record each. An event of ours whose points are gone is recorded again at
 * once: waits for its earlier record, on the device, are not touched by that.
 */
#include "cuda_internal.h"

/* ---- The handle in driver calls ---- */

/* sp_cuda_context_destroy() says that the context is dead, then waits until there are no users. */
sp_status sp_cuda_event_hold(sp_cuda_event *event, CUevent *handle)
{
    __atomic_fetch_add(&event->users, 1, __ATOMIC_SEQ_CST);
    if (SP_LIKELY(__atomic_load_n(&event->context->gone, __ATOMIC_SEQ_CST) == 0)) {
        *handle = event->handle;
        return SP_OK;
    }
    sp_cuda_event_release(event);
    return sp_cuda_fail_gone(event->context);
}

void sp_cuda_event_release(sp_cuda_event *event)
{
    __atomic_fetch_sub(&event->users, 1, __ATOMIC_RELEASE);
}

/* Needs no current context. Querying is one of the calls that a capture does not stand. */
static sp_status query(sp_cuda_context *context, CUevent handle, uint64_t *reached)
{
    int mode = sp_cuda_relax(context);
    bool alive = sp_cuda_is_alive(context);
    CUresult result = alive ? context->cu.event_query(handle) : CUDA_SUCCESS;
    sp_cuda_unrelax(context, mode);
    if (!alive)
        return sp_cuda_fail_gone(context);
    *reached = result == CUDA_SUCCESS;
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY)
        return SP_OK;
    return sp_cuda_fail(context, result, "cuEventQuery");
}

static sp_status event_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    sp_cuda_event *event = sp_cuda_event_of(waiter);
    CUevent handle = NULL;
    *reached = 0;
    sp_status status = sp_cuda_event_hold(event, &handle);
    if (status != SP_OK)
        return status;
    status = query(event->context, handle, reached);
    sp_cuda_event_release(event);
    return status;
}

/* ---- The end of an event ---- */

/* With its context pushed, and popped only then. Nothing is left to destroy in one that is gone. */
static void destroy_handle_locked(sp_cuda_event *event)
{
    sp_cuda_context *context = event->context;
    sp_cuda_scope scope;
    CUevent handle = event->handle;
    event->handle = NULL;
    if (!handle || !event->owned || (sp_cuda_gone(context) & SP_CUDA_DEAD))
        return;
    if (sp_cuda_enter(context, &scope) != SP_OK)
        return;
    int mode = sp_cuda_relax(context);
    context->cu.event_destroy(handle);
    sp_cuda_unrelax(context, mode);
    sp_cuda_leave(context, scope);
}

static void event_release(sp_waiter *waiter)
{
    sp_cuda_event *event = sp_cuda_event_of(waiter);
    sp_cuda_context *context = event->context;
    if (event->pooled) {
        if (sp_pool_leave(&context->events, event, sp_waiter_is_forked(waiter)))
            sp_cuda_context_unref(context);
        return;
    }
    if (!sp_waiter_is_forked(waiter)) {
        sp_os_mutex_lock(&context->lock);
        destroy_handle_locked(event);
        sp_os_mutex_unlock(&context->lock);
        sp_pool_put(&context->others, event);
    }
    sp_cuda_context_unref(context);
}

const sp_waiter_ops sp_cuda_event_ops = {
    .size = sizeof(sp_waiter_ops),
    /* No block(): cuEventSynchronize() has no time limit, and spins. */
    .features = SP_FEATURE_POLL,
    .backend = SP_BACKEND_CUDA,
    .name = "CUDA event",
    .probe = event_probe,
    .destroy = event_release,
};

/* ---- A new event ---- */

static void set_up(sp_cuda_event *event, sp_cuda_context *context)
{
    /* The pool as a whole holds the context: a reference less on the way of each record. */
    event->context = event->pooled ? context : sp_cuda_context_ref(context);
    sp_waiter_setup_again(&event->base, &sp_cuda_event_ops);
}

static SP_COLD sp_status make_handle(sp_cuda_context *context, sp_cuda_event *event)
{
    sp_cuda_scope scope;
    sp_status status = sp_cuda_enter(context, &scope);
    if (status != SP_OK)
        return status;
    int mode = sp_cuda_relax(context);
    CUresult result = context->cu.event_create(&event->handle, CU_EVENT_DISABLE_TIMING);
    sp_cuda_unrelax(context, mode);
    sp_cuda_leave(context, scope);
    event->pooled = true;
    event->owned = true;
    if (result == CUDA_SUCCESS)
        return SP_OK;
    event->handle = NULL;
    return sp_cuda_fail(context, result, "cuEventCreate");
}

sp_status sp_cuda_event_take(sp_cuda_context *context, sp_cuda_event **out)
{
    sp_cuda_event *event = sp_pool_get(&context->events);
    if (!event)
        return SP_ERROR_OUT_OF_MEMORY;
    if (!event->handle) {
        sp_status status = make_handle(context, event);
        if (status != SP_OK) {
            sp_pool_put(&context->events, event);
            return status;
        }
    }
    set_up(event, context);
    *out = event;
    return SP_OK;
}

sp_status sp_cuda_event_around(sp_cuda_context *context, CUevent handle, bool owned,
                               sp_cuda_event **out)
{
    sp_cuda_event *event = sp_pool_get(&context->others);
    if (!event)
        return SP_ERROR_OUT_OF_MEMORY;
    event->handle = handle;
    event->owned = owned;
    set_up(event, context);
    *out = event;
    return SP_OK;
}

sp_status sp_cuda_event_record(sp_cuda_event *event, CUstream stream)
{
    CUresult result = event->context->cu.event_record(event->handle, stream);
    return SP_LIKELY(result == CUDA_SUCCESS)
               ? SP_OK
               : sp_cuda_fail(event->context, result, "cuEventRecord");
}

/* ---- Public ---- */

static sp_status record_point(sp_cuda_context *context, CUstream stream, sp_point *out)
{
    sp_cuda_event *event;
    sp_status status = sp_cuda_event_take(context, &event);
    if (status != SP_OK)
        return status;
    status = sp_cuda_event_record(event, stream);
    if (status != SP_OK) {
        sp_cuda_event_unref(event);
        return status;
    }
    sp_cuda_event_point(event, out);
    return SP_OK;
}

/* In as few driver calls as there can be, whichever context is current. SP_PENDING: it does not do
 * without making ours current, and nothing was recorded. */
static sp_status record_outside(sp_cuda_context *context, CUstream stream, sp_point *out)
{
    sp_cuda_event *event;
    sp_status status = sp_cuda_check_stream_to_record(context, stream);
    if (status == SP_OK)
        status = sp_cuda_event_take(context, &event);
    if (status != SP_OK)
        return status;
    CUresult result = context->cu.event_record(event->handle, stream);
    if (SP_LIKELY(result == CUDA_SUCCESS)) {
        sp_cuda_event_point(event, out);
        return SP_OK;
    }
    sp_cuda_event_unref(event);
    if (result == (CUresult)SP_CU_INVALID_HANDLE) {
        sp_cuda_forget_stream(context, stream);
        return SP_PENDING;
    }
    return sp_cuda_may_mean_another(context, result)
               ? SP_PENDING
               : sp_cuda_fail(context, result, "cuEventRecord");
}

static sp_status record_inside(sp_cuda_context *context, CUstream stream, sp_point *out)
{
    sp_cuda_scope scope;
    sp_status status = sp_cuda_enter_stream(context, stream, &scope);
    if (status != SP_OK)
        return status;
    status = record_point(context, stream, out);
    sp_cuda_leave(context, scope);
    return status;
}

sp_status sp_cuda_stream_signal(sp_cuda_context *context, CUstream stream, sp_point *out)
{
    SP_CHECK_ARGUMENT(context && out, "context and out are required");
    sp_status status = sp_cuda_check_usable(context);
    if (status == SP_OK)
        status = record_outside(context, stream, out);
    return SP_LIKELY(status != SP_PENDING) ? status : record_inside(context, stream, out);
}

sp_status sp_cuda_event_wrap(sp_cuda_context *context, const sp_cuda_event_wrap_desc *desc,
                             sp_point *out)
{
    sp_cuda_event *event;
    SP_CHECK_ARGUMENT(context && desc && out, "context, desc and out are required");
    SP_CHECK_SIZE(desc);
    SP_CHECK_ARGUMENT(desc->event, "desc->event is required");
    sp_status status = sp_cuda_check(context);
    if (status == SP_OK)
        status = sp_cuda_event_around(context, desc->event, desc->take, &event);
    if (status == SP_OK)
        sp_cuda_event_point(event, out);
    return status;
}

CUevent sp_cuda_event_from_point(const sp_point *point)
{
    if (!point || point->kind != SP_KIND_CUDA_EVENT || !point->waiter ||
        point->waiter->ops != &sp_cuda_event_ops)
        return NULL;
    const sp_cuda_event *event = sp_cuda_event_of(point->waiter);
    uint32_t gone = sp_cuda_gone(event->context);
    return gone & (SP_CUDA_DEAD | SP_CUDA_ENDED) ? NULL : event->handle;
}

/* ---- The end of the context ---- */

void sp_cuda_end_waiter(sp_waiter *waiter)
{
    sp_error error;
    sp_error_format(&error, SP_ERROR_INVALID_STATE, "its sp_cuda_context was destroyed before");
    error.backend = SP_BACKEND_CUDA;
    sp_waiter_fail(waiter, 0, &error);
}

static void end_event(void *unused, void *object)
{
    (void)unused;
    sp_cuda_event *event = object;
    if (!sp_waiter_try_ref(&event->base))
        return;
    sp_cuda_event_probe(event);
    sp_cuda_end_waiter(&event->base);
    sp_cuda_event_unref(event);
}

void sp_cuda_events_end(sp_cuda_context *context)
{
    sp_pool_each(&context->events, end_event, NULL);
    sp_pool_each(&context->others, end_event, NULL);
}

static void destroy_event(void *user, void *object)
{
    sp_cuda_context *context = user;
    sp_cuda_event *event = object;
    while (__atomic_load_n(&event->users, __ATOMIC_SEQ_CST) != 0)
        sp_os_yield();
    if (event->handle && event->owned && !(sp_cuda_gone(context) & SP_CUDA_ENDED))
        context->cu.event_destroy(event->handle);
    event->handle = NULL;
}

void sp_cuda_events_destroy_locked(sp_cuda_context *context)
{
    sp_pool_each(&context->events, destroy_event, context);
    sp_pool_each(&context->others, destroy_event, context);
}
