/* SPDX-License-Identifier: MIT */
#include "async_case.h"

#include <dirent.h>
#include <string.h>
#include <sys/resource.h>

sp_reactor *reactor;
sp_reactor_drive drive;

static unsigned notified, called; /* atomic */
static unsigned running;          /* atomic: callbacks of `reactor`                              */
static unsigned handles_before, threads_before;
static pthread_t case_thread;

/* What this thread does just now. */
static _Thread_local bool inside_call, dispatching;

/* ---- Listeners ---- */

static void check_place(const listener *self)
{
    CHECK(!inside_call);
    if (drive == SP_REACTOR_LOOP)
        CHECK(dispatching);
    else
        CHECK(!pthread_equal(pthread_self(), case_thread));
    if (self->reactor == reactor)
        CHECK_EQUAL(__atomic_fetch_add(&running, 1, __ATOMIC_SEQ_CST), 0);
}

void listener_call(void *user, sp_status status)
{
    listener *self = user;
    const sp_error error = *sp_last_error();
    bool counted = self->reactor == reactor;
    check_place(self);
    self->when_ns = sp_now_ns();
    self->status = status;
    self->cause = status < 0 ? error.cause : SP_OK;
    self->seen = self->ticket;
    self->thread = pthread_self();
    if (status < 0) {
        CHECK_STATUS(error.status, status);
        CHECK(error.message[0] != '\0');
        memcpy(self->message, error.message, sizeof(self->message));
    }
    if (self->then)
        self->then(self);
    if (counted)
        __atomic_fetch_sub(&running, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&called, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&self->calls, 1, __ATOMIC_SEQ_CST);
}

void count_notification(void)
{
    __atomic_fetch_add(&notified, 1, __ATOMIC_SEQ_CST);
}

sp_status try_to_listen(listener *self, const sp_point *point, uint64_t timeout_ns)
{
    bool outer = inside_call;
    inside_call = true;
    sp_status status =
        sp_notify(self->reactor, point, timeout_ns, listener_call, self, &self->ticket);
    inside_call = outer;
    if (status == SP_OK)
        count_notification();
    return status;
}

void listen(listener *self, const sp_point *point, uint64_t timeout_ns)
{
    if (self->reactor !=
        reactor) /* from its own callback it is only read: others may wait for it */
        self->reactor = reactor;
    CHECK_STATUS(try_to_listen(self, point, timeout_ns), SP_OK);
}

void listen_to_for(listener *self, source *from, uint64_t value, uint64_t timeout_ns)
{
    sp_point point = source_point(from, value);
    listen(self, &point, timeout_ns);
    sp_point_unref(&point);
}

void listen_to(listener *self, source *from, uint64_t value)
{
    listen_to_for(self, from, value, SP_FOREVER);
}

sp_status cancel(const listener *self)
{
    bool outer = inside_call;
    inside_call = true;
    sp_status status = sp_cancel(self->reactor, self->ticket);
    inside_call = outer;
    return status;
}

unsigned listener_calls(const listener *self)
{
    return __atomic_load_n(&self->calls, __ATOMIC_SEQ_CST);
}

typedef struct heard {
    const listener *listener;
    unsigned calls;
} heard;

static bool has_heard(const void *what)
{
    const heard *wanted = what;
    return listener_calls(wanted->listener) >= wanted->calls;
}

bool listener_wait(const listener *self, unsigned calls)
{
    return go_on_until(self->reactor, has_heard, &(heard){self, calls});
}

/* ---- Going on ---- */

sp_status dispatch(sp_reactor *which, uint64_t timeout_ns)
{
    bool outer = dispatching;
    dispatching = true;
    sp_status status = sp_reactor_dispatch(which, timeout_ns);
    dispatching = outer;
    return status;
}

static void go_on_a_little(sp_reactor *which)
{
    if (drive == SP_REACTOR_THREAD) {
        test_sleep_ms(1);
        return;
    }
    sp_status status = dispatch(which, MS);
    CHECK(status == SP_OK || status == SP_TIMEOUT);
}

