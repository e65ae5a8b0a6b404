/* SPDX-License-Identifier: MIT
 *
 * Loops that are told of changes only (EPOLLET), and loops inside callbacks: no edge is missed, and
 * nobody is woken for nothing.
 */
#include "async_case.h"

#include <poll.h>
#include <syncpoint/linux.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define MANY 100

static int edges_of(int fd)
{
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    struct epoll_event event = {.events = EPOLLIN | EPOLLET};
    CHECK(epoll >= 0);
    CHECK_EQUAL(epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), 0);
    return epoll;
}

/* One edge, one dispatch. False: none came, and it takes longer than PATIENCE_NS. */
static bool next_edge(int epoll)
{
    struct epoll_event event;
    return epoll_wait(epoll, &event, 1, (int)(PATIENCE_NS / MS)) == 1;
}

TEST_NEEDING(more_descriptors_than_are_heard_at_once, ON_LOOP)
{
    const uint64_t one = 1;
    static listener all[MANY];
    int fds[MANY], fd = -1;
    CHECK_STATUS(sp_reactor_fd(reactor, &fd), SP_OK);
    for (unsigned i = 0; i < MANY; i++) {
        sp_point point = {0};
        fds[i] = eventfd(0, EFD_CLOEXEC);
        CHECK_STATUS(sp_fd_point(fds[i], 0, &point), SP_OK);
        listen(&all[i], &point, SP_FOREVER);
        sp_point_unref(&point);
    }
    int epoll = edges_of(fd);
    CHECK(next_edge(epoll));
    CHECK_STATUS(dispatch(reactor, 0), SP_TIMEOUT);
    for (unsigned i = 0; i < MANY; i++)
        CHECK(write(fds[i], &one, sizeof(one)) == sizeof(one));
    unsigned heard = 0;
    while (heard < MANY) {
        CHECK(next_edge(epoll));
        dispatch(reactor, 0);
        for (heard = 0; heard < MANY && listener_calls(&all[heard]) > 0;)
            heard++;
    }
    for (unsigned i = 0; i < MANY; i++) {
        CHECK_HEARD(&all[i], SP_OK);
        close(fds[i]);
    }
    close(epoll);
}

/* Two threads wait for the edges of one reactor. Who is told that the other one dispatches goes back to
 * waiting. */
typedef struct edge_thread {
    worker worker;
    int epoll;
    const flag *over;
} edge_thread;

static void dispatch_on_edges(void *user)
{
    const edge_thread *self = user;
    struct epoll_event event;
    while (!flag_is_set(self->over)) {
        if (epoll_wait(self->epoll, &event, 1, 20) == 1)
            sp_reactor_dispatch(reactor, 0);
    }
}

static void count(void *user, sp_status status)
{
    (void)status;
    __atomic_add_fetch((unsigned *)user, 1, __ATOMIC_RELAXED);
}

TEST_NEEDING(two_threads_on_the_edges, ON_LOOP)
{
    const sp_point done = sp_point_cpu();
    unsigned calls = 0;
    int fd = -1;
    flag over = {0};
    CHECK_STATUS(sp_reactor_fd(reactor, &fd), SP_OK);
    edge_thread threads[2];
    int epoll = edges_of(fd);
    for (unsigned i = 0; i < 2; i++) {
        threads[i] = (edge_thread){.epoll = epoll, .over = &over};
        worker_start(&threads[i].worker, 0, dispatch_on_edges, &threads[i]);
    }
    for (unsigned i = 1; i <= 20000; i++) {
        CHECK_STATUS(sp_notify(reactor, &done, SP_FOREVER, count, &calls, NULL), SP_OK);
        uint64_t end = sp_now_ns() + PATIENCE_NS;
        while (__atomic_load_n(&calls, __ATOMIC_RELAXED) < i)
            CHECK(sp_now_ns() < end);
    }
    flag_set(&over);
    for (unsigned i = 0; i < 2; i++)
        worker_join(&threads[i].worker);
    close(epoll);
}

/* A callback that runs a loop of its own, as modal dialogs do, while something is polled and a time-out
 * is pending. */
static void loop_inside(listener *self)
{
    struct pollfd wanted = {.fd = *(int *)self->user, .events = POLLIN};
    CHECK_EQUAL(poll(&wanted, 1, 30), 0);
}

TEST_NEEDING(a_loop_inside_a_callback_is_not_woken_for_nothing, ON_LOOP)
{
    int fd = -1;
    listener polled = {0}, soon = {0}, inside = {.then = loop_inside, .user = &fd};
    source asked = source_make(SORT_PROBE);
    CHECK_STATUS(sp_reactor_fd(reactor, &fd), SP_OK);
    listen_to(&polled, &asked, 1);
    listen_to_for(&soon, &asked, 2, 10 * MS);
    go_on_ms(2);
    const sp_point done = sp_point_cpu();
    listen(&inside, &done, SP_FOREVER);
    CHECK_HEARD(&inside, SP_OK);
    CHECK_HEARD(&soon, SP_TIMEOUT);
    source_signal(&asked, 1);
    CHECK_HEARD(&polled, SP_OK);
    source_end(&asked);
}
