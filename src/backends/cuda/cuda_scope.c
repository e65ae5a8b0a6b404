/* SPDX-License-Identifier: MIT
 *
 * What CUDA keeps per thread: the current context, and how calls act on stream captures. Every
 * function here is on the way of sp_cuda_stream_signal(), so they count driver calls.
 */
#include "cuda_internal.h"

/* ---- The CUcontext ---- */

static CUresult check_alive(const sp_cuda_context *context)
{
    const sp_cuda_driver *cu = &context->cu;
    if (cu->ctx_get_id) {
        unsigned long long id = 0;
        CUresult result = cu->ctx_get_id(context->handle, &id);
        /* A driver that gave the id once does not know this handle any more. */
        if (result == (CUresult)SP_CU_INVALID_VALUE || result == (CUresult)SP_CU_INVALID_HANDLE)
            return (CUresult)SP_CU_CONTEXT_IS_DESTROYED;
        bool other = result == CUDA_SUCCESS && id != context->id;
        return other ? (CUresult)SP_CU_CONTEXT_IS_DESTROYED : result;
    }
    unsigned int version = 0;
    return cu->ctx_get_api_version(context->handle, &version);
}

bool sp_cuda_is_alive(sp_cuda_context *context)
{
    if (sp_cuda_gone(context) & (SP_CUDA_ENDED | SP_CUDA_DEAD))
        return false;
    if (SP_LIKELY(!sp_cuda_result_is_end(check_alive(context))))
        return true;
    sp_cuda_note_gone(context, SP_CUDA_ENDED);
    return false;
}

/* Is it current on this thread? One call, where ids are known, also tells that it is alive. */
static bool is_current(const sp_cuda_context *context)
{
    const sp_cuda_driver *cu = &context->cu;
    if (cu->ctx_get_id) {
        unsigned long long id = 0;
        return cu->ctx_get_id(NULL, &id) == CUDA_SUCCESS && id == context->id;
    }
    CUcontext current = NULL;
    return cu->ctx_get_current(&current) == CUDA_SUCCESS && current == context->handle;
}

static SP_COLD sp_status push(sp_cuda_context *context, sp_cuda_scope *scope)
{
    if (!sp_cuda_is_alive(context))
        return sp_cuda_fail_gone(context);
    CUresult result = context->cu.ctx_push(context->handle);
    if (result != CUDA_SUCCESS)
        return sp_cuda_fail(context, result, "cuCtxPushCurrent");
    scope->pushed = true;
    return SP_OK;
}

sp_status sp_cuda_enter(sp_cuda_context *context, sp_cuda_scope *scope)
{
    scope->pushed = false;
    return SP_LIKELY(is_current(context)) ? SP_OK : push(context, scope);
}

void sp_cuda_leave(sp_cuda_context *context, sp_cuda_scope scope)
{
    CUcontext popped;
    if (scope.pushed)
        context->cu.ctx_pop(&popped);
}

/* ---- Streams ---- */

static bool is_special(CUstream stream)
{
    return !stream || stream == SP_CU_STREAM_LEGACY || stream == SP_CU_STREAM_PER_THREAD;
}

static SP_COLD sp_status fail_capturing(void)
{
    return sp_fail(SP_ERROR_INVALID_STATE,
                   "the stream is being captured (or, for the legacy stream, one that it waits "
                   "for): nothing was recorded");
}

static SP_COLD sp_status fail_other_context(bool special)
{
    return sp_fail(SP_ERROR_WRONG_CONTEXT,
                   special ? "this stream means the current context's, and that is not the "
                             "sp_cuda_context's"
                           : "the stream is of another context than the sp_cuda_context");
}

bool sp_cuda_may_mean_another(const sp_cuda_context *context, CUresult result)
{
    return result == (CUresult)SP_CU_INVALID_CONTEXT ||
           (sp_cuda_result_is_gone(result) && !is_current(context));
}

/* SP_PENDING: to be asked again with our context current. */
static sp_status fail_question(sp_cuda_context *context, CUresult result, const char *call)
{
    return sp_cuda_may_mean_another(context, result) ? SP_PENDING
                                                     : sp_cuda_fail(context, result, call);
}

/* Asked first: other questions about a stream that is being captured invalidate the capture. */
static sp_status check_not_capturing(sp_cuda_context *context, CUstream stream)
{
    int status = SP_CU_CAPTURE_NONE;
    CUresult result = context->cu.stream_is_capturing(stream, &status);
    if (SP_LIKELY(result == CUDA_SUCCESS && status == SP_CU_CAPTURE_NONE))
        return SP_OK;
    return result == CUDA_SUCCESS ? fail_capturing()
                                  : fail_question(context, result, "cuStreamIsCapturing");
}

static CUstream *known_at(sp_cuda_context *context, CUstream stream)
{
    uintptr_t number = (uintptr_t)stream;
    return &context->known_streams[(number >> 6 ^ number >> 12) % SP_CUDA_KNOWN_STREAMS];
}

static bool is_known(sp_cuda_context *context, CUstream stream)
{
    return __atomic_load_n(known_at(context, stream), __ATOMIC_RELAXED) == stream;
}

void sp_cuda_forget_stream(sp_cuda_context *context, CUstream stream)
{
    __atomic_store_n(known_at(context, stream), NULL, __ATOMIC_RELAXED);
}

static sp_status check_owner(sp_cuda_context *context, CUstream stream)
{
    CUcontext owner = NULL;
    CUresult result = context->cu.stream_get_ctx(stream, &owner);
    if (result != CUDA_SUCCESS)
        return fail_question(context, result, "cuStreamGetCtx");
    if (owner != context->handle)
        return fail_other_context(false);
    __atomic_store_n(known_at(context, stream), stream, __ATOMIC_RELAXED);
    return SP_OK;
}

sp_status sp_cuda_check_stream(sp_cuda_context *context, CUstream stream)
{
    if (is_special(stream))
        return SP_PENDING;
    sp_status status = check_not_capturing(context, stream);
    return status == SP_OK ? check_owner(context, stream) : status;
}

sp_status sp_cuda_check_stream_to_record(sp_cuda_context *context, CUstream stream)
{
    if (is_special(stream))
        return SP_PENDING;
    sp_status status = check_not_capturing(context, stream);
    if (SP_LIKELY(status == SP_OK && is_known(context, stream)))
        return SP_OK;
    return status == SP_OK ? check_owner(context, stream) : status;
}

static sp_status check_entered(sp_cuda_context *context, CUstream stream, bool pushed)
{
    if (is_special(stream))
        return pushed ? fail_other_context(true) : check_not_capturing(context, stream);
    return sp_cuda_check_stream(context, stream);
}

sp_status sp_cuda_enter_stream(sp_cuda_context *context, CUstream stream, sp_cuda_scope *scope)
{
    sp_status status = sp_cuda_enter(context, scope);
    if (status != SP_OK)
        return status;
    status = check_entered(context, stream, scope->pushed);
    if (status == SP_PENDING) /* the context is current, and no context says the driver */
        status = sp_cuda_fail(context, (CUresult)SP_CU_INVALID_CONTEXT, "cuStreamIsCapturing");
    if (status != SP_OK)
        sp_cuda_leave(context, *scope);
    return status;
}
