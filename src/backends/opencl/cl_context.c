/* SPDX-License-Identifier: MIT
 *
 * The context object: its beginning, its end, and what every call checks first.
 */
#include "cl_internal.h"

#include <stdlib.h>

sp_status sp_cl_check(const sp_cl_context *context)
{
    if (sp_cl_is_forked(context))
        return sp_fail_forked();
    if (__atomic_load_n(&context->dead, __ATOMIC_ACQUIRE))
        return sp_fail(SP_ERROR_INVALID_STATE, "the sp_cl_context was destroyed");
    return SP_OK;
}

sp_status sp_cl_check_queue(sp_cl_context *context, cl_command_queue queue)
{
    cl_context owner = NULL;
    sp_status status = sp_cl_check(context);
    if (status != SP_OK)
        return status;
    cl_int result =
        context->cl.get_queue_info(queue, CL_QUEUE_CONTEXT, sizeof(owner), &owner, NULL);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clGetCommandQueueInfo");
    if (owner != context->handle)
        return sp_fail(SP_ERROR_WRONG_CONTEXT, "the queue is of another cl_context");
    return SP_OK;
}

sp_status sp_cl_queue_is_out_of_order(const sp_cl_context *context, cl_command_queue queue,
                                      bool *out_of_order)
{
    cl_command_queue_properties properties = 0;
    cl_int result = context->cl.get_queue_info(queue, CL_QUEUE_PROPERTIES, sizeof(properties),
                                               &properties, NULL);
    *out_of_order = (properties & CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE) != 0;
    return result == CL_SUCCESS ? SP_OK : sp_cl_fail(result, "clGetCommandQueueInfo");
}

sp_cl_context *sp_cl_context_ref(sp_cl_context *context)
{
    sp_ref_inc(&context->refs);
    return context;
}

void sp_cl_context_unref(sp_cl_context *context)
{
    if (!sp_ref_dec(&context->refs))
        return;
    sp_pool_empty(&context->events);
    sp_pool_empty(&context->signals);
    free(context);
}

bool sp_cl_begin_release(sp_cl_context *context)
{
    sp_os_spin_lock(&context->lock);
    bool alive = !context->dead;
    context->releasing += alive;
    sp_os_spin_unlock(&context->lock);
    return alive;
}

void sp_cl_end_release(sp_cl_context *context)
{
    sp_os_spin_lock(&context->lock);
    context->releasing--;
    sp_os_spin_unlock(&context->lock);
}

/* ---- The beginning ---- */

static sp_status retain_wait_queue(sp_cl_context *context, cl_command_queue queue)
{
    if (!queue)
        return SP_OK;
    sp_status status = sp_cl_check_queue(context, queue);
    if (status == SP_ERROR_WRONG_CONTEXT) {
        return sp_fail(SP_ERROR_INVALID_ARGUMENT,
                       "sp_cl_context_create: wait_queue is of another cl_context");
    }
    if (status != SP_OK)
        return status;
    cl_int result = context->cl.retain_queue(queue);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clRetainCommandQueue");
    context->wait_queue = queue;
    return SP_OK;
}

static void release_handles(sp_cl_context *context)
{
    if (context->end_marker)
        context->cl.release_event(context->end_marker);
    if (context->wait_queue)
        context->cl.release_queue(context->wait_queue);
    if (context->handle)
        context->cl.release_context(context->handle);
    sp_cl_driver_unload(&context->cl);
}

static sp_status take_hold(sp_cl_context *context, const sp_cl_context_desc *desc)
{
    sp_status status = sp_cl_driver_load(&context->cl, desc);
    if (status != SP_OK)
        return status;
    cl_int result = context->cl.retain_context(desc->context);
    if (result == CL_SUCCESS)
        context->handle = desc->context;
    status = result == CL_SUCCESS ? SP_OK : sp_cl_fail(result, "clRetainContext");
    if (status == SP_OK)
        status = retain_wait_queue(context, desc->wait_queue);
    if (status == SP_OK)
        status = sp_cl_caps_read(context);
    if (status != SP_OK) {
        sp_error error = *sp_last_error();
        release_handles(context);
        return sp_fail_with(&error);
    }
    return SP_OK;
}

