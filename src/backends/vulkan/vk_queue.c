/* SPDX-License-Identifier: MIT
 *
 * Queue objects, and the signals that a caller asks for.
 */
#include "vk_internal.h"

#include <stdlib.h>

/* ---- Lanes and slots ---- */

static bool take_slot(sp_vk_device *device, uint32_t *slot, uint64_t *base)
{
    sp_os_mutex_lock(&device->lock);
    *slot = 0;
    while (*slot < SP_VK_MAX_QUEUES && device->slots[*slot].taken)
        (*slot)++;
    bool found = *slot < SP_VK_MAX_QUEUES;
    if (found) {
        device->slots[*slot].taken = true;
        *base = device->slots[*slot].base;
    }
    sp_os_mutex_unlock(&device->lock);
    return found;
}

static void leave_slot(sp_vk_device *device, uint32_t slot)
{
    sp_os_mutex_lock(&device->lock);
    device->slots[slot].taken = false;
    sp_os_mutex_unlock(&device->lock);
}

static void attach_locked(sp_vk_queue *queue, sp_vk_lane *lane)
{
    queue->lane = lane;
    queue->next = lane->queues;
    lane->queues = queue;
}

/* Joins the lane of the VkQueue, if there is one. */
static bool join_locked(sp_vk_queue *queue, VkQueue handle)
{
    for (uint32_t slot = 0; slot < SP_VK_MAX_QUEUES; slot++) {
        sp_vk_lane *lane = queue->device->slots[slot].lane;
        if (lane && lane->handle == handle) {
            attach_locked(queue, lane);
            return true;
        }
    }
    return false;
}

static bool join(sp_vk_queue *queue, VkQueue handle)
{
    sp_os_mutex_lock(&queue->device->lock);
    bool joined = join_locked(queue, handle);
    sp_os_mutex_unlock(&queue->device->lock);
    return joined;
}

/* Shows the new lane to others, unless another thread has just made one: false. */
static bool show_lane(sp_vk_queue *queue, sp_vk_lane *lane)
{
    sp_vk_device *device = queue->device;
    sp_os_mutex_lock(&device->lock);
    bool joined = join_locked(queue, lane->handle);
    if (!joined) {
        attach_locked(queue, lane);
        device->slots[lane->slot].lane = lane;
    }
    sp_os_mutex_unlock(&device->lock);
    return !joined;
}

void sp_vk_lane_free(sp_vk_lane *lane)
{
    sp_vk_queue *queue = lane->queues;
    while (queue) {
        sp_vk_queue *next = queue->next;
        free(queue);
        queue = next;
    }
    sp_vk_semaphore_unref(lane->progress);
    free(lane);
}

static sp_vk_lane *find_lane_locked(const sp_vk_device *device, const sp_vk_semaphore *progress)
{
    sp_vk_lane *first = NULL;
    for (uint32_t slot = 0; slot < SP_VK_MAX_QUEUES; slot++) {
        sp_vk_lane *lane = device->slots[slot].lane;
        if (lane && lane->progress == progress)
            return lane;
        if (!first)
            first = lane;
    }
    return first;
}

sp_vk_queue *sp_vk_queue_pin(sp_vk_device *device, const sp_vk_semaphore *progress)
{
    sp_os_mutex_lock(&device->lock);
    sp_vk_lane *lane = find_lane_locked(device, progress);
    sp_vk_queue *found = lane ? lane->queues : NULL;
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
    if (!desc->queue)
        return "desc->queue is required";
    if (!desc->lock != !desc->unlock)
        return "lock and unlock: both or neither";
    return NULL;
}

static sp_status make_lane(sp_vk_device *device, VkQueue handle, uint32_t slot, uint64_t base,
                           sp_vk_lane **out)
{
    sp_vk_lane *lane = calloc(1, sizeof(*lane));
    if (!lane)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_vk_queue_create: out of memory");
    lane->handle = handle;
    lane->slot = slot;
    sp_vk_semaphore_setup setup = {
        .type = VK_SEMAPHORE_TYPE_TIMELINE,
        .owned = true,
        .initial_value = base,
    };
    sp_status status = sp_vk_semaphore_make(device, &setup, &lane->progress);
    if (status == SP_OK)
        *out = lane;
    else
        free(lane);
    return status;
}

