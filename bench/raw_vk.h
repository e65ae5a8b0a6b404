/* SPDX-License-Identifier: MIT
 * The driver's own entry points, for the raw calls that ours are measured against. */
#ifndef SP_BENCH_RAW_VK_H
#define SP_BENCH_RAW_VK_H

#include <stdbool.h>
#include <vulkan/vulkan_core.h>

typedef struct raw_vk {
    VkDevice device;
    VkQueue queue;
    PFN_vkCreateSemaphore create_semaphore;
    PFN_vkDestroySemaphore destroy_semaphore;
    PFN_vkGetSemaphoreCounterValue counter_value;
    PFN_vkWaitSemaphores wait_semaphores;
    PFN_vkSignalSemaphore signal_semaphore;
    PFN_vkQueueSubmit queue_submit;
    PFN_vkGetSemaphoreFdKHR get_fd;       /* NULL without VK_KHR_external_semaphore_fd */
    PFN_vkImportSemaphoreFdKHR import_fd; /* NULL without VK_KHR_external_semaphore_fd */
} raw_vk;

bool raw_vk_load(raw_vk *vk, VkDevice device, VkQueue queue, PFN_vkGetDeviceProcAddr get);

VkSemaphore raw_vk_timeline(const raw_vk *vk, uint64_t initial_value);
VkSemaphore raw_vk_binary(const raw_vk *vk, VkExternalSemaphoreHandleTypeFlags export_types);
VkResult raw_vk_wait(const raw_vk *vk, VkSemaphore timeline, uint64_t value);
VkResult raw_vk_signal(const raw_vk *vk, VkSemaphore timeline, uint64_t value);

#endif
