/* SPDX-License-Identifier: MIT
 *
 * Points in an epoll loop, in both ways: a handle for each point, and callbacks of a reactor that
 * the loop runs.
 *
 * Prints, in any order:
 *     handle: render done
 *     handle: upload done
 *     handle: decode failed: the file is cut off
 *     callback: render done
 *     callback: upload done
 *     callback: decode failed: the file is cut off
 */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <syncpoint/async.h>
#include <sys/epoll.h>
#include <unistd.h>

static int epoll;
static int left = 2 * WORK_COUNT; /* lines to print */

static void add(int fd, void *data)
{
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = data};
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0)
        abort();
}

/* ---- A handle for a point ---- */

typedef struct handle {
    const char *name;
    sp_reactor *reactor;
    sp_ticket ticket;
    int fd;
} handle;

static void handle_open(handle *self, const char *name, sp_reactor *reactor, const sp_point *point)
{
    *self = (handle){.name = name, .reactor = reactor};
    must(sp_point_fd(reactor, point, &self->fd, &self->ticket));
    add(self->fd, self);
}

/* Closing alone does not take it out of the epoll set while the reactor still has its duplicate. */
static void handle_ready(handle *self)
{
    if (sp_point_fd_status(self->reactor, self->ticket) == SP_OK)
        printf("handle: %s done\n", self->name);
    else
        printf("handle: %s failed: %s\n", self->name, sp_last_error()->message);
    must(sp_point_fd_release(self->reactor, self->ticket));
    epoll_ctl(epoll, EPOLL_CTL_DEL, self->fd, NULL);
    close(self->fd);
    left--;
}

/* ---- Callbacks, and the loop ---- */

/* Runs in sp_reactor_dispatch(), so on the loop's thread. */
static void ended(void *user, sp_status status)
{
    const char *name = user;
    if (status == SP_OK)
        printf("callback: %s done\n", name);
    else
        printf("callback: %s failed: %s\n", name, sp_last_error()->message);
    left--;
}

static void run(sp_reactor *reactor)
{
    struct epoll_event event;
    while (left > 0) {
        if (epoll_wait(epoll, &event, 1, -1) != 1)
            continue; /* a signal came */
        if (event.data.ptr == reactor)
            sp_reactor_dispatch(reactor, 0);
        else
            handle_ready(event.data.ptr);
    }
}

int main(void)
{
    const sp_reactor_desc by_loop = {.size = sizeof by_loop, .drive = SP_REACTOR_LOOP};
    sp_reactor *watcher = NULL, *reactor = NULL;
    handle handles[WORK_COUNT];
    work jobs;
    int fd = -1;

    epoll = epoll_create1(EPOLL_CLOEXEC);
    work_start(&jobs);

    must(sp_reactor_create(NULL, &watcher)); /* has a thread, which makes handles readable */
    for (int i = 0; i < WORK_COUNT; i++)
        handle_open(&handles[i], jobs.names[i], watcher, &jobs.points[i]);

    must(sp_reactor_create(&by_loop, &reactor)); /* has none: the loop calls it */
    must(sp_reactor_fd(reactor, &fd));
    add(fd, reactor);
    for (int i = 0; i < WORK_COUNT; i++)
        must(sp_notify(reactor, &jobs.points[i], SP_FOREVER, ended, (void *)jobs.names[i], NULL));

    run(reactor);

    must(sp_reactor_destroy(reactor)); /* closes its handle */
    must(sp_reactor_destroy(watcher));
    work_finish(&jobs);
    close(epoll);
    return 0;
}
