/* SPDX-License-Identifier: MIT
 *
 * When native objects are deleted. An EGLSync can be at once, on any thread. A GLsync and a
 * semaphore need their context, or one that shares with it, current: until then they wait in the
 * context's list of retired ones. GL itself keeps what its commands still need.
 */
#include "gl_internal.h"

#include <stdlib.h>

/* ---- Lists ---- */

void sp_gl_list_add(sp_gl_context *context, sp_gl_semaphore *semaphore)
{
    sp_os_mutex_lock(&context->lock);
    semaphore->next = context->semaphores;
    if (semaphore->next)
        semaphore->next->prev = semaphore;
    context->semaphores = semaphore;
    sp_os_mutex_unlock(&context->lock);
}

static void list_remove_locked(sp_gl_context *context, sp_gl_semaphore *semaphore)
{
    if (semaphore->prev) {
        semaphore->prev->next = semaphore->next;
    } else {
        context->semaphores = semaphore->next;
    }
    if (semaphore->next)
        semaphore->next->prev = semaphore->prev;
    semaphore->next = NULL;
    semaphore->prev = NULL;
}

/* ---- Deleting ---- */

/* May GL be called for the context's objects on this thread right now? Enters no helper: a release
 * is no place to call the user. */
static bool can_delete(const sp_gl_context *context)
{
    return !sp_gl_is_gone(context) && sp_gl_shared_current(context) != NULL;
}

static void delete_name(const sp_gl_context *context, uint32_t name)
{
    const GLuint names[] = {name};
    if (name)
        context->gl.delete_semaphores(1, names);
}

static bool retire_locked_sync(sp_gl_context *context, sp_gl_sync *sync, void *native)
{
    if (sp_gl_is_gone(context))
        return false;
    sync->native = native;
    sync->next = context->retired_syncs;
    context->retired_syncs = sync;
    sp_store32(&context->retired_count, context->retired_count + 1);
    return true;
}

void sp_gl_retire_sync(sp_gl_sync *sync)
{
    sp_gl_context *context = sync->context;
    void *native = sp_gl_sync_take_native(sync);
    bool retired = false;
    if (native && sync->owned && !sp_gl_is_gone(context)) {
        if (sync->display || can_delete(context)) {
            sp_gl_sync_delete_native(sync, native);
        } else {
            sp_os_mutex_lock(&context->lock);
            retired = retire_locked_sync(context, sync, native);
            sp_os_mutex_unlock(&context->lock);
        }
    }
    if (!retired)
        sp_pool_put(&context->syncs, sync);
}

void sp_gl_retire_semaphore(sp_gl_semaphore *semaphore)
{
    sp_gl_context *context = semaphore->context;
    bool deletes = can_delete(context);
    sp_os_mutex_lock(&context->lock);
    list_remove_locked(context, semaphore);
    bool retires = !deletes && !sp_gl_is_gone(context) && semaphore->name;
    if (retires) {
        semaphore->next = context->retired_semaphores;
        context->retired_semaphores = semaphore;
        sp_store32(&context->retired_count, context->retired_count + 1);
    }
    sp_os_mutex_unlock(&context->lock);
    if (retires)
        return;
    if (deletes)
        delete_name(context, semaphore->name);
    sp_gl_semaphore_free(semaphore);
}

/* ---- Draining ---- */

static void delete_retired(sp_gl_context *context, sp_gl_sync *syncs, sp_gl_semaphore *semaphores)
{
    bool calls = !(sp_load32(&context->gone) & SP_GL_LOST);
    while (syncs) {
        sp_gl_sync *next = syncs->next;
        void *native = sp_gl_sync_take_native(syncs);
        if (calls)
            sp_gl_sync_delete_native(syncs, native);
        sp_pool_put(&context->syncs, syncs);
        syncs = next;
    }
    while (semaphores) {
        sp_gl_semaphore *next = semaphores->next;
        if (calls)
            delete_name(context, semaphores->name);
        sp_gl_semaphore_free(semaphores);
        semaphores = next;
    }
}

