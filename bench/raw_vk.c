/* SPDX-License-Identifier: MIT */
#include "raw_vk.h"

/* The core name, or the one of the extension before it was core. */
static PFN_vkVoidFunction either(VkDevice device, PFN_vkGetDeviceProcAddr get, const char *core,
                                 const char *extension)
{
    PFN_vkVoidFunction function = get(device, core);
    return function ? function : get(device, extension);
}

bool raw_vk_load(raw_vk *vk, VkDevice device, VkQueue queue, PFN_vkGetDeviceProcAddr get)
{
    *vk = (raw_vk){
        .device = device,
        .queue = queue,
        .create_semaphore = (PFN_vkCreateSemaphore)get(device, "vkCreateSemaphore"),
        .destroy_semaphore = (PFN_vkDestroySemaphore)get(device, "vkDestroySemaphore"),
        .counter_value = (PFN_vkGetSemaphoreCounterValue)either(
            device, get, "vkGetSemaphoreCounterValue", "vkGetSemaphoreCounterValueKHR"),
        .wait_semaphores =
            (PFN_vkWaitSemaphores)either(device, get, "vkWaitSemaphores", "vkWaitSemaphoresKHR"),
        .signal_semaphore =
            (PFN_vkSignalSemaphore)either(device, get, "vkSignalSemaphore", "vkSignalSemaphoreKHR"),
        .queue_submit = (PFN_vkQueueSubmit)get(device, "vkQueueSubmit"),
        .get_fd = (PFN_vkGetSemaphoreFdKHR)get(device, "vkGetSemaphoreFdKHR"),
        .import_fd = (PFN_vkImportSemaphoreFdKHR)get(device, "vkImportSemaphoreFdKHR"),
    };
    return vk->create_semaphore && vk->destroy_semaphore && vk->counter_value &&
           vk->wait_semaphores && vk->signal_semaphore && vk->queue_submit;
}

static VkSemaphore create(const raw_vk *vk, const void *next)
{
    const VkSemaphoreCreateInfo info = {.sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
                                        .pNext = next};
    VkSemaphore semaphore = VK_NULL_HANDLE;
    return vk->create_semaphore(vk->device, &info, NULL, &semaphore) == VK_SUCCESS ? semaphore
                                                                                   : VK_NULL_HANDLE;
}

VkSemaphore raw_vk_timeline(const raw_vk *vk, uint64_t initial_value)
{
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
        .initialValue = initial_value,
    };
    return create(vk, &type);
}

VkSemaphore raw_vk_binary(const raw_vk *vk, VkExternalSemaphoreHandleTypeFlags export_types)
{
    const VkExportSemaphoreCreateInfo exported = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO, .handleTypes = export_types};
    return create(vk, export_types ? &exported : NULL);
}

VkResult raw_vk_wait(const raw_vk *vk, VkSemaphore timeline, uint64_t value)
{
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &timeline,
        .pValues = &value,
    };
    return vk->wait_semaphores(vk->device, &info, UINT64_C(10000000000));
}

VkResult raw_vk_signal(const raw_vk *vk, VkSemaphore timeline, uint64_t value)
{
    const VkSemaphoreSignalInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO, .semaphore = timeline, .value = value};
    return vk->signal_semaphore(vk->device, &info);
}
