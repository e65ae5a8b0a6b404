/* SPDX-License-Identifier: MIT
 *
 * The child of a fork (F1): each call says FORKED, the end calls nothing back and leaves no handle,
 * and the parent does not notice.
 */
#include "handle.h"

#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#define EXPECT_IN_CHILD(call, expected)                                                            \
    do {                                                                                           \
        if ((call) != (expected))                                                                  \
            _exit(__LINE__ % 200 + 1);                                                             \
    } while (0)

/* What is pending while the process forks. */
typedef struct scene {
    unsigned handles; /* open before the reactor was made */
    source from[SORT_COUNT];
    listener ones[SORT_COUNT];
    listener impatient;
    int fd;
    sp_ticket ticket;
} scene;

static void set_scene(scene *self, uint64_t timeout_ns)
{
    *self = (scene){.fd = -1};
    destroy_reactor(&reactor);
    self->handles = census_open_handles();
    reactor = make_reactor();
    for (EACH_SORT(which)) {
        self->from[which] = source_make(which);
        sp_point point = source_point(&self->from[which], 1);
        listen(&self->ones[which], &point, SP_FOREVER);
        if (which == SORT_HOST) {
            listen(&self->impatient, &point, timeout_ns);
            CHECK_STATUS(sp_point_fd(reactor, &point, &self->fd, &self->ticket), SP_OK);
        }
        sp_point_unref(&point);
    }
    go_on_ms(2);
}

static void check_child(pid_t child)
{
    int status = 0;
    CHECK(child > 0);
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
}

static void notice(void *user, sp_status status)
{
    (void)user;
    (void)status;
    _exit(250); /* nothing is called back in the child */
}

static void every_call_says_forked(const scene *self)
{
    const sp_point done = sp_point_cpu();
    sp_ticket ticket = 99;
    int fd = 99;
    EXPECT_IN_CHILD(sp_notify(reactor, &done, 0, notice, NULL, &ticket), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_last_error()->status, SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_cancel(reactor, self->ones[0].ticket), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_point_fd(reactor, &done, &fd, &ticket), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_point_fd_status(reactor, self->ticket), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_point_fd_release(reactor, self->ticket), SP_ERROR_FORKED);
    if (drive == SP_REACTOR_LOOP) {
        EXPECT_IN_CHILD(sp_reactor_fd(reactor, &fd), SP_ERROR_FORKED);
        EXPECT_IN_CHILD(sp_reactor_dispatch(reactor, 0), SP_ERROR_FORKED);
        EXPECT_IN_CHILD(sp_reactor_dispatch(reactor, SP_FOREVER), SP_ERROR_FORKED);
    }
    EXPECT_IN_CHILD(ticket, 99);
    EXPECT_IN_CHILD(fd, 99);
}

static void destroy_in_child(scene *self)
{
    unsigned calls = 0;
    EXPECT_IN_CHILD(sp_reactor_destroy(reactor), SP_OK);
    for (EACH_SORT(which))
        calls += listener_calls(&self->ones[which]);
    EXPECT_IN_CHILD(calls + listener_calls(&self->impatient), 0);
    EXPECT_IN_CHILD(is_readable(self->fd), false);
    close(self->fd);
    for (EACH_SORT(which))
        source_end(&self->from[which]);
    EXPECT_IN_CHILD(census_open_handles(), self->handles);
}

/* Each in turn: what the child did has not moved anything. */
static void parent_goes_on(scene *self)
{
    go_on_ms(5);
    CHECK(!is_readable(self->fd));
    CHECK_STATUS(sp_point_fd_status(reactor, self->ticket), SP_PENDING);
    for (EACH_SORT(which)) {
        CHECK_EQUAL(listener_calls(&self->ones[which]), 0);
        source_signal(&self->from[which], 1);
        CHECK_HEARD(&self->ones[which], SP_OK);
    }
    CHECK(wait_readable(self->fd));
    CHECK_STATUS(sp_point_fd_status(reactor, self->ticket), SP_OK);
    CHECK_STATUS(sp_point_fd_release(reactor, self->ticket), SP_OK);
    close(self->fd);
    for (EACH_SORT(which))
        source_end(&self->from[which]);
}

