/* SPDX-License-Identifier: MIT
 *
 * Semaphores with values as waiters: timelines and D3D12 fences. GL cannot read the value. What is
 * known of it is known through *watches*: fences behind a signal of ours, or behind a wait. A host
 * wait for a value that has none inserts a wait and a fence.
 *
 * Waits in one stream run one after the other: a host wait for 7 that was inserted behind one for 9
 * is noticed at 9.
 */
#include "gl_internal.h"

/* How many watches one probe asks: the usual list has one or two. */
#define WATCHES_PER_PROBE 4

/* ---- Watches ---- */

/* The first watch of at least `value`, as a reference; NULL: none. */
static sp_gl_sync *find_watch(sp_gl_semaphore *timeline, uint64_t value)
{
    sp_os_mutex_lock(&timeline->lock);
    sp_gl_sync *at = timeline->watches;
    while (at && at->watched < value)
        at = at->next;
    if (at)
        sp_waiter_ref(&at->base);
    sp_os_mutex_unlock(&timeline->lock);
    return at;
}

/* Unlinks the watches below `value`, which nobody needs any more. */
static sp_gl_sync *take_below_locked(sp_gl_semaphore *timeline, uint64_t value)
{
    sp_gl_sync *taken = timeline->watches;
    sp_gl_sync **link = &timeline->watches;
    while (*link && (*link)->watched < value)
        link = &(*link)->next;
    sp_gl_sync *rest = *link;
    *link = NULL;
    if (taken == rest)
        taken = NULL;
    timeline->watches = rest;
    return taken;
}

static void unref_list(sp_gl_sync *list)
{
    while (list) {
        sp_gl_sync *next = list->next;
        list->next = NULL;
        sp_gl_sync_unref(list);
        list = next;
    }
}

/* One that has failed says nothing of the semaphore: another one may tell, and a wait for the value
 * inserts its own. */
static void drop_watch(sp_gl_semaphore *timeline, sp_gl_sync *watch)
{
    sp_os_mutex_lock(&timeline->lock);
    sp_gl_sync **link = &timeline->watches;
    while (*link && *link != watch)
        link = &(*link)->next;
    bool found = *link != NULL;
    if (found)
        *link = watch->next;
    sp_os_mutex_unlock(&timeline->lock);
    if (found)
        sp_gl_sync_unref(watch);
}

/* SP_OK, PENDING, or an error of the call, which is no failure of the watch: that one is dropped,
 * and PENDING. */
static sp_status look_at_watch(sp_gl_semaphore *timeline, sp_gl_sync *watch)
{
    sp_status status = sp_gl_sync_look(watch);
    if (status >= 0 || !sp_gl_sync_has_failed(watch))
        return status;
    drop_watch(timeline, watch);
    return SP_PENDING;
}

/* The first `count` watches from `value` on. Returns SP_OK with *reached, 0: none is. */
static sp_status ask_watches(sp_gl_semaphore *timeline, uint64_t value, unsigned count,
                             uint64_t *reached)
{
    *reached = 0;
    for (unsigned i = 0; i < count; i++) {
        sp_gl_sync *watch = find_watch(timeline, value);
        if (!watch)
            return SP_OK;
        uint64_t watched = watch->watched;
        sp_status status = look_at_watch(timeline, watch);
        sp_gl_sync_unref(watch);
        if (status == SP_OK)
            *reached = watched;
        if (status != SP_PENDING)
            return status;
        value = watched + 1;
    }
    return SP_OK;
}

/* Lets go of what is known reached, so that the list stays as short as the work that is pending. */
static void prune(sp_gl_semaphore *timeline)
{
    uint64_t reached = sp_load64(&timeline->base.reached);
    sp_gl_sync *oldest = find_watch(timeline, reached + 1);
    if (oldest && sp_gl_sync_look(oldest) == SP_OK) {
        reached = oldest->watched;
        sp_waiter_reached(&timeline->base, reached);
    }
    sp_gl_sync_unref(oldest);
    sp_os_mutex_lock(&timeline->lock);
    sp_gl_sync *taken = take_below_locked(timeline, reached + 1);
    sp_os_mutex_unlock(&timeline->lock);
    unref_list(taken);
}

void sp_gl_timeline_watch(sp_gl_semaphore *timeline, uint64_t value, sp_gl_sync *fence)
{
    prune(timeline);
    fence->watched = value;
    sp_waiter_ref(&fence->base);
    sp_os_mutex_lock(&timeline->lock);
    sp_gl_sync **link = &timeline->watches;
    while (*link && (*link)->watched < value)
        link = &(*link)->next;
    fence->next = *link;
    *link = fence;
    sp_os_mutex_unlock(&timeline->lock);
}

void sp_gl_timeline_settle(sp_gl_semaphore *timeline)
{
    uint64_t reached = 0;
    sp_os_mutex_lock(&timeline->lock);
    for (const sp_gl_sync *watch = timeline->watches; watch; watch = watch->next) {
        if (sp_waiter_known_reached(&watch->base, 1))
            reached = watch->watched;
    }
    sp_os_mutex_unlock(&timeline->lock);
    sp_waiter_reached(&timeline->base, reached);
}

void sp_gl_semaphore_drop_fences(sp_gl_semaphore *semaphore)
{
    bool forked = sp_gl_is_forked(semaphore->context);
    if (!forked)
        sp_os_mutex_lock(&semaphore->lock);
    sp_gl_sync *watches = semaphore->watches;
    sp_gl_sync *gate = semaphore->last_gate;
    semaphore->watches = NULL;
    semaphore->last_gate = NULL;
    if (!forked)
        sp_os_mutex_unlock(&semaphore->lock);
    unref_list(watches);
    sp_gl_sync_unref(gate);
}

