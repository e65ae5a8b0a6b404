/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <glib-unix.h>

static GMainContext *context;

static void open_loop(void)
{
    context = g_main_context_new();
}

static void close_loop(void)
{
    g_main_context_unref(context);
}

static gboolean is_ready(gint fd, GIOCondition condition, gpointer user)
{
    watch *self = user;
    CHECK_EQUAL(fd, self->fd);
    CHECK_EQUAL(condition, G_IO_IN);
    self->ready(self);
    return G_SOURCE_CONTINUE;
}

static void add(watch *self)
{
    GSource *source = g_unix_fd_source_new(self->fd, G_IO_IN);
    g_source_set_callback(source, G_SOURCE_FUNC(is_ready), self, NULL);
    g_source_attach(source, context);
    self->native = source;
}

static void remove_watch(watch *self)
{
    g_source_destroy(self->native);
    g_source_unref(self->native);
}

static gboolean nothing(gpointer user)
{
    (void)user;
    return G_SOURCE_CONTINUE;
}

static void turn(int timeout_ms)
{
    GSource *timeout = g_timeout_source_new((guint)timeout_ms);
    g_source_set_callback(timeout, nothing, NULL, NULL);
    g_source_attach(timeout, context);
    g_main_context_iteration(context, TRUE);
    g_source_destroy(timeout);
    g_source_unref(timeout);
}

const loop_ops loop_glib = {open_loop, close_loop, add, remove_watch, turn};
