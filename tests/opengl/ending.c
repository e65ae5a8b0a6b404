/* SPDX-License-Identifier: MIT
 *
 * OpenGL: other threads are in the driver, or on their way there, when the context is destroyed.
 * Once that has returned nobody is, and what was reached by then is known to be.
 */
#include "gl_case.h"

/* ---- One call that lasts ---- */

static flag inside, go_on;
static bool finished; /* atomic */

static void last(void)
{
    flag_set(&inside);
    CHECK(flag_wait(&go_on));
    test_sleep_ms(5); /* for who does not wait for the end of this */
    __atomic_store_n(&finished, true, __ATOMIC_SEQ_CST);
}

static void let_go_on(void *user)
{
    (void)user;
    flag_set(&go_on);
}

/* Destroys while the other thread is in the call, which ends DELAY_MS later. */
static void destroy_meanwhile(worker *other)
{
    worker late;
    CHECK(flag_wait(&inside));
    worker_start(&late, DELAY_MS, let_go_on, NULL);
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
    CHECK(__atomic_load_n(&finished, __ATOMIC_SEQ_CST));
    CHECK_EQUAL(gl_hook_live_syncs(), 0);
    CHECK_EQUAL(gl_hook_live_semaphores(), 0);
    unsigned after = gl_hook_all_calls();
    worker_join(&late);
    worker_join(other);
    CHECK_EQUAL(gl_hook_all_calls(), after);
    CHECK_EQUAL(gl_hook_live_syncs(), 0);
}

/* ---- Host waits ---- */

static void wait_until_destroyed(void *user)
{
    CHECK_ERROR(sp_wait(user), SP_ERROR_INVALID_STATE);
}

static bool enter_slowly(void *user)
{
    last();
    return gl_helper_enter(user);
}

static void check_slow_helper(sp_gl_semaphore_type type)
{
    worker waits;
    gl_play_semaphore payload = {.counting = type != SP_GL_SEMAPHORE_BINARY};
    open_gl();
    gl_play_install();
    with_helper();
    sp_gl_context_desc desc = context_desc();
    desc.helper_enter = enter_slowly;
    CHECK_STATUS(sp_gl_context_create(&desc, &context), SP_OK);
    sp_gl_semaphore *semaphore = import_played(type, &payload);
    sp_point point = payload.counting ? value_point(semaphore, 1) : binary_point(semaphore, 0);
    worker_start(&waits, 0, wait_until_destroyed, &point);
    destroy_meanwhile(&waits);
    CHECK_EQUAL(gl_helper_wrong, 0);
    sp_point_unref(&point);
    sp_gl_semaphore_unref(semaphore);
    close_gl();
}

TEST_NEEDING(destroyed_while_a_binary_is_waited_for, WITH_DOUBLES)
{
    check_slow_helper(SP_GL_SEMAPHORE_BINARY);
}

TEST_NEEDING(destroyed_while_a_value_is_waited_for, WITH_DOUBLES)
{
    check_slow_helper(SP_GL_SEMAPHORE_TIMELINE);
}

/* ---- Releases, looks and exports ---- */

static void release(void *user)
{
    sp_point_unref(user);
}

static EGLBoolean EGLAPIENTRY destroy_slowly(EGLDisplay display, EGLSync sync)
{
    last();
    return gl_hook_real.eglDestroySync(display, sync);
}

TEST(destroyed_while_a_point_is_released)
{
    worker releases;
    start();
    sp_point point = signal_point();
    GL_HOOK_REPLACE(PFNEGLDESTROYSYNCPROC, eglDestroySync, destroy_slowly);
    worker_start(&releases, 0, release, &point);
    destroy_meanwhile(&releases);
    close_gl();
}

static void look(void *user)
{
    sp_status status = sp_poll(user);
    CHECK(status == SP_PENDING || status == SP_ERROR_INVALID_STATE);
}

static EGLint EGLAPIENTRY look_slowly(EGLDisplay display, EGLSync sync, EGLint flags,
                                      EGLTime timeout)
{
    static bool again;
    (void)display;
    (void)sync;
    (void)flags;
    (void)timeout;
    if (!__atomic_exchange_n(&again, true, __ATOMIC_SEQ_CST))
        last();
    return EGL_TIMEOUT_EXPIRED;
}

TEST(destroyed_while_a_point_is_polled)
{
    worker looks;
    start();
    sp_point point = signal_point();
    GL_HOOK_REPLACE(PFNEGLCLIENTWAITSYNCPROC, eglClientWaitSync, look_slowly);
    worker_start(&looks, 0, look, &point);
    destroy_meanwhile(&looks);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_INVALID_STATE);
    sp_point_unref(&point);
    close_gl();
}

/* ---- The last answers ---- */

static void wait_for_last_answer(void *user)
{
    CHECK_STATUS(sp_wait(user), SP_OK);
}

