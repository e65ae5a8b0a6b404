/* SPDX-License-Identifier: MIT
 *
 * Fence syncs as waiters: one fence each, which serves any number of waits. An EGLSync can be asked
 * and waited for on any thread; a GLsync only in a scope.
 */
#include "gl_internal.h"

/* ---- The native object ---- */

/* Counted, so that sp_gl_context_destroy() can delete it while other threads hold points: who counts
 * itself first and then sees the object may use it. */
void *sp_gl_sync_use(sp_gl_sync *sync)
{
    __atomic_fetch_add(&sync->users, 1, __ATOMIC_SEQ_CST);
    void *native = __atomic_load_n(&sync->native, __ATOMIC_SEQ_CST);
    if (SP_LIKELY(native && !sp_gl_is_gone(sync->context)))
        return native;
    sp_gl_sync_unuse(sync);
    return NULL;
}

void sp_gl_sync_unuse(sp_gl_sync *sync)
{
    __atomic_fetch_sub(&sync->users, 1, __ATOMIC_SEQ_CST);
}

void *sp_gl_sync_take_native(sp_gl_sync *sync)
{
    void *native = __atomic_exchange_n(&sync->native, NULL, __ATOMIC_SEQ_CST);
    while (__atomic_load_n(&sync->users, __ATOMIC_SEQ_CST) != 0)
        sp_os_yield();
    return native;
}

void sp_gl_sync_delete_native(const sp_gl_sync *sync, void *native)
{
    const sp_gl_driver *gl = &sync->context->gl;
    if (sync->display)
        gl->egl_destroy_sync(sync->display, native);
    else
        gl->delete_sync((GLsync)native);
}

/* ---- Looking and waiting ---- */

static sp_status wait_egl(sp_gl_sync *sync, void *native, uint64_t timeout_ns)
{
    switch (sync->context->gl.egl_client_wait_sync(sync->display, native, 0, timeout_ns)) {
    case EGL_CONDITION_SATISFIED:
        return SP_OK;
    case EGL_TIMEOUT_EXPIRED:
        return SP_PENDING;
    default:
        return sp_gl_fail_egl(sync->context, "eglClientWaitSync");
    }
}

/* A lost context may give 0 here, which is no answer: whatever is unknown is an error. */
static sp_status wait_gl(sp_gl_sync *sync, void *native, uint64_t timeout_ns)
{
    sp_gl_context *context = sync->context;
    switch (context->gl.client_wait_sync((GLsync)native, 0, timeout_ns)) {
    case GL_ALREADY_SIGNALED:
    case GL_CONDITION_SATISFIED:
        return SP_OK;
    case GL_TIMEOUT_EXPIRED:
        return SP_PENDING;
    default: {
        GLenum error = sp_gl_drain_errors(&context->gl);
        return sp_gl_fail(context, error ? error : GL_CONTEXT_LOST, "glClientWaitSync");
    }
    }
}

/* Waits for a GLsync where that may be done; in the helper, which others need, it only looks. */
static sp_status wait_gl_in_scope(sp_gl_sync *sync, void *native, uint64_t timeout_ns)
{
    sp_gl_scope scope;
    sp_status status = sp_gl_scope_enter(sync->context, SP_GL_PREFER_CURRENT, &scope);
    if (status != SP_OK)
        return status;
    status = wait_gl(sync, native, scope.helper ? 0 : timeout_ns);
    sp_gl_scope_leave(&scope);
    return status;
}

/* SP_OK: reached; PENDING; or an error. */
static sp_status wait_native(sp_gl_sync *sync, uint64_t timeout_ns)
{
    void *native = sp_gl_sync_use(sync);
    if (!native)
        return sp_gl_fail_gone(sync->context);
    sp_status status = sync->display ? wait_egl(sync, native, timeout_ns)
                                     : wait_gl_in_scope(sync, native, timeout_ns);
    /* What a lost context calls done need not be. */
    if (status == SP_OK && sp_gl_is_gone(sync->context))
        status = sp_gl_fail_gone(sync->context);
    sp_gl_sync_unuse(sync);
    return status;
}

sp_status sp_gl_sync_look(sp_gl_sync *sync)
{
    return sp_waiter_known_reached(&sync->base, 1) ? SP_OK : sp_waiter_probe(&sync->base, 1);
}

static sp_status sync_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    sp_status status = wait_native(sp_gl_sync_of(waiter), 0);
    *reached = status == SP_OK;
    return status == SP_PENDING ? SP_OK : status;
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

sp_gl_sync *sp_gl_sync_make(sp_gl_context *context)
{
    sp_gl_sync *sync = sp_pool_get(&context->syncs);
    if (!sync)
        return NULL;
    sync->native = NULL;
    sync->display = NULL;
    sync->owned = true;
    sync->exportable = false;
    sync->watched = 0;
    sync->next = NULL;
    sync->context = sp_gl_context_ref(context);
    sp_waiter_setup(&sync->base, &sp_gl_sync_ops);
    return sync;
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
    sync->native = native;
    return SP_OK;
}

static sp_status insert_gl(sp_gl_sync *sync)
{
    sp_gl_context *context = sync->context;
    GLsync native = context->gl.fence_sync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    if (!native) {
        GLenum error = sp_gl_drain_errors(&context->gl);
        return sp_gl_fail(context, error ? error : GL_CONTEXT_LOST, "glFenceSync");
    }
    sync->native = native;
    return SP_OK;
}

sp_status sp_gl_sync_insert(sp_gl_sync *sync)
{
    sp_gl_context *context = sync->context;
    sp_status status = context->caps.egl_sync ? insert_egl(sync) : insert_gl(sync);
    /* Others cannot flush for us, and must not wait for what may never be submitted. */
    if (status == SP_OK)
        context->gl.flush();
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
