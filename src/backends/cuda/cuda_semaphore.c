/* SPDX-License-Identifier: MIT
 *
 * External semaphores as objects: one goes once nothing that we enqueued uses it any more.
 */
#include "cuda_internal.h"

#include <stdlib.h>

/* ---- Making ---- */

/* A wait or a probe is passed on: what they can do depends on the origin. */
static void follow(sp_cuda_semaphore *semaphore, const sp_point *origin)
{
    uint32_t theirs = origin->waiter->features;
    semaphore->origin = sp_point_ref(origin);
    if (!(theirs & SP_FEATURE_ARM))
        semaphore->base.features &= ~(uint32_t)SP_FEATURE_ARM;
    if ((theirs & SP_FEATURE_POLL) || !(theirs & SP_FEATURE_BLOCK))
        semaphore->base.features |= SP_FEATURE_POLL;
    semaphore->base.features |= theirs & SP_FEATURE_TO_BEGIN;
}

sp_cuda_semaphore *sp_cuda_semaphore_make(sp_cuda_context *context, bool counting, bool keyed,
                                          const sp_point *origin)
{
    sp_cuda_semaphore *made = calloc(1, sizeof(*made));
    if (!made || !sp_os_mutex_init(&made->lock)) {
        free(made);
        sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_cuda_semaphore_import: out of memory");
        return NULL;
    }
    const sp_waiter_ops *ops = &sp_cuda_binary_ops;
    if (counting)
        ops = origin ? &sp_cuda_followed_ops : &sp_cuda_timeline_ops;
    sp_waiter_setup(&made->base, ops);
    made->context = sp_cuda_context_ref(context);
    made->counting = counting;
    made->keyed = keyed;
    if (origin)
        follow(made, origin);
    return made;
}

/* The last reference is gone, and nothing of it is in the driver's hands any more. */
void sp_cuda_semaphore_free(sp_cuda_semaphore *semaphore)
{
    sp_cuda_context *context = semaphore->context;
    sp_cuda_uses_drop_locked(semaphore);
    sp_cuda_lanes_drop_locked(semaphore);
    sp_cuda_mark_set(&semaphore->waited, NULL);
    sp_point_unref(&semaphore->origin);
    if (!sp_cuda_is_forked(context))
        sp_os_mutex_fini(&semaphore->lock);
    free(semaphore);
    sp_cuda_context_unref(context);
}

void sp_cuda_semaphore_list(sp_cuda_semaphore *semaphore)
{
    sp_cuda_context *context = semaphore->context;
    sp_os_mutex_lock(&context->lock);
    semaphore->next = context->semaphores;
    if (semaphore->next)
        semaphore->next->prev = semaphore;
    context->semaphores = semaphore;
    sp_os_mutex_unlock(&context->lock);
}

/* ---- Releasing ---- */

static void list_remove_locked(sp_cuda_context *context, sp_cuda_semaphore *semaphore)
{
    if (semaphore->prev)
        semaphore->prev->next = semaphore->next;
    else
        context->semaphores = semaphore->next;
    if (semaphore->next)
        semaphore->next->prev = semaphore->prev;
    semaphore->next = NULL;
    semaphore->prev = NULL;
}

static bool is_pending(sp_cuda_semaphore *semaphore)
{
    sp_os_mutex_lock(&semaphore->lock);
    bool lanes = sp_cuda_lanes_pending_locked(semaphore);
    bool signals = sp_cuda_signals_pending_locked(semaphore);
    bool pending = sp_cuda_uses_pending_locked(semaphore) || lanes || signals;
    sp_os_mutex_unlock(&semaphore->lock);
    return pending && !sp_cuda_gone(semaphore->context);
}

/* An operation without a mark may be pending for ever, and the driver would block as long: then all
 * semaphores go with their CUcontext. */
static bool lost_track(const sp_cuda_context *context)
{
    uint32_t over = sp_cuda_gone(context) & (SP_CUDA_LOST | SP_CUDA_ENDED);
    return sp_load32(&context->untracked) && !over;
}

static void destroy_handle(sp_cuda_semaphore *semaphore)
{
    sp_cuda_context *context = semaphore->context;
    sp_cuda_scope scope;
    CUexternalSemaphore handle = semaphore->handle;
    semaphore->handle = NULL;
    if (!handle || sp_cuda_gone(context) & (SP_CUDA_DEAD | SP_CUDA_ENDED))
        return;
    if (sp_cuda_enter(context, &scope) != SP_OK)
        return;
    int mode = sp_cuda_relax(context);
    context->cu.destroy_semaphore(handle);
    sp_cuda_unrelax(context, mode);
    sp_cuda_leave(context, scope);
}

