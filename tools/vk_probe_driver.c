/* SPDX-License-Identifier: MIT */
#include "vk_probe_driver.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLOSE_TIMEOUT_NS UINT64_C(5000000000)

bool vkp_fail(vkp_why *why, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why->text, sizeof why->text, format, arguments);
    va_end(arguments);
    return false;
}

bool vkp_fail_status(vkp_why *why, const char *doing, sp_status status)
{
    if (status < 0) {
        return vkp_fail(why, "%s: %s: %.160s", doing, sp_status_name(status),
                        sp_last_error()->message);
    }
    return vkp_fail(why, "%s: %s", doing, sp_status_name(status));
}

bool vkp_loader_open(vkp_driver *driver, vkp_why *why)
{
    memset(driver, 0, sizeof *driver);
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        return vkp_fail(why, "no Vulkan loader: %s", dlerror());
    void *symbol = dlsym(library, "vkGetInstanceProcAddr");
    if (!symbol)
        return vkp_fail(why, "the Vulkan loader has no vkGetInstanceProcAddr");
    memcpy(&driver->get_instance_proc_addr, &symbol, sizeof symbol);

    PFN_vkEnumerateInstanceVersion enumerate_version =
        (PFN_vkEnumerateInstanceVersion)driver->get_instance_proc_addr(
            NULL, "vkEnumerateInstanceVersion");
    driver->loader_version = VK_API_VERSION_1_0;
    if (enumerate_version)
        enumerate_version(&driver->loader_version);
    if (driver->loader_version < VK_API_VERSION_1_1)
        return vkp_fail(why, "the Vulkan loader is older than 1.1");
    return true;
}

static bool make_instance(vkp_driver *driver, vkp_why *why)
{
    driver->api_version =
        driver->loader_version < VK_API_VERSION_1_3 ? driver->loader_version : VK_API_VERSION_1_3;
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "syncpoint",
        .apiVersion = driver->api_version,
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
    };
    PFN_vkCreateInstance create =
        (PFN_vkCreateInstance)driver->get_instance_proc_addr(NULL, "vkCreateInstance");
    VkResult result =
        create ? create(&info, NULL, &driver->instance) : VK_ERROR_INITIALIZATION_FAILED;
    if (result == VK_ERROR_INCOMPATIBLE_DRIVER)
        return vkp_fail(why, "the driver does not load here");
    return result == VK_SUCCESS || vkp_fail(why, "vkCreateInstance: %d", result);
}

#define LOAD(field, type, name)                                                                    \
    (driver->field = (type)driver->get_instance_proc_addr(driver->instance, name))

static bool load_instance(vkp_driver *driver, vkp_why *why)
{
    PFN_vkEnumeratePhysicalDevices enumerate =
        (PFN_vkEnumeratePhysicalDevices)driver->get_instance_proc_addr(
            driver->instance, "vkEnumeratePhysicalDevices");
    if (!LOAD(destroy_instance, PFN_vkDestroyInstance, "vkDestroyInstance") || !enumerate ||
        !LOAD(get_properties2, PFN_vkGetPhysicalDeviceProperties2,
              "vkGetPhysicalDeviceProperties2") ||
        !LOAD(get_features2, PFN_vkGetPhysicalDeviceFeatures2, "vkGetPhysicalDeviceFeatures2") ||
        !LOAD(get_queue_families, PFN_vkGetPhysicalDeviceQueueFamilyProperties,
              "vkGetPhysicalDeviceQueueFamilyProperties") ||
        !LOAD(enumerate_extensions, PFN_vkEnumerateDeviceExtensionProperties,
              "vkEnumerateDeviceExtensionProperties") ||
        !LOAD(create_device, PFN_vkCreateDevice, "vkCreateDevice") ||
        !LOAD(get_device_proc_addr, PFN_vkGetDeviceProcAddr, "vkGetDeviceProcAddr"))
        return vkp_fail(why, "the driver lacks functions of Vulkan 1.1");
    driver->device_count = VKP_MAX_DEVICES;
    VkResult result = enumerate(driver->instance, &driver->device_count, driver->devices);
    if (result == VK_SUCCESS || result == VK_INCOMPLETE)
        return true;
    driver->device_count = 0;
    /* Some drivers say so when there is none of their devices. */
    return result == VK_ERROR_INITIALIZATION_FAILED ||
           vkp_fail(why, "vkEnumeratePhysicalDevices: %d", result);
}

bool vkp_driver_open(vkp_driver *driver, vkp_why *why)
{
    if (make_instance(driver, why) && load_instance(driver, why))
        return true;
    vkp_driver_close(driver);
    return false;
}

void vkp_driver_close(vkp_driver *driver)
{
    if (driver->instance && driver->destroy_instance)
        driver->destroy_instance(driver->instance, NULL);
    driver->instance = NULL;
}

/* What a device can do that the library has use for. */
typedef struct wanted {
    const char *extensions[3];
    uint32_t extension_count;
    uint32_t api_version; /* the lower of the instance's and the device's */
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline;
    VkPhysicalDeviceSynchronization2Features synchronization2;
} wanted;

