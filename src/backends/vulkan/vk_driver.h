/* SPDX-License-Identifier: MIT
 *
 * The entry points of one VkDevice, and what the device says about itself. Each device object has
 * its own table, so that two loaders, two devices and a test's double can live side by side.
 */
#ifndef SP_VULKAN_VK_DRIVER_H
#define SP_VULKAN_VK_DRIVER_H

#include <syncpoint/vulkan.h>

typedef struct sp_vk_driver {
    PFN_vkCreateSemaphore create_semaphore;
    PFN_vkDestroySemaphore destroy_semaphore;
    PFN_vkGetSemaphoreCounterValue get_counter_value;
    PFN_vkWaitSemaphores wait_semaphores;
    PFN_vkSignalSemaphore signal_semaphore;
    PFN_vkQueueSubmit queue_submit;
    PFN_vkQueueSubmit2 queue_submit2;               /* NULL: synchronization2 is not enabled    */
    PFN_vkGetSemaphoreFdKHR get_semaphore_fd;       /* NULL: not enabled                        */
    PFN_vkImportSemaphoreFdKHR import_semaphore_fd; /* NULL: not enabled                        */
    PFN_vkGetPhysicalDeviceExternalSemaphoreProperties get_external_properties;

    VkDriverId driver_id; /* 0: not told                                                        */
    bool is_nvidia;       /* NVIDIA's own driver                                                */
    bool binary_waits_block; /* in vkQueueSubmit, until the signal has run                      */
    uint64_t max_difference;
} sp_vk_driver;

/* Fills the table. NOT_SUPPORTED names what is missing. */
sp_status sp_vk_driver_load(sp_vk_driver *driver, const sp_vk_device_desc *desc);

#endif
