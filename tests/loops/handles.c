/* SPDX-License-Identifier: MIT
 *
 * A handle for each point, in a loop: of a reactor with a thread of its own, unless a case says so.
 */
#include "loop.h"
#include "support/census.h"
#include "things.h"

#include <syncpoint/async.h>
#include <unistd.h>

/* A point and its handle. What is seen is counted, once unless it is told to stay. */
typedef struct item {
    watch watch; /* first: ready() gets it */
    sp_reactor *reactor;
    sp_ticket ticket;
    int fd;
    unsigned seen, to_see;
    sp_status status;
    sp_error error;
} item;

static sp_reactor *reactor;
static unsigned seen_of_all, handles;

static void start(void)
{
    handles = census_open_handles();
    CHECK_STATUS(sp_reactor_create(NULL, &reactor), SP_OK);
}

static void finish(void)
{
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    CHECK_EQUAL(counter_alive(), 0);
    CHECK_HANDLES(handles);
}

static void item_ready(watch *seen)
{
    item *self = (item *)(void *)seen;
    if (self->reactor)
        self->status = sp_point_fd_status(self->reactor, self->ticket);
    if (self->status < 0)
        self->error = *sp_last_error();
    seen_of_all++;
    if (++self->seen == self->to_see)
        loop_remove(&self->watch);
}

static void item_open(item *self, const sp_point *point)
{
    *self = (item){.reactor = reactor, .fd = -1, .to_see = 1, .status = SP_PENDING};
    CHECK_STATUS(sp_point_fd(reactor, point, &self->fd, &self->ticket), SP_OK);
    loop_add(&self->watch, self->fd, item_ready);
}

static void item_close(item *self)
{
    if (self->seen < self->to_see)
        loop_remove(&self->watch);
    CHECK_STATUS(sp_point_fd_release(reactor, self->ticket), SP_OK);
    CHECK(close(self->fd) == 0);
}

/* Nothing is seen, and nothing is told, as long as nothing has happened. */
static void check_silent(item *self)
{
    loop_idle(DELAY_MS);
    CHECK_EQUAL(self->seen, 0);
    CHECK_STATUS(sp_point_fd_status(reactor, self->ticket), SP_PENDING);
}

TEST(done_late)
{
    start();
    for (thing_kind kind = 0; kind < THING_KINDS; kind++) {
        thing work;
        item one;
        thing_open(&work, kind);
        item_open(&one, &work.point);
        check_silent(&one);
        thing_signal_late(&work);
        CHECK(loop_until(&one.seen, 1));
        CHECK(flag_is_set(&work.ending));
        CHECK_STATUS(one.status, SP_OK);
        item_close(&one);
        thing_close(&work);
    }
    finish();
}

TEST(failed_late)
{
    start();
    for (thing_kind kind = 0; kind < THING_KINDS; kind++) {
        thing work;
        item one;
        thing_open(&work, kind);
        item_open(&one, &work.point);
        check_silent(&one);
        thing_fail_late(&work);
        CHECK(loop_until(&one.seen, 1));
        CHECK(flag_is_set(&work.ending));
        CHECK_STATUS(one.status, thing_failure(&work));
        CHECK_STATUS(one.error.status, one.status);
        CHECK_STATUS(one.error.cause,
                     kind == THING_POLLED ? SP_ERROR_DEVICE_LOST : SP_ERROR_PEER_CLOSED);
        item_close(&one);
        thing_close(&work);
    }
    finish();
}

TEST(over_before)
{
    const sp_point noop = sp_point_noop();
    start();
    for (unsigned round = 0; round < 3; round++) {
        thing work;
        item one;
        thing_open(&work, THING_TIMELINE);
        if (round == 1)
            thing_signal(&work);
        else if (round == 2)
            thing_fail(&work);
        item_open(&one, round == 0 ? &noop : &work.point);
        CHECK(loop_until(&one.seen, 1));
        CHECK_STATUS(one.status, round == 2 ? SP_ERROR_FAILED : SP_OK);
        item_close(&one);
        thing_close(&work);
    }
    finish();
}

TEST_NEEDING(stays_readable, LEVEL)
{
    thing work;
    item one;
    start();
    thing_open(&work, THING_TIMELINE);
    item_open(&one, &work.point);
    one.to_see = 20;
    thing_signal_late(&work);
    CHECK(loop_until(&one.seen, 20));
    CHECK_STATUS(one.status, SP_OK);
    /* And for who comes later. */
    one.to_see = 21;
    loop_add(&one.watch, one.fd, item_ready);
    CHECK(loop_until(&one.seen, 21));
    item_close(&one);
    thing_close(&work);
    finish();
}

static void cancel(void *user)
{
    const item *self = user;
    CHECK_STATUS(sp_cancel(self->reactor, self->ticket), SP_OK);
}

TEST(cancelled_late)
{
    worker late;
    thing work;
    item one, other;
    start();
    thing_open(&work, THING_TIMELINE);
    item_open(&one, &work.point);
    item_open(&other, &work.point);
    check_silent(&one);
    worker_start(&late, DELAY_MS, cancel, &one);
    CHECK(loop_until(&one.seen, 1));
    CHECK_STATUS(one.status, SP_ERROR_CANCELLED);
    worker_join(&late);
    check_silent(&other);
    item_close(&one);
    item_close(&other);
    thing_close(&work);
    finish();
}

static void release(void *user)
{
    const item *self = user;
    CHECK_STATUS(sp_point_fd_release(reactor, self->ticket), SP_OK);
}

