/* SPDX-License-Identifier: MIT
 *
 * OpenGL: fence syncs, ours and the user's, on the thread of the context and on others.
 */
#include "gl_case.h"

#include <string.h>

static void wait_for(void *user)
{
    CHECK_STATUS(sp_wait(user), SP_OK);
}

TEST(a_fence_is_reached)
{
    start();
    gl_copy copy;
    gl_copy_init(&copy, &gl);
    gl_copy_produce(&copy, 7);
    gl_copy_submit(&copy);
    sp_point point = signal_point();
    CHECK_EQUAL(point.kind, SP_KIND_OPENGL_SYNC);
    CHECK_EQUAL(point.flags, 0);
    CHECK_EQUAL(point.raw.opengl_sync.loader, gl.loader);
    CHECK(sp_gl_sync_from_point(&point) == point.raw.opengl_sync.sync);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_EQUAL(copy.target[0], 7);
    CHECK_EQUAL(copy.target[GL_COPY_WORDS - 1], 7 + GL_COPY_WORDS - 1);
    sp_point_unref(&point);
    gl_copy_fini(&copy);
    finish();
}

/* G1: the flush is ours, and comes before the point does. */
TEST(G1_a_fence_is_flushed_in_its_context)
{
    start();
    unsigned before = gl_hook_calls(GL_HOOK_glFlush);
    sp_point point = signal_point();
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glFlush), before + 1);
    run_elsewhere(wait_for, &point);
    sp_point_unref(&point);
    finish();
}

static gl_context other; /* shares with gl */

static void wait_in_other(void *user)
{
    gl_make_current(&other);
    CHECK_STATUS(sp_wait(user), SP_OK);
    gl_make_none_current(&other);
}

TEST(G1_waited_for_from_another_context)
{
    start();
    sp_gl_context *second = open_sharing(&other);
    gl_make_current(&gl);
    sp_point point = signal_point();
    run_elsewhere(wait_in_other, &point);
    gl_make_current(&other);
    CHECK_STATUS(sp_gl_context_wait(second, &point, NULL), SP_OK);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    gl_make_current(&gl);
    sp_point_unref(&point);
    gl_close(&other);
    finish();
}

TEST(G1_a_GLsync_of_a_shared_context)
{
    start_with_glsyncs(false);
    sp_gl_context *second = open_sharing(&other);
    gl_make_current(&gl);
    sp_point point = signal_point();
    CHECK(point.raw.opengl_sync.display == NULL);
    run_elsewhere(wait_in_other, &point);
    gl_make_current(&other);
    sp_point again = {0};
    CHECK_STATUS(sp_gl_context_signal(second, 0, &again), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(second, &again, NULL), SP_OK);
    sp_point_unref(&again);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    gl_make_current(&gl);
    sp_point_unref(&point);
    gl_close(&other);
    finish();
}

/* A lost context may say anything: it is not asked, though it shares with a living one. */
TEST(a_GLsync_while_a_lost_context_is_current)
{
    start_with_glsyncs(false);
    sp_point point = signal_point();
    sp_gl_context *second = open_sharing(&other);
    sp_gl_context_lost(second);
    unsigned before = gl_hook_all_calls();
    CHECK_ERROR(sp_poll(&point), SP_ERROR_WRONG_CONTEXT);
    CHECK_EQUAL(gl_hook_all_calls(), before);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    gl_make_current(&gl);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    gl_close(&other);
    finish();
}

/* ---- G2: the wrong context ---- */

static void check_wrong_context(void)
{
    sp_point marked = test_marked_point(), out = marked, noop = sp_point_noop();
    sp_gl_sync_wrap_desc wrap = {.size = sizeof(wrap), .sync = &out};
    unsigned before = gl_hook_all_calls();
    CHECK_ERROR(sp_gl_context_signal(context, 0, &out), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_gl_context_wait(context, &noop, NULL), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_gl_context_collect(context), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_gl_sync_wrap(context, &wrap, &out), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_gl_context_destroy(context), SP_ERROR_WRONG_CONTEXT);
    CHECK_EQUAL(gl_hook_all_calls(), before);
    CHECK(test_same_point(&out, &marked));
}

TEST(G2_no_context_is_current)
{
    start();
    gl_make_none_current(&gl);
    check_wrong_context();
    gl_make_current(&gl);
    finish();
}

TEST(G2_another_context_is_current)
{
    start();
    gl_open_second(&other, &gl, false);
    gl_make_current(&other);
    check_wrong_context();
    gl_make_current(&gl);
    gl_close(&other);
    finish();
}

