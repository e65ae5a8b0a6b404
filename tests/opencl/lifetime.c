/* SPDX-License-Identifier: MIT
 *
 * The end of things: contexts destroyed before their points, threads, and the child of a fork (F1).
 */
#include "cl_case.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- The context goes first ---- */

TEST(points_outlive_their_context)
{
    start();
    cl_event gate = cl_make_gate(), failed = cl_make_gate();
    sp_point reached = queue_signals(cl.queue), pending = wrap_event(gate), unset = user_event();
    sp_point failing = wrap_event(failed), done = queue_signals(cl.queue);
    CHECK_STATUS(sp_wait(&reached), SP_OK);
    CHECK_CL(cl.raw.Finish(cl.queue));
    CHECK_CL(cl.raw.SetUserEventStatus(failed, CL_TEST_FAILURE));
    CHECK_STATUS(sp_cl_context_destroy(cl.sp, PATIENCE_NS), SP_OK);
    CHECK_EQUAL(cl_hook_live_objects(), 0); /* the driver's objects went with it */
    unsigned calls = cl_hook_all_calls();
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    CHECK_STATUS(sp_wait(&done), SP_OK); /* though nobody had looked before */
    CHECK_ERROR(sp_poll(&pending), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&pending), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&unset), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&failing), SP_ERROR_FAILED);
    CHECK_ERROR(sp_cl_user_event_set(&unset, SP_OK), SP_ERROR_INVALID_STATE);
    /* Its points still hold the memory of the context. */
    sp_point out = test_marked_point(), marked = out;
    CHECK_ERROR(sp_cl_queue_signal(cl.sp, cl.queue, &out), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cl_event_wrap(cl.sp, gate, &out), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cl_user_event(cl.sp, &out), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.queue, &reached), SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&out, &marked));
    CHECK(sp_cl_event_from_point(&reached) == NULL);
    sp_point_unref(&reached);
    sp_point_unref(&pending);
    sp_point_unref(&unset);
    sp_point_unref(&failing);
    sp_point_unref(&done);
    CHECK_EQUAL(cl_hook_all_calls(), calls);
    CHECK_CL(cl.raw.ReleaseEvent(failed));
    cl_open_gate(gate);
    cl_close_driver();
}

/* Commands that wait for a user event of ours must not wait for ever. */
TEST(user_events_fail_with_their_context)
{
    start();
    sp_point unset = user_event();
    cl_mem buffer = cl_make_buffer();
    cl_event fill = cl_fill(cl.queue, buffer, 5, sp_cl_event_from_point(&unset));
    CHECK_CL(cl.raw.Flush(cl.queue));
    CHECK_STATUS(sp_cl_context_destroy(cl.sp, PATIENCE_NS), SP_OK);
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (cl_status_of(fill) > 0 && sp_now_ns() < end)
        test_sleep_ms(1);
    CHECK(cl_status_of(fill) < 0);
    CHECK_EQUAL(cl_content(buffer), 0);
    sp_point_unref(&unset);
    CHECK_CL(cl.raw.ReleaseEvent(fill));
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    cl_close_driver();
}

TEST_NEEDING(semaphores_outlive_their_context, WITH_SEMAPHORES)
{
    start();
    sp_cl_semaphore *semaphores[3] = {make_semaphore(), make_semaphore(), make_semaphore()};
    sp_point out = test_marked_point(), marked = out;
    sp_point reached = signal_semaphore(cl.queue, semaphores[0]);
    sp_point unused = signal_semaphore(cl.queue, semaphores[1]);
    sp_point unsubmitted = binary_point(semaphores[2], SP_POINT_UNSUBMITTED);
    CHECK_STATUS(sp_wait(&reached), SP_OK);
    sp_cl_semaphore_unref(semaphores[0]);
    CHECK_STATUS(sp_cl_context_destroy(cl.sp, PATIENCE_NS), SP_OK);
    CHECK_EQUAL(cl_hook_live_objects(), 0);
    unsigned calls = cl_hook_all_calls();
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    CHECK_ERROR(sp_wait(&unused), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&unsubmitted), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cl_binary_point(semaphores[1], 0, &out), SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&out, &marked));
    CHECK(sp_cl_semaphore_handle(semaphores[1]) == NULL);
    sp_point_unref(&reached);
    sp_point_unref(&unused);
    sp_point_unref(&unsubmitted);
    sp_cl_semaphore_unref(semaphores[1]);
    sp_cl_semaphore_unref(semaphores[2]);
    CHECK_EQUAL(cl_hook_all_calls(), calls);
    cl_close_driver();
}

