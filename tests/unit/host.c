/* SPDX-License-Identifier: MIT
 *
 * The software timeline: what its conformance cases leave out.
 */
#include "support/test.h"
#include "support/threads.h"

#include <string.h>

static sp_host_timeline *make(uint64_t initial)
{
    sp_host_timeline *timeline = NULL;
    CHECK_STATUS(sp_host_timeline_create(initial, &timeline), SP_OK);
    return timeline;
}

static sp_point at(sp_host_timeline *timeline, uint64_t value)
{
    sp_point point = {0};
    CHECK_STATUS(sp_host_timeline_point(timeline, value, &point), SP_OK);
    return point;
}

TEST(initial_value)
{
    sp_host_timeline *timeline = make(41), *unchanged = timeline;
    sp_point reached = at(timeline, 41), next = at(timeline, 42);
    CHECK_EQUAL(sp_host_timeline_value(timeline), 41);
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    CHECK_STATUS(sp_poll(&next), SP_PENDING);
    CHECK_ERROR(sp_host_timeline_create(UINT64_MAX, &unchanged), SP_ERROR_INVALID_ARGUMENT);
    CHECK(unchanged == timeline);
    sp_point_unref(&reached);
    sp_point_unref(&next);
    sp_host_timeline_destroy(timeline);
}

TEST(V1_values_must_grow)
{
    sp_host_timeline *timeline = make(0);
    const uint64_t refused[] = {0, 1, 4, 5, UINT64_MAX};
    CHECK_ERROR(sp_host_timeline_signal(timeline, 0), SP_ERROR_INVALID_ARGUMENT);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 5), SP_OK);
    for (unsigned i = 0; i < COUNT_OF(refused); i++) {
        CHECK_ERROR(sp_host_timeline_signal(timeline, refused[i]), SP_ERROR_INVALID_ARGUMENT);
        CHECK_EQUAL(sp_host_timeline_value(timeline), 5);
    }
    CHECK_STATUS(sp_host_timeline_signal(timeline, UINT64_MAX - 1), SP_OK);
    CHECK_ERROR(sp_host_timeline_signal(timeline, UINT64_MAX), SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(sp_host_timeline_value(timeline), UINT64_MAX - 1);
    sp_point last = at(timeline, UINT64_MAX - 1);
    CHECK_STATUS(sp_poll(&last), SP_OK);
    sp_point_unref(&last);
    sp_host_timeline_destroy(timeline);
}

typedef struct racer {
    worker worker;
    sp_host_timeline *timeline;
    unsigned won;
} racer;

static void race(void *user)
{
    racer *self = user;
    for (uint64_t value = 1; value <= 5000; value++) {
        uint64_t before = sp_host_timeline_value(self->timeline);
        self->won += sp_host_timeline_signal(self->timeline, value) == SP_OK;
        CHECK(sp_host_timeline_value(self->timeline) >= before);
    }
}

/* Each value is signalled by one of them or skipped, never twice. */
TEST(V1_racing_signals)
{
    racer racers[2];
    sp_host_timeline *timeline = make(0);
    for (unsigned i = 0; i < 2; i++) {
        racers[i] = (racer){.timeline = timeline};
        worker_start(&racers[i].worker, 0, race, &racers[i]);
    }
    for (unsigned i = 0; i < 2; i++)
        worker_join(&racers[i].worker);
    CHECK(racers[0].won + racers[1].won <= 5000);
    CHECK_EQUAL(sp_host_timeline_value(timeline), 5000);
    sp_host_timeline_destroy(timeline);
}

TEST(failure_tells_cause_and_message)
{
    sp_host_timeline *timeline = make(0);
    sp_point one = at(timeline, 1), two = at(timeline, 2);
    char message[] = "the decoder gave up";
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_host_timeline_fail(timeline, SP_ERROR_PEER_CLOSED, message), SP_OK);
    memset(message, '#', sizeof(message) - 1); /* duplicated */
    CHECK_STATUS(sp_poll(&one), SP_OK);
    CHECK_ERROR(sp_wait(&two), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_PEER_CLOSED);
    CHECK(strstr(sp_last_error()->message, "the decoder gave up") != NULL);
    CHECK_ERROR(sp_host_timeline_fail(timeline, SP_ERROR_CANCELLED, "later"),
                SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_host_timeline_signal(timeline, 2), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_poll(&two), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_PEER_CLOSED);
    CHECK_EQUAL(sp_host_timeline_value(timeline), 1);
    sp_host_timeline_destroy(timeline);
    CHECK_ERROR(sp_poll(&two), SP_ERROR_FAILED);
    sp_point_unref(&one);
    sp_point_unref(&two);
}