/* CUDA destroys an external semaphore only once the context has nothing to do, and blocks until
 * then: a release must not. So they gather. */
static void semaphore_release(sp_waiter *waiter)
{
    sp_cuda_semaphore *semaphore = sp_cuda_semaphore_of(waiter);
    sp_cuda_context *context = semaphore->context;
    if (sp_waiter_is_forked(waiter)) {
        sp_cuda_semaphore_free(semaphore);
        return;
    }
    sp_os_mutex_lock(&context->lock);
    bool unheld = !semaphore->handle; /* the context was destroyed */
    if (!unheld) {
        list_remove_locked(context, semaphore);
        semaphore->next = context->retired;
        context->retired = semaphore;
        sp_store32(&context->retired_count, context->retired_count + 1);
    }
    sp_os_mutex_unlock(&context->lock);
    if (unheld)
        sp_cuda_semaphore_free(semaphore);
    else
        sp_cuda_drain(context, SP_CUDA_MOST_RETIRED);
}

static bool any_pending_locked(const sp_cuda_context *context)
{
    bool pending = false;
    for (sp_cuda_semaphore *at = context->semaphores; at && !pending; at = at->next)
        pending = is_pending(at);
    for (sp_cuda_semaphore *at = context->retired; at && !pending; at = at->next)
        pending = is_pending(at);
    return pending;
}

/* Unlinks the retired ones. None while an operation of any semaphore is pending: the driver would
 * block until that is over, too, which may be never. */
static sp_cuda_semaphore *take_retired_locked(sp_cuda_context *context)
{
    if (context->ending || lost_track(context) || any_pending_locked(context))
        return NULL;
    sp_cuda_semaphore *taken = context->retired;
    context->retired = NULL;
    sp_store32(&context->retired_count, 0);
    context->destroying += taken != NULL;
    return taken;
}

void sp_cuda_drain(sp_cuda_context *context, uint32_t most)
{
    if (SP_LIKELY(sp_load32(&context->retired_count) <= most))
        return;
    sp_os_mutex_lock(&context->lock);
    sp_cuda_semaphore *taken = take_retired_locked(context);
    sp_os_mutex_unlock(&context->lock);
    if (!taken)
        return;
    sp_cuda_context_ref(context);
    for (sp_cuda_semaphore *at = taken; at; at = at->next)
        destroy_handle(at);
    sp_os_mutex_lock(&context->lock);
    context->destroying--;
    sp_os_mutex_unlock(&context->lock);
    sp_cuda_semaphores_free(taken);
    sp_cuda_context_unref(context);
}

sp_status sp_cuda_context_collect(sp_cuda_context *context)
{
    SP_CHECK_ARGUMENT(context, "context is required");
    sp_status status = sp_cuda_check(context);
    if (status == SP_OK)
        sp_cuda_drain(context, 0);
    return status;
}

/* ---- The waiters ---- */

static sp_status binary_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)waiter;
    (void)value;
    (void)reached;
    return sp_fail(SP_ERROR_NOT_SUPPORTED, "a binary semaphore has no value");
}

/* Only counted: its signals are the waiters. */
const sp_waiter_ops sp_cuda_binary_ops = {
    .size = sizeof(sp_waiter_ops),
    .backend = SP_BACKEND_CUDA,
    .name = "CUDA binary semaphore",
    .probe = binary_probe,
    .destroy = semaphore_release,
};

const sp_waiter_ops sp_cuda_followed_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_COUNTING | SP_FEATURE_BLOCK | SP_FEATURE_ARM,
    .backend = SP_BACKEND_CUDA,
    .name = "CUDA timeline",
    .probe = sp_cuda_followed_probe,
    .block = sp_cuda_followed_block,
    .arm = sp_cuda_followed_arm,
    .disarm = sp_cuda_followed_disarm,
    .destroy = semaphore_release,
};

const sp_waiter_ops sp_cuda_timeline_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_COUNTING | SP_FEATURE_BLOCK | SP_FEATURE_TO_BEGIN,
    .backend = SP_BACKEND_CUDA,
    .name = "CUDA timeline",
    .probe = sp_cuda_timeline_probe,
    .block = sp_cuda_timeline_block,
    .destroy = semaphore_release,
};

/* ---- The end of the context ---- */

/* A host wait begins within its semaphore's lock. So one that did is seen as pending here, and one
 * that is to begin sees `ending` there. */
