/* SPDX-License-Identifier: MIT
 *
 * A point that is never reached delays no other.
 */
#include "async_case.h"

/* Round after round of points that are reached, one behind the other. */
static void check_others_go_on(unsigned rounds)
{
    source from[SORT_COUNT];
    for (unsigned round = 0; round < rounds; round++) {
        listener ones[SORT_COUNT] = {0}, impatient = {0};
        source slow = source_make(SORT_HOST);
        listen_to_for(&impatient, &slow, 1, MS);
        for (EACH_SORT(which)) {
            from[which] = source_make(which);
            listen_to(&ones[which], &from[which], 1);
            source_signal(&from[which], 1);
        }
        for (EACH_SORT(which)) {
            CHECK_HEARD(&ones[which], SP_OK);
            source_end(&from[which]);
        }
        CHECK_HEARD(&impatient, SP_TIMEOUT);
        source_end(&slow);
    }
}

/* One of each sort, before all others; or of one sort alone. */
TEST(one_that_never_completes)
{
    for (EACH_SORT(which)) {
        listener never = {0};
        source stuck = source_make(which);
        listen_to(&never, &stuck, 1);
        check_others_go_on(10);
        CHECK_EQUAL(listener_calls(&never), 0);
        CHECK_STATUS(cancel(&never), SP_OK);
        CHECK_HEARD(&never, SP_ERROR_CANCELLED);
        source_end(&stuck);
    }
}

TEST(one_of_each_sort_that_never_completes)
{
    listener never[SORT_COUNT] = {0};
    source stuck[SORT_COUNT];
    for (EACH_SORT(which)) {
        stuck[which] = source_make(which);
        listen_to(&never[which], &stuck[which], 1);
    }
    check_others_go_on(50);
    for (EACH_SORT(which)) {
        CHECK_EQUAL(listener_calls(&never[which]), 0);
        source_signal(&stuck[which], 1); /* and it is heard in the end */
        CHECK_HEARD(&never[which], SP_OK);
        source_end(&stuck[which]);
    }
}

/* ---- Many that are polled ---- */

#define STUCK 2000

static listener never[STUCK];
static source stuck[STUCK];

static void many_stuck(sort which)
{
    for (unsigned i = 0; i < STUCK; i++) {
        stuck[i] = source_make(which);
        never[i] = (listener){0};
        listen_to(&never[i], &stuck[i], 1);
    }
}

static void free_the_stuck(void)
{
    for (unsigned i = 0; i < STUCK; i++) {
        CHECK_EQUAL(listener_calls(&never[i]), 0);
        if (i % 2)
            source_signal(&stuck[i], 1);
        else
            CHECK_STATUS(cancel(&never[i]), SP_OK);
    }
    for (unsigned i = 0; i < STUCK; i++) {
        CHECK_HEARD(&never[i], i % 2 ? SP_OK : SP_ERROR_CANCELLED);
        source_end(&stuck[i]);
    }
}

/* A timeline that tells by itself, beside thousands that are asked in turn. */
TEST(thousands_that_are_polled_beside_a_timeline)
{
    source from = source_make(SORT_HOST);
    many_stuck(SORT_ONE_SHOT_PROBE);
    for (unsigned value = 1; value <= 200; value++) {
        listener one = {0}, impatient = {0};
        listen_to(&one, &from, value);
        if (value % 10 == 0)
            listen_to_for(&impatient, &from, 1000, MS);
        source_signal(&from, value);
        CHECK_HEARD(&one, SP_OK);
        if (value % 10 == 0)
            CHECK_HEARD(&impatient, SP_TIMEOUT);
    }
    free_the_stuck();
    source_end(&from);
}

/* One more that is polled has its turn among them. */
TEST(thousands_that_are_polled_beside_one_more)
{
    source from = source_make(SORT_PROBE);
    many_stuck(SORT_ONE_SHOT_PROBE);
    for (unsigned value = 1; value <= 20; value++) {
        listener one = {0};
        listen_to(&one, &from, value);
        source_signal(&from, value);
        CHECK_HEARD(&one, SP_OK);
    }
    free_the_stuck();
    source_end(&from);
}

/* Values of one primitive share what is asked: thousands far away do not delay a near one. */
TEST(thousands_of_far_values)
{
    source from = source_make(SORT_PROBE);
    for (unsigned i = 0; i < STUCK; i++) {
        never[i] = (listener){0};
        listen_to(&never[i], &from, 1000 + i);
    }
    for (unsigned value = 1; value <= 50; value++) {
        listener one = {0};
        listen_to(&one, &from, value);
        source_signal(&from, value);
        CHECK_HEARD(&one, SP_OK);
    }
    source_signal(&from, 1000 + STUCK);
    for (unsigned i = 0; i < STUCK; i++)
        CHECK_HEARD(&never[i], SP_OK);
    source_end(&from);
}

/* A probe that always refuses ends its own notifications alone. */
TEST(one_whose_probe_refuses)
{
    source bad = source_make(SORT_PROBE), good = source_make(SORT_PROBE);
    counter_set_probe_status(bad.counter, SP_ERROR_WRONG_CONTEXT);
    for (unsigned value = 1; value <= 50; value++) {
        listener refused = {0}, fine = {0};
        listen_to(&refused, &bad, value);
        listen_to(&fine, &good, value);
        source_signal(&good, value);
        CHECK_HEARD(&refused, SP_ERROR_WRONG_CONTEXT);
        CHECK_HEARD(&fine, SP_OK);
    }
    source_end(&bad);
    source_end(&good);
}
