/* SPDX-License-Identifier: MIT
 *
 * sp_gl_context_wait(): finds what a point waits for and claims what a wait uses up, before it
 * inserts anything.
 */
#include "gl_internal.h"

/* ---- The list of what to wait for ---- */

#define FEW_WAITS 16 /* so many need no allocator */

/* A fence sync, or a semaphore. All borrowed from the point. */
typedef struct wait_item {
    sp_gl_sync *sync;
    sp_gl_semaphore *semaphore;
    uint64_t value;
    sp_gl_signal *signal; /* binary: claimed for this wait                           */
    sp_gl_sync *gate;     /* and a reference to the fence that is to stand behind it */
} wait_item;

typedef struct wait_list {
    sp_gl_context *context;
    const sp_gl_barriers *barriers;
    wait_item *items;
    size_t count;
    size_t capacity;
    wait_item few[FEW_WAITS];
} wait_list;

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
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_gl_context_wait: out of memory for %zu waits",
                       list->count + 1);
    }
    list->items[list->count++] = item;
    return SP_OK;
}

static bool has_signal(const wait_list *list, const sp_gl_signal *signal)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i].signal == signal)
            return true;
    }
    return false;
}

static void unclaim_from(const wait_list *list, size_t first)
{
    for (size_t i = first; i < list->count; i++) {
        if (list->items[i].signal)
            sp_oneshot_unclaim(&list->items[i].signal->oneshot);
    }
}

static void free_list(wait_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        sp_gl_sync_unref(list->items[i].gate);
    sp_array_free(list->items, list->few);
}

/* ---- Leaves ---- */

static sp_status check_group(const wait_list *list, const sp_gl_context *context)
{
    if (context->group == list->context->group)
        return SP_OK;
    return sp_fail(SP_ERROR_WRONG_CONTEXT, "sp_gl_context_wait: the point is of a context that "
                                           "shares no objects with this one");
}

static sp_status check_egl_sync(const wait_list *list, const sp_gl_sync *sync)
{
    if (sync->display != list->context->display) {
        return sp_fail(SP_ERROR_DEVICE_MISMATCH,
                       "sp_gl_context_wait: the EGLSync is of another display");
    }
    if (!list->context->caps.egl_wait_sync) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_gl_context_wait: the display does not have EGL_KHR_wait_sync");
    }
    return SP_OK;
}

static sp_status add_sync(wait_list *list, sp_gl_sync *sync)
{
    sp_status status = sp_gl_check(sync->context);
    if (status == SP_OK)
        status = sync->display ? check_egl_sync(list, sync) : check_group(list, sync->context);
    if (status == SP_OK)
        status = sp_gl_sync_look(sync);
    return status == SP_PENDING ? append(list, (wait_item){.sync = sync}) : status;
}

static sp_status add_timeline(wait_list *list, sp_gl_semaphore *timeline, uint64_t value)
{
    sp_status status = sp_gl_check(timeline->context);
    if (status == SP_OK)
        status = check_group(list, timeline->context);
    if (status != SP_OK)
        return status;
    return append(list, (wait_item){.semaphore = timeline, .value = value});
}

/* One fence behind all the waits tells when they have run: one for each context that semaphores are
 * of, since it is that one's destruction, or loss, that the semaphore does not outlive. */
static sp_status get_gate(const wait_list *list, sp_gl_context *context, sp_gl_sync **gate)
{
    for (size_t i = list->count; i > 0; i--) {
        sp_gl_sync *other = list->items[i - 1].gate;
        if (!other || other->context != context)
            continue;
        sp_waiter_ref(&other->base);
        *gate = other;
        return SP_OK;
    }
    sp_status status = sp_gl_sync_make(context, gate);
    return status == SP_PENDING ? sp_gl_fail_gone(context) : status;
}

static void give_back(sp_gl_sync *gate)
{
    sp_error error = *sp_last_error();
    sp_gl_sync_unref(gate);
    sp_fail_with(&error);
}

