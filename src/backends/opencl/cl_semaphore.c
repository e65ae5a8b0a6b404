/* SPDX-License-Identifier: MIT
 *
 * Semaphore objects: imported, or the user's own.
 */
#include "cl_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

sp_status sp_cl_check_semaphores(const sp_cl_context *context)
{
    sp_status status = sp_cl_check(context);
    if (status == SP_OK && !context->caps.semaphore)
        status = sp_fail(SP_ERROR_NOT_SUPPORTED, "the context has no semaphores: %s",
                         context->why_no_semaphore);
    return status;
}

/* ---- Making and releasing ---- */

static void list_add(sp_cl_context *context, sp_cl_semaphore *semaphore)
{
    sp_os_spin_lock(&context->lock);
    semaphore->next = context->semaphores;
    if (semaphore->next)
        semaphore->next->prev = semaphore;
    context->semaphores = semaphore;
    sp_os_spin_unlock(&context->lock);
}

static void list_remove_locked(sp_cl_context *context, sp_cl_semaphore *semaphore)
{
    if (semaphore->prev)
        semaphore->prev->next = semaphore->next;
    else
        context->semaphores = semaphore->next;
    if (semaphore->next)
        semaphore->next->prev = semaphore->prev;
}

sp_status sp_cl_semaphore_make(sp_cl_context *context, cl_semaphore_khr handle,
                               sp_cl_semaphore **out)
{
    sp_cl_semaphore *made = calloc(1, sizeof(*made));
    if (!made || !sp_os_mutex_init(&made->lock)) {
        free(made);
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "a semaphore object: out of memory");
    }
    made->context = sp_cl_context_ref(context);
    made->handle = handle;
    made->refs = 1;
    list_add(context, made);
    *out = made;
    return SP_OK;
}

/* Its last wait may be pending only at the end of the context. */
static void release_handles(sp_cl_semaphore *semaphore)
{
    const sp_cl_driver *cl = &semaphore->context->cl;
    if (semaphore->last_wait)
        cl->release_event(semaphore->last_wait);
    if (semaphore->handle)
        cl->release_semaphore(semaphore->handle);
    semaphore->last_wait = NULL;
    semaphore->handle = NULL;
}

/* Takes it out of the list: from then on the end of the context leaves its handles to us. */
static bool take_out(sp_cl_context *context, sp_cl_semaphore *semaphore)
{
    sp_os_spin_lock(&context->lock);
    bool alive = !context->dead;
    context->releasing += alive;
    list_remove_locked(context, semaphore);
    sp_os_spin_unlock(&context->lock);
    return alive;
}

/* The driver keeps what commands that are enqueued still use. */
static void semaphore_free(sp_cl_semaphore *semaphore)
{
    sp_cl_context *context = semaphore->context;
    if (!sp_cl_is_forked(context)) {
        if (take_out(context, semaphore)) {
            if (semaphore->last_wait)
                sp_cl_release_event(context, semaphore->last_wait);
            semaphore->last_wait = NULL;
            release_handles(semaphore);
            sp_cl_end_release(context);
        }
        sp_os_mutex_fini(&semaphore->lock);
    }
    free(semaphore);
    sp_cl_context_unref(context);
}

void sp_cl_semaphores_drop_locked(sp_cl_context *context)
{
    for (sp_cl_semaphore *at = context->semaphores; at; at = at->next)
        release_handles(at);
}

sp_cl_semaphore *sp_cl_semaphore_ref(sp_cl_semaphore *semaphore)
{
    if (semaphore)
        sp_ref_inc(&semaphore->refs);
    return semaphore;
}

void sp_cl_semaphore_unref(sp_cl_semaphore *semaphore)
{
    if (semaphore && sp_ref_dec(&semaphore->refs))
        semaphore_free(semaphore);
}

cl_semaphore_khr sp_cl_semaphore_handle(const sp_cl_semaphore *semaphore)
{
    return semaphore ? semaphore->handle : NULL;
}

/* ---- The user's own ---- */

static sp_status check_wrapped(sp_cl_context *context, cl_semaphore_khr semaphore)
{
    cl_context owner = NULL;
    cl_semaphore_type_khr type = 0;
    const sp_cl_driver *cl = &context->cl;
    cl_int result =
        cl->get_semaphore_info(semaphore, CL_SEMAPHORE_CONTEXT_KHR, sizeof(owner), &owner, NULL);
    if (result == CL_SUCCESS)
        result =
            cl->get_semaphore_info(semaphore, CL_SEMAPHORE_TYPE_KHR, sizeof(type), &type, NULL);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clGetSemaphoreInfoKHR");
    if (owner != context->handle)
        return sp_fail(SP_ERROR_WRONG_CONTEXT,
                       "sp_cl_semaphore_wrap: the semaphore is of another cl_context");
    if (type != CL_SEMAPHORE_TYPE_BINARY_KHR)
        return sp_fail(SP_ERROR_NOT_SUPPORTED, "sp_cl_semaphore_wrap: the semaphore is not binary");
    return SP_OK;
}

