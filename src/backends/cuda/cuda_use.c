/* SPDX-License-Identifier: MIT
 *
 * What was enqueued on a semaphore, and on which stream: CUDA wants every operation done before it
 * is destroyed. The last entry of each stream is enough, since a stream runs in order.
 */
#include "cuda_internal.h"

#define FEW_SIGNALS 16

unsigned long long sp_cuda_stream_id(const sp_cuda_context *context, CUstream stream)
{
    unsigned long long id = 0;
    /* Each thread's is another, and one number may stand for all. */
    if (stream == SP_CU_STREAM_PER_THREAD)
        return 0;
    if (!context->cu.stream_get_id || context->cu.stream_get_id(stream, &id) != CUDA_SUCCESS)
        return 0;
    return id;
}

void sp_cuda_mark_set(sp_cuda_event **at, sp_cuda_event *mark)
{
    sp_cuda_event *before = *at;
    if (mark)
        sp_waiter_ref(&mark->base);
    *at = mark;
    sp_cuda_event_unref(before);
}

static void drop(sp_cuda_context *context, sp_cuda_use *use)
{
    sp_cuda_mark_set(&use->mark, NULL);
    if (!sp_cuda_is_forked(context))
        sp_pool_put(&context->uses, use);
}

/* Of a context that is lost or gone nothing more is to come. */
static bool is_pending(sp_cuda_event *mark)
{
    return sp_cuda_event_probe(mark) == SP_PENDING;
}

bool sp_cuda_uses_pending_locked(sp_cuda_semaphore *semaphore)
{
    sp_cuda_use **link = &semaphore->uses;
    while (*link) {
        sp_cuda_use *use = *link;
        if (is_pending(use->mark)) {
            link = &use->next;
        } else {
            *link = use->next;
            drop(semaphore->context, use);
        }
    }
    return semaphore->uses != NULL;
}

static void drop_first_signal(sp_cuda_semaphore *timeline)
{
    sp_cuda_use *first = timeline->signals;
    timeline->signals = first->next;
    if (!timeline->signals)
        timeline->last_signal = NULL;
    timeline->signal_count--;
    drop(timeline->context, first);
}

void sp_cuda_uses_drop_locked(sp_cuda_semaphore *semaphore)
{
    while (semaphore->signals)
        drop_first_signal(semaphore);
    while (semaphore->uses) {
        sp_cuda_use *use = semaphore->uses;
        semaphore->uses = use->next;
        drop(semaphore->context, use);
    }
}

/* Threads that use one stream may note their marks in another order than that of their records. */
CUresult sp_cuda_mark_record(sp_cuda_event *mark, CUstream stream)
{
    sp_cuda_context *context = mark->context;
    mark->began = __atomic_fetch_add(&context->mark_clock, 1, __ATOMIC_SEQ_CST);
    CUresult result = context->cu.event_record(mark->handle, stream);
    mark->ended = __atomic_fetch_add(&context->mark_clock, 1, __ATOMIC_SEQ_CST);
    return result;
}

/* Forgets the marks of that stream that come before the new one. Is there one of the stream? */
static bool replace_older(sp_cuda_semaphore *semaphore, unsigned long long stream_id,
                          const sp_cuda_event *mark)
{
    bool found = false;
    sp_cuda_use **link = &semaphore->uses;
    while (stream_id && *link) {
        sp_cuda_use *use = *link;
        bool same = use->stream_id == stream_id;
        found |= same;
        if (same && use->mark->ended < mark->began) {
            *link = use->next;
            drop(semaphore->context, use);
        } else {
            link = &use->next;
        }
    }
    return found;
}

void sp_cuda_use_add_locked(sp_cuda_semaphore *semaphore, sp_cuda_use *use,
                            unsigned long long stream_id, sp_cuda_event *mark)
{
    if (!replace_older(semaphore, stream_id, mark))
        sp_cuda_uses_pending_locked(semaphore); /* so that the list stays short */
    use->stream_id = stream_id;
    use->mark = NULL;
    sp_cuda_mark_set(&use->mark, mark);
    use->next = semaphore->uses;
    semaphore->uses = use;
}

/* ---- Signals of values ---- */

sp_status sp_cuda_signals_poll_locked(sp_cuda_semaphore *timeline, uint64_t value, bool *exact)
{
    const sp_cuda_use *at = timeline->signals;
    while (at && at->value < value)
        at = at->next;
    *exact = at && at->value == value;
    sp_status status = at ? sp_cuda_event_probe(at->mark) : SP_PENDING;
    if (status != SP_OK)
        return status;
    uint64_t over = at->value;
    if (!timeline->origin.waiter) /* else what that says goes: it may have failed before */
        sp_waiter_reached(&timeline->base, over);
    while (timeline->signals && timeline->signals->value <= over)
        drop_first_signal(timeline);
    return SP_OK;
}

bool sp_cuda_signals_pending_locked(sp_cuda_semaphore *timeline)
{
    bool exact;
    const sp_cuda_use *last = timeline->last_signal;
    return last && sp_cuda_signals_poll_locked(timeline, last->value, &exact) == SP_PENDING;
}

/* If nobody looks at the values meanwhile, they gather. So the middle one is looked at whenever
 * they are twice as many as the last time left: few calls, however much is pending. */
static void look_at_half(sp_cuda_semaphore *timeline)
{
    bool exact;
    const sp_cuda_use *at = timeline->signals;
    if (timeline->signal_count < FEW_SIGNALS || timeline->signal_count < timeline->look_at_count)
        return;
    for (uint32_t i = 1; i < timeline->signal_count / 2; i++)
        at = at->next;
    sp_cuda_signals_poll_locked(timeline, at->value, &exact);
    timeline->look_at_count = 2 * timeline->signal_count;
}

void sp_cuda_signal_add_locked(sp_cuda_semaphore *timeline, sp_cuda_use *use,
                               unsigned long long stream_id, uint64_t value, sp_cuda_event *mark)
{
    *use = (sp_cuda_use){.stream_id = stream_id, .value = value};
    sp_cuda_mark_set(&use->mark, mark);
    if (timeline->last_signal)
        timeline->last_signal->next = use;
    else
        timeline->signals = use;
    timeline->last_signal = use;
    timeline->signal_count++;
    /* The last one stays: its mark, not its value, tells that the driver is through with it. */
    while (timeline->signals != use &&
           sp_waiter_known_reached(&timeline->base, timeline->signals->value))
        drop_first_signal(timeline);
    look_at_half(timeline);
}

/* ---- Order ---- */

sp_status sp_cuda_order_behind(sp_cuda_context *context, CUstream stream,
                               unsigned long long stream_id, sp_cuda_event *mark,
                               unsigned long long mark_stream)
{
    bool same = stream_id && stream_id == mark_stream;
    if (!mark || same || !is_pending(mark))
        return SP_OK;
    CUresult result = context->cu.stream_wait_event(stream, mark->handle, 0);
    return result == CUDA_SUCCESS ? SP_OK : sp_cuda_fail(context, result, "cuStreamWaitEvent");
}
