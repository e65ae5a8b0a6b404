/* SPDX-License-Identifier: MIT
 *
 * OpenGL: a semaphore, and several contexts that share it: which of them it depends on, and who
 * waits for whom. Played by the double of doubles/gl_play.h.
 */
#include "gl_case.h"

static gl_play_semaphore payload;
static gl_context other; /* shares with gl */
static sp_gl_context *second;

static sp_gl_semaphore *start_two(sp_gl_semaphore_type type, bool glsyncs)
{
    payload = (gl_play_semaphore){.counting = type != SP_GL_SEMAPHORE_BINARY};
    open_gl();
    gl_play_install();
    if (glsyncs) {
        gl_hook_hide_extensions(" EGL_KHR_fence_sync ");
        gl_hook_set_versions(NULL, "1.4");
    }
    open_library();
    sp_gl_semaphore *made = import_played(type, &payload);
    second = open_sharing(&other);
    return made;
}

/* The second context goes, and its native one. */
static void end_second(bool lost)
{
    if (lost)
        sp_gl_context_lost(second);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    gl_make_current(&gl);
    gl_close(&other);
}

static void end(sp_gl_semaphore *semaphore)
{
    sp_gl_semaphore_unref(semaphore);
    finish();
}

/* ---- A context of the group goes ---- */

static void check_value_outlives(bool lost, bool glsyncs)
{
    sp_gl_semaphore *timeline = start_two(SP_GL_SEMAPHORE_TIMELINE, glsyncs);
    sp_point two = {0}, one = value_point(timeline, 1);
    gl_play_hold(true);
    CHECK_STATUS(sp_gl_context_signal_semaphore(second, timeline, 1, NULL, NULL), SP_OK);
    CHECK_STATUS(sp_gl_context_signal_semaphore(second, timeline, 2, NULL, &two), SP_OK);
    end_second(lost);
    CHECK_STATUS(sp_poll(&one), SP_PENDING);
    gl_play_hold(false);
    CHECK_STATUS(sp_poll(&one), SP_OK);
    CHECK_STATUS(sp_wait(&two), SP_OK);
    sp_point three = signal_semaphore(timeline, 0);
    CHECK_STATUS(sp_wait(&three), SP_OK);
    sp_point_unref(&one);
    sp_point_unref(&two);
    sp_point_unref(&three);
    end(timeline);
}

TEST_NEEDING(a_timeline_outlives_a_context_that_signalled_it, WITH_DOUBLES)
{
    check_value_outlives(false, false);
    check_value_outlives(false, true);
}

TEST_NEEDING(a_timeline_outlives_a_lost_context_that_signalled_it, WITH_DOUBLES)
{
    check_value_outlives(true, false);
    check_value_outlives(true, true);
}

static void check_binary_outlives(bool lost)
{
    sp_gl_semaphore *binary = start_two(SP_GL_SEMAPHORE_BINARY, false);
    sp_point point = binary_point(binary, 0);
    CHECK_STATUS(sp_gl_context_wait(second, &point, NULL), SP_OK);
    end_second(lost);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, binary, 0, NULL, NULL),
                SP_ERROR_INVALID_STATE);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, binary, 0, NULL, NULL), SP_OK);
    CHECK(gl_play_take(&payload));
    end(binary);
}

TEST_NEEDING(a_binary_outlives_a_context_that_waited_for_it, WITH_DOUBLES)
{
    check_binary_outlives(false);
    check_binary_outlives(true);
}

