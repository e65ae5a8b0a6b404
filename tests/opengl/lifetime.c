/* SPDX-License-Identifier: MIT
 *
 * OpenGL: who keeps what alive; released elsewhere; the context destroyed first, or lost; a fork.
 */
#include "gl_case.h"

#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

static void release(void *user)
{
    sp_point_unref(user);
}

/* ---- The retire list ---- */

TEST(an_EGLSync_is_destroyed_on_any_thread)
{
    start();
    sp_point point = signal_point();
    CHECK_EQUAL(gl_hook_live_syncs(), 1);
    run_elsewhere(release, &point);
    CHECK_EQUAL(gl_hook_live_syncs(), 0);
    finish();
}

TEST(a_GLsync_is_deleted_by_the_next_call)
{
    start_with_glsyncs(false);
    sp_point points[4];
    for (unsigned i = 0; i < 4; i++)
        points[i] = signal_point();
    for (unsigned i = 0; i < 3; i++)
        run_elsewhere(release, &points[i]);
    CHECK_EQUAL(gl_hook_live_syncs(), 4);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glDeleteSync), 0);
    sp_point next = signal_point();
    CHECK_EQUAL(gl_hook_live_syncs(), 2);
    run_elsewhere(release, &points[3]);
    CHECK_STATUS(sp_gl_context_collect(context), SP_OK);
    CHECK_EQUAL(gl_hook_live_syncs(), 1);
    sp_point_unref(&next);
    CHECK_EQUAL(gl_hook_live_syncs(), 0); /* at once, where the context is current */
    finish();
}

TEST(what_is_retired_goes_with_the_context)
{
    start_with_glsyncs(false);
    sp_point point = signal_point();
    run_elsewhere(release, &point);
    CHECK_EQUAL(gl_hook_live_syncs(), 1);
    finish();
}

static gl_context other;

TEST(a_shared_context_deletes_too)
{
    start_with_glsyncs(false);
    sp_point point = signal_point(), retired = signal_point();
    run_elsewhere(release, &retired);
    sp_gl_context *second = open_sharing(&other);
    sp_point_unref(&point);
    CHECK_EQUAL(gl_hook_live_syncs(), 1);
    CHECK_STATUS(sp_gl_context_collect(context), SP_OK);
    CHECK_EQUAL(gl_hook_live_syncs(), 0);
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK); /* with one that shares current */
    CHECK_ERROR(sp_gl_context_create(&(sp_gl_context_desc){.size = 1}, &context),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    gl_make_current(&gl);
    gl_close(&other);
    close_gl();
}

TEST(a_context_that_left_shares_nothing)
{
    start();
    sp_gl_context_desc desc = context_desc();
    sp_gl_context *second = NULL;
    gl_open_second(&other, &gl, true);
    gl_make_current(&other);
    desc.share = context;
    CHECK_STATUS(sp_gl_context_create(&desc, &second), SP_OK);
    CHECK_STATUS(sp_gl_context_collect(context), SP_OK);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    CHECK_ERROR(sp_gl_context_collect(context), SP_ERROR_WRONG_CONTEXT);
    desc.share = context;
    desc.loader = SP_GL_LOADER_GLX;
    CHECK_ERROR(sp_gl_context_create(&desc, &second), SP_ERROR_INVALID_ARGUMENT);
    gl_make_current(&gl);
    gl_close(&other);
    finish();
}

/* ---- The context is destroyed first ---- */

static void check_destroyed_first(bool glsyncs)
{
    gl_hook_withhold(true);
    sp_point reached = signal_point(), unasked = signal_point(), pending = signal_point();
    sp_point copy = sp_point_ref(&pending), out = {0};
    gl_hook_let_go(sp_gl_sync_from_point(&reached));
    CHECK_STATUS(sp_wait(&reached), SP_OK);
    gl_hook_let_go(sp_gl_sync_from_point(&unasked));
    gl.call.Finish();
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
    CHECK_EQUAL(gl_hook_live_syncs(), 0);
    unsigned before = gl_hook_all_calls();
    gl_make_none_current(&gl);
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    CHECK_STATUS(sp_wait(&unasked), SP_OK); /* asked a last time */
    CHECK_ERROR(sp_poll(&pending), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&pending), SP_ERROR_INVALID_STATE);
    CHECK(sp_gl_sync_from_point(&pending) == NULL);
    CHECK_STATUS(sp_chain(&reached, &copy, &out), SP_OK);
    CHECK_ERROR(sp_wait(&out), SP_ERROR_INVALID_STATE);
    sp_point_unref(&out);
    sp_point_unref(&reached);
    sp_point_unref(&unasked);
    sp_point_unref(&pending);
    sp_point_unref(&copy);
    CHECK_EQUAL(gl_hook_all_calls(), before);
    CHECK_EQUAL(gl_hook_calls(glsyncs ? GL_HOOK_glDeleteSync : GL_HOOK_eglDestroySync),
                3 + !glsyncs); /* and the one that was made to find out */
    close_gl();
}

