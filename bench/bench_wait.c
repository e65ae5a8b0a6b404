/* SPDX-License-Identifier: MIT
 * Waits for a timeline that another thread signals. */
#include "bench.h"

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
