/* SPDX-License-Identifier: MIT */
#include "backends/vulkan/vk_driver.h"

#include "core/core.h"

#include <string.h>

#define VENDOR_NVIDIA 0x10DE

/* What is enabled on the device, as far as it decides which functions may be called. */
typedef struct enabled {
    uint32_t api_version;
    bool timeline_feature;
    bool timeline_extension;
    bool synchronization2_feature;
    bool synchronization2_extension;
    bool fd_extension;
} enabled;

static bool has_extension(const VkDeviceCreateInfo *info, const char *name)
{
    for (uint32_t i = 0; i < info->enabledExtensionCount; i++) {
        if (strcmp(info->ppEnabledExtensionNames[i], name) == 0)
            return true;
    }
    return false;
}

static void read_feature(const VkBaseInStructure *link, enabled *on)
{
    switch (link->sType) {
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES:
        on->timeline_feature |=
            ((const VkPhysicalDeviceVulkan12Features *)(const void *)link)->timelineSemaphore;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES:
        on->timeline_feature |=
            ((const VkPhysicalDeviceTimelineSemaphoreFeatures *)(const void *)link)
                ->timelineSemaphore;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES:
        on->synchronization2_feature |=
            ((const VkPhysicalDeviceVulkan13Features *)(const void *)link)->synchronization2;
        break;
    case VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES:
        on->synchronization2_feature |=
            ((const VkPhysicalDeviceSynchronization2Features *)(const void *)link)
                ->synchronization2;
        break;
    default:
        break;
    }
}

static void read_create_info(const VkDeviceCreateInfo *info, enabled *on)
{
    if (!info) {
        on->timeline_feature = true;
        on->timeline_extension = true;
        on->fd_extension = true;
        return;
    }
    on->timeline_extension = has_extension(info, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME);
    on->synchronization2_extension = has_extension(info, VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME);
    on->fd_extension = has_extension(info, VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME);
    for (const VkBaseInStructure *link = info->pNext; link; link = link->pNext)
        read_feature(link, on);
}

static sp_status check_enabled(const enabled *on)
{
    if (on->api_version < VK_API_VERSION_1_1) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_vk_device_create: Vulkan 1.1 or later is needed, "
                       "of the instance and of the device");
    }
    if (!on->timeline_feature) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_vk_device_create: the timelineSemaphore feature is not enabled: chain "
                       "VkPhysicalDeviceTimelineSemaphoreFeatures to the VkDeviceCreateInfo");
    }
    if (on->api_version < VK_API_VERSION_1_2 && !on->timeline_extension) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_vk_device_create: below Vulkan 1.2, VK_KHR_timeline_semaphore must be "
                       "enabled");
    }
    return SP_OK;
}

/* Loading: `missing` keeps the first required function that is not there. */
typedef struct loader {
    const sp_vk_device_desc *desc;
    PFN_vkGetDeviceProcAddr get_device_proc_addr;
    const char *missing;
} loader;

static PFN_vkVoidFunction note_missing(loader *load, PFN_vkVoidFunction function, const char *name)
{
    if (!function && !load->missing)
        load->missing = name;
    return function;
}

static PFN_vkVoidFunction instance_function(loader *load, const char *name)
{
    return note_missing(load, load->desc->get_instance_proc_addr(load->desc->instance, name), name);
}

static PFN_vkVoidFunction optional_function(loader *load, const char *name)
{
    return load->get_device_proc_addr(load->desc->device, name);
}

static PFN_vkVoidFunction device_function(loader *load, const char *name)
{
    return note_missing(load, optional_function(load, name), name);
}

/* By its core name, or by the one that it had as an extension. Nobody said the version: by either. */
static PFN_vkVoidFunction promoted_function(loader *load, bool core, const char *core_name,
                                            const char *extension_name)
{
    const char *name = core ? core_name : extension_name;
    PFN_vkVoidFunction function = optional_function(load, name);
    if (!function && load->desc->api_version == 0)
        function = optional_function(load, core ? extension_name : core_name);
    return note_missing(load, function, name);
}

static sp_status fail_missing(const loader *load)
{
    return sp_fail(SP_ERROR_NOT_SUPPORTED,
                   "sp_vk_device_create: %s is missing; check that api_version is the instance's",
                   load->missing);
}

