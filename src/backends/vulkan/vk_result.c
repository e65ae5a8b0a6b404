/* SPDX-License-Identifier: MIT
 *
 * What a VkResult means to a caller of this library.
 */
#include "vk_internal.h"

typedef struct result_row {
    VkResult result;
    sp_status status;
    const char *name;
    const char *advice;
} result_row;

#define RESULT(name, status, advice)                                                               \
    {                                                                                              \
        VK_##name, SP_ERROR_##status, "VK_" #name, advice                                          \
    }

static const result_row result_rows[] = {
    RESULT(ERROR_OUT_OF_HOST_MEMORY, OUT_OF_MEMORY, ""),
    RESULT(ERROR_OUT_OF_DEVICE_MEMORY, OUT_OF_MEMORY, ""),
    RESULT(ERROR_DEVICE_LOST, DEVICE_LOST, "; the VkDevice has to be made anew"),
    RESULT(ERROR_TOO_MANY_OBJECTS, SYSTEM, "; the process may have no free file descriptor"),
    RESULT(ERROR_INVALID_EXTERNAL_HANDLE, INVALID_HANDLE, "; the handle is not one it made"),
    RESULT(ERROR_INITIALIZATION_FAILED, BACKEND, ""),
    RESULT(ERROR_EXTENSION_NOT_PRESENT, NOT_SUPPORTED, ""),
    RESULT(ERROR_FEATURE_NOT_PRESENT, NOT_SUPPORTED, ""),
    RESULT(ERROR_UNKNOWN, BACKEND, ""),
};

static const result_row *find_result(VkResult result)
{
    static const result_row other = {VK_ERROR_UNKNOWN, SP_ERROR_BACKEND, "a result", ""};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(result_rows); i++) {
        if (result_rows[i].result == result)
            return &result_rows[i];
    }
    return &other;
}

sp_status sp_vk_fail(sp_vk_device *device, VkResult result, const char *call)
{
    const result_row *row = find_result(result);
    if (result == VK_ERROR_DEVICE_LOST)
        sp_vk_note_gone(device, SP_VK_LOST);
    else if (sp_os_fd_exhausted()) /* drivers give a dozen results for it */
        return sp_fail_native(SP_ERROR_SYSTEM, SP_BACKEND_VULKAN, result, call,
                              "%s: %s (%d); the process has no free file descriptor", call,
                              row->name, (int)result);
    return sp_fail_native(row->status, SP_BACKEND_VULKAN, result, call, "%s: %s (%d)%s", call,
                          row->name, (int)result, row->advice);
}

sp_status sp_vk_fail_lost(void)
{
    return sp_fail_native(SP_ERROR_DEVICE_LOST, SP_BACKEND_VULKAN, VK_ERROR_DEVICE_LOST, NULL,
                          "the VkDevice was lost in an earlier call; it has to be made anew");
}
