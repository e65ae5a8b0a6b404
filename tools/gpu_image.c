/* SPDX-License-Identifier: MIT */
#include "gpu_image.h"

#include "demo_picture.h"

#include <stdio.h>
#include <string.h>

#define IMAGE_USAGE (VK_IMAGE_USAGE_STORAGE_BIT | VK_IMAGE_USAGE_TRANSFER_SRC_BIT)
#define HANDLE_TYPE VK_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD_BIT

bool gpu_can_share_images(struct gpu *gpu)
{
    const VkPhysicalDeviceExternalImageFormatInfo external = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_IMAGE_FORMAT_INFO,
        .handleType = HANDLE_TYPE,
    };
    const VkPhysicalDeviceImageFormatInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_IMAGE_FORMAT_INFO_2,
        .pNext = &external,
        .format = GPU_IMAGE_FORMAT,
        .type = VK_IMAGE_TYPE_2D,
        .tiling = VK_IMAGE_TILING_OPTIMAL,
        .usage = IMAGE_USAGE,
    };
    VkExternalImageFormatProperties can = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_IMAGE_FORMAT_PROPERTIES,
    };
    VkImageFormatProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_FORMAT_PROPERTIES_2,
        .pNext = &can,
    };
    const VkExternalMemoryFeatureFlags both =
        VK_EXTERNAL_MEMORY_FEATURE_EXPORTABLE_BIT | VK_EXTERNAL_MEMORY_FEATURE_IMPORTABLE_BIT;
    if (gpu->has_memory_fd &&
        gpu->vk.GetPhysicalDeviceImageFormatProperties2(gpu->physical, &info, &properties) ==
            VK_SUCCESS &&
        (can.externalMemoryProperties.externalMemoryFeatures & both) == both)
        return true;
    snprintf(gpu->problem, sizeof gpu->problem, "%s cannot share images as opaque fds",
             gpu->device_name);
    return false;
}

static bool create_image(struct gpu *gpu, bool shared, VkImage *image)
{
    const VkExternalMemoryImageCreateInfo external = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_MEMORY_IMAGE_CREATE_INFO,
        .handleTypes = HANDLE_TYPE,
    };
    const VkImageCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_CREATE_INFO,
        .pNext = shared ? &external : NULL,
        .imageType = VK_IMAGE_TYPE_2D,
        .format = GPU_IMAGE_FORMAT,
        .extent = {DEMO_WIDTH, DEMO_HEIGHT, 1},
        .mipLevels = 1,
        .arrayLayers = 1,
        .samples = VK_SAMPLE_COUNT_1_BIT,
        .tiling = VK_IMAGE_TILING_OPTIMAL,
        .usage = IMAGE_USAGE,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
        .initialLayout = VK_IMAGE_LAYOUT_UNDEFINED,
    };
    return gpu_check(gpu, gpu->vk.CreateImage(gpu->device, &info, NULL, image), "vkCreateImage");
}

/* The exporter's numbers must be what this device would have chosen from; else it is another kind
 * of image, or not an image. */
static bool check_import(struct gpu *gpu, const VkMemoryRequirements *needs,
                         const struct gpu_image *image)
{
    if (image->memory_size == needs->size && image->memory_type < gpu->memory.memoryTypeCount &&
        (needs->memoryTypeBits >> image->memory_type & 1))
        return true;
    snprintf(gpu->problem, sizeof gpu->problem,
             "the shared memory does not fit the image (%llu bytes of type %u)",
             (unsigned long long)image->memory_size, image->memory_type);
    return false;
}

/* Dedicated, always: some devices require it for shared images, none forbids it. */
static bool allocate_image_memory(struct gpu *gpu, enum gpu_sharing sharing, int fd,
                                  struct gpu_image *image)
{
    const VkMemoryDedicatedAllocateInfo dedicated = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_DEDICATED_ALLOCATE_INFO,
        .image = image->image,
    };
    const VkExportMemoryAllocateInfo export_info = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_MEMORY_ALLOCATE_INFO,
        .pNext = &dedicated,
        .handleTypes = HANDLE_TYPE,
    };
    const VkImportMemoryFdInfoKHR import_info = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_MEMORY_FD_INFO_KHR,
        .pNext = &dedicated,
        .handleType = HANDLE_TYPE,
        .fd = fd,
    };
    const void *const next[] = {
        [GPU_NOT_SHARED] = &dedicated,
        [GPU_EXPORT] = &export_info,
        [GPU_IMPORT] = &import_info,
    };
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .pNext = next[sharing],
        .allocationSize = image->memory_size,
        .memoryTypeIndex = image->memory_type,
    };
    return gpu_check(gpu, gpu->vk.AllocateMemory(gpu->device, &info, NULL, &image->memory),
                     "vkAllocateMemory") &&
           gpu_check(gpu, gpu->vk.BindImageMemory(gpu->device, image->image, image->memory, 0),
                     "vkBindImageMemory");
}

