/* SPDX-License-Identifier: MIT
 *
 * Cancelling: what sp_cancel() says, and what the callback is told, always agree.
 */
#include "async_case.h"

#include <stdio.h>

/* ---- Pending, done, twice ---- */

TEST(pending)
{
    for (EACH_SORT(which)) {
        listener one = {0}, other = {0};
        source from = source_make(which);
        listen_to(&one, &from, 1);
        listen_to(&other, &from, 1);
        go_on_ms(2);
        CHECK_STATUS(cancel(&one), SP_OK);
        CHECK_HEARD(&one, SP_ERROR_CANCELLED);
        CHECK_STATUS(one.cause, SP_ERROR_CANCELLED);
        source_signal(&from, 1);
        CHECK_HEARD(&other, SP_OK);
        CHECK_EQUAL(listener_calls(&one), 1);
        source_end(&from);
    }
}

TEST(right_after_the_notification)
{
    for (EACH_SORT(which)) {
        listener one = {0};
        source from = source_make(which);
        listen_to(&one, &from, 1);
        CHECK_STATUS(cancel(&one), SP_OK);
        CHECK_HEARD(&one, SP_ERROR_CANCELLED);
        source_end(&from);
    }
}

TEST(too_late)
{
    const sp_status results[] = {SP_OK, SP_ERROR_FAILED, SP_TIMEOUT, SP_ERROR_CANCELLED};
    for (unsigned i = 0; i < COUNT_OF(results); i++) {
        listener one = {0};
        source from = source_make(SORT_HOST);
        sp_point point = source_point(&from, 1);
        listen(&one, &point, results[i] == SP_TIMEOUT ? 0 : SP_FOREVER);
        if (results[i] == SP_OK)
            source_signal(&from, 1);
        if (results[i] == SP_ERROR_FAILED)
            source_fail(&from);
        if (results[i] == SP_ERROR_CANCELLED)
            CHECK_STATUS(cancel(&one), SP_OK);
        CHECK_HEARD(&one, results[i]);
        flush(); /* its callback has returned */
        for (unsigned n = 0; n < 3; n++)
            CHECK_STATUS(cancel(&one), SP_PENDING);
        go_on_ms(2);
        CHECK_EQUAL(listener_calls(&one), 1);
        sp_point_unref(&point);
        source_end(&from);
    }
}

/* The second finds it cancelled already, or even over: it is called once. */
TEST(twice)
{
    for (EACH_SORT(which)) {
        listener one = {0};
        source from = source_make(which);
        listen_to(&one, &from, 1);
        CHECK_STATUS(cancel(&one), SP_OK);
        sp_status again = cancel(&one);
        if (drive == SP_REACTOR_LOOP)
            CHECK_STATUS(again, SP_OK); /* nobody has dispatched yet */
        CHECK(again == SP_OK || again == SP_PENDING);
        CHECK_HEARD(&one, SP_ERROR_CANCELLED);
        flush();
        CHECK_STATUS(cancel(&one), SP_PENDING);
        source_end(&from);
    }
}

/* In any order, and those that are not cancelled are not touched. */
TEST(many_in_a_mixed_order)
{
    enum { COUNT = 512 };
    static listener ones[COUNT];
    for (EACH_SORT(which)) {
        source from = source_make(which);
        for (unsigned i = 0; i < COUNT; i++) {
            ones[i] = (listener){0};
            listen_to(&ones[i], &from, 1);
        }
        for (unsigned i = 0; i < COUNT; i++) {
            unsigned at = (i * 167u) % COUNT; /* each once */
            if (at % 4 != 0)
                CHECK_STATUS(cancel(&ones[at]), SP_OK);
        }
        source_signal(&from, 1);
        for (unsigned i = 0; i < COUNT; i++)
            CHECK_HEARD(&ones[i], i % 4 ? SP_ERROR_CANCELLED : SP_OK);
        source_end(&from);
    }
}

/* ---- While the callback runs ---- */

typedef struct canceller {
    worker worker;
    const listener *which;
    sp_status said;
} canceller;

