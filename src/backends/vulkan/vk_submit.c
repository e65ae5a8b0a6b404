/* SPDX-License-Identifier: MIT
 *
 * The one place that submits. A batch has no commands: it waits, it signals, and it signals the
 * queue's progress last.
 *
 * Why an empty batch is enough. The Vulkan specification, on semaphore waits of vkQueueSubmit and
 * vkQueueSubmit2: the second synchronization scope "includes every command submitted in the same
 * batch" and "additionally includes all commands that occur later in submission order", limited to
 * the stage mask; and signals cover, in the same words, all commands that occur earlier. With
 * ALL_COMMANDS as the mask, what is submitted later on the queue runs behind our waits, and our
 * signals run behind what was submitted earlier.
 */
#include "vk_internal.h"

#include <stdlib.h>

#define FEW_WAITS SP_VK_FEW_WAITS
#define EXTRA_NAMED 2 /* besides those waited for: the progress, and the signal */

/* Arrays for one submit. `named` has all semaphores of the batch, once each, by address: one order
 * of locking for all threads. */
typedef struct submit_room {
    sp_vk_semaphore **named;
    size_t named_count;
    VkSemaphoreSubmitInfo *infos; /* vkQueueSubmit2 */
    VkSemaphore *handles;         /* vkQueueSubmit  */
    uint64_t *values;
    VkPipelineStageFlags *stages;

    void *allocated;
    sp_vk_semaphore *few_named[FEW_WAITS + EXTRA_NAMED];
    VkSemaphoreSubmitInfo few_infos[FEW_WAITS];
    VkSemaphore few_handles[FEW_WAITS];
    uint64_t few_values[FEW_WAITS];
    VkPipelineStageFlags few_stages[FEW_WAITS];
} submit_room;

static bool room_init(submit_room *room, size_t waits)
{
    room->named_count = 0;
    room->allocated = NULL;
    room->named = room->few_named;
    room->infos = room->few_infos;
    room->handles = room->few_handles;
    room->values = room->few_values;
    room->stages = room->few_stages;
    if (waits <= FEW_WAITS)
        return true;
    const size_t each = sizeof(*room->infos) + sizeof(void *) + sizeof(VkSemaphore) +
                        sizeof(*room->values) + sizeof(*room->stages);
    room->allocated = malloc((waits + EXTRA_NAMED) * each);
    if (!room->allocated)
        return false;
    room->infos = room->allocated; /* in order of alignment */
    room->values = (uint64_t *)(room->infos + waits);
    room->handles = (VkSemaphore *)(room->values + waits);
    room->named = (sp_vk_semaphore **)(room->handles + waits);
    room->stages = (VkPipelineStageFlags *)(room->named + waits + EXTRA_NAMED);
    return true;
}

/* ---- Locks ---- */

static void add_named(submit_room *all, sp_vk_semaphore *semaphore)
{
    size_t at = all->named_count;
    while (at > 0 && (uintptr_t)all->named[at - 1] > (uintptr_t)semaphore)
        at--;
    if (at > 0 && all->named[at - 1] == semaphore)
        return;
    for (size_t i = all->named_count; i > at; i--)
        all->named[i] = all->named[i - 1];
    all->named[at] = semaphore;
    all->named_count++;
}

static void collect_named(const sp_vk_batch *batch, submit_room *all)
{
    add_named(all, batch->queue->lane->progress);
    if (batch->signal)
        add_named(all, batch->signal);
    for (size_t i = 0; i < batch->wait_count; i++)
        add_named(all, batch->waits[i].semaphore);
}

static void lock_all(const sp_vk_queue *queue, const submit_room *all)
{
    if (queue->lock)
        queue->lock(queue->user);
    for (size_t i = 0; i < all->named_count; i++)
        sp_os_mutex_lock(&all->named[i]->lock);
}

static void unlock_all(const sp_vk_queue *queue, const submit_room *all)
{
    for (size_t i = all->named_count; i > 0; i--)
        sp_os_mutex_unlock(&all->named[i - 1]->lock);
    if (queue->unlock)
        queue->unlock(queue->user);
}

/* ---- Values ---- */

/* A signal on another queue may run earlier than one that was submitted earlier, and the counter
 * would go back. So this queue first waits for the value that is still pending there. */
