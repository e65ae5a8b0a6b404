/* SPDX-License-Identifier: MIT
 *
 * Callbacks of a reactor that a loop runs.
 */
#include "loop.h"
#include "support/census.h"
#include "things.h"

#include <pthread.h>
#include <syncpoint/async.h>
#include <sys/eventfd.h>
#include <unistd.h>

typedef struct call {
    const struct driven *by;
    sp_ticket ticket;
    unsigned count;
    sp_status status;
    sp_error error;
    uint64_t at_ns;
} call;

/* A reactor in the loop. */
typedef struct driven {
    watch watch; /* first: ready() gets it */
    sp_reactor *reactor;
    unsigned dispatches;
} driven;

static driven main_one;
static const driven *dispatching; /* callbacks may run */
static pthread_t loop_thread;
static unsigned calls_of_all, handles;

static void dispatch(watch *ready)
{
    driven *self = (driven *)(void *)ready;
    dispatching = self;
    sp_status status = sp_reactor_dispatch(self->reactor, 0);
    dispatching = NULL;
    CHECK(status == SP_OK || status == SP_TIMEOUT);
    self->dispatches++;
}

static void driven_open(driven *self)
{
    const sp_reactor_desc desc = {.size = sizeof(desc), .drive = SP_REACTOR_LOOP};
    int fd = -1;
    CHECK_STATUS(sp_reactor_create(&desc, &self->reactor), SP_OK);
    CHECK_STATUS(sp_reactor_fd(self->reactor, &fd), SP_OK);
    loop_add(&self->watch, fd, dispatch);
}

static void driven_close(driven *self)
{
    loop_remove(&self->watch);
    dispatching = self; /* who destroys it calls back */
    CHECK_STATUS(sp_reactor_destroy(self->reactor), SP_OK);
    dispatching = NULL;
}

static void start(void)
{
    handles = census_open_handles();
    loop_thread = pthread_self();
    driven_open(&main_one);
}

static void check_no_leak(void)
{
    CHECK_EQUAL(counter_alive(), 0);
    CHECK_HANDLES(handles);
}

static void finish(void)
{
    driven_close(&main_one);
    check_no_leak();
}

static void called(void *user, sp_status status)
{
    call *self = user;
    CHECK(pthread_equal(pthread_self(), loop_thread));
    CHECK(dispatching == self->by);
    self->at_ns = sp_now_ns();
    self->status = status;
    if (status < 0)
        self->error = *sp_last_error();
    self->count++;
    calls_of_all++;
}

static void notify_by(driven *by, call *self, const sp_point *point, uint64_t timeout_ns)
{
    *self = (call){.by = by, .status = SP_PENDING};
    CHECK_STATUS(sp_notify(by->reactor, point, timeout_ns, called, self, &self->ticket), SP_OK);
}

static void notify(call *self, const sp_point *point, uint64_t timeout_ns)
{
    notify_by(&main_one, self, point, timeout_ns);
}

static void check_silent(const call *self)
{
    loop_idle(DELAY_MS);
    CHECK_EQUAL(self->count, 0);
}

TEST(done_late)
{
    start();
    for (thing_kind kind = 0; kind < THING_KINDS; kind++) {
        thing work;
        call one;
        thing_open(&work, kind);
        notify(&one, &work.point, SP_FOREVER);
        check_silent(&one);
        thing_signal_late(&work);
        CHECK(loop_until(&one.count, 1));
        CHECK(flag_is_set(&work.ending));
        CHECK_STATUS(one.status, SP_OK);
        thing_close(&work);
    }
    finish();
}

TEST(failed_late)
{
    start();
    for (thing_kind kind = 0; kind < THING_KINDS; kind++) {
        thing work;
        call one;
        thing_open(&work, kind);
        notify(&one, &work.point, SP_FOREVER);
        check_silent(&one);
        thing_fail_late(&work);
        CHECK(loop_until(&one.count, 1));
        CHECK(flag_is_set(&work.ending));
        CHECK_STATUS(one.status, thing_failure(&work));
        CHECK_STATUS(one.error.status, one.status);
        thing_close(&work);
    }
    finish();
}

