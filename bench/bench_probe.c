/* SPDX-License-Identifier: MIT
 * Probes: what it costs to ask whether a point is reached. */
#include "bench.h"

typedef struct probed {
    sp_point point;
    sp_status expected;
    const raw_vk *raw;
    VkSemaphore semaphore; /* of the same timeline */
} probed;

static void probe_ours(void *argument, size_t ops)
{
    const probed *p = argument;
    bench_check(bench_polls(&p->point, p->expected, ops), "sp_poll does not say what it should");
}

static void probe_raw(void *argument, size_t ops)
{
    const probed *p = argument;
    int wrong = VK_SUCCESS;
    uint64_t value;
    for (size_t i = 0; i < ops; i++)
        wrong |= p->raw->counter_value(p->raw->device, p->semaphore, &value);
    bench_check(wrong == VK_SUCCESS, "vkGetSemaphoreCounterValue fails");
}

static void probe(const bench *b, const char *name, uint64_t value, sp_status expected)
{
    if (!bench_wants(b, name))
        return;
    bench_timeline timeline = bench_timeline_create(b, 5);
    probed p = {.point = bench_timeline_point(&timeline, value),
                .expected = expected,
                .raw = &b->raw_a,
                .semaphore = sp_vk_semaphore_handle(timeline.vk)};
    bench_batches(b, name, probe_ours, b->has_driver ? probe_raw : NULL, &p);
    sp_point_unref(&p.point);
    bench_timeline_destroy(&timeline);
}

/* The batch that warms up is also the one that learns that the point is reached. */
void bench_probes(const bench *b)
{
    probe(b, "probe.reached", 5, SP_OK);
    probe(b, "probe.pending", 6, SP_PENDING);
}
