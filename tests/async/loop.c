/* SPDX-License-Identifier: MIT
 *
 * A reactor in the user's own loop: when its handle is readable.
 */
#include "async_case.h"

#include <poll.h>
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
        listen_to(&one, &from, 1);
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
        listen_to(&one, &from, 1);
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
        listen_to_for(&later, &from, 1, SP_TIMEOUT_DEFAULT * 100);
        listen_to_for(&one, &from, 1, 30 * MS);
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
        listen_to(&one, &from, 1);
        signal_late(&late, &from, 1);
        loop_until_called(fd, waits[i % COUNT_OF(waits)], &one);
        CHECK_STATUS(one.status, SP_OK);
        join_not_early(&late);
        source_end(&from);
    }
    settle(fd); /* and not when there is nothing left to poll */
    CHECK(!with_poll(fd, 10));
}

static void notify_and_cancel(listener *self)
{
    const sp_point done = sp_point_cpu();
    listener *others = self->user;
    listen(&others[0], &done, 0);
    CHECK_STATUS(cancel(&others[1]), SP_OK);
}

/* What a callback leaves to do is not forgotten when its dispatching returns. */
TEST_NEEDING(readable_after_a_callback_that_asks_for_more, ON_LOOP)
{
    int fd = loop_fd();
    const sp_point done = sp_point_cpu();
    for (unsigned i = 0; i < COUNT_OF(waits); i++) {
        listener others[2] = {0};
        listener one = {.then = notify_and_cancel, .user = others};
        source from = source_make(SORT_HOST);
        listen_to(&others[1], &from, 1);
        listen(&one, &done, SP_FOREVER);
        loop_until_called(fd, waits[i], &one);
        loop_until_called(fd, waits[i], &others[0]);
        loop_until_called(fd, waits[i], &others[1]);
        CHECK_STATUS(others[1].status, SP_ERROR_CANCELLED);
        source_end(&from);
    }
}

typedef struct asker {
    worker worker;
    listener *ones;
    unsigned count;
} asker;

static void ask_one_after_the_other(void *user)
{
    asker *self = user;
    const sp_point done = sp_point_cpu();
    for (unsigned i = 0; i < self->count; i++) {
        listen(&self->ones[i], &done, SP_FOREVER);
        while (listener_calls(&self->ones[i]) == 0)
            sp_now_ns();
    }
}

/* Each is asked for while the dispatching of the one before ends: nothing else would wake us. */
TEST_NEEDING(no_wake_up_is_lost, ON_LOOP)
{
    static listener ones[3000];
    int fd = loop_fd();
    asker other = {.ones = ones, .count = COUNT_OF(ones)};
    worker_start(&other.worker, 0, ask_one_after_the_other, &other);
    for (unsigned i = 0; i < COUNT_OF(ones); i++)
        loop_until_called(fd, with_poll, &ones[i]);
    worker_join(&other.worker);
}
