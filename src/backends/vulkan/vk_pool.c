/* SPDX-License-Identifier: MIT
 *
 * The device's spare signals, so that making a point of a binary calls no allocator once there is
 * one. What the pool made it keeps until the device's memory goes.
 */
#include "vk_internal.h"

#include <stdlib.h>

sp_vk_signal *sp_vk_pool_get(sp_vk_device *device)
{
    sp_os_spin_lock(&device->pool_lock);
    sp_vk_signal *spare = device->free_signals;
    if (spare)
        device->free_signals = spare->next_free;
    sp_os_spin_unlock(&device->pool_lock);
    if (spare)
        return spare;
    sp_vk_signal *made = calloc(1, sizeof(*made));
    if (!made) {
        sp_fail(SP_ERROR_OUT_OF_MEMORY, "one signal of a binary semaphore: out of memory");
        return NULL;
    }
    sp_os_spin_lock(&device->pool_lock);
    made->next_made = device->made_signals;
    device->made_signals = made;
    sp_os_spin_unlock(&device->pool_lock);
    return made;
}

void sp_vk_pool_put(sp_vk_device *device, sp_vk_signal *signal)
{
    sp_os_spin_lock(&device->pool_lock);
    signal->next_free = device->free_signals;
    device->free_signals = signal;
    sp_os_spin_unlock(&device->pool_lock);
}

void sp_vk_pool_free_all(sp_vk_device *device)
{
    sp_vk_signal *at = device->made_signals;
    while (at) {
        sp_vk_signal *next = at->next_made;
        free(at);
        at = next;
    }
}
