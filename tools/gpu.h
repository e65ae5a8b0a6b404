/* SPDX-License-Identifier: MIT
 *
 * One Vulkan device with one queue, and the library's view of it.
 */
#ifndef SYNCPOINT_TOOLS_GPU_H
#define SYNCPOINT_TOOLS_GPU_H

#include "vk_api.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <syncpoint/vulkan.h>

/* Which device: the first that fits everything that is set. */
struct gpu_choice {
    const char *name_part; /* in the device's name, in any case; NULL: any                      */
    const uint8_t *id;     /* device UUID, then driver UUID; NULL: any                          */
    bool validate;         /* with VK_LAYER_KHRONOS_validation                                  */
};

#define GPU_ID_SIZE ((size_t)2 * VK_UUID_SIZE)

struct gpu {
    struct vk_api vk;
    char problem[512]; /* why the last call failed */

    VkInstance instance;
    uint32_t api_version;
    VkDebugUtilsMessengerEXT messenger;
    atomic_uint validation_messages;

    VkPhysicalDevice physical;
    char device_name[VK_MAX_PHYSICAL_DEVICE_NAME_SIZE];
    char driver_name[VK_MAX_DRIVER_NAME_SIZE + VK_MAX_DRIVER_INFO_SIZE];
    uint8_t id[GPU_ID_SIZE];
    VkPhysicalDeviceMemoryProperties memory;

    VkDevice device;
    uint32_t queue_family;
    VkQueue queue;
    pthread_mutex_t queue_lock; /* around every call on `queue`, the library's too */
    bool has_memory_fd;         /* VK_KHR_external_memory_fd is enabled                          */

    sp_vk_device *sync; /* the library's view */
};

/* Makes all of it. On failure `problem` says why, and gpu_close() is still due. */
bool gpu_open(struct gpu *gpu, const struct gpu_choice *choice);

/* Ends all of it. False: work that the library submitted is stuck; nothing was freed then, and all
 * that is left is to end the process without another word to the driver. */
bool gpu_close(struct gpu *gpu);

/* The library's view of the queue, under the queue's lock. NULL: `problem` says why. */
sp_vk_queue *gpu_sync_queue(struct gpu *gpu);

/* Submits one command buffer, under the queue's lock. */
bool gpu_submit(struct gpu *gpu, VkCommandBuffer commands);

/* Sets `problem` if result is not VK_SUCCESS, or status not SP_OK. Returns whether it is. */
bool gpu_check(struct gpu *gpu, VkResult result, const char *call);
bool gpu_check_sync(struct gpu *gpu, sp_status status, const char *call);

/* A type among `allowed` (bits) that has `required`, and `wished` too if there is one. UINT32_MAX:
 * none, `problem` is set. */
uint32_t gpu_memory_type(struct gpu *gpu, uint32_t allowed, VkMemoryPropertyFlags required,
                         VkMemoryPropertyFlags wished);

#endif
