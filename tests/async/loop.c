/* SPDX-License-Identifier: MIT
 *
 * A reactor in the user's own loop: when its handle is readable, and what dispatching says.
 */
#include "async_case.h"

#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <unistd.h>

static int loop_fd(void)
{
    int fd = -1;
    CHECK_STATUS(sp_reactor_fd(reactor, &fd), SP_OK);
    CHECK(census_is_open(fd));
    return fd;
}

static void pending_listener(listener *one, source *from, uint64_t value, uint64_t timeout_ns)
{
    sp_point point = source_point(from, value);
    listen(one, &point, timeout_ns);
    sp_point_unref(&point);
}

/* ---- Three ways to wait for the handle ---- */

static bool with_poll(int fd, unsigned ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    int ready = poll(&wait, 1, (int)ms);
    CHECK(ready >= 0);
    return ready == 1 && (wait.revents & POLLIN);
}

static bool with_select(int fd, unsigned ms)
{
    fd_set set;
    struct timeval time = {.tv_sec = ms / 1000, .tv_usec = (long)(ms % 1000) * 1000};
    FD_ZERO(&set);
    FD_SET(fd, &set);
    int ready = select(fd + 1, &set, NULL, NULL, &time);
    CHECK(ready >= 0);
    return ready == 1 && FD_ISSET(fd, &set);
}

static bool with_epoll(int fd, unsigned ms)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN};
    CHECK(epoll >= 0);
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0);
    int ready = epoll_wait(epoll, &event, 1, (int)ms);
    close(epoll);
    CHECK(ready >= 0);
    return ready == 1 && (event.events & EPOLLIN);
}

typedef bool (*wait_fn)(int fd, unsigned ms);
static const wait_fn waits[] = {with_poll, with_select, with_epoll};

#define PATIENCE_MS ((unsigned)(PATIENCE_NS / MS))

/* What a loop does, until nothing is left to do. Dispatching may also see to what it has to, and
 * call nothing. */
static void settle(int fd)
{
    unsigned rounds = 0;
    while (with_poll(fd, 0)) {
        sp_status status = dispatch(reactor, 0);
        CHECK(status == SP_OK || status == SP_TIMEOUT);
        CHECK(rounds++ < 1000);
    }
    CHECK_STATUS(dispatch(reactor, 0), SP_TIMEOUT);
}

/* Goes on as a loop does until the listener was called; never dispatches unasked. */
static void loop_until_called(int fd, wait_fn wait, const listener *one)
{
    while (listener_calls(one) == 0) {
        CHECK(wait(fd, PATIENCE_MS));
        sp_status status = dispatch(reactor, 0);
        CHECK(status == SP_OK || status == SP_TIMEOUT);
    }
}

/* ---- The handle ---- */

TEST_NEEDING(not_readable_while_nothing_is_to_do, ON_LOOP)
{
    int fd = loop_fd();
    for (unsigned i = 0; i < COUNT_OF(waits); i++)
        CHECK(!waits[i](fd, 10));
    CHECK_EQUAL(loop_fd(), fd);
    CHECK_STATUS(dispatch(reactor, 0), SP_TIMEOUT);
}

TEST_NEEDING(readable_when_reached, ON_LOOP)
{
    int fd = loop_fd();
    const sort notifying[] = {SORT_HOST, SORT_SLOT, SORT_CHAIN,
                              SORT_FD,   SORT_ARM,  SORT_ONE_SHOT_ARM};
    for (unsigned i = 0; i < COUNT_OF(notifying) * COUNT_OF(waits); i++) {
        late_signal late;
        listener one = {0};
        wait_fn wait = waits[i % COUNT_OF(waits)];
        source from = source_make(notifying[i / COUNT_OF(waits)]);
        pending_listener(&one, &from, 1, SP_FOREVER);
        settle(fd);
        CHECK(!wait(fd, 10));
        signal_late(&late, &from, 1);
        loop_until_called(fd, wait, &one);
        CHECK_STATUS(one.status, SP_OK);
        join_not_early(&late);
        settle(fd);
        CHECK(!wait(fd, 5));
        source_end(&from);
    }
}