static bool try_end(sp_cuda_context *context)
{
    sp_os_mutex_lock(&context->lock);
    sp_store32(&context->ending, 1);
    bool idle = context->destroying == 0 && !any_pending_locked(context);
    sp_store32(&context->ending, idle);
    sp_os_mutex_unlock(&context->lock);
    return idle;
}

sp_status sp_cuda_semaphores_wait(sp_cuda_context *context, uint64_t deadline_ns)
{
    sp_backoff backoff = {0};
    while (!try_end(context)) {
        if (sp_now_ns() >= deadline_ns)
            return SP_TIMEOUT;
        sp_backoff_sleep(&backoff, deadline_ns);
    }
    return SP_OK;
}

/* The first semaphore after `at` (NULL: of all) that is not being released, as a reference. */
static sp_cuda_semaphore *next_live(sp_cuda_context *context, const sp_cuda_semaphore *at)
{
    sp_os_mutex_lock(&context->lock);
    sp_cuda_semaphore *next = at ? at->next : context->semaphores;
    while (next && !sp_waiter_try_ref(&next->base))
        next = next->next;
    sp_os_mutex_unlock(&context->lock);
    return next;
}

void sp_cuda_semaphores_end(sp_cuda_context *context)
{
    sp_cuda_semaphore *at = next_live(context, NULL);
    while (at) {
        if (at->counting)
            sp_cuda_timeline_look(at);
        sp_cuda_end_waiter(&at->base);
        sp_cuda_semaphore *next = next_live(context, at);
        sp_cuda_semaphore_unref(at);
        at = next;
    }
}

/* Unlinks one that still has a handle, and takes that; one that nobody holds goes to *unheld.
 * False: there is none. */
static bool take_handle(sp_cuda_context *context, CUexternalSemaphore *handle,
                        sp_cuda_semaphore **unheld)
{
    sp_os_mutex_lock(&context->lock);
    sp_cuda_semaphore *semaphore = context->retired;
    if (semaphore) {
        context->retired = semaphore->next;
        semaphore->next = *unheld;
        *unheld = semaphore;
    } else if (context->semaphores) {
        semaphore = context->semaphores;
        list_remove_locked(context, semaphore);
    }
    if (semaphore) {
        *handle = semaphore->handle;
        semaphore->handle = NULL;
    }
    sp_os_mutex_unlock(&context->lock);
    return semaphore != NULL;
}

sp_cuda_semaphore *sp_cuda_semaphores_destroy(sp_cuda_context *context)
{
    sp_cuda_semaphore *unheld = NULL;
    CUexternalSemaphore handle;
    bool left = lost_track(context) || (sp_cuda_gone(context) & SP_CUDA_ENDED);
    while (take_handle(context, &handle, &unheld)) {
        if (!left)
            context->cu.destroy_semaphore(handle);
    }
    sp_store32(&context->retired_count, 0);
    return unheld;
}

void sp_cuda_semaphores_free(sp_cuda_semaphore *semaphore)
{
    while (semaphore) {
        sp_cuda_semaphore *next = semaphore->next;
        sp_cuda_semaphore_free(semaphore);
        semaphore = next;
    }
}

/* ---- Public ---- */

sp_cuda_semaphore *sp_cuda_semaphore_ref(sp_cuda_semaphore *semaphore)
{
    if (semaphore)
        sp_waiter_ref(&semaphore->base);
    return semaphore;
}

void sp_cuda_semaphore_unref(sp_cuda_semaphore *semaphore)
{
    if (semaphore)
        sp_waiter_unref(&semaphore->base);
}

static CUexternalSemaphore handle_of(const sp_cuda_semaphore *semaphore)
{
    uint32_t gone = sp_cuda_gone(semaphore->context);
    return gone & (SP_CUDA_DEAD | SP_CUDA_ENDED) ? NULL : semaphore->handle;
}

CUexternalSemaphore sp_cuda_semaphore_handle(const sp_cuda_semaphore *semaphore)
{
    return semaphore ? handle_of(semaphore) : NULL;
}

CUexternalSemaphore sp_cuda_semaphore_from_point(const sp_point *point)
{
    if (!point || point->kind != SP_KIND_CUDA || !point->waiter)
        return NULL;
    if (sp_cuda_is_timeline(point->waiter))
        return handle_of(sp_cuda_semaphore_of(point->waiter));
    if (point->waiter->ops == &sp_cuda_signal_ops)
        return handle_of(sp_cuda_signal_of(point->waiter)->semaphore);
    return NULL;
}