static void cancel_it(void *user)
{
    canceller *self = user;
    self->said = cancel(self->which);
}

/* Asks on the callback's own thread, and on another meanwhile. */
static void cancel_while_running(listener *self)
{
    canceller *answers = self->user;
    answers[0].which = answers[1].which = self;
    cancel_it(&answers[0]);
    worker_start(&answers[1].worker, 0, cancel_it, &answers[1]);
    worker_join(&answers[1].worker);
}

TEST(runs_with_a_result_of_its_own)
{
    for (EACH_SORT(which)) {
        canceller answers[2] = {0};
        listener one = {.then = cancel_while_running, .user = answers};
        source from = source_make(which);
        listen_to(&one, &from, 1);
        source_signal(&from, 1);
        CHECK_HEARD(&one, SP_OK);
        CHECK_STATUS(answers[0].said, SP_PENDING);
        CHECK_STATUS(answers[1].said, SP_PENDING);
        source_end(&from);
    }
}

/* "Will run with CANCELLED, or does so now." */
TEST(runs_with_cancelled)
{
    canceller answers[2] = {0};
    listener one = {.then = cancel_while_running, .user = answers};
    source from = source_make(SORT_HOST);
    listen_to(&one, &from, 1);
    CHECK_STATUS(cancel(&one), SP_OK);
    CHECK_HEARD(&one, SP_ERROR_CANCELLED);
    CHECK_STATUS(answers[0].said, SP_OK);
    CHECK_STATUS(answers[1].said, SP_OK);
    flush();
    CHECK_STATUS(cancel(&one), SP_PENDING);
    source_end(&from);
}

/* ---- Races ---- */

#define ROUNDS 600

typedef struct race {
    worker worker;
    source *from;
    const listener *which;
    unsigned round; /* atomic: the one that has begun */
    unsigned over;  /* atomic: the one that the other thread is done with */
    bool cancels;
    sp_status said;
} race;

static void wait_for_round(const unsigned *round, unsigned wanted)
{
    while (__atomic_load_n(round, __ATOMIC_SEQ_CST) != wanted)
        sp_now_ns();
}

static void race_along(void *user)
{
    race *self = user;
    for (unsigned round = 1; round <= ROUNDS; round++) {
        wait_for_round(&self->round, round);
        if (self->cancels)
            self->said = cancel(self->which);
        else
            source_signal(self->from, 1);
        __atomic_store_n(&self->over, round, __ATOMIC_SEQ_CST);
    }
}

static void delay_a_little(test_rng *rng)
{
    uint64_t end = sp_now_ns() + test_random_below(rng, 20000);
    while (sp_now_ns() < end)
        ;
}

static void begin_round(race *self, unsigned round)
{
    __atomic_store_n(&self->round, round, __ATOMIC_SEQ_CST);
}

static void race_the_signal(sort which)
{
    race other = {0};
    test_rng rng = {1 + which};
    unsigned cancelled = 0;
    worker_start(&other.worker, 0, race_along, &other);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        listener one = {0};
        source from = source_make(which);
        listen_to(&one, &from, 1);
        other.from = &from;
        begin_round(&other, round);
        delay_a_little(&rng);
        sp_status said = cancel(&one);
        CHECK(said == SP_OK || said == SP_PENDING);
        CHECK_HEARD(&one, said == SP_OK ? SP_ERROR_CANCELLED : SP_OK);
        cancelled += said == SP_OK;
        wait_for_round(&other.over, round);
        source_end(&from);
    }
    worker_join(&other.worker);
    printf("%u of %u were cancelled\n", cancelled, ROUNDS);
}

TEST(races_with_the_signal)
{
    race_the_signal(SORT_HOST);
    race_the_signal(SORT_SLOT);
    race_the_signal(SORT_ARM);
    race_the_signal(SORT_ONE_SHOT_PROBE);
}