/* ---- The waiter ---- */

static sp_status probe_gone(sp_gl_semaphore *timeline, uint64_t value, uint64_t *reached)
{
    sp_status status = sp_gl_answer_gone(timeline->context, &timeline->base, value);
    *reached = status == SP_OK ? value : 0;
    return status == SP_PENDING ? SP_OK : status;
}

static sp_status timeline_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    sp_gl_semaphore *timeline = sp_gl_semaphore_of(waiter);
    sp_status status = SP_OK;
    if (!sp_gl_is_gone(timeline->context))
        status = ask_watches(timeline, value, WATCHES_PER_PROBE, reached);
    return sp_gl_is_gone(timeline->context) ? probe_gone(timeline, value, reached) : status;
}

static sp_status make_watch(sp_gl_semaphore *timeline, uint64_t value, uint64_t deadline_ns,
                            sp_gl_sync **watch)
{
    sp_gl_sync *fence;
    sp_gl_place place;
    sp_status status = sp_gl_sync_make(timeline->context, &fence);
    if (status != SP_OK)
        return status;
    const sp_gl_host_wait wait = {
        .semaphore = timeline, .value = value, .fence = fence, .deadline_ns = deadline_ns};
    status = sp_gl_insert_host_wait(&wait, &place);
    if (status != SP_OK) {
        sp_error error = *sp_last_error();
        sp_gl_sync_unref(fence);
        return status < 0 ? sp_fail_with(&error) : status;
    }
    sp_gl_timeline_watch(timeline, value, fence);
    *watch = fence;
    return SP_OK;
}

static bool is_fatal(sp_status status)
{
    return status < 0 && sp_status_class(status) == SP_CLASS_FATAL;
}

/* What failed for good is this wait and not the semaphore: the error is not one that is kept. */
static sp_status fail_wait_only(void)
{
    sp_error error = *sp_last_error();
    error.status = SP_ERROR_INVALID_STATE;
    error.cause = SP_ERROR_INVALID_STATE;
    return sp_fail_with(&error);
}

static sp_status wait_with_new_watch(sp_gl_semaphore *timeline, uint64_t value,
                                     uint64_t deadline_ns)
{
    sp_gl_sync *watch = NULL;
    sp_status status = make_watch(timeline, value, deadline_ns, &watch);
    if (status != SP_OK)
        return is_fatal(status) ? fail_wait_only() : status;
    status = sp_gl_sync_block(watch, deadline_ns);
    if (is_fatal(status)) {
        status = fail_wait_only();
        drop_watch(timeline, watch);
    }
    sp_gl_sync_unref(watch);
    return status;
}

/* TIMEOUT also if the watch had to be dropped: the next time there is a new one. */
static sp_status wait_with_watch(sp_gl_semaphore *timeline, sp_gl_sync *watch, uint64_t deadline_ns)
{
    sp_status status = sp_gl_sync_block(watch, deadline_ns);
    if (!is_fatal(status))
        return status;
    drop_watch(timeline, watch);
    return SP_TIMEOUT;
}

/* A watch of exactly `value` is needed, since one of a higher value is noticed later. */
static sp_status wait_for_value(sp_gl_semaphore *timeline, uint64_t value, uint64_t deadline_ns)
{
    sp_gl_sync *found = find_watch(timeline, value);
    sp_status status = found && found->watched == value
                           ? wait_with_watch(timeline, found, deadline_ns)
                           : wait_with_new_watch(timeline, value, deadline_ns);
    sp_error error = *sp_last_error();
    sp_gl_sync_unref(found);
    return status < 0 ? sp_fail_with(&error) : status;
}

static sp_status timeline_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    sp_gl_semaphore *timeline = sp_gl_semaphore_of(waiter);
    const sp_gl_context *context = timeline->context;
    sp_status status = SP_ERROR_INVALID_STATE;
    if (!sp_gl_is_gone(context))
        status = wait_for_value(timeline, value, deadline_ns);
    bool gone = status < 0 && sp_gl_is_gone(context);
    return gone ? sp_gl_answer_gone(context, waiter, value) : status;
}

const sp_waiter_ops sp_gl_timeline_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_COUNTING | SP_FEATURE_BLOCK | SP_FEATURE_TO_BEGIN,
    .backend = SP_BACKEND_OPENGL,
    .name = "opengl timeline",
    .probe = timeline_probe,
    .block = timeline_block,
    .destroy = sp_gl_semaphore_release,
};

/* ---- Points ---- */

sp_point sp_gl_timeline_make_point(sp_gl_semaphore *timeline, uint64_t value)
{
    return (sp_point){
        .kind = SP_KIND_OPENGL,
        .flags = SP_POINT_HAS_VALUE,
        .value = value,
        .raw.opengl = {.semaphore = timeline->name, .context = timeline->context->native},
        .waiter = sp_waiter_ref(&timeline->base),
    };
}

sp_status sp_gl_timeline_point(sp_gl_semaphore *semaphore, uint64_t value, sp_point *out)
{
    SP_CHECK_ARGUMENT(semaphore && out, "semaphore and out are required");
    SP_CHECK_ARGUMENT(sp_gl_has_values(semaphore), "a binary has no values: sp_gl_binary_point()");
    SP_CHECK_ARGUMENT(value != UINT64_MAX, "UINT64_MAX is not a timeline value");
    if (sp_gl_is_forked(semaphore->context))
        return sp_fail_forked();
    *out = sp_gl_timeline_make_point(semaphore, value);
    return SP_OK;
}