bool go_on_until(sp_reactor *which, bool (*done)(const void *what), const void *what)
{
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (!done(what)) {
        if (sp_now_ns() > end)
            return false;
        go_on_a_little(which);
    }
    return true;
}

void go_on_ms(unsigned ms)
{
    uint64_t end = sp_now_ns() + ms * MS;
    while (sp_now_ns() < end)
        go_on_a_little(reactor);
}

/* Callbacks come one after the other, and this one is behind any that has begun. */
void flush(void)
{
    const sp_point done = sp_point_cpu();
    listener last = {0};
    listen(&last, &done, SP_FOREVER);
    CHECK_HEARD(&last, SP_OK);
}

static void send(void *user)
{
    late_signal *late = user;
    flag_set(&late->sent);
    if (late->fails)
        source_fail(late->source);
    else
        source_signal(late->source, late->value);
}

void signal_late(late_signal *late, source *from, uint64_t value)
{
    *late = (late_signal){.source = from, .value = value};
    worker_start(&late->worker, DELAY_MS, send, late);
}

void fail_late(late_signal *late, source *from)
{
    *late = (late_signal){.source = from, .fails = true};
    worker_start(&late->worker, DELAY_MS, send, late);
}

void join_not_early(late_signal *late)
{
    CHECK(flag_is_set(&late->sent));
    worker_join(&late->worker);
}

/* ---- Threads and handles ---- */

unsigned thread_count(void)
{
    DIR *folder = opendir("/proc/self/task");
    unsigned count = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;)
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count;
}

void check_thread_count(unsigned expected)
{
    if (THREAD_SANITIZER)
        return;
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (thread_count() != expected && sp_now_ns() < end)
        test_sleep_ms(1);
    CHECK_EQUAL(thread_count(), expected);
}

static bool handles_are(const void *number)
{
    return census_open_handles() == *(const unsigned *)number;
}

void check_handle_count(unsigned expected)
{
    go_on_until(reactor, handles_are, &expected);
    CHECK_HANDLES(expected);
}

/* ---- The program ---- */

sp_reactor *make_reactor(void)
{
    const sp_reactor_desc desc = {.size = sizeof(desc), .drive = drive, .name = "test"};
    sp_reactor *made = NULL;
    CHECK_STATUS(sp_reactor_create(&desc, &made), SP_OK);
    return made;
}

void destroy_reactor(sp_reactor **which)
{
    bool outer = dispatching;
    dispatching = true; /* with no thread of its own, the callbacks run here */
    CHECK_STATUS(sp_reactor_destroy(*which), SP_OK);
    dispatching = outer;
    *which = NULL;
}

/* Thousands of descriptors are fine. */
static void allow_many_handles(void)
{
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static void setup(const test_target *target)
{
    allow_many_handles();
    case_thread = pthread_self();
    drive = target->features & ON_LOOP ? SP_REACTOR_LOOP : SP_REACTOR_THREAD;
    handles_before = census_open_handles();
    threads_before = thread_count();
    reactor = make_reactor();
}

static void teardown(void)
{
    destroy_reactor(&reactor);
    CHECK_EQUAL(__atomic_load_n(&called, __ATOMIC_SEQ_CST),
                __atomic_load_n(&notified, __ATOMIC_SEQ_CST));
    CHECK_EQUAL(counter_armed(), 0);
    CHECK_EQUAL(counter_alive(), 0);
    CHECK_HANDLES(handles_before);
    check_thread_count(threads_before);
}

int main(int argc, char **argv)
{
    static const test_target targets[] = {{"thread", ON_THREAD, NULL}, {"loop", ON_LOOP, NULL}};
    return test_main(argc, argv,
                     &(test_program){.targets = targets,
                                     .target_count = COUNT_OF(targets),
                                     .setup = setup,
                                     .teardown = teardown});
}
