/* SPDX-License-Identifier: MIT
 *
 * OpenGL: the helper context: who uses it, and what is not taken for granted of it.
 */
#include "gl_case.h"

static gl_play_semaphore payload;

static void start_helped(bool glsyncs)
{
    payload = (gl_play_semaphore){0};
    open_gl();
    gl_play_install();
    if (glsyncs) {
        gl_hook_hide_extensions(" EGL_KHR_fence_sync ");
        gl_hook_set_versions(NULL, "1.4");
    }
    with_helper();
    open_library();
}

static void end(sp_gl_semaphore *semaphore)
{
    sp_gl_semaphore_unref(semaphore);
    finish();
}

/* A helper of a client API that eglGetCurrentContext() does not tell of. */
static EGLContext EGLAPIENTRY not_the_helper(void)
{
    EGLContext current = gl_hook_real.eglGetCurrentContext();
    return current == helper.native ? EGL_NO_CONTEXT : current;
}

TEST_NEEDING(a_helper_that_nobody_tells_of, WITH_DOUBLES)
{
    start_helped(false);
    GL_HOOK_REPLACE(gl_hook_get_current, eglGetCurrentContext, not_the_helper);
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payload);
    sp_point point = binary_point(binary, 0);
    gl_hook_fail(GL_HOOK_eglCreateSyncKHR, GL_HOOK_NO_MEMORY, 0, 1);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_OUT_OF_MEMORY); /* the wait is in the stream */
    CHECK_ERROR(sp_wait(&point), SP_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 1);
    gl_play_signal(&payload, 0);
    sp_point_unref(&point);
    point = binary_point(binary, 0);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    end(binary);
}

/* ---- Who waits for whom ---- */

static flag flushes, go_on;

static void flush_slowly(void)
{
    flag_set(&flushes);
    CHECK(flag_wait(&go_on)); /* not, if who is to set it waits for the flush */
}

static void wait_for(void *user)
{
    CHECK_STATUS(sp_wait(user), SP_OK);
}

static void poll_meanwhile(void *user)
{
    CHECK_STATUS(sp_poll(user), SP_PENDING);
}

TEST_NEEDING(looks_do_not_wait_for_a_wait_in_the_helper, WITH_DOUBLES)
{
    worker waits;
    start_helped(true);
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payload);
    sp_point point = binary_point(binary, 0), fence = signal_point();
    gl_hook_replace(GL_HOOK_glFlush, flush_slowly);
    worker_start(&waits, 0, wait_for, &point);
    CHECK(flag_wait(&flushes));
    run_elsewhere(poll_meanwhile, &fence);
    flag_set(&go_on);
    gl_play_signal(&payload, 0);
    worker_join(&waits);
    gl_hook_replace(GL_HOOK_glFlush, NULL);
    run_elsewhere(wait_for, &fence);
    sp_point_unref(&fence);
    sp_point_unref(&point);
    end(binary);
}
