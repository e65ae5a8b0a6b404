/* SPDX-License-Identifier: MIT
 *
 * Recording and submitting the producer's work. What it needs is made in demo_render_setup.c.
 */
#include "demo_render.h"

#include "demo_render_setup.h"

/* The delay aimed at with --slow: far longer than the consumer needs to come too early. */
#define DELAY_NS UINT64_C(30000000)
#define DELAY_PROBE_NS (DELAY_NS / 4)
#define DELAY_PROBES 4
#define DELAY_MAX_ITERATIONS (1u << 30)

static VkImageMemoryBarrier barrier(const struct demo_renderer *renderer, uint32_t slot)
{
    return (VkImageMemoryBarrier){
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .dstQueueFamilyIndex = VK_QUEUE_FAMILY_IGNORED,
        .image = renderer->images[slot].image,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1},
    };
}

/* The old content is not needed, so the image is not acquired from the consumer's process: it is
 * taken as new. That the consumer is done with it, the queue has waited for. */
static void begin_image(struct demo_renderer *renderer, VkCommandBuffer commands, uint32_t slot)
{
    VkImageMemoryBarrier before = barrier(renderer, slot);
    before.dstAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    before.oldLayout = VK_IMAGE_LAYOUT_UNDEFINED;
    before.newLayout = VK_IMAGE_LAYOUT_GENERAL;
    renderer->gpu->vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                                         VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 0, NULL, 0, NULL,
                                         1, &before);
}

/* Ready to be copied from; given to the other process where there is one. */
static void end_image(struct demo_renderer *renderer, VkCommandBuffer commands, uint32_t slot)
{
    VkImageMemoryBarrier after = barrier(renderer, slot);
    after.srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT;
    after.oldLayout = VK_IMAGE_LAYOUT_GENERAL;
    after.newLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL;
    VkPipelineStageFlags to = VK_PIPELINE_STAGE_TRANSFER_BIT;
    if (renderer->to_other_process) {
        after.srcQueueFamilyIndex = renderer->gpu->queue_family;
        after.dstQueueFamilyIndex = VK_QUEUE_FAMILY_EXTERNAL;
        to = VK_PIPELINE_STAGE_BOTTOM_OF_PIPE_BIT;
    } else {
        after.dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT;
    }
    renderer->gpu->vk.CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, to, 0, 0,
                                         NULL, 0, NULL, 1, &after);
}

static void begin(struct demo_renderer *renderer, uint32_t slot, const struct render_push *push)
{
    const struct vk_api *vk = &renderer->gpu->vk;
    VkCommandBuffer commands = renderer->commands[slot];
    const VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    vk->BeginCommandBuffer(commands, &info);
    vk->CmdBindDescriptorSets(commands, VK_PIPELINE_BIND_POINT_COMPUTE, renderer->layout, 0, 1,
                              &renderer->sets[slot], 0, NULL);
    vk->CmdPushConstants(commands, renderer->layout, VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof *push,
                         push);
}

/* Ends in a barrier: what follows starts when the delay is over, also on a device that would run
 * both at a time, and the delays of two frames do not write at once. */
static void record_delay(struct demo_renderer *renderer, VkCommandBuffer commands)
{
    const struct vk_api *vk = &renderer->gpu->vk;
    const VkMemoryBarrier over = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_SHADER_WRITE_BIT,
    };
    vk->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, renderer->delay);
    vk->CmdDispatch(commands, 1, 1, 1);
    vk->CmdPipelineBarrier(commands, VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT,
                           VK_PIPELINE_STAGE_COMPUTE_SHADER_BIT, 0, 1, &over, 0, NULL, 0, NULL);
}

static bool end_and_submit(struct demo_renderer *renderer, uint32_t slot)
{
    struct gpu *gpu = renderer->gpu;
    return gpu_check(gpu, gpu->vk.EndCommandBuffer(renderer->commands[slot]),
                     "vkEndCommandBuffer") &&
           gpu_submit(gpu, renderer->commands[slot]);
}

bool demo_renderer_submit(struct demo_renderer *renderer, uint32_t frame)
{
    const struct vk_api *vk = &renderer->gpu->vk;
    const uint32_t slot = frame % DEMO_SLOTS;
    VkCommandBuffer commands = renderer->commands[slot];
    const struct render_push push = {frame, DEMO_WIDTH, DEMO_HEIGHT, renderer->delay_iterations};
    begin(renderer, slot, &push);
    if (renderer->delay_iterations > 0)
        record_delay(renderer, commands);
    begin_image(renderer, commands, slot);
    vk->CmdBindPipeline(commands, VK_PIPELINE_BIND_POINT_COMPUTE, renderer->picture);
    vk->CmdDispatch(commands, (DEMO_WIDTH + 15) / 16, (DEMO_HEIGHT + 3) / 4, 1);
    end_image(renderer, commands, slot);
    return end_and_submit(renderer, slot);
}

/* How long the device computes that many iterations, once. 0: gpu->problem says why not. */
static uint64_t time_delay(struct demo_renderer *renderer, sp_vk_queue *queue, uint32_t iterations)
{
    const struct render_push push = {0, DEMO_WIDTH, DEMO_HEIGHT, iterations};
    const uint64_t start = sp_now_ns();
    begin(renderer, 0, &push);
    record_delay(renderer, renderer->commands[0]);
    if (!end_and_submit(renderer, 0))
        return 0;
    sp_point done = sp_point_noop();
    sp_status status = sp_vk_queue_signal(queue, &done);
    if (status == SP_OK)
        status = sp_wait_timeout(&done, DEMO_TIMEOUT_NS);
    sp_point_unref(&done);
    return gpu_check_sync(renderer->gpu, status, "the delay") ? sp_now_ns() - start : 0;
}

/* The shortest of some: a busy machine only ever makes it longer. */
static uint64_t measure_delay(struct demo_renderer *renderer, sp_vk_queue *queue,
                              uint32_t iterations)
{
    uint64_t shortest = UINT64_MAX;
    for (int i = 0; i < DELAY_PROBES && shortest > 0; i++) {
        const uint64_t ns = time_delay(renderer, queue, iterations);
        shortest = ns < shortest ? ns : shortest;
    }
    return shortest;
}

bool demo_renderer_slow_down(struct demo_renderer *renderer, sp_vk_queue *queue)
{
    uint32_t iterations = 1u << 12;
    for (;;) {
        const uint64_t ns = measure_delay(renderer, queue, iterations);
        if (ns == 0)
            return false;
        if (ns >= DELAY_PROBE_NS || iterations >= DELAY_MAX_ITERATIONS / 2) {
            const uint64_t scaled = iterations * DELAY_NS / ns;
            renderer->delay_iterations =
                scaled < DELAY_MAX_ITERATIONS ? (uint32_t)scaled : DELAY_MAX_ITERATIONS;
            return true;
        }
        iterations *= 2;
    }
}
