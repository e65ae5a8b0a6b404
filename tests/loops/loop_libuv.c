/* SPDX-License-Identifier: MIT */
#include "loop.h"

#include <stdlib.h>
#include <uv.h>

static uv_loop_t loop;
static uv_timer_t timer;

static void open_loop(void)
{
    CHECK_EQUAL(uv_loop_init(&loop), 0);
    CHECK_EQUAL(uv_timer_init(&loop, &timer), 0);
}

static void close_loop(void)
{
    uv_close((uv_handle_t *)&timer, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    CHECK_EQUAL(uv_loop_close(&loop), 0);
}

static void is_ready(uv_poll_t *poll, int status, int events)
{
    watch *self = poll->data;
    CHECK_EQUAL(status, 0);
    CHECK_EQUAL(events, UV_READABLE);
    self->ready(self);
}

static void add(watch *self)
{
    uv_poll_t *poll = malloc(sizeof(*poll));
    assert_non_null(poll);
    self->native = poll;
    CHECK_EQUAL(uv_poll_init(&loop, poll, self->fd), 0);
    poll->data = self;
    CHECK_EQUAL(uv_poll_start(poll, UV_READABLE, is_ready), 0);
}

static void is_closed(uv_handle_t *poll)
{
    free(poll);
}

static void remove_watch(watch *self)
{
    CHECK_EQUAL(uv_poll_stop(self->native), 0); /* from here on the descriptor may be closed */
    uv_close(self->native, is_closed);
}

static void nothing(uv_timer_t *self)
{
    (void)self;
}

static void turn(int timeout_ms)
{
    uv_update_time(&loop);
    CHECK_EQUAL(uv_timer_start(&timer, nothing, (uint64_t)timeout_ms, 0), 0);
    uv_run(&loop, UV_RUN_ONCE);
    uv_timer_stop(&timer);
}

const loop_ops loop_libuv = {open_loop, close_loop, add, remove_watch, turn};
