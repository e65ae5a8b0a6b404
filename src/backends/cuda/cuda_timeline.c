/* SPDX-License-Identifier: MIT
 *
 * Semaphores with values. CUDA cannot tell one's value. So either the primitive that it was
 * exported from is asked, its origin; or a wait on the device shows that a value is reached.
 */
#include "cuda_internal.h"

#include <inttypes.h>

/* ---- With an origin ---- */

static sp_point origin_at(const sp_waiter *waiter, uint64_t value)
{
    sp_point at = SP_CONTAINER_OF(waiter, const sp_cuda_semaphore, base)->origin; /* borrowed */
    at.value = value;
    return at;
}

/* If the context broke, its part of the work will never come, and the origin cannot know. CUDA is
 * asked only while a signal of ours is what the value waits for. */
static sp_status check_not_lost(sp_waiter *waiter, uint64_t value)
{
    bool exact;
    sp_cuda_semaphore *timeline = sp_cuda_semaphore_of(waiter);
    if (sp_cuda_gone(timeline->context) & SP_CUDA_LOST)
        return sp_cuda_fail_gone(timeline->context);
    sp_os_mutex_lock(&timeline->lock);
    sp_status status = sp_cuda_signals_poll_locked(timeline, value, &exact);
    sp_os_mutex_unlock(&timeline->lock);
    return status < 0 ? status : SP_OK;
}

sp_status sp_cuda_followed_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    sp_point at = origin_at(waiter, value);
    sp_status status = sp_poll(&at);
    *reached = status == SP_OK ? sp_load64(&at.waiter->reached) : 0;
    return status == SP_PENDING ? check_not_lost(waiter, value) : status;
}

sp_status sp_cuda_followed_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    sp_point at = origin_at(waiter, value);
    uint64_t now = sp_now_ns();
    const sp_wait_options options = {
        .size = sizeof(options),
        .timeout_ns = deadline_ns > now ? deadline_ns - now : 0,
    };
    sp_status status = sp_wait_with(&at, &options);
    return status == SP_NOT_SUBMITTED ? SP_TIMEOUT : status;
}

sp_status sp_cuda_followed_arm(sp_waiter *waiter, uint64_t value, sp_waker *waker)
{
    sp_waiter *origin = sp_cuda_semaphore_of(waiter)->origin.waiter;
    return origin->ops->arm(origin, value, waker);
}

void sp_cuda_followed_disarm(sp_waiter *waiter, sp_waker *waker)
{
    sp_waiter *origin = sp_cuda_semaphore_of(waiter)->origin.waiter;
    origin->ops->disarm(origin, waker);
}

/* ---- Without ---- */

/* PENDING, SP_OK or an error. */
static sp_status look_locked(sp_cuda_semaphore *timeline, uint64_t value, bool *waiting)
{
    bool exact;
    sp_status status = sp_cuda_lanes_poll_locked(timeline, value, waiting);
    if (status != SP_PENDING)
        return status;
    status = sp_cuda_signals_poll_locked(timeline, value, &exact);
    if (status < 0)
        return status;
    *waiting |= exact; /* as good as a wait */
    return sp_waiter_known_reached(&timeline->base, value) ? SP_OK : SP_PENDING;
}

sp_status sp_cuda_timeline_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    sp_cuda_semaphore *timeline = sp_cuda_semaphore_of(waiter);
    bool waiting;
    *reached = 0;
    if (sp_cuda_gone(timeline->context))
        return sp_cuda_fail_gone(timeline->context);
    sp_os_mutex_lock(&timeline->lock);
    sp_status status = look_locked(timeline, value, &waiting);
    sp_os_mutex_unlock(&timeline->lock);
    *reached = sp_load64(&waiter->reached);
    return status == SP_PENDING ? SP_OK : status;
}

static sp_status look_or_start(sp_cuda_semaphore *timeline, uint64_t value)
{
    sp_cuda_event *mark;
    bool waiting, enqueued;
    sp_os_mutex_lock(&timeline->lock);
    sp_status status = look_locked(timeline, value, &waiting);
    if (status == SP_PENDING && !waiting) {
        status = sp_cuda_lane_start_locked(timeline, value, &mark, &enqueued);
        if (status < 0 && enqueued)
            status = sp_cuda_fail_wait_only(timeline->context);
        status = status == SP_OK ? SP_PENDING : status;
    }
    sp_os_mutex_unlock(&timeline->lock);
    return status;
}

