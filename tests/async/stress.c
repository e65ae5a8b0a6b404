/* SPDX-License-Identifier: MIT
 *
 * Everything at once, at random: each notification is told once what can be.
 *
 *   async-stress [--operations N] [--seed N] CASE|--list|--check
 */
#include "stress.h"
#include "support/census.h"

#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define THREADS 4
#define RECORDS 256
#define HANDLES 8
#define REPLACE_ONE_IN 20000 /* operations: a reactor */

static unsigned long operations = 20000;
static uint64_t seed;

/* ---- What came of it ---- */

unsigned long told[TOLD_KINDS];
static bool spoiled; /* atomic */

void complain(const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (!__atomic_exchange_n(&spoiled, true, __ATOMIC_SEQ_CST))
        print_error("%s (seed %llu)\n", text, (unsigned long long)seed);
}

bool is_spoiled(void)
{
    return __atomic_load_n(&spoiled, __ATOMIC_SEQ_CST);
}

void count_told(sp_status status)
{
    unsigned kind = TOLD_ERROR;
    if (status == SP_OK)
        kind = TOLD_OK;
    else if (status == SP_TIMEOUT)
        kind = TOLD_TIMEOUT;
    else if (status == SP_ERROR_CANCELLED)
        kind = TOLD_CANCELLED;
    __atomic_fetch_add(&told[kind], 1, __ATOMIC_RELAXED);
}

/* ---- Handles ---- */

typedef struct handle {
    int fd; /* 0: none, or closed already */
    sp_ticket ticket;
    station *at; /* NULL: this one is not in use */
    unsigned generation;
    subject *subject;
    uint64_t value;
} handle;

static bool is_readable(int fd, int timeout_ms)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, timeout_ms) == 1;
}

static void handle_forget(handle *self)
{
    if (self->fd)
        close(self->fd);
    subject_drop(self->subject);
    *self = (handle){0};
}

static void handle_make(handle *self, station *at, test_rng *rng)
{
    sp_point point = {0};
    *self = (handle){.at = at, .generation = at->generation, .subject = subject_get(rng)};
    if (!subject_point(self->subject, rng, &point, &self->value)) {
        handle_forget(self);
        return;
    }
    sp_status status = sp_point_fd(at->reactor, &point, &self->fd, &self->ticket);
    if (status != SP_OK)
        complain("sp_point_fd said %s", sp_status_name(status));
    sp_point_unref(&point);
    if (test_random_below(rng, 4) == 0) { /* somebody else's number from now on */
        close(self->fd);
        self->fd = 0;
    }
}

/* Released while it is pending, it is readable soon. */
static void handle_release(handle *self, test_rng *rng)
{
    sp_status status = sp_point_fd_release(self->at->reactor, self->ticket);
    if (status != SP_OK)
        complain("sp_point_fd_release said %s", sp_status_name(status));
    if (self->at->drive == SP_REACTOR_THREAD && self->fd && test_random_below(rng, 8) == 0 &&
        !is_readable(self->fd, (int)(PATIENCE_NS / MS)))
        complain("a handle was released and is not readable");
    handle_forget(self);
}

static void handle_look(handle *self, test_rng *rng)
{
    bool readable = self->fd && is_readable(self->fd, 0);
    if (self->generation != self->at->generation) {
        if (self->fd && !readable)
            complain("its reactor is gone, and a handle is not readable");
        handle_forget(self);
        return;
    }
    sp_status status = sp_point_fd_status(self->at->reactor, self->ticket);
    if (status == SP_PENDING && readable)
        complain("a handle is readable, and its point is pending");
    if (status != SP_PENDING && !subject_may_say(self->subject, self->value, status))
        complain("a handle says %s", sp_status_name(status));
    if (status != SP_PENDING || test_random_below(rng, 2) == 0)
        handle_release(self, rng);
}

/* ---- A thread ---- */

typedef struct actor {
    worker worker;
    test_rng rng;
    unsigned long operations;
    record records[RECORDS];
    handle handles[HANDLES];
} actor;

static station *any_station(test_rng *rng)
{
    return &stations[test_random_below(rng, STATIONS)];
}

static void use_handle(actor *self)
{
    handle *one = &self->handles[test_random_below(&self->rng, HANDLES)];
    station *at = one->at ? one->at : any_station(&self->rng);
    pthread_rwlock_rdlock(&at->lock);
    if (one->at)
        handle_look(one, &self->rng);
    else
        handle_make(one, at, &self->rng);
    pthread_rwlock_unlock(&at->lock);
}

