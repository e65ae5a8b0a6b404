/* SPDX-License-Identifier: MIT
 *
 * Queue objects, and the signals that a caller asks for.
 */
#include "vk_internal.h"

#include <stdlib.h>

/* ---- Slots ---- */

static bool take_slot(sp_vk_queue *queue, uint64_t *base)
{
    sp_vk_device *device = queue->device;
    sp_os_mutex_lock(&device->lock);
    uint32_t slot = 0;
    while (slot < SP_VK_MAX_QUEUES && device->slots[slot].taken)
        slot++;
    bool found = slot < SP_VK_MAX_QUEUES;
    if (found) {
        device->slots[slot].taken = true;
        *base = device->slots[slot].base;
        queue->slot = slot;
    }
    sp_os_mutex_unlock(&device->lock);
    return found;
}

/* From here on others can find the queue; NULL: no more, and the slot is free. */
static void set_slot(sp_vk_device *device, uint32_t slot, sp_vk_queue *queue)
{
    sp_os_mutex_lock(&device->lock);
    device->slots[slot].queue = queue;
    device->slots[slot].taken = queue != NULL;
    sp_os_mutex_unlock(&device->lock);
}

sp_vk_queue *sp_vk_queue_pin(sp_vk_device *device, const sp_vk_semaphore *progress)
{
    sp_vk_queue *found = NULL;
    sp_os_mutex_lock(&device->lock);
    for (uint32_t slot = 0; slot < SP_VK_MAX_QUEUES; slot++) {
        sp_vk_queue *queue = device->slots[slot].queue;
        if (queue && queue->progress == progress) {
            found = queue;
            break;
        }
        if (queue && !found)
            found = queue;
    }
    if (found)
        found->pins++;
    sp_os_mutex_unlock(&device->lock);
    return found;
}

void sp_vk_queue_unpin(sp_vk_queue *queue)
{
    sp_os_mutex_lock(&queue->device->lock);
    queue->pins--;
    sp_os_mutex_unlock(&queue->device->lock);
}

/* ---- Making ---- */

static const char *check_desc(const sp_vk_queue_desc *desc)
{
    if (desc->size != sizeof(*desc))
        return "desc->size is not its size";
    if (!desc->queue)
        return "desc->queue is required";
    if (!desc->lock != !desc->unlock)
        return "lock and unlock: both or neither";
    return NULL;
}

static sp_status make_progress(sp_vk_queue *queue, uint64_t base)
{
    sp_vk_semaphore_setup setup = {
        .type = VK_SEMAPHORE_TYPE_TIMELINE,
        .owned = true,
        .initial_value = base,
    };
    return sp_vk_semaphore_make(queue->device, &setup, &queue->progress);
}

static sp_status start_queue(sp_vk_queue *queue)
{
    uint64_t base = 0;
    if (!take_slot(queue, &base)) {
        return sp_fail(SP_ERROR_INVALID_STATE,
                       "sp_vk_queue_create: %d queues of this device are alive, more cannot be",
                       SP_VK_MAX_QUEUES);
    }
    sp_status status = make_progress(queue, base);
    set_slot(queue->device, queue->slot, status == SP_OK ? queue : NULL);
    return status;
}

sp_status sp_vk_queue_create(sp_vk_device *device, const sp_vk_queue_desc *desc, sp_vk_queue **out)
{
    SP_CHECK_ARGUMENT(device && desc && out, "device, desc and out are required");
    const char *why = check_desc(desc);
    SP_CHECK_ARGUMENT(!why, why);
    sp_status status = sp_vk_check_usable(device);
    if (status != SP_OK)
        return status;
    sp_vk_queue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_vk_queue_create: out of memory");
    queue->device = device;
    queue->handle = desc->queue;
    queue->lock = desc->lock;
    queue->unlock = desc->unlock;
    queue->user = desc->user;
    status = start_queue(queue);
    if (status != SP_OK) {
        free(queue);
        return status;
    }
    *out = queue;
    return SP_OK;
}

/* ---- The end ---- */

void sp_vk_queue_free(sp_vk_queue *queue)
{
    sp_vk_semaphore_unref(queue->progress);
    free(queue);
}

