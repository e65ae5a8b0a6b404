/* SPDX-License-Identifier: MIT
 *
 * A double: see sync_fd.h.
 */
#include "sync_fd.h"

#include "hook.h"
#include "support/threads.h"

#include <linux/sync_file.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#define SYNC VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT
#define MAX_FILES 64
#define MAX_IMPORTS 64

/* ---- The files ---- */

static long known_files[MAX_FILES];
static unsigned known_count;

/* The kernel's number of an eventfd, which its duplicates share; -1 if it is none. */
static long eventfd_id(int fd)
{
    char path[64], line[128];
    long id = -1;
    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    FILE *file = fopen(path, "re");
    if (!file)
        return -1;
    while (fgets(line, sizeof(line), file)) {
        if (sscanf(line, "eventfd-id: %ld", &id) == 1)
            break;
    }
    fclose(file);
    return id;
}

static bool is_known(int fd)
{
    long id = fd < 0 ? -1 : eventfd_id(fd);
    for (unsigned i = 0; i < known_count && id >= 0; i++) {
        if (known_files[i] == id)
            return true;
    }
    return false;
}

int sync_fd_make(void)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    assert_true(fd >= 0 && known_count < MAX_FILES);
    known_files[known_count++] = eventfd_id(fd);
    return fd;
}

void sync_fd_signal(int fd)
{
    CHECK(eventfd_write(fd, 1) == 0);
}

bool sync_fd_is_signalled(int fd)
{
    struct pollfd look = {.fd = fd, .events = POLLIN};
    return poll(&look, 1, 0) == 1;
}

/* In place of the C library's. */
int ioctl(int fd, unsigned long request, ...)
{
    va_list arguments;
    va_start(arguments, request);
    void *argument = va_arg(arguments, void *);
    va_end(arguments);
    if (request != SYNC_IOC_FILE_INFO || !is_known(fd))
        return (int)syscall(SYS_ioctl, fd, request, argument);
    struct sync_file_info *info = argument;
    strcpy(info->name, "double");
    info->status = sync_fd_is_signalled(fd);
    return 0;
}

/* ---- The driver ---- */

typedef struct import {
    VkSemaphore semaphore;
    int fd; /* -1: signalled already */
} import;

/* What connects a file and a timeline of the real driver's. */
typedef struct bridge {
    worker worker;
    VkSemaphore shadow;
    int fd;
} bridge;

static vk_context *device;
static VkDeviceCreateInfo create_info;
static const char *extensions[16];
static import imports[MAX_IMPORTS];
static unsigned import_count;
static bridge bridges[MAX_IMPORTS];
static unsigned bridge_count;
static bool minus_one;
static bool was_exported;
static flag stop;

static const VkBaseInStructure *find(const void *next, VkStructureType type)
{
    for (const VkBaseInStructure *at = next; at; at = at->pNext) {
        if (at->sType == type)
            return at;
    }
    return NULL;
}

