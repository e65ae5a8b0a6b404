/* SPDX-License-Identifier: MIT
 *
 * The declarations of CUDA's driver API: ffnvcodec's, and here what that lacks.
 */
#ifndef SP_CUDA_CUDA_API_H
#define SP_CUDA_CUDA_API_H

#include <ffnvcodec/dynlink_cuda.h>
#include <string.h>

/* Streams that are no handle: each means the current context's. NULL is the legacy one, too. */
#define SP_CU_STREAM_LEGACY ((CUstream)(uintptr_t)1)
#define SP_CU_STREAM_PER_THREAD ((CUstream)(uintptr_t)2)

#define SP_CU_EVENT_INTERPROCESS 4u

/* CUdevice_attribute */
enum {
    SP_CU_ATTRIBUTE_TIMELINE_INTEROP = 114,
    SP_CU_ATTRIBUTE_IPC_EVENT = 125,
};

/* CUexternalSemaphoreHandleType */
enum {
    SP_CU_SEMAPHORE_D3D11_FENCE = 5,
    SP_CU_SEMAPHORE_KEYED_MUTEX = 7,
    SP_CU_SEMAPHORE_KEYED_MUTEX_KMT = 8,
};

/* CUstreamCaptureMode; how a thread's calls act on captures that go on. */
enum { SP_CU_CAPTURE_RELAXED = 2 };

/* CUstreamCaptureStatus */
enum { SP_CU_CAPTURE_NONE = 0 };

/* CUresult */
enum {
    SP_CU_INVALID_VALUE = 1,
    SP_CU_NOT_INITIALIZED = 3,
    SP_CU_DEINITIALIZED = 4,
    SP_CU_INVALID_CONTEXT = 201,
    SP_CU_MAP_FAILED = 205,
    SP_CU_OPERATING_SYSTEM = 304,
    SP_CU_INVALID_HANDLE = 400,
    SP_CU_CONTEXT_IS_DESTROYED = 709,
    SP_CU_NOT_SUPPORTED = 801,
    SP_CU_CAPTURE_FIRST = 900, /* the results about stream capture */
    SP_CU_CAPTURE_LAST = 908,
};

typedef struct sp_cu_ipc_event {
    char bytes[64];
} sp_cu_ipc_event;

typedef CUresult CUDAAPI sp_cu_driver_get_version(int *version);
typedef CUresult CUDAAPI sp_cu_ctx_get_current(CUcontext *context);
typedef CUresult CUDAAPI sp_cu_ctx_get_id(CUcontext context, unsigned long long *id);
typedef CUresult CUDAAPI sp_cu_ctx_get_api_version(CUcontext context, unsigned int *version);
typedef CUresult CUDAAPI sp_cu_thread_exchange_capture_mode(int *mode);
typedef CUresult CUDAAPI sp_cu_stream_get_ctx(CUstream stream, CUcontext *context);
typedef CUresult CUDAAPI sp_cu_stream_get_id(CUstream stream, unsigned long long *id);
typedef CUresult CUDAAPI sp_cu_stream_is_capturing(CUstream stream, int *status);
typedef CUresult CUDAAPI sp_cu_stream_wait_event(CUstream stream, CUevent event,
                                                 unsigned int flags);
typedef CUresult CUDAAPI sp_cu_ipc_get_event_handle(sp_cu_ipc_event *handle, CUevent event);
typedef CUresult CUDAAPI sp_cu_ipc_open_event_handle(CUevent *event, sp_cu_ipc_event handle);

/* ffnvcodec knows the values of fences only. In CUDA's own structures the words behind them are, in
 * this order: 64 bits for another system's fence, the key of a keyed mutex, a wait's milliseconds.
 */
typedef CUDA_EXTERNAL_SEMAPHORE_SIGNAL_PARAMS sp_cu_semaphore_params;

_Static_assert(sizeof(sp_cu_semaphore_params) == 144, "as in CUDA's own header");

static inline void sp_cu_params_set_key(sp_cu_semaphore_params *params, uint64_t key)
{
    memcpy(&params->params.reserved[2], &key, sizeof(key));
}

static inline void sp_cu_params_wait_for_ever(sp_cu_semaphore_params *params)
{
    params->params.reserved[4] = UINT32_MAX; /* INFINITE */
}

#endif