TEST(context_destroyed_before_EGLSyncs)
{
    start();
    check_destroyed_first(false);
}

TEST(context_destroyed_before_GLsyncs)
{
    start_with_glsyncs(false);
    check_destroyed_first(true);
}

TEST_NEEDING(context_destroyed_before_semaphores, WITH_DOUBLES)
{
    gl_play_semaphore payloads[3] = {{0}, {.counting = true}, {0}};
    start_plays();
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payloads[0]);
    sp_gl_semaphore *timeline = import_played(SP_GL_SEMAPHORE_TIMELINE, &payloads[1]);
    sp_gl_semaphore *used = import_played(SP_GL_SEMAPHORE_BINARY, &payloads[2]);
    sp_point pending = binary_point(binary, 0), waited = binary_point(used, 0), out = {0};
    sp_point three = value_point(timeline, 3), four = value_point(timeline, 4);
    CHECK_STATUS(sp_wait_timeout(&three, 0), SP_TIMEOUT);
    CHECK_STATUS(sp_gl_context_wait(context, &waited, NULL), SP_OK);
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, timeline, 3, NULL, &out), SP_OK);
    gl_play_signal(&payloads[2], 0);
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
    CHECK_EQUAL(gl_hook_live_semaphores(), 0);
    CHECK_EQUAL(gl_hook_live_syncs(), 0);
    unsigned before = gl_hook_all_calls();
    CHECK_STATUS(sp_wait(&waited), SP_OK); /* asked a last time */
    CHECK_STATUS(sp_wait(&three), SP_OK);
    CHECK_ERROR(sp_wait(&four), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_poll(&pending), SP_ERROR_INVALID_STATE);
    CHECK_EQUAL(sp_gl_semaphore_name(binary), 0);
    CHECK_EQUAL(sp_gl_semaphore_name_from_point(&pending), 0);
    CHECK_EQUAL(sp_gl_semaphore_name_from_point(&four), 0);
    CHECK_ERROR(sp_gl_binary_point(binary, 0, &out), SP_ERROR_INVALID_STATE);
    sp_point_unref(&out);
    sp_point_unref(&pending);
    sp_point_unref(&waited);
    sp_point_unref(&three);
    sp_point_unref(&four);
    sp_gl_semaphore_unref(binary);
    sp_gl_semaphore_unref(timeline);
    sp_gl_semaphore_unref(used);
    CHECK_EQUAL(gl_hook_all_calls(), before);
    close_gl();
}

/* Points may be used by other threads while the context goes. */
typedef struct poller {
    worker worker;
    sp_point point;
    flag stop;
} poller;

static void poll_until_stopped(void *user)
{
    poller *self = user;
    while (!flag_is_set(&self->stop)) {
        sp_status status = sp_wait_timeout(&self->point, MS);
        CHECK(status == SP_TIMEOUT || status == SP_ERROR_INVALID_STATE);
        status = sp_poll(&self->point);
        CHECK(status == SP_PENDING || status == SP_ERROR_INVALID_STATE);
    }
    sp_point_unref(&self->point);
}

TEST(context_destroyed_while_threads_wait)
{
    enum { THREADS = 4, ROUNDS = 10 };
    static poller pollers[THREADS];
    open_gl();
    gl_hook_withhold(true);
    for (unsigned round = 0; round < ROUNDS; round++) {
        open_library();
        for (unsigned i = 0; i < THREADS; i++) {
            pollers[i] = (poller){.point = signal_point()};
            worker_start(&pollers[i].worker, 0, poll_until_stopped, &pollers[i]);
        }
        test_sleep_ms(2);
        CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
        CHECK_EQUAL(gl_hook_live_syncs(), 0);
        for (unsigned i = 0; i < THREADS; i++) {
            flag_set(&pollers[i].stop);
            worker_join(&pollers[i].worker);
        }
    }
    close_gl();
}

/* ---- Lost ---- */