/* Of two threads that cancel, at least one is told that it will be cancelled. */
TEST(races_with_another_cancel)
{
    race other = {.cancels = true};
    test_rng rng = {5};
    source from = source_make(SORT_HOST);
    worker_start(&other.worker, 0, race_along, &other);
    for (unsigned round = 1; round <= ROUNDS; round++) {
        listener one = {0};
        listen_to(&one, &from, 1);
        other.which = &one;
        begin_round(&other, round);
        delay_a_little(&rng);
        sp_status said = cancel(&one);
        wait_for_round(&other.over, round);
        CHECK(said == SP_OK || said == SP_PENDING);
        CHECK(other.said == SP_OK || other.said == SP_PENDING);
        CHECK(said == SP_OK || other.said == SP_OK);
        CHECK_HEARD(&one, SP_ERROR_CANCELLED);
    }
    worker_join(&other.worker);
    source_end(&from);
}

/* The time may be up just then. */
TEST(races_with_the_time)
{
    test_rng rng = {6};
    source from = source_make(SORT_HOST);
    sp_point point = source_point(&from, 1);
    for (unsigned round = 0; round < ROUNDS; round++) {
        listener one = {0};
        listen(&one, &point, test_random_below(&rng, 40000));
        delay_a_little(&rng);
        sp_status said = cancel(&one);
        CHECK(said == SP_OK || said == SP_PENDING);
        CHECK_HEARD(&one, said == SP_OK ? SP_ERROR_CANCELLED : SP_TIMEOUT);
    }
    sp_point_unref(&point);
    source_end(&from);
}

/* ---- Tickets that are none ---- */

/* Numbers are not used again: an old one touches no later notification. */
TEST(stale_tickets)
{
    enum { OLD = 300 };
    static listener old[OLD];
    listener one = {0};
    source from = source_make(SORT_HOST);
    const sp_point done = sp_point_cpu();
    for (unsigned i = 0; i < OLD; i++) {
        listen(&old[i], &done, 0);
        CHECK_HEARD(&old[i], SP_OK);
    }
    listen_to(&one, &from, 1);
    for (unsigned i = 0; i < OLD; i++) {
        CHECK(old[i].ticket != one.ticket);
        CHECK_STATUS(cancel(&old[i]), SP_PENDING);
    }
    go_on_ms(5);
    CHECK_EQUAL(listener_calls(&one), 0);
    source_signal(&from, 1);
    CHECK_HEARD(&one, SP_OK);
    source_end(&from);
}

static void check_refused(const listener *one)
{
    const sp_ticket valid = one->ticket;
    CHECK_ERROR(sp_cancel(reactor, 0), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cancel(reactor, UINT64_MAX), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cancel(reactor, valid + 1), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cancel(reactor, valid - 1), SP_ERROR_INVALID_ARGUMENT);
    for (unsigned bit = 0; bit < 64; bit++)
        CHECK_ERROR(sp_cancel(reactor, valid ^ (UINT64_C(1) << bit)), SP_ERROR_INVALID_ARGUMENT);
}

/* With one ticket there is, all other numbers are wrong. */
TEST(never_issued)
{
    listener one = {0};
    source from = source_make(SORT_HOST);
    CHECK_ERROR(sp_cancel(reactor, 1), SP_ERROR_INVALID_ARGUMENT);
    listen_to(&one, &from, 1);
    check_refused(&one);
    go_on_ms(5);
    CHECK_EQUAL(listener_calls(&one), 0);
    source_signal(&from, 1);
    CHECK_HEARD(&one, SP_OK);
    check_refused(&one);
    source_end(&from);
}

/* A reactor that has issued none takes no other's. */
TEST(ticket_of_another_reactor)
{
    listener one = {0};
    source from = source_make(SORT_HOST);
    sp_reactor *other = make_reactor();
    listen_to(&one, &from, 1);
    CHECK_ERROR(sp_cancel(other, one.ticket), SP_ERROR_INVALID_ARGUMENT);
    go_on_ms(5);
    CHECK_EQUAL(listener_calls(&one), 0);
    CHECK_STATUS(cancel(&one), SP_OK);
    CHECK_HEARD(&one, SP_ERROR_CANCELLED);
    destroy_reactor(&other);
    source_end(&from);
}
