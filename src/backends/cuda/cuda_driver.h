/* SPDX-License-Identifier: MIT
 *
 * The entry points of CUDA's driver. Each context object has its own table, so that the driver and
 * a test's double can live side by side.
 */
#ifndef SP_CUDA_CUDA_DRIVER_H
#define SP_CUDA_CUDA_DRIVER_H

#include "backends/cuda/cuda_api.h"

#include <syncpoint/cuda.h>

/* X(member, type, symbol) */
#define SP_CUDA_REQUIRED(X)                                                                        \
    X(driver_get_version, sp_cu_driver_get_version, "cuDriverGetVersion")                          \
    X(get_error_name, tcuGetErrorName, "cuGetErrorName")                                           \
    X(ctx_get_current, sp_cu_ctx_get_current, "cuCtxGetCurrent")                                   \
    X(ctx_push, tcuCtxPushCurrent_v2, "cuCtxPushCurrent_v2")                                       \
    X(ctx_pop, tcuCtxPopCurrent_v2, "cuCtxPopCurrent_v2")                                          \
    X(ctx_get_device, tcuCtxGetDevice, "cuCtxGetDevice")                                           \
    X(ctx_get_api_version, sp_cu_ctx_get_api_version, "cuCtxGetApiVersion")                        \
    X(device_get_uuid, tcuDeviceGetUuid, "cuDeviceGetUuid")                                        \
    X(device_get_attribute, tcuDeviceGetAttribute, "cuDeviceGetAttribute")                         \
    X(exchange_capture_mode, sp_cu_thread_exchange_capture_mode,                                   \
      "cuThreadExchangeStreamCaptureMode")                                                         \
    X(stream_create, tcuStreamCreate, "cuStreamCreate")                                            \
    X(stream_destroy, tcuStreamDestroy_v2, "cuStreamDestroy_v2")                                   \
    X(stream_get_ctx, sp_cu_stream_get_ctx, "cuStreamGetCtx")                                      \
    X(stream_is_capturing, sp_cu_stream_is_capturing, "cuStreamIsCapturing")                       \
    X(stream_wait_event, sp_cu_stream_wait_event, "cuStreamWaitEvent")                             \
    X(event_create, tcuEventCreate, "cuEventCreate")                                               \
    X(event_destroy, tcuEventDestroy_v2, "cuEventDestroy_v2")                                      \
    X(event_query, tcuEventQuery, "cuEventQuery")                                                  \
    X(event_record, tcuEventRecord, "cuEventRecord")                                               \
    X(ipc_get_event_handle, sp_cu_ipc_get_event_handle, "cuIpcGetEventHandle")                     \
    X(ipc_open_event_handle, sp_cu_ipc_open_event_handle, "cuIpcOpenEventHandle")                  \
    X(import_semaphore, tcuImportExternalSemaphore, "cuImportExternalSemaphore")                   \
    X(destroy_semaphore, tcuDestroyExternalSemaphore, "cuDestroyExternalSemaphore")                \
    X(signal_semaphores, tcuSignalExternalSemaphoresAsync, "cuSignalExternalSemaphoresAsync")      \
    X(wait_semaphores, tcuWaitExternalSemaphoresAsync, "cuWaitExternalSemaphoresAsync")

/* From 12.0 on. */
#define SP_CUDA_OPTIONAL(X)                                                                        \
    X(ctx_get_id, sp_cu_ctx_get_id, "cuCtxGetId")                                                  \
    X(stream_get_id, sp_cu_stream_get_id, "cuStreamGetId")

typedef struct sp_cuda_driver {
    void *library;
    int version; /* 1000 * major + 10 * minor */
#define SP_CUDA_MEMBER(member, type, symbol) type *member;
    SP_CUDA_REQUIRED(SP_CUDA_MEMBER)
    SP_CUDA_OPTIONAL(SP_CUDA_MEMBER)
#undef SP_CUDA_MEMBER
} sp_cuda_driver;

/* Opens the library (NULL: the system's) and fills the table. NOT_SUPPORTED names what is missing.
 */
sp_status sp_cuda_driver_load(sp_cuda_driver *driver, const char *library);
void sp_cuda_driver_unload(sp_cuda_driver *driver);

#endif
