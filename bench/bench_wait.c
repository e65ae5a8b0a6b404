/* SPDX-License-Identifier: MIT
 * Waits for a timeline that another thread signals. */
#include "bench.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

typedef struct timelines {
    const bench *b;
    bench_timeline ours;
    VkSemaphore raw;
    uint64_t value; /* both go up with each round, one of them is signalled */
    sp_point point;
} timelines;

static void begin(void *user, bool raw)
{
    timelines *t = user;
    t->value++;
    if (!raw)
        t->point = bench_timeline_point(&t->ours, t->value);
}

static void wait_for(void *user, bool raw)
{
    const timelines *t = user;
    if (raw)
        bench_check(raw_vk_wait(&t->b->raw_a, t->raw, t->value) == VK_SUCCESS, "vkWaitSemaphores");
    else
        bench_check(sp_wait(&t->point) == SP_OK, "sp_wait");
}

static void signal_it(void *user, bool raw)
{
    const timelines *t = user;
    bool ok = raw ? raw_vk_signal(&t->b->raw_a, t->raw, t->value) == VK_SUCCESS
                  : bench_timeline_signal(&t->ours, t->value) == SP_OK;
    bench_check(ok, "the signal");
}

static void end(void *user, bool raw)
{
    (void)raw;
    sp_point_unref(&((timelines *)user)->point);
}

void bench_waits(const bench *b)
{
    timelines t = {.b = b,
                   .ours = bench_timeline_create(b, 0),
                   .raw = b->has_driver ? raw_vk_timeline(&b->raw_a, 0) : VK_NULL_HANDLE};
    const bench_wake what = {
        .spin_row = "wait.wake_spin",
        .block_row = "wait.wake_block",
        .has_raw = b->has_driver,
        .user = &t,
        .begin = begin,
        .wait = wait_for,
        .signal = signal_it,
        .end = end,
    };
    bench_wakes(b, &what);
    if (t.raw)
        b->raw_a.destroy_semaphore(b->raw_a.device, t.raw, NULL);
    bench_timeline_destroy(&t.ours);
}

/* ---- Any of many ---- */

#define ANY 64

typedef struct any {
    const bench *b;
    bench_timeline ours[ANY];
    sp_point points[ANY];
    VkSemaphore raw[ANY];
    uint64_t values[ANY];
    pthread_t thread;
    bool is_raw;
    uint64_t returned_ns, thread_ns; /* of the waiting thread */
} any;

static void *wait_any(void *argument)
{
    any *a = argument;
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .flags = VK_SEMAPHORE_WAIT_ANY_BIT,
        .semaphoreCount = ANY,
        .pSemaphores = a->raw,
        .pValues = a->values,
    };
    uint64_t before = bench_thread_ns();
    bool ok = a->is_raw
                  ? a->b->raw_a.wait_semaphores(a->b->raw_a.device, &info, UINT64_MAX) == VK_SUCCESS
                  : sp_wait_many(a->points, ANY, SP_WAIT_ANY, SP_FOREVER, NULL) == SP_OK;
    a->returned_ns = bench_now_ns();
    a->thread_ns = bench_thread_ns() - before;
    bench_check(ok, "a wait for any");
    return NULL;
}

/* The last of them is signalled after 2 ms. */
static void any_once(any *a, uint64_t value, double *late, double *cpu)
{
    size_t last = ANY - 1;
    if (a->is_raw)
        a->values[last] = value;
    else
        a->points[last] = bench_timeline_point(&a->ours[last], value);
    uint64_t start = bench_now_ns();
    bench_check(pthread_create(&a->thread, NULL, wait_any, a) == 0, "no thread");
    nanosleep(&(struct timespec){.tv_nsec = 2000000}, NULL);
    uint64_t signalled = bench_now_ns();
    bool ok = a->is_raw ? raw_vk_signal(&a->b->raw_a, a->raw[last], value) == VK_SUCCESS
                        : bench_timeline_signal(&a->ours[last], value) == SP_OK;
    bench_check(ok, "the signal");
    pthread_join(a->thread, NULL);
    *late = a->returned_ns > signalled ? (double)(a->returned_ns - signalled) : 0;
    *cpu = 100 * (double)a->thread_ns / (double)(a->returned_ns - start);
    sp_point_unref(&a->points[last]);
}

static void any_open(any *a)
{
    for (size_t i = 0; i < ANY; i++) {
        a->ours[i] = bench_timeline_create(a->b, 0);
        a->raw[i] = raw_vk_timeline(&a->b->raw_a, 0);
        a->values[i] = 1;
        if (i + 1 < ANY)
            a->points[i] = bench_timeline_point(&a->ours[i], 1);
    }
}

static void any_close(any *a)
{
    for (size_t i = 0; i < ANY; i++) {
        sp_point_unref(&a->points[i]);
        bench_timeline_destroy(&a->ours[i]);
        a->b->raw_a.destroy_semaphore(a->b->raw_a.device, a->raw[i], NULL);
    }
}

void bench_wait_any(const bench *b)
{
    static any a;
    size_t count = b->scale.blocks;
    double *late = calloc(2 * count, sizeof *late), *cpu = calloc(2 * count, sizeof *cpu);
    bench_check(late && cpu, "out of memory");
    if (b->has_driver && bench_wants(b, "wait.any_64_cpu")) {
        a = (any){.b = b};
        any_open(&a);
        for (size_t i = 0; i < 2 * count; i++) {
            size_t at = (i % 2) * count + i / 2;
            a.is_raw = i % 2;
            any_once(&a, i / 2 + 1, &late[at], &cpu[at]);
        }
        any_close(&a);
        bench_emit_medians(b, "wait.any_64", "ns", late, count);
        bench_emit_medians(b, "wait.any_64_cpu", "%", cpu, count);
    }
    free(late);
    free(cpu);
}
