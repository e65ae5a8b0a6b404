/* SPDX-License-Identifier: MIT
 *
 * The producer's GPU work: the picture, and with --slow a long computation before it.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_RENDER_H
#define SYNCPOINT_TOOLS_DEMO_RENDER_H

#include "demo.h"
#include "gpu_image.h"

struct demo_renderer {
    struct gpu *gpu;
    const struct gpu_image *images; /* DEMO_SLOTS of them, borrowed */
    bool to_other_process;
    uint32_t delay_iterations; /* 0: no delay */
    struct gpu_buffer delay_result;
    VkCommandPool pool;
    VkCommandBuffer commands[DEMO_SLOTS];
    VkDescriptorSetLayout set_layout;
    VkDescriptorPool set_pool;
    VkDescriptorSet sets[DEMO_SLOTS];
    VkPipelineLayout layout;
    VkPipeline picture;
    VkPipeline delay;
};

/* False: gpu->problem says why, and demo_renderer_destroy() is still due. */
bool demo_renderer_create(struct demo_renderer *renderer, struct gpu *gpu,
                          const struct gpu_image *images, bool to_other_process);
void demo_renderer_destroy(struct demo_renderer *renderer);

/* Finds out how much computation takes some tens of milliseconds, for every frame from now on. The
 * queue must be idle. */
bool demo_renderer_slow_down(struct demo_renderer *renderer, sp_vk_queue *queue);

/* Submits the rendering of a frame into its slot. The slot's last rendering must be done. */
bool demo_renderer_submit(struct demo_renderer *renderer, uint32_t frame);

#endif
