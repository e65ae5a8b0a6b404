/* SPDX-License-Identifier: MIT
 *
 * One signal of a binary semaphore as a waiter.
 *
 * A binary cannot be asked where it is. So a signal is known to be reached only through the wait
 * that used it up: behind that wait stands a fence, the signal's *gate*. A host wait inserts both
 * itself if nobody has.
 */
#include "gl_internal.h"

/* ---- State ---- */

static uint32_t state_of(const sp_gl_signal *signal)
{
    return sp_load32(&signal->oneshot.state);
}

static sp_gl_sync *gate_of(const sp_gl_signal *signal)
{
    return __atomic_load_n(&signal->gate, __ATOMIC_ACQUIRE);
}

sp_gl_signal *sp_gl_signal_make(sp_gl_semaphore *semaphore, uint32_t state)
{
    sp_gl_signal *signal = sp_pool_get(&semaphore->context->signals);
    if (!signal)
        return NULL;
    sp_oneshot_setup(&signal->oneshot, &sp_gl_signal_ops, state);
    signal->semaphore = sp_gl_semaphore_hold(semaphore);
    signal->ours = false;
    signal->gate = NULL;
    return signal;
}

sp_point sp_gl_signal_point(sp_gl_signal *signal, uint32_t flags)
{
    const sp_gl_semaphore *binary = signal->semaphore;
    return (sp_point){
        .kind = SP_KIND_OPENGL,
        .flags = SP_POINT_BINARY | flags,
        .raw.opengl = {.semaphore = binary->name, .context = binary->context->native},
        .waiter = &signal->oneshot.base,
    };
}

void sp_gl_signal_set_gate(sp_gl_signal *signal, sp_gl_sync *gate, uint64_t stream)
{
    sp_gl_semaphore *binary = signal->semaphore;
    sp_waiter_ref(&gate->base);
    sp_waiter_ref(&gate->base);
    sp_os_mutex_lock(&binary->lock);
    sp_gl_sync *before = binary->last_gate;
    binary->last_gate = gate;
    binary->last_gate_in = stream;
    sp_os_mutex_unlock(&binary->lock);
    __atomic_store_n(&signal->gate, gate, __ATOMIC_RELEASE);
    sp_gl_sync_unref(before);
}

void sp_gl_signal_fail(sp_gl_signal *signal, const sp_error *error)
{
    sp_gl_semaphore *binary = signal->semaphore;
    sp_os_mutex_lock(&binary->lock);
    binary->lost_track = true;
    sp_os_mutex_unlock(&binary->lock);
    sp_waiter_fail_for_good(&signal->oneshot.base, error);
}

static sp_status probe_gone(sp_gl_signal *signal, uint64_t value, uint64_t *reached)
{
    const sp_waiter *waiter = &signal->oneshot.base;
    sp_status status = sp_gl_answer_gone(signal->semaphore->context, waiter, value);
    *reached = status == SP_OK;
    return status == SP_PENDING ? SP_OK : status;
}

static sp_status signal_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    sp_gl_signal *signal = sp_gl_signal_of(waiter);
    *reached = 0;
    if (sp_gl_is_gone(signal->semaphore->context))
        return probe_gone(signal, value, reached);
    if (state_of(signal) == SP_ONESHOT_UNSUBMITTED)
        return SP_NOT_SUBMITTED;
    sp_gl_sync *gate = gate_of(signal);
    if (!gate)
        return SP_OK;
    sp_status status = sp_gl_sync_look(gate);
    *reached = status == SP_OK;
    return status == SP_PENDING ? SP_OK : status;
}

/* ---- Waiting on the host ---- */

/* The wait is in the stream, the fence is not. */
static sp_status fail_without_gate(sp_gl_signal *signal, sp_status status)
{
    if (status < 0)
        sp_gl_signal_fail(signal, sp_last_error());
    return status; /* else sp_gl_context_destroy() does that */
}

