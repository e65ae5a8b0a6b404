/* SPDX-License-Identifier: MIT
 *
 * A Vulkan device of the test's own, on a driver picked by name, with the raw calls that tests
 * need beside the library's: queues, gates, copies whose result can be looked at.
 *
 * Everything here checks for itself and ends the case when the driver refuses.
 */
#ifndef TESTS_SUPPORT_VK_FIXTURE_H
#define TESTS_SUPPORT_VK_FIXTURE_H

#include "test.h"

#include <pthread.h>
#include <syncpoint/vulkan.h>

/* What a target of a Vulkan test program offers: bits of test_target.features. */
enum {
    ON_ANY_DRIVER = 0,
    WITH_OPAQUE_FD = 1 << 0,    /* binary semaphores cross devices as opaque fds                 */
    WITH_ASYNC_SUBMIT = 1 << 1, /* a submit of slow work returns before the work is done         */
    OUTLIVES_NO_FDS = 1 << 2,   /* a device on which an import found no free fd goes on          */
};

typedef struct vk_options {
    const char *driver;
    bool validation;
    uint32_t api_version; /* 0: 1.3 */
    bool no_synchronization2;
    bool no_semaphore_fd;
} vk_options;

/* The targets that Vulkan test programs share; .user is a const vk_options *. */
extern const test_target vk_targets[];
extern const size_t vk_target_count;

#define VK_INSTANCE_FUNCTIONS(X)                                                                   \
    X(CreateDevice)                                                                                \
    X(DestroyDevice)                                                                               \
    X(DestroyInstance)                                                                             \
    X(EnumeratePhysicalDevices)                                                                    \
    X(EnumerateDeviceExtensionProperties)                                                          \
    X(GetPhysicalDeviceMemoryProperties)                                                           \
    X(GetPhysicalDeviceExternalSemaphoreProperties)                                                \
    X(GetDeviceQueue)                                                                              \
    X(DeviceWaitIdle)                                                                              \
    X(QueueSubmit)                                                                                 \
    X(QueueWaitIdle)                                                                               \
    X(CreateSemaphore)                                                                             \
    X(DestroySemaphore)                                                                            \
    X(CreateFence)                                                                                 \
    X(DestroyFence)                                                                                \
    X(GetFenceStatus)                                                                              \
    X(WaitForFences)                                                                               \
    X(CreateBuffer)                                                                                \
    X(DestroyBuffer)                                                                               \
    X(GetBufferMemoryRequirements)                                                                 \
    X(AllocateMemory)                                                                              \
    X(FreeMemory)                                                                                  \
    X(BindBufferMemory)                                                                            \
    X(MapMemory)                                                                                   \
    X(CreateCommandPool)                                                                           \
    X(DestroyCommandPool)                                                                          \
    X(AllocateCommandBuffers)                                                                      \
    X(BeginCommandBuffer)                                                                          \
    X(EndCommandBuffer)                                                                            \
    X(CmdCopyBuffer)                                                                               \
    X(CmdPipelineBarrier)

/* Core from 1.2 on, extensions before. */
#define VK_TIMELINE_FUNCTIONS(X)                                                                   \
    X(WaitSemaphores)                                                                              \
    X(SignalSemaphore)                                                                             \
    X(GetSemaphoreCounterValue)

#define VK_FD_FUNCTIONS(X)                                                                         \
    X(GetSemaphoreFdKHR)                                                                           \
    X(ImportSemaphoreFdKHR)

typedef struct vk_functions {
#define VK_MEMBER(name) PFN_vk##name name;
    VK_INSTANCE_FUNCTIONS(VK_MEMBER)
    VK_TIMELINE_FUNCTIONS(VK_MEMBER)
    VK_FD_FUNCTIONS(VK_MEMBER)
#undef VK_MEMBER
} vk_functions;

/* The lock of a queue, as the user of the library gives it. Counts, and notices misuse. */
typedef struct vk_lock {
    pthread_mutex_t mutex;
    unsigned locked;   /* how often it was taken                                                 */
    unsigned unlocked; /* how often it was given back                                            */
    unsigned by_library; /* how often through the library's callback                             */
    unsigned wrong; /* nested, or given back by a thread that does not hold it                */
    void (*inside)(void *user); /* called by the library's lock callback, after locking          */
    void *user;
} vk_lock;

typedef struct vk_context {
    vk_options options;
    PFN_vkGetInstanceProcAddr get_instance_proc_addr; /* the loader's                            */
    VkInstance instance;
    bool owns_instance;
    VkDebugUtilsMessengerEXT messenger;
    VkPhysicalDevice physical_device;
    VkDevice device;
    VkQueue queue;
    VkCommandPool pool;
    vk_lock lock;
    vk_functions call;

    /* The create info stays here, since the library is given it. */
    VkDeviceCreateInfo device_info;
    VkPhysicalDeviceFeatures2 features;
    VkPhysicalDeviceTimelineSemaphoreFeatures timeline_features;
    VkPhysicalDeviceSynchronization2Features sync2_features;
    const char *extensions[8];

    /* The library's objects, made by vk_open_library(). */
    sp_vk_device *sp_device;
    sp_vk_queue *sp_queue;
} vk_context;

