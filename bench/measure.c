/* SPDX-License-Identifier: MIT */
#include "bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

uint64_t bench_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void bench_die(const char *what)
{
    fprintf(stderr, "syncpoint-bench: %s\n", what);
    _exit(1);
}

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

double bench_median(double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, compare);
    return count % 2 ? samples[count / 2] : (samples[count / 2 - 1] + samples[count / 2]) / 2;
}

uint64_t bench_thread_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

void bench_emit_medians(const bench *b, const char *name, const char *unit, double *samples,
                        size_t count)
{
    const bench_row row = {
        .name = name,
        .unit = unit,
        .ours = bench_median(samples, count),
        .raw = bench_median(samples + count, count),
        .n = count,
    };
    bench_emit(b, &row);
}

bool bench_polls(const sp_point *point, sp_status expected, size_t ops)
{
    sp_status wrong = SP_OK;
    for (size_t i = 0; i < ops; i++) {
        wrong |= sp_poll(point) ^ expected;
        bench_barrier(point);
    }
    return wrong == SP_OK;
}

void bench_copies(const sp_point *point, size_t ops)
{
    for (size_t i = 0; i < ops; i++) {
        sp_point copy = sp_point_ref(point);
        bench_barrier(&copy);
        sp_point_unref(&copy);
    }
}

typedef struct burst {
    size_t ops;
    void (*settle)(void *argument); /* NULL: none */
} burst;

static double time_burst(const burst *kind, bench_batch batch, void *argument)
{
    uint64_t start = bench_now_ns();
    batch(argument, kind->ops);
    double took = (double)(bench_now_ns() - start) / (double)kind->ops;
    if (kind->settle)
        kind->settle(argument);
    return took;
}

static void measure(const bench *b, const char *name, bench_batch ours, bench_batch raw,
                    const burst *kind, void *argument)
{
    size_t count = b->scale.batches;
    double *samples = calloc(2 * count, sizeof *samples);
    bench_check(samples, "out of memory");
    time_burst(kind, ours, argument); /* warms caches and branches */
    for (size_t i = 0; i < count; i++) {
        samples[i] = time_burst(kind, ours, argument);
        if (raw)
            samples[count + i] = time_burst(kind, raw, argument);
    }
    const bench_row row = {
        .name = name,
        .unit = "ns",
        .ours = bench_median(samples, count),
        .raw = raw ? bench_median(samples + count, count) : -1,
        .n = count * kind->ops,
    };
    free(samples);
    bench_emit(b, &row);
}

void bench_batches(const bench *b, const char *name, bench_batch ours, bench_batch raw,
                   void *argument)
{
    measure(b, name, ours, raw, &(burst){.ops = OPS_PER_BATCH}, argument);
}

void bench_bursts(const bench *b, const char *name, bench_batch ours, bench_batch raw,
                  void (*settle)(void *argument), void *argument)
{
    measure(b, name, ours, raw, &(burst){.ops = OPS_PER_BURST, .settle = settle}, argument);
}

bench_timeline bench_timeline_create(const bench *b, uint64_t initial_value)
{
    bench_timeline timeline = {NULL, NULL};
    const sp_vk_semaphore_desc desc = {
        .size = sizeof desc, .type = VK_SEMAPHORE_TYPE_TIMELINE, .initial_value = initial_value};
    sp_status status = b->has_driver ? sp_vk_semaphore_create(b->a.sp_device, &desc, &timeline.vk)
                                     : sp_host_timeline_create(initial_value, &timeline.host);
    bench_check(status == SP_OK, "no timeline");
    return timeline;
}

void bench_timeline_destroy(bench_timeline *timeline)
{
    sp_vk_semaphore_unref(timeline->vk);
    sp_host_timeline_destroy(timeline->host);
}

sp_point bench_timeline_point(const bench_timeline *timeline, uint64_t value)
{
    sp_point point = sp_point_noop();
    sp_status status = timeline->vk ? sp_vk_timeline_point(timeline->vk, value, &point)
                                    : sp_host_timeline_point(timeline->host, value, &point);
    bench_check(status == SP_OK, "no point");
    return point;
}

sp_status bench_timeline_signal(const bench_timeline *timeline, uint64_t value)
{
    return timeline->vk ? sp_vk_semaphore_signal(timeline->vk, value)
                        : sp_host_timeline_signal(timeline->host, value);
}
