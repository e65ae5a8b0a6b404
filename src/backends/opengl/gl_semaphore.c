/* SPDX-License-Identifier: MIT
 *
 * Semaphore objects: imported, since GL has no others.
 */
#include "gl_internal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Binary semaphores as objects: only counted, their signals are the waiters ---- */

static sp_status binary_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)waiter;
    (void)value;
    (void)reached;
    return sp_fail(SP_ERROR_NOT_SUPPORTED, "a binary semaphore has no value");
}

/* The last reference of a semaphore of any type. */
void sp_gl_semaphore_release(sp_waiter *waiter)
{
    sp_gl_semaphore *semaphore = sp_gl_semaphore_of(waiter);
    sp_gl_semaphore_drop_fences(semaphore);
    if (sp_waiter_is_forked(waiter))
        sp_gl_semaphore_free(semaphore);
    else
        sp_gl_retire_semaphore(semaphore);
}

const sp_waiter_ops sp_gl_binary_ops = {
    .size = sizeof(sp_waiter_ops),
    .backend = SP_BACKEND_OPENGL,
    .name = "opengl binary semaphore",
    .probe = binary_probe,
    .destroy = sp_gl_semaphore_release,
};

/* ---- Objects ---- */

static bool init_locks(sp_gl_semaphore *made)
{
    if (!sp_os_mutex_init(&made->lock))
        return false;
    if (sp_os_mutex_init(&made->order))
        return true;
    sp_os_mutex_fini(&made->lock);
    return false;
}

static sp_gl_semaphore *allocate(sp_gl_context *context, sp_gl_semaphore_type type)
{
    sp_gl_semaphore *made = calloc(1, sizeof(*made));
    if (!made || !init_locks(made)) {
        free(made);
        sp_fail(SP_ERROR_OUT_OF_MEMORY, "a semaphore object: out of memory");
        return NULL;
    }
    made->type = type;
    sp_waiter_setup(&made->base, sp_gl_has_values(made) ? &sp_gl_timeline_ops : &sp_gl_binary_ops);
    made->context = sp_gl_context_ref(context);
    return made;
}

void sp_gl_semaphore_free(sp_gl_semaphore *semaphore)
{
    sp_gl_context *context = semaphore->context;
    if (!sp_gl_is_forked(context)) {
        sp_os_mutex_fini(&semaphore->order);
        sp_os_mutex_fini(&semaphore->lock);
    }
    free(semaphore);
    sp_gl_context_unref(context);
}

/* ---- Import ---- */

static sp_status make_name(sp_gl_semaphore *made, sp_gl_scope *scope)
{
    const sp_gl_driver *gl = &made->context->gl;
    GLuint name = 0;
    const GLint type = GL_SEMAPHORE_TYPE_TIMELINE_NV;
    bool timeline = made->type == SP_GL_SEMAPHORE_TIMELINE;
    const char *call = timeline ? "glCreateSemaphoresNV" : "glGenSemaphoresEXT";
    sp_status status = SP_GL_CALL(
        scope, call, timeline ? gl->create_semaphores(1, &name) : gl->gen_semaphores(1, &name));
    if (status == SP_OK && name == 0)
        status = sp_fail_native(SP_ERROR_BACKEND, SP_BACKEND_OPENGL, 0, call, "%s: no name", call);
    if (status != SP_OK)
        return status;
    made->name = name;
    if (!timeline)
        return SP_OK;
    return SP_GL_CALL(scope, "glSemaphoreParameterivNV",
                      gl->semaphore_parameter_iv(name, GL_SEMAPHORE_TYPE_NV, &type));
}

/* That GL calls the operation or the value invalid means that it did not like the handle. */
static sp_status explain_import(sp_status status, const char *call)
{
    int64_t error = status == SP_OK ? GL_NO_ERROR : sp_last_error()->native_code;
    if (error != GL_INVALID_VALUE && error != GL_INVALID_OPERATION)
        return status;
    return sp_fail_native(SP_ERROR_INVALID_HANDLE, SP_BACKEND_OPENGL, error, call,
                          "%s: 0x%04x: the handle is not one of this device's semaphores", call,
                          (unsigned)error);
}