TEST(F1_child_says_forked_and_destroys)
{
    static scene all;
    set_scene(&all, SP_FOREVER);
    pid_t child = fork();
    if (child == 0) {
        every_call_says_forked(&all);
        destroy_in_child(&all);
        _exit(0);
    }
    check_child(child);
    parent_goes_on(&all);
    CHECK_HEARD(&all.impatient, SP_OK);
}

/* The parent's clock goes on: the child's end has taken nothing from it. */
TEST(F1_time_runs_on_in_the_parent)
{
    static scene all;
    uint64_t start = sp_now_ns();
    set_scene(&all, 300 * MS);
    pid_t child = fork();
    if (child == 0) {
        EXPECT_IN_CHILD(sp_reactor_destroy(reactor), SP_OK);
        _exit(0);
    }
    check_child(child);
    CHECK_HEARD(&all.impatient, SP_TIMEOUT);
    CHECK(all.impatient.when_ns - start >= 300 * MS);
    parent_goes_on(&all);
}

/* The child leaves it be, and has a reactor of its own. */
static void use_a_new_one(void)
{
    listener one = {0};
    source from = source_make(SORT_HOST);
    sp_point point = source_point(&from, 1);
    if (THREAD_SANITIZER)
        drive = SP_REACTOR_LOOP;
    reactor = make_reactor();
    listen(&one, &point, SP_FOREVER);
    source_signal(&from, 1);
    EXPECT_IN_CHILD(listener_wait(&one, 1), true);
    EXPECT_IN_CHILD(one.status, SP_OK);
    destroy_reactor(&reactor);
    sp_point_unref(&point);
    source_end(&from);
}

TEST(F1_a_new_reactor_in_the_child)
{
    static scene all;
    set_scene(&all, SP_FOREVER);
    pid_t child = fork();
    if (child == 0) {
        sp_reactor *old = reactor;
        use_a_new_one();
        EXPECT_IN_CHILD(sp_reactor_destroy(old), SP_OK);
        use_a_new_one();
        _exit(0);
    }
    check_child(child);
    parent_goes_on(&all);
    CHECK_HEARD(&all.impatient, SP_OK);
}

/* The child has the descriptors open, too: closing them here takes them from nobody. */
TEST(F1_child_keeps_descriptors_open)
{
    int held[2];
    CHECK(pipe(held) == 0);
    listener one = {0}, other = {0};
    source from = source_make(SORT_FD), next = source_make(SORT_HOST);
    sp_point point = source_point(&from, 1), later = source_point(&next, 1);
    listen(&one, &point, SP_FOREVER);
    flush();
    pid_t child = fork();
    if (child == 0) {
        close(held[1]);
        _exit(read(held[0], &child, 1) == 0 ? 0 : 1);
    }
    CHECK_STATUS(cancel(&one), SP_OK);
    CHECK_HEARD(&one, SP_ERROR_CANCELLED);
    sp_point_unref(&point);
    listen(&other, &later, SP_FOREVER); /* may be known by the number of the one before */
    flush();
    source_signal(&from, 1);
    go_on_ms(20);
    CHECK_EQUAL(listener_calls(&other), 0);
    source_signal(&next, 1);
    CHECK_HEARD(&other, SP_OK);
    close(held[0]);
    close(held[1]);
    check_child(child);
    sp_point_unref(&later);
    source_end(&from);
    source_end(&next);
}

/* ---- While threads are busy ---- */

typedef struct busy {
    worker worker;
    flag stop;
    source from;
    unsigned asked;
    unsigned heard; /* atomic */
} busy;

static void hear(void *user, sp_status status)
{
    (void)status;
    __atomic_fetch_add((unsigned *)user, 1, __ATOMIC_SEQ_CST);
}

