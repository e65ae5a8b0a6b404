/* SPDX-License-Identifier: MIT
 *
 * Conformance: V5, timeouts of every size. A wait is never early, and late only by what a loaded
 * machine takes.
 */
#include "conformance.h"

static void check_times_out(const sp_point *point, uint64_t timeout_ns)
{
    uint64_t start = sp_now_ns();
    CHECK_STATUS(sp_wait_timeout(point, timeout_ns), fx->timed_out);
    uint64_t took = sp_now_ns() - start;
    CHECK(took >= timeout_ns);
    CHECK(took < timeout_ns + PATIENCE_NS);
}

TEST(V5_short_timeouts)
{
    const uint64_t timeouts[] = {0, 1, 999999, 1000000, 1000001, 30 * MS};
    sp_point point = fx->point(1);
    for (unsigned i = 0; i < COUNT_OF(timeouts); i++)
        check_times_out(&point, timeouts[i]);
    CHECK_STATUS(sp_poll(&point), fx->pending);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
}

TEST(V5_long_timeouts_wait_for_the_signal)
{
    for (unsigned i = 0; i < test_long_timeout_count; i++) {
        late_signal late;
        sp_point point = fx->point(i + 1);
        signal_late(&late, i + 1);
        CHECK_STATUS(sp_wait_timeout(&point, test_long_timeouts[i]), SP_OK);
        JOIN_NOT_EARLY(&late);
        sp_point_unref(&point);
    }
}

TEST(V5_any_timeout_of_a_reached_point)
{
    const uint64_t timeouts[] = {0, 1, 999999};
    sp_point point = fx->point(1);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    for (unsigned i = 0; i < COUNT_OF(timeouts); i++)
        CHECK_STATUS(sp_wait_timeout(&point, timeouts[i]), SP_OK);
    for (unsigned i = 0; i < test_long_timeout_count; i++)
        CHECK_STATUS(sp_wait_timeout(&point, test_long_timeouts[i]), SP_OK);
    sp_point_unref(&point);
}

/* Reached, but not yet known to be: a probe is always made, however little time there is. */
TEST_NEEDING(reached_is_ok_without_time, POLLED)
{
    sp_point point = fx->point(1), twin = fx->point(1);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&twin), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&point, 0), SP_OK);
    sp_point_unref(&point);
    sp_point_unref(&twin);
}

TEST(V5_many_short_timeouts)
{
    const uint64_t timeouts[] = {0, 1, 999999, 20 * MS};
    sp_point points[2] = {fx->point(1), fx->point(2)};
    for (unsigned i = 0; i < COUNT_OF(timeouts); i++) {
        for (unsigned mode = SP_WAIT_ALL; mode <= SP_WAIT_ANY; mode++) {
            uint64_t start = sp_now_ns();
            CHECK_STATUS(sp_wait_many(points, 2, (sp_wait_mode)mode, timeouts[i], NULL),
                         fx->timed_out);
            uint64_t took = sp_now_ns() - start;
            CHECK(took >= timeouts[i]);
            CHECK(took < timeouts[i] + PATIENCE_NS);
        }
    }
    fx->signal(2);
    CHECK_STATUS(sp_wait_many(points, 2, SP_WAIT_ALL, SP_TIMEOUT_DEFAULT, NULL), SP_OK);
    release_points(points, 2);
}

TEST_NEEDING(V5_many_long_timeouts, UNLAYERED)
{
    for (unsigned i = 0; i < test_long_timeout_count; i++) {
        late_signal late;
        sp_point points[2] = {fx->point(2 * i + 1), fx->point(2 * i + 2)};
        sp_wait_mode mode = i % 2 ? SP_WAIT_ANY : SP_WAIT_ALL;
        signal_late(&late, 2 * i + 2);
        CHECK_STATUS(sp_wait_many(points, 2, mode, test_long_timeouts[i], NULL), SP_OK);
        JOIN_NOT_EARLY(&late);
        release_points(points, 2);
    }
}

TEST(wait_options)
{
    const uint64_t spins[] = {0, 1, SP_SPIN_DEFAULT, 100 * MS, UINT64_MAX};
    sp_wait_options options = {.size = sizeof(options), .timeout_ns = 5 * MS};
    for (unsigned i = 0; i < COUNT_OF(spins); i++) {
        late_signal late;
        sp_point point = fx->point(i + 1);
        options.spin_ns = spins[i];
        options.timeout_ns = 5 * MS;
        uint64_t start = sp_now_ns();
        CHECK_STATUS(sp_wait_with(&point, &options), fx->timed_out);
        CHECK(sp_now_ns() - start >= 5 * MS);
        options.timeout_ns = PATIENCE_NS;
        signal_late(&late, i + 1);
        CHECK_STATUS(sp_wait_with(&point, &options), SP_OK);
        JOIN_NOT_EARLY(&late);
        options.timeout_ns = 0;
        CHECK_STATUS(sp_wait_with(&point, &options), SP_OK);
        sp_point_unref(&point);
    }
}
