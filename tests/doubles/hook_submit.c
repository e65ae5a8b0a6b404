/* SPDX-License-Identifier: MIT
 *
 * A double: see hook.h. Submits, seen in one form.
 */
#include "hook_private.h"

#include <stddef.h>

static void (*watcher)(const hook_batch *batch);

void hook_watch_submits(void (*watch)(const hook_batch *batch))
{
    __atomic_store_n(&watcher, watch, __ATOMIC_SEQ_CST);
}

static void tell(hook_batch *batch)
{
    void (*watch)(const hook_batch *) = __atomic_load_n(&watcher, __ATOMIC_SEQ_CST);
    if (watch)
        watch(batch);
}

static VkQueue alias_queue;
static VkQueue aliased_queue;

void hook_alias_queue(VkQueue alias, VkQueue real)
{
    alias_queue = alias;
    aliased_queue = real;
}

static VkQueue real_queue(VkQueue queue)
{
    return alias_queue && queue == alias_queue ? aliased_queue : queue;
}

/* ---- vkQueueSubmit ---- */

static const VkTimelineSemaphoreSubmitInfo *timeline_values(const void *next)
{
    for (const VkBaseInStructure *at = next; at; at = at->pNext) {
        if (at->sType == VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO)
            return (const VkTimelineSemaphoreSubmitInfo *)at;
    }
    return NULL;
}

static void read_submit(const VkSubmitInfo *from, hook_batch *to)
{
    const VkTimelineSemaphoreSubmitInfo *values = timeline_values(from->pNext);
    to->command_count = from->commandBufferCount;
    for (uint32_t i = 0; i < from->waitSemaphoreCount && i < HOOK_MAX_SEMAPHORES; i++) {
        bool has = values && i < values->waitSemaphoreValueCount;
        to->waits[to->wait_count++] = (hook_semaphore){
            .semaphore = from->pWaitSemaphores[i],
            .value = has ? values->pWaitSemaphoreValues[i] : 0,
            .stages = from->pWaitDstStageMask[i],
        };
    }
    for (uint32_t i = 0; i < from->signalSemaphoreCount && i < HOOK_MAX_SEMAPHORES; i++) {
        bool has = values && i < values->signalSemaphoreValueCount;
        to->signals[to->signal_count++] = (hook_semaphore){
            .semaphore = from->pSignalSemaphores[i],
            .value = has ? values->pSignalSemaphoreValues[i] : 0,
        };
    }
}

VKAPI_ATTR VkResult VKAPI_CALL hook_on_QueueSubmit(VkQueue queue, uint32_t count,
                                                   const VkSubmitInfo *submits, VkFence fence)
{
    VkResult result = hook_step(HOOK_QueueSubmit);
    PFN_vkQueueSubmit forward = (PFN_vkQueueSubmit)hook_replacement(HOOK_QueueSubmit);
    if (result == VK_SUCCESS)
        result =
            (forward ? forward : hook_real.QueueSubmit)(real_queue(queue), count, submits, fence);
    for (uint32_t i = 0; i < count; i++) {
        hook_batch batch = {.queue = queue, .result = result, .fence = fence};
        read_submit(&submits[i], &batch);
        tell(&batch);
    }
    return result;
}

/* ---- vkQueueSubmit2 ---- */

static unsigned read_semaphores(const VkSemaphoreSubmitInfo *from, uint32_t count,
                                hook_semaphore *to)
{
    unsigned taken = 0;
    for (; taken < count && taken < HOOK_MAX_SEMAPHORES; taken++) {
        to[taken] =
            (hook_semaphore){from[taken].semaphore, from[taken].value, from[taken].stageMask};
    }
    return taken;
}

VKAPI_ATTR VkResult VKAPI_CALL hook_on_QueueSubmit2(VkQueue queue, uint32_t count,
                                                    const VkSubmitInfo2 *submits, VkFence fence)
{
    VkResult result = hook_step(HOOK_QueueSubmit2);
    PFN_vkQueueSubmit2 forward = (PFN_vkQueueSubmit2)hook_replacement(HOOK_QueueSubmit2);
    if (result == VK_SUCCESS)
        result =
            (forward ? forward : hook_real.QueueSubmit2)(real_queue(queue), count, submits, fence);
    for (uint32_t i = 0; i < count; i++) {
        const VkSubmitInfo2 *from = &submits[i];
        hook_batch batch = {.queue = queue, .result = result, .fence = fence};
        batch.command_count = from->commandBufferInfoCount;
        batch.wait_count =
            read_semaphores(from->pWaitSemaphoreInfos, from->waitSemaphoreInfoCount, batch.waits);
        batch.signal_count = read_semaphores(from->pSignalSemaphoreInfos,
                                             from->signalSemaphoreInfoCount, batch.signals);
        tell(&batch);
    }
    return result;
}