static void want_extensions(const vkp_driver *driver, VkPhysicalDevice physical, wanted *want)
{
    static const struct {
        const char *name;
        uint32_t core_since; /* not needed from this version on; 0: always needed */
    } useful[] = {
        {VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME, 0},
        {VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME, VK_API_VERSION_1_2},
        {VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME, VK_API_VERSION_1_3},
    };
    uint32_t count = 0;
    driver->enumerate_extensions(physical, NULL, &count, NULL);
    VkExtensionProperties *have = calloc(count ? count : 1, sizeof *have);
    if (!have || driver->enumerate_extensions(physical, NULL, &count, have) < 0)
        count = 0;
    for (size_t u = 0; u < sizeof useful / sizeof *useful; u++) {
        if (useful[u].core_since && want->api_version >= useful[u].core_since)
            continue;
        for (uint32_t i = 0; i < count; i++) {
            if (strcmp(have[i].extensionName, useful[u].name) == 0)
                want->extensions[want->extension_count++] = useful[u].name;
        }
    }
    free(have);
}

static bool wants(const wanted *want, const char *extension)
{
    for (uint32_t i = 0; i < want->extension_count; i++) {
        if (strcmp(want->extensions[i], extension) == 0)
            return true;
    }
    return false;
}

/* A structure of an extension that is not there must not be in the chain. */
static void want_features(const vkp_driver *driver, VkPhysicalDevice physical, wanted *want)
{
    VkPhysicalDeviceFeatures2 features = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2};
    want->timeline.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES;
    want->synchronization2.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES;
    if (want->api_version >= VK_API_VERSION_1_2 ||
        wants(want, VK_KHR_TIMELINE_SEMAPHORE_EXTENSION_NAME))
        features.pNext = &want->timeline;
    if (features.pNext && (want->api_version >= VK_API_VERSION_1_3 ||
                           wants(want, VK_KHR_SYNCHRONIZATION_2_EXTENSION_NAME)))
        want->timeline.pNext = &want->synchronization2;
    driver->get_features2(physical, &features);
}

static uint32_t pick_queue_family(const vkp_driver *driver, VkPhysicalDevice physical)
{
    VkQueueFamilyProperties families[32];
    uint32_t count = sizeof families / sizeof *families;
    driver->get_queue_families(physical, &count, families);
    for (uint32_t i = 0; i < count; i++) {
        if (families[i].queueFlags & (VK_QUEUE_GRAPHICS_BIT | VK_QUEUE_COMPUTE_BIT))
            return i;
    }
    return 0;
}

static bool open_sp(const vkp_driver *driver, VkPhysicalDevice physical,
                    const VkDeviceCreateInfo *create_info, vkp_device *out, vkp_why *why)
{
    const sp_vk_device_desc device = {
        .size = sizeof device,
        .instance = driver->instance,
        .physical_device = physical,
        .device = out->device,
        .get_instance_proc_addr = driver->get_instance_proc_addr,
        .create_info = create_info,
        .api_version = driver->api_version,
    };
    sp_status status = sp_vk_device_create(&device, &out->sp_device);
    if (status != SP_OK)
        return vkp_fail_status(why, "sp_vk_device_create", status);
    const sp_vk_queue_desc queue = {.size = sizeof queue, .queue = out->queue};
    status = sp_vk_queue_create(out->sp_device, &queue, &out->sp_queue);
    return status == SP_OK || vkp_fail_status(why, "sp_vk_queue_create", status);
}

static bool open_vk(const vkp_driver *driver, VkPhysicalDevice physical, vkp_device *out,
                    vkp_why *why)
{
    VkPhysicalDeviceProperties2 properties = {.sType =
                                                  VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2};
    driver->get_properties2(physical, &properties);
    wanted want = {.api_version = properties.properties.apiVersion < driver->api_version
                                      ? properties.properties.apiVersion
                                      : driver->api_version};
    want_extensions(driver, physical, &want);
    want_features(driver, physical, &want);
    if (!want.timeline.timelineSemaphore)
        return vkp_fail(why, "the device has no timeline semaphores");
    const float priority = 1.0F;
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueFamilyIndex = pick_queue_family(driver, physical),
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &want.timeline,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = want.extension_count,
        .ppEnabledExtensionNames = want.extensions,
    };
    VkResult result = driver->create_device(physical, &info, NULL, &out->device);
    if (result != VK_SUCCESS)
        return vkp_fail(why, "vkCreateDevice: %d", result);
    PFN_vkGetDeviceQueue get_queue =
        (PFN_vkGetDeviceQueue)driver->get_device_proc_addr(out->device, "vkGetDeviceQueue");
    get_queue(out->device, queue.queueFamilyIndex, 0, &out->queue);
    return open_sp(driver, physical, &info, out, why);
}

bool vkp_device_open(const vkp_driver *driver, VkPhysicalDevice physical, vkp_device *out,
                     vkp_why *why)
{
    memset(out, 0, sizeof *out);
    out->get_proc_addr = driver->get_device_proc_addr;
    if (open_vk(driver, physical, out, why))
        return true;
    vkp_why ignored;
    vkp_device_close(out, &ignored);
    return false;
}

bool vkp_device_close(vkp_device *device, vkp_why *why)
{
    if (!device->device)
        return true;
    sp_status status = sp_vk_queue_destroy(device->sp_queue, CLOSE_TIMEOUT_NS);
    if (status == SP_OK) {
        device->sp_queue = NULL;
        status = sp_vk_device_destroy(device->sp_device, CLOSE_TIMEOUT_NS);
    }
    if (status != SP_OK)
        return vkp_fail_status(why, "closing the device", status);
    PFN_vkDestroyDevice destroy =
        (PFN_vkDestroyDevice)device->get_proc_addr(device->device, "vkDestroyDevice");
    destroy(device->device, NULL);
    memset(device, 0, sizeof *device);
    return true;
}
