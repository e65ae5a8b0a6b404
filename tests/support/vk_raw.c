/* SPDX-License-Identifier: MIT
 *
 * Raw Vulkan calls for tests: semaphores, submits, gates, copies.
 */
#include "vk_fixture.h"

#include <string.h>

#define COPY_BYTES (VK_COPY_WORDS * 4u)
#define UNWRITTEN 0xdeadbeefu

void vk_check(VkResult result, const char *text, const char *file, int line)
{
    if (result != VK_SUCCESS) {
        print_error("VkResult %d\n", (int)result);
        test_check(false, text, file, line);
    }
}

/* ---- The queue's lock ---- */

static _Thread_local unsigned held;

unsigned vk_locks_held(void) { return held; }

void vk_lock_queue(vk_context *vk)
{
    if (pthread_mutex_lock(&vk->lock.mutex) != 0)
        __atomic_fetch_add(&vk->lock.wrong, 1, __ATOMIC_SEQ_CST);
    vk->lock.locked++;
    held++;
}

void vk_unlock_queue(vk_context *vk)
{
    vk->lock.unlocked++;
    held--;
    if (pthread_mutex_unlock(&vk->lock.mutex) != 0)
        __atomic_fetch_add(&vk->lock.wrong, 1, __ATOMIC_SEQ_CST);
}

/* ---- Semaphores ---- */

static VkSemaphore make_semaphore(vk_context *vk, VkSemaphoreType type, uint64_t initial)
{
    const VkSemaphoreTypeCreateInfo type_info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = type,
        .initialValue = initial,
    };
    const VkSemaphoreCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type_info,
    };
    VkSemaphore semaphore;
    CHECK_VK(vk->call.CreateSemaphore(vk->device, &info, NULL, &semaphore));
    return semaphore;
}

VkSemaphore vk_make_timeline(vk_context *vk, uint64_t initial)
{
    return make_semaphore(vk, VK_SEMAPHORE_TYPE_TIMELINE, initial);
}

VkSemaphore vk_make_binary(vk_context *vk) { return make_semaphore(vk, VK_SEMAPHORE_TYPE_BINARY, 0); }

void vk_destroy_semaphore(vk_context *vk, VkSemaphore semaphore)
{
    vk->call.DestroySemaphore(vk->device, semaphore, NULL);
}

void vk_signal(vk_context *vk, VkSemaphore timeline, uint64_t value)
{
    const VkSemaphoreSignalInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_SIGNAL_INFO,
        .semaphore = timeline,
        .value = value,
    };
    CHECK_VK(vk->call.SignalSemaphore(vk->device, &info));
}

uint64_t vk_counter(vk_context *vk, VkSemaphore timeline)
{
    uint64_t value = 0;
    CHECK_VK(vk->call.GetSemaphoreCounterValue(vk->device, timeline, &value));
    return value;
}

bool vk_has_timeline_export(vk_context *vk)
{
    const VkSemaphoreTypeCreateInfo type = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .semaphoreType = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    const VkPhysicalDeviceExternalSemaphoreInfo info = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_EXTERNAL_SEMAPHORE_INFO,
        .pNext = &type,
        .handleType = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    VkExternalSemaphoreProperties properties = {
        .sType = VK_STRUCTURE_TYPE_EXTERNAL_SEMAPHORE_PROPERTIES,
    };
    vk->call.GetPhysicalDeviceExternalSemaphoreProperties(vk->physical_device, &info, &properties);
    return properties.externalSemaphoreFeatures & VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT;
}

/* ---- Submits ---- */