/* The signal is claimed for this. */
static sp_status consume(sp_gl_signal *signal, sp_gl_sync *fence, uint64_t deadline_ns)
{
    const sp_gl_host_wait wait = {
        .semaphore = signal->semaphore, .fence = fence, .deadline_ns = deadline_ns};
    sp_gl_place place;
    sp_status status = sp_gl_insert_host_wait(&wait, &place);
    if (status == SP_OK)
        sp_gl_signal_set_gate(signal, fence, place.stream);
    else if (place.inserted)
        return fail_without_gate(signal, status);
    else
        sp_oneshot_unclaim(&signal->oneshot);
    return status;
}

/* Claims the signal and inserts the wait that uses it up. SP_OK also if another thread did. */
static sp_status start_wait(sp_gl_signal *signal, uint64_t deadline_ns)
{
    sp_gl_sync *fence;
    sp_status status = sp_gl_sync_make(signal->semaphore->context, &fence);
    if (status != SP_OK)
        return status;
    status = sp_oneshot_claim_or_join(&signal->oneshot);
    if (status == SP_OK)
        status = consume(signal, fence, deadline_ns);
    else if (status == SP_PENDING)
        status = SP_OK;
    sp_error error = *sp_last_error();
    sp_gl_sync_unref(fence);
    return status < 0 ? sp_fail_with(&error) : status;
}

static sp_status wait_for_gate(sp_gl_signal *signal, uint64_t deadline_ns)
{
    sp_status status = SP_OK;
    if (state_of(signal) == SP_ONESHOT_SUBMITTED)
        status = start_wait(signal, deadline_ns);
    if (status != SP_OK)
        return status;
    sp_gl_sync *gate = gate_of(signal);
    return gate ? sp_gl_sync_block(gate, deadline_ns) : SP_TIMEOUT; /* another thread inserts it */
}

static sp_status signal_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    sp_gl_signal *signal = sp_gl_signal_of(waiter);
    const sp_gl_context *context = signal->semaphore->context;
    if (!sp_gl_is_gone(context) && state_of(signal) == SP_ONESHOT_UNSUBMITTED)
        return sp_oneshot_wait_for_mark(&signal->oneshot, deadline_ns);
    sp_status status =
        sp_gl_is_gone(context) ? SP_ERROR_INVALID_STATE : wait_for_gate(signal, deadline_ns);
    bool gone = status < 0 && sp_gl_is_gone(context);
    return gone ? sp_gl_answer_gone(context, waiter, value) : status;
}

/* ---- The end of a signal ---- */

static void signal_release(sp_waiter *waiter)
{
    sp_gl_signal *signal = sp_gl_signal_of(waiter);
    sp_gl_semaphore *binary = signal->semaphore;
    sp_gl_sync *gate = signal->gate;
    if (!sp_waiter_is_forked(waiter)) {
        sp_os_mutex_lock(&binary->lock);
        if (binary->current == signal)
            binary->current = NULL;
        sp_os_mutex_unlock(&binary->lock);
        sp_pool_put(&binary->context->signals, signal);
    }
    sp_gl_sync_unref(gate);
    sp_gl_semaphore_unref(binary);
}

const sp_waiter_ops sp_gl_signal_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_CONSUMING | SP_FEATURE_ONESHOT | SP_FEATURE_BLOCK,
    .backend = SP_BACKEND_OPENGL,
    .name = "opengl binary signal",
    .probe = signal_probe,
    .block = signal_block,
    .destroy = signal_release,
};

/* ---- A new signal of the semaphore ---- */

static sp_status fail_wait_not_run(void)
{
    return sp_fail(SP_ERROR_INVALID_STATE,
                   "a wait on this binary semaphore was inserted and has not run yet");
}

static sp_status fail_lost_track(void)
{
    return sp_fail(SP_ERROR_INVALID_STATE,
                   "a wait on this binary semaphore was inserted without a fence that tells when "
                   "it has used the signal up. Use another semaphore: export one anew from the "
                   "other API, and import that");
}

/* In the stream of the last wait a new signal runs after it in any case. */
static sp_status check_last_gate_locked(const sp_gl_semaphore *binary, uint64_t stream)
{
    const sp_gl_sync *gate = binary->last_gate;
    if (binary->lost_track)
        return fail_lost_track();
    if (!gate || binary->last_gate_in == stream || sp_waiter_known_reached(&gate->base, 1))
        return SP_OK;
    if (sp_gl_sync_has_failed(gate)) /* it never tells */
        return SP_OK;
    return fail_wait_not_run();
}

