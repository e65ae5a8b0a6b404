/* SPDX-License-Identifier: MIT
 *
 * Signals of semaphores in a context's stream.
 */
#include "gl_internal.h"

#include <inttypes.h>

/* What is got before the first call into GL, so that running out of memory changes nothing. */
typedef struct spares {
    sp_gl_sync *fence;    /* with values: tells when the signal has run     */
    sp_gl_signal *signal; /* binary: the point's waiter, if there is to be one */
} spares;

/* A value may have a point without `out`: sp_gl_timeline_point(). */
static sp_status get_spares(sp_gl_semaphore *semaphore, bool point, spares *spare)
{
    *spare = (spares){0};
    if (sp_gl_has_values(semaphore))
        return sp_gl_sync_make(semaphore->context, &spare->fence);
    if (!point)
        return SP_OK;
    spare->signal = sp_gl_signal_make(semaphore, SP_ONESHOT_SUBMITTED);
    return spare->signal ? SP_OK : SP_ERROR_OUT_OF_MEMORY;
}

static sp_status give_spares_back(const spares *spare, sp_status status)
{
    sp_error error = *sp_last_error();
    sp_gl_sync_unref(spare->fence);
    if (spare->signal)
        sp_waiter_unref(&spare->signal->oneshot.base);
    return status < 0 ? sp_fail_with(&error) : status;
}

/* ---- With values ---- */

static sp_status check_value_ordered(const sp_gl_semaphore *semaphore, uint64_t *value)
{
    uint64_t known = sp_load64(&semaphore->base.reached);
    if (known < semaphore->minted)
        known = semaphore->minted;
    if (*value == 0)
        *value = known + 1;
    if (*value == UINT64_MAX)
        return sp_fail(SP_ERROR_INVALID_STATE, "the timeline has no values left");
    if (*value <= known) {
        return sp_fail(SP_ERROR_INVALID_ARGUMENT,
                       "sp_gl_context_signal_semaphore: value %" PRIu64
                       " does not increase: %" PRIu64 " is signalled already",
                       *value, known);
    }
    return SP_OK;
}

/* Streams of two contexts run as they like: a signal in another one than the last waits for that,
 * so that the value never goes back. */
static sp_status insert_order(const sp_gl_operation *signal)
{
    sp_gl_semaphore *semaphore = signal->semaphore;
    const sp_gl_operation before = {
        .scope = signal->scope, .semaphore = semaphore, .value = semaphore->minted};
    if (!semaphore->minted_in || semaphore->minted_in == signal->scope->stream ||
        sp_waiter_known_reached(&semaphore->base, semaphore->minted))
        return SP_OK;
    return sp_gl_insert_wait_ordered(&before);
}

static sp_status signal_value_ordered(sp_gl_operation *operation)
{
    sp_gl_semaphore *semaphore = operation->semaphore;
    sp_status status = check_value_ordered(semaphore, &operation->value);
    if (status == SP_OK)
        status = insert_order(operation);
    if (status == SP_OK)
        status = sp_gl_insert_signal_ordered(operation);
    if (status != SP_OK)
        return status;
    semaphore->minted = operation->value;
    semaphore->minted_in = operation->scope->stream;
    return SP_OK;
}

/* Without the fence the point is good, too: a wait for it inserts its own. */
static void watch_and_flush(const sp_gl_operation *operation, sp_gl_sync *fence)
{
    if (sp_gl_sync_insert(fence, operation->scope) == SP_OK)
        sp_gl_watch_signal(operation->semaphore, operation->value, fence);
    sp_gl_sync_unref(fence);
}

/* ---- Binary ---- */

static sp_status signal_binary_ordered(const sp_gl_operation *operation, sp_gl_signal *signal,
                                       sp_oneshot **earlier)
{
    sp_gl_semaphore *binary = operation->semaphore;
    sp_status status = sp_gl_binary_check_free(binary, operation->scope->stream);
    if (status == SP_OK)
        status = sp_gl_insert_signal_ordered(operation);
    if (status != SP_OK)
        return status;
    if (signal)
        signal->ours = true;
    *earlier = sp_gl_binary_set_current(binary, signal);
    return SP_OK;
}

/* ---- Both ---- */

/* The flush comes after the lock, since it may block. It need not come before the signal of a
 * higher value in another stream: that one waits on the device. */
static sp_status signal_in_stream(sp_gl_operation *operation, const spares *spare)
{
    sp_gl_semaphore *semaphore = operation->semaphore;
    sp_oneshot *earlier = NULL;
    if (!sp_gl_has_values(semaphore))
        sp_gl_binary_ask_last_gate(semaphore);
    sp_os_mutex_lock(&semaphore->order);
    sp_status status = sp_gl_has_values(semaphore)
                           ? signal_value_ordered(operation)
                           : signal_binary_ordered(operation, spare->signal, &earlier);
    sp_os_mutex_unlock(&semaphore->order);
    sp_oneshot_fail_superseded(earlier);
    if (status == SP_OK && spare->fence)
        watch_and_flush(operation, spare->fence);
    else if (status == SP_OK)
        operation->scope->context->gl.flush();
    return status;
}

static sp_status check_semaphore(sp_gl_context *context, const sp_gl_semaphore *semaphore)
{
    sp_status status = sp_gl_check_current(context, "sp_gl_context_signal_semaphore");
    if (status == SP_OK)
        status = sp_gl_check(semaphore->context);
    if (status == SP_OK && semaphore->context->group != context->group)
        status = sp_fail(SP_ERROR_WRONG_CONTEXT, "sp_gl_context_signal_semaphore: the semaphore is "
                                                 "of a context that shares nothing with this one");
    return status;
}

sp_status sp_gl_context_signal_semaphore(sp_gl_context *context, sp_gl_semaphore *semaphore,
                                         uint64_t value, const sp_gl_barriers *barriers,
                                         sp_point *out)
{
    SP_CHECK_ARGUMENT(context && semaphore, "context and semaphore are required");
    SP_CHECK_ARGUMENT(sp_gl_has_values(semaphore) || value == 0, "a binary's signal has no value");
    SP_CHECK_ARGUMENT(value != UINT64_MAX, "UINT64_MAX is not a timeline value");
    if (barriers)
        SP_CHECK_SIZE(barriers);
    const char *why = sp_gl_check_barriers(barriers);
    SP_CHECK_ARGUMENT(!why, why);
    spares spare;
    sp_status status = check_semaphore(context, semaphore);
    if (status == SP_OK)
        status = get_spares(semaphore, out != NULL, &spare);
    if (status != SP_OK)
        return status;
    sp_gl_scope scope = sp_gl_scope_here(context);
    sp_gl_operation operation = {
        .scope = &scope, .semaphore = semaphore, .value = value, .barriers = barriers};
    status = signal_in_stream(&operation, &spare);
    sp_gl_scope_leave(&scope);
    if (status != SP_OK)
        return give_spares_back(&spare, status);
    if (out)
        *out = spare.signal ? sp_gl_signal_point(spare.signal, 0)
                            : sp_gl_timeline_make_point(semaphore, operation.value);
    return SP_OK;
}
