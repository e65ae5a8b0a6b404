/* SPDX-License-Identifier: MIT
 *
 * Points of fence syncs: new ones, and syncs of the user's.
 */
#include "gl_internal.h"

/* Gives an unused sync back, with the error that was. */
static sp_status give_up(sp_gl_sync *sync, sp_status status)
{
    sp_error error = *sp_last_error();
    sp_gl_sync_unref(sync);
    return status < 0 ? sp_fail_with(&error) : status;
}

sp_status sp_gl_context_signal(sp_gl_context *context, uint32_t flags, sp_point *out)
{
    SP_CHECK_ARGUMENT(context && out, "context and out are required");
    SP_CHECK_ARGUMENT((flags & ~(uint32_t)SP_GL_EXPORTABLE) == 0,
                      "SP_GL_EXPORTABLE is the only flag");
    sp_status status = sp_gl_check_current(context, __func__);
    if (status != SP_OK)
        return status;
    if (flags && !context->caps.native_fence) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED, "sp_gl_context_signal: the display does not have "
                                               "EGL_ANDROID_native_fence_sync");
    }
    sp_gl_sync *sync;
    status = sp_gl_sync_make(context, &sync);
    if (status != SP_OK)
        return status;
    sp_gl_scope scope = sp_gl_scope_here(context);
    status = flags ? sp_gl_native_fence_insert(sync) : sp_gl_sync_insert(sync, &scope);
    sp_gl_scope_leave(&scope);
    if (status != SP_OK)
        return give_up(sync, status);
    *out = sp_gl_sync_point(sync);
    return SP_OK;
}

/* ---- Syncs of the user's ---- */

/* Is it a sync? A lost context does not say. */
static sp_status ask_egl(sp_gl_context *context, const sp_gl_sync_wrap_desc *desc, bool *known)
{
    *known = context->gl.egl_client_wait_sync(desc->display, desc->sync, 0, 0) != EGL_FALSE;
    if (*known)
        return SP_OK;
    sp_status status = sp_gl_fail_egl(context, "eglClientWaitSync");
    return status == SP_ERROR_BACKEND ? SP_OK : status;
}

static sp_status ask_gl(sp_gl_context *context, const sp_gl_sync_wrap_desc *desc, bool *known)
{
    sp_gl_scope scope = sp_gl_scope_here(context);
    sp_status status =
        SP_GL_CALL(&scope, "glIsSync", *known = context->gl.is_sync((GLsync)desc->sync) == GL_TRUE);
    sp_gl_scope_leave(&scope);
    return status;
}

static sp_status check_wrapped(sp_gl_context *context, const sp_gl_sync_wrap_desc *desc)
{
    bool here = desc->display ? context->caps.egl_sync : context->caps.gl_sync;
    if (!here) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED, "sp_gl_sync_wrap: the context does not have %s",
                       desc->display ? "EGL_KHR_fence_sync" : "GLsyncs");
    }
    bool known;
    sp_status status =
        desc->display ? ask_egl(context, desc, &known) : ask_gl(context, desc, &known);
    if (status != SP_OK || known)
        return status;
    return sp_fail(SP_ERROR_INVALID_ARGUMENT, "sp_gl_sync_wrap: desc->sync is no sync of this %s",
                   desc->display ? "display" : "context");
}

sp_status sp_gl_sync_wrap(sp_gl_context *context, const sp_gl_sync_wrap_desc *desc, sp_point *out)
{
    SP_CHECK_ARGUMENT(context && desc && out, "context, desc and out are required");
    SP_CHECK_SIZE(desc);
    SP_CHECK_ARGUMENT(desc->sync, "desc->sync is required");
    sp_status status = sp_gl_check_current(context, __func__);
    if (status == SP_OK)
        status = check_wrapped(context, desc);
    if (status != SP_OK)
        return status;
    sp_gl_sync *sync;
    status = sp_gl_sync_make(context, &sync);
    if (status != SP_OK)
        return status;
    sync->native = desc->sync;
    sync->display = desc->display;
    sync->owned = desc->take;
    context->gl.flush();
    *out = sp_gl_sync_point(sync);
    return SP_OK;
}

void *sp_gl_sync_from_point(const sp_point *point)
{
    if (!point || point->kind != SP_KIND_OPENGL_SYNC)
        return NULL;
    if (!point->waiter)
        return point->raw.opengl_sync.sync;
    if (point->waiter->ops != &sp_gl_sync_ops)
        return NULL;
    const sp_gl_sync *sync = sp_gl_sync_of(point->waiter);
    if (sp_gl_is_gone(sync->context))
        return NULL;
    return sp_gl_sync_native(sync);
}