TEST_NEEDING(destroy_waits_for_host_waits_that_timed_out, WITH_GATED_SEMAPHORES)
{
    start();
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    signal_raw(semaphore, gate);
    sp_point point = binary_point(semaphore, 0);
    CHECK_STATUS(sp_wait_timeout(&point, 5 * MS), SP_TIMEOUT);
    CHECK_STATUS(sp_cl_context_destroy(cl.sp, 0), SP_TIMEOUT);
    uint64_t before = sp_now_ns();
    CHECK_STATUS(sp_cl_context_destroy(cl.sp, 20 * MS), SP_TIMEOUT);
    CHECK(sp_now_ns() - before >= 20 * MS);
    /* Nothing was freed: it all works. */
    sp_cl_semaphore *another = make_semaphore();
    signal_raw(another, NULL);
    sp_point second = binary_point(another, 0);
    CHECK_STATUS(sp_wait_timeout(&second, 5 * MS), SP_TIMEOUT); /* behind the first */
    CHECK_STATUS(sp_cl_context_destroy(cl.sp, 0), SP_TIMEOUT);
    sp_point marker = queue_signals(cl.queue);
    CHECK_STATUS(sp_wait(&marker), SP_OK);
    sp_point_unref(&marker);
    cl_open_gate(gate);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_wait(&second), SP_OK);
    sp_cl_semaphore_unref(semaphore);
    sp_cl_semaphore_unref(another);
    sp_point_unref(&point);
    sp_point_unref(&second);
    finish();
}

/* Also if the point of that wait is gone. */
TEST_NEEDING(destroy_waits_for_a_wait_without_a_point, WITH_GATED_SEMAPHORES)
{
    start();
    late_gate late;
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    signal_raw(semaphore, gate);
    sp_point point = binary_point(semaphore, 0);
    CHECK_STATUS(sp_wait_timeout(&point, 5 * MS), SP_TIMEOUT);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    CHECK_STATUS(sp_cl_context_destroy(cl.sp, 0), SP_TIMEOUT);
    open_late(&late, gate);
    CHECK_STATUS(sp_cl_context_destroy(cl.sp, PATIENCE_NS), SP_OK);
    join_not_early(&late);
    CHECK_EQUAL(cl_hook_live_objects(), 0);
    cl_close_driver();
}

/* Its own marker has failed a moment ago, with a point or without; or fails as the context ends. */
TEST_NEEDING(destroy_keeps_what_has_just_failed, WITH_FAILURES_ALONG_QUEUES)
{
    for (unsigned round = 0; round < 3; round++) {
        start();
        sp_point gate = user_event(), unset = user_event();
        sp_point *opens = round < 2 ? &gate : &unset;
        cl_mem buffer = cl_make_buffer();
        cl_event fill = cl_fill(cl.queue, buffer, 5, sp_cl_event_from_point(opens));
        sp_point behind = queue_signals(cl.queue);
        uint64_t before = sp_now_ns();
        CHECK_STATUS(sp_cl_user_event_set(&gate, SP_ERROR_CANCELLED), SP_OK);
        if (round == 1)
            sp_point_unref(&behind);
        CHECK_STATUS(sp_cl_context_destroy(cl.sp, PATIENCE_NS), SP_OK);
        CHECK(sp_now_ns() - before >= 100 * MS);
        CHECK_EQUAL(cl_hook_live_objects(), 0);
        sp_point_unref(&behind);
        sp_point_unref(&gate);
        sp_point_unref(&unset);
        CHECK_CL(cl.raw.ReleaseEvent(fill));
        CHECK_CL(cl.raw.ReleaseMemObject(buffer));
        cl_close_driver();
    }
}

/* ---- Threads ---- */

enum { THREADS = 6, ROUNDS = 200 };

static void signal_wait_release(void *user)
{
    cl_command_queue queue = *(cl_command_queue *)user;
    for (unsigned i = 0; i < ROUNDS; i++) {
        sp_point marker = queue_signals(queue), event = user_event(), chain = {0};
        CHECK_STATUS(sp_cl_queue_wait(cl.sp, queue, &marker), SP_OK);
        CHECK_STATUS(sp_chain(&marker, &event, &chain), SP_OK);
        sp_point_unref(&marker);
        CHECK_STATUS(sp_poll(&event), SP_PENDING);
        CHECK_STATUS(sp_cl_user_event_set(&event, SP_OK), SP_OK);
        CHECK_STATUS(sp_wait_timeout(&chain, PATIENCE_NS), SP_OK);
        sp_point_unref(&event);
        sp_point_unref(&chain);
    }
}

TEST(many_threads_on_two_queues)
{
    start();
    worker workers[THREADS];
    for (unsigned i = 0; i < THREADS; i++)
        worker_start(&workers[i], 0, signal_wait_release, i % 2 ? &cl.queue : &cl.other);
    for (unsigned i = 0; i < THREADS; i++)
        worker_join(&workers[i]);
    finish();
}

typedef struct semaphore_user {
    worker worker;
    sp_cl_semaphore *semaphore;
    cl_command_queue queue;
    unsigned won;
} semaphore_user;

/* All want the one semaphore: what is refused is told, nothing is lost. */
static void fight_for_it(void *user)
{
    semaphore_user *self = user;
    while (self->won < 30) {
        sp_point point = {0};
        sp_status status =
            sp_cl_queue_signal_semaphore(cl.sp, self->queue, self->semaphore, &point);
        if (status != SP_OK) {
            CHECK_STATUS(status, SP_ERROR_INVALID_STATE);
            test_sleep_ms(1);
            continue;
        }
        CHECK_STATUS(sp_wait_timeout(&point, PATIENCE_NS), SP_OK);
        sp_point_unref(&point);
        self->won++;
    }
}

