/* SPDX-License-Identifier: MIT */
#include "demo_render_setup.h"

#include "demo_delay_spv.h"
#include "demo_picture_spv.h"
#include "demo_render.h"

#include <string.h>

static bool create_layouts(struct demo_renderer *renderer)
{
    struct gpu *gpu = renderer->gpu;
    const VkDescriptorSetLayoutBinding bindings[] = {
        {RENDER_BINDING_PICTURE, VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, 1, VK_SHADER_STAGE_COMPUTE_BIT,
         NULL},
        {RENDER_BINDING_DELAY_RESULT, VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, 1,
         VK_SHADER_STAGE_COMPUTE_BIT, NULL},
    };
    const VkDescriptorSetLayoutCreateInfo set_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_LAYOUT_CREATE_INFO,
        .bindingCount = 2,
        .pBindings = bindings,
    };
    if (!gpu_check(
            gpu,
            gpu->vk.CreateDescriptorSetLayout(gpu->device, &set_info, NULL, &renderer->set_layout),
            "vkCreateDescriptorSetLayout"))
        return false;
    const VkPushConstantRange push = {VK_SHADER_STAGE_COMPUTE_BIT, 0, sizeof(struct render_push)};
    const VkPipelineLayoutCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_PIPELINE_LAYOUT_CREATE_INFO,
        .setLayoutCount = 1,
        .pSetLayouts = &renderer->set_layout,
        .pushConstantRangeCount = 1,
        .pPushConstantRanges = &push,
    };
    return gpu_check(gpu, gpu->vk.CreatePipelineLayout(gpu->device, &info, NULL, &renderer->layout),
                     "vkCreatePipelineLayout");
}

static bool create_pipeline(struct demo_renderer *renderer, const uint32_t *code, size_t size,
                            VkPipeline *pipeline)
{
    struct gpu *gpu = renderer->gpu;
    const VkShaderModuleCreateInfo module_info = {
        .sType = VK_STRUCTURE_TYPE_SHADER_MODULE_CREATE_INFO,
        .codeSize = size,
        .pCode = code,
    };
    VkShaderModule module;
    if (!gpu_check(gpu, gpu->vk.CreateShaderModule(gpu->device, &module_info, NULL, &module),
                   "vkCreateShaderModule"))
        return false;
    const VkComputePipelineCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMPUTE_PIPELINE_CREATE_INFO,
        .stage =
            {
                .sType = VK_STRUCTURE_TYPE_PIPELINE_SHADER_STAGE_CREATE_INFO,
                .stage = VK_SHADER_STAGE_COMPUTE_BIT,
                .module = module,
                .pName = "main",
            },
        .layout = renderer->layout,
    };
    const VkResult result =
        gpu->vk.CreateComputePipelines(gpu->device, VK_NULL_HANDLE, 1, &info, NULL, pipeline);
    gpu->vk.DestroyShaderModule(gpu->device, module, NULL);
    return gpu_check(gpu, result, "vkCreateComputePipelines");
}

static bool allocate_sets(struct demo_renderer *renderer)
{
    struct gpu *gpu = renderer->gpu;
    const VkDescriptorPoolSize sizes[] = {
        {VK_DESCRIPTOR_TYPE_STORAGE_IMAGE, DEMO_SLOTS},
        {VK_DESCRIPTOR_TYPE_STORAGE_BUFFER, DEMO_SLOTS},
    };
    const VkDescriptorPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_POOL_CREATE_INFO,
        .maxSets = DEMO_SLOTS,
        .poolSizeCount = 2,
        .pPoolSizes = sizes,
    };
    if (!gpu_check(gpu,
                   gpu->vk.CreateDescriptorPool(gpu->device, &pool_info, NULL, &renderer->set_pool),
                   "vkCreateDescriptorPool"))
        return false;
    VkDescriptorSetLayout layouts[DEMO_SLOTS];
    for (uint32_t i = 0; i < DEMO_SLOTS; i++)
        layouts[i] = renderer->set_layout;
    const VkDescriptorSetAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_DESCRIPTOR_SET_ALLOCATE_INFO,
        .descriptorPool = renderer->set_pool,
        .descriptorSetCount = DEMO_SLOTS,
        .pSetLayouts = layouts,
    };
    return gpu_check(gpu, gpu->vk.AllocateDescriptorSets(gpu->device, &info, renderer->sets),
                     "vkAllocateDescriptorSets");
}

