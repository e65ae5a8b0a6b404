/* SPDX-License-Identifier: MIT */
#include "vk_api.h"

#include <dlfcn.h>
#include <string.h>

/* Each expects `missing` in scope, and leaves the first name there that was not found. */
#define LOAD(lookup, name)                                                                         \
    vk->name = (PFN_vk##name)(lookup);                                                             \
    if (!vk->name && !missing)                                                                     \
        missing = "vk" #name;
#define LOAD_GLOBAL(name) LOAD(vk->GetInstanceProcAddr(NULL, "vk" #name), name)
#define LOAD_INSTANCE(name) LOAD(vk->GetInstanceProcAddr(instance, "vk" #name), name)
#define LOAD_DEVICE(name) LOAD(vk->GetDeviceProcAddr(device, "vk" #name), name)
#define LOAD_OPTIONAL_INSTANCE(name)                                                               \
    vk->name = (PFN_vk##name)vk->GetInstanceProcAddr(instance, "vk" #name);
#define LOAD_OPTIONAL_DEVICE(name)                                                                 \
    vk->name = (PFN_vk##name)vk->GetDeviceProcAddr(device, "vk" #name);

const char *vk_api_open(struct vk_api *vk)
{
    memset(vk, 0, sizeof *vk);
    vk->library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!vk->library)
        return "libvulkan.so.1, the Vulkan loader";
    const char *missing = NULL;
    /* POSIX has dlsym() return functions as data; ISO C has no cast for it. */
    *(void **)&vk->GetInstanceProcAddr = dlsym(vk->library, "vkGetInstanceProcAddr");
    if (!vk->GetInstanceProcAddr)
        return "vkGetInstanceProcAddr";
    VK_API_GLOBAL(LOAD_GLOBAL)
    return missing;
}

const char *vk_api_load_instance(struct vk_api *vk, VkInstance instance)
{
    const char *missing = NULL;
    VK_API_INSTANCE(LOAD_INSTANCE)
    VK_API_OPTIONAL_INSTANCE(LOAD_OPTIONAL_INSTANCE)
    return missing;
}

const char *vk_api_load_device(struct vk_api *vk, VkDevice device)
{
    const char *missing = NULL;
    VK_API_DEVICE(LOAD_DEVICE)
    VK_API_OPTIONAL_DEVICE(LOAD_OPTIONAL_DEVICE)
    return missing;
}

void vk_api_close(struct vk_api *vk)
{
    if (vk->library)
        dlclose(vk->library);
    memset(vk, 0, sizeof *vk);
}
