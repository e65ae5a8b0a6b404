/* SPDX-License-Identifier: MIT
 *
 * Host waits on semaphores that cannot be asked: a device-side wait on a stream of the library's,
 * with a mark behind it, a lane. Waits on one stream would queue behind each other, so each has one
 * of its own, and where there are no more it begins when one is idle. A wait whose time ran out stays:
 * the next one for the same value goes on with it, and so does one for a larger value until that one
 * is reached.
 */
#include "cuda_internal.h"

/* ---- Streams ---- */

static bool is_idle(const sp_cuda_lane_stream *at)
{
    if (at->entered || at->stuck)
        return false;
    return !at->last || sp_cuda_event_probe(at->last) == SP_OK;
}

/* One that is idle, or else not made yet. NULL: there is none right now. */
static sp_cuda_lane_stream *choose_locked(sp_cuda_context *context)
{
    sp_cuda_lane_stream *unmade = NULL;
    for (size_t i = 0; i < SP_CUDA_MOST_LANE_STREAMS; i++) {
        sp_cuda_lane_stream *at = &context->lane_streams[i];
        if (at->stream && is_idle(at))
            return at;
        if (!at->stream && !at->entered && !unmade)
            unmade = at;
    }
    return unmade;
}

static sp_status make_stream(sp_cuda_context *context, sp_cuda_lane_stream *at)
{
    CUstream made = NULL;
    int mode = sp_cuda_relax(context);
    CUresult result = context->cu.stream_create(&made, CU_STREAM_NON_BLOCKING);
    sp_cuda_unrelax(context, mode);
    if (result != CUDA_SUCCESS)
        return sp_cuda_fail(context, result, "cuStreamCreate");
    sp_os_mutex_lock(&context->lane_streams_lock);
    at->stream = made;
    sp_os_mutex_unlock(&context->lane_streams_lock);
    return SP_OK;
}

/* `mark`: of the wait that was enqueued, NULL: it has none; or nothing was enqueued. */
static void leave_stream(sp_cuda_context *context, sp_cuda_lane_stream *at, bool enqueued,
                         sp_cuda_event *mark)
{
    sp_os_mutex_lock(&context->lane_streams_lock);
    at->entered--;
    at->stuck |= enqueued && !mark;
    if (mark)
        sp_cuda_mark_set(&at->last, mark);
    sp_os_mutex_unlock(&context->lane_streams_lock);
}

/* TIMEOUT: none is idle, look again. */
static sp_status enter_stream(sp_cuda_context *context, sp_cuda_lane_stream **out)
{
    sp_os_mutex_lock(&context->lane_streams_lock);
    sp_cuda_lane_stream *at = choose_locked(context);
    if (at)
        at->entered++;
    sp_os_mutex_unlock(&context->lane_streams_lock);
    if (!at)
        return SP_TIMEOUT;
    sp_status status = at->stream ? SP_OK : make_stream(context, at);
    if (status == SP_OK)
        *out = at;
    else
        leave_stream(context, at, false, NULL);
    return status;
}

/* ---- Lanes ---- */

static void put_back(sp_cuda_context *context, sp_cuda_lane *lane)
{
    sp_cuda_mark_set(&lane->mark, NULL);
    if (!sp_cuda_is_forked(context))
        sp_pool_put(&context->lanes, lane);
}

static sp_status get(sp_cuda_context *context, sp_cuda_lane **out)
{
    sp_cuda_lane *lane = sp_pool_get(&context->lanes);
    if (!lane)
        return SP_ERROR_OUT_OF_MEMORY;
    lane->mark = NULL;
    sp_status status = sp_cuda_event_take(context, &lane->mark);
    if (status == SP_OK)
        *out = lane;
    else
        put_back(context, lane);
    return status;
}

/* ---- Starting ---- */

sp_status sp_cuda_enqueue_wait(const sp_cuda_semaphore *semaphore, uint64_t value, CUstream stream)
{
    sp_cuda_context *context = semaphore->context;
    sp_cu_semaphore_params params = {0};
    if (semaphore->counting)
        params.params.fence.value = value;
    if (semaphore->keyed) {
        sp_cu_params_set_key(&params, value);
        sp_cu_params_wait_for_ever(&params);
    }
    CUresult result = context->cu.wait_semaphores(&semaphore->handle, &params, 1, stream);
    return result == CUDA_SUCCESS ? SP_OK
                                  : sp_cuda_fail(context, result, "cuWaitExternalSemaphoresAsync");
}

/* The host has looked; the mutex is the next owner's. */
static sp_status give_key_back(const sp_cuda_semaphore *semaphore, uint64_t key, CUstream stream)
{
    sp_cuda_context *context = semaphore->context;
    sp_cu_semaphore_params params = {0};
    if (!semaphore->keyed)
        return SP_OK;
    sp_cu_params_set_key(&params, key);
    CUresult result = context->cu.signal_semaphores(&semaphore->handle, &params, 1, stream);
    return result == CUDA_SUCCESS
               ? SP_OK
               : sp_cuda_fail(context, result, "cuSignalExternalSemaphoresAsync");
}

