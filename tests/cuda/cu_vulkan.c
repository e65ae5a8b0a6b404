/* SPDX-License-Identifier: MIT */
#include "cu_vulkan.h"

#include "support/test.h"

#include <dlfcn.h>
#include <string.h>
#include <syncpoint/vulkan.h>

#define FUNCTIONS(X)                                                                               \
    X(EnumeratePhysicalDevices)                                                                    \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(CreateDevice)                                                                                \
    X(DestroyDevice)                                                                               \
    X(DestroyInstance)                                                                             \
    X(GetDeviceQueue)                                                                              \
    X(DeviceWaitIdle)                                                                              \
    X(QueueSubmit)                                                                                 \
    X(CreateSemaphore)                                                                             \
    X(DestroySemaphore)                                                                            \
    X(SignalSemaphore)                                                                             \
    X(GetSemaphoreCounterValue)                                                                    \
    X(GetSemaphoreFdKHR)

static struct {
    PFN_vkGetInstanceProcAddr get;
    VkInstance instance;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VkQueue queue;
    sp_vk_device *sp;
#define MEMBER(name) PFN_vk##name name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} vk;

#define CHECK_VK(call) CHECK((call) == VK_SUCCESS)

static VkSemaphore handle_of(void *semaphore)
{
    return (VkSemaphore)(uintptr_t)semaphore;
}

static void open_instance(void)
{
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        test_skip("no Vulkan loader beside CUDA: %s", dlerror());
    *(void **)&vk.get = dlsym(library, "vkGetInstanceProcAddr");
    PFN_vkCreateInstance create = (PFN_vkCreateInstance)vk.get(NULL, "vkCreateInstance");
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .apiVersion = VK_API_VERSION_1_2,
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pApplicationInfo = &application,
    };
    if (create(&info, NULL, &vk.instance) != VK_SUCCESS)
        test_skip("no Vulkan driver beside CUDA");
#define LOAD(name) vk.name = (PFN_vk##name)vk.get(vk.instance, "vk" #name);
    FUNCTIONS(LOAD)
#undef LOAD
}

static bool has_uuid(VkPhysicalDevice device, const uint8_t uuid[16])
{
    VkPhysicalDeviceIDProperties id = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
    };
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &id,
    };
    vk.GetPhysicalDeviceProperties2(device, &properties);
    return memcmp(id.deviceUUID, uuid, 16) == 0;
}

static void find_device(const uint8_t uuid[16])
{
    VkPhysicalDevice devices[16];
    uint32_t count = COUNT_OF(devices);
    vk.EnumeratePhysicalDevices(vk.instance, &count, devices);
    for (uint32_t i = 0; i < count && !vk.physical_device; i++) {
        if (has_uuid(devices[i], uuid))
            vk.physical_device = devices[i];
    }
    if (!vk.physical_device)
        test_skip("Vulkan has no device with CUDA's UUID");
}

static void open_device(void)
{
    static const char *const extensions[] = {VK_KHR_EXTERNAL_SEMAPHORE_FD_EXTENSION_NAME};
    const float priority = 1;
    VkPhysicalDeviceTimelineSemaphoreFeatures timelines = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
        .timelineSemaphore = VK_TRUE,
    };
    const VkDeviceQueueCreateInfo queue = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    const VkDeviceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &timelines,
        .queueCreateInfoCount = 1,
        .pQueueCreateInfos = &queue,
        .enabledExtensionCount = COUNT_OF(extensions),
        .ppEnabledExtensionNames = extensions,
    };
    CHECK_VK(vk.CreateDevice(vk.physical_device, &info, NULL, &vk.device));
    vk.GetDeviceQueue(vk.device, 0, 0, &vk.queue);
    const sp_vk_device_desc desc = {
        .size = sizeof(desc),
        .instance = vk.instance,
        .physical_device = vk.physical_device,
        .device = vk.device,
        .get_instance_proc_addr = vk.get,
        .api_version = VK_API_VERSION_1_2,
        .create_info = &info,
    };
    CHECK_STATUS(sp_vk_device_create(&desc, &vk.sp), SP_OK);
}

void cu_vulkan_open(const uint8_t uuid[16])
{
    if (vk.device)
        return;
    open_instance();
    find_device(uuid);
    open_device();
}

void cu_vulkan_close(void)
{
    if (!vk.device)
        return;
    CHECK_VK(vk.DeviceWaitIdle(vk.device));
    CHECK_STATUS(sp_vk_device_destroy(vk.sp, PATIENCE_NS), SP_OK);
    vk.DestroyDevice(vk.device, NULL);
    vk.DestroyInstance(vk.instance, NULL);
    memset(&vk, 0, sizeof(vk));
}

void *cu_vulkan_make(bool timeline)
{
    const VkExportSemaphoreCreateInfo exported = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
        .handleTypes = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .pNext = &exported,
        .semaphoreType = timeline ? VK_SEMAPHORE_TYPE_TIMELINE : VK_SEMAPHORE_TYPE_BINARY,
    };
    const VkSemaphoreCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type,
    };
    VkSemaphore made = VK_NULL_HANDLE;
    CHECK_VK(vk.CreateSemaphore(vk.device, &info, NULL, &made));
    return (void *)(uintptr_t)made;
}

void cu_vulkan_destroy(void *semaphore)
{
    CHECK_VK(vk.DeviceWaitIdle(vk.device));
    vk.DestroySemaphore(vk.device, handle_of(semaphore), NULL);
}

int cu_vulkan_export(void *semaphore)
{
    const VkSemaphoreGetFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
        .semaphore = handle_of(semaphore),
        .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    int fd = -1;
    CHECK_VK(vk.GetSemaphoreFdKHR(vk.device, &info, &fd));
    return fd;
}

void cu_vulkan_signal(void *semaphore, uint64_t value)
{
    VkSemaphore handle = handle_of(semaphore);
    const VkSemaphoreSignalInfo signal = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
        .semaphore = handle,
        .value = value,
    };
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .signalSemaphoreCount = 1,
        .pSignalSemaphores = &handle,
    };
    if (value)
        CHECK_VK(vk.SignalSemaphore(vk.device, &signal));
    else
        CHECK_VK(vk.QueueSubmit(vk.queue, 1, &submit, VK_NULL_HANDLE));
}

uint64_t cu_vulkan_value(void *semaphore)
{
    uint64_t value = 0;
    CHECK_VK(vk.GetSemaphoreCounterValue(vk.device, handle_of(semaphore), &value));
    return value;
}

sp_point cu_vulkan_point(void *timeline, uint64_t value)
{
    const sp_vk_semaphore_wrap_desc desc = {
        .size = sizeof(desc),
        .semaphore = handle_of(timeline),
        .type = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    sp_vk_semaphore *wrapped = NULL;
    sp_point point = {0};
    CHECK_STATUS(sp_vk_semaphore_wrap(vk.sp, &desc, &wrapped), SP_OK);
    CHECK_STATUS(sp_vk_timeline_point(wrapped, value, &point), SP_OK);
    sp_vk_semaphore_unref(wrapped);
    return point;
}
