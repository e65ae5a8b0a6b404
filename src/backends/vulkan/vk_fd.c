/* SPDX-License-Identifier: MIT
 *
 * Semaphores as file descriptors.
 */
#include "vk_internal.h"

#include <errno.h>
#include <string.h>

#define OPAQUE_FD VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT
#define SYNC_FD VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT

/* ---- Import ---- */

static sp_status screen(sp_vk_device *device, VkSemaphoreType type,
                        VkExternalSemaphoreHandleTypeFlagBits handle_type, int fd)
{
    const sp_vk_semaphore_caps *caps = sp_vk_caps_of(device, type, handle_type);
    if (!caps->can_import) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED, "the device cannot import this: %s",
                       caps->why_not ? caps->why_not : "no reason known");
    }
    return handle_type == SYNC_FD ? sp_vk_screen_sync_fd(fd)
                                  : sp_vk_screen_opaque_fd(device, type, fd);
}

static sp_status fail_import(sp_vk_device *device, VkResult result)
{
    /* What drivers say to a handle of the right kind that they cannot use. */
    if (result == VK_ERROR_INITIALIZATION_FAILED && !sp_os_fd_exhausted()) {
        return sp_fail_native(SP_ERROR_INVALID_HANDLE, SP_BACKEND_VULKAN, result,
                              "vkImportSemaphoreFdKHR",
                              "the driver cannot use the handle: its maker may be another driver");
    }
    return sp_vk_fail(device, result, "vkImportSemaphoreFdKHR");
}

/* Puts a duplicate of the fd, which was screened, into the VkSemaphore. */
static sp_status import_duplicate(sp_vk_semaphore *semaphore,
                                  VkExternalSemaphoreHandleTypeFlagBits handle_type, int fd,
                                  bool temporary)
{
    sp_vk_device *device = semaphore->device;
    int duplicate = fd < 0 ? fd : sp_os_fd_duplicate(fd);
    if (fd >= 0 && duplicate < 0) {
        return sp_fail_native(SP_ERROR_SYSTEM, SP_BACKEND_CPU, errno, "fcntl",
                              "fd %d could not be duplicated: %s", fd, strerror(errno));
    }
    VkImportSemaphoreFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_IMPORT_SEMAPHORE_FD_INFO_KHR,
        .semaphore = semaphore->handle,
        .flags = temporary ? VK_SEMAPHORE_IMPORT_TEMPORARY_BIT : 0,
        .handleType = handle_type,
        .fd = duplicate,
    };
    VkResult result = device->vk.import_semaphore_fd(device->handle, &info);
    if (result == VK_SUCCESS)
        return SP_OK; /* the duplicate is the driver's now */
    bool closes = device->vk.driver_id == VK_DRIVER_ID_GOOGLE_SWIFTSHADER;
    if (duplicate >= 0 && !sp_os_fd_reclaim(fd, duplicate, !closes))
        sp_log_message(&device->log, SP_LOG_WARN, "the driver closed the fd of a failed import");
    return fail_import(device, result);
}

static const char *check_import(const sp_vk_semaphore_import_desc *desc)
{
    bool timeline = desc->type == VK_SEMAPHORE_TYPE_TIMELINE;
    if (!sp_vk_is_semaphore_type(desc->type))
        return "unknown semaphore type";
    if (desc->handle_type != OPAQUE_FD && desc->handle_type != SYNC_FD)
        return "the handle type is neither OPAQUE_FD nor SYNC_FD";
    if (desc->handle_type == SYNC_FD && timeline)
        return "a sync_file is one signal of a binary semaphore, not a timeline";
    if (desc->handle_type == SYNC_FD && !desc->temporary)
        return "a sync_file is imported for one wait: set temporary";
    if (timeline && desc->temporary)
        return "a timeline's import is permanent";
    return NULL;
}

/* A permanent import can be handed on if its VkSemaphore was made for that, says a driver. */
static VkExternalSemaphoreHandleTypeFlags reexport_types(const sp_vk_device *device,
                                                         const sp_vk_semaphore_import_desc *desc)
{
    const sp_vk_semaphore_caps *caps = sp_vk_caps_of(device, desc->type, desc->handle_type);
    if (desc->temporary || !caps->can_export)
        return 0;
    return caps->export_from_imported & desc->handle_type;
}

