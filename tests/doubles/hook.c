/* SPDX-License-Identifier: MIT
 *
 * A double: see hook.h. Counting, injecting, look-ups. The submits are in hook_submit.c.
 */
#include "hook.h"

#include "hook_private.h"

#include <pthread.h>
#include <string.h>

hook_functions hook_real;

typedef struct rule {
    VkResult result;
    unsigned skip;
    unsigned times;
} rule;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static PFN_vkGetInstanceProcAddr real_get_instance;
static PFN_vkGetDeviceProcAddr real_get_device;
static VkInstance last_instance;
static unsigned calls[HOOK_COUNT];
static unsigned all_calls;
static unsigned steps;
static rule rules[HOOK_COUNT];
static rule any_step;
static bool device_lost;
static char hidden[128];
static PFN_vkVoidFunction replacements[HOOK_COUNT];

#define MAX_LIVE 8192
static VkSemaphore live[MAX_LIVE]; /* made by the library and not destroyed */
static unsigned live_count;

static bool applies(rule *self)
{
    if (!self->times)
        return false;
    if (self->skip) {
        self->skip--;
        return false;
    }
    self->times--;
    return true;
}

void hook_count(hook_id id)
{
    __atomic_fetch_add(&calls[id], 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&all_calls, 1, __ATOMIC_SEQ_CST);
}

VkResult hook_step(hook_id id)
{
    VkResult result = VK_SUCCESS;
    hook_count(id);
    pthread_mutex_lock(&mutex);
    steps++;
    bool by_step = applies(&any_step), by_rule = applies(&rules[id]);
    if (device_lost)
        result = VK_ERROR_DEVICE_LOST;
    else if (by_step)
        result = any_step.result;
    else if (by_rule)
        result = rules[id].result;
    pthread_mutex_unlock(&mutex);
    return result;
}

PFN_vkVoidFunction hook_replacement(hook_id id)
{
    return __atomic_load_n(&replacements[id], __ATOMIC_SEQ_CST);
}

/* ---- The functions ---- */

