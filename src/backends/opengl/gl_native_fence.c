/* SPDX-License-Identifier: MIT
 *
 * EGL_ANDROID_native_fence_sync: EGLSyncs that are made of a sync_file, or give one.
 */
#include "gl_internal.h"

#include <errno.h>
#include <string.h>

/* How long an import waits for the helper while another thread's wait has it: one driver holds that
 * one up until its signal comes. */
#define HELPER_PATIENCE_NS UINT64_C(100000000)

sp_status sp_gl_native_fence_insert(sp_gl_sync *sync)
{
    sp_gl_context *context = sync->context;
    EGLSync native =
        context->gl.egl_create_sync_khr(context->display, EGL_SYNC_NATIVE_FENCE_ANDROID, NULL);
    if (native == EGL_NO_SYNC)
        return sp_gl_fail_egl(context, "eglCreateSyncKHR");
    sync->display = context->display;
    sync->native = native;
    sync->exportable = true;
    /* Only now there is a sync_file. */
    context->gl.flush();
    return SP_OK;
}

/* ---- Import ---- */

/* The driver takes the duplicate if it succeeds. */
static sp_status import_duplicate(sp_gl_sync *sync, int fd)
{
    sp_gl_context *context = sync->context;
    int duplicate = sp_os_fd_duplicate(fd);
    if (duplicate < 0) {
        return sp_fail_native(SP_ERROR_SYSTEM, SP_BACKEND_CPU, errno, "fcntl(F_DUPFD_CLOEXEC)",
                              "sp_gl_sync_import_fd: the fd cannot be duplicated: %s",
                              strerror(errno));
    }
    const EGLint attributes[] = {EGL_SYNC_NATIVE_FENCE_FD_ANDROID, duplicate, EGL_NONE};
    EGLSync native = context->gl.egl_create_sync_khr(context->display,
                                                     EGL_SYNC_NATIVE_FENCE_ANDROID, attributes);
    if (native == EGL_NO_SYNC) {
        sp_status status = sp_gl_fail_egl(context, "eglCreateSyncKHR");
        if (!sp_os_fd_reclaim(fd, duplicate, true))
            sp_log_message(&context->log, SP_LOG_WARN,
                           "the driver closed the fd of a failed import");
        return status;
    }
    sync->display = context->display;
    sync->native = native;
    sync->exportable = true;
    return SP_OK;
}

/* Drivers make no sync without a current context, though this one has no commands to wait for. */
static sp_status import_in_scope(sp_gl_sync *sync, int fd)
{
    sp_gl_scope scope;
    sp_status status =
        sp_gl_scope_enter(sync->context, SP_GL_TO_MAKE, sp_deadline_ns(HELPER_PATIENCE_NS), &scope);
    if (status != SP_OK)
        return status;
    status = import_duplicate(sync, fd);
    sp_gl_scope_leave(&scope);
    return status;
}

static sp_status screen(const sp_gl_context *context, int fd)
{
    if (!context->caps.native_fence) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED, "sp_gl_sync_import_fd: the display does not have "
                                               "EGL_ANDROID_native_fence_sync");
    }
    if (fd != -1 && !sp_os_fd_is_sync_file(fd)) {
        return sp_fail(SP_ERROR_INVALID_HANDLE,
                       "sp_gl_sync_import_fd: fd %d is not an open sync_file", fd);
    }
    return SP_OK;
}

sp_status sp_gl_sync_import_fd(sp_gl_context *context, int fd, bool adopt, sp_point *out)
{
    SP_CHECK_ARGUMENT(context && out, "context and out are required");
    sp_status status = sp_gl_check(context);
    if (status == SP_OK)
        status = screen(context, fd);
    if (status != SP_OK)
        return status;
    sp_gl_sync *sync;
    status = sp_gl_sync_make(context, &sync);
    if (status != SP_OK)
        return status;
    if (fd == -1) { /* to EGL it would mean: a new fence */
        sync->exportable = true;
        sp_waiter_reached(&sync->base, 1);
    } else {
        status = import_in_scope(sync, fd);
    }
    if (status != SP_OK) {
        sp_error error = *sp_last_error();
        sp_gl_sync_unref(sync);
        return status < 0 ? sp_fail_with(&error) : status;
    }
    if (adopt && fd >= 0)
        sp_os_fd_close(fd);
    *out = sp_gl_sync_point(sync);
    return SP_OK;
}

/* ---- Export ---- */

/* -1 is how the driver says that it failed, and how some say that the fence is reached. */
static sp_status explain_no_fd(sp_gl_sync *sync, int error, int *fd)
{
    if (error == EMFILE || error == ENFILE) {
        return sp_fail_native(SP_ERROR_SYSTEM, SP_BACKEND_OPENGL, error,
                              "eglDupNativeFenceFDANDROID",
                              "sp_gl_point_export_sync_fd: no free file descriptor");
    }
    sp_status failed = sp_gl_fail_egl(sync->context, "eglDupNativeFenceFDANDROID");
    sp_error kept = *sp_last_error();
    sp_status status = sp_gl_sync_look(sync);
    if (status == SP_OK)
        *fd = -1;
    return status == SP_PENDING && failed ? sp_fail_with(&kept) : status;
}

static sp_status export_native(sp_gl_sync *sync, int *fd)
{
    sp_gl_context *context = sync->context;
    if (!sp_gl_begin_call(context))
        return sp_gl_fail_gone(context);
    errno = 0;
    int exported = context->gl.egl_dup_native_fence_fd(sync->display, sp_gl_sync_native(sync));
    int error = errno;
    sp_status status = SP_OK;
    if (exported < 0)
        status = explain_no_fd(sync, error, fd);
    else
        *fd = exported;
    sp_gl_end_call(context);
    return status;
}

sp_status sp_gl_point_export_sync_fd(const sp_point *point, int *fd)
{
    sp_waiter *waiter;
    SP_CHECK_ARGUMENT(point && fd, "point and fd are required");
    sp_status status = sp_point_check(point, &waiter);
    if (status != SP_OK)
        return status;
    if (!waiter || waiter->ops != &sp_gl_sync_ops || !sp_gl_sync_of(waiter)->exportable) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_gl_point_export_sync_fd: the point was not made with SP_GL_EXPORTABLE, "
                       "nor from a sync_file");
    }
    if (sp_waiter_known_reached(waiter, 1)) {
        *fd = -1;
        return SP_OK;
    }
    status = sp_waiter_check_failed(waiter, 1);
    return status == SP_OK ? export_native(sp_gl_sync_of(waiter), fd) : status;
}