static sp_status import_screened(sp_vk_device *device, const sp_vk_semaphore_import_desc *desc,
                                 sp_vk_semaphore **out)
{
    sp_vk_semaphore *made;
    sp_vk_semaphore_setup setup = {
        .type = desc->type,
        .owned = true,
        .to_import = true,
        .export_types = reexport_types(device, desc),
    };
    sp_status status = sp_vk_semaphore_make(device, &setup, &made);
    if (status != SP_OK)
        return status;
    status = import_duplicate(made, desc->handle_type, desc->fd, desc->temporary);
    uint64_t start = 0;
    if (status == SP_OK && desc->type == VK_SEMAPHORE_TYPE_TIMELINE)
        status = sp_vk_timeline_read(made, &start);
    if (status != SP_OK) {
        sp_error error = *sp_last_error();
        sp_vk_semaphore_unref(made);
        return sp_fail_with(&error);
    }
    sp_vk_timeline_start(made, start);
    made->imported = true;
    made->temporary = desc->temporary;
    made->signalled = desc->fd == -1;
    *out = made;
    return SP_OK;
}

sp_status sp_vk_semaphore_import(sp_vk_device *device, const sp_vk_semaphore_import_desc *desc,
                                 sp_vk_semaphore **out)
{
    SP_CHECK_ARGUMENT(device && desc && out, "device, desc and out are required");
    SP_CHECK_SIZE(desc);
    const char *why = check_import(desc);
    SP_CHECK_ARGUMENT(!why, why);
    sp_status status = sp_vk_check(device);
    if (status == SP_OK)
        status = screen(device, desc->type, desc->handle_type, desc->fd);
    if (status == SP_OK)
        status = import_screened(device, desc, out);
    if (status == SP_OK && desc->adopt && desc->fd >= 0)
        sp_os_fd_close(desc->fd);
    return status;
}

/* ---- Payloads for a semaphore that is there ---- */

static sp_status check_free(sp_vk_semaphore *binary)
{
    sp_os_mutex_lock(&binary->lock);
    sp_status status = sp_vk_binary_check_free_locked(binary, SP_VK_NO_SLOT);
    sp_os_mutex_unlock(&binary->lock);
    return status;
}

static void note_payload(sp_vk_semaphore *binary, bool signalled)
{
    sp_os_mutex_lock(&binary->lock);
    binary->imported = true;
    binary->shared = true;
    binary->temporary = true;
    binary->spent = false;
    binary->signalled = signalled;
    sp_os_mutex_unlock(&binary->lock);
}

sp_status sp_vk_semaphore_import_payload(sp_vk_semaphore *semaphore,
                                         VkExternalSemaphoreHandleTypeFlagBits handle_type, int fd)
{
    sp_vk_device *device = semaphore->device;
    assert(semaphore->type == VK_SEMAPHORE_TYPE_BINARY);
    sp_status status = sp_vk_check(device);
    if (status == SP_OK)
        status = screen(device, VK_SEMAPHORE_TYPE_BINARY, handle_type, fd);
    if (status == SP_OK)
        status = check_free(semaphore);
    if (status == SP_OK)
        status = import_duplicate(semaphore, handle_type, fd, true);
    if (status == SP_OK)
        note_payload(semaphore, fd == -1);
    return status;
}

/* ---- Export ---- */

sp_status sp_vk_export_fd(sp_vk_semaphore *semaphore,
                          VkExternalSemaphoreHandleTypeFlagBits handle_type, int *fd)
{
    sp_vk_device *device = semaphore->device;
    VkSemaphoreGetFdInfoKHR info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_GET_FD_INFO_KHR,
        .semaphore = semaphore->handle,
        .handleType = handle_type,
    };
    int exported = -1;
    VkResult result = device->vk.get_semaphore_fd(device->handle, &info, &exported);
    if (result != VK_SUCCESS)
        return sp_vk_fail(device, result, "vkGetSemaphoreFdKHR");
    *fd = exported;
    return SP_OK;
}

