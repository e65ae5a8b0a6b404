/* SPDX-License-Identifier: MIT
 *
 * The Vulkan device with what the hand-off needs enabled, and the library's view of it.
 */
#include "commands.h"
#include "gpu_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What create_device() enables. */
struct wishes {
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceSynchronization2Features sync2;
    VkPhysicalDeviceFeatures2 features;
    const char *extensions[4];
    uint32_t extension_count;
};

static bool pick_queue_family(struct gpu *gpu)
{
    VkQueueFamilyProperties families[16];
    uint32_t count = sizeof families / sizeof families[0];
    gpu->vk.GetPhysicalDeviceQueueFamilyProperties(gpu->physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        /* A compute queue can copy, too. */
        if (families[i].queueFlags & VK_QUEUE_COMPUTE_BIT) {
            gpu->queue_family = i;
            return true;
        }
    }
    snprintf(gpu->problem, sizeof gpu->problem, "the device has no compute queue");
    return false;
}

/* Enables those of the wanted extensions that there are. */
static bool wish_extensions(struct gpu *gpu, struct wishes *wishes)
{
    uint32_t count = 0;
    gpu->vk.EnumerateDeviceExtensionProperties(gpu->physical, NULL, &count, NULL);
    VkExtensionProperties *all = calloc(count + 1, sizeof *all);
    if (!all)
        return gpu_check(gpu, VK_ERROR_OUT_OF_HOST_MEMORY, "calloc");
    gpu->vk.EnumerateDeviceExtensionProperties(gpu->physical, NULL, &count, all);
    const char *wanted[4] = {VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME,
                             VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME};
    uint32_t wanted_count = 2;
    if (gpu->api_version < VK_API_VERSION_1_2)
        wanted[wanted_count++] = VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME;
    if (gpu->api_version < VK_API_VERSION_1_3)
        wanted[wanted_count++] = VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME;
    for (uint32_t w = 0; w < wanted_count; w++) {
        for (uint32_t i = 0; i < count; i++) {
            if (strcmp(all[i].extensionName, wanted[w]) == 0)
                wishes->extensions[wishes->extension_count++] = wanted[w];
        }
    }
    free(all);
    return true;
}

static bool wishes_extension(const struct wishes *wishes, const char *name)
{
    for (uint32_t i = 0; i < wishes->extension_count; i++) {
        if (strcmp(wishes->extensions[i], name) == 0)
            return true;
    }
    return false;
}

/* The two features, as far as the device has them, and nothing else. */
static bool wish_features(struct gpu *gpu, struct wishes *wishes)
{
    wishes->timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    wishes->sync2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES;
    wishes->features.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2;
    wishes->features.pNext = &wishes->timeline;
    if (gpu->api_version >= VK_API_VERSION_1_3 ||
        wishes_extension(wishes, VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME))
        wishes->timeline.pNext = &wishes->sync2;
    if (gpu->api_version >= VK_API_VERSION_1_2 ||
        wishes_extension(wishes, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME))
        gpu->vk.GetPhysicalDeviceFeatures2(gpu->physical, &wishes->features);
    memset(&wishes->features.features, 0, sizeof wishes->features.features);
    if (wishes->timeline.timelineSemaphore)
        return true;
    snprintf(gpu->problem, sizeof gpu->problem, "%s has no timeline semaphores", gpu->device_name);
    return false;
}

static void log_to_stderr(void *user, sp_log_level level, const char *message)
{
    (void)user;
    if (level <= SP_LOG_WARN)
        tool_error("library: %s", message);
}

static bool create_sync_device(struct gpu *gpu, const VkDeviceCreateInfo *create_info)
{
    const sp_vk_device_desc desc = {
        .size = sizeof desc,
        .instance = gpu->instance,
        .physical_device = gpu->physical,
        .device = gpu->device,
        .get_instance_proc_addr = gpu->vk.GetInstanceProcAddr,
        .create_info = create_info,
        .api_version = gpu->api_version,
        .log = {log_to_stderr, NULL},
    };
    return gpu_check_sync(gpu, sp_vk_device_create(&desc, &gpu->sync), "sp_vk_device_create");
}

static bool create_device(struct gpu *gpu, const struct wishes *wishes)
{
    const float priority = 1.0f;
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = gpu->queue_family,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &wishes->features,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = wishes->extension_count,
        .ppEnabledExtensionNames = wishes->extensions,
    };
    const VkResult result = gpu->vk.CreateDevice(gpu->physical, &info, NULL, &gpu->device);
    if (!gpu_check(gpu, result, "vkCreateDevice"))
        return false;
    const char *missing = vk_api_load_device(&gpu->vk, gpu->device);
    if (missing) {
        snprintf(gpu->problem, sizeof gpu->problem, "the device has no %s", missing);
        return false;
    }
    gpu->vk.GetDeviceQueue(gpu->device, gpu->queue_family, 0, &gpu->queue);
    return create_sync_device(gpu, &info);
}

bool gpu_open_device(struct gpu *gpu)
{
    struct wishes wishes = {0};
    if (!pick_queue_family(gpu) || !wish_extensions(gpu, &wishes) || !wish_features(gpu, &wishes))
        return false;
    gpu->has_memory_fd = wishes_extension(&wishes, VK_KHR_EXTERNAL_MEMORY_FD_EXTENSION_NAME);
    return create_device(gpu, &wishes);
}