void sp_gl_binary_ask_last_gate(sp_gl_semaphore *binary)
{
    sp_os_mutex_lock(&binary->lock);
    sp_gl_sync *gate = binary->last_gate;
    if (gate)
        sp_waiter_ref(&gate->base);
    sp_os_mutex_unlock(&binary->lock);
    if (gate)
        sp_gl_sync_look(gate);
    sp_gl_sync_unref(gate);
}

/* The claimed signal's wait is not inserted yet, and may give it up again. */
static bool is_being_waited_for(const sp_gl_signal *signal)
{
    return !gate_of(signal) && sp_load64(&signal->oneshot.base.failed_from) == UINT64_MAX;
}

/* Is the current signal out of the way of a next one? */
static sp_status check_current_locked(const sp_gl_semaphore *binary)
{
    const sp_gl_signal *current = binary->current;
    /* Once: a wait may claim the signal, or give it up, any moment. */
    uint32_t state = current ? state_of(current) : SP_ONESHOT_CONSUMED;
    if (state == SP_ONESHOT_CLAIMED && is_being_waited_for(current))
        return fail_wait_not_run();
    if (state == SP_ONESHOT_SUBMITTED && current->ours)
        return sp_fail_signal_pending();
    return SP_OK;
}

sp_status sp_gl_binary_check_free(sp_gl_semaphore *binary, uint64_t stream)
{
    sp_os_mutex_lock(&binary->lock);
    sp_status status = check_current_locked(binary);
    if (status == SP_OK)
        status = check_last_gate_locked(binary, stream);
    sp_os_mutex_unlock(&binary->lock);
    return status;
}

static sp_oneshot *set_current_locked(sp_gl_semaphore *binary, sp_gl_signal *next)
{
    sp_gl_signal *current = binary->current;
    binary->current = next;
    return sp_oneshot_supersede(current ? &current->oneshot : NULL);
}

sp_oneshot *sp_gl_binary_set_current(sp_gl_semaphore *binary, sp_gl_signal *signal)
{
    sp_os_mutex_lock(&binary->lock);
    sp_oneshot *earlier = set_current_locked(binary, signal);
    sp_os_mutex_unlock(&binary->lock);
    return earlier;
}

/* Makes `next` the semaphore's signal. *earlier: one that never completes now, as a reference. */
static sp_status replace_current(sp_gl_semaphore *binary, sp_gl_signal *next, sp_oneshot **earlier)
{
    sp_os_mutex_lock(&binary->lock);
    sp_status status = check_current_locked(binary);
    if (status == SP_OK)
        *earlier = set_current_locked(binary, next);
    sp_os_mutex_unlock(&binary->lock);
    return status;
}

sp_status sp_gl_binary_point(sp_gl_semaphore *semaphore, uint32_t flags, sp_point *out)
{
    SP_CHECK_ARGUMENT(semaphore && out, "semaphore and out are required");
    SP_CHECK_ARGUMENT(!sp_gl_has_values(semaphore), "it has values: sp_gl_timeline_point()");
    SP_CHECK_ARGUMENT((flags & ~(uint32_t)SP_POINT_UNSUBMITTED) == 0,
                      "SP_POINT_UNSUBMITTED is the only flag");
    sp_status status = sp_gl_check(semaphore->context);
    if (status != SP_OK)
        return status;
    sp_oneshot *earlier = NULL;
    sp_gl_signal *signal =
        sp_gl_signal_make(semaphore, flags ? SP_ONESHOT_UNSUBMITTED : SP_ONESHOT_SUBMITTED);
    if (!signal)
        return SP_ERROR_OUT_OF_MEMORY;
    status = replace_current(semaphore, signal, &earlier);
    sp_oneshot_fail_superseded(earlier);
    if (status != SP_OK) {
        sp_error error = *sp_last_error();
        sp_waiter_unref(&signal->oneshot.base);
        return sp_fail_with(&error);
    }
    *out = sp_gl_signal_point(signal, flags);
    return SP_OK;
}