TEST(G2_a_GLsync_without_context_or_helper)
{
    start_with_glsyncs(false);
    sp_point point = signal_point();
    gl_make_none_current(&gl);
    unsigned before = gl_hook_calls(GL_HOOK_glClientWaitSync);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_WRONG_CONTEXT);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glClientWaitSync), before);
    gl_make_current(&gl);
    CHECK_STATUS(sp_wait(&point), SP_OK); /* it was no failure of the point */
    gl_make_none_current(&gl);
    CHECK_STATUS(sp_wait(&point), SP_OK); /* known */
    gl_make_current(&gl);
    sp_point_unref(&point);
    finish();
}

/* ---- Helper ---- */

static void poll_many_times(void *user)
{
    for (unsigned i = 0; i < 200; i++) {
        sp_status status = sp_poll(user);
        CHECK(status == SP_OK || status == SP_PENDING);
    }
    CHECK_STATUS(sp_wait(user), SP_OK);
    CHECK(gl.egl.GetCurrentContext() == EGL_NO_CONTEXT);
}

TEST(helper_serves_threads_without_a_context)
{
    enum { THREADS = 4 };
    worker threads[THREADS];
    start_with_glsyncs(true);
    gl_hook_withhold(true);
    sp_point point = signal_point();
    for (unsigned i = 0; i < THREADS; i++)
        worker_start(&threads[i], 0, poll_many_times, &point);
    test_sleep_ms(DELAY_MS);
    gl_hook_let_go(sp_gl_sync_from_point(&point));
    for (unsigned i = 0; i < THREADS; i++)
        worker_join(&threads[i]);
    CHECK(gl_helper_entered > 0);
    CHECK_EQUAL(gl_helper_wrong, 0);
    CHECK(gl_is_current(&gl));
    sp_point_unref(&point);
    finish();
}

TEST(helper_is_not_needed_where_the_context_is_current)
{
    start_with_glsyncs(true);
    sp_point point = signal_point();
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_EQUAL(gl_helper_entered, 0);
    sp_point_unref(&point);
    finish();
}

static bool refuse_to_enter(void *user)
{
    (void)user;
    gl_helper_entered++;
    return false;
}

static void wait_in_vain(void *user)
{
    CHECK_ERROR(sp_wait(user), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_poll(user), SP_ERROR_WRONG_CONTEXT);
}

TEST(helper_that_cannot_be_entered)
{
    open_gl();
    gl_hook_hide_extensions(" EGL_KHR_fence_sync ");
    gl_hook_set_versions(NULL, "1.4");
    sp_gl_context_desc desc = context_desc();
    desc.helper_enter = refuse_to_enter;
    desc.helper_leave = gl_helper_leave;
    CHECK_STATUS(sp_gl_context_create(&desc, &context), SP_OK);
    sp_point point = signal_point();
    run_elsewhere(wait_in_vain, &point);
    CHECK(gl_helper_entered > 0);
    sp_point_unref(&point);
    finish();
}

/* ---- Time ---- */

static void let_go(void *user)
{
    gl_hook_let_go(sp_gl_sync_from_point(user));
}

/* A double: a driver like WebGL's, whose waits may not block. */
static void check_waits_that_end_at_once(void)
{
    worker late;
    gl_hook_waits_end_at_once(true);
    gl_hook_withhold(true);
    sp_point point = signal_point();
    uint64_t begin = sp_now_ns();
    unsigned before = gl_hook_steps();
    CHECK_STATUS(sp_wait_timeout(&point, 50 * MS), SP_TIMEOUT);
    CHECK(sp_now_ns() - begin >= 50 * MS);
    CHECK(gl_hook_steps() - before < 2000); /* 25 us and more between looks, but while spinning */
    worker_start(&late, DELAY_MS, let_go, &point);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    worker_join(&late);
    sp_point_unref(&point);
}

TEST(waits_that_end_at_once_EGLSync)
{
    start();
    check_waits_that_end_at_once();
    finish();
}

TEST(waits_that_end_at_once_GLsync)
{
    start_with_glsyncs(false);
    check_waits_that_end_at_once();
    finish();
}

TEST(a_blocking_wait_makes_few_calls)
{
    start();
    gl_hook_withhold(true);
    sp_point point = signal_point();
    sp_wait_options no_spin = {.size = sizeof(no_spin), .timeout_ns = 100 * MS};
    unsigned before = gl_hook_steps();
    CHECK_STATUS(sp_wait_with(&point, &no_spin), SP_TIMEOUT);
    CHECK(gl_hook_steps() - before <= 60); /* slices of 5 ms, and a probe each */
    gl_hook_let_go(sp_gl_sync_from_point(&point));
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    finish();
}

TEST(a_reached_fence_costs_no_call)
{
    start();
    sp_point point = signal_point();
    CHECK_STATUS(sp_wait(&point), SP_OK);
    unsigned before = gl_hook_all_calls();
    for (unsigned i = 0; i < 100; i++)
        CHECK_STATUS(sp_poll(&point), SP_OK);
    CHECK_EQUAL(gl_hook_all_calls(), before);
    sp_point_unref(&point);
    finish();
}