TEST(waits_end_with_the_last_answer)
{
    enum { THREADS = 4, ROUNDS = 25 };
    open_gl();
    gl_hook_withhold(true);
    for (unsigned round = 0; round < ROUNDS; round++) {
        worker threads[THREADS];
        open_library();
        sp_point points[THREADS];
        for (unsigned i = 0; i < THREADS; i++) {
            points[i] = signal_point();
            worker_start(&threads[i], 0, wait_for_last_answer, &points[i]);
        }
        gl.call.Finish();
        for (unsigned i = 0; i < THREADS; i++)
            gl_hook_let_go(sp_gl_sync_from_point(&points[i]));
        CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
        for (unsigned i = 0; i < THREADS; i++) {
            worker_join(&threads[i]);
            sp_point_unref(&points[i]);
        }
        CHECK_EQUAL(gl_hook_live_syncs(), 0);
    }
    close_gl();
}

/* ---- Many at once ---- */

typedef struct user_of_points {
    worker worker;
    sp_point points[3];
    flag stop;
} user_of_points;

static void check_unreached(sp_status status)
{
    CHECK(status == SP_TIMEOUT || status == SP_PENDING || status == SP_ERROR_INVALID_STATE);
}

static void use_until_stopped(void *user)
{
    user_of_points *self = user;
    while (!flag_is_set(&self->stop)) {
        for (unsigned i = 0; i < COUNT_OF(self->points); i++) {
            check_unreached(sp_wait_timeout(&self->points[i], MS));
            check_unreached(sp_poll(&self->points[i]));
        }
    }
    for (unsigned i = 0; i < COUNT_OF(self->points); i++)
        sp_point_unref(&self->points[i]);
}

TEST_NEEDING(destroyed_while_threads_use_everything, WITH_DOUBLES)
{
    enum { THREADS = 3, ROUNDS = 20 };
    static user_of_points users[THREADS];
    static gl_play_semaphore binaries[ROUNDS][THREADS], timelines[ROUNDS];
    open_gl();
    gl_play_install();
    with_helper();
    for (unsigned round = 0; round < ROUNDS; round++) {
        open_library();
        timelines[round].counting = true;
        sp_gl_semaphore *timeline = import_played(SP_GL_SEMAPHORE_TIMELINE, &timelines[round]);
        for (unsigned i = 0; i < THREADS; i++) {
            sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &binaries[round][i]);
            users[i] = (user_of_points){.points = {binary_point(binary, 0)}};
            users[i].points[1] = value_point(timeline, i + 1);
            sp_gl_semaphore_unref(binary);
            gl_play_hold(true);
            users[i].points[2] = signal_point();
            worker_start(&users[i].worker, 0, use_until_stopped, &users[i]);
        }
        test_sleep_ms(3);
        CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
        unsigned after = gl_hook_all_calls();
        for (unsigned i = 0; i < THREADS; i++) {
            flag_set(&users[i].stop);
            worker_join(&users[i].worker);
        }
        sp_gl_semaphore_unref(timeline);
        CHECK_EQUAL(gl_hook_all_calls(), after);
        CHECK_EQUAL(gl_hook_live_syncs(), 0);
        CHECK_EQUAL(gl_hook_live_semaphores(), 0);
        CHECK_EQUAL(gl_helper_wrong, 0);
    }
    gl_play_hold(false);
    close_gl();
}

/* ---- Looks that have just begun ---- */

static unsigned without_sync; /* atomic */
static flag polls;

static EGLint EGLAPIENTRY look_at_sync(EGLDisplay display, EGLSync sync, EGLint flags,
                                       EGLTime timeout)
{
    (void)display;
    (void)flags;
    (void)timeout;
    if (sync)
        return EGL_TIMEOUT_EXPIRED;
    __atomic_fetch_add(&without_sync, 1, __ATOMIC_SEQ_CST);
    gl_hook_set_egl_error(EGL_BAD_PARAMETER);
    return EGL_FALSE;
}

static void poll_until_destroyed(void *user)
{
    sp_status status;
    do {
        status = sp_poll(user);
        flag_set(&polls);
    } while (status == SP_PENDING);
    CHECK_STATUS(status, SP_ERROR_INVALID_STATE);
}

/* How many of the rounds meet the gap between the two is chance. */
TEST(looks_that_begin_as_the_context_is_destroyed_have_a_sync)
{
    enum { ROUNDS = 200 };
    open_gl();
    GL_HOOK_REPLACE(PFNEGLCLIENTWAITSYNCPROC, eglClientWaitSync, look_at_sync);
    for (unsigned i = 0; i < ROUNDS; i++) {
        worker other;
        open_library();
        sp_point point = signal_point();
        polls = (flag){0};
        worker_start(&other, 0, poll_until_destroyed, &point);
        while (!flag_is_set(&polls)) {
        }
        CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
        worker_join(&other);
        sp_point_unref(&point);
    }
    CHECK_EQUAL(__atomic_load_n(&without_sync, __ATOMIC_SEQ_CST), 0);
    close_gl();
}
