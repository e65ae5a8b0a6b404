/* SPDX-License-Identifier: MIT
 * Hand-off: what one frame's synchronisation costs the host, from the producer's new semaphore to
 * the consumer's queue having passed the gate, through the synchronizer and written by hand. */
#include "bench.h"

#include <stdlib.h>
#include <syncpoint/handoff.h>

#define OPAQUE_FD VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT
#define WARM_UP 20

/* By hand: one semaphore to import to, free again since each round waits to the end, and a timeline
 * on each side: when the gate is passed, and when the producer's semaphore may be destroyed. */
typedef struct handoff {
    const bench *b;
    sp_synchronizer *synchronizer;
    VkSemaphore imported, passed, produced;
    uint64_t rounds;
} handoff;

static void hand_over_ours(handoff *h)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof desc, .type = VK_SEMAPHORE_TYPE_BINARY, .export_types = OPAQUE_FD};
    sp_vk_semaphore *semaphore = NULL;
    sp_point gate = sp_point_noop();
    sp_frame frame = {.size = sizeof frame,
                      .kind = SP_FRAME_VULKAN_OPAQUE_FD,
                      .semaphore_fd = -1,
                      .adopt_fd = true};
    bench_check(sp_vk_semaphore_create(h->b->a.sp_device, &desc, &semaphore) == SP_OK,
                "sp_vk_semaphore_create");
    bench_check(sp_vk_queue_signal_semaphore(h->b->a.sp_queue, semaphore, 0, NULL) == SP_OK,
                "sp_vk_queue_signal_semaphore");
    bench_check(sp_vk_semaphore_export(semaphore, OPAQUE_FD, &frame.semaphore_fd) == SP_OK,
                "sp_vk_semaphore_export");
    bench_check(sp_synchronizer_producer_complete(
                    h->synchronizer, &frame, SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE) == SP_OK,
                "sp_synchronizer_producer_complete");
    bench_check(sp_synchronizer_last_gate(h->synchronizer, &gate) == SP_OK,
                "sp_synchronizer_last_gate");
    bench_check(sp_wait(&gate) == SP_OK, "the gate");
    sp_point_unref(&gate);
    sp_vk_semaphore_unref(semaphore);
}

/* One submit that waits for `wait` and signals `binary` (each VK_NULL_HANDLE: does not), and then
 * sets the timeline to `value`. */
static VkResult submit(const raw_vk *vk, VkSemaphore wait, VkSemaphore binary, VkSemaphore timeline,
                       uint64_t value)
{
    const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const uint64_t unused = 0;
    const VkSemaphore signals[2] = {binary ? binary : timeline, timeline};
    const uint64_t signal_values[2] = {binary ? unused : value, value};
    const VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = wait ? 1 : 0,
        .pWaitSemaphoreValues = &unused,
        .signalSemaphoreValueCount = binary ? 2 : 1,
        .pSignalSemaphoreValues = signal_values,
    };
    const VkSubmitInfo info = {.sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
                               .pNext = &values,
                               .waitSemaphoreCount = values.waitSemaphoreValueCount,
                               .pWaitSemaphores = &wait,
                               .pWaitDstStageMask = &all,
                               .signalSemaphoreCount = values.signalSemaphoreValueCount,
                               .pSignalSemaphores = signals};
    return vk->queue_submit(vk->queue, 1, &info, VK_NULL_HANDLE);
}

static VkResult export_fd(const raw_vk *vk, VkSemaphore semaphore, int *fd)
{
    const VkSemaphoreGetFdInfoKHR info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
                                          .semaphore = semaphore,
                                          .handleType = OPAQUE_FD};
    return vk->get_fd(vk->device, &info, fd);
}

static VkResult import_fd(const raw_vk *vk, VkSemaphore semaphore, int fd)
{
    const VkImportSemaphoreFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR,
        .semaphore = semaphore,
        .flags = VK_SEMAPHORE_IMPORT_TEMPORARY_BIT,
        .handleType = OPAQUE_FD,
        .fd = fd,
    };
    return vk->import_fd(vk->device, &info);
}

static void hand_over_raw(handoff *h)
{
    const raw_vk *producer = &h->b->raw_a, *consumer = &h->b->raw_b;
    int fd = -1;
    VkSemaphore semaphore = raw_vk_binary(producer, OPAQUE_FD);
    h->rounds++;
    bench_check(semaphore != VK_NULL_HANDLE, "vkCreateSemaphore");
    bench_check(submit(producer, VK_NULL_HANDLE, semaphore, h->produced, h->rounds) == VK_SUCCESS &&
                    export_fd(producer, semaphore, &fd) == VK_SUCCESS &&
                    import_fd(consumer, h->imported, fd) == VK_SUCCESS &&
                    submit(consumer, h->imported, VK_NULL_HANDLE, h->passed, h->rounds) ==
                        VK_SUCCESS &&
                    raw_vk_wait(consumer, h->passed, h->rounds) == VK_SUCCESS &&
                    raw_vk_wait(producer, h->produced, h->rounds) == VK_SUCCESS,
                "the hand-off by hand");
    producer->destroy_semaphore(producer->device, semaphore, NULL);
}

static double time_round(handoff *h, void (*hand_over)(handoff *))
{
    uint64_t start = bench_now_ns();
    hand_over(h);
    return (double)(bench_now_ns() - start);
}

static void measure(handoff *h, size_t count, double *ours, double *raw)
{
    for (size_t i = 0; i < WARM_UP; i++) {
        hand_over_ours(h);
        hand_over_raw(h);
    }
    for (size_t i = 0; i < count; i++) {
        ours[i] = time_round(h, hand_over_ours);
        raw[i] = time_round(h, hand_over_raw);
    }
    const bench_row row = {
        .name = "handoff.opaque_fd",
        .unit = "ns",
        .ours = bench_median(ours, count),
        .raw = bench_median(raw, count),
        .n = count,
    };
    bench_emit(h->b, &row);
}

void bench_handoffs(const bench *b)
{
    if (!b->can_share || !bench_wants(b, "handoff.opaque_fd"))
        return;
    const sp_host host = {
        .size = sizeof host, .backend = SP_BACKEND_VULKAN, .queue = b->b.sp_queue};
    handoff h = {.b = b,
                 .imported = raw_vk_binary(&b->raw_b, 0),
                 .passed = raw_vk_timeline(&b->raw_b, 0),
                 .produced = raw_vk_timeline(&b->raw_a, 0)};
    bench_check(sp_synchronizer_create_vulkan(&host, &h.synchronizer) == SP_OK,
                "sp_synchronizer_create_vulkan");
    double *ours = calloc(b->scale.handoffs, sizeof *ours);
    double *raw = calloc(b->scale.handoffs, sizeof *raw);
    bench_check(ours && raw, "out of memory");
    measure(&h, b->scale.handoffs, ours, raw);
    free(ours);
    free(raw);
    bench_check(sp_synchronizer_destroy(h.synchronizer, SP_TIMEOUT_DEFAULT) == SP_OK,
                "sp_synchronizer_destroy");
    b->raw_b.destroy_semaphore(b->raw_b.device, h.imported, NULL);
    b->raw_b.destroy_semaphore(b->raw_b.device, h.passed, NULL);
    b->raw_a.destroy_semaphore(b->raw_a.device, h.produced, NULL);
}
