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

/* One that is in no list stays so. */
static void list_remove_locked(sp_gl_context *context, sp_gl_semaphore *semaphore)
{
    if (semaphore->prev)
        semaphore->prev->next = semaphore->next;
    else if (context->semaphores == semaphore)
        context->semaphores = semaphore->next;
    if (semaphore->next)
        semaphore->next->prev = semaphore->prev;
    semaphore->next = NULL;
    semaphore->prev = NULL;
}

/* ---- Deleting ---- */

/* May GL be called for the context's objects on this thread right now? In a call. Enters no helper:
 * a release is no place to call the user. */
static bool can_delete(const sp_gl_context *context)
{
    return sp_gl_shared_current(context) != 0;
}

static void delete_name(const sp_gl_context *context, uint32_t name)
{
    const GLuint names[] = {name};
    if (name && !sp_gl_is_lost(context))
        context->gl.delete_semaphores(1, names);
}

static void retire_sync(sp_gl_context *context, sp_gl_sync *sync)
{
    sp_os_mutex_lock(&context->lock);
    sync->next = context->retired_syncs;
    context->retired_syncs = sync;
    sp_store32(&context->retired_count, context->retired_count + 1);
    sp_os_mutex_unlock(&context->lock);
}

/* Without a call, sp_gl_context_destroy() drops what is left in the pool's objects. */
void sp_gl_retire_sync(sp_gl_sync *sync)
{
    sp_gl_context *context = sync->context;
    bool drops = true;
    if (sp_gl_begin_call(context)) {
        bool has_native = sync->owned && sp_gl_sync_native(sync);
        drops = !has_native || sync->display || can_delete(context);
        if (drops)
            sp_gl_sync_drop_native(sync, true);
        else
            retire_sync(context, sync);
        sp_gl_end_call(context);
    }
    if (drops)
        sp_pool_put(&context->syncs, sync);
}

/* With a name it has to wait for a drain, be it that of sp_gl_context_destroy(), which has taken
 * the names of all that are in the list by then. */
static bool retire_semaphore(sp_gl_context *context, sp_gl_semaphore *semaphore, bool deletes)
{
    sp_os_mutex_lock(&context->lock);
    list_remove_locked(context, semaphore);
    bool retires = !deletes && !sp_gl_is_lost(context) && sp_load32(&semaphore->name);
    if (retires) {
        semaphore->next = context->retired_semaphores;
        context->retired_semaphores = semaphore;
        sp_store32(&context->retired_count, context->retired_count + 1);
    }
    sp_os_mutex_unlock(&context->lock);
    return retires;
}

void sp_gl_retire_semaphore(sp_gl_semaphore *semaphore)
{
    sp_gl_context *context = semaphore->context;
    bool calls = sp_gl_begin_call(context);
    bool deletes = calls && can_delete(context);
    bool retires = retire_semaphore(context, semaphore, deletes);
    if (deletes)
        delete_name(context, semaphore->name);
    if (calls)
        sp_gl_end_call(context);
    if (!retires)
        sp_gl_semaphore_free(semaphore);
}

/* ---- Draining ---- */

static void delete_retired(sp_gl_context *context, sp_gl_sync *syncs, sp_gl_semaphore *semaphores)
{
    while (syncs) {
        sp_gl_sync *next = syncs->next;
        sp_gl_sync_drop_native(syncs, !sp_gl_is_lost(context));
        sp_pool_put(&context->syncs, syncs);
        syncs = next;
    }
    while (semaphores) {
        sp_gl_semaphore *next = semaphores->next;
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

/* ---- The end: no call of another thread begins any more ---- */

/* What is not known reached by now never will be. */
static void end_waiter(const sp_gl_context *context, sp_waiter *waiter)
{
    sp_error error;
    bool lost = sp_gl_is_lost(context);
    sp_error_format(&error, lost ? SP_ERROR_DEVICE_LOST : SP_ERROR_INVALID_STATE,
                    lost ? "the GL context was lost" : "its sp_gl_context was destroyed before");
    error.backend = SP_BACKEND_OPENGL;
    sp_waiter_fail(waiter, 0, &error);
}

/* So that what was reached stays so. */
static void ask_sync(void *user, void *object)
{
    sp_gl_sync *sync = object;
    if (sp_gl_is_lost(user) || !sp_waiter_try_ref(&sync->base))
        return;
    sp_gl_sync_ask_last(sync);
    sp_gl_sync_unref(sync);
}

static void end_signal(void *user, void *object)
{
    sp_gl_signal *signal = object;
    if (!sp_waiter_try_ref(&signal->oneshot.base))
        return;
    const sp_gl_sync *gate = __atomic_load_n(&signal->gate, __ATOMIC_ACQUIRE);
    if (gate && sp_waiter_known_reached(&gate->base, 1))
        sp_waiter_reached(&signal->oneshot.base, 1);
    end_waiter(user, &signal->oneshot.base);
    sp_waiter_unref(&signal->oneshot.base);
}

/* Also of those that are being released: who does that does not call the driver any more. */
static void end_sync(void *user, void *object)
{
    sp_gl_context *context = user;
    sp_gl_sync *sync = object;
    sp_gl_sync_drop_native(sync, !sp_gl_is_lost(context));
    if (!sp_waiter_try_ref(&sync->base))
        return;
    end_waiter(context, &sync->base);
    sp_gl_sync_unref(sync);
}

/* Takes one out of the list. *live: a reference, or NULL if it is being released. False: none. */
static bool take_semaphore(sp_gl_context *context, uint32_t *name, sp_gl_semaphore **live)
{
    sp_os_mutex_lock(&context->lock);
    sp_gl_semaphore *first = context->semaphores;
    if (first) {
        list_remove_locked(context, first);
        *name = first->name;
        *live = sp_waiter_try_ref(&first->base) ? first : NULL;
        sp_store32(&first->name, 0);
    }
    sp_os_mutex_unlock(&context->lock);
    return first != NULL;
}

static void end_semaphores(sp_gl_context *context)
{
    uint32_t name;
    sp_gl_semaphore *live;
    while (take_semaphore(context, &name, &live)) {
        delete_name(context, name);
        if (!live)
            continue;
        sp_gl_timeline_settle(live);
        end_waiter(context, &live->base);
        sp_gl_semaphore_drop_fences(live);
        sp_gl_semaphore_unref(live);
    }
}

void sp_gl_end_objects(sp_gl_context *context)
{
    sp_pool_each(&context->syncs, ask_sync, context);
    sp_pool_each(&context->signals, end_signal, context);
    end_semaphores(context);
    sp_pool_each(&context->syncs, end_sync, context);
    sp_gl_note_gone(context, SP_GL_DEAD);
    sp_gl_drain(context);
}
