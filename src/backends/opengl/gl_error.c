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

sp_status sp_gl_fail(sp_gl_context *context, GLenum error, const char *call)
{
    return fail(context, gl_rows, SP_ARRAY_LENGTH(gl_rows), error, call);
}

sp_status sp_gl_fail_egl(sp_gl_context *context, const char *call)
{
    return fail(context, egl_rows, SP_ARRAY_LENGTH(egl_rows), context->gl.egl_get_error(), call);
}

sp_status sp_gl_fail_gone(const sp_gl_context *context)
{
    if (sp_load32(&context->gone) & SP_GL_LOST) {
        return sp_fail_native(SP_ERROR_DEVICE_LOST, SP_BACKEND_OPENGL, 0, NULL,
                              "the GL context was lost; it has to be made anew");
    }
    return sp_fail_native(SP_ERROR_INVALID_STATE, SP_BACKEND_OPENGL, 0, NULL,
                          "its sp_gl_context was destroyed");
}

GLenum sp_gl_drain_errors(const sp_gl_driver *driver)
{
    GLenum first = driver->get_error();
    GLenum next = first;
    for (int i = 0; i < MAX_PENDING_ERRORS && next != GL_NO_ERROR; i++)
        next = driver->get_error();
    return first;
}

void sp_gl_forget_errors(const sp_gl_driver *driver, const sp_log *log)
{
    GLenum error = sp_gl_drain_errors(driver);
    if (error != GL_NO_ERROR) {
        sp_log_message(log, SP_LOG_WARN, "a GL error of yours, 0x%04x, was pending and is lost now",
                       (unsigned)error);
    }
}

sp_status sp_gl_check_error(sp_gl_context *context, const char *call)
{
    GLenum error = sp_gl_drain_errors(&context->gl);
    return error == GL_NO_ERROR ? SP_OK : sp_gl_fail(context, error, call);
}
