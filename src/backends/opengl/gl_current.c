/* SPDX-License-Identifier: MIT
 *
 * Which context is current, which ones share objects, and the helper context.
 */
#include "gl_internal.h"

#include <stdlib.h>

/* ---- Groups ---- */

sp_status sp_gl_group_join(sp_gl_context *context, sp_gl_context *share)
{
    sp_gl_group *group = share ? share->group : calloc(1, sizeof(*group));
    if (!group)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_gl_context_create: out of memory");
    sp_os_spin_lock(&group->lock);
    sp_ref_inc(&group->refs);
    context->group = group;
    context->stream = ++group->streams;
    context->group_next = group->first;
    group->first = context;
    sp_os_spin_unlock(&group->lock);
    return SP_OK;
}

void sp_gl_group_leave(sp_gl_context *context)
{
    sp_gl_group *group = context->group;
    sp_os_spin_lock(&group->lock);
    sp_gl_context **link = &group->first;
    while (*link && *link != context)
        link = &(*link)->group_next;
    if (*link)
        *link = context->group_next;
    sp_os_spin_unlock(&group->lock);
}

void sp_gl_group_unref(sp_gl_group *group)
{
    if (group && sp_ref_dec(&group->refs))
        free(group);
}

static uint64_t stream_in_group(sp_gl_group *group, const void *native)
{
    sp_os_spin_lock(&group->lock);
    const sp_gl_context *at = group->first;
    while (at && (at->native != native || sp_gl_is_gone(at)))
        at = at->group_next;
    uint64_t stream = at ? at->stream : 0;
    sp_os_spin_unlock(&group->lock);
    return stream;
}

/* ---- Current ---- */

bool sp_gl_is_current(const sp_gl_context *context)
{
    return context->gl.get_current() == context->native;
}

uint64_t sp_gl_shared_current(const sp_gl_context *context)
{
    const void *current = context->gl.get_current();
    if (!current)
        return 0;
    return current == context->native ? context->stream : stream_in_group(context->group, current);
}

/* ---- Scopes ---- */

/* Two that look take turns, which are short. Who has it to wait may block: to look is no reason to
 * wait for that (PENDING), and the others do so until the deadline (TIMEOUT). */
static sp_status take_helper(sp_gl_context *context, sp_gl_purpose purpose, uint64_t deadline_ns)
{
    sp_backoff backoff = {0};
    while (!sp_cas32(&context->helper_use, 0, purpose)) {
        bool may_block = sp_load32(&context->helper_use) == SP_GL_TO_WAIT;
        if (may_block && purpose == SP_GL_TO_LOOK)
            return SP_PENDING;
        if (may_block && sp_now_ns() >= deadline_ns)
            return SP_TIMEOUT;
        if (may_block)
            sp_backoff_sleep(&backoff, deadline_ns);
        else
            sp_os_yield();
    }
    return SP_OK;
}

static sp_status enter_helper(sp_gl_scope *scope, sp_gl_purpose purpose, uint64_t deadline_ns)
{
    sp_gl_context *context = scope->context;
    sp_status status = take_helper(context, purpose, deadline_ns);
    if (status != SP_OK)
        return status;
    scope->helped = context->helper_enter(context->helper_user);
    if (scope->helped)
        return SP_OK;
    sp_store32(&context->helper_use, 0);
    return sp_fail(SP_ERROR_WRONG_CONTEXT, "helper_enter() did not make the helper context current "
                                           "on this thread");
}

/* A wait does not fall back on the stream that is current: the user gave a helper, so that none of
 * theirs stands still. */
sp_status sp_gl_scope_enter(sp_gl_context *context, sp_gl_purpose purpose, uint64_t deadline_ns,
                            sp_gl_scope *scope)
{
    *scope = (sp_gl_scope){.context = context};
    bool rather_helped = context->helper_enter && purpose == SP_GL_TO_WAIT;
    if (!rather_helped)
        scope->stream = sp_gl_shared_current(context);
    if (scope->stream)
        return SP_OK;
    if (context->helper_enter)
        return enter_helper(scope, purpose, deadline_ns);
    return sp_fail(SP_ERROR_WRONG_CONTEXT,
                   "the GL context, or one that shares objects with it, must be current on this "
                   "thread; a helper context would serve any thread");
}

sp_gl_scope sp_gl_scope_here(sp_gl_context *context)
{
    return (sp_gl_scope){.context = context, .stream = context->stream};
}

void sp_gl_scope_leave(const sp_gl_scope *scope)
{
    sp_gl_context *context = scope->context;
    if (scope->helped) { /* nobody else's errors are in there */
        context->helper_leave(context->helper_user);
        sp_store32(&context->helper_use, 0);
    } else if (scope->forgotten != GL_NO_ERROR) {
        sp_error kept = *sp_last_error();
        sp_gl_log_forgotten(&context->log, scope->forgotten);
        sp_fail_with(&kept);
    }
}
