/* SPDX-License-Identifier: MIT
 *
 * One signal of a binary semaphore, or one release of a keyed mutex, as a waiter. The host cannot
 * look at either: a signal is known to be reached only through the wait that used it up, by that
 * wait's mark, the signal's *gate*. A host wait enqueues such a wait itself if nobody has.
 */
#include "cuda_internal.h"

static uint32_t state_of(const sp_cuda_signal *signal)
{
    return sp_load32(&signal->oneshot.state);
}

static sp_status signal_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    sp_cuda_signal *signal = sp_cuda_signal_of(waiter);
    *reached = 0;
    if (state_of(signal) == SP_ONESHOT_UNSUBMITTED)
        return SP_NOT_SUBMITTED;
    if (!sp_load32(&signal->gated)) {
        const sp_cuda_context *context = signal->semaphore->context;
        return sp_cuda_gone(context) ? sp_cuda_fail_gone(context) : SP_OK;
    }
    sp_status status = sp_cuda_event_probe(signal->gate);
    *reached = status == SP_OK;
    return status == SP_PENDING ? SP_OK : status;
}

/* ---- Waiting on the host ---- */

/* Claims the signal and enqueues the wait that uses it up. SP_OK also if another thread did. */
static sp_status start_wait(sp_cuda_signal *signal)
{
    sp_cuda_semaphore *binary = signal->semaphore;
    sp_cuda_event *mark;
    bool enqueued;
    sp_status status = sp_oneshot_claim_or_join(&signal->oneshot);
    if (status != SP_OK)
        return status == SP_PENDING ? SP_OK : status;
    sp_os_mutex_lock(&binary->lock);
    status = sp_cuda_lane_start_locked(binary, signal->key, &mark, &enqueued);
    if (status == SP_OK)
        sp_cuda_signal_gate_locked(signal, mark, 0);
    sp_os_mutex_unlock(&binary->lock);
    if (!enqueued)
        sp_oneshot_unclaim(&signal->oneshot);
    else if (status != SP_OK)
        sp_waiter_fail_for_good(&signal->oneshot.base, sp_last_error());
    return status;
}

/* The gate, or for an unsubmitted signal the mark: nothing will wake us, so look now and then. */
static sp_status look_until(sp_waiter *waiter, uint64_t deadline_ns)
{
    sp_cuda_signal *signal = sp_cuda_signal_of(waiter);
    bool unsubmitted = state_of(signal) == SP_ONESHOT_UNSUBMITTED;
    sp_backoff backoff = {0};
    for (;;) {
        sp_status status = sp_waiter_probe(waiter, 1);
        if (status != SP_PENDING && status != SP_NOT_SUBMITTED)
            return status;
        bool marked = unsubmitted && status == SP_PENDING; /* now the wait can begin */
        if (marked || sp_now_ns() >= deadline_ns)
            return SP_TIMEOUT;
        sp_backoff_sleep(&backoff, deadline_ns);
    }
}

static sp_status signal_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    (void)value;
    sp_cuda_signal *signal = sp_cuda_signal_of(waiter);
    if (state_of(signal) == SP_ONESHOT_SUBMITTED) {
        sp_status status = start_wait(signal);
        if (status != SP_OK)
            return status;
    }
    return look_until(waiter, deadline_ns);
}

/* ---- Beginning and end of a signal ---- */

sp_cuda_signal *sp_cuda_signal_make(sp_cuda_semaphore *semaphore, uint64_t key, uint32_t state)
{
    sp_cuda_signal *signal = sp_pool_get(&semaphore->context->signals);
    if (!signal)
        return NULL;
    sp_oneshot_setup(&signal->oneshot, &sp_cuda_signal_ops, state);
    signal->semaphore = sp_cuda_semaphore_ref(semaphore);
    signal->key = key;
    signal->ours = false;
    signal->gated = 0;
    signal->gate = NULL;
    return signal;
}

sp_point sp_cuda_signal_point(sp_cuda_signal *signal, uint32_t flags)
{
    const sp_cuda_semaphore *binary = signal->semaphore;
    return (sp_point){
        .kind = SP_KIND_CUDA,
        .flags = SP_POINT_BINARY | flags,
        .value = signal->key,
        .raw.cuda = {.semaphore = binary->handle, .context = binary->context->handle},
        .waiter = &signal->oneshot.base,
    };
}

void sp_cuda_signal_gate_locked(sp_cuda_signal *signal, sp_cuda_event *mark,
                                unsigned long long stream_id)
{
    sp_cuda_semaphore *binary = signal->semaphore;
    sp_cuda_mark_set(&binary->waited, mark);
    binary->wait_stream = stream_id;
    sp_cuda_mark_set(&signal->gate, mark);
    sp_store32(&signal->gated, 1);
}

