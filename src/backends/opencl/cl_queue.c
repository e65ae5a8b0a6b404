/* SPDX-License-Identifier: MIT
 *
 * sp_cl_queue_wait(): finds what a point waits for, claims what a wait uses up, then enqueues. An
 * error leaves nothing enqueued and nothing claimed.
 *
 * A signal of our own is waited for by its command's event, too: if that command fails, OpenCL then
 * ends the wait, and what is behind it, with an error. A semaphore alone would hang the queue.
 */
#include "cl_internal.h"

#include <stdlib.h>
#include <string.h>

#define FEW 16 /* so many need no allocator */

typedef struct wait_list {
    sp_cl_context *context;
    size_t capacity; /* of each array */
    cl_event *events;
    size_t event_count;
    sp_cl_signal **signals;
    cl_semaphore_khr *semaphores; /* of the signals */
    size_t signal_count;
    void *room; /* where the arrays are; NULL: below */
    cl_event few_events[FEW];
    sp_cl_signal *few_signals[FEW];
    cl_semaphore_khr few_semaphores[FEW];
} wait_list;

/* ---- The list ---- */

static sp_status grow(wait_list *list)
{
    size_t capacity = list->capacity * 2;
    assert(capacity > list->capacity);
    void **room = calloc(capacity, 3 * sizeof(*room));
    if (!room)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_cl_queue_wait: out of memory for %zu waits",
                       capacity);
    cl_event *events = (cl_event *)(void *)room;
    sp_cl_signal **signals = (sp_cl_signal **)(void *)(room + capacity);
    cl_semaphore_khr *semaphores = (cl_semaphore_khr *)(void *)(room + 2 * capacity);
    memcpy(events, list->events, list->event_count * sizeof(*events));
    memcpy(signals, list->signals, list->signal_count * sizeof(*signals));
    memcpy(semaphores, list->semaphores, list->signal_count * sizeof(*semaphores));
    free(list->room);
    list->room = room;
    list->events = events;
    list->signals = signals;
    list->semaphores = semaphores;
    list->capacity = capacity;
    return SP_OK;
}

static void list_init(wait_list *list, sp_cl_context *context)
{
    list->context = context;
    list->capacity = FEW;
    list->event_count = 0;
    list->signal_count = 0;
    list->events = list->few_events;
    list->signals = list->few_signals;
    list->semaphores = list->few_semaphores;
    list->room = NULL;
}

static void unclaim(const wait_list *list)
{
    for (size_t i = 0; i < list->signal_count; i++)
        sp_oneshot_unclaim(&list->signals[i]->oneshot);
}

/* ---- Leaves ---- */

static sp_status append_event(wait_list *list, cl_event event)
{
    for (size_t i = 0; i < list->event_count; i++) {
        if (list->events[i] == event)
            return SP_OK;
    }
    sp_status status = list->event_count == list->capacity ? grow(list) : SP_OK;
    if (status == SP_OK)
        list->events[list->event_count++] = event;
    return status;
}

static sp_status check_context(const wait_list *list, const sp_cl_context *of_point)
{
    if (of_point->handle == list->context->handle)
        return SP_OK;
    return sp_fail(SP_ERROR_WRONG_CONTEXT,
                   "sp_cl_queue_wait: the point is of another cl_context; wait for it on the host, "
                   "or hand it over by a user event");
}

static sp_status add_event(wait_list *list, sp_cl_event *event)
{
    sp_status status = check_context(list, event->context);
    if (status == SP_OK)
        status = sp_waiter_probe(&event->base, 1);
    return status == SP_PENDING ? append_event(list, event->handle) : status;
}

static bool has_signal(const wait_list *list, const sp_cl_signal *signal)
{
    for (size_t i = 0; i < list->signal_count; i++) {
        if (list->signals[i] == signal)
            return true;
    }
    return false;
}

static sp_status claim_signal(wait_list *list, sp_cl_signal *signal)
{
    sp_status status = list->signal_count == list->capacity ? grow(list) : SP_OK;
    if (status == SP_OK && signal->signalled)
        status = append_event(list, signal->signalled);
    if (status == SP_OK)
        status = sp_oneshot_claim(&signal->oneshot);
    if (status != SP_OK)
        return status;
    list->signals[list->signal_count] = signal;
    list->semaphores[list->signal_count++] = signal->semaphore->handle;
    return SP_OK;
}

static sp_status add_signal(wait_list *list, sp_cl_signal *signal)
{
    sp_status status = check_context(list, signal->semaphore->context);
    if (status != SP_OK || has_signal(list, signal))
        return status;
    status = sp_waiter_probe(&signal->oneshot.base, 1);
    return status == SP_PENDING ? claim_signal(list, signal) : status;
}

