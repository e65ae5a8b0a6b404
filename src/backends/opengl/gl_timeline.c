/* SPDX-License-Identifier: MIT
 *
 * Semaphores with values as waiters: timelines and D3D12 fences. GL cannot read the value. What is
 * known of it is known through *watches* (gl_watch.c): fences behind a signal of ours, or behind a
 * wait. A host wait for a value that has none inserts a wait and a fence.
 *
 * Waits in one stream run one after the other: a host wait for 7 that was begun after one for 9 is
 * noticed at 9.
 */
#include "gl_internal.h"

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
        status = sp_gl_watches_ask(timeline, value, reached);
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
    sp_gl_watch_wait(timeline, value, fence, place.stream);
    *watch = fence;
    return SP_OK;
}

static bool is_fatal(sp_status status)
{
    return status < 0 && sp_status_class(status) == SP_CLASS_FATAL;
}

static sp_status wait_with_new_watch(sp_gl_semaphore *timeline, uint64_t value,
                                     uint64_t deadline_ns)
{
    sp_gl_sync *watch = NULL;
    sp_status status = make_watch(timeline, value, deadline_ns, &watch);
    if (status != SP_OK)
        return status < 0 ? sp_fail_this_wait() : status;
    status = sp_gl_sync_block(watch, deadline_ns);
    if (is_fatal(status)) {
        status = sp_fail_this_wait();
        sp_gl_watch_drop(timeline, watch);
    }
    sp_gl_sync_unref(watch);
    return status;
}

/* TIMEOUT also if the watch had to be dropped: the next time there is a new one. Takes the
 * reference. */
static sp_status wait_with_watch(sp_gl_semaphore *timeline, sp_gl_sync *watch, uint64_t deadline_ns)
{
    sp_status status = sp_gl_sync_block(watch, deadline_ns);
    bool failed = is_fatal(status);
    if (status == SP_OK)
        sp_waiter_reached(&timeline->base, watch->watched);
    sp_error error = *sp_last_error();
    if (status == SP_OK || failed)
        sp_gl_watch_drop(timeline, watch);
    sp_gl_sync_unref(watch);
    if (failed)
        return SP_TIMEOUT;
    return status < 0 ? sp_fail_with(&error) : status;
}

/* The stream that a wait would be inserted into. */
static uint64_t stream_of_waits(const sp_gl_context *context)
{
    return context->helper_enter ? 0 : sp_gl_shared_current(context);
}

static sp_status wait_for_value(sp_gl_semaphore *timeline, uint64_t value, uint64_t deadline_ns)
{
    uint64_t stream = stream_of_waits(timeline->context);
    for (;;) {
        sp_gl_sync *watch = sp_gl_watch_find(timeline, value, stream);
        if (!watch)
            return wait_with_new_watch(timeline, value, deadline_ns);
        bool enough = watch->watched >= value;
        sp_status status = wait_with_watch(timeline, watch, deadline_ns);
        if (status != SP_OK || enough)
            return status;
    }
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