void sp_gl_drain(sp_gl_context *context)
{
    if (SP_LIKELY(sp_load32(&context->retired_count) == 0))
        return;
    sp_os_mutex_lock(&context->lock);
    sp_gl_sync *syncs = context->retired_syncs;
    sp_gl_semaphore *semaphores = context->retired_semaphores;
    context->retired_syncs = NULL;
    context->retired_semaphores = NULL;
    sp_store32(&context->retired_count, 0);
    sp_os_mutex_unlock(&context->lock);
    delete_retired(context, syncs, semaphores);
}

/* ---- The end ---- */

/* What is not known reached by now never will be. */
static void end_waiter(const sp_gl_context *context, sp_waiter *waiter)
{
    sp_error error;
    bool lost = (sp_load32(&context->gone) & SP_GL_LOST) != 0;
    sp_error_format(&error, lost ? SP_ERROR_DEVICE_LOST : SP_ERROR_INVALID_STATE,
                    lost ? "the GL context was lost" : "its sp_gl_context was destroyed before");
    error.backend = SP_BACKEND_OPENGL;
    sp_waiter_fail(waiter, 0, &error);
}

/* So that what was reached stays so. */
static void ask_last(const sp_gl_context *context, sp_waiter *waiter)
{
    bool lost = (sp_load32(&context->gone) & SP_GL_LOST) != 0;
    if (!lost && !sp_waiter_known_reached(waiter, 1))
        sp_waiter_probe(waiter, 1);
}

static void end_signal(void *user, void *object)
{
    sp_waiter *waiter = &((sp_gl_signal *)object)->oneshot.base;
    if (!sp_waiter_try_ref(waiter))
        return;
    ask_last(user, waiter);
    end_waiter(user, waiter);
    sp_waiter_unref(waiter);
}

static void end_sync(void *user, void *object)
{
    sp_gl_context *context = user;
    sp_gl_sync *sync = object;
    if (!sp_waiter_try_ref(&sync->base))
        return;
    ask_last(context, &sync->base);
    end_waiter(context, &sync->base);
    void *native = sp_gl_sync_take_native(sync);
    if (native && sync->owned && !(sp_load32(&context->gone) & SP_GL_LOST))
        sp_gl_sync_delete_native(sync, native);
    sp_waiter_unref(&sync->base);
}

/* The first semaphore after `at` (NULL: of all) that is not being released, as a reference. */
static sp_gl_semaphore *next_live(sp_gl_context *context, const sp_gl_semaphore *at)
{
    sp_os_mutex_lock(&context->lock);
    sp_gl_semaphore *next = at ? at->next : context->semaphores;
    while (next && !sp_waiter_try_ref(&next->base))
        next = next->next;
    sp_os_mutex_unlock(&context->lock);
    return next;
}

static void end_semaphore(sp_gl_context *context, sp_gl_semaphore *semaphore)
{
    if (!(sp_load32(&context->gone) & SP_GL_LOST))
        sp_gl_timeline_settle(semaphore);
    end_waiter(context, &semaphore->base);
    sp_gl_semaphore_drop_fences(semaphore);
    if (!(sp_load32(&context->gone) & SP_GL_LOST))
        delete_name(context, semaphore->name);
    sp_store32(&semaphore->name, 0);
}

void sp_gl_end_objects(sp_gl_context *context)
{
    sp_pool_each(&context->signals, end_signal, context);
    sp_gl_semaphore *at = next_live(context, NULL);
    while (at) {
        end_semaphore(context, at);
        sp_gl_semaphore *next = next_live(context, at);
        sp_waiter_unref(&at->base);
        at = next;
    }
    sp_pool_each(&context->syncs, end_sync, context);
    sp_os_mutex_lock(&context->lock);
    sp_gl_note_gone(context, SP_GL_DEAD);
    sp_os_mutex_unlock(&context->lock);
    sp_gl_drain(context);
}
