/* SPDX-License-Identifier: MIT
 *
 * Conformance: threads, and the child of a fork.
 */
#include "conformance.h"

#include <sys/wait.h>
#include <unistd.h>

#define WAITERS 8

static uint64_t signalled; /* atomic: the highest number whose signal has begun */

typedef struct waiter {
    worker worker;
    sp_point point;
    uint64_t number;
} waiter;

static void signal_number(uint64_t number)
{
    __atomic_store_n(&signalled, number, __ATOMIC_SEQ_CST);
    fx->signal(number);
}

static void wait_for_number(void *user)
{
    waiter *self = user;
    CHECK_STATUS(sp_wait_timeout(&self->point, PATIENCE_NS), SP_OK);
    CHECK(__atomic_load_n(&signalled, __ATOMIC_SEQ_CST) >= self->number);
    CHECK_STATUS(sp_poll(&self->point), SP_OK);
}

TEST_NEEDING(each_waiter_returns_at_its_own_signal, INDEPENDENT)
{
    waiter waiters[WAITERS];
    for (unsigned i = 0; i < WAITERS; i++) {
        waiters[i].number = i + 1;
        waiters[i].point = fx->point(i + 1);
    }
    for (unsigned i = 0; i < WAITERS; i++)
        worker_start(&waiters[i].worker, 0, wait_for_number, &waiters[i]);
    for (unsigned i = 0; i < WAITERS; i++) {
        test_sleep_ms(10);
        CHECK(!worker_is_done(&waiters[i].worker));
        signal_number(i + 1);
        worker_join(&waiters[i].worker);
        sp_point_unref(&waiters[i].point);
    }
}

/* W7, for any counter: two waiters on one primitive, for 99 and 100. */
TEST_NEEDING(W7_two_values_on_one_primitive, COUNTING | INDEPENDENT)
{
    waiter waiters[2] = {{.number = 99, .point = fx->point(99)},
                         {.number = 100, .point = fx->point(100)}};
    for (unsigned i = 0; i < 2; i++)
        worker_start(&waiters[i].worker, 0, wait_for_number, &waiters[i]);
    test_sleep_ms(DELAY_MS);
    signal_number(98);
    test_sleep_ms(DELAY_MS);
    CHECK(!worker_is_done(&waiters[0].worker));
    signal_number(99);
    worker_join(&waiters[0].worker);
    test_sleep_ms(DELAY_MS);
    CHECK(!worker_is_done(&waiters[1].worker));
    signal_number(100);
    worker_join(&waiters[1].worker);
    sp_point_unref(&waiters[0].point);
    sp_point_unref(&waiters[1].point);
}

TEST(many_waiters_on_one_point)
{
    waiter waiters[WAITERS];
    sp_point point = fx->point(1);
    for (unsigned i = 0; i < WAITERS; i++) {
        waiters[i].number = 1;
        waiters[i].point = sp_point_ref(&point);
        worker_start(&waiters[i].worker, 0, wait_for_number, &waiters[i]);
    }
    test_sleep_ms(DELAY_MS);
    signal_number(1);
    for (unsigned i = 0; i < WAITERS; i++) {
        worker_join(&waiters[i].worker);
        sp_point_unref(&waiters[i].point);
    }
    sp_point_unref(&point);
}

/* Waits of every sort race with a signaller that goes through all numbers. */
#define STORM 300

typedef struct storm {
    worker worker;
    const sp_point *points;
    uint64_t seed;
} storm;

static void wait_at_random(void *user)
{
    storm *self = user;
    test_rng rng = {self->seed};
    for (unsigned i = 0; i < 150; i++) {
        unsigned at = test_random_below(&rng, STORM - 1);
        const sp_point *point = &self->points[at];
        sp_status status;
        if (i % 3 == 0)
            status = sp_wait_many(point, 2, SP_WAIT_ALL, PATIENCE_NS, NULL);
        else if (i % 3 == 1)
            status = sp_wait_many(point, 2, SP_WAIT_ANY, PATIENCE_NS, NULL);
        else
            status = sp_wait_timeout(point, PATIENCE_NS);
        CHECK_STATUS(status, SP_OK);
        CHECK(__atomic_load_n(&signalled, __ATOMIC_SEQ_CST) >= at + 1);
    }
}

