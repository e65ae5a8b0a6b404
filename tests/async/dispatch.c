/* SPDX-License-Identifier: MIT
 *
 * Dispatching a reactor in the user's own loop: how long it takes, what it says, who may.
 */
#include "async_case.h"

/* ---- Time ---- */

TEST_NEEDING(dispatch_times, ON_LOOP)
{
    const uint64_t times[] = {0, 1, 999999, 30 * MS};
    listener one = {0};
    source from = source_make(SORT_HOST), polled = source_make(SORT_PROBE);
    for (unsigned round = 0; round < 3; round++) {
        if (round > 0)
            listen_to(&one, round == 1 ? &from : &polled, round);
        for (unsigned i = 0; i < COUNT_OF(times); i++) {
            uint64_t start = sp_now_ns();
            CHECK_STATUS(dispatch(reactor, times[i]), SP_TIMEOUT);
            CHECK(sp_now_ns() - start >= times[i]);
        }
    }
    source_signal(&from, 1);
    source_signal(&polled, 2);
    CHECK(listener_wait(&one, 2));
    source_end(&from);
    source_end(&polled);
}

TEST_NEEDING(dispatch_waits_for_the_first, ON_LOOP)
{
    const uint64_t times[] = {PATIENCE_NS, SP_FOREVER, INT64_MAX, (UINT64_C(1) << 32) * MS};
    for (EACH_SORT(which)) {
        for (unsigned i = 0; i < COUNT_OF(times); i++) {
            late_signal late;
            listener one = {0};
            source from = source_make(which);
            listen_to(&one, &from, 1);
            signal_late(&late, &from, 1);
            CHECK_STATUS(dispatch(reactor, times[i]), SP_OK);
            CHECK_EQUAL(listener_calls(&one), 1);
            CHECK_STATUS(one.status, SP_OK);
            join_not_early(&late);
            source_end(&from);
        }
    }
}

TEST_NEEDING(dispatch_ends_with_a_ticket_whose_time_is_up, ON_LOOP)
{
    listener one = {0};
    source from = source_make(SORT_HOST);
    uint64_t start = sp_now_ns();
    listen_to_for(&one, &from, 1, 30 * MS);
    CHECK_STATUS(dispatch(reactor, SP_FOREVER), SP_OK);
    CHECK(sp_now_ns() - start >= 30 * MS);
    CHECK_EQUAL(listener_calls(&one), 1);
    CHECK_STATUS(one.status, SP_TIMEOUT);
    source_end(&from);
}

/* All that is due, each once. */
TEST_NEEDING(dispatch_runs_what_is_due, ON_LOOP)
{
    static listener ones[300];
    const sp_point done = sp_point_cpu();
    source from = source_make(SORT_HOST);
    for (unsigned i = 0; i < COUNT_OF(ones); i++) {
        if (i % 2)
            listen(&ones[i], &done, 0);
        else
            listen_to(&ones[i], &from, 1);
    }
    source_signal(&from, 1);
    unsigned rounds = 0;
    while (dispatch(reactor, 0) == SP_OK)
        CHECK(rounds++ < COUNT_OF(ones));
    for (unsigned i = 0; i < COUNT_OF(ones); i++) {
        CHECK_EQUAL(listener_calls(&ones[i]), 1);
        CHECK_STATUS(ones[i].status, SP_OK);
    }
    source_end(&from);
}

static unsigned again; /* how often it shall be called still */

static void notify_again(listener *self)
{
    const sp_point done = sp_point_cpu();
    if (again > 0) {
        again--;
        listen(self, &done, 0);
    }
}

/* The caller's loop gets its turn between callbacks that notify again. */
TEST_NEEDING(dispatch_returns_from_endless_notifications, ON_LOOP)
{
    listener endless = {.then = notify_again};
    const sp_point done = sp_point_cpu();
    again = UINT32_MAX;
    listen(&endless, &done, 0);
    for (unsigned i = 0; i < 100; i++)
        CHECK_STATUS(dispatch(reactor, 0), SP_OK);
    again = 0;
    while (dispatch(reactor, 0) == SP_OK)
        ;
}

/* ---- Threads ---- */

typedef struct dispatcher {
    worker worker;
    flag begun;
    sp_status said;
} dispatcher;

static void dispatch_once(void *user)
{
    dispatcher *self = user;
    flag_set(&self->begun);
    self->said = dispatch(reactor, PATIENCE_NS);
}

static void start_dispatcher(dispatcher *self)
{
    *self = (dispatcher){.said = SP_OK};
    worker_start(&self->worker, 0, dispatch_once, self);
    CHECK(flag_wait(&self->begun));
    test_sleep_ms(DELAY_MS); /* it blocks by now */
}

/* While one thread dispatches, no other may, nor destroy; what they ask for wakes it. */
TEST_NEEDING(two_threads, ON_LOOP)
{
    for (unsigned round = 0; round < 3; round++) {
        dispatcher other;
        listener one = {0};
        source from = source_make(SORT_HOST);
        const sp_point done = sp_point_cpu();
        if (round == 1)
            listen_to(&one, &from, 1);
        start_dispatcher(&other);
        CHECK(!worker_is_done(&other.worker));
        CHECK_ERROR(dispatch(reactor, 0), SP_ERROR_INVALID_STATE);
        CHECK_ERROR(dispatch(reactor, SP_FOREVER), SP_ERROR_INVALID_STATE);
        CHECK_ERROR(sp_reactor_destroy(reactor), SP_ERROR_INVALID_STATE);
        if (round == 0)
            listen(&one, &done, SP_FOREVER);
        else if (round == 1)
            CHECK_STATUS(cancel(&one), SP_OK);
        else
            listen_to_for(&one, &from, 1, 2 * MS);
        worker_join(&other.worker);
        CHECK_STATUS(other.said, SP_OK);
        CHECK_EQUAL(listener_calls(&one), 1);
        CHECK_STATUS(dispatch(reactor, 0), SP_TIMEOUT); /* it may again */
        source_end(&from);
    }
}

/* ---- Refused ---- */

TEST_NEEDING(not_with_a_thread_of_its_own, ON_THREAD)
{
    int fd = 99;
    CHECK_ERROR(sp_reactor_fd(reactor, &fd), SP_ERROR_INVALID_STATE);
    CHECK_EQUAL(fd, 99);
    CHECK_ERROR(sp_reactor_dispatch(reactor, 0), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_reactor_dispatch(reactor, SP_FOREVER), SP_ERROR_INVALID_STATE);
}

TEST(nothing_to_dispatch_given)
{
    int fd = 99;
    CHECK_ERROR(sp_reactor_fd(NULL, &fd), SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(fd, 99);
    CHECK_ERROR(sp_reactor_fd(reactor, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_reactor_dispatch(NULL, 0), SP_ERROR_INVALID_ARGUMENT);
}