void vk_submit(vk_context *vk, const vk_submit_info *info)
{
    static const VkPipelineStageFlags all = VK_PIPELINE_STAGE_ALL_COMMANDS_BIT;
    const VkTimelineSemaphoreSubmitInfo values = {
        .sType = VK_STRUCTURE_TYPE_TIMELINE_SEMAPHORE_SUBMIT_INFO,
        .waitSemaphoreValueCount = info->wait != VK_NULL_HANDLE,
        .pWaitSemaphoreValues = &info->wait_value,
        .signalSemaphoreValueCount = info->signal != VK_NULL_HANDLE,
        .pSignalSemaphoreValues = &info->signal_value,
    };
    const VkSubmitInfo submit = {
        .sType = VK_STRUCTURE_TYPE_SUBMIT_INFO,
        .pNext = &values,
        .waitSemaphoreCount = info->wait != VK_NULL_HANDLE,
        .pWaitSemaphores = &info->wait,
        .pWaitDstStageMask = &all,
        .commandBufferCount = info->commands != VK_NULL_HANDLE,
        .pCommandBuffers = &info->commands,
        .signalSemaphoreCount = info->signal != VK_NULL_HANDLE,
        .pSignalSemaphores = &info->signal,
    };
    vk_lock_queue(vk);
    VkResult result = vk->call.QueueSubmit(vk->queue, 1, &submit, info->fence);
    vk_unlock_queue(vk);
    CHECK_VK(result);
}

void vk_finish(vk_context *vk)
{
    vk_lock_queue(vk);
    VkResult result = vk->call.QueueWaitIdle(vk->queue);
    vk_unlock_queue(vk);
    CHECK_VK(result);
}

/* ---- Gates ---- */

void vk_gate_init(vk_gate *gate, vk_context *vk)
{
    *gate = (vk_gate){.vk = vk, .timeline = vk_make_timeline(vk, 0)};
}

uint64_t vk_gate_close(vk_gate *gate)
{
    vk_submit(gate->vk, &(vk_submit_info){.wait = gate->timeline, .wait_value = ++gate->next});
    return gate->next;
}

void vk_gate_open(vk_gate *gate, uint64_t value)
{
    if (value > gate->opened) {
        gate->opened = value;
        vk_signal(gate->vk, gate->timeline, value);
    }
}

void vk_gate_open_all(vk_gate *gate) { vk_gate_open(gate, gate->next); }

void vk_gate_fini(vk_gate *gate)
{
    vk_gate_open_all(gate);
    vk_finish(gate->vk);
    vk_destroy_semaphore(gate->vk, gate->timeline);
}

/* ---- Copies ---- */

static uint32_t host_memory_type(vk_context *vk, uint32_t allowed)
{
    const VkMemoryPropertyFlags wanted =
        VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    VkPhysicalDeviceMemoryProperties memory;
    vk->call.GetPhysicalDeviceMemoryProperties(vk->physical_device, &memory);
    for (uint32_t i = 0; i < memory.memoryTypeCount; i++) {
        if ((allowed >> i & 1) && (memory.memoryTypes[i].propertyFlags & wanted) == wanted)
            return i;
    }
    fail_msg("no host memory");
    return 0;
}

static volatile uint32_t *make_buffer(vk_copy *copy, unsigned which, VkBufferUsageFlags usage)
{
    vk_context *vk = copy->vk;
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = COPY_BYTES,
        .usage = usage,
    };
    CHECK_VK(vk->call.CreateBuffer(vk->device, &info, NULL, &copy->buffers[which]));
    VkMemoryRequirements need;
    vk->call.GetBufferMemoryRequirements(vk->device, copy->buffers[which], &need);
    const VkMemoryAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = need.size,
        .memoryTypeIndex = host_memory_type(vk, need.memoryTypeBits),
    };
    void *mapped;
    CHECK_VK(vk->call.AllocateMemory(vk->device, &allocate, NULL, &copy->memory[which]));
    CHECK_VK(vk->call.BindBufferMemory(vk->device, copy->buffers[which], copy->memory[which], 0));
    CHECK_VK(vk->call.MapMemory(vk->device, copy->memory[which], 0, VK_WHOLE_SIZE, 0, &mapped));
    return mapped;
}