/* The handle tells that there is nothing more to come. */
TEST(released_late)
{
    worker late;
    thing work;
    item one;
    start();
    thing_open(&work, THING_TIMELINE);
    item_open(&one, &work.point);
    check_silent(&one);
    worker_start(&late, DELAY_MS, release, &one);
    CHECK(loop_until(&one.seen, 1));
    CHECK_STATUS(one.status, SP_ERROR_INVALID_ARGUMENT);
    worker_join(&late);
    CHECK_ERROR(sp_point_fd_release(reactor, one.ticket), SP_ERROR_INVALID_ARGUMENT);
    CHECK(close(one.fd) == 0);
    thing_close(&work);
    finish();
}

/* Nobody asks for the status, so there is nothing to release. */
TEST(without_a_ticket)
{
    thing work;
    item one = {.to_see = 1};
    start();
    thing_open(&work, THING_TIMELINE);
    CHECK_STATUS(sp_point_fd(reactor, &work.point, &one.fd, NULL), SP_OK);
    loop_add(&one.watch, one.fd, item_ready);
    loop_idle(DELAY_MS);
    CHECK_EQUAL(one.seen, 0);
    thing_signal_late(&work);
    CHECK(loop_until(&one.seen, 1));
    CHECK(close(one.fd) == 0);
    thing_close(&work);
    finish();
}

static void destroy(void *user)
{
    CHECK_STATUS(sp_reactor_destroy(user), SP_OK);
}

/* The handle outlives its reactor. */
TEST(reactor_destroyed_late)
{
    worker late;
    thing work;
    item items[2];
    start();
    thing_open(&work, THING_TIMELINE);
    for (unsigned i = 0; i < 2; i++)
        item_open(&items[i], &work.point);
    check_silent(&items[0]);
    items[0].reactor = items[1].reactor = NULL; /* nobody may ask it any more */
    worker_start(&late, DELAY_MS, destroy, reactor);
    CHECK(loop_until(&seen_of_all, 2));
    worker_join(&late);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQUAL(items[i].seen, 1);
        CHECK(close(items[i].fd) == 0);
    }
    thing_close(&work);
    CHECK_HANDLES(handles);
}

/* ---- Many ---- */

#define MANY 120u
#define KEPT_BACK(i) ((i) % 10 == 9)
#define TO_FAIL(i) ((i) % 4 == 2)

static void end_many(void *user)
{
    thing *things = user;
    test_rng rng = {.state = 7};
    for (unsigned i = 0, at = 0; i < MANY; i++) {
        at = (at + 77) % MANY; /* each once: 77 and MANY have no divisor in common */
        if (KEPT_BACK(at))
            continue;
        (TO_FAIL(at) ? thing_fail : thing_signal)(&things[at]);
        if (test_random_below(&rng, 8) == 0)
            test_sleep_ms(1);
    }
}

/* Those that never end delay none of the others, and end with the reactor. */
TEST(many)
{
    static thing things[MANY];
    static item items[MANY];
    worker late;
    start();
    for (unsigned i = 0; i < MANY; i++) {
        thing_open(&things[i], (thing_kind)(i % THING_KINDS));
        item_open(&items[i], &things[i].point);
    }
    worker_start(&late, DELAY_MS, end_many, things);
    CHECK(loop_until(&seen_of_all, MANY - MANY / 10));
    worker_join(&late);
    loop_idle(DELAY_MS);
    for (unsigned i = 0; i < MANY; i++) {
        sp_status expected = TO_FAIL(i) ? thing_failure(&things[i]) : SP_OK;
        CHECK_EQUAL(items[i].seen, KEPT_BACK(i) ? 0 : 1);
        CHECK_STATUS(items[i].status, KEPT_BACK(i) ? SP_PENDING : expected);
        items[i].reactor = NULL;
    }
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    CHECK(loop_until(&seen_of_all, MANY));
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_EQUAL(items[i].seen, 1);
        CHECK(close(items[i].fd) == 0);
        thing_close(&things[i]);
    }
    CHECK_EQUAL(counter_alive(), 0);
    CHECK_HANDLES(handles);
}

/* ---- Of a reactor that the loop drives ---- */

static unsigned dispatches;

static void dispatch(watch *self)
{
    (void)self;
    sp_status status = sp_reactor_dispatch(reactor, 0);
    CHECK(status == SP_OK || status == SP_TIMEOUT);
    dispatches++;
}

TEST(of_a_driven_reactor)
{
    const sp_reactor_desc desc = {.size = sizeof(desc), .drive = SP_REACTOR_LOOP};
    watch of_reactor;
    int fd = -1;
    handles = census_open_handles();
    CHECK_STATUS(sp_reactor_create(&desc, &reactor), SP_OK);
    CHECK_STATUS(sp_reactor_fd(reactor, &fd), SP_OK);
    for (thing_kind kind = 0; kind < THING_KINDS; kind++) {
        thing work;
        item one;
        thing_open(&work, kind);
        item_open(&one, &work.point);
        thing_signal(&work);
        loop_idle(DELAY_MS); /* nobody dispatches */
        CHECK_EQUAL(one.seen, 0);
        loop_add(&of_reactor, fd, dispatch);
        CHECK(loop_until(&one.seen, 1));
        CHECK_STATUS(one.status, SP_OK);
        loop_remove(&of_reactor);
        item_close(&one);
        thing_close(&work);
    }
    CHECK(dispatches > 0);
    finish();
}
