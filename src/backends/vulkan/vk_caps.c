/* SPDX-License-Identifier: MIT
 *
 * What the device's semaphores can do with handles. Asked once, when the device object is made.
 */
#include "vk_internal.h"

static const VkExternalSemaphoreHandleTypeFlagBits handle_types[2] = {
    VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
    VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT,
};

static const char *why_not(const sp_vk_driver *vk, VkExternalSemaphoreFeatureFlags features)
{
    bool exportable = (features & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT) != 0;
    bool importable = (features & VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT) != 0;
    if (!exportable && !importable)
        return "the driver neither exports nor imports this type of semaphore by this handle type";
    if (!vk->get_semaphore_fd || !vk->import_semaphore_fd)
        return "VK_KHR_external_semaphore_fd is not enabled on the device";
    if (!exportable)
        return "the driver does not export this type of semaphore by this handle type";
    if (!importable)
        return "the driver does not import this type of semaphore by this handle type";
    return NULL;
}

static void query(const sp_vk_device *device, VkSemaphoreType type,
                  VkExternalSemaphoreHandleTypeFlagBits handle_type, sp_vk_semaphore_caps *caps)
{
    /* Without the type a driver answers for a binary: one says that binaries can be exported, and
     * crashes when a timeline is. */
    VkSemaphoreTypeCreateInfo type_info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = type,
    };
    VkPhysicalDeviceExternalSemaphoreInfo info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
        .pNext = &type_info,
        .handleType = handle_type,
    };
    VkExternalSemaphoreProperties properties = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES,
    };
    const sp_vk_driver *vk = &device->vk;
    vk->get_external_properties(device->physical_device, &info, &properties);
    VkExternalSemaphoreFeatureFlags features = properties.externalSemaphoreFeatures;
    *caps = (sp_vk_semaphore_caps){
        .size = sizeof(*caps),
        .can_export =
            (features & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT) && vk->get_semaphore_fd,
        .can_import =
            (features & VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT) && vk->import_semaphore_fd,
        .why_not = why_not(vk, features),
        .compatible = properties.compatibleHandleTypes,
        .export_from_imported = properties.exportFromImportedHandleTypes,
    };
}

void sp_vk_caps_query(sp_vk_device *device)
{
    for (int type = 0; type < 2; type++) {
        for (int handle = 0; handle < 2; handle++)
            query(device, (VkSemaphoreType)type, handle_types[handle], &device->caps[type][handle]);
    }
}

const sp_vk_semaphore_caps *sp_vk_caps_of(const sp_vk_device *device, VkSemaphoreType type,
                                          VkExternalSemaphoreHandleTypeFlags handle_type)
{
    for (int handle = 0; handle < 2; handle++) {
        if (handle_type == (VkExternalSemaphoreHandleTypeFlags)handle_types[handle])
            return &device->caps[type][handle];
    }
    return NULL;
}

sp_status sp_vk_device_semaphore_caps(sp_vk_device *device, VkSemaphoreType type,
                                      VkExternalSemaphoreHandleTypeFlagBits handle_type,
                                      sp_vk_semaphore_caps *caps)
{
    SP_CHECK_ARGUMENT(device && caps, "device and caps are required");
    SP_CHECK_SIZE(caps);
    SP_CHECK_ARGUMENT(sp_vk_is_semaphore_type(type), "unknown semaphore type");
    sp_status status = sp_vk_check(device);
    if (status != SP_OK)
        return status;
    const sp_vk_semaphore_caps *known = sp_vk_caps_of(device, type, handle_type);
    SP_CHECK_ARGUMENT(known, "the handle type is neither OPAQUE_FD nor SYNC_FD");
    *caps = *known;
    return SP_OK;
}