static void use_subject(actor *self)
{
    subject *one = subject_get(&self->rng);
    unsigned what = test_random_below(&self->rng, 64);
    bool changed = what == 0 ? subject_fail(one) : subject_signal(one, &self->rng);
    subject_drop(one);
    if (!changed || what >= 60)
        subject_replace(&self->rng);
}

/* One that is pending is left alone for a while. */
static void use_live_record(actor *self, record *one)
{
    if (test_random_below(&self->rng, 8) != 0) {
        use_subject(self);
        return;
    }
    pthread_rwlock_rdlock(&one->at->lock);
    if (one->generation == one->at->generation)
        record_cancel(one);
    else if (__atomic_load_n(&one->state, __ATOMIC_SEQ_CST) != RECORD_CALLED)
        complain("its reactor is gone, and a notification was not called back for");
    pthread_rwlock_unlock(&one->at->lock);
}

static void use_record(actor *self)
{
    record *one = &self->records[test_random_below(&self->rng, RECORDS)];
    unsigned state = __atomic_load_n(&one->state, __ATOMIC_SEQ_CST);
    if (state == RECORD_LIVE) {
        use_live_record(self, one);
        return;
    }
    if (state == RECORD_CALLED)
        record_judge(one);
    station *at = any_station(&self->rng);
    pthread_rwlock_rdlock(&at->lock);
    record_notify(one, at, &self->rng);
    pthread_rwlock_unlock(&at->lock);
}

static void act_at_random(void *user)
{
    actor *self = user;
    for (unsigned long i = 0; i < self->operations && !is_spoiled(); i++) {
        unsigned what = test_random_below(&self->rng, REPLACE_ONE_IN);
        if (what == 0)
            station_replace(any_station(&self->rng));
        else if (what % 16 < 8)
            use_record(self);
        else if (what % 16 < 15)
            use_subject(self);
        else
            use_handle(self);
    }
}

static void finish(actor *self)
{
    for (unsigned i = 0; i < RECORDS; i++) {
        if (self->records[i].state == RECORD_CALLED)
            record_judge(&self->records[i]);
        if (self->records[i].state != RECORD_FREE)
            complain("a notification was not called back for");
    }
    for (unsigned i = 0; i < HANDLES; i++) {
        if (self->handles[i].at)
            handle_look(&self->handles[i], &self->rng);
    }
}

/* ---- The case ---- */

static void run(void)
{
    static actor actors[THREADS];
    test_rng rng = {seed};
    sources_are_quiet = true;
    subjects_make(&rng);
    stations_make(&rng);
    for (unsigned i = 0; i < THREADS; i++) {
        actors[i].rng.state = test_random(&rng);
        actors[i].operations = operations / THREADS;
        worker_start(&actors[i].worker, 0, act_at_random, &actors[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        worker_join(&actors[i].worker);
    stations_end();
    for (unsigned i = 0; i < THREADS; i++)
        finish(&actors[i]);
    subjects_end();
}

TEST(everything_at_random)
{
    const unsigned open = census_open_handles();
    printf("%lu operations, seed %llu\n", operations, (unsigned long long)seed);
    fflush(stdout);
    run();
    printf("%lu reached, %lu timed out, %lu cancelled, %lu failed\n", told[TOLD_OK],
           told[TOLD_TIMEOUT], told[TOLD_CANCELLED], told[TOLD_ERROR]);
    CHECK(!is_spoiled());
    CHECK_EQUAL(counter_alive(), 0);
    CHECK_EQUAL(counter_armed(), 0);
    CHECK_HANDLES(open);
    for (unsigned i = 0; i < TOLD_KINDS; i++)
        CHECK(told[i] > 0);
}

int main(int argc, char **argv)
{
    seed = sp_now_ns();
    while (argc > 2 && strncmp(argv[1], "--", 2) == 0) {
        if (strcmp(argv[1], "--operations") == 0)
            operations = strtoul(argv[2], NULL, 10);
        else if (strcmp(argv[1], "--seed") == 0)
            seed = strtoull(argv[2], NULL, 10);
        else
            break;
        argv[2] = argv[0];
        argv += 2;
        argc -= 2;
    }
    return test_main(argc, argv, &(test_program){0});
}
