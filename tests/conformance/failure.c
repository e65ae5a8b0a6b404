/* SPDX-License-Identifier: MIT
 *
 * Conformance: failure is for good, tells its cause, and spares what was reached before.
 */
#include "conformance.h"

TEST_NEEDING(failure_is_sticky, FAILING)
{
    sp_point point = fx->point(1), later = fx->point(2);
    CHECK_STATUS(sp_poll(&point), fx->pending);
    fx->fail_all();
    for (unsigned i = 0; i < 3; i++) {
        CHECK_ERROR(sp_wait(&point), fx->fail_status);
        CHECK_STATUS(sp_last_error()->cause, fx->fail_cause);
        CHECK_ERROR(sp_poll(&point), fx->fail_status);
        CHECK_STATUS(sp_last_error()->cause, fx->fail_cause);
        CHECK_ERROR(sp_wait_timeout(&later, SP_FOREVER), fx->fail_status);
        CHECK_ERROR(sp_wait_timeout(&later, 0), fx->fail_status);
    }
    sp_point copy = sp_point_ref(&point);
    CHECK_ERROR(sp_poll(&copy), fx->fail_status);
    sp_point_unref(&copy);
    sp_point_unref(&point);
    sp_point_unref(&later);
}

TEST_NEEDING(poll_sees_the_failure, FAILING | POLLED)
{
    sp_point point = fx->point(1);
    CHECK_STATUS(sp_poll(&point), fx->pending);
    fx->fail_all();
    CHECK_ERROR(sp_poll(&point), fx->fail_status);
    CHECK_STATUS(sp_last_error()->cause, fx->fail_cause);
    CHECK_ERROR(sp_wait_timeout(&point, 0), fx->fail_status);
    sp_point_unref(&point);
}

TEST_NEEDING(reached_points_stay_reached, FAILING | INDEPENDENT)
{
    sp_point reached = fx->point(1), pending = fx->point(2);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&reached), SP_OK);
    fx->fail_all();
    CHECK_ERROR(sp_wait(&pending), fx->fail_status);
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    CHECK_STATUS(sp_wait(&reached), SP_OK);
    sp_point_unref(&reached);
    sp_point_unref(&pending);
}

static void fail_now(void *user)
{
    flag_set(user);
    fx->fail_all();
}

TEST_NEEDING(failure_wakes_a_waiter, FAILING)
{
    worker late;
    flag failed = {0};
    sp_point point = fx->point(1);
    worker_start(&late, DELAY_MS, fail_now, &failed);
    CHECK_ERROR(sp_wait_timeout(&point, PATIENCE_NS), fx->fail_status);
    CHECK(flag_is_set(&failed));
    CHECK_STATUS(sp_last_error()->cause, fx->fail_cause);
    worker_join(&late);
    sp_point_unref(&point);
}

static void expect_failure(void *user)
{
    CHECK_ERROR(sp_wait_timeout(user, PATIENCE_NS), fx->fail_status);
    CHECK_STATUS(sp_last_error()->cause, fx->fail_cause);
}

/* W6: all of them, and each has the details in its own sp_last_error(). */
TEST_NEEDING(W6_failure_wakes_ten_waiters, FAILING)
{
    worker waiters[10];
    sp_point points[10];
    for (unsigned i = 0; i < 10; i++)
        points[i] = fx->point(i + 1);
    for (unsigned i = 0; i < 10; i++)
        worker_start(&waiters[i], 0, expect_failure, &points[i]);
    test_sleep_ms(DELAY_MS);
    for (unsigned i = 0; i < 10; i++)
        CHECK(!worker_is_done(&waiters[i]));
    fx->fail_all();
    for (unsigned i = 0; i < 10; i++)
        worker_join(&waiters[i]);
    release_points(points, 10);
}

TEST_NEEDING(values_after_a_failure_fail_too, COUNTING | FAILING)
{
    sp_point point = fx->point(1), higher = {0};
    CHECK_STATUS(sp_point_at(&point, 100, &higher), SP_OK);
    fx->fail_all();
    CHECK_ERROR(sp_wait(&point), fx->fail_status);
    CHECK_ERROR(sp_poll(&higher), fx->fail_status);
    sp_point_unref(&higher);
    CHECK_STATUS(sp_point_at(&point, 7, &higher), SP_OK);
    CHECK_ERROR(sp_wait(&higher), fx->fail_status);
    sp_point_unref(&higher);
    sp_point_unref(&point);
}

/* W2, with a chain behind it: the failure comes out at the end, as soon as it is there. */
TEST_NEEDING(W2_failure_travels_through_chains, FAILING)
{
    worker late;
    flag failed = {0};
    sp_point point = fx->point(1), noop = sp_point_noop(), chain = {0}, outer = {0};
    CHECK_STATUS(sp_chain(&point, &point, &chain), SP_OK);
    CHECK_STATUS(sp_chain(&chain, &noop, &outer), SP_OK);
    worker_start(&late, DELAY_MS, fail_now, &failed);
    CHECK_ERROR(sp_wait_timeout(&outer, PATIENCE_NS), fx->fail_status);
    CHECK(flag_is_set(&failed));
    CHECK_STATUS(sp_last_error()->cause, fx->fail_cause);
    CHECK_ERROR(sp_poll(&chain), fx->fail_status);
    worker_join(&late);
    sp_point_unref(&outer);
    sp_point_unref(&chain);
    sp_point_unref(&point);
}

/* W2 */
TEST_NEEDING(W2_failure_behind_a_slot, FAILING)
{
    worker late;
    flag failed = {0};
    sp_slot *slot = NULL;
    sp_point what = fx->point(1), promise = {0};
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &promise), SP_OK);
    CHECK_STATUS(sp_slot_set(slot, &what), SP_OK);
    worker_start(&late, DELAY_MS, fail_now, &failed);
    CHECK_ERROR(sp_wait_timeout(&promise, PATIENCE_NS), fx->fail_status);
    CHECK(flag_is_set(&failed));
    worker_join(&late);
    sp_point_unref(&promise);
    sp_point_unref(&what);
    sp_slot_destroy(slot);
}
