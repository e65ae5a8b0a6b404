/* SPDX-License-Identifier: MIT
 *
 * Events between processes.
 */
#include "cuda_internal.h"

#include <string.h>

_Static_assert(sizeof(sp_cu_ipc_event) == SP_CUDA_IPC_SIZE, "the driver's handle");

static sp_status check_ipc(const sp_cuda_context *context)
{
    sp_status status = sp_cuda_check_usable(context);
    if (status != SP_OK || context->caps.ipc_events)
        return status;
    return sp_fail(SP_ERROR_NOT_SUPPORTED, "this device or driver has no events between processes");
}

/* Not of the pool: to record it again would be seen by the other process. */
static sp_status make_event(sp_cuda_context *context, sp_cuda_event **out)
{
    CUevent handle = NULL;
    int mode = sp_cuda_relax(context);
    CUresult result =
        context->cu.event_create(&handle, CU_EVENT_DISABLE_TIMING | SP_CU_EVENT_INTERPROCESS);
    sp_status status = result == CUDA_SUCCESS ? sp_cuda_event_around(context, handle, true, out)
                                              : sp_cuda_fail(context, result, "cuEventCreate");
    if (status != SP_OK && handle)
        context->cu.event_destroy(handle);
    sp_cuda_unrelax(context, mode);
    return status;
}

static sp_status get_handle(sp_cuda_event *event, sp_cu_ipc_event *handle)
{
    sp_cuda_context *context = event->context;
    int mode = sp_cuda_relax(context);
    CUresult result = context->cu.ipc_get_event_handle(handle, event->handle);
    sp_cuda_unrelax(context, mode);
    return result == CUDA_SUCCESS ? SP_OK : sp_cuda_fail(context, result, "cuIpcGetEventHandle");
}

/* Recorded before the handle is got: who opens it finds a record. */
static sp_status signal_ipc(sp_cuda_context *context, CUstream stream, sp_cu_ipc_event *handle,
                            sp_cuda_event **out)
{
    sp_cuda_event *event = NULL;
    sp_status status = make_event(context, &event);
    if (status != SP_OK)
        return status;
    status = sp_cuda_event_record(event, stream);
    if (status == SP_OK)
        status = get_handle(event, handle);
    if (status != SP_OK) {
        sp_error error = *sp_last_error();
        sp_cuda_event_unref(event);
        return sp_fail_with(&error);
    }
    *out = event;
    return SP_OK;
}

sp_status sp_cuda_stream_signal_ipc(sp_cuda_context *context, CUstream stream,
                                    uint8_t handle[SP_CUDA_IPC_SIZE], sp_point *out)
{
    sp_cuda_scope scope;
    sp_cuda_event *event = NULL;
    sp_cu_ipc_event bytes;
    SP_CHECK_ARGUMENT(context && handle && out, "context, handle and out are required");
    sp_status status = check_ipc(context);
    if (status == SP_OK)
        status = sp_cuda_enter_stream(context, stream, &scope);
    if (status != SP_OK)
        return status;
    status = signal_ipc(context, stream, &bytes, &event);
    sp_cuda_leave(context, scope);
    if (status != SP_OK)
        return status;
    memcpy(handle, bytes.bytes, SP_CUDA_IPC_SIZE);
    sp_cuda_event_point(event, out);
    return SP_OK;
}

static sp_status open_event(sp_cuda_context *context, sp_cu_ipc_event bytes, sp_cuda_event **out)
{
    CUevent handle = NULL;
    int mode = sp_cuda_relax(context);
    CUresult result = context->cu.ipc_open_event_handle(&handle, bytes);
    sp_status status = SP_OK;
    if (result != CUDA_SUCCESS)
        status = sp_cuda_fail_handle(context, result, "cuIpcOpenEventHandle");
    if (status == SP_OK) {
        status = sp_cuda_event_around(context, handle, true, out);
        if (status != SP_OK)
            context->cu.event_destroy(handle);
    }
    sp_cuda_unrelax(context, mode);
    return status;
}

sp_status sp_cuda_event_open_ipc(sp_cuda_context *context, const uint8_t handle[SP_CUDA_IPC_SIZE],
                                 sp_point *out)
{
    sp_cuda_scope scope;
    sp_cuda_event *event = NULL;
    sp_cu_ipc_event bytes;
    SP_CHECK_ARGUMENT(context && handle && out, "context, handle and out are required");
    sp_status status = check_ipc(context);
    if (status == SP_OK)
        status = sp_cuda_enter(context, &scope);
    if (status != SP_OK)
        return status;
    memcpy(bytes.bytes, handle, SP_CUDA_IPC_SIZE);
    status = open_event(context, bytes, &event);
    sp_cuda_leave(context, scope);
    if (status == SP_OK)
        sp_cuda_event_point(event, out);
    return status;
}
