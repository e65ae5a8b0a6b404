/* SPDX-License-Identifier: MIT
 *
 * The end of a reactor: each ticket is resolved, once, and nothing is left behind.
 */
#include "handle.h"

#include <unistd.h>

static void make_each(source *from)
{
    for (EACH_SORT(which))
        from[which] = source_make(which);
}

static void end_each(source *from)
{
    for (EACH_SORT(which))
        source_end(&from[which]);
}

static void check_cancelled(const listener *listeners, unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK_EQUAL(listener_calls(&listeners[i]), 1);
        CHECK_STATUS(listeners[i].status, SP_ERROR_CANCELLED);
        CHECK_STATUS(listeners[i].cause, SP_ERROR_CANCELLED);
    }
}

/* Points that never complete, of every sort: by the time it returns, all callbacks have been. */
TEST(pending_tickets_are_cancelled)
{
    static listener ones[20 * SORT_COUNT];
    source from[SORT_COUNT];
    make_each(from);
    for (unsigned i = 0; i < COUNT_OF(ones); i++)
        listen_to(&ones[i], &from[i % SORT_COUNT], 1 + i / SORT_COUNT);
    go_on_ms(5);
    uint64_t start = sp_now_ns();
    destroy_reactor(&reactor);
    CHECK(sp_now_ns() - start < PATIENCE_NS);
    check_cancelled(ones, COUNT_OF(ones));
    CHECK_EQUAL(counter_armed(), 0);
    end_each(from);
    CHECK_EQUAL(counter_alive(), 0); /* the reactor holds none of them any more */
}

/* Even right after the notification. */
TEST(at_once)
{
    for (unsigned round = 0; round < 50; round++) {
        listener ones[SORT_COUNT] = {0};
        source from[SORT_COUNT];
        make_each(from);
        for (EACH_SORT(which))
            listen_to(&ones[which], &from[which], 1);
        destroy_reactor(&reactor);
        check_cancelled(ones, SORT_COUNT);
        end_each(from);
        CHECK_EQUAL(counter_alive(), 0);
        reactor = make_reactor();
    }
}

/* What is reached, cancelled or out of time, but not heard yet, is heard once all the same. */
TEST(what_is_over_is_heard_once)
{
    for (unsigned round = 0; round < 50; round++) {
        listener ones[SORT_COUNT + 2] = {0};
        source from[SORT_COUNT];
        make_each(from);
        for (EACH_SORT(which)) {
            listen_to(&ones[which], &from[which], 1);
            source_signal(&from[which], 1);
        }
        sp_point point = source_point(&from[SORT_HOST], 7);
        listen(&ones[SORT_COUNT], &point, 1);
        listen(&ones[SORT_COUNT + 1], &point, SP_FOREVER);
        CHECK_STATUS(cancel(&ones[SORT_COUNT + 1]), SP_OK);
        destroy_reactor(&reactor);
        for (unsigned i = 0; i < COUNT_OF(ones); i++) {
            sp_status own = i < SORT_COUNT ? SP_OK : i == SORT_COUNT ? SP_TIMEOUT : SP_OK;
            CHECK_EQUAL(listener_calls(&ones[i]), 1);
            CHECK(ones[i].status == own || ones[i].status == SP_ERROR_CANCELLED);
        }
        CHECK_STATUS(ones[SORT_COUNT + 1].status, SP_ERROR_CANCELLED);
        sp_point_unref(&point);
        end_each(from);
        reactor = make_reactor();
    }
}

/* ---- What these callbacks may do ---- */

static void notify_in_the_end(listener *self)
{
    const sp_point done = sp_point_cpu();
    sp_ticket ticket = 99;
    int fd = 99;
    CHECK_STATUS(self->status, SP_ERROR_CANCELLED);
    CHECK_ERROR(try_to_listen(self, &done, 0), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_point_fd(self->reactor, &done, &fd, &ticket), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_reactor_destroy(self->reactor), SP_ERROR_INVALID_STATE);
    CHECK_EQUAL(ticket, 99);
    CHECK_EQUAL(fd, 99);
    CHECK_EQUAL(self->ticket, self->seen);
}

TEST(no_new_notifications)
{
    listener ones[10] = {0};
    source from = source_make(SORT_HOST);
    for (unsigned i = 0; i < COUNT_OF(ones); i++) {
        ones[i].then = notify_in_the_end;
        listen_to(&ones[i], &from, 1);
    }
    destroy_reactor(&reactor);
    check_cancelled(ones, COUNT_OF(ones));
    source_end(&from);
}

/* They cancel each other: each is still heard once. */
static void cancel_the_next(listener *self)
{
    sp_status said = cancel(self->user);
    CHECK(said == SP_OK || said == SP_PENDING);
}

