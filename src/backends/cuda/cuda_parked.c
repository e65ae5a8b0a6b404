/* SPDX-License-Identifier: MIT
 *
 * Host waits on semaphores that cannot be asked: a device-side wait on a stream of the library's,
 * with a mark behind it. Each outstanding value has a stream of its own, since waits on one stream
 * queue behind each other. A wait whose time ran out stays: the next one for the same value goes on
 * with it.
 */
#include "cuda_internal.h"

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
    if (!lane->stream) {
        int mode = sp_cuda_relax(context);
        CUresult result = context->cu.stream_create(&lane->stream, CU_STREAM_NON_BLOCKING);
        sp_cuda_unrelax(context, mode);
        if (result != CUDA_SUCCESS) {
            lane->stream = NULL;
            sp_pool_put(&context->lanes, lane);
            return sp_cuda_fail(context, result, "cuStreamCreate");
        }
    }
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

static void add(sp_cuda_semaphore *semaphore, sp_cuda_lane *lane, uint64_t value)
{
    lane->value = value;
    lane->next = semaphore->lanes;
    semaphore->lanes = lane;
}

/* Once the wait is enqueued the lane is in use. If nothing can be recorded behind it, it stays so.
 */
static sp_status run(sp_cuda_semaphore *semaphore, sp_cuda_lane *lane, uint64_t value,
                     bool *enqueued)
{
    sp_status status = sp_cuda_order_behind(semaphore->context, lane->stream, 0, semaphore->waited,
                                            semaphore->wait_stream);
    if (status == SP_OK)
        status = sp_cuda_enqueue_wait(semaphore, value, lane->stream);
    if (status != SP_OK) {
        put_back(semaphore->context, lane);
        return status;
    }
    *enqueued = true;
    add(semaphore, lane, value);
    status = give_key_back(semaphore, value, lane->stream);
    if (status == SP_OK)
        status = sp_cuda_event_record(lane->mark, lane->stream);
    if (status != SP_OK) {
        sp_store32(&semaphore->context->untracked, 1);
        sp_cuda_mark_set(&lane->mark, NULL);
    }
    return status;
}

sp_status sp_cuda_lane_start_locked(sp_cuda_semaphore *semaphore, uint64_t value,
                                    sp_cuda_event **mark, bool *enqueued)
{
    sp_cuda_context *context = semaphore->context;
    sp_cuda_lane *lane = NULL;
    sp_cuda_scope scope;
    bool unused;
    *enqueued = false;
    sp_status status = sp_cuda_check_usable(context);
    if (status == SP_OK && sp_load32(&context->ending))
        status = SP_TIMEOUT;
    if (status == SP_OK)
        status = sp_cuda_enter(context, &scope);
    if (status != SP_OK)
        return status;
    sp_cuda_lanes_poll_locked(semaphore, 0, &unused); /* what is done is to be used again */
    status = get(context, &lane);
    if (status == SP_OK)
        status = run(semaphore, lane, value, enqueued);
    if (status == SP_OK)
        *mark = lane->mark;
    sp_cuda_leave(context, scope);
    return status;
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
        sp_status status = lane->value < value ? SP_PENDING : probe(lane);
        if (status < 0)
            return status;
        if (status != SP_OK) {
            *waiting |= lane->mark && lane->value == value;
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

static void destroy_stream(void *user, void *object)
{
    const sp_cuda_context *context = user;
    sp_cuda_lane *lane = object;
    if (lane->stream && !(sp_cuda_gone(context) & SP_CUDA_ENDED))
        context->cu.stream_destroy(lane->stream);
    lane->stream = NULL;
}

void sp_cuda_lanes_destroy_locked(sp_cuda_context *context)
{
    sp_pool_each(&context->lanes, destroy_stream, context);
}
