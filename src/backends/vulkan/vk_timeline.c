/* SPDX-License-Identifier: MIT
 *
 * Timelines: reading and waiting, and the guard over the values that we signal.
 */
#include "vk_internal.h"

#include <inttypes.h>
#include <stdlib.h>

#define WAITS_ON_STACK 64
/* A wait of 1 ms or more that took an eighth of it or more of a core has spun: sleeping ones take a
 * hundredth, and on a busy machine who spins does not get all of a core. */
#define LONG_WAIT UINT64_C(1000000)
#define SPINNING 8

/* ---- Reading ---- */

static sp_status keep_failure(sp_vk_semaphore *timeline)
{
    sp_error error = *sp_last_error();
    sp_waiter_fail(&timeline->base, 0, &error);
    return sp_fail_with(&error);
}

/* The counter cannot be believed: says what is wrong, for good. */
static sp_status explain_counter(sp_vk_semaphore *timeline, uint64_t counter, uint64_t seen)
{
    /* Of a shared one it may be another device, in another API. */
    if (counter == UINT64_MAX && !timeline->shared)
        sp_vk_note_gone(timeline->device, SP_VK_LOST);
    if (counter == UINT64_MAX) {
        sp_fail_native(SP_ERROR_DEVICE_LOST, SP_BACKEND_VULKAN, 0, "vkGetSemaphoreCounterValue",
                       "the timeline's counter is UINT64_MAX: the device that signals it is gone");
    } else {
        sp_fail_native(SP_ERROR_INVALID_STATE, SP_BACKEND_VULKAN, 0, "vkGetSemaphoreCounterValue",
                       "the timeline's counter went back from %" PRIu64 " to %" PRIu64
                       ": somebody signalled a value that does not increase",
                       seen, counter);
    }
    return keep_failure(timeline);
}

static SP_COLD sp_status read_failed(sp_vk_semaphore *timeline, VkResult result, uint64_t counter,
                                     uint64_t seen)
{
    if (result == VK_SUCCESS)
        return explain_counter(timeline, counter, seen);
    sp_vk_fail(timeline->device, result, "vkGetSemaphoreCounterValue");
    if (result == VK_ERROR_DEVICE_LOST)
        return keep_failure(timeline);
    return sp_last_error()->status;
}

/* Inlined into the probe: this is what a pending point costs. */
static inline sp_status read_counter(sp_vk_semaphore *timeline, uint64_t *counter)
{
    sp_vk_device *device = timeline->device;
    /* Loaded before the driver is asked: another thread may see a newer value meanwhile. */
    uint64_t seen = sp_load64(&timeline->base.reached);
    if (!SP_LIKELY(sp_load32(&device->gone) == 0))
        return sp_vk_fail_lost();
    VkResult result = device->vk.get_counter_value(device->handle, timeline->handle, counter);
    if (SP_LIKELY(result == VK_SUCCESS && *counter >= seen && *counter != UINT64_MAX))
        return SP_OK;
    return read_failed(timeline, result, *counter, seen);
}

sp_status sp_vk_timeline_read(sp_vk_semaphore *timeline, uint64_t *counter)
{
    uint64_t now = 0;
    sp_status status = read_counter(timeline, &now);
    if (status == SP_OK)
        *counter = now;
    return status;
}

bool sp_vk_timeline_reached(sp_vk_semaphore *timeline, uint64_t value)
{
    uint64_t counter;
    if (sp_waiter_known_reached(&timeline->base, value))
        return true;
    if (sp_vk_timeline_read(timeline, &counter) != SP_OK)
        return false;
    sp_waiter_reached(&timeline->base, counter);
    return value <= counter;
}

static SP_COLD sp_status log_failure(sp_vk_semaphore *timeline, sp_status status)
{
    sp_log_message(&timeline->device->log, SP_LOG_ERROR, "vulkan timeline: %s",
                   sp_last_error()->message);
    return status;
}

sp_status sp_vk_timeline_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    sp_vk_semaphore *timeline = sp_vk_timeline_of(waiter);
    sp_status status = read_counter(timeline, reached);
    return SP_LIKELY(status == SP_OK) ? SP_OK : log_failure(timeline, status);
}

/* ---- Waiting on the host ---- */

