/* SPDX-License-Identifier: MIT
 * The reactor: how much it does in a second, what pending tickets cost, how late it tells. */
#include "notified.h"

#include <malloc.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define PENDING 10000

static void count_one(void *user, sp_status status)
{
    (void)status;
    atomic_fetch_add_explicit((atomic_size_t *)user, 1, memory_order_relaxed);
}

static void wait_for_count(atomic_size_t *count, size_t wanted)
{
    while (atomic_load_explicit(count, memory_order_acquire) < wanted)
        bench_sleep_us(20);
}

/* ---- A primitive that can only be asked ---- */

typedef struct asked {
    sp_waiter base;
    atomic_uint reached;
} asked;

static sp_status asked_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    *reached = atomic_load_explicit(&((asked *)(void *)waiter)->reached, memory_order_acquire);
    return SP_OK;
}

static void asked_destroy(sp_waiter *waiter)
{
    (void)waiter;
}

static const sp_waiter_ops asked_ops = {
    .size = sizeof(sp_waiter_ops),
    .backend = SP_BACKEND_CUSTOM,
    .name = "asked",
    .probe = asked_probe,
    .destroy = asked_destroy,
};

static sp_point ask(asked *a)
{
    sp_point point = {0};
    atomic_store(&a->reached, 0);
    bench_check(sp_waiter_init(&a->base, &asked_ops) == SP_OK &&
                    sp_point_custom(&a->base, 0, NULL, &point) == SP_OK,
                "no point");
    return point;
}

/* ---- Rates and costs ---- */

static sp_point host_point(sp_host_timeline *timeline, uint64_t value)
{
    sp_point point = sp_point_noop();
    bench_check(sp_host_timeline_point(timeline, value, &point) == SP_OK, "no point");
    return point;
}

/* Notify, signal, callback, one after the other on two threads. */
static void measure_rate(const bench *b)
{
    const size_t count = b->scale.batches * 1000;
    sp_reactor *reactor = bench_reactor_create(SP_PACE_BALANCED);
    sp_host_timeline *timeline;
    atomic_size_t called = 0;
    if (!bench_wants(b, "reactor.callback")) {
        bench_reactor_destroy(reactor);
        return;
    }
    bench_check(sp_host_timeline_create(0, &timeline) == SP_OK, "no timeline");
    uint64_t start = bench_now_ns();
    for (size_t i = 1; i <= count; i++) {
        sp_point point = host_point(timeline, i);
        sp_notify(reactor, &point, SP_FOREVER, count_one, &called, NULL);
        sp_point_unref(&point);
        sp_host_timeline_signal(timeline, i);
    }
    wait_for_count(&called, count);
    const bench_row row = {.name = "reactor.callback",
                           .unit = "ns",
                           .ours = (double)(bench_now_ns() - start) / (double)count,
                           .raw = -1,
                           .n = count};
    bench_emit(b, &row);
    bench_reactor_destroy(reactor);
    sp_host_timeline_destroy(timeline);
}

static size_t bytes_in_use(void)
{
    struct mallinfo2 info = mallinfo2();
    return info.uordblks + info.hblkhd;
}

/* Each on a primitive of its own, which is the dearest. Then all are cancelled. */
static void measure_tickets(const bench *b)
{
    static asked primitives[PENDING];
    static sp_ticket tickets[PENDING];
    static double took[PENDING];
    atomic_size_t called = 0;
    if (!bench_wants(b, "reactor.bytes") && !bench_wants(b, "reactor.cancel"))
        return;
    sp_reactor *reactor = bench_reactor_create(SP_PACE_BALANCED);
    size_t before = bytes_in_use();
    for (size_t i = 0; i < PENDING; i++) {
        sp_point point = ask(&primitives[i]);
        sp_notify(reactor, &point, SP_FOREVER, count_one, &called, &tickets[i]);
        sp_point_unref(&point);
    }
    bench_sleep_us(100000);
    const bench_row bytes = {.name = "reactor.bytes",
                             .unit = "bytes",
                             .ours = (double)(bytes_in_use() - before) / PENDING,
                             .raw = -1,
                             .n = PENDING};
    bench_emit(b, &bytes);
    for (size_t i = 0; i < PENDING; i++) {
        uint64_t start = bench_now_ns();
        bench_check(sp_cancel(reactor, tickets[i]) == SP_OK, "sp_cancel");
        took[i] = (double)(bench_now_ns() - start);
    }
    wait_for_count(&called, PENDING);
    bench_emit_late(b, "reactor.cancel", took, PENDING, NULL);
    bench_reactor_destroy(reactor);
}

