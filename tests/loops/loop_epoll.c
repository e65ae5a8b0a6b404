/* SPDX-License-Identifier: MIT
 *
 * epoll, as it is by default and edge-triggered.
 */
#include "loop.h"

#include <sys/epoll.h>
#include <unistd.h>

static int epoll;
static uint32_t flags;

static void open_loop(void)
{
    epoll = epoll_create1(EPOLL_CLOEXEC);
    CHECK(epoll >= 0);
}

static void open_edge(void)
{
    flags = EPOLLET;
    open_loop();
}

static void close_loop(void)
{
    close(epoll);
}

static void add(watch *self)
{
    struct epoll_event event = {.events = EPOLLIN | flags, .data.ptr = self};
    CHECK(epoll_ctl(epoll, EPOLL_CTL_ADD, self->fd, &event) == 0);
}

static void remove_watch(watch *self)
{
    CHECK(epoll_ctl(epoll, EPOLL_CTL_DEL, self->fd, NULL) == 0);
}

/* One at a time, so that none of it is of a watch that is removed by then. */
static void turn(int timeout_ms)
{
    struct epoll_event event;
    if (epoll_wait(epoll, &event, 1, timeout_ms) == 1) {
        watch *ready = event.data.ptr;
        ready->ready(ready);
    }
}

const loop_ops loop_epoll = {open_loop, close_loop, add, remove_watch, turn};
const loop_ops loop_epoll_edge = {open_edge, close_loop, add, remove_watch, turn};
