/* SPDX-License-Identifier: MIT
 * Points: what copying, making and releasing them costs. */
#include "bench.h"

#include <stdio.h>

#define COUNTED_OPS 10000

static void copy_release(void *argument, size_t ops)
{
    bench_copies(argument, ops);
}

static void make_copy_release_vk(void *argument, size_t ops)
{
    sp_vk_semaphore *semaphore = argument;
    for (size_t i = 0; i < ops; i++) {
        sp_point point, copy;
        bench_check(sp_vk_timeline_point(semaphore, i, &point) == SP_OK, "sp_vk_timeline_point");
        copy = sp_point_ref(&point);
        bench_barrier(&copy);
        sp_point_unref(&copy);
        sp_point_unref(&point);
    }
}

static void make_copy_release_host(void *argument, size_t ops)
{
    sp_host_timeline *timeline = argument;
    for (size_t i = 0; i < ops; i++) {
        sp_point point, copy;
        bench_check(sp_host_timeline_point(timeline, i, &point) == SP_OK, "sp_host_timeline_point");
        copy = sp_point_ref(&point);
        bench_barrier(&copy);
        sp_point_unref(&copy);
        sp_point_unref(&point);
    }
}

static void count_allocations(const bench *b, bench_batch batch, void *argument)
{
    if (!bench_counts_allocations()) {
        fprintf(stderr, "syncpoint-bench: point.allocations left out: this C library or sanitizer "
                        "does not let them be counted\n");
        return;
    }
    size_t before = bench_allocations();
    batch(argument, COUNTED_OPS);
    const bench_row row = {
        .name = "point.allocations",
        .unit = "calls",
        .ours = (double)(bench_allocations() - before),
        .raw = -1,
        .n = COUNTED_OPS,
    };
    bench_emit(b, &row);
}

void bench_points(const bench *b)
{
    bench_timeline timeline = bench_timeline_create(b, 0);
    sp_point point = bench_timeline_point(&timeline, 1);
    bench_batch make = timeline.vk ? make_copy_release_vk : make_copy_release_host;
    void *maker = timeline.vk ? (void *)timeline.vk : (void *)timeline.host;
    if (bench_wants(b, "point.copy_release"))
        bench_batches(b, "point.copy_release", copy_release, NULL, &point);
    if (bench_wants(b, "point.make_copy_release"))
        bench_batches(b, "point.make_copy_release", make, NULL, maker);
    if (bench_wants(b, "point.allocations"))
        count_allocations(b, make, maker);
    sp_point_unref(&point);
    bench_timeline_destroy(&timeline);
}
