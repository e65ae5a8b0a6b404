/* SPDX-License-Identifier: MIT
 *
 * The symbols of cuda.h in a library that was built without CUDA, so that a program links all the
 * same.
 */
#include "core/core.h"

#include <syncpoint/cuda.h>

/* The parameters are for the callers' sake. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

static sp_status fail_not_built(const char *function)
{
    return sp_fail(SP_ERROR_NOT_SUPPORTED,
                   "%s: this library was built without the CUDA backend (-Dcuda=disabled)",
                   function);
}

/* NOLINTBEGIN(misc-unused-parameters) */
#define STUB(name, parameters)                                                                     \
    sp_status name parameters                                                                      \
    {                                                                                              \
        return fail_not_built(#name);                                                              \
    }

STUB(sp_cuda_context_create, (const sp_cuda_context_desc *desc, sp_cuda_context **out))
STUB(sp_cuda_context_collect, (sp_cuda_context * context))
STUB(sp_cuda_context_caps, (const sp_cuda_context *context, sp_cuda_caps *caps))
STUB(sp_cuda_stream_signal, (sp_cuda_context * context, struct CUstream_st *stream, sp_point *out))
STUB(sp_cuda_event_wrap,
     (sp_cuda_context * context, const sp_cuda_event_wrap_desc *desc, sp_point *out))
STUB(sp_cuda_stream_signal_ipc, (sp_cuda_context * context, struct CUstream_st *stream,
                                 uint8_t handle[SP_CUDA_IPC_SIZE], sp_point *out))
STUB(sp_cuda_event_open_ipc,
     (sp_cuda_context * context, const uint8_t handle[SP_CUDA_IPC_SIZE], sp_point *out))
STUB(sp_cuda_semaphore_import, (sp_cuda_context * context,
                                const sp_cuda_semaphore_import_desc *desc, sp_cuda_semaphore **out))
STUB(sp_cuda_timeline_point, (sp_cuda_semaphore * semaphore, uint64_t value, sp_point *out))
STUB(sp_cuda_semaphore_point, (sp_cuda_semaphore * semaphore, sp_point *out))
STUB(sp_cuda_binary_point,
     (sp_cuda_semaphore * semaphore, uint64_t key, uint32_t flags, sp_point *out))
STUB(sp_cuda_stream_signal_semaphore, (sp_cuda_context * context, struct CUstream_st *stream,
                                       sp_cuda_semaphore *semaphore, uint64_t value, sp_point *out))
STUB(sp_cuda_stream_wait,
     (sp_cuda_context * context, struct CUstream_st *stream, const sp_point *point))

/* Ending nothing is fine. */
sp_status sp_cuda_context_destroy(sp_cuda_context *context, uint64_t timeout_ns)
{
    return context ? fail_not_built(__func__) : SP_OK;
}

sp_cuda_semaphore *sp_cuda_semaphore_ref(sp_cuda_semaphore *semaphore)
{
    return semaphore;
}

void sp_cuda_semaphore_unref(sp_cuda_semaphore *semaphore) {}

struct CUextSemaphore_st *sp_cuda_semaphore_handle(const sp_cuda_semaphore *semaphore)
{
    return NULL;
}

struct CUevent_st *sp_cuda_event_from_point(const sp_point *point)
{
    return NULL;
}

struct CUextSemaphore_st *sp_cuda_semaphore_from_point(const sp_point *point)
{
    return NULL;
}
/* NOLINTEND(misc-unused-parameters) */
