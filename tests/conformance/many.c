/* SPDX-License-Identifier: MIT
 *
 * Conformance: V6, waits for all and any of many points.
 */
#include "conformance.h"

#define UNTOUCHED ((size_t)77777)
#define MOST 500

static sp_status wait_many(const sp_point *points, size_t count, sp_wait_mode mode, size_t *index)
{
    return sp_wait_many(points, count, mode, PATIENCE_NS, index);
}

static void make_points(sp_point *points, unsigned count)
{
    for (unsigned i = 0; i < count; i++)
        points[i] = fx->point(i + 1);
}

TEST_NEEDING(V6_all_early_late_either_way, INDEPENDENT)
{
    for (unsigned order = 0; order < 2; order++) {
        late_signal late;
        sp_point early = fx->point(10 * order + 1), last = fx->point(10 * order + 2);
        const sp_point both[2] = {order ? last : early, order ? early : last};
        size_t index = UNTOUCHED;
        fx->signal(10 * order + 1);
        CHECK_STATUS(sp_wait(&early), SP_OK);
        CHECK_STATUS(sp_wait_many(both, 2, SP_WAIT_ALL, 2 * MS, &index), fx->timed_out);
        CHECK_EQUAL(index, order ? 0 : 1); /* the first one still pending */
        index = UNTOUCHED;
        signal_late(&late, 10 * order + 2);
        CHECK_STATUS(wait_many(both, 2, SP_WAIT_ALL, &index), SP_OK);
        JOIN_NOT_EARLY(&late);
        CHECK_EQUAL(index, UNTOUCHED);
        sp_point_unref(&early);
        sp_point_unref(&last);
    }
}

/* 1, 63, 64, 65, 500 points, the last of them late. */
TEST(V6_all_of_any_number)
{
    static sp_point points[MOST];
    const unsigned counts[] = {1, 63, 64, 65, 500};
    uint64_t number = 1;
    for (unsigned c = 0; c < COUNT_OF(counts); c++) {
        late_signal late;
        unsigned count = counts[c];
        for (unsigned i = 0; i < count; i++)
            points[i] = fx->point(number + i);
        number += count;
        fx->signal(number - 2);
        signal_late(&late, number - 1);
        CHECK_STATUS(wait_many(points, count, SP_WAIT_ALL, NULL), SP_OK);
        JOIN_NOT_EARLY(&late);
        for (unsigned i = 0; i < count; i++)
            CHECK_STATUS(sp_poll(&points[i]), SP_OK);
        release_points(points, count);
    }
}

/* The lowest number is the one that is reached: where it stands is what the index must say. */
TEST_NEEDING(V6_any_of_any_number, INDEPENDENT)
{
    static sp_point points[MOST];
    const unsigned counts[] = {1, 63, 64, 65, 500};
    uint64_t number = 1;
    for (unsigned c = 0; c < COUNT_OF(counts); c++) {
        late_signal late;
        unsigned count = counts[c];
        if (fx->most_at_once && count > fx->most_at_once)
            count = fx->most_at_once;
        unsigned place = count / 2;
        size_t index = UNTOUCHED;
        points[place] = fx->point(number);
        for (unsigned i = 0, next = 1; i < count; i++) {
            if (i != place)
                points[i] = fx->point(number + next++);
        }
        CHECK_STATUS(sp_wait_many(points, count, SP_WAIT_ANY, MS, &index), fx->timed_out);
        CHECK_EQUAL(index, UNTOUCHED);
        signal_late(&late, number);
        CHECK_STATUS(wait_many(points, count, SP_WAIT_ANY, &index), SP_OK);
        JOIN_NOT_EARLY(&late);
        CHECK_EQUAL(index, place);
        number += count;
        fx->signal(number - 1);
        release_points(points, count);
    }
}

TEST_NEEDING(V6_any_finds_each_place, INDEPENDENT)
{
    enum { COUNT = 9 };
    for (unsigned place = 0; place < COUNT; place++) {
        sp_point points[COUNT];
        uint64_t number = 1 + place * COUNT;
        size_t index = UNTOUCHED;
        points[place] = fx->point(number);
        for (unsigned i = 0, next = 1; i < COUNT; i++) {
            if (i != place)
                points[i] = fx->point(number + next++);
        }
        fx->signal(number);
        CHECK_STATUS(wait_many(points, COUNT, SP_WAIT_ANY, &index), SP_OK);
        CHECK_EQUAL(index, place);
        CHECK_STATUS(sp_wait_many(points, COUNT, SP_WAIT_ANY, 0, NULL), SP_OK);
        fx->signal(number + COUNT - 1);
        release_points(points, COUNT);
    }
}

TEST(V6_duplicates)
{
    static sp_point points[MOST];
    late_signal late;
    size_t index = UNTOUCHED;
    sp_point point = fx->point(1);
    for (unsigned i = 0; i < MOST; i++)
        points[i] = point; /* borrowed */
    CHECK_STATUS(sp_wait_many(points, MOST, SP_WAIT_ALL, 2 * MS, &index), fx->timed_out);
    CHECK_EQUAL(index, 0);
    CHECK_STATUS(sp_wait_many(points, MOST, SP_WAIT_ANY, 2 * MS, NULL), fx->timed_out);
    signal_late(&late, 1);
    CHECK_STATUS(wait_many(points, MOST, SP_WAIT_ALL, NULL), SP_OK);
    JOIN_NOT_EARLY(&late);
    CHECK_STATUS(wait_many(points, MOST, SP_WAIT_ANY, &index), SP_OK);
    CHECK(index < MOST);
    sp_point_unref(&point);
}