static sp_status start_queue(sp_vk_queue *queue, VkQueue handle)
{
    sp_vk_device *device = queue->device;
    sp_vk_lane *lane = NULL;
    uint64_t base = 0;
    uint32_t slot;
    if (join(queue, handle))
        return SP_OK;
    if (!take_slot(device, &slot, &base)) {
        return sp_fail(SP_ERROR_INVALID_STATE,
                       "sp_vk_queue_create: %d VkQueues of this device are in use, more cannot be",
                       SP_VK_MAX_QUEUES);
    }
    sp_status status = make_lane(device, handle, slot, base, &lane);
    if (status == SP_OK && show_lane(queue, lane))
        return SP_OK;
    leave_slot(device, slot);
    if (lane)
        sp_vk_lane_free(lane);
    return status;
}

sp_status sp_vk_queue_create(sp_vk_device *device, const sp_vk_queue_desc *desc, sp_vk_queue **out)
{
    SP_CHECK_ARGUMENT(device && desc && out, "device, desc and out are required");
    SP_CHECK_SIZE(desc);
    const char *why = check_desc(desc);
    SP_CHECK_ARGUMENT(!why, why);
    sp_status status = sp_vk_check_usable(device);
    if (status != SP_OK)
        return status;
    sp_vk_queue *queue = calloc(1, sizeof(*queue));
    if (!queue)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_vk_queue_create: out of memory");
    queue->device = device;
    queue->lock = desc->lock;
    queue->unlock = desc->unlock;
    queue->user = desc->user;
    status = start_queue(queue, desc->queue);
    if (status != SP_OK) {
        free(queue);
        return status;
    }
    *out = queue;
    return SP_OK;
}

/* ---- The end ---- */

static void detach_locked(sp_vk_queue *queue)
{
    sp_vk_queue **link = &queue->lane->queues;
    while (*link != queue)
        link = &(*link)->next;
    *link = queue->next;
}

/* Leaves the lane unless a host wait is using the queue, or, for the last object, there are newer
 * submits than `last`. *empty: the lane, to be freed. */
static bool try_leave(sp_vk_queue *queue, uint64_t last, sp_vk_lane **empty)
{
    sp_vk_device *device = queue->device;
    sp_vk_lane *lane = queue->lane;
    sp_os_mutex_lock(&device->lock);
    bool is_last = lane->queues == queue && !queue->next;
    bool leaves = queue->pins == 0 && (!is_last || last == sp_load64(&lane->progress->minted));
    if (leaves)
        detach_locked(queue);
    if (leaves && is_last) {
        device->slots[lane->slot] = (sp_vk_slot){.base = last};
        *empty = lane;
    }
    sp_os_mutex_unlock(&device->lock);
    return leaves;
}

static sp_status leave_when_done(sp_vk_queue *queue, uint64_t deadline_ns, sp_vk_lane **empty)
{
    sp_vk_semaphore *progress = queue->lane->progress;
    for (;;) {
        uint64_t last = sp_load64(&progress->minted);
        sp_status status = sp_vk_timeline_wait_done(progress, last, deadline_ns);
        if (status != SP_OK)
            return status;
        if (try_leave(queue, last, empty))
            return SP_OK;
        if (sp_now_ns() >= deadline_ns)
            return SP_TIMEOUT;
        sp_pause_between_slices(deadline_ns);
    }
}

/* No lock may be taken in the child of a fork, and nobody else is there. */
static void leave_forked(sp_vk_queue *queue)
{
    sp_vk_lane *lane = queue->lane;
    detach_locked(queue);
    if (lane->queues)
        return;
    queue->device->slots[lane->slot].lane = NULL;
    sp_vk_lane_free(lane);
}

sp_status sp_vk_queue_destroy(sp_vk_queue *queue, uint64_t timeout_ns)
{
    if (!queue)
        return SP_OK;
    sp_vk_device *device = queue->device;
    sp_vk_lane *empty = NULL;
    if (sp_vk_is_forked(device)) {
        leave_forked(queue);
        free(queue);
        return sp_fail_forked();
    }
    sp_status status = leave_when_done(queue, sp_deadline_ns(timeout_ns), &empty);
    if (status != SP_OK)
        return status;
    if (empty)
        sp_vk_lane_free(empty);
    free(queue);
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
        *out = sp_vk_timeline_point_of(queue->lane->progress, batch.progress);
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