sp_status sp_cl_semaphore_wrap(sp_cl_context *context, cl_semaphore_khr semaphore,
                               sp_cl_semaphore **out)
{
    SP_CHECK_ARGUMENT(context && semaphore && out, "context, semaphore and out are required");
    sp_status status = sp_cl_check_semaphores(context);
    if (status == SP_OK)
        status = check_wrapped(context, semaphore);
    if (status != SP_OK)
        return status;
    cl_int result = context->cl.retain_semaphore(semaphore);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clRetainSemaphoreKHR");
    status = sp_cl_semaphore_make(context, semaphore, out);
    if (status != SP_OK)
        context->cl.release_semaphore(semaphore);
    return status;
}

/* ---- Import ---- */

static sp_status screen(const sp_cl_context *context, int fd)
{
    sp_os_fd_kind kind;
    if (!context->caps.import_opaque_fd)
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_cl_semaphore_import: the context imports no semaphores: %s",
                       context->why_no_import);
    if (!sp_os_fd_get_kind(fd, &kind))
        return sp_fail(SP_ERROR_INVALID_HANDLE, "fd %d is not open", fd);
    /* The drivers that import export nothing that it could be compared with. */
    if (sp_os_fd_is_no_semaphore(&kind))
        return sp_fail(SP_ERROR_INVALID_HANDLE, "fd %d is no semaphore: %s", fd, kind.name);
    return SP_OK;
}

/* What the ratified extension calls the property; the header at hand may be older. */
#define DEVICE_LIST ((cl_semaphore_properties_khr)0x2053)

static cl_semaphore_khr create_from(const sp_cl_context *context, int fd, cl_int *result)
{
    cl_semaphore_properties_khr properties[] = {
        CL_SEMAPHORE_TYPE_KHR,
        CL_SEMAPHORE_TYPE_BINARY_KHR,
        CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR,
        (cl_semaphore_properties_khr)fd,
        context->import_device ? DEVICE_LIST : 0,
        (cl_semaphore_properties_khr)(uintptr_t)context->import_device,
        0, /* the end of the devices */
        0,
    };
    *result = CL_SUCCESS;
    return context->cl.create_semaphore(context->handle, properties, result);
}

static sp_status fail_import(cl_int result)
{
    /* What drivers say to a handle of the right kind that they cannot use. */
    if (result == CL_INVALID_VALUE || result == CL_INVALID_PROPERTY) {
        return sp_fail_native(SP_ERROR_INVALID_HANDLE, SP_BACKEND_OPENCL, result,
                              "clCreateSemaphoreWithPropertiesKHR",
                              "the driver cannot use the handle: its maker may be another driver");
    }
    return sp_cl_fail(result, "clCreateSemaphoreWithPropertiesKHR");
}

/* On success the driver owns the duplicate. */
static sp_status import_duplicate(sp_cl_context *context, int fd, cl_semaphore_khr *handle)
{
    int duplicate = sp_os_fd_duplicate(fd);
    if (duplicate < 0) {
        return sp_fail_native(SP_ERROR_SYSTEM, SP_BACKEND_CPU, errno, "fcntl",
                              "fd %d could not be duplicated: %s", fd, strerror(errno));
    }
    cl_int result;
    *handle = create_from(context, duplicate, &result);
    if (*handle)
        return SP_OK;
    if (!sp_os_fd_reclaim(fd, duplicate, true))
        sp_log_message(&context->log, SP_LOG_WARN, "the driver closed the fd of a failed import");
    return fail_import(result);
}

sp_status sp_cl_semaphore_import(sp_cl_context *context, const sp_cl_semaphore_import_desc *desc,
                                 sp_cl_semaphore **out)
{
    SP_CHECK_ARGUMENT(context && desc && out, "context, desc and out are required");
    SP_CHECK_SIZE(desc);
    cl_semaphore_khr handle = NULL;
    sp_status status = sp_cl_check(context);
    if (status == SP_OK)
        status = screen(context, desc->fd);
    if (status == SP_OK)
        status = import_duplicate(context, desc->fd, &handle);
    if (status != SP_OK)
        return status;
    status = sp_cl_semaphore_make(context, handle, out);
    if (status != SP_OK) {
        context->cl.release_semaphore(handle);
        return status;
    }
    if (desc->adopt)
        sp_os_fd_close(desc->fd);
    return SP_OK;
}