/* How long one driver call may wait. Short, since a layer may hold a lock meanwhile that a thread
 * which wants to signal needs, and since a lost device is not always noticed by a blocked call. */
static uint64_t slice_left(uint64_t deadline_ns)
{
    uint64_t now = sp_now_ns();
    if (now >= deadline_ns)
        return 0;
    return deadline_ns - now < SP_WAIT_SLICE ? deadline_ns - now : SP_WAIT_SLICE;
}

static sp_status wait_handles(sp_vk_device *device, const VkSemaphoreWaitInfo *info,
                              uint64_t deadline_ns)
{
    if (sp_load32(&device->gone))
        return sp_vk_fail_lost();
    VkResult result = device->vk.wait_semaphores(device->handle, info, slice_left(deadline_ns));
    if (result == VK_SUCCESS)
        return SP_OK;
    return result == VK_TIMEOUT ? SP_TIMEOUT : sp_vk_fail(device, result, "vkWaitSemaphores");
}

sp_status sp_vk_timeline_block(sp_vk_semaphore *timeline, uint64_t value, uint64_t deadline_ns)
{
    VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &timeline->handle,
        .pValues = &value,
    };
    sp_status status = wait_handles(timeline->device, &info, deadline_ns);
    if (status != SP_OK)
        return status;
    /* A lost device may end the wait with success. The counter tells. */
    status = sp_waiter_probe(&timeline->base, value);
    return status == SP_PENDING ? SP_TIMEOUT : status;
}

sp_status sp_vk_timeline_block_op(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    return sp_vk_timeline_block(sp_vk_timeline_of(waiter), value, deadline_ns);
}

/* What the driver says, whatever it said before: that the waiter has failed, because one answer
 * could not be believed, is not that the work goes on for ever. */
static bool native_reached(sp_vk_semaphore *timeline, uint64_t value)
{
    sp_vk_device *device = timeline->device;
    uint64_t counter = 0;
    return sp_waiter_known_reached(&timeline->base, value) ||
           (device->vk.get_counter_value(device->handle, timeline->handle, &counter) ==
                VK_SUCCESS &&
            counter >= value);
}

/* A driver that can neither read the counter nor wait for it has lost the device. */
static void block_native(sp_vk_semaphore *timeline, uint64_t value, uint64_t deadline_ns)
{
    VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .semaphoreCount = 1,
        .pSemaphores = &timeline->handle,
        .pValues = &value,
    };
    sp_status status = wait_handles(timeline->device, &info, deadline_ns);
    if (status < 0 && !native_reached(timeline, value))
        sp_vk_note_gone(timeline->device, SP_VK_LOST);
    else if (status == SP_TIMEOUT)
        sp_pause_between_slices(deadline_ns);
}

sp_status sp_vk_timeline_wait_done(sp_vk_semaphore *timeline, uint64_t value, uint64_t deadline_ns)
{
    while (!sp_vk_is_lost(timeline->device) && !native_reached(timeline, value)) {
        if (sp_now_ns() >= deadline_ns)
            return SP_TIMEOUT;
        block_native(timeline, value, deadline_ns);
    }
    return SP_OK;
}

/* No group where waiting for any of it is worse than polling. */
const void *sp_vk_timeline_group(sp_waiter *waiter)
{
    const sp_vk_device *device = sp_vk_timeline_of(waiter)->device;
    return sp_load32(&device->any_is_dear) ? NULL : device;
}

/* Mesa's software drivers ask each semaphore in turn, without a pause, until the time is up. */
static void note_spinning(sp_vk_device *device, uint64_t wall_ns, uint64_t cpu_ns)
{
    if (wall_ns < LONG_WAIT || cpu_ns < wall_ns / SPINNING || !sp_cas32(&device->any_is_dear, 0, 1))
        return;
    sp_log_message(&device->log, SP_LOG_INFO,
                   "vulkan: this driver's wait for any of several timelines takes a whole core; "
                   "they are polled instead");
}

static sp_status wait_any(sp_vk_device *device, const VkSemaphoreWaitInfo *info,
                          uint64_t deadline_ns)
{
    uint64_t wall = sp_now_ns(), cpu = sp_os_thread_cpu_ns();
    sp_status status = wait_handles(device, info, deadline_ns);
    note_spinning(device, sp_now_ns() - wall, sp_os_thread_cpu_ns() - cpu);
    return status;
}

