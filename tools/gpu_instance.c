/* SPDX-License-Identifier: MIT
 *
 * The Vulkan instance, its validation, and the choice of a physical device.
 */
#include "commands.h"
#include "gpu_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALIDATION_LAYER "VK_LAYER_KHRONOS_validation"
#define MESSAGES_SHOWN 10
#define MAX_DEVICES 16

static VKAPI_ATTR VkBool32 VKAPI_CALL count_message(
    VkDebugUtilsMessageSeverityFlagBitsEXT severity, VkDebugUtilsMessageTypeFlagsEXT types,
    const VkDebugUtilsMessengerCallbackDataEXT *data, void *user)
{
    (void)severity;
    (void)types;
    struct gpu *gpu = user;
    if (atomic_fetch_add(&gpu->validation_messages, 1) < MESSAGES_SHOWN)
        tool_error("validation: %s", data->pMessage);
    return VK_FALSE;
}

static VkDebugUtilsMessengerCreateInfoEXT messenger_info(struct gpu *gpu)
{
    return (VkDebugUtilsMessengerCreateInfoEXT){
        .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
        .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                           VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
        .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
        .pfnUserCallback = count_message,
        .pUserData = gpu,
    };
}

static bool has_validation_layer(struct gpu *gpu)
{
    VkLayerProperties layers[64];
    uint32_t count = sizeof layers / sizeof layers[0];
    gpu->vk.EnumerateInstanceLayerProperties(&count, layers);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(layers[i].layerName, VALIDATION_LAYER) == 0)
            return true;
    }
    snprintf(gpu->problem, sizeof gpu->problem,
             "no layer " VALIDATION_LAYER " (Debian: vulkan-validationlayers)");
    return false;
}

static bool create_instance(struct gpu *gpu, bool validate)
{
    static const char *const layers[] = {VALIDATION_LAYER};
    static const char *const extensions[] = {VK_EXT_DEBUG_UTILS_EXTENSION_NAME};
    if (validate && !has_validation_layer(gpu))
        return false;
    uint32_t loader_version = VK_API_VERSION_1_1;
    gpu->vk.EnumerateInstanceVersion(&loader_version);
    gpu->api_version =
        loader_version < VK_API_VERSION_1_3 ? VK_API_VERSION_1_1 : VK_API_VERSION_1_3;
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .pApplicationName = "syncpoint demo",
        .apiVersion = gpu->api_version,
    };
    const VkDebugUtilsMessengerCreateInfoEXT messenger = messenger_info(gpu);
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = validate ? &messenger : NULL,
        .pApplicationInfo = &application,
        .enabledLayerCount = validate,
        .ppEnabledLayerNames = layers,
        .enabledExtensionCount = validate,
        .ppEnabledExtensionNames = extensions,
    };
    return gpu_check(gpu, gpu->vk.CreateInstance(&info, NULL, &gpu->instance), "vkCreateInstance");
}

static void read_identity(struct gpu *gpu, VkPhysicalDevice physical)
{
    VkPhysicalDeviceDriverProperties driver = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES,
    };
    VkPhysicalDeviceIDProperties id = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
    };
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &id,
    };
    gpu->vk.GetPhysicalDeviceProperties2(physical, &properties);
    /* Core since 1.2; before, not worth asking for an extension. */
    if (properties.properties.apiVersion >= VK_API_VERSION_1_2 &&
        gpu->api_version >= VK_API_VERSION_1_2) {
        id.pNext = &driver;
        gpu->vk.GetPhysicalDeviceProperties2(physical, &properties);
    }
    if (properties.properties.apiVersion < gpu->api_version)
        gpu->api_version = properties.properties.apiVersion;
    memcpy(gpu->device_name, properties.properties.deviceName, sizeof gpu->device_name);
    snprintf(gpu->driver_name, sizeof gpu->driver_name, "%s%s%s",
             driver.driverName[0] ? driver.driverName : "unknown", driver.driverInfo[0] ? " " : "",
             driver.driverInfo);
    memcpy(gpu->id, id.deviceUUID, VK_UUID_SIZE);
    memcpy(gpu->id + VK_UUID_SIZE, id.driverUUID, VK_UUID_SIZE);
}

static bool pick_physical_device(struct gpu *gpu, const struct gpu_choice *choice)
{
    VkPhysicalDevice devices[MAX_DEVICES];
    uint32_t count = MAX_DEVICES;
    const VkResult result = gpu->vk.EnumeratePhysicalDevices(gpu->instance, &count, devices);
    if (result != VK_INCOMPLETE && !gpu_check(gpu, result, "vkEnumeratePhysicalDevices"))
        return false;
    const uint32_t instance_version = gpu->api_version;
    for (uint32_t i = 0; i < count; i++) {
        gpu->api_version = instance_version;
        read_identity(gpu, devices[i]);
        if (choice->name_part && !strcasestr(gpu->device_name, choice->name_part))
            continue;
        if (choice->id && memcmp(gpu->id, choice->id, GPU_ID_SIZE) != 0)
            continue;
        gpu->physical = devices[i];
        gpu->vk.GetPhysicalDeviceMemoryProperties(gpu->physical, &gpu->memory);
        return true;
    }
    snprintf(gpu->problem, sizeof gpu->problem,
             "none of the %u devices of the Vulkan loader has '%s' in its name", count,
             choice->name_part ? choice->name_part : "the one asked for");
    return false;
}

bool gpu_open_instance(struct gpu *gpu, const struct gpu_choice *choice)
{
    const char *missing = vk_api_open(&gpu->vk);
    if (!missing) {
        if (!create_instance(gpu, choice->validate))
            return false;
        missing = vk_api_load_instance(&gpu->vk, gpu->instance);
    }
    if (missing) {
        snprintf(gpu->problem, sizeof gpu->problem, "there is no %s", missing);
        return false;
    }
    if (choice->validate) {
        const VkDebugUtilsMessengerCreateInfoEXT info = messenger_info(gpu);
        const VkResult result =
            gpu->vk.CreateDebugUtilsMessengerEXT(gpu->instance, &info, NULL, &gpu->messenger);
        if (!gpu_check(gpu, result, "vkCreateDebugUtilsMessengerEXT"))
            return false;
    }
    return pick_physical_device(gpu, choice);
}

void gpu_close_instance(struct gpu *gpu)
{
    if (gpu->messenger)
        gpu->vk.DestroyDebugUtilsMessengerEXT(gpu->instance, gpu->messenger, NULL);
    if (gpu->instance && gpu->vk.DestroyInstance)
        gpu->vk.DestroyInstance(gpu->instance, NULL);
    gpu->messenger = VK_NULL_HANDLE;
    gpu->instance = VK_NULL_HANDLE;
    vk_api_close(&gpu->vk);
}