/* One wait, for semaphores of both contexts: each has a fence of its own. */
TEST_NEEDING(a_wait_for_semaphores_of_two_contexts, WITH_DOUBLES)
{
    gl_play_semaphore payloads[2] = {{0}};
    sp_gl_semaphore *first = start_two(SP_GL_SEMAPHORE_BINARY, false), *of_second = NULL;
    int fd = gl_play_fd();
    sp_gl_semaphore_import_desc desc = import_desc(SP_GL_SEMAPHORE_BINARY, fd);
    desc.adopt = true;
    gl_play_next_import(&payloads[1]);
    CHECK_STATUS(sp_gl_semaphore_import(second, &desc, &of_second), SP_OK);
    sp_point points[2] = {binary_point(first, 0), binary_point(of_second, 0)}, both = {0};
    CHECK_STATUS(sp_chain(&points[0], &points[1], &both), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(second, &both, NULL), SP_OK);
    end_second(false);
    gl_play_signal(&payload, 0);
    CHECK_ERROR(sp_poll(&points[1]), SP_ERROR_INVALID_STATE); /* that one went with its context */
    gl_play_signal(&payloads[1], 0);
    CHECK_STATUS(sp_wait(&points[0]), SP_OK);
    sp_point_unref(&both);
    sp_point_unref(&points[0]);
    sp_point_unref(&points[1]);
    sp_gl_semaphore_unref(of_second);
    end(first);
}

/* A native context that is made where one was before: it is another stream. */
static gl_context again;

static EGLContext EGLAPIENTRY same_place(void)
{
    EGLContext current = gl_hook_real.eglGetCurrentContext();
    return current == other.native || current == again.native ? &again : current;
}

TEST_NEEDING(values_do_not_go_back_where_a_context_was_before, WITH_DOUBLES)
{
    gl_play_semaphore gate_payload = {.counting = true};
    sp_gl_semaphore *timeline = start_two(SP_GL_SEMAPHORE_TIMELINE, false);
    gl_make_current(&gl);
    sp_gl_semaphore *gate = import_played(SP_GL_SEMAPHORE_TIMELINE, &gate_payload);
    sp_point closed = value_point(gate, 1);
    gl_open_second(&again, &gl, true);
    gl_make_current(&other);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    GL_HOOK_REPLACE(gl_hook_get_current, eglGetCurrentContext, same_place);
    for (unsigned i = 0; i < 2; i++) {
        sp_gl_context_desc desc = context_desc();
        desc.share = context;
        gl_make_current(i ? &again : &other);
        CHECK_STATUS(sp_gl_context_create(&desc, &second), SP_OK);
        if (i == 0)
            CHECK_STATUS(sp_gl_context_wait(second, &closed, NULL), SP_OK);
        CHECK_STATUS(sp_gl_context_signal_semaphore(second, timeline, 0, NULL, NULL), SP_OK);
        CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    }
    CHECK_EQUAL(gl_play_value(&payload), 0);
    gl_play_signal(&gate_payload, 1);
    CHECK_EQUAL(gl_play_value(&payload), 2);
    CHECK_EQUAL(gl_play_wrong(), 0);
    gl_hook_replace(GL_HOOK_eglGetCurrentContext, NULL);
    gl_make_current(&gl);
    gl_close(&again);
    gl_close(&other);
    sp_point_unref(&closed);
    sp_gl_semaphore_unref(gate);
    end(timeline);
}

/* ---- A fence fails ---- */

TEST_NEEDING(a_failed_fence_is_no_failure_of_the_timeline, WITH_DOUBLES)
{
    payload = (gl_play_semaphore){.counting = true};
    start_plays();
    sp_gl_semaphore *timeline = import_played(SP_GL_SEMAPHORE_TIMELINE, &payload);
    sp_point one = signal_semaphore(timeline, 0), two = value_point(timeline, 2);
    gl_hook_fail(GL_HOOK_eglClientWaitSync, GL_HOOK_INVALID, 0, 1);
    CHECK_STATUS(sp_poll(&one), SP_PENDING); /* the watch of the signal is dropped */
    CHECK_STATUS(sp_wait(&one), SP_OK);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 1);
    CHECK_STATUS(sp_wait_timeout(&two, MS), SP_TIMEOUT);
    gl_hook_fail(GL_HOOK_eglClientWaitSync, GL_HOOK_INVALID, 0, 1);
    CHECK_STATUS(sp_poll(&two), SP_PENDING); /* that of the wait, too */
    gl_hook_fail(GL_HOOK_eglClientWaitSync, GL_HOOK_INVALID, 0, 1000);
    CHECK_ERROR(sp_wait(&two), SP_ERROR_INVALID_STATE); /* this wait ends, without an end */
    gl_hook_heal();
    CHECK_STATUS(sp_poll(&two), SP_PENDING);
    gl_play_signal(&payload, 2);
    CHECK_STATUS(sp_wait(&two), SP_OK);
    sp_point_unref(&one);
    sp_point_unref(&two);
    end(timeline);
}