TEST_NEEDING(many_mixed_with_other_kinds, INDEPENDENT)
{
    late_signal late;
    sp_host_timeline *timeline = NULL;
    sp_point host = {0}, chain = {0};
    size_t index = UNTOUCHED;
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &host), SP_OK);
    sp_point own[2] = {fx->point(1), fx->point(2)};
    CHECK_STATUS(sp_chain(&own[0], &host, &chain), SP_OK);
    const sp_point any[] = {host, own[1], chain, own[0]};
    const sp_point all[] = {sp_point_noop(), own[0], host, sp_point_cpu(), chain};
    CHECK_STATUS(sp_wait_many(any, 4, SP_WAIT_ANY, MS, NULL), SP_TIMEOUT);
    CHECK_STATUS(sp_wait_many(all, 5, SP_WAIT_ALL, MS, &index), SP_TIMEOUT);
    CHECK_EQUAL(index, 1);
    signal_late(&late, 1);
    CHECK_STATUS(wait_many(any, 4, SP_WAIT_ANY, &index), SP_OK);
    CHECK_EQUAL(index, 3);
    JOIN_NOT_EARLY(&late);
    CHECK_STATUS(sp_wait_many(all, 5, SP_WAIT_ALL, 0, &index), SP_TIMEOUT);
    CHECK_EQUAL(index, 2);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(wait_many(all, 5, SP_WAIT_ALL, NULL), SP_OK);
    CHECK_STATUS(wait_many(all, 5, SP_WAIT_ANY, &index), SP_OK);
    fx->signal(2);
    sp_point_unref(&chain);
    sp_point_unref(&host);
    release_points(own, 2);
    sp_host_timeline_destroy(timeline);
}

/* W4: a wait for any that times out; then the points complete. */
TEST(W4_any_times_out_then_points_complete)
{
    enum { COUNT = 40 };
    static sp_point points[COUNT];
    make_points(points, COUNT);
    for (unsigned i = 0; i < 20; i++)
        CHECK_STATUS(sp_wait_many(points, COUNT, SP_WAIT_ANY, i % 2 ? MS : 0, NULL), fx->timed_out);
    unsigned open = census_open_handles();
    fx->signal(COUNT);
    CHECK_STATUS(wait_many(points, COUNT, SP_WAIT_ALL, NULL), SP_OK);
    CHECK_HANDLES(open);
    release_points(points, COUNT);
}

/* ---- Failure ---- */

TEST_NEEDING(any_reached_beats_failed, FAILING | INDEPENDENT)
{
    sp_point points[2] = {fx->point(1), fx->point(2)};
    size_t index = UNTOUCHED;
    fx->signal(1);
    CHECK_STATUS(sp_wait(&points[0]), SP_OK);
    fx->fail_all();
    const sp_point turned[2] = {points[1], points[0]};
    CHECK_STATUS(wait_many(turned, 2, SP_WAIT_ANY, &index), SP_OK);
    CHECK_EQUAL(index, 1);
    CHECK_STATUS(wait_many(points, 2, SP_WAIT_ANY, &index), SP_OK);
    CHECK_EQUAL(index, 0);
    release_points(points, 2);
}

TEST_NEEDING(failure_ends_any_and_all, FAILING | POLLED)
{
    sp_host_timeline *timeline = NULL;
    sp_point host = {0}, own = fx->point(1);
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &host), SP_OK);
    const sp_point points[] = {sp_point_noop(), host, own};
    fx->fail_all();
    for (unsigned mode = SP_WAIT_ALL; mode <= SP_WAIT_ANY; mode++) {
        size_t index = UNTOUCHED;
        CHECK_ERROR(wait_many(points + 1, 2, (sp_wait_mode)mode, &index), fx->fail_status);
        CHECK_EQUAL(index, 1);
        CHECK_STATUS(sp_last_error()->cause, fx->fail_cause);
        CHECK_ERROR(wait_many(points + 1, 2, (sp_wait_mode)mode, NULL), fx->fail_status);
        CHECK_ERROR(sp_wait_many(points + 1, 2, (sp_wait_mode)mode, 0, NULL), fx->fail_status);
    }
    size_t index = UNTOUCHED;
    CHECK_ERROR(wait_many(points, 3, SP_WAIT_ALL, &index), fx->fail_status);
    CHECK_EQUAL(index, 2);
    CHECK_STATUS(wait_many(points, 3, SP_WAIT_ANY, &index), SP_OK);
    CHECK_EQUAL(index, 0);
    sp_point_unref(&own);
    sp_point_unref(&host);
    sp_host_timeline_destroy(timeline);
}

static void fail_now(void *user)
{
    flag_set(user);
    fx->fail_all();
}

static void check_failure_wakes(sp_wait_mode mode)
{
    worker late;
    flag failed = {0};
    sp_point points[3] = {fx->point(1), fx->point(2), fx->point(3)};
    worker_start(&late, DELAY_MS, fail_now, &failed);
    CHECK_ERROR(wait_many(points, 3, mode, NULL), fx->fail_status);
    CHECK(flag_is_set(&failed));
    worker_join(&late);
    release_points(points, 3);
}

TEST_NEEDING(failure_wakes_all, FAILING)
{
    check_failure_wakes(SP_WAIT_ALL);
}
TEST_NEEDING(failure_wakes_any, FAILING)
{
    check_failure_wakes(SP_WAIT_ANY);
}
