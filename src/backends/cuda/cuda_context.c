/* SPDX-License-Identifier: MIT
 *
 * The context object: its beginning, its end, and what every call checks first.
 */
#include "cuda_internal.h"

#include <stdlib.h>
#include <string.h>

sp_status sp_cuda_check(const sp_cuda_context *context)
{
    if (sp_cuda_is_forked(context))
        return sp_fail_forked();
    if (sp_cuda_gone(context) & (SP_CUDA_DEAD | SP_CUDA_ENDED))
        return sp_cuda_fail_gone(context);
    return SP_OK;
}

sp_status sp_cuda_check_usable(const sp_cuda_context *context)
{
    if (SP_LIKELY(!sp_cuda_is_forked(context) && sp_cuda_gone(context) == 0))
        return SP_OK;
    return sp_cuda_is_forked(context) ? sp_fail_forked() : sp_cuda_fail_gone(context);
}

void sp_cuda_note_gone(sp_cuda_context *context, uint32_t bit)
{
    __atomic_fetch_or(&context->gone, bit, __ATOMIC_SEQ_CST);
}

sp_cuda_context *sp_cuda_context_ref(sp_cuda_context *context)
{
    sp_ref_inc(&context->refs);
    return context;
}

void sp_cuda_context_unref(sp_cuda_context *context)
{
    if (!sp_ref_dec(&context->refs))
        return;
    sp_pool_empty(&context->events);
    sp_pool_empty(&context->others);
    sp_pool_empty(&context->signals);
    sp_pool_empty(&context->lanes);
    sp_pool_empty(&context->uses);
    if (!sp_cuda_is_forked(context)) {
        sp_os_mutex_fini(&context->lock);
        sp_os_mutex_fini(&context->lane_streams_lock);
        sp_cuda_driver_unload(&context->cu);
    }
    free(context);
}

/* The user, and the pool of events as far as none is in use, let go. */
static void let_go(sp_cuda_context *context)
{
    if (sp_pool_close(&context->events, sp_cuda_is_forked(context)))
        sp_ref_dec(&context->refs); /* not the last: the user's is there */
    sp_cuda_context_unref(context);
}

/* ---- The beginning ---- */

static int attribute(const sp_cuda_driver *cu, int which, CUdevice device)
{
    int value = 0;
    CUresult result = cu->device_get_attribute(&value, (CUdevice_attribute)which, device);
    return result == CUDA_SUCCESS ? value : 0;
}

static sp_status read_caps(sp_cuda_context *context)
{
    const sp_cuda_driver *cu = &context->cu;
    sp_cuda_caps *caps = &context->caps;
    CUdevice device = 0;
    CUuuid uuid;
    CUresult result = cu->ctx_get_device(&device);
    if (result != CUDA_SUCCESS)
        return sp_cuda_fail(context, result, "cuCtxGetDevice");
    *caps = (sp_cuda_caps){
        .size = sizeof(*caps),
        .driver_version = cu->version,
        .device_ordinal = device,
        .external_semaphore = true,
        .timeline_semaphore =
            cu->version >= 11020 && attribute(cu, SP_CU_ATTRIBUTE_TIMELINE_INTEROP, device) != 0,
        /* Older drivers do not know that attribute, but IPC is older. */
        .ipc_events = cu->version >= 12000
                          ? attribute(cu, SP_CU_ATTRIBUTE_IPC_EVENT, device) != 0
                          : attribute(cu, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, device) != 0,
    };
    caps->has_uuid = cu->device_get_uuid(&uuid, device) == CUDA_SUCCESS;
    if (caps->has_uuid)
        memcpy(caps->device_uuid, uuid.bytes, sizeof(caps->device_uuid));
    return SP_OK;
}

/* The caller's context, or the current one. */
static sp_status find_handle(sp_cuda_context *context, CUcontext given)
{
    context->handle = given;
    if (given)
        return SP_OK;
    CUresult result = context->cu.ctx_get_current(&context->handle);
    if (result == CUDA_SUCCESS && context->handle)
        return SP_OK;
    return sp_fail_native(SP_ERROR_WRONG_CONTEXT, SP_BACKEND_CUDA, (int64_t)result,
                          "cuCtxGetCurrent",
                          "sp_cuda_context_create: no context is given, and none is current");
}

static sp_status read_id(sp_cuda_context *context)
{
    if (!context->cu.ctx_get_id)
        return SP_OK;
    CUresult result = context->cu.ctx_get_id(context->handle, &context->id);
    if (result == CUDA_SUCCESS)
        return SP_OK;
    if (result != (CUresult)SP_CU_INVALID_VALUE && result != (CUresult)SP_CU_INVALID_HANDLE)
        return sp_cuda_fail(context, result, "cuCtxGetId");
    return sp_fail_native(SP_ERROR_INVALID_STATE, SP_BACKEND_CUDA, (int64_t)result, "cuCtxGetId",
                          "sp_cuda_context_create: the CUcontext does not exist (any more)");
}

