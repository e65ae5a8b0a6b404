/* SPDX-License-Identifier: MIT
 *
 * Events as points: markers, the user's own, and user events.
 */
#include "cl_internal.h"

/* ---- The waiter ---- */

cl_int sp_cl_event_status(const sp_cl_context *context, cl_event event)
{
    cl_int status = CL_QUEUED;
    context->cl.get_event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                               NULL);
    return status;
}

sp_status sp_cl_event_is_done(const sp_cl_context *context, cl_event event, bool *done)
{
    cl_int status = CL_QUEUED;
    cl_int result = context->cl.get_event_info(event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                               sizeof(status), &status, NULL);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clGetEventInfo");
    if (status < 0)
        return sp_cl_fail_event(status);
    *done = status == CL_COMPLETE;
    return SP_OK;
}

static sp_status event_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    const sp_cl_event *event = sp_cl_event_of(waiter);
    bool done = false;
    sp_status status = sp_cl_event_is_done(event->context, event->handle, &done);
    *reached = done;
    return status;
}

/* The calls of this thread that set a user event, the inner one first: drivers run callbacks of the
 * user's inside, and those may set others. */
typedef struct setting {
    const sp_cl_context *context;
    const struct setting *outer;
} setting;

static _Thread_local const setting *innermost;

static cl_int set_user_event(sp_cl_event *event, cl_int execution_status)
{
    const setting now = {.context = event->context, .outer = innermost};
    innermost = &now;
    cl_int result = now.context->cl.set_user_event_status(event->handle, execution_status);
    innermost = now.outer;
    return result;
}

bool sp_cl_is_setting_event(const sp_cl_context *context)
{
    const setting *at = innermost;
    while (at && at->context != context)
        at = at->outer;
    return at != NULL;
}

/* Nobody can set it any more: what waits for it would wait for ever. */
static void abandon(sp_cl_event *event)
{
    if (sp_cas32(&event->kind, SP_CL_USER_UNSET, SP_CL_USER_SET))
        set_user_event(event, sp_cl_status_of_cause(SP_ERROR_ABANDONED));
}

static bool is_complete(const sp_cl_event *event)
{
    bool done = false;
    if (sp_waiter_known_reached(&event->base, 1))
        return true;
    return sp_cl_event_is_done(event->context, event->handle, &done) == SP_OK && done;
}

/* Into the pool, or to those that are parked. */
static void put_away(sp_cl_context *context, sp_cl_event *event)
{
    abandon(event);
    if (event->kind == SP_CL_COMMAND && !is_complete(event)) {
        sp_cl_event_park(context, event);
        return;
    }
    context->cl.release_event(event->handle);
    event->handle = NULL;
    sp_pool_put(&context->events, event);
}

static void event_release(sp_waiter *waiter)
{
    sp_cl_event *event = sp_cl_event_of(waiter);
    sp_cl_context *context = event->context;
    if (!sp_waiter_is_forked(waiter) && sp_cl_begin_release(context)) {
        put_away(context, event);
        sp_cl_end_release(context);
    }
    sp_cl_context_unref(context);
}

/* No block(): clWaitForEvents() has no time limit, and misses failures. */
const sp_waiter_ops sp_cl_event_ops = {
    .size = sizeof(sp_waiter_ops),
    .backend = SP_BACKEND_OPENCL,
    .name = "opencl event",
    .probe = event_probe,
    .destroy = event_release,
};

/* ---- The end of the context ---- */

/* Asks each a last time, so that what was reached stays so. */
void sp_cl_event_end(void *unused, void *object)
{
    (void)unused;
    sp_cl_event *event = object;
    if (!sp_waiter_try_ref(&event->base))
        return;
    sp_waiter_probe(&event->base, 1);
    sp_cl_end_waiter(&event->base);
    abandon(event);
    sp_waiter_unref(&event->base);
}

void sp_cl_event_drop(void *context, void *object)
{
    sp_cl_event *event = object;
    if (event->handle)
        ((sp_cl_context *)context)->cl.release_event(event->handle);
    event->handle = NULL;
}

/* ---- Making ---- */

/* Takes the reference to `handle`. */
static sp_point make_point(sp_cl_context *context, sp_cl_event *event, cl_event handle,
                           uint32_t kind)
{
    event->context = sp_cl_context_ref(context);
    event->handle = handle;
    event->failed_ns = 0;
    sp_store32(&event->kind, kind);
    sp_waiter_setup_again(&event->base, &sp_cl_event_ops);
    return (sp_point){
        .kind = SP_KIND_OPENCL,
        .raw.opencl = {.event = handle},
        .waiter = &event->base,
    };
}

static sp_status enqueue_marker(sp_cl_context *context, cl_command_queue queue, cl_event *marker)
{
    cl_int result = context->cl.enqueue_marker(queue, 0, NULL, marker);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clEnqueueMarkerWithWaitList");
    result = context->cl.flush(queue);
    if (result == CL_SUCCESS)
        return SP_OK;
    sp_cl_let_go(context, *marker);
    return sp_cl_fail(result, "clFlush");
}

sp_status sp_cl_queue_signal(sp_cl_context *context, cl_command_queue queue, sp_point *out)
{
    SP_CHECK_ARGUMENT(context && queue && out, "context, queue and out are required");
    sp_status status = sp_cl_check_queue(context, queue);
    if (status != SP_OK)
        return status;
    sp_cl_events_tidy(context);
    sp_cl_event *event = sp_pool_get(&context->events);
    if (!event)
        return SP_ERROR_OUT_OF_MEMORY;
    cl_event marker = NULL;
    status = enqueue_marker(context, queue, &marker);
    if (status != SP_OK) {
        sp_pool_put(&context->events, event);
        return status;
    }
    *out = make_point(context, event, marker, SP_CL_COMMAND);
    return SP_OK;
}