static void write_set(struct demo_renderer *renderer, uint32_t slot)
{
    const VkDescriptorImageInfo image = {
        .imageView = renderer->images[slot].view,
        .imageLayout = VK_IMAGE_LAYOUT_GENERAL,
    };
    const VkDescriptorBufferInfo buffer = {renderer->delay_result.buffer, 0, VK_WHOLE_SIZE};
    const VkWriteDescriptorSet writes[] = {
        {
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = renderer->sets[slot],
            .dstBinding = RENDER_BINDING_PICTURE,
            .descriptorCount = 1,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_IMAGE,
            .pImageInfo = &image,
        },
        {
            .sType = VK_STRUCTURE_TYPE_WRITE_DESCRIPTOR_SET,
            .dstSet = renderer->sets[slot],
            .dstBinding = RENDER_BINDING_DELAY_RESULT,
            .descriptorCount = 1,
            .descriptorType = VK_DESCRIPTOR_TYPE_STORAGE_BUFFER,
            .pBufferInfo = &buffer,
        },
    };
    renderer->gpu->vk.UpdateDescriptorSets(renderer->gpu->device, 2, writes, 0, NULL);
}

static bool allocate_commands(struct demo_renderer *renderer)
{
    struct gpu *gpu = renderer->gpu;
    const VkCommandPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
        .flags = VK_COMMAND_POOL_CREATE_RESET_COMMAND_BUFFER_BIT,
        .queueFamilyIndex = gpu->queue_family,
    };
    if (!gpu_check(gpu, gpu->vk.CreateCommandPool(gpu->device, &pool_info, NULL, &renderer->pool),
                   "vkCreateCommandPool"))
        return false;
    const VkCommandBufferAllocateInfo info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = renderer->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = DEMO_SLOTS,
    };
    return gpu_check(gpu, gpu->vk.AllocateCommandBuffers(gpu->device, &info, renderer->commands),
                     "vkAllocateCommandBuffers");
}

bool demo_renderer_create(struct demo_renderer *renderer, struct gpu *gpu,
                          const struct gpu_image *images, bool to_other_process)
{
    *renderer = (struct demo_renderer){
        .gpu = gpu,
        .images = images,
        .to_other_process = to_other_process,
    };
    if (!gpu_buffer_create(gpu, RENDER_DELAY_RESULT_SIZE, VK_BUFFER_USAGE_STORAGE_BUFFER_BIT, false,
                           &renderer->delay_result) ||
        !create_layouts(renderer) ||
        !create_pipeline(renderer, demo_picture_spv, sizeof demo_picture_spv, &renderer->picture) ||
        !create_pipeline(renderer, demo_delay_spv, sizeof demo_delay_spv, &renderer->delay) ||
        !allocate_sets(renderer) || !allocate_commands(renderer))
        return false;
    for (uint32_t slot = 0; slot < DEMO_SLOTS; slot++)
        write_set(renderer, slot);
    return true;
}

void demo_renderer_destroy(struct demo_renderer *renderer)
{
    struct gpu *gpu = renderer->gpu;
    if (!gpu)
        return;
    if (renderer->pool)
        gpu->vk.DestroyCommandPool(gpu->device, renderer->pool, NULL);
    if (renderer->set_pool)
        gpu->vk.DestroyDescriptorPool(gpu->device, renderer->set_pool, NULL);
    if (renderer->picture)
        gpu->vk.DestroyPipeline(gpu->device, renderer->picture, NULL);
    if (renderer->delay)
        gpu->vk.DestroyPipeline(gpu->device, renderer->delay, NULL);
    if (renderer->layout)
        gpu->vk.DestroyPipelineLayout(gpu->device, renderer->layout, NULL);
    if (renderer->set_layout)
        gpu->vk.DestroyDescriptorSetLayout(gpu->device, renderer->set_layout, NULL);
    gpu_buffer_destroy(gpu, &renderer->delay_result);
    memset(renderer, 0, sizeof *renderer);
}
