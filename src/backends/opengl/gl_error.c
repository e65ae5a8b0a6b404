/* SPDX-License-Identifier: MIT
 *
 * What errors of GL and EGL mean to a caller of this library.
 */
#include "gl_internal.h"

/* A lost context may report its loss for ever. */
#define MAX_PENDING_ERRORS 32

typedef struct error_row {
    int64_t error;
    sp_status status;
    const char *name;
    const char *advice;
} error_row;

#define ROW(name, status, advice)                                                                  \
    {                                                                                              \
        name, SP_ERROR_##status, #name, advice                                                     \
    }

static const error_row gl_rows[] = {
    ROW(GL_INVALID_ENUM, BACKEND, ""),
    ROW(GL_INVALID_VALUE, BACKEND, ""),
    ROW(GL_INVALID_OPERATION, BACKEND, ""),
    ROW(GL_OUT_OF_MEMORY, OUT_OF_MEMORY, ""),
    ROW(GL_CONTEXT_LOST, DEVICE_LOST, "; the context has to be made anew"),
};

static const error_row egl_rows[] = {
    ROW(EGL_NOT_INITIALIZED, BACKEND, "; was the display terminated?"),
    ROW(EGL_BAD_ALLOC, OUT_OF_MEMORY, ""),
    ROW(EGL_BAD_ATTRIBUTE, BACKEND, ""),
    ROW(EGL_BAD_DISPLAY, BACKEND, ""),
    ROW(EGL_BAD_MATCH, BACKEND, ""),
    ROW(EGL_BAD_PARAMETER, BACKEND, ""),
    ROW(EGL_CONTEXT_LOST, DEVICE_LOST, "; the context has to be made anew"),
};

static sp_status fail(sp_gl_context *context, const error_row *rows, size_t count, int64_t error,
                      const char *call)
{
    static const error_row other = {0, SP_ERROR_BACKEND, "an error", ""};
    const error_row *row = &other;
    for (size_t i = 0; i < count; i++) {
        if (rows[i].error == error)
            row = &rows[i];
    }
    if (row->status == SP_ERROR_DEVICE_LOST)
        sp_gl_note_gone(context, SP_GL_LOST);
    return sp_fail_native(row->status, SP_BACKEND_OPENGL, error, call, "%s: %s (0x%04x)%s", call,
                          row->name, (unsigned)error, row->advice);
}

sp_status sp_gl_fail_egl(sp_gl_context *context, const char *call)
{
    return fail(context, egl_rows, SP_ARRAY_LENGTH(egl_rows), context->gl.egl_get_error(), call);
}

sp_status sp_gl_fail_gone(const sp_gl_context *context)
{
    if (sp_gl_is_lost(context)) {
        return sp_fail_native(SP_ERROR_DEVICE_LOST, SP_BACKEND_OPENGL, 0, NULL,
                              "the GL context was lost; it has to be made anew");
    }
    return sp_fail_native(SP_ERROR_INVALID_STATE, SP_BACKEND_OPENGL, 0, NULL,
                          "its sp_gl_context was destroyed");
}

sp_status sp_gl_answer_gone(const sp_gl_context *context, const sp_waiter *waiter, uint64_t value)
{
    bool ending = sp_load32(&context->gone) == SP_GL_ENDING; /* before what is known is read */
    if (sp_waiter_known_reached(waiter, value))
        return SP_OK;
    return ending ? SP_PENDING : sp_gl_fail_gone(context);
}

sp_status sp_gl_no_call(const sp_gl_context *context)
{
    return sp_gl_is_lost(context) ? sp_gl_fail_gone(context) : SP_PENDING;
}

/* ---- GL's error queue ---- */

GLenum sp_gl_drain_errors(const sp_gl_driver *driver)
{
    GLenum first = driver->get_error();
    GLenum next = first;
    for (int i = 0; i < MAX_PENDING_ERRORS && next != GL_NO_ERROR; i++) {
        next = driver->get_error();
        if (next == GL_CONTEXT_LOST)
            first = next;
    }
    return first;
}

void sp_gl_log_forgotten(const sp_log *log, GLenum error)
{
    sp_log_message(log, SP_LOG_WARN, "a GL error of yours, 0x%04x, was pending and is lost now",
                   (unsigned)error);
}

void sp_gl_forget_errors(sp_gl_scope *scope)
{
    GLenum error = sp_gl_drain_errors(&scope->context->gl);
    if (SP_LIKELY(error == GL_NO_ERROR))
        return;
    if (error == GL_CONTEXT_LOST)
        sp_gl_note_gone(scope->context, SP_GL_LOST);
    if (scope->forgotten == GL_NO_ERROR)
        scope->forgotten = error;
}

sp_status sp_gl_take_error(const sp_gl_scope *scope, const char *call, GLenum unknown)
{
    GLenum error = sp_gl_drain_errors(&scope->context->gl);
    if (error == GL_NO_ERROR)
        error = unknown;
    if (error == GL_NO_ERROR)
        return SP_OK;
    return fail(scope->context, gl_rows, SP_ARRAY_LENGTH(gl_rows), error, call);
}