static void load_device(loader *load, const enabled *on, sp_vk_driver *driver)
{
    bool core12 = on->api_version >= VK_API_VERSION_1_2;
    bool core13 = on->api_version >= VK_API_VERSION_1_3;

    driver->create_semaphore = (PFN_vkCreateSemaphore)device_function(load, "vkCreateSemaphore");
    driver->destroy_semaphore = (PFN_vkDestroySemaphore)device_function(load, "vkDestroySemaphore");
    driver->queue_submit = (PFN_vkQueueSubmit)device_function(load, "vkQueueSubmit");
    driver->get_counter_value = (PFN_vkGetSemaphoreCounterValue)promoted_function(
        load, core12, "vkGetSemaphoreCounterValue", "vkGetSemaphoreCounterValueKHR");
    driver->wait_semaphores = (PFN_vkWaitSemaphores)promoted_function(
        load, core12, "vkWaitSemaphores", "vkWaitSemaphoresKHR");
    driver->signal_semaphore = (PFN_vkSignalSemaphore)promoted_function(
        load, core12, "vkSignalSemaphore", "vkSignalSemaphoreKHR");

    if (on->synchronization2_feature && (core13 || on->synchronization2_extension)) {
        driver->queue_submit2 = (PFN_vkQueueSubmit2)promoted_function(
            load, core13, "vkQueueSubmit2", "vkQueueSubmit2KHR");
    }
    if (on->fd_extension) {
        driver->get_semaphore_fd =
            (PFN_vkGetSemaphoreFdKHR)optional_function(load, "vkGetSemaphoreFdKHR");
        driver->import_semaphore_fd =
            (PFN_vkImportSemaphoreFdKHR)optional_function(load, "vkImportSemaphoreFdKHR");
    }
}

static void read_properties(loader *load, uint32_t device_version, sp_vk_driver *driver)
{
    PFN_vkGetPhysicalDeviceProperties2 get = (PFN_vkGetPhysicalDeviceProperties2)instance_function(
        load, "vkGetPhysicalDeviceProperties2");
    if (!get)
        return;
    VkPhysicalDeviceDriverProperties named = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
    };
    VkPhysicalDeviceTimelineSemaphoreProperties timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_PROPERTIES,
        /* Core in 1.2 of the device; before that it needs an extension that we did not ask about. */
        .pNext = device_version >= VK_API_VERSION_1_2 ? &named : NULL,
    };
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &timeline,
    };
    get(load->desc->physical_device, &properties);
    driver->max_difference = timeline.maxTimelineSemaphoreValueDifference;
    driver->driver_id = named.driverID;
    driver->binary_waits_block = named.driverID == VK_DRIVER_ID_MESA_LLVMPIPE;
    driver->is_nvidia = named.driverID == VK_DRIVER_ID_NVIDIA_PROPRIETARY ||
                        (!named.driverID && properties.properties.vendorID == VENDOR_NVIDIA);
}

/* The lower of the instance's and the device's, without the patch. */
static uint32_t effective_version(loader *load, uint32_t *device_version)
{
    PFN_vkGetPhysicalDeviceProperties get =
        (PFN_vkGetPhysicalDeviceProperties)instance_function(load, "vkGetPhysicalDeviceProperties");
    if (!get)
        return 0;
    VkPhysicalDeviceProperties properties;
    get(load->desc->physical_device, &properties);
    *device_version = properties.apiVersion;
    uint32_t told = load->desc->api_version;
    uint32_t lower = told && told < properties.apiVersion ? told : properties.apiVersion;
    return VK_MAKE_API_VERSION(0, VK_API_VERSION_MAJOR(lower), VK_API_VERSION_MINOR(lower), 0);
}

/* Nobody said which version the instance is of. What is used under its extension's name belongs to
 * the lower version: then nothing newer than that is called. */
static void guess_version(loader *load, enabled *on)
{
    bool told = load->desc->api_version != 0;
    bool by_extension = on->timeline_extension && optional_function(load, "vkWaitSemaphoresKHR");
    if (!told && by_extension && on->api_version > VK_API_VERSION_1_1)
        on->api_version = VK_API_VERSION_1_1;
}

sp_status sp_vk_driver_load(sp_vk_driver *driver, const sp_vk_device_desc *desc)
{
    loader load = {.desc = desc};
    uint32_t device_version = 0;
    enabled on = {.api_version = effective_version(&load, &device_version)};
    memset(driver, 0, sizeof(*driver));
    read_create_info(desc->create_info, &on);
    load.get_device_proc_addr =
        (PFN_vkGetDeviceProcAddr)instance_function(&load, "vkGetDeviceProcAddr");
    if (load.missing)
        return fail_missing(&load);
    guess_version(&load, &on);
    sp_status status = check_enabled(&on);
    if (status != SP_OK)
        return status;
    driver->get_external_properties =
        (PFN_vkGetPhysicalDeviceExternalSemaphoreProperties)instance_function(
            &load, "vkGetPhysicalDeviceExternalSemaphoreProperties");
    load_device(&load, &on, driver);
    read_properties(&load, device_version, driver);
    return load.missing ? fail_missing(&load) : SP_OK;
}