/* Opens instance, device and queue. Skips the case if the driver or the layer is not here. */
void vk_open(vk_context *vk, const vk_options *options);
/* A second device, on the instance of the first, which must be closed later. */
void vk_open_second(vk_context *vk, const vk_context *first);
/* Makes sp_device and sp_queue, with the lock of `vk`. `hooked`: NULL, or what to give the library
 * as vkGetInstanceProcAddr. */
void vk_open_library(vk_context *vk, PFN_vkGetInstanceProcAddr hooked);
/* Ends the library's objects, then ours. Fails the case if the layer has complained. */
void vk_close_library(vk_context *vk);
void vk_close(vk_context *vk);
/* vk_open() with the target's options, and vk_open_library(). */
void vk_open_both(vk_context *vk, const vk_options *options, PFN_vkGetInstanceProcAddr hooked);

/* Fails the case if the validation layer has said anything so far. */
void vk_check_validation(void);

sp_vk_device_desc vk_device_desc(const vk_context *vk, PFN_vkGetInstanceProcAddr hooked);
sp_vk_queue_desc vk_queue_desc(vk_context *vk);

/* ---- Raw calls ------------------------------------------------------------------------------ */

void vk_check(VkResult result, const char *text, const char *file, int line);
#define CHECK_VK(call) vk_check((call), #call, __FILE__, __LINE__)

/* How many queue locks the calling thread holds. */
unsigned vk_locks_held(void);
void vk_lock_queue(vk_context *vk);
void vk_unlock_queue(vk_context *vk);

VkSemaphore vk_make_timeline(vk_context *vk, uint64_t initial);
VkSemaphore vk_make_binary(vk_context *vk);
void vk_destroy_semaphore(vk_context *vk, VkSemaphore semaphore);
void vk_signal(vk_context *vk, VkSemaphore timeline, uint64_t value);
uint64_t vk_counter(vk_context *vk, VkSemaphore timeline);
bool vk_has_timeline_export(vk_context *vk);

/* One submit under the queue's lock. A NULL semaphore is left out; value 0: binary. */
typedef struct vk_submit_info {
    VkSemaphore wait;
    uint64_t wait_value;
    VkSemaphore signal;
    uint64_t signal_value;
    VkCommandBuffer commands;
    VkFence fence;
} vk_submit_info;
void vk_submit(vk_context *vk, const vk_submit_info *info);
/* Waits until all work on the queue is done. */
void vk_finish(vk_context *vk);

/* Keeps a queue from going on until it is opened, by a wait whose signal comes from the host later.
 * What is submitted behind it may be signalled, but Vulkan does not allow a wait for a *binary* that
 * is signalled behind it (one driver then hangs in vkQueueSubmit): use vk_slow for those. */
typedef struct vk_gate {
    vk_context *vk;
    VkSemaphore timeline;
    uint64_t next;
    uint64_t opened;
} vk_gate;
void vk_gate_init(vk_gate *gate, vk_context *vk);
/* Everything submitted later waits until the gate is opened up to the value returned. */
uint64_t vk_gate_close(vk_gate *gate);
void vk_gate_open(vk_gate *gate, uint64_t value);
void vk_gate_open_all(vk_gate *gate);
/* Opens it, waits for the queue, and destroys it. */
void vk_gate_fini(vk_gate *gate);

/* Work that takes a good part of a second: what is submitted behind it is pending for a while. */
typedef struct vk_slow {
    vk_context *vk;
    VkBuffer buffers[2];
    VkDeviceMemory memory[2];
    VkCommandBuffer commands;
} vk_slow;
void vk_slow_init(vk_slow *slow, vk_context *vk);
void vk_slow_submit(vk_slow *slow);
/* Waits for the queue. */
void vk_slow_fini(vk_slow *slow);

/* Work whose result shows whether it ran, and after what: a copy from one buffer to another. The
 * producer fills the source; a copy that ran too early has copied something else. */
typedef struct vk_copy {
    vk_context *vk;
    VkBuffer buffers[2];
    VkDeviceMemory memory[2];
    volatile uint32_t *source;
    volatile uint32_t *target;
    VkCommandBuffer commands;
    VkFence fence;
} vk_copy;
#define VK_COPY_WORDS 4096u
void vk_copy_init(vk_copy *copy, vk_context *vk);
void vk_copy_fini(vk_copy *copy);
void vk_copy_produce(vk_copy *copy, uint32_t seed); /* on the host */
void vk_copy_submit(vk_copy *copy);
/* Fails the case unless the target stays unwritten for a while. */
#define CHECK_UNWRITTEN(copy) CHECK(vk_copy_stays_unwritten(copy))
bool vk_copy_stays_unwritten(vk_copy *copy);
/* Waits for the copy and compares. */
bool vk_copy_arrives(vk_copy *copy, uint32_t seed);

#endif