static VKAPI_ATTR void VKAPI_CALL properties(VkPhysicalDevice physical,
                                             const VkPhysicalDeviceExternalSemaphoreInfo *info,
                                             VkExternalSemaphoreProperties *out)
{
    const VkSemaphoreTypeCreateInfo *type = (const VkSemaphoreTypeCreateInfo *)find(
        info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    if (info->handleType != SYNC) {
        hook_real.GetPhysicalDeviceExternalSemaphoreProperties(physical, info, out);
        return;
    }
    bool timeline = type && type->semaphoreType == VK_SEMAPHORE_TYPE_TIMELINE;
    out->compatibleHandleTypes = timeline ? 0 : SYNC;
    out->exportFromImportedHandleTypes = timeline ? 0 : SYNC;
    out->externalSemaphoreFeatures = timeline ? 0
                                              : VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT |
                                                    VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT;
}

/* The real driver does not hear of sync files. */
static VKAPI_ATTR VkResult VKAPI_CALL create_semaphore(VkDevice on,
                                                       const VkSemaphoreCreateInfo *info,
                                                       const VkAllocationCallbacks *allocator,
                                                       VkSemaphore *out)
{
    const VkSemaphoreTypeCreateInfo *type = (const VkSemaphoreTypeCreateInfo *)find(
        info->pNext, VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO);
    const VkExportSemaphoreCreateInfo *exported = (const VkExportSemaphoreCreateInfo *)find(
        info->pNext, VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO);
    VkExportSemaphoreCreateInfo export_copy = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
        .handleTypes = exported ? exported->handleTypes & ~(VkFlags)SYNC : 0,
    };
    VkSemaphoreTypeCreateInfo type_copy = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .pNext = export_copy.handleTypes ? &export_copy : NULL,
        .semaphoreType = type ? type->semaphoreType : VK_SEMAPHORE_TYPE_BINARY,
        .initialValue = type ? type->initialValue : 0,
    };
    VkSemaphoreCreateInfo copy = *info;
    copy.pNext = &type_copy;
    return hook_real.CreateSemaphore(on, &copy, allocator, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL import_fd(VkDevice on, const VkImportSemaphoreFdInfoKHR *info)
{
    if (info->handleType != SYNC)
        return hook_real.ImportSemaphoreFdKHR(on, info);
    CHECK(info->flags & VK_SEMAPHORE_IMPORT_TEMPORARY_BIT);
    if (info->fd != -1 && !is_known(info->fd))
        return VK_ERROR_INVALID_EXTERNAL_HANDLE;
    assert_true(import_count < MAX_IMPORTS);
    imports[import_count++] = (import){info->semaphore, info->fd}; /* takes the fd */
    return VK_SUCCESS;
}

static bridge *make_bridge(uint64_t initial, int fd)
{
    assert_true(bridge_count < MAX_IMPORTS);
    bridge *made = &bridges[bridge_count++];
    *made = (bridge){.shadow = vk_make_timeline(device, initial), .fd = fd};
    return made;
}

static void file_to_timeline(void *user)
{
    bridge *self = user;
    while (!flag_is_set(&stop)) {
        struct pollfd look = {.fd = self->fd, .events = POLLIN};
        if (poll(&look, 1, 5) == 1)
            break;
    }
    vk_signal(device, self->shadow, 1);
}

/* A wait on an imported payload becomes one on a timeline that the file's signal advances. */
static void replace_wait(VkSemaphoreSubmitInfo *wait)
{
    for (unsigned i = 0; i < import_count; i++) {
        if (imports[i].semaphore != wait->semaphore)
            continue;
        bridge *to = make_bridge(imports[i].fd < 0, imports[i].fd);
        if (to->fd >= 0)
            worker_start(&to->worker, 0, file_to_timeline, to);
        imports[i] = imports[--import_count];
        wait->semaphore = to->shadow;
        wait->value = 1;
        return;
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL submit(VkQueue queue, uint32_t count,
                                             const VkSubmitInfo2 *infos, VkFence fence)
{
    VkSemaphoreSubmitInfo waits[HOOK_MAX_SEMAPHORES + 1];
    VkSubmitInfo2 copy = infos[0];
    assert_true(count == 1 && copy.waitSemaphoreInfoCount <= COUNT_OF(waits));
    for (uint32_t i = 0; i < copy.waitSemaphoreInfoCount; i++) {
        waits[i] = copy.pWaitSemaphoreInfos[i];
        replace_wait(&waits[i]);
    }
    copy.pWaitSemaphoreInfos = waits;
    return hook_real.QueueSubmit2(queue, 1, &copy, fence);
}

static void timeline_to_file(void *user)
{
    bridge *self = user;
    const uint64_t value = 1;
    const VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &self->shadow,
        .pValues = &value,
    };
    CHECK_VK(device->call.WaitSemaphores(device->device, &info, PATIENCE_NS));
    sync_fd_signal(self->fd);
}

/* An export uses the signal up. */
static VKAPI_ATTR VkResult VKAPI_CALL export_fd(VkDevice on, const VkSemaphoreGetFdInfoKHR *info,
                                                int *fd)
{
    if (info->handleType != SYNC)
        return hook_real.GetSemaphoreFdKHR(on, info, fd);
    bridge *from = make_bridge(0, -1);
    const VkSemaphoreSubmitInfo wait = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
        .semaphore = info->semaphore,
        .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
    };
    const VkSemaphoreSubmitInfo signal = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
        .semaphore = from->shadow,
        .value = 1,
        .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
    };
    const VkSubmitInfo2 batch = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
        .waitSemaphoreInfoCount = 1,
        .pWaitSemaphoreInfos = &wait,
        .signalSemaphoreInfoCount = 1,
        .pSignalSemaphoreInfos = &signal,
    };
    CHECK_VK(hook_real.QueueSubmit2(device->queue, 1, &batch, VK_NULL_HANDLE));
    was_exported = true;
    if (minus_one) {
        *fd = -1;
        return VK_SUCCESS;
    }
    *fd = sync_fd_make();
    from->fd = dup(*fd);
    worker_start(&from->worker, 0, timeline_to_file, from);
    return VK_SUCCESS;
}

/* An export takes the payload away from the semaphore. Here a submit still uses it. */
static VKAPI_ATTR void VKAPI_CALL destroy_semaphore(VkDevice on, VkSemaphore semaphore,
                                                    const VkAllocationCallbacks *allocator)
{
    if (was_exported)
        CHECK_VK(device->call.QueueWaitIdle(device->queue));
    hook_real.DestroySemaphore(on, semaphore, allocator);
}

void sync_fd_export_minus_one(bool on)
{
    minus_one = on;
}

void sync_fd_install(vk_context *vk, sp_vk_device_desc *desc)
{
    unsigned count = 0;
    device = vk;
    for (; count < vk->device_info.enabledExtensionCount; count++)
        extensions[count] = vk->extensions[count];
    extensions[count++] = "VK_KHR_external_semaphore_fd";
    create_info = vk->device_info;
    create_info.enabledExtensionCount = count;
    create_info.ppEnabledExtensionNames = extensions;
    desc->create_info = &create_info;
    HOOK_REPLACE(GetPhysicalDeviceExternalSemaphoreProperties, properties);
    HOOK_REPLACE(CreateSemaphore, create_semaphore);
    HOOK_REPLACE(DestroySemaphore, destroy_semaphore);
    HOOK_REPLACE(ImportSemaphoreFdKHR, import_fd);
    HOOK_REPLACE(GetSemaphoreFdKHR, export_fd);
    HOOK_REPLACE(QueueSubmit2, submit);
}

void sync_fd_uninstall(void)
{
    flag_set(&stop);
    for (unsigned i = 0; i < bridge_count; i++) {
        if (bridges[i].fd >= 0)
            worker_join(&bridges[i].worker);
    }
    vk_finish(device);
    for (unsigned i = 0; i < bridge_count; i++) {
        vk_destroy_semaphore(device, bridges[i].shadow);
        if (bridges[i].fd >= 0)
            close(bridges[i].fd);
    }
    for (unsigned i = 0; i < import_count; i++) {
        if (imports[i].fd >= 0)
            close(imports[i].fd);
    }
    bridge_count = import_count = 0;
}