static sp_status block_all(sp_waiter *const *waiters, const uint64_t *values, size_t count,
                           VkSemaphore *handles, const VkSemaphoreWaitInfo *info,
                           uint64_t deadline_ns)
{
    for (size_t i = 0; i < count; i++)
        handles[i] = sp_vk_timeline_of(waiters[i])->handle;
    VkSemaphoreWaitInfo filled = *info;
    filled.semaphoreCount = (uint32_t)count;
    filled.pSemaphores = handles;
    filled.pValues = values;
    sp_vk_device *device = sp_vk_timeline_of(waiters[0])->device;
    bool any_of_several = info->flags != 0 && count > 1;
    return any_of_several ? wait_any(device, &filled, deadline_ns)
                          : wait_handles(device, &filled, deadline_ns);
}

sp_status sp_vk_timeline_block_many(sp_waiter *const *waiters, const uint64_t *values, size_t count,
                                    sp_wait_mode mode, uint64_t deadline_ns)
{
    VkSemaphore on_stack[WAITS_ON_STACK];
    VkSemaphoreWaitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_WAIT_INFO,
        .flags = mode == SP_WAIT_ANY ? VK_SEMAPHORE_WAIT_ANY_BIT : 0,
    };
    if (count <= WAITS_ON_STACK)
        return block_all(waiters, values, count, on_stack, &info, deadline_ns);
    VkSemaphore *handles = malloc(count * sizeof(VkSemaphore));
    if (!handles) {
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_wait_many: out of memory for %zu timelines",
                       count);
    }
    sp_status status = block_all(waiters, values, count, handles, &info, deadline_ns);
    free(handles);
    return status;
}

/* ---- The guard over values ---- */

void sp_vk_timeline_start(sp_vk_semaphore *timeline, uint64_t value)
{
    sp_waiter_reached(&timeline->base, value);
    sp_store64(&timeline->minted, value);
    sp_store64(&timeline->settled, value);
}

sp_status sp_vk_timeline_check_distance(sp_vk_semaphore *timeline, uint64_t value)
{
    uint64_t most = timeline->device->vk.max_difference;
    uint64_t counter = sp_load64(&timeline->base.reached);
    if (value - counter <= most)
        return SP_OK;
    /* What we know of the counter may be old. */
    sp_status status = sp_vk_timeline_read(timeline, &counter);
    if (status != SP_OK)
        return status;
    sp_waiter_reached(&timeline->base, counter);
    if (value <= counter || value - counter <= most)
        return SP_OK;
    return sp_fail(SP_ERROR_INVALID_ARGUMENT,
                   "value %" PRIu64 " is too far above the timeline's %" PRIu64
                   ": this device allows a difference of %" PRIu64,
                   value, counter, most);
}

sp_status sp_vk_timeline_mint_locked(sp_vk_semaphore *timeline, uint64_t wanted, uint64_t *value)
{
    uint64_t floor = timeline->minted;
    if (timeline->shared) {
        uint64_t counter;
        sp_status status = sp_vk_timeline_read(timeline, &counter);
        if (status != SP_OK)
            return status;
        sp_waiter_reached(&timeline->base, counter);
        floor = counter > floor ? counter : floor;
    }
    uint64_t next = wanted ? wanted : floor + 1;
    if (next <= floor) {
        return sp_fail(SP_ERROR_INVALID_ARGUMENT,
                       "value %" PRIu64 " is not above %" PRIu64
                       ", which the timeline has reached or will reach by a pending signal",
                       next, floor);
    }
    if (next == UINT64_MAX)
        return sp_fail(SP_ERROR_INVALID_ARGUMENT, "UINT64_MAX is not a timeline value");
    sp_status status = sp_vk_timeline_check_distance(timeline, next);
    if (status == SP_OK)
        *value = next;
    return status;
}

/* ---- Public ---- */

