/* SPDX-License-Identifier: MIT */
#include "demo_readback.h"

#include <string.h>

bool demo_readback_create(struct demo_readback *readback, struct gpu *gpu, bool from_other_process)
{
    *readback = (struct demo_readback){.gpu = gpu, .from_other_process = from_other_process};
    if (!gpu_buffer_create(gpu, DEMO_PIXELS * sizeof(uint32_t), VK_BUFFER_USAGE_TRANSFER_DST_BIT,
                           true, &readback->buffer))
        return false;
    const VkCommandPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = gpu->queue_family,
    };
    if (!gpu_check(gpu, gpu->vk.CreateCommandPool(gpu->device, &pool_info, NULL, &readback->pool),
                   "vkCreateCommandPool"))
        return false;
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = readback->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    return gpu_check(gpu, gpu->vk.AllocateCommandBuffers(gpu->device, &info, &readback->commands),
                     "vkAllocateCommandBuffers");
}

void demo_readback_destroy(struct demo_readback *readback)
{
    struct gpu *gpu = readback->gpu;
    if (!gpu)
        return;
    if (readback->pool)
        gpu->vk.DestroyCommandPool(gpu->device, readback->pool, NULL);
    gpu_buffer_destroy(gpu, &readback->buffer);
    memset(readback, 0, sizeof *readback);
}

/* The other half of the producer's end_image(), with the same layouts. Within one device there is
 * no other half. */
static void acquire_image(struct demo_readback *readback, VkImage image)
{
    const VkImageMemoryBarrier acquire = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_MEMORY_BARRIER,
        .dstAccessMask = VK_ACCESS_TRANSFER_READ_BIT,
        .oldLayout = VK_IMAGE_LAYOUT_GENERAL,
        .newLayout = VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
        .srcQueueFamilyIndex = VK_QUEUE_FAMILY_EXTERNAL,
        .dstQueueFamilyIndex = readback->gpu->queue_family,
        .image = image,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1},
    };
    readback->gpu->vk.CmdPipelineBarrier(readback->commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                                         VK_PIPELINE_STAGE_TRANSFER_BIT, 0, 0, NULL, 0, NULL, 1,
                                         &acquire);
}

static void copy_image(struct demo_readback *readback, VkImage image)
{
    const struct vk_api *vk = &readback->gpu->vk;
    const VkBufferImageCopy region = {
        .imageSubresource = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 0, 1},
        .imageExtent = {DEMO_WIDTH, DEMO_HEIGHT, 1},
    };
    vk->CmdCopyImageToBuffer(readback->commands, image, VK_IMAGE_LAYOUT_TRANSFER_SRC_OPTIMAL,
                             readback->buffer.buffer, 1, &region);
    const VkMemoryBarrier to_host = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = VK_ACCESS_TRANSFER_WRITE_BIT,
        .dstAccessMask = VK_ACCESS_HOST_READ_BIT,
    };
    vk->CmdPipelineBarrier(readback->commands, VK_PIPELINE_STAGE_TRANSFER_BIT,
                           VK_PIPELINE_STAGE_HOST_BIT, 0, 1, &to_host, 0, NULL, 0, NULL);
}

bool demo_readback_submit(struct demo_readback *readback, const struct gpu_image *image)
{
    struct gpu *gpu = readback->gpu;
    const VkCommandBufferBeginInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = VK_COMMAND_BUFFER_USAGE_ONE_TIME_SUBMIT_BIT,
    };
    if (!gpu_check(gpu, gpu->vk.BeginCommandBuffer(readback->commands, &info),
                   "vkBeginCommandBuffer"))
        return false;
    if (readback->from_other_process)
        acquire_image(readback, image->image);
    copy_image(readback, image->image);
    return gpu_check(gpu, gpu->vk.EndCommandBuffer(readback->commands), "vkEndCommandBuffer") &&
           gpu_submit(gpu, readback->commands);
}

const uint32_t *demo_readback_pixels(const struct demo_readback *readback)
{
    return readback->buffer.mapped;
}
