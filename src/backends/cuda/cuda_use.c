/* SPDX-License-Identifier: MIT
 *
 * What was enqueued on a semaphore, and on which stream: CUDA wants every operation done before it
 * is destroyed. The last entry of each stream is enough, since a stream runs in order.
 */
#include "cuda_internal.h"

unsigned long long sp_cuda_stream_id(const sp_cuda_context *context, CUstream stream)
{
    unsigned long long id = 0;
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

void sp_cuda_uses_drop_locked(sp_cuda_semaphore *semaphore)
{
    while (semaphore->uses) {
        sp_cuda_use *use = semaphore->uses;
        semaphore->uses = use->next;
        drop(semaphore->context, use);
    }
}

/* Threads that use one stream may note their marks in another order than that of their records. */
sp_status sp_cuda_mark_record(sp_cuda_event *mark, CUstream stream)
{
    uint64_t *clock = &mark->context->mark_clock;
    mark->began = __atomic_fetch_add(clock, 1, __ATOMIC_SEQ_CST);
    sp_status status = sp_cuda_event_record(mark, stream);
    mark->ended = __atomic_fetch_add(clock, 1, __ATOMIC_SEQ_CST);
    return status;
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