/* The driver takes the duplicate if it succeeds. */
static sp_status import_fd(sp_gl_semaphore *made, sp_gl_scope *scope, int fd)
{
    static const char call[] = "glImportSemaphoreFdEXT";
    sp_gl_context *context = made->context;
    int duplicate = sp_os_fd_duplicate(fd);
    if (duplicate < 0) {
        return sp_fail_native(SP_ERROR_SYSTEM, SP_BACKEND_CPU, errno, "fcntl(F_DUPFD_CLOEXEC)",
                              "sp_gl_semaphore_import: the fd cannot be duplicated: %s",
                              strerror(errno));
    }
    sp_status status = SP_GL_CALL(
        scope, call,
        context->gl.import_semaphore_fd(made->name, GL_HANDLE_TYPE_OPAQUE_FD_EXT, duplicate));
    status = explain_import(status, call);
    if (status != SP_OK && !sp_os_fd_reclaim(fd, duplicate, !context->gl.closes_failed_fd))
        sp_log_message(&context->log, SP_LOG_WARN, "the driver closed the fd of a failed import");
    return status;
}

static sp_status import_win32(sp_gl_semaphore *made, sp_gl_scope *scope,
                              const sp_gl_semaphore_import_desc *desc)
{
    static const char call[] = "glImportSemaphoreWin32HandleEXT";
    static const GLenum types[] = {
        [SP_GL_HANDLE_OPAQUE_WIN32] = GL_HANDLE_TYPE_OPAQUE_WIN32_EXT,
        [SP_GL_HANDLE_OPAQUE_WIN32_KMT] = GL_HANDLE_TYPE_OPAQUE_WIN32_KMT_EXT,
        [SP_GL_HANDLE_D3D12_FENCE] = GL_HANDLE_TYPE_D3D12_FENCE_EXT,
    };
    const sp_gl_driver *gl = &made->context->gl;
    sp_status status =
        SP_GL_CALL(scope, call,
                   gl->import_semaphore_win32(made->name, types[desc->handle_type], desc->handle));
    return explain_import(status, call);
}

static sp_status import_payload(sp_gl_semaphore *made, sp_gl_scope *scope,
                                const sp_gl_semaphore_import_desc *desc)
{
    sp_status status = make_name(made, scope);
    if (status != SP_OK)
        return status;
    if (desc->handle_type == SP_GL_HANDLE_OPAQUE_FD)
        return import_fd(made, scope, desc->fd);
    return import_win32(made, scope, desc);
}

static const char *check_desc(const sp_gl_semaphore_import_desc *desc)
{
    bool fence = desc->type == SP_GL_SEMAPHORE_D3D12_FENCE;
    if (desc->type < SP_GL_SEMAPHORE_BINARY || desc->type > SP_GL_SEMAPHORE_D3D12_FENCE)
        return "desc->type is not one of sp_gl_semaphore_type";
    if (desc->handle_type < SP_GL_HANDLE_OPAQUE_FD || desc->handle_type > SP_GL_HANDLE_D3D12_FENCE)
        return "desc->handle_type is not one of sp_gl_handle_type";
    if (fence != (desc->handle_type == SP_GL_HANDLE_D3D12_FENCE))
        return "a D3D12 fence, and nothing else, comes from a handle of that type";
    return NULL;
}

static sp_status check_caps(const sp_gl_context *context, const sp_gl_semaphore_import_desc *desc)
{
    const sp_gl_caps *caps = &context->caps;
    bool by_fd = desc->handle_type == SP_GL_HANDLE_OPAQUE_FD;
    const char *missing = NULL;
    if (!caps->semaphore)
        missing = "GL_EXT_semaphore";
    else if (by_fd && !caps->semaphore_fd)
        missing = "GL_EXT_semaphore_fd";
    else if (!by_fd && !caps->semaphore_win32)
        missing = "GL_EXT_semaphore_win32";
    else if (desc->type == SP_GL_SEMAPHORE_TIMELINE && !caps->timeline_semaphore)
        missing = "GL_NV_timeline_semaphore";
    if (!missing)
        return SP_OK;
    return sp_fail(SP_ERROR_NOT_SUPPORTED, "sp_gl_semaphore_import: the context does not have %s",
                   missing);
}

