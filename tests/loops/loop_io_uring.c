/* SPDX-License-Identifier: MIT
 *
 * io_uring: one IORING_OP_POLL_ADD for each handle, anew after each that was readable.
 */
#include "loop.h"

#include <errno.h>
#include <liburing.h>
#include <poll.h>
#include <string.h>

static struct io_uring ring;

static void open_loop(void)
{
    int error = io_uring_queue_init(64, &ring, 0);
    if (error == -ENOSYS || error == -EPERM || error == -EACCES)
        test_skip("io_uring is not to be had here: %s", strerror(-error));
    CHECK_EQUAL(error, 0);
}

static void close_loop(void)
{
    io_uring_queue_exit(&ring);
}

static struct io_uring_sqe *next_entry(void)
{
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    if (!entry) { /* full */
        CHECK(io_uring_submit(&ring) > 0);
        entry = io_uring_get_sqe(&ring);
    }
    CHECK(entry != NULL);
    return entry;
}

static void take(struct io_uring_cqe *done)
{
    watch *of = io_uring_cqe_get_data(done);
    if (of) {
        CHECK(done->res == POLLIN || done->res == -ECANCELED);
        of->armed = false;
        of->fired = done->res == POLLIN;
    }
    io_uring_cqe_seen(&ring, done);
}

static void take_all(void)
{
    struct io_uring_cqe *done = NULL;
    while (io_uring_peek_cqe(&ring, &done) == 0)
        take(done);
}

/* The request is cancelled, and its end awaited: it names the watch. */
static void remove_watch(watch *self)
{
    struct io_uring_cqe *done = NULL;
    watched_remove(self);
    if (self->armed) {
        struct io_uring_sqe *entry = next_entry();
        io_uring_prep_poll_remove(entry, (uintptr_t)self);
        io_uring_sqe_set_data(entry, NULL);
        CHECK(io_uring_submit(&ring) > 0);
    }
    while (self->armed && io_uring_wait_cqe(&ring, &done) == 0)
        take(done);
}

static void arm_all(void)
{
    watched_compact();
    for (size_t i = 0; i < watched_count; i++) {
        watch *self = watched[i];
        if (self->armed || self->fired)
            continue;
        struct io_uring_sqe *entry = next_entry();
        io_uring_prep_poll_add(entry, self->fd, POLLIN);
        io_uring_sqe_set_data(entry, self);
        self->armed = true;
    }
    CHECK(io_uring_submit(&ring) >= 0);
}

static void turn(int timeout_ms)
{
    struct __kernel_timespec timeout = {.tv_sec = timeout_ms / 1000,
                                        .tv_nsec = timeout_ms % 1000 * 1000000LL};
    struct io_uring_cqe *done = NULL;
    arm_all();
    if (io_uring_wait_cqe_timeout(&ring, &done, &timeout) == 0)
        take_all();
    size_t count = watched_count;
    for (size_t i = 0; i < count; i++) {
        watch *self = watched[i];
        if (self && self->fired) {
            self->fired = false;
            self->ready(self);
        }
    }
}

const loop_ops loop_io_uring = {open_loop, close_loop, watched_add, remove_watch, turn};
