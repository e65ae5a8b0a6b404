/* SPDX-License-Identifier: MIT
 *
 * Fence syncs as waiters: one fence each, which serves any number of waits. An EGLSync can be asked
 * and waited for on any thread; a GLsync only in a scope.
 */
#include "gl_internal.h"

/* ---- The native object ---- */

/* One thread may look without counting a call, which others would have to share a counter for: to
 * look is what costs. Who deletes the object asks each sync about that. */
static bool begin_look(sp_gl_sync *sync)
{
    if (__atomic_exchange_n(&sync->looked_at, 1, __ATOMIC_SEQ_CST))
        return false;
    if (SP_LIKELY(__atomic_load_n(&sync->context->gone, __ATOMIC_SEQ_CST) == 0))
        return true;
    sp_store32(&sync->looked_at, 0);
    return false;
}

static void end_look(sp_gl_sync *sync)
{
    sp_store32(&sync->looked_at, 0);
}

void sp_gl_sync_drop_native(sp_gl_sync *sync, bool calls)
{
    const sp_gl_driver *gl = &sync->context->gl;
    /* Who began to look before the context was gone takes the object only then: so first this. */
    while (__atomic_load_n(&sync->looked_at, __ATOMIC_SEQ_CST) != 0)
        sp_os_yield();
    void *native = __atomic_exchange_n(&sync->native, NULL, __ATOMIC_SEQ_CST);
    if (!native || !sync->owned || !calls)
        return;
    if (sync->display)
        gl->egl_destroy_sync(sync->display, native);
    else
        gl->delete_sync((GLsync)native);
}

/* ---- Looking and waiting ---- */

static sp_status wait_egl(const sp_gl_sync *sync, uint64_t timeout_ns)
{
    sp_gl_context *context = sync->context;
    switch (
        context->gl.egl_client_wait_sync(sync->display, sp_gl_sync_native(sync), 0, timeout_ns)) {
    case EGL_TIMEOUT_EXPIRED:
        return SP_PENDING;
    case EGL_CONDITION_SATISFIED:
        /* What a lost context calls done need not be. */
        return sp_gl_is_lost(context) ? sp_gl_fail_gone(context) : SP_OK;
    default:
        return sp_gl_fail_egl(context, "eglClientWaitSync");
    }
}

/* A lost context may give 0 here, which is no answer: whatever is unknown is an error. */
static bool is_answer(GLenum result)
{
    return result == GL_ALREADY_SIGNALED || result == GL_CONDITION_SATISFIED ||
           result == GL_TIMEOUT_EXPIRED;
}

static sp_status wait_gl(const sp_gl_sync *sync, sp_gl_scope *scope, uint64_t timeout_ns)
{
    sp_gl_context *context = sync->context;
    GLsync native = (GLsync)sp_gl_sync_native(sync);
    GLenum result;
    sp_status status = SP_GL_CALL_TELLING(
        scope, "glClientWaitSync", result = context->gl.client_wait_sync(native, 0, timeout_ns),
        !is_answer(result));
    if (status == SP_OK && result == GL_TIMEOUT_EXPIRED)
        return SP_PENDING;
    return status == SP_OK && sp_gl_is_lost(context) ? sp_gl_fail_gone(context) : status;
}

/* Waits for a GLsync where that may be done; in the helper, which others need, it only looks. */
static sp_status wait_gl_in_scope(const sp_gl_sync *sync, uint64_t timeout_ns)
{
    sp_gl_scope scope;
    sp_status status = sp_gl_scope_enter(sync->context, SP_GL_TO_LOOK, 0, &scope);
    if (status != SP_OK)
        return status;
    status = wait_gl(sync, &scope, scope.helped ? 0 : timeout_ns);
    sp_gl_scope_leave(&scope);
    return status;
}

/* SP_OK: reached; PENDING; or an error. */
static sp_status wait_native(sp_gl_sync *sync, uint64_t timeout_ns)
{
    sp_gl_context *context = sync->context;
    if (!sp_gl_begin_call(context))
        return sp_gl_answer_gone(context, &sync->base, 1);
    sp_status status =
        sync->display ? wait_egl(sync, timeout_ns) : wait_gl_in_scope(sync, timeout_ns);
    sp_gl_end_call(context);
    return status;
}

sp_status sp_gl_sync_look(sp_gl_sync *sync)
{
    return sp_waiter_known_reached(&sync->base, 1) ? SP_OK : sp_waiter_probe(&sync->base, 1);
}

static sp_status sync_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    sp_gl_sync *sync = sp_gl_sync_of(waiter);
    sp_status status;
    if (SP_LIKELY(sync->display && begin_look(sync))) {
        status = wait_egl(sync, 0);
        end_look(sync);
    } else {
        status = wait_native(sync, 0);
    }
    *reached = status == SP_OK;
    return status == SP_PENDING ? SP_OK : status;
}

void sp_gl_sync_ask_last(sp_gl_sync *sync)
{
    sp_gl_scope scope = sp_gl_scope_here(sync->context);
    if (!sp_gl_sync_native(sync) || sp_waiter_known_reached(&sync->base, 1))
        return;
    sp_status status = sync->display ? wait_egl(sync, 0) : wait_gl(sync, &scope, 0);
    sp_gl_scope_leave(&scope);
    if (status != SP_PENDING)
        sp_waiter_note_probe(&sync->base, 1, status, status == SP_OK);
}

