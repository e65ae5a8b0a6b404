/* SPDX-License-Identifier: MIT
 *
 * The consumer's GPU work: one image into memory that the CPU reads.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_READBACK_H
#define SYNCPOINT_TOOLS_DEMO_READBACK_H

#include "demo.h"
#include "gpu_image.h"

struct demo_readback {
    struct gpu *gpu;
    bool from_other_process;
    struct gpu_buffer buffer;
    VkCommandPool pool;
    VkCommandBuffer commands;
};

/* False: gpu->problem says why, and demo_readback_destroy() is still due. */
bool demo_readback_create(struct demo_readback *readback, struct gpu *gpu, bool from_other_process);
void demo_readback_destroy(struct demo_readback *readback);

/* Submits the copy of an image. The last copy must be done. */
bool demo_readback_submit(struct demo_readback *readback, const struct gpu_image *image);

/* The DEMO_PIXELS pixels of the last copy that is done. */
const uint32_t *demo_readback_pixels(const struct demo_readback *readback);

#endif
