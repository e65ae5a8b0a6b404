/* SPDX-License-Identifier: MIT
 *
 * Handles are looked at before a driver sees them: after one bad fd a driver makes no exportable
 * timelines any more, and another closes it.
 *
 * What a good OPAQUE_FD looks like differs by driver, so the device is asked for one of its own,
 * and a candidate must be of the same kind.
 */
#include "vk_internal.h"

/* ---- What the driver's own handles look like ---- */

static sp_status export_sample(sp_vk_device *device, VkSemaphoreType type, int *fd)
{
    sp_vk_semaphore *sample;
    sp_vk_semaphore_setup setup = {
        .type = type,
        .owned = true,
        .export_types = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    sp_status status = sp_vk_semaphore_make(device, &setup, &sample);
    if (status != SP_OK)
        return status;
    status = sp_vk_export_fd(sample, VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT, fd);
    sp_vk_semaphore_unref(sample);
    return status;
}

static sp_status take_fingerprint(sp_vk_device *device, VkSemaphoreType type, sp_os_fd_kind *kind)
{
    int fd = -1;
    sp_status status = export_sample(device, type, &fd);
    if (status != SP_OK)
        return status;
    bool open = sp_os_fd_get_kind(fd, kind);
    sp_os_fd_close(fd);
    if (!open)
        return sp_fail(SP_ERROR_BACKEND, "the driver exported a handle that is not open");
    return SP_OK;
}

/* Two threads may both take it: they find the same. */
static sp_status get_fingerprint(sp_vk_device *device, VkSemaphoreType type, sp_os_fd_kind *kind)
{
    sp_vk_fingerprint *kept = &device->fingerprints[type];
    sp_os_mutex_lock(&device->lock);
    bool known = kept->known;
    *kind = kept->kind;
    sp_os_mutex_unlock(&device->lock);
    if (known)
        return SP_OK;
    sp_status status = take_fingerprint(device, type, kind);
    if (status != SP_OK)
        return status;
    sp_os_mutex_lock(&device->lock);
    kept->kind = *kind;
    kept->known = true;
    sp_os_mutex_unlock(&device->lock);
    return SP_OK;
}

/* ---- Screening ---- */

sp_status sp_vk_screen_opaque_fd(sp_vk_device *device, VkSemaphoreType type, int fd)
{
    sp_os_fd_kind kind;
    sp_os_fd_kind own;
    if (!sp_os_fd_get_kind(fd, &kind))
        return sp_fail(SP_ERROR_INVALID_HANDLE, "fd %d is not open", fd);
    if (!device->caps[type][0].can_export) {
        /* It has no handle of its own to compare with. */
        if (sp_os_fd_is_no_semaphore(&kind))
            return sp_fail(SP_ERROR_INVALID_HANDLE, "fd %d is no semaphore: %s", fd, kind.name);
        return SP_OK;
    }
    sp_status status = get_fingerprint(device, type, &own);
    if (status != SP_OK)
        return status;
    if (!sp_os_fd_same_kind(&kind, &own)) {
        return sp_fail(SP_ERROR_INVALID_HANDLE,
                       "fd %d (%s) is not what this driver's semaphores are (%s)", fd, kind.name,
                       own.name);
    }
    return SP_OK;
}

sp_status sp_vk_screen_sync_fd(int fd)
{
    if (fd == -1 || sp_os_fd_is_sync_file(fd))
        return SP_OK;
    return sp_fail(SP_ERROR_INVALID_HANDLE, "fd %d is not an open sync_file", fd);
}