/* Never inside sp_notify(), not even then. */
TEST(over_before)
{
    const sp_point noop = sp_point_noop();
    thing reached, failed;
    call calls[3];
    start();
    thing_open(&reached, THING_TIMELINE);
    thing_open(&failed, THING_TIMELINE);
    thing_signal(&reached);
    thing_fail(&failed);
    notify(&calls[0], &noop, 0);
    notify(&calls[1], &reached.point, 0);
    notify(&calls[2], &failed.point, 0);
    CHECK_EQUAL(calls_of_all, 0);
    CHECK(loop_until(&calls_of_all, 3));
    CHECK_STATUS(calls[0].status, SP_OK);
    CHECK_STATUS(calls[1].status, SP_OK);
    CHECK_STATUS(calls[2].status, SP_ERROR_FAILED);
    thing_close(&reached);
    thing_close(&failed);
    finish();
}

/* The handle tells of the time, too: nothing else wakes the loop. */
TEST(time_is_up)
{
    start();
    for (thing_kind kind = 0; kind < THING_KINDS; kind++) {
        thing work;
        call late, later, never;
        thing_open(&work, kind);
        uint64_t begun = sp_now_ns();
        notify(&never, &work.point, SP_FOREVER);
        notify(&later, &work.point, 2 * DELAY_MS * MS);
        notify(&late, &work.point, DELAY_MS * MS);
        CHECK(loop_until(&late.count, 1));
        CHECK(loop_until(&later.count, 1));
        CHECK_STATUS(late.status, SP_TIMEOUT);
        CHECK_STATUS(later.status, SP_TIMEOUT);
        CHECK(late.at_ns - begun >= DELAY_MS * MS);
        CHECK(later.at_ns - begun >= 2 * DELAY_MS * MS);
        CHECK_EQUAL(never.count, 0);
        thing_signal(&work);
        CHECK(loop_until(&never.count, 1));
        CHECK_STATUS(never.status, SP_OK);
        thing_close(&work);
    }
    finish();
}

static void cancel(void *user)
{
    const call *self = user;
    CHECK_STATUS(sp_cancel(main_one.reactor, self->ticket), SP_OK);
}

TEST(cancelled_late)
{
    worker late;
    thing work;
    call first, other;
    start();
    thing_open(&work, THING_TIMELINE);
    notify(&first, &work.point, SP_FOREVER);
    notify(&other, &work.point, SP_FOREVER);
    check_silent(&first);
    worker_start(&late, DELAY_MS, cancel, &first);
    CHECK(loop_until(&first.count, 1));
    worker_join(&late);
    CHECK_STATUS(first.status, SP_ERROR_CANCELLED);
    check_silent(&other);
    thing_signal(&work);
    CHECK(loop_until(&other.count, 1));
    CHECK_STATUS(other.status, SP_OK);
    CHECK_EQUAL(first.count, 1);
    thing_close(&work);
    finish();
}

TEST(destroyed)
{
    thing things[THING_KINDS];
    call calls[THING_KINDS];
    start();
    for (thing_kind kind = 0; kind < THING_KINDS; kind++) {
        thing_open(&things[kind], kind);
        notify(&calls[kind], &things[kind].point, SP_FOREVER);
    }
    check_silent(&calls[0]);
    driven_close(&main_one);
    for (thing_kind kind = 0; kind < THING_KINDS; kind++) {
        CHECK_EQUAL(calls[kind].count, 1);
        CHECK_STATUS(calls[kind].status, SP_ERROR_CANCELLED);
        thing_close(&things[kind]);
    }
    check_no_leak();
}

/* ---- Many ---- */

