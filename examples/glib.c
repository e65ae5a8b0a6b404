/* SPDX-License-Identifier: MIT
 *
 * Points in a GLib main loop (GTK's, GStreamer's), in both ways: a handle for each point, and
 * callbacks of a reactor that the loop runs.
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

#include <glib-unix.h>
#include <stdio.h>
#include <syncpoint/async.h>
#include <unistd.h>

static GMainLoop *loop;
static int left = 2 * WORK_COUNT; /* lines to print */

static void printed(void)
{
    if (--left == 0)
        g_main_loop_quit(loop);
}

/* ---- A handle for a point ---- */

typedef struct handle {
    const char *name;
    sp_reactor *reactor;
    sp_ticket ticket;
    int fd;
} handle;

/* The handle stays readable: the source goes once it was seen. */
static gboolean handle_ready(gint fd, GIOCondition condition, gpointer user)
{
    (void)condition;
    handle *self = user;
    if (sp_point_fd_status(self->reactor, self->ticket) == SP_OK)
        printf("handle: %s done\n", self->name);
    else
        printf("handle: %s failed: %s\n", self->name, sp_last_error()->message);
    must(sp_point_fd_release(self->reactor, self->ticket));
    close(fd);
    printed();
    return G_SOURCE_REMOVE;
}

static void handle_open(handle *self, const char *name, sp_reactor *reactor, const sp_point *point)
{
    *self = (handle){.name = name, .reactor = reactor};
    must(sp_point_fd(reactor, point, &self->fd, &self->ticket));
    g_unix_fd_add(self->fd, G_IO_IN, handle_ready, self);
}

/* ---- Callbacks ---- */

static gboolean dispatch(gint fd, GIOCondition condition, gpointer reactor)
{
    (void)fd, (void)condition;
    sp_reactor_dispatch(reactor, 0);
    return G_SOURCE_CONTINUE;
}

/* Runs in sp_reactor_dispatch(), so on the loop's thread. */
static void ended(void *user, sp_status status)
{
    const char *name = user;
    if (status == SP_OK)
        printf("callback: %s done\n", name);
    else
        printf("callback: %s failed: %s\n", name, sp_last_error()->message);
    printed();
}

int main(void)
{
    const sp_reactor_desc by_loop = {.size = sizeof by_loop, .drive = SP_REACTOR_LOOP};
    sp_reactor *watcher = NULL, *reactor = NULL;
    handle handles[WORK_COUNT];
    work jobs;
    int fd = -1;

    loop = g_main_loop_new(NULL, FALSE);
    work_start(&jobs);

    must(sp_reactor_create(NULL, &watcher)); /* has a thread, which makes handles readable */
    for (int i = 0; i < WORK_COUNT; i++)
        handle_open(&handles[i], jobs.names[i], watcher, &jobs.points[i]);

    must(sp_reactor_create(&by_loop, &reactor)); /* has none: the loop calls it */
    must(sp_reactor_fd(reactor, &fd));
    guint callbacks = g_unix_fd_add(fd, G_IO_IN, dispatch, reactor);
    for (int i = 0; i < WORK_COUNT; i++)
        must(sp_notify(reactor, &jobs.points[i], SP_FOREVER, ended, (void *)jobs.names[i], NULL));

    g_main_loop_run(loop);

    g_source_remove(callbacks);
    must(sp_reactor_destroy(reactor)); /* closes its handle */
    must(sp_reactor_destroy(watcher));
    work_finish(&jobs);
    g_main_loop_unref(loop);
    return 0;
}