/* It stays readable until somebody dispatches. */
TEST_NEEDING(readable_for_what_is_over, ON_LOOP)
{
    int fd = loop_fd();
    const sp_point done = sp_point_cpu();
    for (unsigned i = 0; i < COUNT_OF(waits); i++) {
        listener one = {0};
        listen(&one, &done, SP_FOREVER);
        for (unsigned n = 0; n < 3; n++)
            CHECK(waits[i](fd, PATIENCE_MS));
        CHECK_EQUAL(listener_calls(&one), 0);
        CHECK_STATUS(dispatch(reactor, 0), SP_OK);
        CHECK_EQUAL(listener_calls(&one), 1);
        settle(fd);
        CHECK(!waits[i](fd, 0));
    }
}

TEST_NEEDING(readable_when_cancelled, ON_LOOP)
{
    int fd = loop_fd();
    for (EACH_SORT(which)) {
        listener one = {0};
        source from = source_make(which);
        pending_listener(&one, &from, 1, SP_FOREVER);
        CHECK_STATUS(dispatch(reactor, 0), SP_TIMEOUT);
        CHECK_STATUS(cancel(&one), SP_OK);
        loop_until_called(fd, with_poll, &one);
        CHECK_STATUS(one.status, SP_ERROR_CANCELLED);
        source_end(&from);
    }
}

TEST_NEEDING(readable_when_the_time_is_up, ON_LOOP)
{
    int fd = loop_fd();
    for (unsigned i = 0; i < COUNT_OF(waits); i++) {
        listener one = {0}, later = {0};
        source from = source_make(SORT_HOST);
        uint64_t start = sp_now_ns();
        pending_listener(&later, &from, 1, SP_TIMEOUT_DEFAULT * 100);
        pending_listener(&one, &from, 1, 30 * MS);
        loop_until_called(fd, waits[i], &one);
        CHECK_STATUS(one.status, SP_TIMEOUT);
        CHECK(one.when_ns - start >= 30 * MS);
        settle(fd);
        CHECK(!waits[i](fd, 5));
        CHECK_STATUS(cancel(&later), SP_OK);
        CHECK_HEARD(&later, SP_ERROR_CANCELLED);
        source_end(&from);
    }
}

/* What is polled needs the loop to come back, and says so. */
TEST_NEEDING(readable_for_what_is_polled, ON_LOOP)
{
    int fd = loop_fd();
    const sort polled[] = {SORT_PROBE, SORT_ONE_SHOT_PROBE, SORT_BLOCK, SORT_GROUP};
    for (unsigned i = 0; i < COUNT_OF(polled) * COUNT_OF(waits); i++) {
        late_signal late;
        listener one = {0};
        source from = source_make(polled[i / COUNT_OF(waits)]);
        pending_listener(&one, &from, 1, SP_FOREVER);
        signal_late(&late, &from, 1);
        loop_until_called(fd, waits[i % COUNT_OF(waits)], &one);
        CHECK_STATUS(one.status, SP_OK);
        join_not_early(&late);
        source_end(&from);
    }
    settle(fd); /* and not when there is nothing left to poll */
    CHECK(!with_poll(fd, 10));
}

/* ---- Dispatching ---- */

TEST_NEEDING(dispatch_times, ON_LOOP)
{
    const uint64_t times[] = {0, 1, 999999, 30 * MS};
    listener one = {0};
    source from = source_make(SORT_HOST), polled = source_make(SORT_PROBE);
    for (unsigned round = 0; round < 3; round++) {
        if (round > 0)
            pending_listener(&one, round == 1 ? &from : &polled, round, SP_FOREVER);
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
            pending_listener(&one, &from, 1, SP_FOREVER);
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
    pending_listener(&one, &from, 1, 30 * MS);
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
            pending_listener(&ones[i], &from, 1, SP_FOREVER);
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
            pending_listener(&one, &from, 1, SP_FOREVER);
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
            pending_listener(&one, &from, 1, 2 * MS);
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