static sp_status start(sp_cuda_context *context, CUcontext given)
{
    sp_cuda_scope scope;
    int mode = sp_cuda_relax(context);
    sp_status status = find_handle(context, given);
    if (status == SP_OK)
        status = read_id(context);
    if (status == SP_OK)
        status = sp_cuda_enter(context, &scope);
    if (status == SP_OK) {
        status = read_caps(context);
        sp_cuda_leave(context, scope);
    }
    sp_cuda_unrelax(context, mode);
    return status;
}

static bool init_locks(sp_cuda_context *context)
{
    if (!sp_os_mutex_init(&context->lock))
        return false;
    if (sp_os_mutex_init(&context->lane_streams_lock))
        return true;
    sp_os_mutex_fini(&context->lock);
    return false;
}

static sp_cuda_context *allocate(const sp_cuda_context_desc *desc, const sp_cuda_driver *driver)
{
    sp_cuda_context *context = calloc(1, sizeof(*context));
    bool locks = context && init_locks(context);
    if (!locks) {
        free(context);
        sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_cuda_context_create: out of memory");
        return NULL;
    }
    sp_os_watch_forks();
    context->cu = *driver;
    context->log = desc->log;
    context->refs = 2; /* the user's, and that of the pool of events */
    context->fork_generation = sp_fork_generation;
    context->events.object_size = sizeof(sp_cuda_event);
    context->others.object_size = sizeof(sp_cuda_event);
    context->signals.object_size = sizeof(sp_cuda_signal);
    context->lanes.object_size = sizeof(sp_cuda_lane);
    context->uses.object_size = sizeof(sp_cuda_use);
    return context;
}

sp_status sp_cuda_context_create(const sp_cuda_context_desc *desc, sp_cuda_context **out)
{
    sp_cuda_driver driver;
    SP_CHECK_ARGUMENT(desc && out, "desc and out are required");
    SP_CHECK_SIZE(desc);
    sp_status status = sp_cuda_driver_load(&driver, desc->library);
    if (status != SP_OK)
        return status;
    sp_cuda_context *context = allocate(desc, &driver);
    if (!context) {
        sp_cuda_driver_unload(&driver);
        return SP_ERROR_OUT_OF_MEMORY;
    }
    status = start(context, desc->context);
    if (status != SP_OK) {
        let_go(context);
        return status;
    }
    *out = context;
    return SP_OK;
}

sp_status sp_cuda_context_caps(const sp_cuda_context *context, sp_cuda_caps *caps)
{
    SP_CHECK_ARGUMENT(context && caps, "context and caps are required");
    SP_CHECK_SIZE(caps);
    if (sp_cuda_is_forked(context))
        return sp_fail_forked();
    *caps = context->caps;
    return SP_OK;
}

/* ---- The end ---- */

/* What is left goes, if the driver still takes it, and nobody else calls it for this context again.
 */
static void destroy_handles(sp_cuda_context *context)
{
    sp_cuda_scope scope;
    int mode = sp_cuda_relax(context);
    sp_status entered = sp_cuda_enter(context, &scope);
    if (entered != SP_OK)
        sp_cuda_note_gone(context, SP_CUDA_ENDED);
    sp_os_mutex_lock(&context->lock);
    sp_cuda_note_gone(context, SP_CUDA_DEAD);
    sp_cuda_lane_streams_destroy(context);
    sp_cuda_events_destroy_locked(context);
    sp_os_mutex_unlock(&context->lock);
    sp_cuda_semaphore *unheld = sp_cuda_semaphores_destroy(context);
    if (entered == SP_OK)
        sp_cuda_leave(context, scope);
    sp_cuda_unrelax(context, mode);
    sp_cuda_semaphores_free(unheld);
    sp_cuda_lane_streams_forget(context);
}

sp_status sp_cuda_context_destroy(sp_cuda_context *context, uint64_t timeout_ns)
{
    if (!context)
        return SP_OK;
    if (sp_cuda_is_forked(context)) {
        sp_cuda_semaphore *retired = context->retired;
        context->retired = NULL;
        sp_cuda_semaphores_free(retired);
        sp_cuda_lane_streams_forget(context);
        let_go(context);
        return sp_fail_forked();
    }
    sp_status status = sp_cuda_semaphores_wait(context, sp_deadline_ns(timeout_ns));
    if (status != SP_OK)
        return status;
    sp_cuda_signals_end(context);
    sp_cuda_semaphores_end(context);
    sp_cuda_events_end(context);
    destroy_handles(context);
    let_go(context);
    return SP_OK;
}
