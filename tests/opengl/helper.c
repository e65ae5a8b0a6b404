/* SPDX-License-Identifier: MIT
 *
 * OpenGL: the helper context: who uses it, and what is not taken for granted of it.
 */
#include "gl_case.h"

#include <string.h>

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
    CHECK_ERROR(sp_wait(&point), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_OUT_OF_MEMORY);
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

static void wait_shortly(void *user)
{
    uint64_t start_ns = sp_now_ns();
    CHECK_STATUS(sp_poll(user), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(user, 20 * MS), SP_TIMEOUT);
    CHECK(sp_now_ns() - start_ns < PATIENCE_NS / 4);
}

TEST_NEEDING(a_wait_keeps_its_time_beside_one_in_the_helper, WITH_DOUBLES)
{
    worker waits;
    gl_play_semaphore there = {0}, counting = {.counting = true};
    start_helped(false);
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payload);
    sp_gl_semaphore *second = import_played(SP_GL_SEMAPHORE_BINARY, &there);
    sp_gl_semaphore *timeline = import_played(SP_GL_SEMAPHORE_TIMELINE, &counting);
    sp_point point = binary_point(binary, 0), other = binary_point(second, 0);
    sp_point value = value_point(timeline, 1);
    gl_play_signal(&there, 0);
    gl_hook_replace(GL_HOOK_glFlush, flush_slowly);
    worker_start(&waits, 0, wait_for, &point);
    CHECK(flag_wait(&flushes));
    run_elsewhere(wait_shortly, &other);
    run_elsewhere(wait_shortly, &value);
    gl_play_signal(&payload, 0);
    flag_set(&go_on);
    worker_join(&waits);
    gl_hook_replace(GL_HOOK_glFlush, NULL);
    CHECK(there.signalled); /* nothing was used up */
    run_elsewhere(wait_for, &other);
    gl_play_signal(&counting, 1);
    run_elsewhere(wait_for, &value);
    sp_point_unref(&point);
    sp_point_unref(&other);
    sp_point_unref(&value);
    sp_gl_semaphore_unref(second);
    sp_gl_semaphore_unref(timeline);
    end(binary);
}

/* ---- A helper that says no ---- */

static bool refuses;

static bool enter_or_refuse(void *user)
{
    return !refuses && gl_helper_enter(user);
}

TEST_NEEDING(a_helper_that_refuses, WITH_DOUBLES)
{
    start_helped(false);
    sp_gl_context_desc desc = context_desc();
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
    desc.helper_enter = enter_or_refuse;
    CHECK_STATUS(sp_gl_context_create(&desc, &context), SP_OK);
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payload);
    sp_point point = binary_point(binary, 0);
    refuses = true;
    CHECK_ERROR(sp_wait_timeout(&point, 5 * MS), SP_ERROR_WRONG_CONTEXT);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 0);
    sp_point fence = signal_point(); /* the context's own stream does not stand still */
    CHECK_STATUS(sp_wait(&fence), SP_OK);
    refuses = false;
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&fence);
    sp_point_unref(&point);
    end(binary);
}

/* ---- Nothing tells when a wait has run ---- */

static void check_refused(sp_gl_semaphore *binary)
{
    sp_point marked = test_marked_point(), out = marked;
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, binary, 0, NULL, &out),
                SP_ERROR_INVALID_STATE);
    CHECK(strstr(sp_last_error()->message, "import"));
    CHECK(test_same_point(&out, &marked));
    CHECK_EQUAL(gl_play_wrong(), 0);
}

static void wait_in_vain(void *user)
{
    CHECK_ERROR(sp_wait(user), SP_ERROR_OUT_OF_MEMORY);
}

TEST_NEEDING(no_signal_after_a_wait_without_its_fence, WITH_DOUBLES)
{
    start_helped(false);
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payload);
    gl_play_hold(true);
    sp_point point = signal_semaphore(binary, 0);
    gl_hook_fail(GL_HOOK_eglCreateSyncKHR, GL_HOOK_NO_MEMORY, 0, 1);
    run_elsewhere(wait_in_vain, &point);
    check_refused(binary);
    sp_point_unref(&point);
    check_refused(binary);
    gl_play_hold(false);
    check_refused(binary);
    end(binary);
}
