/* SPDX-License-Identifier: MIT
 *
 * When a VkSemaphore may be destroyed: once the submits of ours that name it have run. Until then
 * a released one waits in its device's list of retired ones.
 */
#include "vk_internal.h"

static bool progress_reached_locked(const sp_vk_device *device, uint32_t slot, uint64_t value)
{
    const sp_vk_lane *lane = device->slots[slot].lane;
    /* No lane: it went after its last submit had run. */
    if (value == 0 || !lane)
        return true;
    /* Of a lost device nothing new is learnt: what it may still use goes with it. */
    if (sp_vk_is_lost(device))
        return sp_waiter_known_reached(&lane->progress->base, value);
    return sp_vk_timeline_reached(lane->progress, value);
}

bool sp_vk_progress_reached(sp_vk_device *device, uint32_t slot, uint64_t value)
{
    sp_os_mutex_lock(&device->lock);
    bool reached = progress_reached_locked(device, slot, value);
    sp_os_mutex_unlock(&device->lock);
    return reached;
}

void sp_vk_list_add(sp_vk_device *device, sp_vk_semaphore *semaphore)
{
    sp_os_mutex_lock(&device->lock);
    semaphore->next = device->semaphores;
    if (semaphore->next)
        semaphore->next->prev = semaphore;
    device->semaphores = semaphore;
    sp_os_mutex_unlock(&device->lock);
}

static void list_remove_locked(sp_vk_device *device, sp_vk_semaphore *semaphore)
{
    if (semaphore->prev) {
        semaphore->prev->next = semaphore->next;
    } else {
        device->semaphores = semaphore->next;
    }
    if (semaphore->next)
        semaphore->next->prev = semaphore->prev;
    semaphore->next = NULL;
    semaphore->prev = NULL;
}

static bool in_use_locked(const sp_vk_semaphore *semaphore)
{
    const sp_vk_device *device = semaphore->device;
    if (semaphore->handle == VK_NULL_HANDLE || !semaphore->owned)
        return false;
    for (uint32_t slot = 0; slot < SP_VK_MAX_QUEUES; slot++) {
        if (!progress_reached_locked(device, slot, semaphore->last_use[slot]))
            return true;
    }
    return false;
}

static void destroy_handle_locked(sp_vk_semaphore *semaphore)
{
    sp_vk_device *device = semaphore->device;
    if (semaphore->owned && semaphore->handle != VK_NULL_HANDLE)
        device->vk.destroy_semaphore(device->handle, semaphore->handle, NULL);
    semaphore->handle = VK_NULL_HANDLE;
}

static void retire_locked(sp_vk_device *device, sp_vk_semaphore *semaphore)
{
    semaphore->next = device->retired;
    device->retired = semaphore;
    sp_store32(&device->retired_count, device->retired_count + 1);
}

void sp_vk_retire(sp_vk_semaphore *semaphore)
{
    sp_vk_device *device = semaphore->device;
    sp_vk_drain(device);
    sp_os_mutex_lock(&device->lock);
    list_remove_locked(device, semaphore);
    bool in_use = in_use_locked(semaphore);
    if (in_use) {
        retire_locked(device, semaphore);
    } else {
        destroy_handle_locked(semaphore);
    }
    sp_os_mutex_unlock(&device->lock);
    if (!in_use)
        sp_vk_semaphore_free(semaphore);
}

/* Unlinks the retired ones that are free of submits (`all`: every one), their handles destroyed. */
static sp_vk_semaphore *take_retired_locked(sp_vk_device *device, bool all)
{
    sp_vk_semaphore *taken = NULL;
    sp_vk_semaphore **link = &device->retired;
    while (*link) {
        sp_vk_semaphore *semaphore = *link;
        if (!all && in_use_locked(semaphore)) {
            link = &semaphore->next;
            continue;
        }
        *link = semaphore->next;
        destroy_handle_locked(semaphore);
        semaphore->next = taken;
        taken = semaphore;
        sp_store32(&device->retired_count, device->retired_count - 1);
    }
    return taken;
}

static void free_list(sp_vk_semaphore *semaphore)
{
    while (semaphore) {
        sp_vk_semaphore *next = semaphore->next;
        sp_vk_semaphore_free(semaphore);
        semaphore = next;
    }
}

void sp_vk_drain(sp_vk_device *device)
{
    if (SP_LIKELY(sp_load32(&device->retired_count) == 0))
        return;
    sp_os_mutex_lock(&device->lock);
    sp_vk_semaphore *taken = take_retired_locked(device, false);
    sp_os_mutex_unlock(&device->lock);
    free_list(taken);
}

void sp_vk_destroy_handles(sp_vk_device *device)
{
    sp_os_mutex_lock(&device->lock);
    for (sp_vk_semaphore *at = device->semaphores; at; at = at->next)
        destroy_handle_locked(at);
    sp_vk_semaphore *taken = take_retired_locked(device, true);
    sp_vk_note_gone(device, SP_VK_DEAD);
    sp_os_mutex_unlock(&device->lock);
    free_list(taken);
}
