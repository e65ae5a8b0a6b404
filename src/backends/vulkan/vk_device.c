/* SPDX-License-Identifier: MIT
 *
 * The device object: its beginning, its end, and what every call checks first.
 */
#include "vk_internal.h"

#include <stdlib.h>

sp_status sp_vk_check(const sp_vk_device *device)
{
    if (sp_vk_is_forked(device))
        return sp_fail_forked();
    if (sp_load32(&device->gone) & SP_VK_DEAD)
        return sp_fail(SP_ERROR_INVALID_STATE, "the sp_vk_device was destroyed");
    return SP_OK;
}

sp_status sp_vk_check_usable(const sp_vk_device *device)
{
    sp_status status = sp_vk_check(device);
    if (status == SP_OK && sp_vk_is_lost(device))
        status = sp_vk_fail_lost();
    return status;
}

void sp_vk_note_gone(sp_vk_device *device, uint32_t bit)
{
    __atomic_fetch_or(&device->gone, bit, __ATOMIC_ACQ_REL);
}

sp_vk_device *sp_vk_device_ref(sp_vk_device *device)
{
    sp_ref_inc(&device->refs);
    return device;
}

void sp_vk_device_unref(sp_vk_device *device)
{
    if (!sp_ref_dec(&device->refs))
        return;
    sp_pool_empty(&device->signals);
    if (!sp_vk_is_forked(device))
        sp_os_mutex_fini(&device->lock);
    free(device);
}

static const char *check_desc(const sp_vk_device_desc *desc)
{
    if (!desc->instance || !desc->physical_device || !desc->device)
        return "instance, physical_device and device are required";
    if (!desc->get_instance_proc_addr)
        return "get_instance_proc_addr is required: the library links no loader";
    return NULL;
}

sp_status sp_vk_device_create(const sp_vk_device_desc *desc, sp_vk_device **out)
{
    SP_CHECK_ARGUMENT(desc && out, "desc and out are required");
    SP_CHECK_SIZE(desc);
    const char *why = check_desc(desc);
    SP_CHECK_ARGUMENT(!why, why);
    sp_vk_driver driver;
    sp_status status = sp_vk_driver_load(&driver, desc);
    if (status != SP_OK)
        return status;
    sp_vk_device *device = calloc(1, sizeof(*device));
    if (!device || !sp_os_mutex_init(&device->lock)) {
        free(device);
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_vk_device_create: out of memory");
    }
    sp_os_watch_forks();
    device->vk = driver;
    device->handle = desc->device;
    device->physical_device = desc->physical_device;
    device->log = desc->log;
    device->refs = 1;
    device->fork_generation = sp_fork_generation;
    device->signals.object_size = sizeof(sp_vk_signal);
    /* That driver polls by itself: 10 to 24 % of a core for 1 to 1,000 timelines. */
    device->any_is_dear = driver.is_nvidia;
    sp_vk_caps_query(device);
    *out = device;
    return SP_OK;
}

/* ---- The end ---- */

static sp_status wait_until_idle(sp_vk_device *device, uint64_t deadline_ns)
{
    for (uint32_t slot = 0; slot < SP_VK_MAX_QUEUES; slot++) {
        const sp_vk_lane *lane = device->slots[slot].lane;
        if (!lane)
            continue;
        sp_vk_semaphore *progress = lane->progress;
        sp_status status =
            sp_vk_timeline_wait_done(progress, sp_load64(&progress->minted), deadline_ns);
        if (status != SP_OK)
            return status;
    }
    return SP_OK;
}

/* What is not known reached by now never will be. */
static void end_waiter(sp_waiter *waiter)
{
    sp_error error;
    sp_error_format(&error, SP_ERROR_INVALID_STATE, "its sp_vk_device was destroyed before");
    error.backend = SP_BACKEND_VULKAN;
    sp_waiter_fail(waiter, 0, &error);
}

/* The first semaphore after `at` (NULL: of all) that is not being released, as a reference. */
static sp_vk_semaphore *next_live(sp_vk_device *device, const sp_vk_semaphore *at)
{
    sp_os_mutex_lock(&device->lock);
    sp_vk_semaphore *next = at ? at->next : device->semaphores;
    while (next && !sp_waiter_try_ref(&next->base))
        next = next->next;
    sp_os_mutex_unlock(&device->lock);
    return next;
}

/* Asks each a last time, so that what was reached stays so. */
static void end_semaphores(sp_vk_device *device)
{
    sp_vk_semaphore *at = next_live(device, NULL);
    while (at) {
        uint64_t counter;
        if (at->type == VK_SEMAPHORE_TYPE_TIMELINE && sp_vk_timeline_read(at, &counter) == SP_OK)
            sp_waiter_reached(&at->base, counter);
        end_waiter(&at->base);
        sp_vk_semaphore *next = next_live(device, at);
        sp_waiter_unref(&at->base);
        at = next;
    }
}

/* Its wait has run: the progress timeline, which is asked here, says so. */
static void end_signal(void *unused, void *object)
{
    (void)unused;
    sp_waiter *waiter = &((sp_vk_signal *)object)->oneshot.base;
    if (!sp_waiter_try_ref(waiter))
        return;
    sp_waiter_probe(waiter, 1);
    end_waiter(waiter);
    sp_waiter_unref(waiter);
}

static void free_queues(sp_vk_device *device)
{
    for (uint32_t slot = 0; slot < SP_VK_MAX_QUEUES; slot++) {
        sp_vk_lane *lane = device->slots[slot].lane;
        device->slots[slot].lane = NULL;
        if (lane)
            sp_vk_lane_free(lane);
    }
}

sp_status sp_vk_device_destroy(sp_vk_device *device, uint64_t timeout_ns)
{
    if (!device)
        return SP_OK;
    if (sp_vk_is_forked(device)) {
        free_queues(device);
        sp_vk_device_unref(device);
        return sp_fail_forked();
    }
    sp_status status = wait_until_idle(device, sp_deadline_ns(timeout_ns));
    if (status != SP_OK)
        return status;
    sp_pool_each(&device->signals, end_signal, NULL);
    end_semaphores(device);
    sp_vk_destroy_handles(device);
    free_queues(device);
    sp_vk_device_unref(device);
    return SP_OK;
}
