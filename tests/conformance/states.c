/* SPDX-License-Identifier: MIT
 *
 * Conformance: what a point says, and when.
 */
#include "conformance.h"

#include <string.h>

TEST(point_shows_its_kind)
{
    sp_point point = fx->point(3);
    CHECK_EQUAL(point.kind, fx->kind);
    CHECK_EQUAL(point.flags, fx->flags);
    CHECK_EQUAL(sp_point_backend(&point), fx->backend);
    CHECK(sp_point_waiter(&point) != NULL);
    CHECK(sp_point_waiter(&point) == point.waiter);
    if (fx->flags & SP_POINT_HAS_VALUE)
        CHECK_EQUAL(point.value, 3);
    sp_point_unref(&point);
    CHECK_EQUAL(point.kind, SP_KIND_NOOP);
    CHECK(point.waiter == NULL);
    fx->signal(3);
}

TEST(pending_then_reached)
{
    sp_point point = fx->point(1);
    CHECK_STATUS(sp_poll(&point), fx->pending);
    CHECK_STATUS(sp_wait_timeout(&point, 0), fx->timed_out);
    CHECK_STATUS(sp_poll(&point), fx->pending);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&point, 0), SP_OK);
    sp_point_unref(&point);
}

/* The poll alone sees it too: nothing has to wait first. */
TEST_NEEDING(poll_sees_the_signal, POLLED)
{
    sp_point point = fx->point(1);
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    CHECK_STATUS(sp_poll(&point), fx->pending);
    fx->signal(1);
    while (sp_poll(&point) == fx->pending && sp_now_ns() < end)
        test_sleep_ms(1);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
}

TEST(wait_before_signal)
{
    late_signal late;
    sp_point point = fx->point(1);
    signal_late(&late, 1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    JOIN_NOT_EARLY(&late);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
}

TEST(signalled_before_wait)
{
    sp_point point = fx->point(1);
    fx->signal(1);
    test_sleep_ms(DELAY_MS);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
}

TEST(poll_never_consumes)
{
    sp_point point = fx->point(1);
    for (unsigned i = 0; i < 1000; i++)
        CHECK_STATUS(sp_poll(&point), fx->pending);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    for (unsigned i = 0; i < 1000; i++)
        CHECK_STATUS(sp_poll(&point), SP_OK);
    for (unsigned i = 0; i < 10; i++)
        CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
}

TEST_NEEDING(reached_costs_no_driver_call, CALLS)
{
    sp_point point = fx->point(1);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    unsigned before = fx->calls();
    sp_point copy = sp_point_ref(&point);
    for (unsigned i = 0; i < 100; i++) {
        CHECK_STATUS(sp_poll(&point), SP_OK);
        CHECK_STATUS(sp_wait(&copy), SP_OK);
        CHECK_STATUS(sp_wait_many(&point, 1, SP_WAIT_ALL, SP_FOREVER, NULL), SP_OK);
    }
    sp_point_unref(&copy);
    CHECK_EQUAL(fx->calls(), before);
    sp_point_unref(&point);
}

TEST(copies_answer_alike)
{
    sp_point point = fx->point(1);
    sp_point copy = sp_point_ref(&point);
    CHECK(test_same_point(&point, &copy));
    CHECK_STATUS(sp_poll(&copy), fx->pending);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&copy), SP_OK);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
    CHECK_STATUS(sp_poll(&copy), SP_OK);
    sp_point_unref(&copy);
    sp_point_unref(&copy);
}

TEST(positive_statuses_keep_the_last_error)
{
    sp_point point = fx->point(1);
    CHECK_ERROR(sp_poll(NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_STATUS(sp_poll(&point), fx->pending);
    CHECK_STATUS(sp_wait_timeout(&point, 1), fx->timed_out);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_last_error()->status, SP_ERROR_INVALID_ARGUMENT);
    sp_point_unref(&point);
}

TEST(mark_submitted)
{
    sp_point point = fx->point(1);
    fx->signal(1);
    CHECK_STATUS(sp_point_mark_submitted(&point), fx->mark_submitted);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_point_mark_submitted(&point), fx->mark_submitted);
    sp_point_unref(&point);
}

