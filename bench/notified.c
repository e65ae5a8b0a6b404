/* SPDX-License-Identifier: MIT */
#include "notified.h"

#include <stdio.h>
#include <time.h>

void notified_call(void *user, sp_status status)
{
    notified *n = user;
    bench_check(status == SP_OK, "a callback tells of a failure");
    n->seen_word = n->word ? *n->word : 0;
    n->at_ns = bench_now_ns();
    n->thread_ns = bench_thread_ns();
    atomic_store_explicit(&n->called, true, memory_order_release);
}

void notified_wait(notified *n)
{
    while (!atomic_load_explicit(&n->called, memory_order_acquire))
        bench_sleep_us(50);
}

sp_reactor *bench_reactor_create(sp_pace pace)
{
    const sp_reactor_desc desc = {.size = sizeof desc, .pace = pace, .name = "bench"};
    sp_reactor *made = NULL;
    bench_check(sp_reactor_create(&desc, &made) == SP_OK, "sp_reactor_create");
    return made;
}

void bench_reactor_destroy(sp_reactor *reactor)
{
    bench_check(sp_reactor_destroy(reactor) == SP_OK, "sp_reactor_destroy");
}

void bench_notify(sp_reactor *reactor, const sp_point *point, notified *n)
{
    atomic_store(&n->called, false);
    bench_check(sp_notify(reactor, point, SP_FOREVER, notified_call, n, NULL) == SP_OK,
                "sp_notify");
}

void bench_sleep_us(unsigned us)
{
    nanosleep(&(struct timespec){.tv_nsec = (long)us * 1000}, NULL);
}

void bench_emit_late(const bench *b, const char *name, double *samples, size_t count, double *raw)
{
    char p99[64];
    snprintf(p99, sizeof p99, "%s_p99", name);
    bench_row row = {
        .name = name,
        .unit = "ns",
        .ours = bench_median(samples, count),
        .raw = raw ? bench_median(raw, count) : -1,
        .n = count,
    };
    bench_emit(b, &row);
    row.name = p99;
    row.ours = samples[count * 99 / 100]; /* sorted by now */
    row.raw = raw ? raw[count * 99 / 100] : -1;
    bench_emit(b, &row);
}