static sp_status add_signal(wait_list *list, sp_gl_signal *signal)
{
    sp_status status = sp_gl_check(signal->semaphore->context);
    if (status == SP_OK)
        status = check_group(list, signal->semaphore->context);
    if (status != SP_OK || has_signal(list, signal))
        return status;
    status = sp_waiter_probe(&signal->oneshot.base, 1);
    if (status != SP_PENDING)
        return status;
    status = sp_oneshot_claim(&signal->oneshot);
    if (status != SP_OK)
        return status;
    wait_item item = {.semaphore = signal->semaphore, .signal = signal};
    status = get_gate(list, signal->semaphore->context, &item.gate);
    if (status == SP_OK)
        status = append(list, item);
    if (status != SP_OK) {
        sp_oneshot_unclaim(&signal->oneshot);
        give_back(item.gate);
    }
    return status;
}

static sp_status add_leaf(void *user, const sp_point *leaf)
{
    sp_waiter *waiter = leaf->waiter;
    if (waiter->ops == &sp_gl_timeline_ops)
        return add_timeline(user, sp_gl_semaphore_of(waiter), leaf->value);
    if (sp_waiter_known_reached(waiter, sp_point_target(leaf)))
        return SP_OK;
    if (waiter->ops == &sp_gl_sync_ops)
        return add_sync(user, sp_gl_sync_of(waiter));
    if (waiter->ops == &sp_gl_signal_ops)
        return add_signal(user, sp_gl_signal_of(waiter));
    return sp_waiter_require_reached(waiter, sp_point_target(leaf), "sp_gl_context_wait",
                                     "a GL context");
}

/* Where it is in the list; list->count: there is none. */
static size_t last_semaphore(const wait_list *list)
{
    for (size_t i = list->count; i > 0; i--) {
        if (list->items[i - 1].semaphore)
            return i - 1;
    }
    return list->count;
}

static sp_status fail_no_semaphore(void)
{
    return sp_fail(SP_ERROR_NOT_SUPPORTED,
                   "sp_gl_context_wait: barriers go with the wait for a semaphore, and there is "
                   "none to wait for in this point; a binary's signal serves one wait");
}

/* With barriers, semaphores that are known reached are waited for, too: they hand memory over. */
static sp_status collect(wait_list *list, const sp_point *point)
{
    if (!list->barriers)
        return sp_point_visit_leaves(point, add_leaf, list);
    sp_status status = sp_point_visit_all_leaves(point, add_leaf, list);
    if (status != SP_OK || last_semaphore(list) < list->count)
        return status;
    return fail_no_semaphore();
}

/* ---- Inserting ---- */

static sp_status insert_sync_wait(sp_gl_scope *scope, sp_gl_sync *sync)
{
    const sp_gl_driver *gl = &scope->context->gl;
    sp_status status = SP_OK;
    if (!sp_gl_begin_call(sync->context))
        return sp_gl_fail_gone(sync->context);
    void *native = sp_gl_sync_native(sync);
    if (!sync->display)
        status =
            SP_GL_CALL(scope, "glWaitSync", gl->wait_sync((GLsync)native, 0, GL_TIMEOUT_IGNORED));
    else if (!gl->egl_wait_sync(sync->display, native, 0))
        status = sp_gl_fail_egl(scope->context, "eglWaitSync");
    sp_gl_end_call(sync->context);
    return status;
}

static sp_status insert_semaphore_wait(const sp_gl_operation *wait)
{
    sp_gl_context *context = wait->semaphore->context;
    if (!sp_gl_begin_call(context))
        return sp_gl_fail_gone(context);
    sp_status status = sp_gl_insert_wait(wait);
    sp_gl_end_call(context);
    return status;
}

/* Stops at the first that fails: *done are in the stream then. */
static sp_status insert_items(const wait_list *list, sp_gl_scope *scope, size_t *done)
{
    sp_status status = SP_OK;
    size_t last = last_semaphore(list);
    for (*done = 0; *done < list->count && status == SP_OK; *done += status == SP_OK) {
        const wait_item *item = &list->items[*done];
        const sp_gl_operation wait = {
            .scope = scope,
            .semaphore = item->semaphore,
            .value = item->value,
            .barriers = *done == last ? list->barriers : NULL,
        };
        status = item->sync ? insert_sync_wait(scope, item->sync) : insert_semaphore_wait(&wait);
    }
    return status;
}

