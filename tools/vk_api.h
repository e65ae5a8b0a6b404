/* SPDX-License-Identifier: MIT
 *
 * The Vulkan entry points that the demo uses, through dlopen: nothing links the loader.
 */
#ifndef SYNCPOINT_TOOLS_VK_API_H
#define SYNCPOINT_TOOLS_VK_API_H

#define VK_NO_PROTOTYPES
#include <stdbool.h>
#include <vulkan/vulkan_core.h>

#define VK_API_GLOBAL(X)                                                                           \
    X(EnumerateInstanceVersion)                                                                    \
    X(EnumerateInstanceLayerProperties)                                                            \
    X(CreateInstance)

#define VK_API_INSTANCE(X)                                                                         \
    X(DestroyInstance)                                                                             \
    X(EnumeratePhysicalDevices)                                                                    \
    X(EnumerateDeviceExtensionProperties)                                                          \
    X(GetPhysicalDeviceProperties2)                                                                \
    X(GetPhysicalDeviceFeatures2)                                                                  \
    X(GetPhysicalDeviceQueueFamilyProperties)                                                      \
    X(GetPhysicalDeviceMemoryProperties)                                                           \
    X(GetPhysicalDeviceImageFormatProperties2)                                                     \
    X(CreateDevice)                                                                                \
    X(GetDeviceProcAddr)

#define VK_API_DEVICE(X)                                                                           \
    X(DestroyDevice)                                                                               \
    X(GetDeviceQueue)                                                                              \
    X(QueueSubmit)                                                                                 \
    X(CreateImage)                                                                                 \
    X(DestroyImage)                                                                                \
    X(GetImageMemoryRequirements)                                                                  \
    X(BindImageMemory)                                                                             \
    X(CreateImageView)                                                                             \
    X(DestroyImageView)                                                                            \
    X(CreateBuffer)                                                                                \
    X(DestroyBuffer)                                                                               \
    X(GetBufferMemoryRequirements)                                                                 \
    X(BindBufferMemory)                                                                            \
    X(AllocateMemory)                                                                              \
    X(FreeMemory)                                                                                  \
    X(MapMemory)                                                                                   \
    X(CreateShaderModule)                                                                          \
    X(DestroyShaderModule)                                                                         \
    X(CreateDescriptorSetLayout)                                                                   \
    X(DestroyDescriptorSetLayout)                                                                  \
    X(CreatePipelineLayout)                                                                        \
    X(DestroyPipelineLayout)                                                                       \
    X(CreateComputePipelines)                                                                      \
    X(DestroyPipeline)                                                                             \
    X(CreateDescriptorPool)                                                                        \
    X(DestroyDescriptorPool)                                                                       \
    X(AllocateDescriptorSets)                                                                      \
    X(UpdateDescriptorSets)                                                                        \
    X(CreateCommandPool)                                                                           \
    X(DestroyCommandPool)                                                                          \
    X(AllocateCommandBuffers)                                                                      \
    X(BeginCommandBuffer)                                                                          \
    X(EndCommandBuffer)                                                                            \
    X(CmdBindPipeline)                                                                             \
    X(CmdBindDescriptorSets)                                                                       \
    X(CmdPushConstants)                                                                            \
    X(CmdDispatch)                                                                                 \
    X(CmdPipelineBarrier)                                                                          \
    X(CmdCopyImageToBuffer)

/* NULL where the extension is not enabled. */
#define VK_API_OPTIONAL_INSTANCE(X)                                                                \
    X(CreateDebugUtilsMessengerEXT)                                                                \
    X(DestroyDebugUtilsMessengerEXT)
#define VK_API_OPTIONAL_DEVICE(X) X(GetMemoryFdKHR)

struct vk_api {
    void *library;
    PFN_vkGetInstanceProcAddr GetInstanceProcAddr;
#define VK_API_MEMBER(name) PFN_vk##name name;
    VK_API_GLOBAL(VK_API_MEMBER)
    VK_API_INSTANCE(VK_API_MEMBER)
    VK_API_DEVICE(VK_API_MEMBER)
    VK_API_OPTIONAL_INSTANCE(VK_API_MEMBER)
    VK_API_OPTIONAL_DEVICE(VK_API_MEMBER)
#undef VK_API_MEMBER
};

/* Opens the loader and gets what needs no instance, what needs one, what needs a device. Each
 * returns NULL, or a constant that says what is missing. */
const char *vk_api_open(struct vk_api *vk);
const char *vk_api_load_instance(struct vk_api *vk, VkInstance instance);
const char *vk_api_load_device(struct vk_api *vk, VkDevice device);
void vk_api_close(struct vk_api *vk);

#endif