#define FORWARD(name, ...)                                                                         \
    (hook_replacement(HOOK_##name) ? ((PFN_vk##name)hook_replacement(HOOK_##name))(__VA_ARGS__)    \
                                   : hook_real.name(__VA_ARGS__))

/* Counts, and fails if a rule says so. */
#define STEP_AND_FORWARD(name, ...)                                                                \
    do {                                                                                           \
        VkResult injected = hook_step(HOOK_##name);                                                \
        return injected != VK_SUCCESS ? injected : FORWARD(name, __VA_ARGS__);                     \
    } while (0)

static VKAPI_ATTR void VKAPI_CALL on_GetPhysicalDeviceProperties2(VkPhysicalDevice device,
                                                                  VkPhysicalDeviceProperties2 *out)
{
    hook_count(HOOK_GetPhysicalDeviceProperties2);
    FORWARD(GetPhysicalDeviceProperties2, device, out);
}

static VKAPI_ATTR void VKAPI_CALL on_GetPhysicalDeviceExternalSemaphoreProperties(
    VkPhysicalDevice device, const VkPhysicalDeviceExternalSemaphoreInfo *info,
    VkExternalSemaphoreProperties *out)
{
    hook_count(HOOK_GetPhysicalDeviceExternalSemaphoreProperties);
    FORWARD(GetPhysicalDeviceExternalSemaphoreProperties, device, info, out);
}

static VKAPI_ATTR VkResult VKAPI_CALL on_CreateSemaphore(VkDevice device,
                                                         const VkSemaphoreCreateInfo *info,
                                                         const VkAllocationCallbacks *allocator,
                                                         VkSemaphore *out)
{
    VkResult result = hook_step(HOOK_CreateSemaphore);
    if (result == VK_SUCCESS)
        result = FORWARD(CreateSemaphore, device, info, allocator, out);
    pthread_mutex_lock(&mutex);
    if (result == VK_SUCCESS && live_count < MAX_LIVE)
        live[live_count++] = *out;
    pthread_mutex_unlock(&mutex);
    return result;
}

static VKAPI_ATTR void VKAPI_CALL on_DestroySemaphore(VkDevice device, VkSemaphore semaphore,
                                                      const VkAllocationCallbacks *allocator)
{
    hook_count(HOOK_DestroySemaphore);
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < live_count; i++) {
        if (live[i] == semaphore) {
            live[i] = live[--live_count];
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
    FORWARD(DestroySemaphore, device, semaphore, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL on_CreateFence(VkDevice device, const VkFenceCreateInfo *info,
                                                     const VkAllocationCallbacks *allocator,
                                                     VkFence *out)
{
    STEP_AND_FORWARD(CreateFence, device, info, allocator, out);
}

static VKAPI_ATTR void VKAPI_CALL on_DestroyFence(VkDevice device, VkFence fence,
                                                  const VkAllocationCallbacks *allocator)
{
    hook_count(HOOK_DestroyFence);
    FORWARD(DestroyFence, device, fence, allocator);
}

static VKAPI_ATTR VkResult VKAPI_CALL on_GetFenceStatus(VkDevice device, VkFence fence)
{
    STEP_AND_FORWARD(GetFenceStatus, device, fence);
}

static VKAPI_ATTR VkResult VKAPI_CALL on_WaitForFences(VkDevice device, uint32_t count,
                                                       const VkFence *fences, VkBool32 all,
                                                       uint64_t timeout)
{
    STEP_AND_FORWARD(WaitForFences, device, count, fences, all, timeout);
}

static VKAPI_ATTR VkResult VKAPI_CALL on_QueueWaitIdle(VkQueue queue)
{
    STEP_AND_FORWARD(QueueWaitIdle, queue);
}

static VKAPI_ATTR VkResult VKAPI_CALL on_DeviceWaitIdle(VkDevice device)
{
    STEP_AND_FORWARD(DeviceWaitIdle, device);
}

static VKAPI_ATTR VkResult VKAPI_CALL on_WaitSemaphores(VkDevice device,
                                                        const VkSemaphoreWaitInfo *info,
                                                        uint64_t timeout)
{
    STEP_AND_FORWARD(WaitSemaphores, device, info, timeout);
}

static VKAPI_ATTR VkResult VKAPI_CALL on_SignalSemaphore(VkDevice device,
                                                         const VkSemaphoreSignalInfo *info)
{
    STEP_AND_FORWARD(SignalSemaphore, device, info);
}

static VKAPI_ATTR VkResult VKAPI_CALL on_GetSemaphoreCounterValue(VkDevice device,
                                                                  VkSemaphore semaphore,
                                                                  uint64_t *value)
{
    STEP_AND_FORWARD(GetSemaphoreCounterValue, device, semaphore, value);
}

static VKAPI_ATTR VkResult VKAPI_CALL on_GetSemaphoreFdKHR(VkDevice device,
                                                           const VkSemaphoreGetFdInfoKHR *info,
                                                           int *fd)
{
    STEP_AND_FORWARD(GetSemaphoreFdKHR, device, info, fd);
}

static VKAPI_ATTR VkResult VKAPI_CALL
on_ImportSemaphoreFdKHR(VkDevice device, const VkImportSemaphoreFdInfoKHR *info)
{
    STEP_AND_FORWARD(ImportSemaphoreFdKHR, device, info);
}

/* ---- Look-ups ---- */

typedef struct entry {
    const char *name;
    const char *alias;
    PFN_vkVoidFunction hook;
    PFN_vkVoidFunction *real;
} entry;

#define on_QueueSubmit hook_on_QueueSubmit
#define on_QueueSubmit2 hook_on_QueueSubmit2

static const entry entries[] = {
#define HOOK_ENTRY(name, alias)                                                                    \
    {"vk" #name, alias, (PFN_vkVoidFunction)on_##name,                                             \
     (PFN_vkVoidFunction *)(void *)&hook_real.name},
    HOOK_FUNCTIONS(HOOK_ENTRY)
#undef HOOK_ENTRY
};

/* The driver's answer decides whether there is a function at all. The pointer kept is the loader's,
 * which works for any device. */
static PFN_vkVoidFunction hooked(const char *name, PFN_vkVoidFunction driver)
{
    if (hidden[0] && strcmp(hidden, name) == 0)
        return NULL;
    for (hook_id id = 0; id < HOOK_COUNT; id++) {
        const entry *known = &entries[id];
        if (strcmp(name, known->name) != 0 && (!known->alias || strcmp(name, known->alias) != 0))
            continue;
        if (driver)
            *known->real = real_get_instance(last_instance, name);
        return driver || hook_replacement(id) ? known->hook : NULL;
    }
    return driver;
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL hook_get_device(VkDevice device, const char *name)
{
    if (strcmp(name, "vkGetDeviceProcAddr") == 0)
        return (PFN_vkVoidFunction)hook_get_device;
    return hooked(name, real_get_device(device, name));
}

static VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL hook_get_instance(VkInstance instance,
                                                                  const char *name)
{
    if (instance)
        last_instance = instance;
    if (strcmp(name, "vkGetInstanceProcAddr") == 0)
        return (PFN_vkVoidFunction)hook_get_instance;
    if (hidden[0] && strcmp(hidden, name) == 0)
        return NULL;
    PFN_vkVoidFunction driver = real_get_instance(instance, name);
    if (strcmp(name, "vkGetDeviceProcAddr") == 0) {
        real_get_device = (PFN_vkGetDeviceProcAddr)driver;
        return (PFN_vkVoidFunction)hook_get_device;
    }
    return hooked(name, driver);
}

PFN_vkGetInstanceProcAddr hook_install(PFN_vkGetInstanceProcAddr real)
{
    real_get_instance = real;
    memset(calls, 0, sizeof(calls));
    memset(replacements, 0, sizeof(replacements));
    all_calls = steps = live_count = 0;
    hidden[0] = '\0';
    hook_watch_submits(NULL);
    hook_heal();
    return hook_get_instance;
}

/* ---- Asking and telling ---- */

unsigned hook_calls(hook_id id)
{
    return __atomic_load_n(&calls[id], __ATOMIC_SEQ_CST);
}
unsigned hook_all_calls(void)
{
    return __atomic_load_n(&all_calls, __ATOMIC_SEQ_CST);
}

unsigned hook_live_semaphores(void)
{
    pthread_mutex_lock(&mutex);
    unsigned count = live_count;
    pthread_mutex_unlock(&mutex);
    return count;
}

unsigned hook_steps(void)
{
    pthread_mutex_lock(&mutex);
    unsigned count = steps;
    pthread_mutex_unlock(&mutex);
    return count;
}

void hook_fail(hook_id id, VkResult result, unsigned skip, unsigned times)
{
    pthread_mutex_lock(&mutex);
    rules[id] = (rule){result, skip, times};
    pthread_mutex_unlock(&mutex);
}

void hook_fail_step(VkResult result, unsigned skip)
{
    pthread_mutex_lock(&mutex);
    any_step = (rule){result, skip, 1};
    pthread_mutex_unlock(&mutex);
}

void hook_lose_device(bool lost)
{
    pthread_mutex_lock(&mutex);
    device_lost = lost;
    pthread_mutex_unlock(&mutex);
}

void hook_heal(void)
{
    pthread_mutex_lock(&mutex);
    memset(rules, 0, sizeof(rules));
    any_step.times = 0;
    device_lost = false;
    pthread_mutex_unlock(&mutex);
}

void hook_hide(const char *name)
{
    hidden[0] = '\0';
    if (name)
        strncat(hidden, name, sizeof(hidden) - 1);
}

void hook_replace(hook_id id, PFN_vkVoidFunction replacement)
{
    __atomic_store_n(&replacements[id], replacement, __ATOMIC_SEQ_CST);
}