static void order_behind_other_queue_locked(sp_vk_batch *batch)
{
    sp_vk_semaphore *timeline = batch->signal;
    bool elsewhere =
        timeline->signal_slot != SP_VK_NO_SLOT && timeline->signal_slot != batch->queue->lane->slot;
    if (!elsewhere || sp_vk_timeline_reached(timeline, timeline->minted))
        return;
    batch->order = (sp_vk_wait){.semaphore = timeline, .value = timeline->minted};
    batch->waits = &batch->order;
    batch->wait_count = 1;
}

static sp_status check_binary_signal_locked(const sp_vk_batch *batch)
{
    sp_vk_semaphore *binary = batch->signal;
    if (binary->temporary) {
        return sp_fail(SP_ERROR_INVALID_STATE,
                       "a temporary import has its signal already, and serves one wait");
    }
    return sp_vk_binary_check_free_locked(binary, batch->queue->lane->slot);
}

static sp_status mint_locked(sp_vk_batch *batch)
{
    sp_vk_semaphore *signal = batch->signal;
    sp_status status = SP_OK;
    if (signal && signal->type == VK_SEMAPHORE_TYPE_BINARY) {
        status = check_binary_signal_locked(batch);
    } else if (signal) {
        status = sp_vk_timeline_mint_locked(signal, batch->value, &batch->value);
        if (status == SP_OK)
            order_behind_other_queue_locked(batch);
    }
    if (status != SP_OK)
        return status;
    return sp_vk_timeline_mint_locked(batch->queue->lane->progress, 0, &batch->progress);
}

/* ---- The driver's structures ---- */

typedef struct signals {
    VkSemaphore handles[2];
    uint64_t values[2];
    uint32_t count;
} signals;

/* The progress comes last: drivers signal in this order, so that it tells of the others too. */
static signals signals_of(const sp_vk_batch *batch)
{
    signals all = {.count = 0};
    if (batch->signal) {
        all.handles[all.count] = batch->signal->handle;
        all.values[all.count++] = batch->value;
    }
    all.handles[all.count] = batch->queue->lane->progress->handle;
    all.values[all.count++] = batch->progress;
    return all;
}

static VkResult submit1(const sp_vk_driver *vk, const sp_vk_batch *batch, submit_room *room)
{
    signals signal = signals_of(batch);
    for (size_t i = 0; i < batch->wait_count; i++) {
        room->handles[i] = batch->waits[i].semaphore->handle;
        room->values[i] = batch->waits[i].value;
        room->stages[i] = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    }
    VkTimelineSemaphoreSubmitInfo timeline = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = (uint32_t)batch->wait_count,
        .pWaitSemaphoreValues = room->values,
        .signalSemaphoreValueCount = signal.count,
        .pSignalSemaphoreValues = signal.values,
    };
    VkSubmitInfo info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &timeline,
        .waitSemaphoreCount = (uint32_t)batch->wait_count,
        .pWaitSemaphores = room->handles,
        .pWaitDstStageMask = room->stages,
        .signalSemaphoreCount = signal.count,
        .pSignalSemaphores = signal.handles,
    };
    return vk->queue_submit(batch->queue->lane->handle, 1, &info, VK_NULL_HANDLE);
}

static VkSemaphoreSubmitInfo submit_info(VkSemaphore semaphore, uint64_t value)
{
    return (VkSemaphoreSubmitInfo){
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SUBMIT_INFO,
        .semaphore = semaphore,
        .value = value,
        .stageMask = VK_PIPELINE_STAGE_2_ALL_COMMANDS_BIT,
    };
}

static VkResult submit2(const sp_vk_driver *vk, const sp_vk_batch *batch, submit_room *room)
{
    VkSemaphoreSubmitInfo signal_infos[2];
    signals signal = signals_of(batch);
    for (size_t i = 0; i < batch->wait_count; i++)
        room->infos[i] = submit_info(batch->waits[i].semaphore->handle, batch->waits[i].value);
    for (uint32_t i = 0; i < signal.count; i++)
        signal_infos[i] = submit_info(signal.handles[i], signal.values[i]);
    VkSubmitInfo2 info = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO_2,
        .waitSemaphoreInfoCount = (uint32_t)batch->wait_count,
        .pWaitSemaphoreInfos = room->infos,
        .signalSemaphoreInfoCount = signal.count,
        .pSignalSemaphoreInfos = signal_infos,
    };
    return vk->queue_submit2(batch->queue->lane->handle, 1, &info, VK_NULL_HANDLE);
}