/* ---- Many that are idle ---- */

typedef struct idle {
    sp_host_timeline *timelines[100];
    sp_slot *slots[PENDING / 4];
    bench_timeline driver[100];
} idle;

static double process_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (double)used.tv_sec * 1e9 + (double)used.tv_nsec;
}

/* A quarter each: values of a hundred timelines of the CPU, slots, primitives that can only be asked,
 * and values of a hundred of the driver's timelines (of the CPU's again where there is no driver). */
static void notify_quarter(const bench *b, idle *all, sp_reactor *reactor, size_t i, void *counter)
{
    static asked primitives[PENDING / 4];
    sp_point points[4] = {{0}};
    uint64_t value = i / 100 + 1;
    if (i < 100) {
        bench_check(sp_host_timeline_create(0, &all->timelines[i]) == SP_OK, "no timeline");
        all->driver[i] = bench_timeline_create(b, 0);
    }
    bench_check(sp_slot_create(&all->slots[i]) == SP_OK &&
                    sp_slot_point(all->slots[i], &points[1]) == SP_OK,
                "no slot");
    points[0] = host_point(all->timelines[i % 100], value);
    points[2] = ask(&primitives[i]);
    points[3] = bench_timeline_point(&all->driver[i % 100], value);
    for (size_t k = 0; k < 4; k++) {
        bench_check(sp_notify(reactor, &points[k], SP_FOREVER, count_one, counter, NULL) == SP_OK,
                    "sp_notify");
        sp_point_unref(&points[k]);
    }
}

static void measure_idle(const bench *b)
{
    static idle all;
    atomic_size_t called = 0;
    if (!bench_wants(b, "reactor.idle_10000"))
        return;
    sp_reactor *reactor = bench_reactor_create(SP_PACE_BALANCED);
    for (size_t i = 0; i < PENDING / 4; i++)
        notify_quarter(b, &all, reactor, i, &called);
    bench_sleep_us(300000);
    uint64_t start = bench_now_ns(), end = start + b->scale.batches * 10000000;
    double used = process_ns();
    while (bench_now_ns() < end)
        bench_sleep_us(500000);
    const bench_row row = {.name = "reactor.idle_10000",
                           .unit = "%",
                           .ours = 100 * (process_ns() - used) / (double)(bench_now_ns() - start),
                           .raw = -1,
                           .n = PENDING};
    bench_emit(b, &row);
    bench_check(atomic_load(&called) == 0, "a callback without a signal");
    bench_reactor_destroy(reactor);
    for (size_t i = 0; i < PENDING / 4; i++)
        sp_slot_destroy(all.slots[i]);
    for (size_t i = 0; i < 100; i++) {
        sp_host_timeline_destroy(all.timelines[i]);
        bench_timeline_destroy(&all.driver[i]);
    }
}

/* ---- How late ---- */

/* The same by hand: a thread that sleeps in the kernel until an eventfd is written. */
typedef struct by_hand {
    int fd;
    notified seen;
} by_hand;

static void *sleep_by_hand(void *argument)
{
    by_hand *h = argument;
    struct pollfd wanted = {.fd = h->fd, .events = POLLIN};
    poll(&wanted, 1, -1);
    notified_call(&h->seen, SP_OK);
    return NULL;
}

static double raw_late(void)
{
    by_hand h = {.fd = eventfd(0, EFD_CLOEXEC)};
    const uint64_t one = 1;
    pthread_t thread = 0;
    bench_check(h.fd >= 0 && pthread_create(&thread, NULL, sleep_by_hand, &h) == 0, "no thread");
    bench_sleep_us(2000);
    uint64_t start = bench_now_ns();
    bench_check(write(h.fd, &one, sizeof one) == sizeof one, "write");
    pthread_join(thread, NULL);
    close(h.fd);
    return (double)(h.seen.at_ns - start);
}

