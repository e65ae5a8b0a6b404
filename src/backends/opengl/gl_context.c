/* SPDX-License-Identifier: MIT
 *
 * The context object: its beginning, its end, and what every call checks first.
 */
#include "gl_internal.h"

#include <stdlib.h>

/* ---- Checks ---- */

sp_status sp_gl_check(const sp_gl_context *context)
{
    if (sp_gl_is_forked(context))
        return sp_fail_forked();
    return sp_gl_is_gone(context) ? sp_gl_fail_gone(context) : SP_OK;
}

static sp_status fail_not_current(const char *function, const char *which)
{
    return sp_fail(SP_ERROR_WRONG_CONTEXT, "%s: the GL context%s must be current on this thread",
                   function, which);
}

sp_status sp_gl_check_current(sp_gl_context *context, const char *function)
{
    sp_status status = sp_gl_check(context);
    if (status != SP_OK)
        return status;
    if (!sp_gl_is_current(context))
        return fail_not_current(function, "");
    sp_gl_drain(context);
    return SP_OK;
}

sp_status sp_gl_check_shared(sp_gl_context *context, const char *function)
{
    sp_status status = sp_gl_check(context);
    if (status != SP_OK)
        return status;
    if (!sp_gl_shared_current(context))
        return fail_not_current(function, ", or one that shares objects with it,");
    sp_gl_drain(context);
    return SP_OK;
}

/* ---- References ---- */

void sp_gl_note_gone(sp_gl_context *context, uint32_t bit)
{
    __atomic_fetch_or(&context->gone, bit, __ATOMIC_SEQ_CST);
}

sp_gl_context *sp_gl_context_ref(sp_gl_context *context)
{
    sp_ref_inc(&context->refs);
    return context;
}

static void free_context(sp_gl_context *context)
{
    sp_pool_empty(&context->signals);
    sp_pool_empty(&context->syncs);
    sp_gl_group_unref(context->group);
    if (!sp_gl_is_forked(context))
        sp_os_mutex_fini(&context->lock);
    free(context);
}

void sp_gl_context_unref(sp_gl_context *context)
{
    if (sp_ref_dec(&context->refs))
        free_context(context);
}

/* ---- The beginning ---- */

static const char *check_desc(const sp_gl_context_desc *desc)
{
    if (desc->loader < SP_GL_LOADER_EGL || desc->loader > SP_GL_LOADER_CGL)
        return "desc->loader is not one of sp_gl_loader";
    if (!desc->get_proc_address)
        return "get_proc_address is required: the library links no GL";
    if (!desc->helper_enter != !desc->helper_leave)
        return "helper_enter and helper_leave go together";
    return NULL;
}

static sp_gl_context *allocate(void)
{
    sp_gl_context *context = calloc(1, sizeof(*context));
    if (!context)
        return NULL;
    if (!sp_os_mutex_init(&context->lock)) {
        free(context);
        return NULL;
    }
    return context;
}

static sp_status fill(sp_gl_context *context, const sp_gl_context_desc *desc)
{
    sp_os_watch_forks();
    context->refs = 1;
    context->fork_generation = sp_fork_generation;
    context->log = desc->log;
    context->helper_enter = desc->helper_enter;
    context->helper_leave = desc->helper_leave;
    context->helper_user = desc->helper_user;
    context->syncs.object_size = sizeof(sp_gl_sync);
    context->signals.object_size = sizeof(sp_gl_signal);
    sp_status status =
        sp_gl_driver_load(&context->gl, desc, &context->caps, &context->native, &context->display);
    if (status == SP_OK)
        status = sp_gl_group_join(context, desc->share);
    return status;
}

sp_status sp_gl_context_create(const sp_gl_context_desc *desc, sp_gl_context **out)
{
    SP_CHECK_ARGUMENT(desc && out, "desc and out are required");
    SP_CHECK_SIZE(desc);
    const char *why = check_desc(desc);
    SP_CHECK_ARGUMENT(!why, why);
    sp_status status = desc->share ? sp_gl_check(desc->share) : SP_OK;
    if (status != SP_OK)
        return status;
    SP_CHECK_ARGUMENT(!desc->share || desc->share->gl.loader == desc->loader,
                      "a context of another loader shares nothing with this one");
    sp_gl_context *context = allocate();
    if (!context)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_gl_context_create: out of memory");
    status = fill(context, desc);
    if (status != SP_OK) {
        free_context(context);
        return status;
    }
    *out = context;
    return SP_OK;
}

/* ---- The end ---- */

/* From here on no call of another thread goes into the driver for the context's objects. */
static void end_calls(sp_gl_context *context)
{
    sp_backoff backoff = {0};
    sp_gl_note_gone(context, SP_GL_ENDING);
    while (__atomic_load_n(&context->calls, __ATOMIC_SEQ_CST) != 0)
        sp_backoff_sleep(&backoff, UINT64_MAX);
}

sp_status sp_gl_context_destroy(sp_gl_context *context)
{
    if (!context)
        return SP_OK;
    if (sp_gl_is_forked(context)) {
        sp_gl_context_unref(context);
        return sp_fail_forked();
    }
    if (!sp_gl_is_lost(context) && !sp_gl_shared_current(context))
        return fail_not_current("sp_gl_context_destroy", ", or one that shares objects with it,");
    end_calls(context);
    sp_gl_end_objects(context);
    sp_gl_group_leave(context);
    sp_gl_context_unref(context);
    return SP_OK;
}

void sp_gl_context_lost(sp_gl_context *context)
{
    if (context && !sp_gl_is_forked(context))
        sp_gl_note_gone(context, SP_GL_LOST);
}

sp_status sp_gl_context_collect(sp_gl_context *context)
{
    SP_CHECK_ARGUMENT(context, "context is required");
    return sp_gl_check_shared(context, __func__);
}

sp_status sp_gl_context_caps(const sp_gl_context *context, sp_gl_caps *caps)
{
    SP_CHECK_ARGUMENT(context && caps, "context and caps are required");
    SP_CHECK_SIZE(caps);
    if (sp_gl_is_forked(context))
        return sp_fail_forked();
    *caps = context->caps;
    return SP_OK;
}