TEST_NEEDING(threads_fight_for_a_semaphore, WITH_SEMAPHORES)
{
    start();
    semaphore_user users[4] = {{.won = 0}};
    sp_cl_semaphore *semaphore = make_semaphore();
    for (unsigned i = 0; i < COUNT_OF(users); i++) {
        users[i].semaphore = semaphore;
        users[i].queue = i % 2 ? cl.queue : cl.other;
        worker_start(&users[i].worker, 0, fight_for_it, &users[i]);
    }
    for (unsigned i = 0; i < COUNT_OF(users); i++)
        worker_join(&users[i].worker);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

/* Points and semaphores are released while their context ends. */
static sp_point held[THREADS][ROUNDS];
static sp_cl_semaphore *held_semaphores[THREADS];

static void release_all(void *user)
{
    sp_point *points = user;
    for (unsigned i = 0; i < ROUNDS; i++)
        sp_point_unref(&points[i]);
    sp_cl_semaphore_unref(held_semaphores[(points - held[0]) / ROUNDS]);
}

TEST(releases_race_with_the_end)
{
    for (unsigned round = 0; round < 5; round++) {
        start();
        worker workers[THREADS];
        for (unsigned t = 0; t < THREADS; t++) {
            held_semaphores[t] = cl.options.doubled ? make_semaphore() : NULL;
            for (unsigned i = 0; i < ROUNDS; i++)
                held[t][i] = i % 2 ? user_event() : queue_signals(cl.queue);
            if (held_semaphores[t]) {
                sp_point_unref(&held[t][7]);
                held[t][7] = binary_point(held_semaphores[t], 0);
            }
        }
        for (unsigned t = 0; t < THREADS; t++)
            worker_start(&workers[t], 0, release_all, held[t]);
        if (round % 2)
            test_sleep_ms(1);
        CHECK_STATUS(sp_cl_context_destroy(cl.sp, PATIENCE_NS), SP_OK);
        CHECK_EQUAL(cl_hook_live_objects(), 0);
        unsigned calls = cl_hook_all_calls();
        for (unsigned t = 0; t < THREADS; t++)
            worker_join(&workers[t]);
        CHECK_EQUAL(cl_hook_all_calls(), calls);
        cl_close_driver();
    }
}

/* ---- Fork ---- */

#define EXPECT_IN_CHILD(call, expected)                                                            \
    do {                                                                                           \
        if ((call) != (expected))                                                                  \
            _exit(__LINE__ % 200 + 1);                                                             \
    } while (0)

static void check_child(pid_t child)
{
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
}

static void child_of_fork(sp_point *pending, sp_point *reached, sp_cl_semaphore *semaphore)
{
    sp_point out = {0};
    sp_cl_semaphore *made = NULL;
    const sp_cl_semaphore_import_desc desc = {.size = sizeof(desc), .fd = 0};
    int fake;
    unsigned calls = cl_hook_all_calls();
    EXPECT_IN_CHILD(sp_poll(pending), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_wait(reached), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_cl_user_event_set(pending, SP_OK), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_cl_queue_signal(cl.sp, cl.queue, &out), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_cl_queue_wait(cl.sp, cl.queue, pending), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_cl_user_event(cl.sp, &out), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_cl_event_wrap(cl.sp, sp_cl_event_from_point(reached), &out),
                    SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_cl_semaphore_import(cl.sp, &desc, &made), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_cl_semaphore_wrap(cl.sp, (cl_semaphore_khr)(void *)&fake, &made),
                    SP_ERROR_FORKED);
    if (semaphore) {
        EXPECT_IN_CHILD(sp_cl_binary_point(semaphore, 0, &out), SP_ERROR_FORKED);
        EXPECT_IN_CHILD(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, &out),
                        SP_ERROR_FORKED);
        sp_cl_semaphore_unref(semaphore);
    }
    sp_point_unref(pending);
    EXPECT_IN_CHILD(sp_cl_context_destroy(cl.sp, SP_FOREVER), SP_ERROR_FORKED);
    sp_point_unref(reached);
    EXPECT_IN_CHILD(cl_hook_all_calls(), calls);
    _exit(0);
}

TEST(F1_child_of_a_fork)
{
    start();
    sp_point pending = user_event(), reached = queue_signals(cl.queue);
    sp_cl_semaphore *semaphore = cl.options.doubled ? make_semaphore() : NULL;
    CHECK_STATUS(sp_wait(&reached), SP_OK);
    pid_t child = fork();
    if (child == 0)
        child_of_fork(&pending, &reached, semaphore);
    check_child(child);
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    CHECK_STATUS(sp_poll(&pending), SP_PENDING);
    CHECK_STATUS(sp_cl_user_event_set(&pending, SP_OK), SP_OK);
    CHECK_STATUS(sp_wait(&pending), SP_OK);
    sp_point_unref(&pending);
    sp_point_unref(&reached);
    sp_cl_semaphore_unref(semaphore);
    finish();
}