sp_status sp_cl_context_create(const sp_cl_context_desc *desc, sp_cl_context **out)
{
    SP_CHECK_ARGUMENT(desc && out, "desc and out are required");
    SP_CHECK_SIZE(desc);
    SP_CHECK_ARGUMENT(desc->context, "desc->context is required");
    sp_cl_context *context = calloc(1, sizeof(*context));
    if (!context)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_cl_context_create: out of memory");
    sp_os_watch_forks();
    context->log = desc->log;
    context->refs = 1;
    context->fork_generation = sp_fork_generation;
    context->caps.size = sizeof(context->caps);
    context->events.object_size = sizeof(sp_cl_event);
    context->signals.object_size = sizeof(sp_cl_signal);
    sp_status status = take_hold(context, desc);
    if (status != SP_OK) {
        free(context);
        return status;
    }
    *out = context;
    return SP_OK;
}

sp_status sp_cl_context_caps(const sp_cl_context *context, sp_cl_caps *caps)
{
    SP_CHECK_ARGUMENT(context && caps, "context and caps are required");
    SP_CHECK_SIZE(caps);
    if (sp_cl_is_forked(context))
        return sp_fail_forked();
    *caps = context->caps;
    return SP_OK;
}

/* ---- The end ---- */

/* A marker behind every host wait so far. Without one (the driver refuses) there is nothing to
 * wait for: the device is gone. */
static void mark_end(sp_cl_context *context)
{
    uint32_t waits = sp_load32(&context->host_waits);
    if (context->end_marker && context->end_marker_waits == waits)
        return;
    if (context->end_marker)
        sp_cl_let_go(context, context->end_marker);
    context->end_marker = NULL;
    context->end_marker_waits = waits;
    cl_int result = context->cl.enqueue_marker(context->wait_queue, 0, NULL, &context->end_marker);
    if (result == CL_SUCCESS)
        context->cl.flush(context->wait_queue);
}

static sp_status wait_until_idle(sp_cl_context *context, uint64_t deadline_ns)
{
    sp_backoff backoff = {0};
    if (sp_load32(&context->host_waits) == 0)
        return SP_OK;
    mark_end(context);
    while (context->end_marker) {
        bool done = false;
        if (sp_cl_event_is_done(context, context->end_marker, &done) != SP_OK || done)
            break;
        if (sp_now_ns() >= deadline_ns)
            return SP_TIMEOUT;
        sp_backoff_sleep(&backoff, deadline_ns);
    }
    return SP_OK;
}

void sp_cl_end_waiter(sp_waiter *waiter)
{
    sp_error error;
    sp_error_format(&error, SP_ERROR_INVALID_STATE, "its sp_cl_context was destroyed before");
    error.backend = SP_BACKEND_OPENCL;
    sp_waiter_fail(waiter, 0, &error);
}

/* From here on no other thread calls the driver. */
static void die(sp_cl_context *context)
{
    sp_os_spin_lock(&context->lock);
    __atomic_store_n(&context->dead, true, __ATOMIC_RELEASE);
    sp_cl_semaphores_drop_locked(context);
    while (context->releasing) {
        sp_os_spin_unlock(&context->lock);
        sp_os_yield();
        sp_os_spin_lock(&context->lock);
    }
    sp_os_spin_unlock(&context->lock);
}

sp_status sp_cl_context_destroy(sp_cl_context *context, uint64_t timeout_ns)
{
    if (!context)
        return SP_OK;
    if (sp_cl_is_forked(context)) {
        sp_cl_context_unref(context);
        return sp_fail_forked();
    }
    if (sp_cl_is_setting_event(context)) {
        return sp_fail(SP_ERROR_INVALID_STATE,
                       "sp_cl_context_destroy: called by a callback inside a call on this context");
    }
    uint64_t deadline_ns = sp_deadline_ns(timeout_ns);
    sp_status status = wait_until_idle(context, deadline_ns);
    if (status != SP_OK)
        return status;
    sp_pool_each(&context->signals, sp_cl_signal_end, NULL);
    sp_pool_each(&context->events, sp_cl_event_end, NULL);
    die(context);
    sp_cl_events_rest(context, deadline_ns);
    sp_pool_each(&context->signals, sp_cl_signal_drop, context);
    sp_pool_each(&context->events, sp_cl_event_drop, context);
    release_handles(context);
    sp_cl_context_unref(context);
    return SP_OK;
}