/* Any lock may be held at the moment of the fork. */
static void keep_busy(void *user)
{
    busy *self = user;
    for (uint64_t value = 1; !flag_is_set(&self->stop); value++) {
        sp_ticket ticket = 0;
        sp_point point = source_point(&self->from, value);
        for (unsigned i = 0; i < 2; i++)
            CHECK_STATUS(sp_notify(reactor, &point, SP_FOREVER, hear, &self->heard, &ticket),
                         SP_OK);
        sp_status said = sp_cancel(reactor, ticket);
        CHECK(said == SP_OK || said == SP_PENDING);
        source_signal(&self->from, value);
        sp_point_unref(&point);
        self->asked += 2;
        if (value % 64 == 0)
            test_sleep_ms(1);
    }
}

static bool has_heard_all(const void *what)
{
    const busy *self = what;
    return __atomic_load_n(&self->heard, __ATOMIC_SEQ_CST) == self->asked;
}

TEST(F1_fork_while_threads_are_busy)
{
    busy others[2] = {{.from = source_make(SORT_HOST)}, {.from = source_make(SORT_ARM)}};
    for (unsigned i = 0; i < 2; i++)
        worker_start(&others[i].worker, 0, keep_busy, &others[i]);
    for (unsigned i = 0; i < 20; i++) {
        const sp_point done = sp_point_cpu();
        go_on_ms(2);
        pid_t child = fork();
        if (child == 0) {
            EXPECT_IN_CHILD(sp_notify(reactor, &done, 0, notice, NULL, NULL), SP_ERROR_FORKED);
            EXPECT_IN_CHILD(sp_cancel(reactor, 1), SP_ERROR_FORKED);
            EXPECT_IN_CHILD(sp_reactor_destroy(reactor), SP_OK);
            _exit(0);
        }
        check_child(child);
    }
    for (unsigned i = 0; i < 2; i++) {
        flag_set(&others[i].stop);
        worker_join(&others[i].worker);
        CHECK(go_on_until(reactor, has_heard_all, &others[i]));
        source_end(&others[i].from);
    }
}

/* ---- A callback forks ---- */

typedef struct forking {
    pid_t child;
    unsigned calls; /* atomic */
} forking;

static void end_child(void)
{
    _exit(0); /* before leaks are looked for: the other threads' memory is nobody's here */
}

/* The child goes on as the reactor's thread, which ends and the process with it, or returns from the
 * dispatch. */
static void fork_once(void *user, sp_status status)
{
    forking *self = user;
    (void)status;
    if (__atomic_add_fetch(&self->calls, 1, __ATOMIC_RELEASE) > 1)
        return;
    self->child = fork();
    if (self->child != 0)
        return;
    alarm(20);
    if (!THREAD_SANITIZER) /* whose own state of the thread is gone by then */
        atexit(end_child);
    EXPECT_IN_CHILD(sp_reactor_destroy(reactor), SP_ERROR_INVALID_STATE);
}

static bool all_called(const void *user)
{
    return __atomic_load_n(&((const forking *)user)->calls, __ATOMIC_ACQUIRE) == 3;
}

TEST(F1_a_callback_forks)
{
    const sp_point done = sp_point_cpu();
    forking self = {0};
    unsigned before = 0;
    pid_t parent = getpid();
    for (unsigned i = 0; i < 3; i++)
        CHECK_STATUS(sp_notify(reactor, &done, SP_FOREVER, fork_once, &self, NULL), SP_OK);
    if (drive == SP_REACTOR_LOOP) {
        sp_status status = sp_reactor_dispatch(reactor, SP_FOREVER);
        before = self.calls;
        if (getpid() != parent)
            _exit(status == SP_ERROR_FORKED && before == 1 ? 0 : 1);
    }
    CHECK(go_on_until(reactor, all_called, &self));
    check_child(self.child);
    listener later = {0}; /* the child took nothing from us */
    listen(&later, &done, SP_FOREVER);
    CHECK_HEARD(&later, SP_OK);
}