#define MANY 1200u
#define VALUES 40u /* of each timeline */
#define TIMELINES (MANY / VALUES)
#define FAIL_FROM 30u /* on one in three */

static sp_host_timeline *timelines[TIMELINES];

static void end_some(unsigned from)
{
    test_rng rng = {.state = from + 1};
    for (uint64_t value = 1; value <= VALUES; value++) {
        for (unsigned i = from; i < TIMELINES; i += 2) {
            if (i % 3 != 0 || value < FAIL_FROM)
                CHECK_STATUS(sp_host_timeline_signal(timelines[i], value), SP_OK);
            else if (value == FAIL_FROM)
                CHECK_STATUS(sp_host_timeline_fail(timelines[i], SP_ERROR_PEER_CLOSED, NULL),
                             SP_OK);
        }
        if (test_random_below(&rng, 4) == 0)
            test_sleep_ms(1);
    }
}

static void end_even(void *user)
{
    (void)user;
    end_some(0);
}

static void end_odd(void *user)
{
    (void)user;
    end_some(1);
}

TEST(many)
{
    static call calls[MANY];
    worker late[2];
    sp_point point = {0};
    start();
    for (unsigned i = 0; i < TIMELINES; i++)
        CHECK_STATUS(sp_host_timeline_create(0, &timelines[i]), SP_OK);
    worker_start(&late[0], 1, end_even, NULL);
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_STATUS(sp_host_timeline_point(timelines[i / VALUES], i % VALUES + 1, &point), SP_OK);
        notify(&calls[i], &point, SP_FOREVER);
        sp_point_unref(&point);
        if (i == MANY / 2)
            worker_start(&late[1], 1, end_odd, NULL);
    }
    CHECK(loop_until(&calls_of_all, MANY));
    worker_join(&late[0]);
    worker_join(&late[1]);
    for (unsigned i = 0; i < MANY; i++) {
        bool fails = i / VALUES % 3 == 0 && i % VALUES + 1 >= FAIL_FROM;
        CHECK_EQUAL(calls[i].count, 1);
        CHECK_STATUS(calls[i].status, fails ? SP_ERROR_FAILED : SP_OK);
    }
    for (unsigned i = 0; i < TIMELINES; i++)
        sp_host_timeline_destroy(timelines[i]);
    finish();
}

/* ---- Beside other things in the loop ---- */

static void ask_again(void *user, sp_status status)
{
    const sp_point noop = sp_point_noop();
    ++*(unsigned *)user;
    if (status == SP_OK)
        CHECK_STATUS(sp_notify(main_one.reactor, &noop, SP_FOREVER, ask_again, user, NULL), SP_OK);
}

static unsigned other_seen;

static void other_ready(watch *self)
{
    (void)self;
    other_seen++;
}

/* A callback that always asks for one more leaves the loop's other handles their turns. */
TEST_NEEDING(endless_callbacks_starve_nobody, LEVEL)
{
    unsigned turns = 0;
    watch other;
    start();
    int fd = eventfd(1, EFD_CLOEXEC);
    ask_again(&turns, SP_OK);
    loop_add(&other, fd, other_ready);
    while (turns < 1000)
        loop_turn();
    CHECK(other_seen > 10);
    loop_remove(&other);
    close(fd);
    finish();
}

/* Two reactors in one loop, each for its own. */
TEST(two_reactors)
{
    static driven second;
    thing work;
    call first_call, second_call;
    start();
    driven_open(&second);
    thing_open(&work, THING_TIMELINE);
    notify(&first_call, &work.point, SP_FOREVER);
    notify_by(&second, &second_call, &work.point, SP_FOREVER);
    thing_signal_late(&work);
    CHECK(loop_until(&calls_of_all, 2));
    CHECK_EQUAL(first_call.count, 1);
    CHECK_EQUAL(second_call.count, 1);
    CHECK(second.dispatches > 0 && main_one.dispatches > 0);
    thing_close(&work);
    driven_close(&second);
    finish();
}