/* One that nobody waited for is left to the other side. */
static void detach(sp_cuda_signal *signal)
{
    sp_cuda_semaphore *binary = signal->semaphore;
    sp_os_mutex_lock(&binary->lock);
    if (binary->current == signal)
        binary->current = NULL;
    sp_os_mutex_unlock(&binary->lock);
}

static void signal_release(sp_waiter *waiter)
{
    sp_cuda_signal *signal = sp_cuda_signal_of(waiter);
    sp_cuda_semaphore *semaphore = signal->semaphore;
    sp_cuda_mark_set(&signal->gate, NULL);
    if (!sp_waiter_is_forked(waiter)) {
        detach(signal);
        sp_pool_put(&semaphore->context->signals, signal);
    }
    sp_cuda_semaphore_unref(semaphore);
}

const sp_waiter_ops sp_cuda_signal_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_CONSUMING | SP_FEATURE_ONESHOT | SP_FEATURE_BLOCK,
    .backend = SP_BACKEND_CUDA,
    .name = "CUDA binary signal",
    .probe = signal_probe,
    .block = signal_block,
    .destroy = signal_release,
};

static void end_signal(void *unused, void *object)
{
    (void)unused;
    sp_waiter *waiter = &((sp_cuda_signal *)object)->oneshot.base;
    if (!sp_waiter_try_ref(waiter))
        return;
    sp_waiter_probe(waiter, 1);
    sp_cuda_end_waiter(waiter);
    sp_waiter_unref(waiter);
}

void sp_cuda_signals_end(sp_cuda_context *context)
{
    sp_pool_each(&context->signals, end_signal, NULL);
}

/* ---- A new signal of the semaphore ---- */

/* The claimed signal's wait is not enqueued yet, and may give it up again. */
static bool is_being_waited_for(const sp_cuda_signal *signal)
{
    return !sp_load32(&signal->gated) && sp_load64(&signal->oneshot.base.failed_from) == UINT64_MAX;
}

sp_status sp_cuda_binary_check_free_locked(const sp_cuda_semaphore *binary, bool announced_too)
{
    const sp_cuda_signal *current = binary->current;
    /* Once: a wait may claim the signal, or give it up, any moment. */
    uint32_t state = current ? state_of(current) : SP_ONESHOT_CONSUMED;
    if (binary->stray_wait) {
        return sp_fail(
            SP_ERROR_INVALID_STATE,
            "a wait on this semaphore is enqueued, and CUDA gave nothing to tell when it "
            "is over: import the semaphore's primitive anew");
    }
    bool pending = state < SP_ONESHOT_CLAIMED && (announced_too || current->ours);
    if (pending || (state == SP_ONESHOT_CLAIMED && is_being_waited_for(current)))
        return sp_fail_signal_pending();
    return SP_OK;
}

/* Makes `next` the semaphore's signal. *earlier: one that never completes now, as a reference. */
static sp_status replace_current_locked(sp_cuda_semaphore *binary, sp_cuda_signal *next,
                                        sp_oneshot **earlier)
{
    sp_cuda_signal *current = binary->current;
    sp_status status = sp_cuda_binary_check_free_locked(binary, false);
    if (status != SP_OK)
        return status;
    *earlier = sp_oneshot_supersede(current ? &current->oneshot : NULL);
    binary->current = next;
    return SP_OK;
}

sp_status sp_cuda_binary_point(sp_cuda_semaphore *semaphore, uint64_t key, uint32_t flags,
                               sp_point *out)
{
    SP_CHECK_ARGUMENT(semaphore && out, "semaphore and out are required");
    SP_CHECK_ARGUMENT(!semaphore->counting, "it has values: sp_cuda_timeline_point()");
    SP_CHECK_ARGUMENT(semaphore->keyed || key == 0, "a binary semaphore has no key: 0");
    SP_CHECK_ARGUMENT((flags & ~(uint32_t)SP_POINT_UNSUBMITTED) == 0,
                      "SP_POINT_UNSUBMITTED is the only flag");
    sp_status status = sp_cuda_check(semaphore->context);
    if (status != SP_OK)
        return status;
    sp_oneshot *earlier = NULL;
    sp_cuda_signal *signal =
        sp_cuda_signal_make(semaphore, key, flags ? SP_ONESHOT_UNSUBMITTED : SP_ONESHOT_SUBMITTED);
    if (!signal)
        return SP_ERROR_OUT_OF_MEMORY;
    sp_os_mutex_lock(&semaphore->lock);
    status = replace_current_locked(semaphore, signal, &earlier);
    sp_os_mutex_unlock(&semaphore->lock);
    sp_oneshot_fail_superseded(earlier);
    if (status == SP_OK)
        *out = sp_cuda_signal_point(signal, flags);
    else
        sp_waiter_unref(&signal->oneshot.base);
    return status;
}