TEST_NEEDING(a_failed_fence_leaves_the_binary_usable, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_two(SP_GL_SEMAPHORE_BINARY, false);
    sp_point point = binary_point(binary, 0);
    CHECK_STATUS(sp_gl_context_wait(second, &point, NULL), SP_OK);
    gl_play_signal(&payload, 0);
    gl_hook_fail(GL_HOOK_eglClientWaitSync, GL_HOOK_INVALID, 0, 1);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_BACKEND);
    sp_point_unref(&point);
    end_second(false);
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, binary, 0, NULL, NULL), SP_OK);
    CHECK(gl_play_take(&payload));
    end(binary);
}

/* ---- A flush that lasts ---- */

static flag flushes, go_on;

static void flush_slowly(void)
{
    flag_set(&flushes);
    CHECK(flag_wait(&go_on)); /* not, if who is to set it waits for the flush */
}

static void signal_slowly(void *user)
{
    gl_make_current(&other);
    CHECK_STATUS(sp_gl_context_signal_semaphore(second, user, 0, NULL, NULL), SP_OK);
    gl_make_none_current(&other);
}

static void start_slow_signal(worker *signals, sp_gl_semaphore *semaphore)
{
    gl_make_current(&gl);
    gl_hook_replace(GL_HOOK_glFlush, flush_slowly);
    worker_start(signals, 0, signal_slowly, semaphore);
    CHECK(flag_wait(&flushes));
}

static void end_slow_signal(worker *signals)
{
    flag_set(&go_on);
    worker_join(signals);
    gl_hook_replace(GL_HOOK_glFlush, NULL);
    gl_make_current(&other);
    end_second(false);
}

TEST_NEEDING(nobody_waits_for_the_flush_of_a_value, WITH_DOUBLES)
{
    worker signals;
    sp_gl_semaphore *timeline = start_two(SP_GL_SEMAPHORE_TIMELINE, false);
    sp_point one = value_point(timeline, 1), two = value_point(timeline, 2);
    start_slow_signal(&signals, timeline);
    sp_poll(&one);
    CHECK_STATUS(sp_poll(&two), SP_PENDING);
    CHECK_STATUS(sp_gl_context_wait(context, &two, NULL), SP_OK);
    sp_point_unref(&two);
    end_slow_signal(&signals);
    CHECK_STATUS(sp_wait(&one), SP_OK);
    sp_point_unref(&one);
    gl_play_signal(&payload, 2);
    end(timeline);
}

TEST_NEEDING(nobody_waits_for_the_flush_of_a_binary, WITH_DOUBLES)
{
    worker signals;
    sp_gl_semaphore *binary = start_two(SP_GL_SEMAPHORE_BINARY, false);
    sp_point earlier = binary_point(binary, 0);
    start_slow_signal(&signals, binary);
    CHECK_ERROR(sp_poll(&earlier), SP_ERROR_INVALID_STATE);
    sp_point_unref(&earlier);
    sp_point later = binary_point(binary, 0);
    CHECK_STATUS(sp_poll(&later), SP_PENDING);
    sp_point_unref(&later);
    end_slow_signal(&signals);
    CHECK(gl_play_take(&payload));
    end(binary);
}
