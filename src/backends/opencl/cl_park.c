/* SPDX-License-Identifier: MIT
 *
 * Events of commands that nobody looks at any more, but which are not over. PoCL 3.1 ends
 * the process when a marker or barrier fails whose event was released.
 */
#include "cl_internal.h"

/* How long a failed one is kept: PoCL still works on it, on another thread, when it reads failed. */
#define GRACE UINT64_C(100000000)

#define LOOKS 2 /* so many at a time: more than are added, so the list does not grow without end */

/* So many may be parked until one more looks at others. */
#define FEW 16

static void append(sp_cl_context *context, sp_cl_event *event)
{
    event->next_parked = NULL;
    sp_os_spin_lock(&context->lock);
    if (context->last_parked)
        context->last_parked->next_parked = event;
    else
        context->first_parked = event;
    context->last_parked = event;
    sp_store32(&context->parked, context->parked + 1);
    sp_os_spin_unlock(&context->lock);
}

void sp_cl_event_park(sp_cl_context *context, sp_cl_event *event)
{
    event->failed_ns = 0;
    append(context, event);
    if (sp_load32(&context->parked) > FEW)
        sp_cl_events_tidy(context);
}

void sp_cl_let_go(sp_cl_context *context, cl_event handle)
{
    sp_cl_event *event = sp_pool_get(&context->events);
    if (!event) {
        context->cl.release_event(handle);
        return;
    }
    event->handle = handle;
    sp_store32(&event->kind, SP_CL_COMMAND);
    sp_cl_event_park(context, event);
}

void sp_cl_release_event(sp_cl_context *context, cl_event handle)
{
    if (sp_cl_event_status(context, handle) == CL_COMPLETE)
        context->cl.release_event(handle);
    else
        sp_cl_let_go(context, handle);
}

static sp_cl_event *take_first(sp_cl_context *context)
{
    sp_os_spin_lock(&context->lock);
    sp_cl_event *first = context->first_parked;
    if (first) {
        context->first_parked = first->next_parked;
        sp_store32(&context->parked, context->parked - 1);
    }
    if (!context->first_parked)
        context->last_parked = NULL;
    sp_os_spin_unlock(&context->lock);
    return first;
}

/* When the driver will be done with the event, which has failed. */
static uint64_t end_of_grace(sp_cl_event *event)
{
    if (event->failed_ns == 0)
        event->failed_ns = sp_now_ns();
    return event->failed_ns + GRACE;
}

static bool can_go(const sp_cl_context *context, sp_cl_event *event)
{
    cl_int status = sp_cl_event_status(context, event->handle);
    if (status < 0)
        return sp_now_ns() > end_of_grace(event);
    return status == CL_COMPLETE;
}

void sp_cl_events_tidy(sp_cl_context *context)
{
    for (unsigned i = 0; i < LOOKS; i++) {
        sp_cl_event *event = take_first(context);
        if (!event)
            return;
        if (!can_go(context, event)) {
            append(context, event);
            continue;
        }
        context->cl.release_event(event->handle);
        event->handle = NULL;
        sp_pool_put(&context->events, event);
    }
}

/* ---- The end of the context ---- */

typedef struct resting {
    const sp_cl_context *context;
    uint64_t until_ns;
} resting;

static void look_for_failure(void *user, void *object)
{
    resting *rest = user;
    sp_cl_event *event = object;
    if (!event->handle || event->kind != SP_CL_COMMAND ||
        sp_cl_event_status(rest->context, event->handle) >= 0)
        return;
    uint64_t end = end_of_grace(event);
    rest->until_ns = end > rest->until_ns ? end : rest->until_ns;
}

void sp_cl_events_rest(sp_cl_context *context, uint64_t deadline_ns)
{
    resting rest = {.context = context};
    sp_pool_each(&context->events, look_for_failure, &rest);
    if (rest.until_ns)
        sp_os_sleep_until(rest.until_ns < deadline_ns ? rest.until_ns : deadline_ns);
}