sp_point sp_vk_timeline_point_of(sp_vk_semaphore *timeline, uint64_t value)
{
    return (sp_point){
        .kind = SP_KIND_VULKAN,
        .flags = SP_POINT_HAS_VALUE,
        .value = value,
        .raw.vulkan = {.semaphore = sp_vk_word_of_handle(timeline->handle),
                       .device = timeline->device->handle},
        .waiter = sp_waiter_ref(&timeline->base),
    };
}

sp_status sp_vk_timeline_point(sp_vk_semaphore *semaphore, uint64_t value, sp_point *out)
{
    SP_CHECK_ARGUMENT(semaphore && out, "semaphore and out are required");
    SP_CHECK_ARGUMENT(semaphore->type == VK_SEMAPHORE_TYPE_TIMELINE,
                      "a binary semaphore has no values: sp_vk_binary_point()");
    SP_CHECK_ARGUMENT(value != UINT64_MAX, "UINT64_MAX is not a timeline value");
    sp_status status = sp_vk_check(semaphore->device);
    if (status != SP_OK)
        return status;
    /* Field by field: a local that is copied as a whole costs a stalled load. */
    sp_ref_inc(&semaphore->base.refs);
    out->kind = SP_KIND_VULKAN;
    out->flags = SP_POINT_HAS_VALUE;
    out->value = value;
    out->raw.vulkan.semaphore = sp_vk_word_of_handle(semaphore->handle);
    out->raw.vulkan.device = semaphore->device->handle;
    out->raw.words[2] = 0;
    out->waiter = &semaphore->base;
    return SP_OK;
}

/* Vulkan wants a host's value below that of every pending signal, and our guard wants it above. */
static sp_status check_none_pending_locked(sp_vk_semaphore *timeline)
{
    uint64_t pending = timeline->minted;
    uint64_t counter;
    sp_status status = sp_vk_timeline_read(timeline, &counter);
    if (status != SP_OK || pending <= counter)
        return status;
    return sp_fail(SP_ERROR_INVALID_STATE,
                   "sp_vk_semaphore_signal: a queue's signal of %" PRIu64
                   " is pending, and a host signal cannot be ordered behind it: wait for it first",
                   pending);
}

static sp_status host_signal_locked(sp_vk_semaphore *timeline, uint64_t wanted)
{
    sp_vk_device *device = timeline->device;
    uint64_t value = 0;
    sp_status status = sp_vk_timeline_mint_locked(timeline, wanted, &value);
    if (status == SP_OK)
        status = check_none_pending_locked(timeline);
    if (status != SP_OK)
        return status;
    VkSemaphoreSignalInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
        .semaphore = timeline->handle,
        .value = value,
    };
    VkResult result = device->vk.signal_semaphore(device->handle, &info);
    if (result != VK_SUCCESS)
        return sp_vk_fail(device, result, "vkSignalSemaphore");
    sp_store64(&timeline->minted, value);
    sp_store64(&timeline->settled, value);
    timeline->signal_slot = SP_VK_NO_SLOT;
    return SP_OK;
}

sp_status sp_vk_semaphore_signal(sp_vk_semaphore *semaphore, uint64_t value)
{
    SP_CHECK_ARGUMENT(semaphore, "semaphore is required");
    SP_CHECK_ARGUMENT(semaphore->type == VK_SEMAPHORE_TYPE_TIMELINE,
                      "the host cannot signal a binary semaphore");
    SP_CHECK_ARGUMENT(value != 0, "0 is not above any value");
    sp_status status = sp_vk_check_usable(semaphore->device);
    if (status != SP_OK)
        return status;
    sp_os_mutex_lock(&semaphore->lock);
    status = host_signal_locked(semaphore, value);
    sp_os_mutex_unlock(&semaphore->lock);
    return status;
}

sp_status sp_vk_semaphore_value(sp_vk_semaphore *semaphore, uint64_t *value)
{
    SP_CHECK_ARGUMENT(semaphore && value, "semaphore and value are required");
    SP_CHECK_ARGUMENT(semaphore->type == VK_SEMAPHORE_TYPE_TIMELINE,
                      "a binary semaphore has no value");
    sp_status status = sp_vk_check_usable(semaphore->device);
    if (status == SP_OK)
        status = sp_vk_timeline_read(semaphore, value);
    if (status == SP_OK)
        sp_waiter_reached(&semaphore->base, *value);
    return status;
}