static sp_status submit_locked(const sp_vk_batch *batch, submit_room *room)
{
    sp_vk_device *device = batch->queue->device;
    const sp_vk_driver *vk = &device->vk;
    VkResult result = vk->queue_submit2 ? submit2(vk, batch, room) : submit1(vk, batch, room);
    if (result == VK_SUCCESS)
        return SP_OK;
    return sp_vk_fail(device, result, vk->queue_submit2 ? "vkQueueSubmit2" : "vkQueueSubmit");
}

/* ---- What is known afterwards ---- */

/* Is what this batch signals sure to run, or is it behind a wait whose signal may never come? */
static bool update_gate_locked(const sp_vk_batch *batch)
{
    sp_vk_lane *lane = batch->queue->lane;
    if (lane->open_gate && sp_vk_timeline_reached(lane->progress, lane->open_gate))
        lane->open_gate = 0;
    for (size_t i = 0; i < batch->wait_count; i++) {
        const sp_vk_wait *wait = &batch->waits[i];
        if (!wait->signal && !sp_vk_timeline_submitted(wait->semaphore, wait->value))
            lane->open_gate = batch->progress;
    }
    return lane->open_gate == 0;
}

static void record_timeline_locked(sp_vk_semaphore *timeline, uint64_t value, uint32_t slot,
                                   bool settled)
{
    sp_store64(&timeline->minted, value);
    if (settled)
        sp_store64(&timeline->settled, value);
    timeline->signal_slot = slot;
}

static void record_binary_signal_locked(const sp_vk_batch *batch)
{
    sp_vk_semaphore *binary = batch->signal;
    sp_vk_signal *signal = batch->signal_op;
    binary->current = signal;
    if (!signal)
        return;
    sp_vk_signal_setup(signal, binary, SP_ONESHOT_SUBMITTED);
    signal->ours = true;
    signal->home = sp_vk_semaphore_ref(batch->queue->lane->progress);
    signal->depends = batch->queue->lane->open_gate;
    signal->submit = batch->progress;
}

static void record_wait_locked(const sp_vk_batch *batch, const sp_vk_wait *wait)
{
    sp_vk_signal *signal = wait->signal;
    if (!signal)
        return;
    wait->semaphore->wait_slot = batch->queue->lane->slot;
    wait->semaphore->wait_value = batch->progress;
    signal->gate = sp_vk_semaphore_ref(batch->queue->lane->progress);
    sp_store64(&signal->gate_value, batch->progress);
}

static void record_locked(const sp_vk_batch *batch, const submit_room *all)
{
    const sp_vk_lane *lane = batch->queue->lane;
    bool settled = update_gate_locked(batch);
    for (size_t i = 0; i < all->named_count; i++)
        all->named[i]->last_use[lane->slot] = batch->progress;
    for (size_t i = 0; i < batch->wait_count; i++)
        record_wait_locked(batch, &batch->waits[i]);
    record_timeline_locked(lane->progress, batch->progress, lane->slot, settled);
    if (!batch->signal)
        return;
    if (batch->signal->type == VK_SEMAPHORE_TYPE_TIMELINE) {
        record_timeline_locked(batch->signal, batch->value, lane->slot, settled);
    } else {
        record_binary_signal_locked(batch);
    }
}

static sp_status submit_in_room(sp_vk_batch *batch, submit_room *room)
{
    collect_named(batch, room);
    lock_all(batch->queue, room);
    sp_status status = mint_locked(batch);
    if (status == SP_OK)
        status = submit_locked(batch, room);
    if (status == SP_OK)
        record_locked(batch, room);
    unlock_all(batch->queue, room);
    return status;
}

sp_status sp_vk_batch_submit(sp_vk_batch *batch)
{
    submit_room room;
    if (!room_init(&room, batch->wait_count)) {
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "a submit with %zu waits: out of memory",
                       batch->wait_count);
    }
    sp_status status = submit_in_room(batch, &room);
    free(room.allocated);
    return status;
}
