/* SPDX-License-Identifier: MIT
 *
 * Signals of external semaphores on the user's streams.
 */
#include "cuda_internal.h"

/* What is needed before anything is enqueued. */
typedef struct emission {
    sp_cuda_semaphore *semaphore;
    CUstream stream;
    unsigned long long stream_id;
    uint64_t value;
    sp_cuda_event *mark;
    sp_cuda_use *use;
    sp_cuda_signal *signal; /* of a binary with a point */
} emission;

static sp_status prepare(emission *made, bool with_point)
{
    sp_cuda_semaphore *semaphore = made->semaphore;
    sp_cuda_context *context = semaphore->context;
    made->stream_id = sp_cuda_stream_id(context, made->stream);
    sp_status status = sp_cuda_event_take(context, &made->mark);
    if (status != SP_OK)
        return status;
    made->use = sp_pool_get(&context->uses);
    if (!made->use)
        return SP_ERROR_OUT_OF_MEMORY;
    if (semaphore->counting || !with_point)
        return SP_OK;
    made->signal = sp_cuda_signal_make(semaphore, made->value, SP_ONESHOT_SUBMITTED);
    if (!made->signal)
        return SP_ERROR_OUT_OF_MEMORY;
    made->signal->ours = true;
    return SP_OK;
}

static void finish(emission *made)
{
    if (made->use)
        sp_pool_put(&made->semaphore->context->uses, made->use);
    if (made->signal)
        sp_waiter_unref(&made->signal->oneshot.base);
    sp_cuda_event_unref(made->mark);
}

/* Behind the last one, or a value could go back. If nothing tells when that is over, the device can
 * wait for its value. */
static sp_status order_value_locked(const emission *made)
{
    sp_cuda_semaphore *timeline = made->semaphore;
    const sp_cuda_use *last = timeline->last_signal;
    if (timeline->unmarked)
        return sp_cuda_enqueue_wait(timeline, timeline->minted, made->stream);
    if (!last)
        return SP_OK;
    return sp_cuda_order_behind(timeline->context, made->stream, made->stream_id, last->mark,
                                last->stream_id);
}

/* The signal runs behind the one before it; a binary's behind the wait that uses up the one before.
 */
static sp_status order_locked(emission *made)
{
    sp_cuda_semaphore *semaphore = made->semaphore;
    sp_cuda_context *context = semaphore->context;
    if (semaphore->counting) {
        sp_status status = sp_cuda_mint_locked(semaphore, made->value, &made->value);
        return status == SP_OK ? order_value_locked(made) : status;
    }
    sp_status status = sp_cuda_binary_check_free_locked(semaphore, true);
    if (status != SP_OK)
        return status;
    return sp_cuda_order_behind(context, made->stream, made->stream_id, semaphore->waited,
                                semaphore->wait_stream);
}

static sp_status enqueue(const emission *made)
{
    const sp_cuda_semaphore *semaphore = made->semaphore;
    sp_cuda_context *context = semaphore->context;
    sp_cu_semaphore_params params = {0};
    if (semaphore->counting)
        params.params.fence.value = made->value;
    if (semaphore->keyed)
        sp_cu_params_set_key(&params, made->value);
    CUresult result = context->cu.signal_semaphores(&semaphore->handle, &params, 1, made->stream);
    return result == CUDA_SUCCESS
               ? SP_OK
               : sp_cuda_fail(context, result, "cuSignalExternalSemaphoresAsync");
}

/* The signal is enqueued, whatever becomes of its mark: without one it only cannot be told when it
 * is over. */
static void note_locked(emission *made)
{
    sp_cuda_semaphore *semaphore = made->semaphore;
    CUresult result = sp_cuda_mark_record(made->mark, made->stream);
    if (semaphore->counting)
        semaphore->minted = made->value;
    else
        semaphore->current = made->signal;
    semaphore->unmarked = result != CUDA_SUCCESS;
    if (semaphore->unmarked) {
        sp_cuda_note_result(semaphore->context, result);
        sp_store32(&semaphore->context->untracked, 1);
        return;
    }
    if (semaphore->counting)
        sp_cuda_signal_add_locked(semaphore, made->use, made->stream_id, made->value, made->mark);
    else
        sp_cuda_use_add_locked(semaphore, made->use, made->stream_id, made->mark);
    made->use = NULL;
}

static sp_status emit(emission *made)
{
    sp_os_mutex_lock(&made->semaphore->lock);
    sp_status status = order_locked(made);
    if (status == SP_OK)
        status = enqueue(made);
    if (status == SP_OK)
        note_locked(made);
    sp_os_mutex_unlock(&made->semaphore->lock);
    return status;
}

static void set_point(emission *made, sp_point *out)
{
    if (made->semaphore->counting) {
        sp_cuda_timeline_point(made->semaphore, made->value, out);
        return;
    }
    *out = sp_cuda_signal_point(made->signal, 0);
    made->signal = NULL;
}

static sp_status check(const sp_cuda_context *context, const sp_cuda_semaphore *semaphore)
{
    sp_status status = sp_cuda_check_usable(context);
    if (status != SP_OK || semaphore->context == context)
        return status;
    return sp_fail(SP_ERROR_DEVICE_MISMATCH, "the semaphore is of another sp_cuda_context");
}

sp_status sp_cuda_stream_signal_semaphore(sp_cuda_context *context, CUstream stream,
                                          sp_cuda_semaphore *semaphore, uint64_t value,
                                          sp_point *out)
{
    sp_cuda_scope scope;
    SP_CHECK_ARGUMENT(context && semaphore, "context and semaphore are required");
    SP_CHECK_ARGUMENT(semaphore->counting || semaphore->keyed || value == 0,
                      "a binary semaphore has no value: 0");
    SP_CHECK_ARGUMENT(!semaphore->counting || value != UINT64_MAX,
                      "UINT64_MAX is not a timeline value");
    sp_status status = check(context, semaphore);
    if (status == SP_OK)
        status = sp_cuda_enter_stream(context, stream, &scope);
    if (status != SP_OK)
        return status;
    emission made = {.semaphore = semaphore, .stream = stream, .value = value};
    status = prepare(&made, out != NULL);
    if (status == SP_OK)
        status = emit(&made);
    if (status == SP_OK && out)
        set_point(&made, out);
    finish(&made);
    sp_cuda_leave(context, scope);
    return status;
}
