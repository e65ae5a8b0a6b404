/* SPDX-License-Identifier: MIT
 *
 * A double of a Vulkan driver, around a real one: a vkGetInstanceProcAddr for the library that
 * counts calls, lets each of them fail on command, and lets a test replace it.
 *
 * What a test shows with an injected result is how the library answers, not that any driver gives
 * that result. The library's calls come through here; the tests' own do not.
 */
#ifndef TESTS_DOUBLES_HOOK_H
#define TESTS_DOUBLES_HOOK_H

#include <stdbool.h>
#include <stdint.h>
#include <vulkan/vulkan_core.h>

/* X(name, other names that mean the same or NULL) */
#define HOOK_FUNCTIONS(X)                                                                          \
    X(GetPhysicalDeviceProperties2, "vkGetPhysicalDeviceProperties2KHR")                           \
    X(GetPhysicalDeviceExternalSemaphoreProperties,                                                \
      "vkGetPhysicalDeviceExternalSemaphorePropertiesKHR")                                         \
    X(CreateSemaphore, NULL)                                                                       \
    X(DestroySemaphore, NULL)                                                                      \
    X(CreateFence, NULL)                                                                           \
    X(DestroyFence, NULL)                                                                          \
    X(GetFenceStatus, NULL)                                                                        \
    X(WaitForFences, NULL)                                                                         \
    X(QueueSubmit, NULL)                                                                           \
    X(QueueSubmit2, "vkQueueSubmit2KHR")                                                           \
    X(QueueWaitIdle, NULL)                                                                         \
    X(DeviceWaitIdle, NULL)                                                                        \
    X(WaitSemaphores, "vkWaitSemaphoresKHR")                                                       \
    X(SignalSemaphore, "vkSignalSemaphoreKHR")                                                     \
    X(GetSemaphoreCounterValue, "vkGetSemaphoreCounterValueKHR")                                   \
    X(GetSemaphoreFdKHR, NULL)                                                                     \
    X(ImportSemaphoreFdKHR, NULL)

typedef enum hook_id {
#define HOOK_ENUM(name, alias) HOOK_##name,
    HOOK_FUNCTIONS(HOOK_ENUM)
#undef HOOK_ENUM
        HOOK_COUNT
} hook_id;

/* The driver's own functions, from the last look-up. */
typedef struct hook_functions {
#define HOOK_MEMBER(name, alias) PFN_vk##name name;
    HOOK_FUNCTIONS(HOOK_MEMBER)
#undef HOOK_MEMBER
} hook_functions;

extern hook_functions hook_real;

/* Wraps the loader's function; what comes back is for the library. Resets everything below. */
PFN_vkGetInstanceProcAddr hook_install(PFN_vkGetInstanceProcAddr real);

/* How often the library has called a function; any function; any function that can fail. */
unsigned hook_calls(hook_id id);
unsigned hook_all_calls(void);
unsigned hook_steps(void);

/* Calls number `skip`, `skip` + 1, ... from now on fail with `result`, `times` of them. */
void hook_fail(hook_id id, VkResult result, unsigned skip, unsigned times);
/* The call that can fail, `skip` calls of that sort from now, fails. Once. */
void hook_fail_step(VkResult result, unsigned skip);
/* The device is lost, as every call that can fail says, until hook_lose_device(false). */
void hook_lose_device(bool lost);
/* No failure is to come any more. */
void hook_heal(void);

/* Look-ups of this name give NULL. NULL: hide nothing. */
void hook_hide(const char *name);

/* Calls of this function go to `replacement`, which may call hook_real. NULL: to the driver. */
void hook_replace(hook_id id, PFN_vkVoidFunction replacement);
#define HOOK_REPLACE(name, function)                                                               \
    do {                                                                                           \
        PFN_vk##name typed = (function);                                                           \
        hook_replace(HOOK_##name, (PFN_vkVoidFunction)typed);                                      \
    } while (0)

/* Semaphores that the library made and did not destroy. */
unsigned hook_live_semaphores(void);

/* ---- Submits -------------------------------------------------------------------------------- */

typedef struct hook_semaphore {
    VkSemaphore semaphore;
    uint64_t value; /* 0: binary */
    uint64_t stages;
} hook_semaphore;

#define HOOK_MAX_SEMAPHORES 16

/* One batch of a submit, whichever function made it. */
typedef struct hook_batch {
    VkQueue queue;
    VkResult result;
    VkFence fence;
    unsigned wait_count;
    unsigned signal_count;
    unsigned command_count;
    hook_semaphore waits[HOOK_MAX_SEMAPHORES];
    hook_semaphore signals[HOOK_MAX_SEMAPHORES];
} hook_batch;

/* A second VkQueue, where the driver has one: submits to `alias` go to `real`. */
void hook_alias_queue(VkQueue alias, VkQueue real);

/* Called after each submit of the library's, one batch at a time, on its thread. */
void hook_watch_submits(void (*watch)(const hook_batch *batch));

#endif
