/* SPDX-License-Identifier: MIT
 *
 * Waits and signals on the user's streams.
 *
 * A wait first finds what the point waits for and claims what it uses up, then enqueues: events,
 * then semaphores a few to a call, then one mark for all of them. Until something of it is enqueued
 * an error leaves nothing changed; after that, it keeps claimed only what is enqueued.
 */
#include "cuda_internal.h"

#include <string.h>

#define FEW 16 /* so many leaves need no allocator, and so many semaphores go into one call */

typedef struct wait_item {
    sp_cuda_event *event;         /* else: */
    sp_cuda_semaphore *semaphore; /* and   */
    uint64_t value;
    sp_cuda_signal *signal; /* of a binary: claimed for this wait */
    sp_cuda_use *use;       /* to remember the wait by            */
} wait_item;

typedef struct wait_list {
    sp_cuda_context *context;
    CUstream stream;
    unsigned long long stream_id;
    sp_cuda_event *mark; /* for the semaphores; NULL: there are none */
    wait_item *items;
    size_t count;
    size_t capacity;
    wait_item few[FEW];
} wait_list;

/* ---- The list ---- */

static bool grow(wait_list *list)
{
    wait_item *items = sp_array_grow(list->items, list->few, &list->capacity, sizeof(*list->items));
    if (items)
        list->items = items;
    return items != NULL;
}

static sp_status append(wait_list *list, wait_item item)
{
    if (list->count == list->capacity && !grow(list)) {
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_cuda_stream_wait: out of memory for %zu waits",
                       list->count + 1);
    }
    if (item.semaphore) {
        item.use = sp_pool_get(&list->context->uses);
        if (!item.use)
            return SP_ERROR_OUT_OF_MEMORY;
    }
    list->items[list->count++] = item;
    return SP_OK;
}

/* Gives back what was not enqueued. */
static void list_fini(wait_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        const wait_item *item = &list->items[i];
        if (item->signal)
            sp_oneshot_unclaim(&item->signal->oneshot);
        if (item->use)
            sp_pool_put(&list->context->uses, item->use);
    }
    sp_cuda_event_unref(list->mark);
    sp_array_free(list->items, list->few);
}

/* ---- Leaves ---- */

static sp_status add_timeline(wait_list *list, sp_cuda_semaphore *timeline, uint64_t value)
{
    sp_status status = sp_waiter_probe(&timeline->base, value);
    if (status != SP_PENDING && status != SP_NOT_SUBMITTED)
        return status;
    return append(list, (wait_item){.semaphore = timeline, .value = value});
}

static sp_status add_signal(wait_list *list, sp_cuda_signal *signal)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].signal == signal)
            return SP_OK;
    }
    sp_status status = sp_waiter_probe(&signal->oneshot.base, 1);
    if (status != SP_PENDING)
        return status;
    status = sp_oneshot_claim(&signal->oneshot);
    if (status != SP_OK)
        return status;
    status = append(
        list, (wait_item){.semaphore = signal->semaphore, .value = signal->key, .signal = signal});
    if (status != SP_OK)
        sp_oneshot_unclaim(&signal->oneshot);
    return status;
}

static sp_status check_context(const wait_list *list, const sp_cuda_semaphore *semaphore)
{
    if (semaphore->context == list->context)
        return SP_OK;
    return sp_fail(SP_ERROR_DEVICE_MISMATCH,
                   "the semaphore is of another sp_cuda_context: import its handle to this one");
}

static sp_status add_leaf(void *user, const sp_point *leaf)
{
    wait_list *list = user;
    sp_waiter *waiter = leaf->waiter;
    if (waiter->ops == &sp_cuda_event_ops)
        return append(list, (wait_item){.event = sp_cuda_event_of(waiter)});
    if (sp_cuda_is_timeline(waiter)) {
        sp_cuda_semaphore *timeline = sp_cuda_semaphore_of(waiter);
        sp_status status = check_context(list, timeline);
        return status == SP_OK ? add_timeline(list, timeline, leaf->value) : status;
    }
    if (waiter->ops == &sp_cuda_signal_ops) {
        sp_cuda_signal *signal = sp_cuda_signal_of(waiter);
        sp_status status = check_context(list, signal->semaphore);
        return status == SP_OK ? add_signal(list, signal) : status;
    }
    return sp_waiter_require_reached(waiter, sp_point_target(leaf), "sp_cuda_stream_wait",
                                     "a CUDA stream");
}

/* ---- Enqueueing ---- */

static sp_status enqueue_event(const wait_list *list, sp_cuda_event *event)
{
    CUevent handle;
    sp_cuda_context *context = list->context;
    if (event->context != context && !sp_cuda_is_alive(event->context))
        return sp_cuda_fail_gone(event->context);
    sp_status status = sp_cuda_event_hold(event, &handle);
    if (status != SP_OK)
        return status;
    CUresult result = context->cu.stream_wait_event(list->stream, handle, 0);
    sp_cuda_event_release(event);
    if (SP_LIKELY(result == CUDA_SUCCESS))
        return SP_OK;
    return event->context == context ? sp_cuda_fail(context, result, "cuStreamWaitEvent")
                                     : sp_cuda_fail_unnoted(context, result, "cuStreamWaitEvent");
}

