/* SPDX-License-Identifier: MIT
 *
 * The time of a notification.
 */
#include "async_case.h"

/* Also of a slot that is not set: that is no error here. */
TEST(short_times)
{
    const uint64_t times[] = {0, 1, 999, 999999};
    for (EACH_SORT(which)) {
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        for (unsigned i = 0; i < COUNT_OF(times); i++) {
            listener one = {0};
            uint64_t start = sp_now_ns();
            listen(&one, &point, times[i]);
            CHECK_HEARD(&one, SP_TIMEOUT);
            CHECK(one.when_ns - start >= times[i]);
        }
        sp_point_unref(&point);
        source_end(&from);
    }
}

/* What is over wins over the time. */
TEST(no_time_for_what_is_over)
{
    for (EACH_SORT(which)) {
        source from[2] = {source_make(which), source_make(which)};
        sp_point points[2] = {source_point(&from[0], 1), source_point(&from[1], 1)};
        source_signal(&from[0], 1);
        source_fail(&from[1]);
        for (uint64_t time = 0; time < 2; time++) {
            listener ones[2] = {0};
            listen(&ones[0], &points[0], time);
            listen(&ones[1], &points[1], time);
            CHECK_HEARD(&ones[0], SP_OK);
            CHECK_HEARD(&ones[1], sort_failure(which));
        }
        for (unsigned i = 0; i < 2; i++) {
            sp_point_unref(&points[i]);
            source_end(&from[i]);
        }
    }
}

TEST(never_early)
{
    for (EACH_SORT(which)) {
        listener one = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        uint64_t start = sp_now_ns();
        listen(&one, &point, 30 * MS);
        CHECK_HEARD(&one, SP_TIMEOUT);
        CHECK(one.when_ns - start >= 30 * MS);
        source_signal(&from, 1); /* too late */
        go_on_ms(5);
        CHECK_EQUAL(listener_calls(&one), 1);
        sp_point_unref(&point);
        source_end(&from);
    }
}

TEST(long_times_wait_for_the_signal)
{
    for (EACH_SORT(which)) {
        late_signal late;
        listener ones[16] = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        assert_true(test_long_timeout_count <= COUNT_OF(ones));
        for (size_t i = 0; i < test_long_timeout_count; i++)
            listen(&ones[i], &point, test_long_timeouts[i]);
        signal_late(&late, &from, 1);
        CHECK(listener_wait(&ones[0], 1));
        join_not_early(&late);
        for (size_t i = 0; i < test_long_timeout_count; i++)
            CHECK_HEARD(&ones[i], SP_OK);
        sp_point_unref(&point);
        source_end(&from);
    }
}

/* Signalled in time, and looked at late: that is no time-out, however many are polled. */
TEST_NEEDING(reached_in_time_and_seen_later, ON_LOOP)
{
    enum { COUNT = 2000 };
    static source from[COUNT];
    static listener ones[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        from[i] = source_make(i < SORT_COUNT ? (sort)i : SORT_ONE_SHOT_PROBE);
        listen_to_for(&ones[i], &from[i], 1, 1000 * MS);
    }
    CHECK_STATUS(dispatch(reactor, 0), SP_TIMEOUT);
    for (unsigned i = 0; i < COUNT; i++)
        source_signal(&from[i], 1);
    test_sleep_ms(1000); /* nobody dispatches */
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK_HEARD(&ones[i], SP_OK);
        source_end(&from[i]);
    }
}

/* Times in any order, on one point: each its own. */
TEST(each_its_own_time)
{
    const unsigned times_ms[] = {40, 10, 30, 20, 50, 10, 0};
    listener ones[COUNT_OF(times_ms)] = {0}, last = {0};
    source from = source_make(SORT_HOST);
    sp_point point = source_point(&from, 1);
    uint64_t start = sp_now_ns();
    listen(&last, &point, SP_FOREVER);
    for (unsigned i = 0; i < COUNT_OF(ones); i++)
        listen(&ones[i], &point, times_ms[i] * MS);
    for (unsigned i = 0; i < COUNT_OF(ones); i++) {
        CHECK_HEARD(&ones[i], SP_TIMEOUT);
        CHECK(ones[i].when_ns - start >= times_ms[i] * MS);
    }
    CHECK_EQUAL(listener_calls(&last), 0);
    source_signal(&from, 1);
    CHECK_HEARD(&last, SP_OK);
    sp_point_unref(&point);
    source_end(&from);
}

/* The earlier time of a later notification counts, though the reactor sleeps already. */
TEST(a_shorter_time_comes_later)
{
    listener slow = {0}, quick = {0};
    source from = source_make(SORT_ARM);
    sp_point point = source_point(&from, 1);
    listen(&slow, &point, SP_FOREVER);
    go_on_ms(10);
    listen(&quick, &point, 20 * MS);
    CHECK_HEARD(&quick, SP_TIMEOUT);
    CHECK_EQUAL(listener_calls(&slow), 0);
    source_signal(&from, 1);
    CHECK_HEARD(&slow, SP_OK);
    sp_point_unref(&point);
    source_end(&from);
}

/* The primitive does not keep what a notification left there whose time is up. */
TEST(nothing_is_left_armed)
{
    for (EACH_SORT(which)) {
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        for (unsigned i = 0; i < 20; i++) {
            listener one = {0};
            listen(&one, &point, i % 2 ? MS : 0);
            CHECK_HEARD(&one, SP_TIMEOUT);
        }
        destroy_reactor(&reactor);
        CHECK_EQUAL(counter_armed(), 0);
        reactor = make_reactor();
        sp_point_unref(&point);
        source_end(&from);
    }
}

/* A signal at about the time: either, but once. */
TEST(time_and_signal_race)
{
    test_rng rng = {7};
    for (unsigned round = 0; round < 200; round++) {
        listener one = {0};
        source from = source_make(round % 2 ? SORT_HOST : SORT_ARM);
        sp_point point = source_point(&from, 1);
        uint64_t time = test_random_below(&rng, 200000);
        uint64_t start = sp_now_ns();
        listen(&one, &point, time);
        while (sp_now_ns() - start < time)
            ;
        source_signal(&from, 1);
        CHECK(listener_wait(&one, 1));
        CHECK(one.status == SP_OK || one.status == SP_TIMEOUT);
        sp_point_unref(&point);
        source_end(&from);
    }
}