/* ---- Events that the user has ---- */

static sp_status check_event(sp_cl_context *context, cl_event event)
{
    cl_context owner = NULL;
    cl_int result =
        context->cl.get_event_info(event, CL_EVENT_CONTEXT, sizeof(owner), &owner, NULL);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clGetEventInfo");
    if (owner != context->handle)
        return sp_fail(SP_ERROR_WRONG_CONTEXT, "sp_cl_event_wrap: the event is of another "
                                               "cl_context");
    return SP_OK;
}

/* NULL for a user event. Not asked of an event that is over: its queue may be gone. */
static sp_status get_queue(sp_cl_context *context, cl_event event, cl_command_queue *queue)
{
    bool done = false;
    *queue = NULL;
    sp_status status = sp_cl_event_is_done(context, event, &done);
    if (status == SP_ERROR_FAILED || done)
        return SP_OK;
    if (status != SP_OK)
        return status;
    cl_int result =
        context->cl.get_event_info(event, CL_EVENT_COMMAND_QUEUE, sizeof(*queue), queue, NULL);
    return result == CL_SUCCESS ? SP_OK : sp_cl_fail(result, "clGetEventInfo");
}

static sp_status retain_flushed(sp_cl_context *context, cl_event event, uint32_t *kind)
{
    cl_command_queue queue = NULL;
    sp_status status = check_event(context, event);
    if (status == SP_OK)
        status = get_queue(context, event, &queue);
    if (status != SP_OK)
        return status;
    cl_int result = queue ? context->cl.flush(queue) : CL_SUCCESS;
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clFlush");
    *kind = queue ? SP_CL_COMMAND : SP_CL_WRAPPED;
    result = context->cl.retain_event(event);
    return result == CL_SUCCESS ? SP_OK : sp_cl_fail(result, "clRetainEvent");
}

sp_status sp_cl_event_wrap(sp_cl_context *context, cl_event event, sp_point *out)
{
    SP_CHECK_ARGUMENT(context && event && out, "context, event and out are required");
    sp_status status = sp_cl_check(context);
    if (status != SP_OK)
        return status;
    sp_cl_event *made = sp_pool_get(&context->events);
    uint32_t kind = SP_CL_WRAPPED;
    if (!made)
        return SP_ERROR_OUT_OF_MEMORY;
    status = retain_flushed(context, event, &kind);
    if (status != SP_OK) {
        sp_pool_put(&context->events, made);
        return status;
    }
    *out = make_point(context, made, event, kind);
    return SP_OK;
}

/* ---- User events ---- */

sp_status sp_cl_user_event(sp_cl_context *context, sp_point *out)
{
    SP_CHECK_ARGUMENT(context && out, "context and out are required");
    sp_status status = sp_cl_check(context);
    if (status != SP_OK)
        return status;
    sp_cl_event *event = sp_pool_get(&context->events);
    if (!event)
        return SP_ERROR_OUT_OF_MEMORY;
    cl_int result = CL_SUCCESS;
    cl_event handle = context->cl.create_user_event(context->handle, &result);
    if (!handle) {
        sp_pool_put(&context->events, event);
        return sp_cl_fail(result, "clCreateUserEvent");
    }
    *out = make_point(context, event, handle, SP_CL_USER_UNSET);
    return SP_OK;
}

static sp_status set_status(sp_cl_event *event, cl_int execution_status)
{
    if (!sp_cas32(&event->kind, SP_CL_USER_UNSET, SP_CL_USER_SET))
        return sp_fail(SP_ERROR_INVALID_STATE, "sp_cl_user_event_set: it was set before");
    cl_int result = set_user_event(event, execution_status);
    if (result == CL_SUCCESS)
        return SP_OK;
    if (result == CL_INVALID_OPERATION)
        return sp_fail_native(SP_ERROR_INVALID_STATE, SP_BACKEND_OPENCL, result,
                              "clSetUserEventStatus",
                              "sp_cl_user_event_set: somebody else has set the event");
    sp_store32(&event->kind, SP_CL_USER_UNSET);
    return sp_cl_fail(result, "clSetUserEventStatus");
}

sp_status sp_cl_user_event_set(const sp_point *point, sp_status status)
{
    sp_waiter *waiter;
    SP_CHECK_ARGUMENT(point, "point is required");
    SP_CHECK_ARGUMENT(status == SP_OK || sp_cl_is_cause(status),
                      "the status is SP_OK or one of the SP_ERROR_ ones");
    sp_status checked = sp_point_check(point, &waiter);
    if (checked != SP_OK)
        return checked;
    SP_CHECK_ARGUMENT(waiter && waiter->ops == &sp_cl_event_ops &&
                          sp_load32(&sp_cl_event_of(waiter)->kind) >= SP_CL_USER_UNSET,
                      "the point is not one of sp_cl_user_event()");
    sp_cl_event *event = sp_cl_event_of(waiter);
    checked = sp_cl_check(event->context);
    if (checked != SP_OK)
        return checked;
    return set_status(event, status == SP_OK ? CL_COMPLETE : sp_cl_status_of_cause(status));
}

/* ---- Native ---- */

cl_event sp_cl_event_from_point(const sp_point *point)
{
    if (!point || !point->waiter || point->waiter->ops != &sp_cl_event_ops)
        return NULL;
    return sp_cl_event_of(point->waiter)->handle;
}