static bool create_view(struct gpu *gpu, struct gpu_image *image)
{
    const VkImageViewCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_IMAGE_VIEW_CREATE_INFO,
        .image = image->image,
        .viewType = VK_IMAGE_VIEW_TYPE_2D,
        .format = GPU_IMAGE_FORMAT,
        .subresourceRange = {VK_IMAGE_ASPECT_COLOR_BIT, 0, 1, 0, 1},
    };
    return gpu_check(gpu, gpu->vk.CreateImageView(gpu->device, &info, NULL, &image->view),
                     "vkCreateImageView");
}

bool gpu_image_create(struct gpu *gpu, enum gpu_sharing sharing, int fd, struct gpu_image *image)
{
    if (!create_image(gpu, sharing != GPU_NOT_SHARED, &image->image))
        return false;
    VkMemoryRequirements needs;
    gpu->vk.GetImageMemoryRequirements(gpu->device, image->image, &needs);
    if (sharing == GPU_IMPORT) {
        if (!check_import(gpu, &needs, image))
            return false;
    } else {
        image->memory_size = needs.size;
        image->memory_type =
            gpu_memory_type(gpu, needs.memoryTypeBits, 0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
        if (image->memory_type == UINT32_MAX)
            return false;
    }
    return allocate_image_memory(gpu, sharing, fd, image) && create_view(gpu, image);
}

void gpu_image_destroy(struct gpu *gpu, struct gpu_image *image)
{
    if (image->view)
        gpu->vk.DestroyImageView(gpu->device, image->view, NULL);
    if (image->image)
        gpu->vk.DestroyImage(gpu->device, image->image, NULL);
    if (image->memory)
        gpu->vk.FreeMemory(gpu->device, image->memory, NULL);
    memset(image, 0, sizeof *image);
}

int gpu_image_export(struct gpu *gpu, const struct gpu_image *image)
{
    const VkMemoryGetFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_GET_FD_INFO_KHR,
        .memory = image->memory,
        .handleType = HANDLE_TYPE,
    };
    int fd = -1;
    if (!gpu_check(gpu, gpu->vk.GetMemoryFdKHR(gpu->device, &info, &fd), "vkGetMemoryFdKHR"))
        return -1;
    return fd;
}

static bool allocate_buffer_memory(struct gpu *gpu, bool map, struct gpu_buffer *buffer)
{
    VkMemoryRequirements needs;
    gpu->vk.GetBufferMemoryRequirements(gpu->device, buffer->buffer, &needs);
    const uint32_t type =
        map ? gpu_memory_type(gpu, needs.memoryTypeBits,
                              VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT |
                                  VK_MEMORY_PROPERTY_HOST_COHERENT_BIT,
                              VK_MEMORY_PROPERTY_HOST_CACHED_BIT)
            : gpu_memory_type(gpu, needs.memoryTypeBits, 0, VK_MEMORY_PROPERTY_DEVICE_LOCAL_BIT);
    if (type == UINT32_MAX)
        return false;
    const VkMemoryAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = needs.size,
        .memoryTypeIndex = type,
    };
    return gpu_check(gpu, gpu->vk.AllocateMemory(gpu->device, &info, NULL, &buffer->memory),
                     "vkAllocateMemory") &&
           gpu_check(gpu, gpu->vk.BindBufferMemory(gpu->device, buffer->buffer, buffer->memory, 0),
                     "vkBindBufferMemory");
}

bool gpu_buffer_create(struct gpu *gpu, VkDeviceSize size, VkBufferUsageFlags usage, bool map,
                       struct gpu_buffer *buffer)
{
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = usage,
        .sharingMode = VK_SHARING_MODE_EXCLUSIVE,
    };
    if (!gpu_check(gpu, gpu->vk.CreateBuffer(gpu->device, &info, NULL, &buffer->buffer),
                   "vkCreateBuffer") ||
        !allocate_buffer_memory(gpu, map, buffer))
        return false;
    return !map || gpu_check(gpu,
                             gpu->vk.MapMemory(gpu->device, buffer->memory, 0, VK_WHOLE_SIZE, 0,
                                               &buffer->mapped),
                             "vkMapMemory");
}

void gpu_buffer_destroy(struct gpu *gpu, struct gpu_buffer *buffer)
{
    if (buffer->buffer)
        gpu->vk.DestroyBuffer(gpu->device, buffer->buffer, NULL);
    if (buffer->memory)
        gpu->vk.FreeMemory(gpu->device, buffer->memory, NULL);
    memset(buffer, 0, sizeof *buffer);
}
