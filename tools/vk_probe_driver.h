/* SPDX-License-Identifier: MIT
 * Opens a Vulkan driver, and devices on it as the library wants them. For probing and measuring:
 * one driver a process, chosen with vkp_use_icd(). */
#ifndef SP_TOOLS_VK_PROBE_DRIVER_H
#define SP_TOOLS_VK_PROBE_DRIVER_H

#include <syncpoint/vulkan.h>

#define VKP_MAX_DEVICES 16

/* Why something did not work: one sentence. */
typedef struct vkp_why {
    char text[256];
} vkp_why;

/* Always false, so that a caller can return it. */
bool vkp_fail(vkp_why *why, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* As vkp_fail(), with the library's last error. */
bool vkp_fail_status(vkp_why *why, const char *doing, sp_status status);

typedef struct vkp_driver {
    PFN_vkGetInstanceProcAddr get_instance_proc_addr;
    VkInstance instance;
    uint32_t loader_version;
    uint32_t api_version; /* what the instance was made with */
    uint32_t device_count;
    VkPhysicalDevice devices[VKP_MAX_DEVICES];
    PFN_vkDestroyInstance destroy_instance;
    PFN_vkGetPhysicalDeviceProperties2 get_properties2;
    PFN_vkGetPhysicalDeviceFeatures2 get_features2;
    PFN_vkGetPhysicalDeviceQueueFamilyProperties get_queue_families;
    PFN_vkEnumerateDeviceExtensionProperties enumerate_extensions;
    PFN_vkCreateDevice create_device;
    PFN_vkGetDeviceProcAddr get_device_proc_addr;
} vkp_driver;

/* Opens the loader, which touches no driver yet. It stays open to the end of the process: some
 * drivers do not survive being unloaded. */
bool vkp_loader_open(vkp_driver *driver, vkp_why *why);

/* After that: makes an instance. No device is not an error: device_count is then 0. */
bool vkp_driver_open(vkp_driver *driver, vkp_why *why);
void vkp_driver_close(vkp_driver *driver);

typedef struct vkp_device {
    VkDevice device;
    VkQueue queue;
    PFN_vkGetDeviceProcAddr get_proc_addr;
    sp_vk_device *sp_device;
    sp_vk_queue *sp_queue;
} vkp_device;

/* A VkDevice with one queue, and the library's view of both. */
bool vkp_device_open(const vkp_driver *driver, VkPhysicalDevice physical, vkp_device *out,
                     vkp_why *why);
bool vkp_device_close(vkp_device *device, vkp_why *why);

#endif