/* GL exports nothing, so that there is no handle of the driver's own to compare with. One driver's
 * semaphores are memory files: it must be that driver, and such a file. */
static bool may_be_semaphore(const sp_gl_context *context, const sp_os_fd_kind *kind)
{
    static const char swiftshader[] = "/memfd:SwiftShader.Semaphore";
    if (context->gl.is_swiftshader)
        return strncmp(kind->name, swiftshader, sizeof(swiftshader) - 1) == 0;
    return !sp_os_fd_is_no_semaphore(kind);
}

static sp_status screen(const sp_gl_context *context, const sp_gl_semaphore_import_desc *desc)
{
    sp_os_fd_kind kind;
    if (desc->handle_type != SP_GL_HANDLE_OPAQUE_FD) {
        if (!desc->handle || (intptr_t)desc->handle == -1)
            return sp_fail(SP_ERROR_INVALID_HANDLE, "desc->handle is no handle");
        return SP_OK;
    }
    if (!sp_os_fd_get_kind(desc->fd, &kind))
        return sp_fail(SP_ERROR_INVALID_HANDLE, "fd %d is not open", desc->fd);
    if (may_be_semaphore(context, &kind))
        return SP_OK;
    return sp_fail(SP_ERROR_INVALID_HANDLE, "fd %d is no semaphore: %s", desc->fd, kind.name);
}

static sp_status import_screened(sp_gl_context *context, const sp_gl_semaphore_import_desc *desc,
                                 sp_gl_semaphore **out)
{
    sp_gl_semaphore *made = allocate(context, desc->type);
    if (!made)
        return SP_ERROR_OUT_OF_MEMORY;
    sp_gl_list_add(context, made);
    sp_gl_scope scope = sp_gl_scope_here(context);
    sp_status status = import_payload(made, &scope, desc);
    sp_gl_scope_leave(&scope);
    if (status != SP_OK) {
        sp_error error = *sp_last_error();
        sp_waiter_unref(&made->base);
        return sp_fail_with(&error);
    }
    *out = made;
    return SP_OK;
}

sp_status sp_gl_semaphore_import(sp_gl_context *context, const sp_gl_semaphore_import_desc *desc,
                                 sp_gl_semaphore **out)
{
    SP_CHECK_ARGUMENT(context && desc && out, "context, desc and out are required");
    SP_CHECK_SIZE(desc);
    const char *why = check_desc(desc);
    SP_CHECK_ARGUMENT(!why, why);
    sp_status status = sp_gl_check_shared(context, __func__);
    if (status == SP_OK)
        status = check_caps(context, desc);
    if (status == SP_OK)
        status = screen(context, desc);
    if (status == SP_OK)
        status = import_screened(context, desc, out);
    if (status == SP_OK && desc->adopt && desc->handle_type == SP_GL_HANDLE_OPAQUE_FD)
        sp_os_fd_close(desc->fd);
    return status;
}

/* ---- References and names ---- */

sp_gl_semaphore *sp_gl_semaphore_ref(sp_gl_semaphore *semaphore)
{
    return semaphore ? sp_gl_semaphore_hold(semaphore) : NULL;
}

void sp_gl_semaphore_unref(sp_gl_semaphore *semaphore)
{
    if (semaphore)
        sp_waiter_unref(&semaphore->base);
}

uint32_t sp_gl_semaphore_name(const sp_gl_semaphore *semaphore)
{
    if (!semaphore || sp_gl_is_gone(semaphore->context))
        return 0;
    return sp_load32(&semaphore->name);
}

uint32_t sp_gl_semaphore_name_from_point(const sp_point *point)
{
    if (!point || point->kind != SP_KIND_OPENGL)
        return 0;
    if (!point->waiter)
        return (uint32_t)point->raw.opengl.semaphore;
    if (point->waiter->ops == &sp_gl_timeline_ops)
        return sp_gl_semaphore_name(sp_gl_semaphore_of(point->waiter));
    if (point->waiter->ops == &sp_gl_signal_ops)
        return sp_gl_semaphore_name(sp_gl_signal_of(point->waiter)->semaphore);
    return 0;
}
