/* SPDX-License-Identifier: MIT
 *
 * What a CUresult means to a caller of this library.
 */
#include "cuda_internal.h"

typedef struct result_row {
    int result;
    sp_status status;
    uint32_t gone; /* what it says about the context */
} result_row;

/* LOST: those of which CUDA's documentation says that any further work returns the same error. */
static const result_row result_rows[] = {
    {1, SP_ERROR_INVALID_ARGUMENT, 0},                  /* INVALID_VALUE                 */
    {2, SP_ERROR_OUT_OF_MEMORY, 0},                     /* OUT_OF_MEMORY                 */
    {SP_CU_NOT_INITIALIZED, SP_ERROR_INVALID_STATE, 0}, /* before cuInit()               */
    {SP_CU_DEINITIALIZED, SP_ERROR_INVALID_STATE, SP_CUDA_ENDED},
    {SP_CU_INVALID_CONTEXT, SP_ERROR_INVALID_STATE, SP_CUDA_ENDED},
    {SP_CU_CONTEXT_IS_DESTROYED, SP_ERROR_INVALID_STATE, SP_CUDA_ENDED},
    {214, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* ECC_UNCORRECTABLE             */
    {220, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* NVLINK_UNCORRECTABLE          */
    {226, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* CONTAINED                     */
    {700, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* ILLEGAL_ADDRESS               */
    {702, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* LAUNCH_TIMEOUT                */
    {710, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* ASSERT                        */
    {714, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* HARDWARE_STACK_ERROR          */
    {715, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* ILLEGAL_INSTRUCTION           */
    {716, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* MISALIGNED_ADDRESS            */
    {717, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* INVALID_ADDRESS_SPACE         */
    {718, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* INVALID_PC                    */
    {719, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* LAUNCH_FAILED                 */
    {721, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* TENSOR_MEMORY_LEAK            */
    {810, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* MPS_CLIENT_TERMINATED         */
    {911, SP_ERROR_DEVICE_LOST, SP_CUDA_LOST}, /* EXTERNAL_DEVICE               */
    {800, SP_ERROR_NOT_SUPPORTED, 0},          /* NOT_PERMITTED                 */
    {SP_CU_NOT_SUPPORTED, SP_ERROR_NOT_SUPPORTED, 0},
};

static const result_row *find_result(CUresult result)
{
    static const result_row other = {0, SP_ERROR_BACKEND, 0};
    static const result_row capture = {0, SP_ERROR_INVALID_STATE, 0};
    if ((int)result >= SP_CU_CAPTURE_FIRST && (int)result <= SP_CU_CAPTURE_LAST)
        return &capture;
    for (size_t i = 0; i < SP_ARRAY_LENGTH(result_rows); i++) {
        if (result_rows[i].result == (int)result)
            return &result_rows[i];
    }
    return &other;
}

static const char *name_of(const sp_cuda_context *context, CUresult result)
{
    const char *name = NULL;
    if (context->cu.get_error_name(result, &name) == CUDA_SUCCESS && name)
        return name;
    return "an unknown result";
}

static sp_status fail_as(const sp_cuda_context *context, sp_status status, CUresult result,
                         const char *call)
{
    return sp_fail_native(status, SP_BACKEND_CUDA, (int64_t)result, call, "%s: %s (%d)", call,
                          name_of(context, result), (int)result);
}

void sp_cuda_note_result(sp_cuda_context *context, CUresult result)
{
    uint32_t gone = find_result(result)->gone;
    if (gone)
        sp_cuda_note_gone(context, gone);
}

sp_status sp_cuda_fail_unnoted(const sp_cuda_context *context, CUresult result, const char *call)
{
    return fail_as(context, find_result(result)->status, result, call);
}

sp_status sp_cuda_fail(sp_cuda_context *context, CUresult result, const char *call)
{
    sp_cuda_note_result(context, result);
    return sp_cuda_fail_unnoted(context, result, call);
}

sp_status sp_cuda_fail_wait_only(const sp_cuda_context *context)
{
    return sp_cuda_gone(context) ? sp_last_error()->status : sp_fail_this_wait();
}

sp_status sp_cuda_fail_handle(sp_cuda_context *context, CUresult result, const char *call)
{
    switch ((int)result) {
    case SP_CU_INVALID_VALUE:
    case SP_CU_INVALID_CONTEXT: /* an event of the same process, and here our own is current */
    case SP_CU_MAP_FAILED:
    case SP_CU_OPERATING_SYSTEM:
    case SP_CU_INVALID_HANDLE:
    case CUDA_ERROR_UNKNOWN:
        return fail_as(context, SP_ERROR_INVALID_HANDLE, result, call);
    default:
        return sp_cuda_fail(context, result, call);
    }
}

bool sp_cuda_result_is_end(CUresult result)
{
    return (find_result(result)->gone & SP_CUDA_ENDED) != 0;
}

bool sp_cuda_result_is_gone(CUresult result)
{
    return find_result(result)->gone != 0;
}

sp_status sp_cuda_fail_gone(const sp_cuda_context *context)
{
    uint32_t gone = sp_cuda_gone(context);
    if (gone & SP_CUDA_DEAD)
        return sp_fail(SP_ERROR_INVALID_STATE, "the sp_cuda_context was destroyed");
    if (gone & SP_CUDA_ENDED) {
        return sp_fail(SP_ERROR_INVALID_STATE, "the CUcontext was destroyed, or the process is "
                                               "exiting: destroy the sp_cuda_context before");
    }
    return sp_fail(SP_ERROR_DEVICE_LOST,
                   "the CUcontext was broken by an error of earlier work; the process has to be "
                   "started anew");
}