TEST(cancelling_in_the_end)
{
    listener ones[10] = {0};
    source from = source_make(SORT_HOST);
    for (unsigned i = 0; i < COUNT_OF(ones); i++) {
        ones[i].then = cancel_the_next;
        ones[i].user = &ones[(i + 1) % COUNT_OF(ones)];
        listen_to(&ones[i], &from, 1);
    }
    destroy_reactor(&reactor);
    check_cancelled(ones, COUNT_OF(ones));
    source_end(&from);
}

static void signal_the_source(listener *self)
{
    source_signal(self->user, 1);
}

/* The signal comes while tickets are being cancelled. */
TEST(signalling_in_the_end)
{
    for (EACH_SORT(which)) {
        listener first, later[3] = {0};
        source from = source_make(which), never = source_make(SORT_HOST);
        first = (listener){.then = signal_the_source, .user = &from};
        listen_to(&first, &never, 1);
        for (unsigned i = 0; i < COUNT_OF(later); i++)
            listen_to(&later[i], &from, 1);
        destroy_reactor(&reactor);
        CHECK_EQUAL(listener_calls(&first), 1);
        for (unsigned i = 0; i < COUNT_OF(later); i++) {
            CHECK_EQUAL(listener_calls(&later[i]), 1);
            CHECK(later[i].status == SP_OK || later[i].status == SP_ERROR_CANCELLED);
        }
        source_end(&from);
        source_end(&never);
        reactor = make_reactor();
    }
}

/* ---- Races ---- */

typedef struct signaller {
    worker worker;
    source *from;
    uint64_t value; /* atomic */
    flag stop;
} signaller;

static void signal_on_and_on(void *user)
{
    signaller *self = user;
    for (uint64_t value = 1; !flag_is_set(&self->stop); value++) {
        for (EACH_SORT(which)) {
            if (sort_counts(which))
                source_signal(&self->from[which], value);
        }
        __atomic_store_n(&self->value, value, __ATOMIC_SEQ_CST);
    }
}

/* Signals come from another thread all the while. */
TEST(races_with_signals)
{
    source from[SORT_COUNT];
    signaller other = {.from = from};
    make_each(from);
    worker_start(&other.worker, 0, signal_on_and_on, &other);
    for (unsigned round = 0; round < 200; round++) {
        listener ones[4 * SORT_COUNT] = {0};
        for (unsigned i = 0; i < COUNT_OF(ones); i++) {
            uint64_t now = __atomic_load_n(&other.value, __ATOMIC_SEQ_CST);
            listen_to(&ones[i], &from[i % SORT_COUNT], now + i * 5);
        }
        destroy_reactor(&reactor);
        for (unsigned i = 0; i < COUNT_OF(ones); i++) {
            CHECK_EQUAL(listener_calls(&ones[i]), 1);
            CHECK(ones[i].status == SP_OK || ones[i].status == SP_ERROR_CANCELLED);
        }
        reactor = make_reactor();
    }
    flag_set(&other.stop);
    worker_join(&other.worker);
    end_each(from);
}

/* ---- Handles and threads ---- */

TEST(handles_and_threads_stay_flat)
{
    source from[SORT_COUNT];
    make_each(from);
    const unsigned handles = census_open_handles(), threads = thread_count();
    for (unsigned round = 0; round < 200; round++) {
        listener one = {0};
        sp_ticket ticket = 0;
        int fd = -1, unheard = -1;
        source *which = &from[round % SORT_COUNT];
        sp_point point = source_point(which, 1);
        listen(&one, &point, SP_FOREVER);
        CHECK_STATUS(sp_point_fd(reactor, &point, &fd, &ticket), SP_OK);
        CHECK_STATUS(sp_point_fd(reactor, &point, &unheard, NULL), SP_OK);
        sp_point_unref(&point);
        destroy_reactor(&reactor);
        check_cancelled(&one, 1);
        CHECK(is_readable(fd) && is_readable(unheard));
        close(fd);
        close(unheard);
        reactor = make_reactor();
    }
    CHECK_HANDLES(handles);
    check_thread_count(threads);
    end_each(from);
}

TEST(nothing_was_ever_asked)
{
    for (unsigned round = 0; round < 50; round++) {
        destroy_reactor(&reactor);
        reactor = make_reactor();
    }
}

/* Points may outlive it, and go on to others. */
TEST(points_go_on_without_it)
{
    for (EACH_SORT(which)) {
        listener first = {0}, second = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        listen(&first, &point, SP_FOREVER);
        destroy_reactor(&reactor);
        check_cancelled(&first, 1);
        reactor = make_reactor();
        listen(&second, &point, SP_FOREVER);
        source_signal(&from, 1);
        CHECK_HEARD(&second, SP_OK);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
        source_end(&from);
    }
}