TEST(describe_in_each_state)
{
    char text[256], cut[8];
    sp_point point = fx->point(1);
    for (unsigned round = 0; round < 2; round++) {
        size_t length = sp_point_describe(&point, text, sizeof(text));
        CHECK(length > 0);
        CHECK_EQUAL(strlen(text), length);
        CHECK(strchr(text, '\n') == NULL);
        memset(cut, 'x', sizeof(cut));
        CHECK_EQUAL(sp_point_describe(&point, cut, sizeof(cut)), length);
        CHECK_EQUAL(strlen(cut), sizeof(cut) - 1);
        CHECK(strncmp(cut, text, sizeof(cut) - 1) == 0);
        CHECK_EQUAL(sp_point_describe(&point, NULL, 0), length);
        fx->signal(1);
        CHECK_STATUS(sp_wait(&point), SP_OK);
    }
    sp_point_unref(&point);
}

/* ---- Values ---- */

TEST_NEEDING(at_gives_another_value, COUNTING | POLLED)
{
    sp_point one = fx->point(1), five = {0};
    CHECK_STATUS(sp_point_at(&one, 5, &five), SP_OK);
    CHECK_EQUAL(five.value, 5);
    CHECK(five.waiter == one.waiter);
    CHECK_EQUAL(five.kind, one.kind);
    CHECK_EQUAL(five.flags, one.flags);
    fx->signal(2);
    CHECK_STATUS(sp_wait(&one), SP_OK);
    CHECK_STATUS(sp_poll(&five), fx->pending);
    CHECK_STATUS(sp_point_at(&five, 2, &five), SP_OK); /* in place */
    CHECK_STATUS(sp_wait(&five), SP_OK);
    CHECK_STATUS(sp_poll(&five), SP_OK);
    sp_point_unref(&one);
    CHECK_STATUS(sp_poll(&five), SP_OK);
    sp_point unchanged = test_marked_point(), marked = test_marked_point();
    CHECK_ERROR(sp_point_at(&five, UINT64_MAX, &unchanged), SP_ERROR_INVALID_ARGUMENT);
    CHECK(test_same_point(&unchanged, &marked));
    sp_point_unref(&five);
}

TEST_NEEDING(at_is_for_counters_only, ONE_SHOT)
{
    sp_point point = fx->point(1), unchanged = test_marked_point(), marked = test_marked_point();
    CHECK_ERROR(sp_point_at(&point, 2, &unchanged), SP_ERROR_NOT_SUPPORTED);
    CHECK(test_same_point(&unchanged, &marked));
    CHECK_STATUS(sp_poll(&point), fx->pending);
    fx->signal(1);
    sp_point_unref(&point);
}

TEST_NEEDING(value_order, INDEPENDENT)
{
    enum { COUNT = 10 };
    sp_point points[COUNT];
    for (unsigned i = 0; i < COUNT; i++)
        points[i] = fx->point(i + 1);
    const unsigned signals[] = {1, 4, 7, 10};
    for (unsigned s = 0; s < COUNT_OF(signals); s++) {
        fx->signal(signals[s]);
        for (unsigned i = 0; i < COUNT; i++) {
            if (i + 1 <= signals[s])
                CHECK_STATUS(sp_wait(&points[i]), SP_OK);
            else
                CHECK_STATUS(sp_poll(&points[i]), fx->pending);
        }
    }
    release_points(points, COUNT);
}

/* V4 */
TEST_NEEDING(V4_value_zero_is_reached, COUNTING)
{
    unsigned before = fx->calls ? fx->calls() : 0;
    sp_point zero = fx->point(0);
    CHECK_STATUS(sp_poll(&zero), SP_OK);
    CHECK_STATUS(sp_wait(&zero), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&zero, 0), SP_OK);
    sp_point_unref(&zero);
    if (fx->calls)
        CHECK_EQUAL(fx->calls(), before);
}

TEST_NEEDING(known_value_covers_lower_ones, COUNTING | CALLS)
{
    sp_point high = fx->point(9);
    fx->signal(9);
    CHECK_STATUS(sp_wait(&high), SP_OK);
    unsigned before = fx->calls();
    for (uint64_t value = 1; value <= 9; value++) {
        sp_point low = fx->point(value);
        CHECK_STATUS(sp_poll(&low), SP_OK);
        sp_point_unref(&low);
    }
    CHECK_EQUAL(fx->calls(), before);
    sp_point_unref(&high);
}