static void barrier(vk_copy *copy, VkPipelineStageFlags from, VkAccessFlags from_access,
                    VkPipelineStageFlags to, VkAccessFlags to_access)
{
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = from_access,
        .dstAccessMask = to_access,
    };
    copy->vk->call.CmdPipelineBarrier(copy->commands, from, to, 0, 1, &memory, 0, NULL, 0, NULL);
}

static void record_copy(vk_copy *copy)
{
    vk_context *vk = copy->vk;
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = vk->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
    };
    const VkBufferCopy region = {.size = COPY_BYTES};
    CHECK_VK(vk->call.AllocateCommandBuffers(vk->device, &allocate, &copy->commands));
    CHECK_VK(vk->call.BeginCommandBuffer(copy->commands, &begin));
    barrier(copy, VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_WRITE_BIT,
            VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_READ_BIT);
    vk->call.CmdCopyBuffer(copy->commands, copy->buffers[0], copy->buffers[1], 1, &region);
    barrier(copy, VK_PIPELINE_STAGE_TRANSFER_BIT, VK_ACCESS_TRANSFER_WRITE_BIT,
            VK_PIPELINE_STAGE_HOST_BIT, VK_ACCESS_HOST_READ_BIT);
    CHECK_VK(vk->call.EndCommandBuffer(copy->commands));
}

void vk_copy_init(vk_copy *copy, vk_context *vk)
{
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    *copy = (vk_copy){.vk = vk};
    copy->source = make_buffer(copy, 0, VK_BUFFER_USAGE_TRANSFER_SRC_BIT);
    copy->target = make_buffer(copy, 1, VK_BUFFER_USAGE_TRANSFER_DST_BIT);
    record_copy(copy);
    CHECK_VK(vk->call.CreateFence(vk->device, &fence, NULL, &copy->fence));
    for (unsigned i = 0; i < VK_COPY_WORDS; i++) {
        copy->source[i] = 0;
        copy->target[i] = UNWRITTEN;
    }
}

void vk_copy_fini(vk_copy *copy)
{
    vk_context *vk = copy->vk;
    vk->call.DestroyFence(vk->device, copy->fence, NULL);
    for (unsigned i = 0; i < 2; i++) {
        vk->call.DestroyBuffer(vk->device, copy->buffers[i], NULL);
        vk->call.FreeMemory(vk->device, copy->memory[i], NULL);
    }
}

void vk_copy_produce(vk_copy *copy, uint32_t seed)
{
    for (unsigned i = 0; i < VK_COPY_WORDS; i++)
        copy->source[i] = seed + i;
}

void vk_copy_submit(vk_copy *copy)
{
    vk_submit(copy->vk, &(vk_submit_info){.commands = copy->commands, .fence = copy->fence});
}

bool vk_copy_stays_unwritten(vk_copy *copy)
{
    vk_context *vk = copy->vk;
    for (unsigned look = 0; look < 5; look++) {
        test_sleep_ms(DELAY_MS / 2);
        if (copy->target[0] != UNWRITTEN || copy->target[VK_COPY_WORDS - 1] != UNWRITTEN ||
            vk->call.GetFenceStatus(vk->device, copy->fence) != VK_NOT_READY)
            return false;
    }
    return true;
}

bool vk_copy_arrives(vk_copy *copy, uint32_t seed)
{
    vk_context *vk = copy->vk;
    if (vk->call.WaitForFences(vk->device, 1, &copy->fence, VK_TRUE, PATIENCE_NS) != VK_SUCCESS) {
        print_error("the copy did not run\n");
        return false;
    }
    for (unsigned i = 0; i < VK_COPY_WORDS; i++) {
        if (copy->target[i] != seed + i) {
            print_error("word %u is %08x, not %08x\n", i, (unsigned)copy->target[i], seed + i);
            return false;
        }
    }
    return true;
}
