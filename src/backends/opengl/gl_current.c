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

static bool group_has(sp_gl_group *group, const void *native)
{
    sp_os_spin_lock(&group->lock);
    const sp_gl_context *at = group->first;
    while (at && (at->native != native || sp_gl_is_gone(at)))
        at = at->group_next;
    sp_os_spin_unlock(&group->lock);
    return at != NULL;
}

/* ---- Current ---- */

bool sp_gl_is_current(const sp_gl_context *context)
{
    return context->gl.get_current() == context->native;
}

void *sp_gl_shared_current(const sp_gl_context *context)
{
    void *current = context->gl.get_current();
    if (!current || (current != context->native && !group_has(context->group, current)))
        return NULL;
    return current;
}

/* ---- Scopes ---- */

static bool enter_helper(sp_gl_context *context, sp_gl_scope *scope)
{
    if (!context->helper_enter)
        return false;
    sp_os_mutex_lock(&context->helper_lock);
    if (context->helper_enter(context->helper_user)) {
        scope->helper = context;
        scope->native = context->gl.get_current();
        return true;
    }
    sp_os_mutex_unlock(&context->helper_lock);
    return false;
}

sp_status sp_gl_scope_enter(sp_gl_context *context, sp_gl_preference preference, sp_gl_scope *scope)
{
    scope->helper = NULL;
    if (preference == SP_GL_PREFER_HELPER && enter_helper(context, scope))
        return SP_OK;
    scope->native = sp_gl_shared_current(context);
    if (scope->native)
        return SP_OK;
    if (preference == SP_GL_PREFER_CURRENT && enter_helper(context, scope))
        return SP_OK;
    return sp_fail(SP_ERROR_WRONG_CONTEXT,
                   context->helper_enter
                       ? "the GL context is not current on this thread, and its helper could not "
                         "be made so"
                       : "the GL context, or one that shares objects with it, must be current on "
                         "this thread; a helper context would serve any thread");
}

void sp_gl_scope_leave(sp_gl_scope *scope)
{
    sp_gl_context *helper = scope->helper;
    if (!helper)
        return;
    helper->helper_leave(helper->helper_user);
    sp_os_mutex_unlock(&helper->helper_lock);
}