TEST(failure_without_message_and_with_a_long_one)
{
    static char message[1000];
    memset(message, 'm', sizeof(message) - 1);
    for (unsigned round = 0; round < 2; round++) {
        sp_host_timeline *timeline = make(0);
        sp_point point = at(timeline, 1);
        CHECK_STATUS(sp_host_timeline_fail(timeline, SP_ERROR_SYSTEM, round ? message : NULL),
                     SP_OK);
        CHECK_ERROR(sp_poll(&point), SP_ERROR_FAILED);
        const sp_error *error = sp_last_error();
        CHECK(memchr(error->message, '\0', sizeof(error->message)) != NULL);
        CHECK_STATUS(error->cause, SP_ERROR_SYSTEM);
        sp_point_unref(&point);
        sp_host_timeline_destroy(timeline);
    }
}

TEST(only_negative_causes)
{
    sp_host_timeline *timeline = make(0);
    sp_point point = at(timeline, 1);
    CHECK_ERROR(sp_host_timeline_fail(timeline, SP_OK, "x"), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_host_timeline_fail(timeline, SP_TIMEOUT, "x"), SP_ERROR_INVALID_ARGUMENT);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
    sp_host_timeline_destroy(timeline);
}

static void destroy(void *user)
{
    sp_host_timeline_destroy(user);
}

TEST(destroy_abandons_what_is_pending)
{
    worker late;
    sp_host_timeline *timeline = make(0);
    sp_point reached = at(timeline, 1), pending = at(timeline, 2);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    worker_start(&late, DELAY_MS, destroy, timeline);
    CHECK_ERROR(sp_wait(&pending), SP_ERROR_ABANDONED);
    worker_join(&late);
    CHECK_ERROR(sp_poll(&pending), SP_ERROR_ABANDONED);
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    sp_point higher = {0}, lower = {0};
    CHECK_STATUS(sp_point_at(&pending, 9, &higher), SP_OK);
    CHECK_STATUS(sp_point_at(&pending, 1, &lower), SP_OK);
    CHECK_ERROR(sp_poll(&higher), SP_ERROR_ABANDONED);
    CHECK_STATUS(sp_poll(&lower), SP_OK);
    sp_point_unref(&higher);
    sp_point_unref(&lower);
    sp_point_unref(&pending);
    sp_point_unref(&reached);
    sp_host_timeline_destroy(NULL);
}

TEST(destroy_wakes_many)
{
    worker late;
    size_t index = 9;
    sp_host_timeline *timeline = make(0), *other = make(0);
    const sp_point points[] = {at(other, 1), at(timeline, 1)};
    worker_start(&late, DELAY_MS, destroy, timeline);
    CHECK_ERROR(sp_wait_many(points, 2, SP_WAIT_ANY, PATIENCE_NS, &index), SP_ERROR_ABANDONED);
    CHECK_EQUAL(index, 1);
    worker_join(&late);
    CHECK_ERROR(sp_wait_many(points, 2, SP_WAIT_ALL, PATIENCE_NS, &index), SP_ERROR_ABANDONED);
    CHECK_EQUAL(index, 1);
    for (unsigned i = 0; i < 2; i++) {
        sp_point copy = points[i];
        sp_point_unref(&copy);
    }
    sp_host_timeline_destroy(other);
}

/* The last value there is: nothing above it can fail, and it ends all the same. */
TEST(failure_at_the_last_value)
{
    sp_host_timeline *timeline = NULL;
    CHECK_STATUS(sp_host_timeline_create(UINT64_MAX - 1, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_fail(timeline, SP_ERROR_CANCELLED, NULL), SP_OK);
    CHECK_ERROR(sp_host_timeline_fail(timeline, SP_ERROR_CANCELLED, NULL), SP_ERROR_INVALID_STATE);
    sp_host_timeline_destroy(timeline);
}
