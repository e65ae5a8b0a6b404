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

unsigned vk_locks_held(void)
{
    return held;
}

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

VkSemaphore vk_make_binary(vk_context *vk)
{
    return make_semaphore(vk, VK_SEMAPHORE_TYPE_BINARY, 0);
}

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

void vk_gate_open_all(vk_gate *gate)
{
    vk_gate_open(gate, gate->next);
}

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

static void *make_buffer(vk_context *vk, VkDeviceSize size, VkBuffer *buffer,
                         VkDeviceMemory *memory)
{
    const VkBufferCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO,
        .size = size,
        .usage = VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT,
    };
    CHECK_VK(vk->call.CreateBuffer(vk->device, &info, NULL, buffer));
    VkMemoryRequirements need;
    vk->call.GetBufferMemoryRequirements(vk->device, *buffer, &need);
    const VkMemoryAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO,
        .allocationSize = need.size,
        .memoryTypeIndex = host_memory_type(vk, need.memoryTypeBits),
    };
    void *mapped;
    CHECK_VK(vk->call.AllocateMemory(vk->device, &allocate, NULL, memory));
    CHECK_VK(vk->call.BindBufferMemory(vk->device, *buffer, *memory, 0));
    CHECK_VK(vk->call.MapMemory(vk->device, *memory, 0, VK_WHOLE_SIZE, 0, &mapped));
    return mapped;
}

static VkCommandBuffer begin_commands(vk_context *vk, VkCommandBufferUsageFlags flags)
{
    const VkCommandBufferAllocateInfo allocate = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_ALLOCATE_INFO,
        .commandPool = vk->pool,
        .level = VK_COMMAND_BUFFER_LEVEL_PRIMARY,
        .commandBufferCount = 1,
    };
    const VkCommandBufferBeginInfo begin = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_BUFFER_BEGIN_INFO,
        .flags = flags,
    };
    VkCommandBuffer commands;
    CHECK_VK(vk->call.AllocateCommandBuffers(vk->device, &allocate, &commands));
    CHECK_VK(vk->call.BeginCommandBuffer(commands, &begin));
    return commands;
}

static void barrier(vk_context *vk, VkCommandBuffer commands, const VkPipelineStageFlags stages[2],
                    const VkAccessFlags accesses[2])
{
    const VkMemoryBarrier memory = {
        .sType = VK_STRUCTURE_TYPE_MEMORY_BARRIER,
        .srcAccessMask = accesses[0],
        .dstAccessMask = accesses[1],
    };
    vk->call.CmdPipelineBarrier(commands, stages[0], stages[1], 0, 1, &memory, 0, NULL, 0, NULL);
}

static void record_copy(vk_copy *copy)
{
    static const VkPipelineStageFlags in[] = {VK_PIPELINE_STAGE_HOST_BIT,
                                              VK_PIPELINE_STAGE_TRANSFER_BIT};
    static const VkPipelineStageFlags out[] = {VK_PIPELINE_STAGE_TRANSFER_BIT,
                                               VK_PIPELINE_STAGE_HOST_BIT};
    static const VkAccessFlags in_access[] = {VK_ACCESS_HOST_WRITE_BIT,
                                              VK_ACCESS_TRANSFER_READ_BIT};
    static const VkAccessFlags out_access[] = {VK_ACCESS_TRANSFER_WRITE_BIT,
                                               VK_ACCESS_HOST_READ_BIT};
    const VkBufferCopy region = {.size = COPY_BYTES};
    vk_context *vk = copy->vk;
    copy->commands = begin_commands(vk, 0);
    barrier(vk, copy->commands, in, in_access);
    vk->call.CmdCopyBuffer(copy->commands, copy->buffers[0], copy->buffers[1], 1, &region);
    barrier(vk, copy->commands, out, out_access);
    CHECK_VK(vk->call.EndCommandBuffer(copy->commands));
}

void vk_copy_init(vk_copy *copy, vk_context *vk)
{
    const VkFenceCreateInfo fence = {.sType = VK_STRUCTURE_TYPE_FENCE_CREATE_INFO};
    *copy = (vk_copy){.vk = vk};
    copy->source = make_buffer(vk, COPY_BYTES, &copy->buffers[0], &copy->memory[0]);
    copy->target = make_buffer(vk, COPY_BYTES, &copy->buffers[1], &copy->memory[1]);
    record_copy(copy);
    CHECK_VK(vk->call.CreateFence(vk->device, &fence, NULL, &copy->fence));
    for (unsigned i = 0; i < VK_COPY_WORDS; i++) {
        copy->source[i] = 0;
        copy->target[i] = UNWRITTEN;
    }
}

static void free_buffers(vk_context *vk, const VkBuffer buffers[2], const VkDeviceMemory memory[2])
{
    for (unsigned i = 0; i < 2; i++) {
        vk->call.DestroyBuffer(vk->device, buffers[i], NULL);
        vk->call.FreeMemory(vk->device, memory[i], NULL);
    }
}

void vk_copy_fini(vk_copy *copy)
{
    copy->vk->call.DestroyFence(copy->vk->device, copy->fence, NULL);
    free_buffers(copy->vk, copy->buffers, copy->memory);
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

/* ---- Slow work ---- */

#define SLOW_BYTES ((VkDeviceSize)32 << 20)
#define SLOW_COPIES 40

void vk_slow_init(vk_slow *slow, vk_context *vk)
{
    static const VkPipelineStageFlags stages[] = {VK_PIPELINE_STAGE_TRANSFER_BIT,
                                                  VK_PIPELINE_STAGE_TRANSFER_BIT};
    static const VkAccessFlags accesses[] = {
        VK_ACCESS_TRANSFER_WRITE_BIT,
        VK_ACCESS_TRANSFER_READ_BIT | VK_ACCESS_TRANSFER_WRITE_BIT,
    };
    const VkBufferCopy region = {.size = SLOW_BYTES};
    *slow = (vk_slow){.vk = vk};
    for (unsigned i = 0; i < 2; i++)
        make_buffer(vk, SLOW_BYTES, &slow->buffers[i], &slow->memory[i]);
    slow->commands = begin_commands(vk, VK_COMMAND_BUFFER_USAGE_SIMULTANEOUS_USE_BIT);
    for (unsigned i = 0; i < SLOW_COPIES; i++) {
        vk->call.CmdCopyBuffer(slow->commands, slow->buffers[i % 2], slow->buffers[1 - i % 2], 1,
                               &region);
        barrier(vk, slow->commands, stages, accesses);
    }
    CHECK_VK(vk->call.EndCommandBuffer(slow->commands));
}

void vk_slow_submit(vk_slow *slow)
{
    vk_submit(slow->vk, &(vk_submit_info){.commands = slow->commands});
}

void vk_slow_fini(vk_slow *slow)
{
    vk_finish(slow->vk);
    free_buffers(slow->vk, slow->buffers, slow->memory);
}