static void check_lost_calls(void)
{
    sp_point marked = test_marked_point(), out = marked, noop = sp_point_noop();
    unsigned before = gl_hook_all_calls();
    CHECK_ERROR(sp_gl_context_signal(context, 0, &out), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_gl_context_wait(context, &noop, NULL), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_gl_context_collect(context), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_gl_sync_import_fd(context, -1, false, &out), SP_ERROR_DEVICE_LOST);
    CHECK(test_same_point(&out, &marked));
    CHECK_EQUAL(gl_hook_all_calls(), before);
}

static void check_lost(bool glsyncs)
{
    gl_hook_withhold(true);
    sp_point reached = signal_point(), pending = signal_point(), released = signal_point();
    gl_hook_let_go(sp_gl_sync_from_point(&reached));
    CHECK_STATUS(sp_wait(&reached), SP_OK);
    unsigned live = gl_hook_live_syncs();
    sp_gl_context_lost(context);
    sp_gl_context_lost(context);
    unsigned before = gl_hook_all_calls();
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    CHECK_ERROR(sp_poll(&pending), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_wait(&pending), SP_ERROR_DEVICE_LOST);
    check_lost_calls();
    sp_point_unref(&released);
    gl_make_none_current(&gl);
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK); /* needs no context */
    CHECK_ERROR(sp_poll(&pending), SP_ERROR_DEVICE_LOST);
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    sp_point_unref(&reached);
    sp_point_unref(&pending);
    CHECK_EQUAL(gl_hook_all_calls(), before);
    CHECK_EQUAL(gl_hook_live_syncs(), live); /* forgotten */
    (void)glsyncs;
    close_gl();
}

TEST(lost_with_EGLSyncs)
{
    start();
    check_lost(false);
}

TEST(lost_with_GLsyncs)
{
    start_with_glsyncs(false);
    check_lost(true);
}

/* The driver says so itself: also what it calls done then is not believed. */
TEST(W6_the_driver_reports_the_loss)
{
    for (unsigned glsyncs = 0; glsyncs < 2; glsyncs++) {
        if (glsyncs)
            start_with_glsyncs(false);
        else
            start();
        sp_point first = signal_point(), second = signal_point();
        gl_hook_lose_context(true);
        CHECK_ERROR(sp_wait(&first), SP_ERROR_DEVICE_LOST);
        gl_hook_lose_context(false);
        CHECK_ERROR(sp_poll(&first), SP_ERROR_DEVICE_LOST);
        CHECK_ERROR(sp_poll(&second), SP_ERROR_DEVICE_LOST);
        check_lost_calls();
        sp_point_unref(&first);
        sp_point_unref(&second);
        CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
        close_gl();
    }
}

static sp_status lost_status[10];

static void wait_for_loss(void *user)
{
    static unsigned next;
    sp_status status = sp_wait(user);
    lost_status[__atomic_fetch_add(&next, 1, __ATOMIC_SEQ_CST)] = status;
}

TEST(W6_ten_threads_wait_when_it_is_lost)
{
    worker threads[10];
    start();
    gl_hook_withhold(true);
    sp_point point = signal_point();
    for (unsigned i = 0; i < 10; i++)
        worker_start(&threads[i], 0, wait_for_loss, &point);
    test_sleep_ms(DELAY_MS);
    uint64_t begin = sp_now_ns();
    sp_gl_context_lost(context);
    for (unsigned i = 0; i < 10; i++)
        worker_join(&threads[i]);
    CHECK(sp_now_ns() - begin < 2000 * MS);
    for (unsigned i = 0; i < 10; i++)
        CHECK_STATUS(lost_status[i], SP_ERROR_DEVICE_LOST);
    sp_point_unref(&point);
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
    close_gl();
}

TEST_NEEDING(lost_with_semaphores, WITH_DOUBLES)
{
    gl_play_semaphore payloads[2] = {{0}, {.counting = true}};
    start_plays();
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payloads[0]);
    sp_gl_semaphore *timeline = import_played(SP_GL_SEMAPHORE_TIMELINE, &payloads[1]);
    sp_gl_semaphore *made = NULL;
    sp_point signal = binary_point(binary, 0), value = value_point(timeline, 1), out = {0};
    const sp_gl_semaphore_import_desc desc = import_desc(SP_GL_SEMAPHORE_BINARY, 0);
    CHECK_STATUS(sp_wait_timeout(&signal, 0), SP_TIMEOUT);
    CHECK_STATUS(sp_wait_timeout(&value, MS), SP_TIMEOUT);
    sp_gl_context_lost(context);
    unsigned before = gl_hook_all_calls();
    CHECK_ERROR(sp_wait(&signal), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_wait(&value), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, binary, 0, NULL, &out),
                SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_gl_semaphore_import(context, &desc, &made), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_gl_binary_point(binary, 0, &out), SP_ERROR_DEVICE_LOST);
    CHECK_EQUAL(sp_gl_semaphore_name(binary), 0);
    sp_gl_semaphore_unref(binary);
    sp_point_unref(&signal);
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
    CHECK_ERROR(sp_wait(&value), SP_ERROR_DEVICE_LOST);
    sp_point_unref(&value);
    sp_gl_semaphore_unref(timeline);
    CHECK_EQUAL(gl_hook_all_calls(), before);
    close_gl();
}

