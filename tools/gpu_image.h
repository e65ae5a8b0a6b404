/* SPDX-License-Identifier: MIT
 *
 * The images of the ring, which another process may share, and buffers.
 */
#ifndef SYNCPOINT_TOOLS_GPU_IMAGE_H
#define SYNCPOINT_TOOLS_GPU_IMAGE_H

#include "gpu.h"

/* Integers, so that what the GPU stores is what the CPU computes, bit for bit. */
#define GPU_IMAGE_FORMAT VK_FORMAT_R8G8B8A8_UINT

/* An image of the demo's size, with memory of its own. */
struct gpu_image {
    VkImage image;
    VkImageView view;
    VkDeviceMemory memory;
    VkDeviceSize memory_size;
    uint32_t memory_type;
};

enum gpu_sharing {
    GPU_NOT_SHARED, /* within one device                                                        */
    GPU_EXPORT,     /* gpu_image_export() will give the memory away                             */
    GPU_IMPORT      /* memory of another process                                                */
};

/* Can such images cross as opaque fds? If not, `problem` says why. */
bool gpu_can_share_images(struct gpu *gpu);

/* With GPU_IMPORT: memory_size, memory_type and fd are the exporter's, and are checked first. The
 * fd is taken, on success only; otherwise it is -1. False: `problem` says why, and
 * gpu_image_destroy() is still due. */
bool gpu_image_create(struct gpu *gpu, enum gpu_sharing sharing, int fd, struct gpu_image *image);
void gpu_image_destroy(struct gpu *gpu, struct gpu_image *image);

/* A new fd of the image's memory; -1: `problem` says why. */
int gpu_image_export(struct gpu *gpu, const struct gpu_image *image);

struct gpu_buffer {
    VkBuffer buffer;
    VkDeviceMemory memory;
    void *mapped; /* NULL if it was not asked for */
};

bool gpu_buffer_create(struct gpu *gpu, VkDeviceSize size, VkBufferUsageFlags usage, bool map,
                       struct gpu_buffer *buffer);
void gpu_buffer_destroy(struct gpu *gpu, struct gpu_buffer *buffer);

#endif