static double our_late(sp_reactor *reactor, const bench_timeline *timeline, uint64_t value)
{
    notified n = {0};
    sp_point point = bench_timeline_point(timeline, value);
    bench_notify(reactor, &point, &n);
    sp_point_unref(&point);
    bench_sleep_us(2000 + (unsigned)(value * 7919) % 1000); /* in no step with a poller */
    uint64_t start = bench_now_ns();
    bench_check(bench_timeline_signal(timeline, value) == SP_OK, "the signal");
    notified_wait(&n);
    return (double)(n.at_ns - start);
}

/* A timeline of the driver, signalled by the host; of the core where there is none. */
static void measure_late(const bench *b)
{
    size_t count = b->scale.blocks;
    double *ours = calloc(count, sizeof *ours), *raw = calloc(count, sizeof *raw);
    bench_check(ours && raw, "out of memory");
    if (bench_wants(b, "reactor.late")) {
        sp_reactor *reactor = bench_reactor_create(SP_PACE_BALANCED);
        bench_timeline timeline = bench_timeline_create(b, 0);
        for (size_t i = 0; i < count; i++) {
            ours[i] = our_late(reactor, &timeline, i + 1);
            raw[i] = raw_late();
        }
        bench_emit_late(b, "reactor.late", ours, count, raw);
        bench_reactor_destroy(reactor);
        bench_timeline_destroy(&timeline);
    }
    free(ours);
    free(raw);
}

/* ---- Pace: how late and at what price, by the number of those that are polled ---- */

typedef struct paced {
    const char *name;
    sp_pace pace;
} paced;

/* They are signalled in no order that the poller could have, at no time that it could be in step
 * with. */
static void measure_paced(const bench *b, const paced *p, size_t count)
{
    static asked primitives[PENDING];
    static notified seen[PENDING];
    double late[64];
    char name[64];
    sp_reactor *reactor = bench_reactor_create(p->pace);
    for (size_t i = 0; i < count; i++) {
        sp_point point = ask(&primitives[i]);
        bench_notify(reactor, &point, &seen[i]);
        sp_point_unref(&point);
    }
    bench_sleep_us(200000);
    double used = process_ns();
    uint64_t start = bench_now_ns();
    bench_sleep_us(900000);
    double cpu = 100 * (process_ns() - used) / (double)(bench_now_ns() - start);
    size_t samples = count < 64 ? count : 64;
    for (size_t i = 0; i < samples; i++) {
        size_t at = (i * 7919) % count;
        bench_sleep_us(1000 + (unsigned)(i * 7919) % 1000);
        start = bench_now_ns();
        atomic_store_explicit(&primitives[at].reached, 1, memory_order_release);
        notified_wait(&seen[at]);
        late[i] = (double)(seen[at].at_ns - start);
    }
    for (size_t i = 0; i < count; i++)
        atomic_store(&primitives[i].reached, 1);
    for (size_t i = 0; i < count; i++)
        notified_wait(&seen[i]);
    bench_reactor_destroy(reactor);
    snprintf(name, sizeof name, "pace.%s_%zu", p->name, count);
    bench_emit_late(b, name, late, samples, NULL);
    snprintf(name, sizeof name, "pace.%s_%zu_cpu", p->name, count);
    bench_emit(b, &(bench_row){.name = name, .unit = "%", .ours = cpu, .raw = -1, .n = count});
}

static void measure_paces(const bench *b)
{
    const paced all[] = {
        {"latency", SP_PACE_LATENCY}, {"balanced", SP_PACE_BALANCED}, {"power", SP_PACE_POWER}};
    const size_t counts[] = {4, 64, 1000, PENDING};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        for (size_t k = 0; k < sizeof counts / sizeof *counts; k++) {
            char name[64];
            snprintf(name, sizeof name, "pace.%s_%zu_cpu", all[i].name, counts[k]);
            if (bench_wants(b, name))
                measure_paced(b, &all[i], counts[k]);
        }
    }
}

void bench_reactor(const bench *b)
{
    measure_late(b);
    measure_idle(b);
    if (b->has_driver)
        return;
    measure_rate(b);
    measure_tickets(b);
    measure_paces(b);
}
