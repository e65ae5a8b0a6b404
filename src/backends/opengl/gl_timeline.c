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
        sp_status status = sp_gl_sync_look(watch);
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
    uint64_t value = sp_load64(&timeline->base.reached) + 1;
    sp_gl_sync *watch = find_watch(timeline, value);
    while (watch) {
        value = watch->watched;
        if (sp_gl_sync_look(watch) == SP_OK)
            sp_waiter_reached(&timeline->base, value);
        sp_gl_sync_unref(watch);
        watch = find_watch(timeline, value + 1);
    }
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

static sp_status timeline_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    sp_gl_semaphore *timeline = sp_gl_semaphore_of(waiter);
    if (sp_gl_is_gone(timeline->context))
        return sp_gl_fail_gone(timeline->context);
    return ask_watches(timeline, value, WATCHES_PER_PROBE, reached);
}

/* A watch of exactly `value`, as a reference, made if there is none. */
static sp_status start_wait(sp_gl_semaphore *timeline, uint64_t value, sp_gl_sync **watch)
{
    sp_gl_sync *found = find_watch(timeline, value);
    if (found && found->watched == value) {
        *watch = found;
        return SP_OK;
    }
    sp_gl_sync_unref(found);
    sp_gl_sync *fence = sp_gl_sync_make(timeline->context);
    if (!fence)
        return SP_ERROR_OUT_OF_MEMORY;
    void *stream;
    sp_status status = sp_gl_insert_host_wait(timeline, value, fence, &stream);
    if (status != SP_OK) {
        sp_error error = *sp_last_error();
        sp_gl_sync_unref(fence);
        return sp_fail_with(&error);
    }
    sp_gl_timeline_watch(timeline, value, fence);
    *watch = fence;
    return SP_OK;
}

static sp_status timeline_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    sp_gl_semaphore *timeline = sp_gl_semaphore_of(waiter);
    sp_gl_sync *watch = NULL;
    sp_status status = sp_gl_check(timeline->context);
    if (status == SP_OK)
        status = start_wait(timeline, value, &watch);
    if (status != SP_OK)
        return status;
    status = sp_gl_sync_block(watch, deadline_ns);
    sp_gl_sync_unref(watch);
    return status;
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