static sp_status enqueue_events(const wait_list *list)
{
    sp_status status = SP_OK;
    for (size_t i = 0; i < list->count && status == SP_OK; i++) {
        if (list->items[i].event)
            status = enqueue_event(list, list->items[i].event);
    }
    return status;
}

/* A binary's wait runs after the one before it, or it could take that one's signal. */
static sp_status order_binary(const wait_list *list, sp_cuda_semaphore *binary)
{
    sp_os_mutex_lock(&binary->lock);
    sp_status status = sp_cuda_order_behind(list->context, list->stream, list->stream_id,
                                            binary->waited, binary->wait_stream);
    sp_os_mutex_unlock(&binary->lock);
    return status;
}

static void set_params(sp_cu_semaphore_params *params, const wait_item *item)
{
    if (item->semaphore->counting)
        params->params.fence.value = item->value;
    if (item->semaphore->keyed) {
        sp_cu_params_set_key(params, item->value);
        sp_cu_params_wait_for_ever(params);
    }
}

/* Up to FEW of them, from item `first` on. *end: the first item that is not among them. */
static sp_status enqueue_some(const wait_list *list, size_t first, size_t *end)
{
    CUexternalSemaphore handles[FEW];
    sp_cu_semaphore_params params[FEW] = {0};
    unsigned int n = 0;
    sp_status status = SP_OK;
    size_t i = first;
    for (; i < list->count && n < FEW && status == SP_OK; i++) {
        const wait_item *item = &list->items[i];
        if (!item->semaphore)
            continue;
        if (item->signal)
            status = order_binary(list, item->semaphore);
        handles[n] = item->semaphore->handle;
        set_params(&params[n++], item);
    }
    if (status != SP_OK)
        return status;
    *end = i;
    CUresult result =
        n == 0 ? CUDA_SUCCESS : list->context->cu.wait_semaphores(handles, params, n, list->stream);
    return result == CUDA_SUCCESS
               ? SP_OK
               : sp_cuda_fail(list->context, result, "cuWaitExternalSemaphoresAsync");
}

/* The items before `end` are enqueued. */
static void note_enqueued(const wait_list *list, size_t end, const sp_error *unmarked)
{
    for (size_t i = 0; i < end; i++) {
        wait_item *item = &list->items[i];
        if (!item->semaphore)
            continue;
        sp_os_mutex_lock(&item->semaphore->lock);
        if (unmarked) {
            sp_store32(&list->context->untracked, 1);
            item->semaphore->stray_wait = true;
        } else {
            sp_cuda_use_add_locked(item->semaphore, item->use, list->stream_id, list->mark);
            item->use = NULL;
            if (item->signal)
                sp_cuda_signal_gate_locked(item->signal, list->mark, list->stream_id);
        }
        sp_os_mutex_unlock(&item->semaphore->lock);
        if (unmarked && item->signal)
            sp_waiter_fail_for_good(&item->signal->oneshot.base, unmarked);
        item->signal = NULL; /* stays claimed */
    }
}

static sp_status enqueue_semaphores(wait_list *list)
{
    sp_status status = SP_OK;
    size_t done = 0, end = 0;
    if (!list->mark)
        return SP_OK;
    list->stream_id = sp_cuda_stream_id(list->context, list->stream);
    while (done < list->count && status == SP_OK) {
        status = enqueue_some(list, done, &end);
        done = status == SP_OK ? end : done;
    }
    if (done == 0)
        return status;
    sp_error error = status == SP_OK ? (sp_error){0} : *sp_last_error();
    CUresult result = sp_cuda_mark_record(list->mark, list->stream);
    sp_status marked =
        result == CUDA_SUCCESS ? SP_OK : sp_cuda_fail(list->context, result, "cuEventRecord");
    note_enqueued(list, done, marked == SP_OK ? NULL : sp_last_error());
    return status == SP_OK ? marked : sp_fail_with(&error);
}

static sp_status take_mark(wait_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].semaphore)
            return sp_cuda_event_take(list->context, &list->mark);
    }
    return SP_OK;
}

sp_status sp_cuda_stream_wait(sp_cuda_context *context, CUstream stream, const sp_point *point)
{
    sp_waiter *waiter;
    sp_cuda_scope scope;
    SP_CHECK_ARGUMENT(context && point, "context and point are required");
    sp_status status = sp_cuda_check_usable(context);
    if (status == SP_OK)
        status = sp_point_check(point, &waiter);
    if (status != SP_OK || !waiter || sp_waiter_known_reached(waiter, sp_point_target(point)))
        return status;
    status = sp_cuda_enter_stream(context, stream, &scope);
    if (status != SP_OK)
        return status;
    wait_list list = {.context = context, .stream = stream, .capacity = FEW};
    list.items = list.few;
    status = sp_point_visit_leaves(point, add_leaf, &list);
    if (status == SP_OK)
        status = take_mark(&list);
    if (status == SP_OK)
        status = enqueue_events(&list);
    if (status == SP_OK)
        status = enqueue_semaphores(&list);
    list_fini(&list);
    sp_cuda_leave(context, scope);
    return status;
}