static bool has_gate(const wait_list *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (list->items[i].gate)
            return true;
    }
    return false;
}

/* A gate serves several items; the first that fails tells why for all. */
static sp_status insert_gates(const wait_list *list, sp_gl_scope *scope, size_t count)
{
    sp_error first = {.status = SP_OK};
    for (size_t i = 0; i < count; i++) {
        sp_gl_sync *gate = list->items[i].gate;
        if (!gate || sp_gl_sync_native(gate))
            continue;
        sp_status status = sp_gl_sync_insert(gate, scope);
        if (status == SP_PENDING)
            status = sp_gl_fail_gone(gate->context);
        if (status != SP_OK && first.status == SP_OK)
            first = *sp_last_error();
    }
    return first.status == SP_OK ? SP_OK : sp_fail_with(&first);
}

/* Nobody sees a gate before all are flushed: a driver that holds one flush up may give up what
 * comes before any of them. */
static sp_status set_gates(const wait_list *list, sp_gl_scope *scope, size_t count,
                           uint64_t start_ns)
{
    if (!has_gate(list, count))
        return SP_OK;
    sp_status inserted = insert_gates(list, scope, count);
    sp_status given_up = sp_gl_check_not_given_up(start_ns);
    sp_status status = given_up == SP_OK ? inserted : given_up;
    sp_error error = *sp_last_error();
    for (size_t i = 0; i < count; i++) {
        const wait_item *item = &list->items[i];
        bool has_fence = item->gate && sp_gl_sync_native(item->gate);
        if (!item->gate)
            continue;
        if (status == SP_OK || (given_up == SP_OK && has_fence))
            sp_gl_signal_set_gate(item->signal, item->gate, scope->stream);
        else
            sp_gl_signal_fail(item->signal, &error);
    }
    return status == SP_OK ? SP_OK : sp_fail_with(&error);
}

static sp_status insert_list(const wait_list *list)
{
    size_t done;
    uint64_t start_ns = sp_now_ns();
    sp_gl_scope scope = sp_gl_scope_here(list->context);
    sp_status status = insert_items(list, &scope, &done);
    sp_error error = *sp_last_error();
    unclaim_from(list, done);
    sp_status gated = set_gates(list, &scope, done, start_ns);
    if (status == SP_OK && gated != SP_OK) {
        error = *sp_last_error();
        status = gated;
    }
    sp_gl_scope_leave(&scope);
    return status == SP_OK ? SP_OK : sp_fail_with(&error);
}

static sp_status wait_for_leaves(wait_list *list, const sp_point *point)
{
    sp_status status = collect(list, point);
    if (status == SP_OK)
        return list->count ? insert_list(list) : SP_OK;
    unclaim_from(list, 0);
    return status;
}

sp_status sp_gl_context_wait(sp_gl_context *context, const sp_point *point,
                             const sp_gl_barriers *barriers)
{
    sp_waiter *waiter;
    SP_CHECK_ARGUMENT(context && point, "context and point are required");
    if (barriers)
        SP_CHECK_SIZE(barriers);
    const char *why = sp_gl_check_barriers(barriers);
    SP_CHECK_ARGUMENT(!why, why);
    if (barriers && barriers->buffer_count + barriers->texture_count == 0)
        barriers = NULL;
    sp_status status = sp_gl_check_current(context, __func__);
    if (status == SP_OK)
        status = sp_point_check(point, &waiter);
    if (status != SP_OK)
        return status;
    if (!waiter)
        return barriers ? fail_no_semaphore() : SP_OK;
    wait_list list = {.context = context, .barriers = barriers, .capacity = FEW_WAITS};
    list.items = list.few;
    status = wait_for_leaves(&list, point);
    sp_error error = *sp_last_error();
    free_list(&list);
    return status < 0 ? sp_fail_with(&error) : status;
}