static sp_status add_leaf(void *user, const sp_point *leaf)
{
    sp_waiter *waiter = leaf->waiter;
    if (waiter->ops == &sp_cl_event_ops)
        return add_event(user, sp_cl_event_of(waiter));
    if (waiter->ops == &sp_cl_signal_ops)
        return add_signal(user, sp_cl_signal_of(waiter));
    return sp_waiter_require_reached(waiter, sp_point_target(leaf), "sp_cl_queue_wait",
                                     "an OpenCL queue");
}

/* ---- Enqueueing ---- */

/* An event that has failed by now must not be enqueued on: it can hang the queue. */
static sp_status check_events(const wait_list *list)
{
    sp_status status = SP_OK;
    for (size_t i = 0; status == SP_OK && i < list->event_count; i++) {
        bool done = false;
        status = sp_cl_event_is_done(list->context, list->events[i], &done);
    }
    return status;
}

static sp_status enqueue_barrier(sp_cl_context *context, cl_command_queue queue, size_t count,
                                 const cl_event *events)
{
    cl_event barrier = NULL;
    cl_int result = context->cl.enqueue_barrier(queue, (cl_uint)count, events, &barrier);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clEnqueueBarrierWithWaitList");
    sp_cl_let_go(context, barrier);
    return SP_OK;
}

/* Gives the wait's event to the signals that it uses up. Returns one that could not keep it, and
 * has failed; NULL: all did. */
static sp_cl_signal *set_gates(const wait_list *list, cl_event gate)
{
    sp_cl_signal *failed = NULL;
    for (size_t i = 0; i < list->signal_count; i++) {
        if (!sp_cl_signal_set_gate(list->signals[i], gate))
            failed = list->signals[i];
    }
    return failed;
}

/* The wait on the semaphores is there, `gate` its event. On an out-of-order queue it keeps nothing
 * back by itself. One that has failed by now keeps nothing back on any. */
static sp_status finish_wait(const wait_list *list, cl_command_queue queue, cl_event gate,
                             bool out_of_order)
{
    bool done = false;
    sp_status status = sp_cl_event_is_done(list->context, gate, &done);
    if (status == SP_OK && out_of_order && !done)
        status = enqueue_barrier(list->context, queue, 1, &gate);
    if (status != SP_OK)
        return status;
    cl_int result = list->context->cl.flush(queue);
    return result == CL_SUCCESS ? SP_OK : sp_cl_fail(result, "clFlush");
}

static sp_status enqueue_semaphore_wait(wait_list *list, cl_command_queue queue)
{
    cl_event gate = NULL;
    bool out_of_order;
    sp_status status = sp_cl_queue_is_out_of_order(list->context, queue, &out_of_order);
    if (status != SP_OK)
        return status;
    cl_int result = list->context->cl.enqueue_wait_semaphores(
        queue, (cl_uint)list->signal_count, list->semaphores, NULL, (cl_uint)list->event_count,
        list->event_count ? list->events : NULL, &gate);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clEnqueueWaitSemaphoresKHR");
    sp_cl_signal *failed = set_gates(list, gate);
    status = finish_wait(list, queue, gate, out_of_order);
    if (status == SP_OK && failed)
        status = sp_waiter_check_failed(&failed->oneshot.base, 1);
    if (failed)
        sp_cl_let_go(list->context, gate);
    else
        list->context->cl.release_event(gate);
    list->signal_count = 0; /* used up, whatever comes: the wait is in the queue */
    return status;
}

static sp_status enqueue(wait_list *list, cl_command_queue queue)
{
    sp_status status = check_events(list);
    if (status != SP_OK)
        return status;
    if (list->signal_count)
        return enqueue_semaphore_wait(list, queue);
    if (list->event_count)
        return enqueue_barrier(list->context, queue, list->event_count, list->events);
    return SP_OK;
}

sp_status sp_cl_queue_wait(sp_cl_context *context, cl_command_queue queue, const sp_point *point)
{
    sp_waiter *waiter;
    SP_CHECK_ARGUMENT(context && queue && point, "context, queue and point are required");
    sp_status status = sp_cl_check_queue(context, queue);
    if (status == SP_OK)
        status = sp_point_check(point, &waiter);
    if (status != SP_OK || !waiter)
        return status;
    sp_cl_events_tidy(context);
    wait_list list;
    list_init(&list, context);
    status = sp_point_visit_leaves(point, add_leaf, &list);
    if (status == SP_OK)
        status = enqueue(&list, queue);
    if (status != SP_OK)
        unclaim(&list);
    free(list.room);
    return status;
}