/* Why the driver must not be asked, or NULL: one crashes if it cannot. */
static const char *why_not_exportable(const sp_vk_semaphore *semaphore,
                                      VkExternalSemaphoreHandleTypeFlagBits handle_type)
{
    const sp_vk_semaphore_caps *caps =
        sp_vk_caps_of(semaphore->device, semaphore->type, handle_type);
    if (!caps->can_export)
        return caps->why_not;
    if (semaphore->imported && !(caps->export_from_imported & handle_type))
        return "the driver does not export what was imported";
    if (!(semaphore->export_types & handle_type))
        return "it was not made exportable: export_types lacks this handle type";
    return NULL;
}

sp_status sp_vk_semaphore_export(sp_vk_semaphore *semaphore,
                                 VkExternalSemaphoreHandleTypeFlagBits handle_type, int *fd)
{
    SP_CHECK_ARGUMENT(semaphore && fd, "semaphore and fd are required");
    SP_CHECK_ARGUMENT(handle_type != SYNC_FD,
                      "a sync_file is of one signal: sp_vk_point_export_sync_fd()");
    SP_CHECK_ARGUMENT(handle_type == OPAQUE_FD, "the handle type is not OPAQUE_FD");
    sp_status status = sp_vk_check(semaphore->device);
    if (status != SP_OK)
        return status;
    sp_os_mutex_lock(&semaphore->lock);
    const char *why = why_not_exportable(semaphore, handle_type);
    if (semaphore->temporary) {
        status = sp_fail(SP_ERROR_INVALID_STATE, "sp_vk_semaphore_export: a temporary import "
                                                 "serves one wait here, not elsewhere");
    } else if (why) {
        status = sp_fail(SP_ERROR_NOT_SUPPORTED, "sp_vk_semaphore_export: %s", why);
    } else {
        status = sp_vk_export_fd(semaphore, handle_type, fd);
    }
    if (status == SP_OK)
        semaphore->shared = true;
    sp_os_mutex_unlock(&semaphore->lock);
    return status;
}

/* ---- One signal as a sync_file ---- */

/* The signal is claimed, so nobody waits on the semaphore, as Vulkan wants for this. */
static sp_status export_claimed(sp_vk_signal *signal, int *fd)
{
    sp_vk_semaphore *binary = signal->semaphore;
    int exported = -1;
    sp_os_mutex_lock(&binary->lock);
    sp_status status = sp_vk_export_fd(binary, SYNC_FD, &exported);
    if (status == SP_OK)
        sp_store32(&signal->oneshot.state, SP_ONESHOT_CONSUMED);
    sp_os_mutex_unlock(&binary->lock);
    if (status != SP_OK) {
        sp_oneshot_unclaim(&signal->oneshot);
        return status;
    }
    if (exported == -1)
        sp_waiter_reached(&signal->oneshot.base, 1);
    *fd = exported;
    return SP_OK;
}

sp_status sp_vk_point_export_sync_fd(const sp_point *point, int *fd)
{
    sp_waiter *waiter;
    SP_CHECK_ARGUMENT(point && fd, "point and fd are required");
    sp_status status = sp_point_check(point, &waiter);
    if (status != SP_OK)
        return status;
    if (!waiter || waiter->ops != &sp_vk_signal_ops) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED, "sp_vk_point_export_sync_fd: the point is not one "
                                               "signal of a binary Vulkan semaphore");
    }
    sp_vk_signal *signal = sp_vk_signal_of(waiter);
    status = sp_vk_check_usable(signal->semaphore->device);
    if (status != SP_OK)
        return status;
    const char *why = why_not_exportable(signal->semaphore, SYNC_FD);
    if (why)
        return sp_fail(SP_ERROR_NOT_SUPPORTED, "sp_vk_point_export_sync_fd: %s", why);
    status = sp_vk_signal_check_depends(signal);
    if (status == SP_OK)
        status = sp_oneshot_claim(&signal->oneshot);
    return status == SP_OK ? export_claimed(signal, fd) : status;
}