/* ---- F1 ---- */

#define CHILD_CHECK(condition)                                                                     \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            printf("in the child, not so: %s\n", #condition);                                      \
            fflush(NULL);                                                                          \
            _exit(1);                                                                              \
        }                                                                                          \
    } while (0)

static void join_child(pid_t child)
{
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
}

TEST_NEEDING(F1_a_child_can_only_release, WITH_DOUBLES)
{
    gl_play_semaphore payloads[2] = {{0}, {.counting = true}};
    start_plays();
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payloads[0]);
    sp_gl_semaphore *timeline = import_played(SP_GL_SEMAPHORE_TIMELINE, &payloads[1]);
    sp_point fence = signal_point(), signal = binary_point(binary, 0);
    sp_point value = value_point(timeline, 1), out = {0}, noop = sp_point_noop();
    CHECK_STATUS(sp_wait_timeout(&value, MS), SP_TIMEOUT);
    CHECK_STATUS(sp_wait_timeout(&signal, MS), SP_TIMEOUT);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        unsigned before = gl_hook_all_calls();
        sp_gl_semaphore *made = NULL;
        sp_gl_caps caps = {.size = sizeof(caps)};
        sp_gl_semaphore_import_desc desc = import_desc(SP_GL_SEMAPHORE_BINARY, 0);
        sp_gl_sync_wrap_desc wrap = {.size = sizeof(wrap), .sync = &desc};
        CHILD_CHECK(sp_poll(&fence) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_wait(&signal) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_wait(&value) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_gl_context_signal(context, 0, &out) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_gl_context_collect(context) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_gl_context_caps(context, &caps) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_gl_context_wait(context, &noop, NULL) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_gl_sync_wrap(context, &wrap, &out) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_gl_sync_import_fd(context, -1, false, &out) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_gl_semaphore_import(context, &desc, &made) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_gl_timeline_point(timeline, 1, &out) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_gl_binary_point(binary, 0, &out) == SP_ERROR_FORKED);
        CHILD_CHECK(sp_gl_context_signal_semaphore(context, binary, 0, NULL, &out) ==
                    SP_ERROR_FORKED);
        sp_gl_context_lost(context);
        sp_point_unref(&fence);
        sp_gl_semaphore_unref(binary);
        sp_point_unref(&signal);
        CHILD_CHECK(sp_gl_context_destroy(context) == SP_ERROR_FORKED);
        sp_point_unref(&value);
        sp_gl_semaphore_unref(timeline);
        CHILD_CHECK(gl_hook_all_calls() == before);
        _exit(0);
    }
    join_child(child);
    gl_play_signal(&payloads[0], 0);
    gl_play_signal(&payloads[1], 1);
    CHECK_STATUS(sp_wait(&signal), SP_OK);
    CHECK_STATUS(sp_wait(&value), SP_OK);
    CHECK_STATUS(sp_wait(&fence), SP_OK);
    sp_point_unref(&signal);
    sp_point_unref(&value);
    sp_point_unref(&fence);
    sp_gl_semaphore_unref(binary);
    sp_gl_semaphore_unref(timeline);
    finish();
}

/* ---- Threads ---- */

static sp_point passed[64];

static void use_and_release(void *user)
{
    sp_point *mine = user;
    for (unsigned i = 0; i < 16; i++) {
        CHECK_STATUS(sp_wait(&mine[i]), SP_OK);
        sp_point_unref(&mine[i]);
    }
}

TEST(points_are_waited_for_and_released_by_threads)
{
    worker threads[4];
    start();
    for (unsigned round = 0; round < 20; round++) {
        for (unsigned i = 0; i < 64; i++)
            passed[i] = signal_point();
        for (unsigned i = 0; i < 4; i++)
            worker_start(&threads[i], 0, use_and_release, &passed[16 * i]);
        for (unsigned i = 0; i < 4; i++)
            worker_join(&threads[i]);
        CHECK_EQUAL(gl_hook_live_syncs(), 0);
    }
    finish();
}
