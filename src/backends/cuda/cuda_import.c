/* SPDX-License-Identifier: MIT
 *
 * Handles of other APIs' semaphores: screening and import.
 */
#include "cuda_internal.h"

#include <errno.h>
#include <string.h>

/* ---- What the handle is ---- */

typedef struct handle_kind {
    sp_cuda_handle_type type;
    int native; /* CUexternalSemaphoreHandleType */
    bool is_fd;
    bool counting;
    bool keyed;
    bool timeline; /* newer than the others */
} handle_kind;

static const handle_kind kinds[] = {
    {SP_CUDA_BINARY_FD, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD, true, false, false, false},
    {SP_CUDA_TIMELINE_FD, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_FD, true, true,
     false, true},
    {SP_CUDA_BINARY_WIN32, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32, false, false, false,
     false},
    {SP_CUDA_BINARY_KMT, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT, false, false, false,
     false},
    {SP_CUDA_TIMELINE_WIN32, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_TIMELINE_SEMAPHORE_WIN32, false,
     true, false, true},
    {SP_CUDA_D3D12_FENCE, CU_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE, false, true, false, false},
    {SP_CUDA_D3D11_FENCE, SP_CU_SEMAPHORE_D3D11_FENCE, false, true, false, false},
    {SP_CUDA_KEYED_MUTEX, SP_CU_SEMAPHORE_KEYED_MUTEX, false, false, true, false},
    {SP_CUDA_KEYED_MUTEX_KMT, SP_CU_SEMAPHORE_KEYED_MUTEX_KMT, false, false, true, false},
};

static const handle_kind *kind_of(sp_cuda_handle_type type)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(kinds); i++) {
        if (kinds[i].type == type)
            return &kinds[i];
    }
    return NULL;
}

/* ---- Screening ---- */

/* On Linux the driver's opaque fds are character devices. What else there is must not be seen by
 * it: a bad fd has been seen to damage a driver's device. */
static sp_status screen_fd(int fd)
{
    sp_os_fd_kind kind;
    if (!sp_os_fd_get_kind(fd, &kind))
        return sp_fail(SP_ERROR_INVALID_HANDLE, "fd %d is not open", fd);
    if (sp_os_fd_is_no_semaphore(&kind) || !sp_os_fd_is_character_device(&kind))
        return sp_fail(SP_ERROR_INVALID_HANDLE, "fd %d is no semaphore: %s", fd, kind.name);
    return SP_OK;
}

static const char *check_origin(const handle_kind *kind, const sp_point *origin)
{
    if (!origin)
        return NULL;
    if (!kind->counting)
        return "desc->origin is for types with values";
    if (!origin->waiter || !(origin->waiter->features & SP_FEATURE_COUNTING))
        return "desc->origin does not count";
    return sp_cuda_is_timeline(origin->waiter) ? "desc->origin is of CUDA itself" : NULL;
}

static const char *check_desc(const sp_cuda_semaphore_import_desc *desc, const handle_kind *kind)
{
    if (!kind)
        return "unknown desc->type";
    if (!kind->is_fd && !desc->handle)
        return "desc->handle is required for this type";
    if (!kind->is_fd && desc->adopt)
        return "only an fd can be adopted";
    return check_origin(kind, desc->origin);
}

/* ---- Import ---- */

static sp_status import_fd(sp_cuda_context *context, const handle_kind *kind, int fd,
                           CUexternalSemaphore *handle)
{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC native = {
        .type = (CUexternalSemaphoreHandleType)kind->native,
        .handle.fd = sp_os_fd_duplicate(fd),
    };
    if (native.handle.fd < 0) {
        return sp_fail_native(SP_ERROR_SYSTEM, SP_BACKEND_CPU, errno, "fcntl",
                              "fd %d could not be duplicated: %s", fd, strerror(errno));
    }
    CUresult result = context->cu.import_semaphore(handle, &native);
    if (result == CUDA_SUCCESS)
        return SP_OK; /* the duplicate is the driver's now */
    if (!sp_os_fd_reclaim(fd, native.handle.fd, true))
        sp_log_message(&context->log, SP_LOG_WARN, "the driver closed the fd of a failed import");
    return sp_cuda_fail_handle(context, result, "cuImportExternalSemaphore");
}

static sp_status import_handle(sp_cuda_context *context, const handle_kind *kind, void *given,
                               CUexternalSemaphore *handle)
{
    CUDA_EXTERNAL_SEMAPHORE_HANDLE_DESC native = {
        .type = (CUexternalSemaphoreHandleType)kind->native,
        .handle.win32.handle = given,
    };
    CUresult result = context->cu.import_semaphore(handle, &native);
    if (result == CUDA_SUCCESS)
        return SP_OK;
#ifndef _WIN32
    if (result == (CUresult)SP_CU_INVALID_VALUE) {
        return sp_fail_native(SP_ERROR_NOT_SUPPORTED, SP_BACKEND_CUDA, (int64_t)result,
                              "cuImportExternalSemaphore",
                              "this system's driver takes no handles of that type");
    }
#endif
    return sp_cuda_fail_handle(context, result, "cuImportExternalSemaphore");
}

static sp_status import_native(sp_cuda_semaphore *made, const handle_kind *kind,
                               const sp_cuda_semaphore_import_desc *desc)
{
    sp_cuda_context *context = made->context;
    sp_cuda_scope scope;
    sp_status status = sp_cuda_enter(context, &scope);
    if (status != SP_OK)
        return status;
    int mode = sp_cuda_relax(context);
    status = kind->is_fd ? import_fd(context, kind, desc->fd, &made->handle)
                         : import_handle(context, kind, desc->handle, &made->handle);
    sp_cuda_unrelax(context, mode);
    sp_cuda_leave(context, scope);
    return status;
}

static sp_status check_import(const sp_cuda_context *context, const handle_kind *kind,
                              const sp_cuda_semaphore_import_desc *desc)
{
    sp_waiter *unused;
    sp_status status = sp_cuda_check_usable(context);
    if (status == SP_OK && kind->timeline && !context->caps.timeline_semaphore) {
        status = sp_fail(SP_ERROR_NOT_SUPPORTED,
                         "sp_cuda_semaphore_import: this driver or device takes no timelines");
    }
    if (status == SP_OK && kind->is_fd)
        status = screen_fd(desc->fd);
    if (status == SP_OK && desc->origin && sp_waiter_is_forked(desc->origin->waiter))
        status = sp_point_check(desc->origin, &unused);
    return status;
}

sp_status sp_cuda_semaphore_import(sp_cuda_context *context,
                                   const sp_cuda_semaphore_import_desc *desc,
                                   sp_cuda_semaphore **out)
{
    SP_CHECK_ARGUMENT(context && desc && out, "context, desc and out are required");
    SP_CHECK_SIZE(desc);
    const handle_kind *kind = kind_of(desc->type);
    const char *why = check_desc(desc, kind);
    SP_CHECK_ARGUMENT(!why, why);
    sp_status status = check_import(context, kind, desc);
    if (status != SP_OK)
        return status;
    sp_cuda_semaphore *made =
        sp_cuda_semaphore_make(context, kind->counting, kind->keyed, desc->origin);
    if (!made)
        return SP_ERROR_OUT_OF_MEMORY;
    status = import_native(made, kind, desc);
    if (status != SP_OK) {
        sp_cuda_semaphore_free(made);
        return status;
    }
    sp_cuda_semaphore_list(made);
    if (desc->adopt)
        sp_os_fd_close(desc->fd);
    *out = made;
    return SP_OK;
}
