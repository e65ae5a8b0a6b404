/* SPDX-License-Identifier: MIT */
#include "gpu.h"

#include "commands.h"
#include "gpu_internal.h"

#include <stdio.h>
#include <string.h>

#define CLOSE_TIMEOUT_NS UINT64_C(3000000000)

bool gpu_check(struct gpu *gpu, VkResult result, const char *call)
{
    if (result == VK_SUCCESS)
        return true;
    snprintf(gpu->problem, sizeof gpu->problem, "%s gave VkResult %d", call, (int)result);
    return false;
}

bool gpu_check_sync(struct gpu *gpu, sp_status status, const char *call)
{
    if (status == SP_OK)
        return true;
    const char *text = status < 0 ? sp_last_error()->message : sp_status_text(status);
    snprintf(gpu->problem, sizeof gpu->problem, "%s: %s: %s", call, sp_status_name(status), text);
    return false;
}

bool gpu_open(struct gpu *gpu, const struct gpu_choice *choice)
{
    memset(gpu, 0, sizeof *gpu);
    pthread_mutex_init(&gpu->queue_lock, NULL);
    return gpu_open_instance(gpu, choice) && gpu_open_device(gpu);
}

bool gpu_close(struct gpu *gpu)
{
    if (!gpu_check_sync(gpu, sp_vk_device_destroy(gpu->sync, CLOSE_TIMEOUT_NS),
                        "sp_vk_device_destroy"))
        return false;
    gpu->sync = NULL;
    if (gpu->device && gpu->vk.DestroyDevice)
        gpu->vk.DestroyDevice(gpu->device, NULL);
    gpu->device = VK_NULL_HANDLE;
    gpu_close_instance(gpu);
    pthread_mutex_destroy(&gpu->queue_lock);
    return true;
}

static void lock_queue(void *user)
{
    pthread_mutex_lock(&((struct gpu *)user)->queue_lock);
}

static void unlock_queue(void *user)
{
    pthread_mutex_unlock(&((struct gpu *)user)->queue_lock);
}

sp_vk_queue *gpu_sync_queue(struct gpu *gpu)
{
    const sp_vk_queue_desc desc = {
        .size = sizeof desc,
        .queue = gpu->queue,
        .lock = lock_queue,
        .unlock = unlock_queue,
        .user = gpu,
    };
    sp_vk_queue *queue = NULL;
    gpu_check_sync(gpu, sp_vk_queue_create(gpu->sync, &desc, &queue), "sp_vk_queue_create");
    return queue;
}

bool gpu_submit(struct gpu *gpu, VkCommandBuffer commands)
{
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .commandBufferCount = 1,
        .pCommandBuffers = &commands,
    };
    lock_queue(gpu);
    const VkResult result = gpu->vk.QueueSubmit(gpu->queue, 1, &submit, VK_NULL_HANDLE);
    unlock_queue(gpu);
    return gpu_check(gpu, result, "vkQueueSubmit");
}

uint32_t gpu_memory_type(struct gpu *gpu, uint32_t allowed, VkMemoryPropertyFlags required,
                         VkMemoryPropertyFlags wished)
{
    uint32_t found = UINT32_MAX;
    for (uint32_t i = 0; i < gpu->memory.memoryTypeCount; i++) {
        const VkMemoryPropertyFlags flags = gpu->memory.memoryTypes[i].propertyFlags;
        if (!(allowed >> i & 1) || (flags & required) != required)
            continue;
        if ((flags & wished) == wished)
            return i;
        if (found == UINT32_MAX)
            found = i;
    }
    if (found == UINT32_MAX)
        snprintf(gpu->problem, sizeof gpu->problem, "the device has no suitable memory type");
    return found;
}
