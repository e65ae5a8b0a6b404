/* SPDX-License-Identifier: MIT
 *
 * The software timeline. Every other primitive is tested against what this one does.
 */
#include "core.h"

#include <stdlib.h>

struct sp_host_timeline {
    sp_waiter base;
    sp_watch watch;
    /* Written under the lock of `watch`; the value is read without. */
    uint64_t value;
    bool failed;
};

static sp_host_timeline *host_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_host_timeline, base);
}

static sp_status host_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    *reached = sp_load64(&host_of(waiter)->value);
    return SP_OK;
}

static bool host_settled_locked(sp_waiter *waiter, uint64_t value)
{
    return host_of(waiter)->value >= value || value >= sp_load64(&waiter->failed_from);
}

static sp_status host_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    return sp_watch_block(&host_of(waiter)->watch, waiter, value, deadline_ns);
}

static sp_status host_arm(sp_waiter *waiter, uint64_t value, sp_waker *waker)
{
    sp_watch_arm(&host_of(waiter)->watch, waiter, value, waker);
    return SP_OK;
}

static void host_disarm(sp_waiter *waiter, sp_waker *waker)
{
    sp_watch_disarm(&host_of(waiter)->watch, waker);
}

static void host_destroy(sp_waiter *waiter)
{
    sp_host_timeline *timeline = host_of(waiter);
    if (!sp_waiter_is_forked(waiter))
        sp_watch_fini(&timeline->watch);
    free(timeline);
}

static const sp_waiter_ops host_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_COUNTING | SP_FEATURE_BLOCK | SP_FEATURE_ARM,
    .backend = SP_BACKEND_CPU,
    .name = "host timeline",
    .probe = host_probe,
    .block = host_block,
    .arm = host_arm,
    .disarm = host_disarm,
    .destroy = host_destroy,
};

sp_status sp_host_timeline_create(uint64_t initial_value, sp_host_timeline **out)
{
    SP_CHECK_ARGUMENT(out, "out is required");
    SP_CHECK_ARGUMENT(initial_value != UINT64_MAX, "UINT64_MAX is not a timeline value");
    sp_host_timeline *timeline = calloc(1, sizeof(*timeline));
    if (!timeline || !sp_watch_init(&timeline->watch, host_settled_locked)) {
        free(timeline);
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_host_timeline_create: out of memory");
    }
    sp_waiter_setup(&timeline->base, &host_ops);
    timeline->value = initial_value;
    sp_waiter_reached(&timeline->base, initial_value);
    *out = timeline;
    return SP_OK;
}

/* False if it had failed before: the first failure is kept. */
static bool fail_and_wake(sp_host_timeline *timeline, const sp_error *error)
{
    sp_os_mutex_lock(&timeline->watch.mutex);
    bool first = !timeline->failed;
    if (first) {
        sp_waiter_reached(&timeline->base, timeline->value);
        timeline->failed = true;
        sp_waiter_fail(&timeline->base, 0, error);
        sp_watch_wake_locked(&timeline->watch, UINT64_MAX);
    }
    sp_os_mutex_unlock(&timeline->watch.mutex);
    return first;
}

void sp_host_timeline_destroy(sp_host_timeline *timeline)
{
    if (!timeline)
        return;
    if (!sp_waiter_is_forked(&timeline->base)) {
        sp_error error;
        sp_error_format(&error, SP_ERROR_ABANDONED,
                        "the host timeline was destroyed at value %llu: nobody can signal it",
                        (unsigned long long)sp_load64(&timeline->value));
        fail_and_wake(timeline, &error);
    }
    sp_waiter_unref(&timeline->base);
}

sp_status sp_host_timeline_point(sp_host_timeline *timeline, uint64_t value, sp_point *out)
{
    SP_CHECK_ARGUMENT(timeline && out, "timeline and out are required");
    SP_CHECK_ARGUMENT(value != UINT64_MAX, "UINT64_MAX is not a timeline value");
    if (sp_waiter_is_forked(&timeline->base))
        return sp_fail_forked();
    *out = (sp_point){
        .kind = SP_KIND_HOST,
        .flags = SP_POINT_HAS_VALUE,
        .value = value,
        .waiter = sp_waiter_ref(&timeline->base),
    };
    return SP_OK;
}

static sp_status signal_locked(sp_host_timeline *timeline, uint64_t value)
{
    if (timeline->failed)
        return sp_fail(SP_ERROR_INVALID_STATE, "the host timeline has failed: make a new one");
    if (value <= timeline->value)
        return sp_fail(SP_ERROR_INVALID_ARGUMENT,
                       "a timeline only grows: value %llu is not above the current %llu",
                       (unsigned long long)value, (unsigned long long)timeline->value);
    sp_store64(&timeline->value, value);
    sp_watch_wake_locked(&timeline->watch, value);
    return SP_OK;
}

sp_status sp_host_timeline_signal(sp_host_timeline *timeline, uint64_t value)
{
    SP_CHECK_ARGUMENT(timeline, "timeline is required");
    SP_CHECK_ARGUMENT(value != UINT64_MAX, "UINT64_MAX is not a timeline value");
    if (sp_waiter_is_forked(&timeline->base))
        return sp_fail_forked();
    sp_os_mutex_lock(&timeline->watch.mutex);
    sp_status status = signal_locked(timeline, value);
    sp_os_mutex_unlock(&timeline->watch.mutex);
    return status;
}

sp_status sp_host_timeline_fail(sp_host_timeline *timeline, sp_status cause, const char *message)
{
    SP_CHECK_ARGUMENT(timeline, "timeline is required");
    SP_CHECK_ARGUMENT(cause < 0, "the cause of a failure is a negative status");
    if (sp_waiter_is_forked(&timeline->base))
        return sp_fail_forked();
    sp_error error;
    sp_error_format(&error, SP_ERROR_FAILED, "%s", message ? message : "the producer failed");
    error.cause = cause;
    if (!fail_and_wake(timeline, &error))
        return sp_fail(SP_ERROR_INVALID_STATE, "the host timeline has failed before");
    return SP_OK;
}

uint64_t sp_host_timeline_value(const sp_host_timeline *timeline)
{
    return timeline ? sp_load64(&timeline->value) : 0;
}
