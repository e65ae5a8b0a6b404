/* SPDX-License-Identifier: MIT
 *
 * Points in a libuv loop, in both ways: a handle for each point, and callbacks of a reactor that
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
#include <unistd.h>
#include <uv.h>

static void add(uv_poll_t *poll, int fd, uv_poll_cb ready)
{
    if (uv_poll_init(uv_default_loop(), poll, fd) != 0 ||
        uv_poll_start(poll, UV_READABLE, ready) != 0)
        abort();
}

/* ---- A handle for a point ---- */

typedef struct handle {
    uv_poll_t poll;
    const char *name;
    sp_reactor *reactor;
    sp_ticket ticket;
    int fd;
} handle;

/* libuv has let go of the handle: now it may be closed. */
static void handle_closed(uv_handle_t *poll)
{
    handle *self = poll->data;
    close(self->fd);
}

static void handle_ready(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    handle *self = poll->data;
    if (sp_point_fd_status(self->reactor, self->ticket) == SP_OK)
        printf("handle: %s done\n", self->name);
    else
        printf("handle: %s failed: %s\n", self->name, sp_last_error()->message);
    must(sp_point_fd_release(self->reactor, self->ticket));
    uv_close((uv_handle_t *)poll, handle_closed);
}

static void handle_open(handle *self, const char *name, sp_reactor *reactor, const sp_point *point)
{
    *self = (handle){.name = name, .reactor = reactor, .poll.data = self};
    must(sp_point_fd(reactor, point, &self->fd, &self->ticket));
    add(&self->poll, self->fd, handle_ready);
}

/* ---- Callbacks ---- */

static uv_poll_t callbacks;
static int left = WORK_COUNT;

static void dispatch(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    sp_reactor_dispatch(poll->data, 0);
}

/* Runs in sp_reactor_dispatch(), so on the loop's thread. */
static void ended(void *user, sp_status status)
{
    const char *name = user;
    if (status == SP_OK)
        printf("callback: %s done\n", name);
    else
        printf("callback: %s failed: %s\n", name, sp_last_error()->message);
    if (--left == 0)
        uv_close((uv_handle_t *)&callbacks, NULL);
}

int main(void)
{
    const sp_reactor_desc by_loop = {.size = sizeof by_loop, .drive = SP_REACTOR_LOOP};
    sp_reactor *watcher = NULL, *reactor = NULL;
    handle handles[WORK_COUNT];
    work jobs;
    int fd = -1;

    work_start(&jobs);

    must(sp_reactor_create(NULL, &watcher)); /* has a thread, which makes handles readable */
    for (int i = 0; i < WORK_COUNT; i++)
        handle_open(&handles[i], jobs.names[i], watcher, &jobs.points[i]);

    must(sp_reactor_create(&by_loop, &reactor)); /* has none: the loop calls it */
    must(sp_reactor_fd(reactor, &fd));
    callbacks.data = reactor;
    add(&callbacks, fd, dispatch);
    for (int i = 0; i < WORK_COUNT; i++)
        must(sp_notify(reactor, &jobs.points[i], SP_FOREVER, ended, (void *)jobs.names[i], NULL));

    uv_run(uv_default_loop(), UV_RUN_DEFAULT); /* until all are closed */
    uv_loop_close(uv_default_loop());

    must(sp_reactor_destroy(reactor)); /* closes its handle */
    must(sp_reactor_destroy(watcher));
    work_finish(&jobs);
    return 0;
}