/* For drivers whose own wait ends at once, and for the helper. */
static sp_status poll_until(sp_gl_sync *sync, uint64_t deadline_ns)
{
    sp_backoff backoff = {0};
    sp_status status = wait_native(sync, 0);
    while (status == SP_PENDING && sp_now_ns() < deadline_ns) {
        sp_backoff_sleep(&backoff, deadline_ns);
        status = wait_native(sync, 0);
    }
    return status;
}

/* The driver's own wait. Some end it long before the time is up: WebGL's are not allowed to block
 * at all, and a GLsync is only looked at in the helper. Then polling is what is left. */
static sp_status block_in_driver(sp_gl_sync *sync, uint64_t deadline_ns)
{
    sp_gl_context *context = sync->context;
    uint64_t begin = sp_now_ns();
    if (begin >= deadline_ns)
        return wait_native(sync, 0);
    uint64_t time = deadline_ns - begin < SP_WAIT_SLICE ? deadline_ns - begin : SP_WAIT_SLICE;
    sp_status status = wait_native(sync, time);
    if (status != SP_PENDING || sp_now_ns() >= begin + time / 2)
        return status;
    if (sync->display || !context->helper_enter)
        sp_store32(&context->waits_return_early, 1);
    return poll_until(sync, deadline_ns);
}

sp_status sp_gl_sync_block(sp_gl_sync *sync, uint64_t deadline_ns)
{
    bool polls = sp_load32(&sync->context->waits_return_early) != 0;
    sp_status status = polls ? poll_until(sync, deadline_ns) : block_in_driver(sync, deadline_ns);
    return status == SP_PENDING ? SP_TIMEOUT : status;
}

static sp_status sync_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    (void)value;
    return sp_gl_sync_block(sp_gl_sync_of(waiter), deadline_ns);
}

static void sync_release(sp_waiter *waiter)
{
    sp_gl_sync *sync = sp_gl_sync_of(waiter);
    sp_gl_context *context = sync->context;
    if (!sp_waiter_is_forked(waiter))
        sp_gl_retire_sync(sync);
    sp_gl_context_unref(context);
}

const sp_waiter_ops sp_gl_sync_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_BLOCK,
    .backend = SP_BACKEND_OPENGL,
    .name = "opengl fence",
    .probe = sync_probe,
    .block = sync_block,
    .destroy = sync_release,
};

/* ---- Making ---- */

/* A call, so that the pool gives nothing while sp_gl_context_destroy() goes through it. */
sp_status sp_gl_sync_make(sp_gl_context *context, sp_gl_sync **out)
{
    if (!sp_gl_begin_call(context))
        return sp_gl_no_call(context);
    sp_gl_sync *sync = sp_pool_get(&context->syncs);
    if (sync) {
        sync->native = NULL;
        sync->display = NULL;
        sync->owned = true;
        sync->exportable = false;
        sync->watched = 0;
        sync->next = NULL;
        sync->context = sp_gl_context_ref(context);
        sp_waiter_setup(&sync->base, &sp_gl_sync_ops);
        *out = sync;
    }
    sp_gl_end_call(context);
    return sync ? SP_OK : SP_ERROR_OUT_OF_MEMORY;
}

static sp_status insert_egl(sp_gl_sync *sync)
{
    sp_gl_context *context = sync->context;
    const sp_gl_driver *gl = &context->gl;
    EGLSync native = gl->egl_create_sync_khr
                         ? gl->egl_create_sync_khr(context->display, EGL_SYNC_FENCE, NULL)
                         : gl->egl_create_sync(context->display, EGL_SYNC_FENCE, NULL);
    if (native == EGL_NO_SYNC)
        return sp_gl_fail_egl(context, "eglCreateSync");
    sync->display = context->display;
    __atomic_store_n(&sync->native, native, __ATOMIC_SEQ_CST);
    return SP_OK;
}

static sp_status insert_gl(sp_gl_sync *sync, sp_gl_scope *scope)
{
    const sp_gl_driver *gl = &sync->context->gl;
    GLsync native;
    sp_status status = SP_GL_CALL_TELLING(
        scope, "glFenceSync", native = gl->fence_sync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0), !native);
    if (status == SP_OK)
        __atomic_store_n(&sync->native, (void *)native, __ATOMIC_SEQ_CST);
    return status;
}

sp_status sp_gl_sync_insert(sp_gl_sync *sync, sp_gl_scope *scope)
{
    sp_gl_context *context = sync->context;
    sp_status status;
    if (sp_gl_begin_call(context)) {
        status = context->caps.egl_sync ? insert_egl(sync) : insert_gl(sync, scope);
        sp_gl_end_call(context);
    } else {
        status = sp_gl_no_call(context);
    }
    /* Others cannot flush for us, and must not wait for what may never be submitted. */
    scope->context->gl.flush();
    return status;
}

sp_point sp_gl_sync_point(sp_gl_sync *sync)
{
    return (sp_point){
        .kind = SP_KIND_OPENGL_SYNC,
        .raw.opengl_sync = {.sync = sync->native,
                            .display = sync->display,
                            .loader = (uint64_t)sync->context->gl.loader},
        .waiter = &sync->base,
    };
}