/* Once the wait is enqueued the lane is in use. If nothing can be recorded behind it, it stays so. */
static sp_status run(sp_cuda_semaphore *semaphore, sp_cuda_lane *lane, CUstream stream,
                     bool *enqueued)
{
    sp_status status = sp_cuda_order_behind(semaphore->context, stream, 0, semaphore->waited,
                                            semaphore->wait_stream);
    if (status == SP_OK)
        status = sp_cuda_enqueue_wait(semaphore, lane->value, stream);
    if (status != SP_OK)
        return status;
    *enqueued = true;
    lane->next = semaphore->lanes;
    semaphore->lanes = lane;
    status = give_key_back(semaphore, lane->value, stream);
    if (status == SP_OK)
        status = sp_cuda_event_record(lane->mark, stream);
    if (status != SP_OK) {
        sp_store32(&semaphore->context->untracked, 1);
        semaphore->stray_wait = true;
        sp_cuda_mark_set(&lane->mark, NULL);
    }
    return status;
}

static sp_status run_on_a_stream(sp_cuda_semaphore *semaphore, sp_cuda_lane *lane, bool *enqueued)
{
    sp_cuda_context *context = semaphore->context;
    sp_cuda_lane_stream *at = NULL;
    sp_status status = enter_stream(context, &at);
    if (status != SP_OK)
        return status;
    status = run(semaphore, lane, at->stream, enqueued);
    leave_stream(context, at, *enqueued, *enqueued ? lane->mark : NULL);
    return status;
}

sp_status sp_cuda_lane_start_locked(sp_cuda_semaphore *semaphore, uint64_t value,
                                    sp_cuda_event **mark, bool *enqueued)
{
    sp_cuda_context *context = semaphore->context;
    sp_cuda_lane *lane = NULL;
    sp_cuda_scope scope;
    *enqueued = false;
    sp_status status = sp_cuda_check_usable(context);
    if (status == SP_OK && sp_load32(&context->ending))
        status = SP_TIMEOUT;
    if (status == SP_OK)
        status = sp_cuda_enter(context, &scope);
    if (status != SP_OK)
        return status;
    status = get(context, &lane);
    if (status == SP_OK) {
        lane->value = value;
        status = run_on_a_stream(semaphore, lane, enqueued);
        if (status == SP_OK)
            *mark = lane->mark;
        if (!*enqueued)
            put_back(context, lane);
    }
    sp_cuda_leave(context, scope);
    return status < 0 && !*enqueued ? sp_cuda_fail_wait_only(context) : status;
}

/* ---- Looking ---- */

static sp_status probe(const sp_cuda_lane *lane)
{
    return lane->mark ? sp_cuda_event_probe(lane->mark) : SP_PENDING;
}

sp_status sp_cuda_lanes_poll_locked(sp_cuda_semaphore *semaphore, uint64_t value, bool *waiting)
{
    sp_cuda_lane **link = &semaphore->lanes;
    *waiting = false;
    while (*link) {
        sp_cuda_lane *lane = *link;
        sp_status status = probe(lane);
        if (status < 0)
            return status;
        if (status != SP_OK) {
            *waiting |= lane->mark && lane->value <= value;
            link = &lane->next;
            continue;
        }
        if (semaphore->counting)
            sp_waiter_reached(&semaphore->base, lane->value);
        *link = lane->next;
        put_back(semaphore->context, lane);
    }
    return SP_PENDING;
}

bool sp_cuda_lanes_pending_locked(sp_cuda_semaphore *semaphore)
{
    bool waiting;
    if (sp_cuda_lanes_poll_locked(semaphore, 0, &waiting) < 0)
        return false;
    for (const sp_cuda_lane *lane = semaphore->lanes; lane; lane = lane->next) {
        if (lane->mark)
            return true;
    }
    return false;
}

/* ---- The end ---- */

void sp_cuda_lanes_drop_locked(sp_cuda_semaphore *semaphore)
{
    while (semaphore->lanes) {
        sp_cuda_lane *lane = semaphore->lanes;
        semaphore->lanes = lane->next;
        put_back(semaphore->context, lane);
    }
}

void sp_cuda_lane_streams_destroy(sp_cuda_context *context)
{
    for (size_t i = 0; i < SP_CUDA_MOST_LANE_STREAMS; i++) {
        sp_cuda_lane_stream *at = &context->lane_streams[i];
        if (at->stream && !(sp_cuda_gone(context) & SP_CUDA_ENDED))
            context->cu.stream_destroy(at->stream);
        at->stream = NULL;
    }
}

void sp_cuda_lane_streams_forget(sp_cuda_context *context)
{
    for (size_t i = 0; i < SP_CUDA_MOST_LANE_STREAMS; i++)
        sp_cuda_mark_set(&context->lane_streams[i].last, NULL);
}