TEST_NEEDING(signals_race_with_waits, INDEPENDENT)
{
    static sp_point points[STORM];
    storm storms[4];
    for (unsigned i = 0; i < STORM; i++)
        points[i] = fx->point(i + 1);
    for (unsigned i = 0; i < COUNT_OF(storms); i++) {
        storms[i] = (storm){.points = points, .seed = 1000 + i};
        worker_start(&storms[i].worker, 0, wait_at_random, &storms[i]);
    }
    for (unsigned i = 0; i < STORM; i++) {
        signal_number(i + 1);
        if (i % 16 == 0)
            test_sleep_ms(1);
    }
    for (unsigned i = 0; i < COUNT_OF(storms); i++)
        worker_join(&storms[i].worker);
    release_points(points, STORM);
}

/* ---- Fork (F1) ---- */

#define EXPECT_IN_CHILD(call, expected)                                                            \
    do {                                                                                           \
        if ((call) != (expected))                                                                  \
            _exit(__LINE__ % 200 + 1);                                                             \
    } while (0)

static void child_of_fork(sp_point *pending, sp_point *reached, sp_point *chain, sp_slot *slot)
{
    sp_point out = {0}, noop = sp_point_noop(), copy = sp_point_ref(pending);
    unsigned calls = fx->calls ? fx->calls() : 0;
    EXPECT_IN_CHILD(sp_poll(pending), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_poll(reached), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_wait(reached), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_wait(pending), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_wait_timeout(pending, SP_FOREVER), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_wait(chain), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_wait_many(pending, 1, SP_WAIT_ANY, SP_FOREVER, NULL), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_wait_many(reached, 1, SP_WAIT_ALL, SP_FOREVER, NULL), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_chain(pending, reached, &out), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_slot_set(slot, pending), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_slot_point(slot, &out), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_last_error()->status, SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_wait(&noop), SP_OK);
    sp_point_unref(&copy);
    sp_point_unref(pending);
    sp_point_unref(reached);
    sp_point_unref(chain);
    sp_slot_destroy(slot);
    fx->release_owner();
    EXPECT_IN_CHILD(fx->calls ? fx->calls() : 0, calls);
    _exit(0);
}

static void check_child(pid_t child)
{
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
}

TEST_NEEDING(F1_child_of_a_fork, INDEPENDENT)
{
    sp_slot *slot = NULL;
    sp_point reached = fx->point(1), pending = fx->point(2), chain = {0}, promise = {0};
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &promise), SP_OK);
    CHECK_STATUS(sp_chain(&reached, &pending, &chain), SP_OK);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&reached), SP_OK);
    pid_t child = fork();
    if (child == 0)
        child_of_fork(&pending, &reached, &chain, slot);
    check_child(child);

    /* The parent goes on as if nothing had been. */
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    CHECK_STATUS(sp_poll(&pending), fx->pending);
    CHECK_STATUS(sp_poll(&promise), SP_NOT_SUBMITTED);
    late_signal late;
    signal_late(&late, 2);
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    JOIN_NOT_EARLY(&late);
    CHECK_STATUS(sp_slot_set(slot, &pending), SP_OK);
    CHECK_STATUS(sp_wait(&promise), SP_OK);
    sp_point_unref(&promise);
    sp_slot_destroy(slot);
    sp_point_unref(&chain);
    sp_point_unref(&pending);
    sp_point_unref(&reached);
}

/* A thread of the parent may hold any lock at the moment of the fork. */
static flag stop;

static void poll_until_stopped(void *user)
{
    const sp_point *point = user;
    while (!flag_is_set(&stop)) {
        sp_point copy = sp_point_ref(point);
        CHECK_STATUS(sp_wait_timeout(&copy, 1000), fx->timed_out);
        CHECK_STATUS(sp_wait_many(&copy, 1, SP_WAIT_ANY, 1000, NULL), fx->timed_out);
        sp_point_unref(&copy);
    }
}

TEST(F1_fork_while_threads_wait)
{
    worker poller;
    sp_point point = fx->point(1);
    worker_start(&poller, 0, poll_until_stopped, &point);
    for (unsigned i = 0; i < 20; i++) {
        test_sleep_ms(1);
        pid_t child = fork();
        if (child == 0) {
            EXPECT_IN_CHILD(sp_poll(&point), SP_ERROR_FORKED);
            EXPECT_IN_CHILD(sp_wait(&point), SP_ERROR_FORKED);
            sp_point_unref(&point);
            _exit(0);
        }
        check_child(child);
    }
    flag_set(&stop);
    worker_join(&poller);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
}