sp_status sp_cuda_timeline_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    sp_backoff backoff = {0};
    for (;;) {
        sp_status status = look_or_start(sp_cuda_semaphore_of(waiter), value);
        if (status != SP_PENDING)
            return status;
        if (sp_now_ns() >= deadline_ns)
            return SP_TIMEOUT;
        sp_backoff_sleep(&backoff, deadline_ns);
    }
}

/* ---- Points ---- */

static sp_status check_counts(const sp_cuda_semaphore *semaphore)
{
    if (!semaphore->counting) {
        return sp_fail(SP_ERROR_INVALID_ARGUMENT,
                       "a binary semaphore or keyed mutex has no values: sp_cuda_binary_point()");
    }
    return sp_cuda_is_forked(semaphore->context) ? sp_fail_forked() : SP_OK;
}

static void set_point(sp_cuda_semaphore *semaphore, uint32_t flags, uint64_t value, sp_point *out)
{
    sp_ref_inc(&semaphore->base.refs);
    out->kind = SP_KIND_CUDA;
    out->flags = flags;
    out->value = value;
    out->raw.cuda.semaphore = semaphore->handle;
    out->raw.cuda.context = semaphore->context->handle;
    out->raw.words[2] = 0;
    out->waiter = &semaphore->base;
}

sp_status sp_cuda_timeline_point(sp_cuda_semaphore *semaphore, uint64_t value, sp_point *out)
{
    SP_CHECK_ARGUMENT(semaphore && out, "semaphore and out are required");
    SP_CHECK_ARGUMENT(value != UINT64_MAX, "UINT64_MAX is not a timeline value");
    sp_status status = check_counts(semaphore);
    if (status == SP_OK)
        set_point(semaphore, SP_POINT_HAS_VALUE, value, out);
    return status;
}

sp_status sp_cuda_semaphore_point(sp_cuda_semaphore *semaphore, sp_point *out)
{
    SP_CHECK_ARGUMENT(semaphore && out, "semaphore and out are required");
    sp_status status = check_counts(semaphore);
    if (status == SP_OK)
        set_point(semaphore, 0, UINT64_MAX, out);
    return status;
}

/* ---- The guard over values ---- */

/* Asks the origin for its value. What it says failed is not reached, though a producer opened the
 * gate behind its failure. */
static sp_status read_origin(sp_cuda_semaphore *timeline, uint64_t *counter)
{
    sp_waiter *origin = timeline->origin.waiter;
    uint32_t number = sp_error_number();
    *counter = 0;
    sp_status status = origin->ops->probe(origin, UINT64_MAX - 1, counter);
    if (status < 0)
        return sp_fail_as_told(status, origin->ops, number);
    if (*counter == UINT64_MAX) /* its device was removed */
        return sp_waiter_note_probe(origin, UINT64_MAX - 1, SP_OK, UINT64_MAX);
    uint64_t failed_from = sp_load64(&origin->failed_from);
    sp_waiter_reached(&timeline->base, *counter < failed_from ? *counter : failed_from - 1);
    return SP_OK;
}

void sp_cuda_timeline_look(sp_cuda_semaphore *timeline)
{
    bool waiting;
    uint64_t counter;
    if (timeline->origin.waiter) {
        read_origin(timeline, &counter);
        return;
    }
    sp_os_mutex_lock(&timeline->lock);
    sp_cuda_lanes_poll_locked(timeline, 0, &waiting);
    sp_cuda_signals_pending_locked(timeline);
    sp_os_mutex_unlock(&timeline->lock);
}

/* Best effort: others may signal it, too. */
static sp_status read_floor(sp_cuda_semaphore *timeline, uint64_t *floor)
{
    uint64_t counter = sp_load64(&timeline->base.reached);
    sp_status status = timeline->origin.waiter ? read_origin(timeline, &counter) : SP_OK;
    *floor = counter > timeline->minted ? counter : timeline->minted;
    return status;
}

sp_status sp_cuda_mint_locked(sp_cuda_semaphore *timeline, uint64_t wanted, uint64_t *value)
{
    uint64_t floor;
    sp_status status = read_floor(timeline, &floor);
    if (status != SP_OK)
        return status;
    uint64_t next = wanted ? wanted : floor + 1;
    if (next == UINT64_MAX)
        return sp_fail(SP_ERROR_INVALID_STATE, "the timeline has no values left");
    if (next <= floor) {
        return sp_fail(SP_ERROR_INVALID_ARGUMENT,
                       "value %" PRIu64 " is not above %" PRIu64
                       ", which the timeline has reached or will reach by a pending signal",
                       next, floor);
    }
    *value = next;
    return SP_OK;
}