/* Gives the slot back unless a host wait is using the queue, or has just submitted to it. */
static bool try_leave_slot(sp_vk_queue *queue, uint64_t last)
{
    sp_vk_device *device = queue->device;
    sp_vk_slot *slot = &device->slots[queue->slot];
    sp_os_mutex_lock(&device->lock);
    bool free_now = queue->pins == 0 && last == sp_load64(&queue->progress->minted);
    if (free_now) {
        slot->queue = NULL;
        slot->taken = false;
        slot->base = last;
    }
    sp_os_mutex_unlock(&device->lock);
    return free_now;
}

static sp_status leave_when_done(sp_vk_queue *queue, uint64_t deadline_ns)
{
    sp_vk_semaphore *progress = queue->progress;
    for (;;) {
        uint64_t last = sp_load64(&progress->minted);
        sp_status status = sp_vk_timeline_wait_done(progress, last, deadline_ns);
        if (status != SP_OK)
            return status;
        if (try_leave_slot(queue, last))
            return SP_OK;
        if (sp_now_ns() >= deadline_ns)
            return SP_TIMEOUT;
        sp_pause_between_slices(deadline_ns);
    }
}

sp_status sp_vk_queue_destroy(sp_vk_queue *queue, uint64_t timeout_ns)
{
    if (!queue)
        return SP_OK;
    sp_vk_device *device = queue->device;
    if (sp_vk_is_forked(device)) {
        device->slots[queue->slot].queue = NULL;
        sp_vk_queue_free(queue);
        return sp_fail_forked();
    }
    sp_status status = leave_when_done(queue, sp_deadline_ns(timeout_ns));
    if (status != SP_OK)
        return status;
    sp_vk_queue_free(queue);
    sp_vk_drain(device);
    return SP_OK;
}

sp_vk_device *sp_vk_queue_device(const sp_vk_queue *queue)
{
    return queue->device;
}

/* ---- Signals ---- */

sp_status sp_vk_queue_signal(sp_vk_queue *queue, sp_point *out)
{
    SP_CHECK_ARGUMENT(queue && out, "queue and out are required");
    sp_status status = sp_vk_check_usable(queue->device);
    if (status != SP_OK)
        return status;
    sp_vk_drain(queue->device);
    sp_vk_batch batch = {.queue = queue};
    status = sp_vk_batch_submit(&batch);
    if (status == SP_OK)
        *out = sp_vk_timeline_point_of(queue->progress, batch.progress);
    return status;
}

static sp_status signal_timeline(sp_vk_queue *queue, sp_vk_semaphore *timeline, uint64_t value,
                                 sp_point *out)
{
    sp_vk_batch batch = {.queue = queue, .signal = timeline, .value = value};
    sp_status status = sp_vk_batch_submit(&batch);
    if (status == SP_OK && out)
        *out = sp_vk_timeline_point_of(timeline, batch.value);
    return status;
}

static sp_status signal_binary(sp_vk_queue *queue, sp_vk_semaphore *binary, sp_point *out)
{
    sp_vk_batch batch = {.queue = queue, .signal = binary};
    if (!out)
        return sp_vk_batch_submit(&batch);
    sp_vk_signal *signal = sp_pool_get(&queue->device->signals);
    if (!signal)
        return SP_ERROR_OUT_OF_MEMORY;
    batch.signal_op = signal;
    sp_status status = sp_vk_batch_submit(&batch);
    if (status == SP_OK) {
        *out = sp_vk_signal_point(signal, 0);
    } else {
        sp_pool_put(&queue->device->signals, signal);
    }
    return status;
}

sp_status sp_vk_queue_signal_semaphore(sp_vk_queue *queue, sp_vk_semaphore *semaphore,
                                       uint64_t value, sp_point *out)
{
    SP_CHECK_ARGUMENT(queue && semaphore, "queue and semaphore are required");
    bool binary = semaphore->type == VK_SEMAPHORE_TYPE_BINARY;
    SP_CHECK_ARGUMENT(!binary || value == 0, "a binary semaphore takes no value");
    sp_status status = sp_vk_check_usable(queue->device);
    if (status != SP_OK)
        return status;
    if (semaphore->device != queue->device) {
        return sp_fail(SP_ERROR_DEVICE_MISMATCH,
                       "sp_vk_queue_signal_semaphore: the semaphore is of another sp_vk_device");
    }
    sp_vk_drain(queue->device);
    return binary ? signal_binary(queue, semaphore, out)
                  : signal_timeline(queue, semaphore, value, out);
}
