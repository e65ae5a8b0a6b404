/* SPDX-License-Identifier: MIT
 *
 * Opening drivers, instances and devices. The raw calls are in vk_raw.c.
 */
#include "vk_fixture.h"

#include <ctype.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define VALIDATION_LAYER "VK_LAYER_KHRONOS_validation"

static const vk_options lavapipe = {.driver = "lavapipe"};
static const vk_options swiftshader = {.driver = "swiftshader"};
static const vk_options nvidia = {.driver = "nvidia"};
static const vk_options lavapipe_validation = {.driver = "lavapipe", .validation = true};
static const vk_options swiftshader_validation = {.driver = "swiftshader", .validation = true};

const test_target vk_targets[] = {
    {"lavapipe", ON_ANY_DRIVER, (void *)&lavapipe},
    {"swiftshader", WITH_OPAQUE_FD | WITH_ASYNC_SUBMIT | OUTLIVES_NO_FDS, (void *)&swiftshader},
    {"nvidia", WITH_OPAQUE_FD | WITH_ASYNC_SUBMIT, (void *)&nvidia},
    {"lavapipe-validation", ON_ANY_DRIVER, (void *)&lavapipe_validation},
    {"swiftshader-validation", WITH_OPAQUE_FD | WITH_ASYNC_SUBMIT | OUTLIVES_NO_FDS,
     (void *)&swiftshader_validation},
};
const size_t vk_target_count = COUNT_OF(vk_targets);

/* ---- The layer's complaints ---- */

static unsigned complaints;

/* Complaints of layer 1.3.239 that are its own mistakes, seen with correct raw calls too:
 *   - after a submit's signal of 2, when the counter says 2, it still calls that signal pending if
 *     a host wait went on meanwhile (or if queue waits for lower values are not retired yet), and
 *     complains of a host signal of 3. Test V1_host_signal_beside_a_pending_queue_signal looks for
 *     the real mistake by itself.
 *   - "Timeout waiting for timeline semaphore state to update. This is most likely a validation
 *     bug", in its own words. */
static const char *const wrong_complaints[] = {
    "VUID-VkSemaphoreSignalInfo-value-03259",
    "UNASSIGNED-VkSemaphore-state-timeout",
};

static bool is_wrong(const char *id)
{
    for (unsigned i = 0; id && i < COUNT_OF(wrong_complaints); i++) {
        if (strcmp(id, wrong_complaints[i]) == 0)
            return true;
    }
    return false;
}

static VKAPI_ATTR VkBool32 VKAPI_CALL complain(VkDebugUtilsMessageSeverityFlagBitsEXT severity,
                                               VkDebugUtilsMessageTypeFlagsEXT types,
                                               const VkDebugUtilsMessengerCallbackDataEXT *data,
                                               void *user)
{
    (void)severity;
    (void)types;
    (void)user;
    if (is_wrong(data->pMessageIdName))
        return VK_FALSE;
    fprintf(stderr, "validation: %s\n  %s\n", data->pMessageIdName ? data->pMessageIdName : "?",
            data->pMessage);
    __atomic_fetch_add(&complaints, 1, __ATOMIC_SEQ_CST);
    return VK_FALSE;
}

static const VkDebugUtilsMessengerCreateInfoEXT messenger_info = {
    .sType = VK_STRUCTURE_TYPE_DEBUG_UTILS_MESSENGER_CREATE_INFO_EXT,
    .messageSeverity = VK_DEBUG_UTILS_MESSAGE_SEVERITY_WARNING_BIT_EXT |
                       VK_DEBUG_UTILS_MESSAGE_SEVERITY_ERROR_BIT_EXT,
    .messageType = VK_DEBUG_UTILS_MESSAGE_TYPE_VALIDATION_BIT_EXT,
    .pfnUserCallback = complain,
};

void vk_check_validation(void)
{
    unsigned count = __atomic_load_n(&complaints, __ATOMIC_SEQ_CST);
    if (count) {
        print_error("the validation layer has complained %u times\n", count);
        CHECK(count == 0);
    }
}

/* ---- Opening ---- */

static void choose_icd(const char *driver)
{
    char variable[64];
    int length = snprintf(variable, sizeof(variable), "SP_TEST_%s_ICD", driver);
    for (int i = 0; i < length; i++)
        variable[i] = (char)toupper((unsigned char)variable[i]);
    const char *icd = getenv(variable);
    if (!icd)
        test_skip("%s is not set: scripts/driver-env prints it", variable);
    setenv("VK_ICD_FILENAMES", icd, 1);
    setenv("VK_DRIVER_FILES", icd, 1);
}

static PFN_vkGetInstanceProcAddr load_loader(const char *driver)
{
    choose_icd(driver);
    setenv("NODEVICE_SELECT", "1", 1); /* a layer of Mesa's that looks for displays */
    void *library = dlopen("libvulkan.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library)
        test_skip("no Vulkan loader: %s", dlerror());
    void *function = dlsym(library, "vkGetInstanceProcAddr");
    assert_non_null(function);
    PFN_vkGetInstanceProcAddr result;
    memcpy(&result, &function, sizeof(result));
    return result;
}

static bool have_layer(PFN_vkGetInstanceProcAddr get, const char *name)
{
    PFN_vkEnumerateInstanceLayerProperties enumerate =
        (PFN_vkEnumerateInstanceLayerProperties)get(NULL, "vkEnumerateInstanceLayerProperties");
    VkLayerProperties layers[64];
    uint32_t count = COUNT_OF(layers);
    enumerate(&count, layers);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(layers[i].layerName, name) == 0)
            return true;
    }
    return false;
}

static void open_instance(vk_context *vk)
{
    static const char *const layers[] = {VALIDATION_LAYER};
    static const char *const extensions[] = {"VK_EXT_debug_utils"};
    bool validation = vk->options.validation;
    if (validation && !have_layer(vk->get_instance_proc_addr, VALIDATION_LAYER))
        test_skip(VALIDATION_LAYER " is not installed");
    const VkApplicationInfo application = {
        .sType = VK_STRUCTURE_TYPE_APPLICATION_INFO,
        .apiVersion = vk->options.api_version,
    };
    const VkInstanceCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_INSTANCE_CREATE_INFO,
        .pNext = validation ? &messenger_info : NULL,
        .pApplicationInfo = &application,
        .enabledLayerCount = validation,
        .ppEnabledLayerNames = layers,
        .enabledExtensionCount = validation,
        .ppEnabledExtensionNames = extensions,
    };
    PFN_vkCreateInstance create =
        (PFN_vkCreateInstance)vk->get_instance_proc_addr(NULL, "vkCreateInstance");
    CHECK_VK(create(&info, NULL, &vk->instance));
    vk->owns_instance = true;
    if (!validation)
        return;
    PFN_vkCreateDebugUtilsMessengerEXT create_messenger =
        (PFN_vkCreateDebugUtilsMessengerEXT)vk->get_instance_proc_addr(
            vk->instance, "vkCreateDebugUtilsMessengerEXT");
    CHECK_VK(create_messenger(vk->instance, &messenger_info, NULL, &vk->messenger));
}

static PFN_vkVoidFunction load(const vk_context *vk, const char *name)
{
    return vk->get_instance_proc_addr(vk->instance, name);
}

static void load_functions(vk_context *vk)
{
    bool core = vk->options.api_version >= VK_API_VERSION_1_2;
#define VK_LOAD(name) vk->call.name = (PFN_vk##name)load(vk, "vk" #name);
#define VK_LOAD_TIMELINE(name)                                                                     \
    vk->call.name = (PFN_vk##name)load(vk, core ? "vk" #name : "vk" #name "KHR");
    VK_INSTANCE_FUNCTIONS(VK_LOAD)
    VK_TIMELINE_FUNCTIONS(VK_LOAD_TIMELINE)
    VK_FD_FUNCTIONS(VK_LOAD)
#undef VK_LOAD
#undef VK_LOAD_TIMELINE
}

static bool have_extension(const vk_context *vk, const char *name)
{
    VkExtensionProperties extensions[512];
    uint32_t count = COUNT_OF(extensions);
    vk->call.EnumerateDeviceExtensionProperties(vk->physical_device, NULL, &count, extensions);
    for (uint32_t i = 0; i < count; i++) {
        if (strcmp(extensions[i].extensionName, name) == 0)
            return true;
    }
    return false;
}

static void describe_device(vk_context *vk)
{
    uint32_t version = vk->options.api_version, count = 0;
    if (version < VK_API_VERSION_1_2)
        vk->extensions[count++] = "VK_KHR_timeline_semaphore";
    if (version < VK_API_VERSION_1_3 && !vk->options.no_synchronization2)
        vk->extensions[count++] = "VK_KHR_synchronization2";
    if (!vk->options.no_semaphore_fd && have_extension(vk, "VK_KHR_external_semaphore_fd"))
        vk->extensions[count++] = "VK_KHR_external_semaphore_fd";
    vk->sync2_features = (VkPhysicalDeviceSynchronization2Features){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_SYNCHRONIZATION_2_FEATURES,
        .synchronization2 = VK_TRUE,
    };
    vk->timeline_features = (VkPhysicalDeviceTimelineSemaphoreFeatures){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_FEATURES,
        .pNext = vk->options.no_synchronization2 ? NULL : &vk->sync2_features,
        .timelineSemaphore = VK_TRUE,
    };
    vk->features = (VkPhysicalDeviceFeatures2){
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_FEATURES_2,
        .pNext = &vk->timeline_features,
    };
    vk->device_info = (VkDeviceCreateInfo){
        .sType = VK_STRUCTURE_TYPE_DEVICE_CREATE_INFO,
        .pNext = &vk->features,
        .enabledExtensionCount = count,
        .ppEnabledExtensionNames = vk->extensions,
    };
}

static void open_device(vk_context *vk)
{
    static const float priority = 1.0f;
    const VkDeviceQueueCreateInfo queue_info = {
        .sType = VK_STRUCTURE_TYPE_DEVICE_QUEUE_CREATE_INFO,
        .queueCount = 1,
        .pQueuePriorities = &priority,
    };
    const VkCommandPoolCreateInfo pool_info = {
        .sType = VK_STRUCTURE_TYPE_COMMAND_POOL_CREATE_INFO,
    };
    uint32_t count = 1;
    load_functions(vk);
    vk->call.EnumeratePhysicalDevices(vk->instance, &count, &vk->physical_device);
    if (count == 0)
        test_skip("%s shows no device", vk->options.driver);
    describe_device(vk);
    VkDeviceCreateInfo info = vk->device_info;
    info.queueCreateInfoCount = 1;
    info.pQueueCreateInfos = &queue_info;
    CHECK_VK(vk->call.CreateDevice(vk->physical_device, &info, NULL, &vk->device));
    vk->call.GetDeviceQueue(vk->device, 0, 0, &vk->queue);
    CHECK_VK(vk->call.CreateCommandPool(vk->device, &pool_info, NULL, &vk->pool));
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ERRORCHECK);
    pthread_mutex_init(&vk->lock.mutex, &attributes);
    pthread_mutexattr_destroy(&attributes);
}

void vk_open(vk_context *vk, const vk_options *options)
{
    memset(vk, 0, sizeof(*vk));
    vk->options = *options;
    if (!vk->options.api_version)
        vk->options.api_version = VK_API_VERSION_1_3;
    vk->get_instance_proc_addr = load_loader(options->driver);
    open_instance(vk);
    open_device(vk);
}

void vk_open_second(vk_context *vk, const vk_context *first)
{
    memset(vk, 0, sizeof(*vk));
    vk->options = first->options;
    vk->get_instance_proc_addr = first->get_instance_proc_addr;
    vk->instance = first->instance;
    open_device(vk);
}

void vk_close(vk_context *vk)
{
    vk_close_library(vk);
    CHECK_VK(vk->call.DeviceWaitIdle(vk->device));
    vk->call.DestroyCommandPool(vk->device, vk->pool, NULL);
    vk->call.DestroyDevice(vk->device, NULL);
    CHECK_EQUAL(vk->lock.wrong, 0);
    CHECK_EQUAL(vk->lock.locked, vk->lock.unlocked);
    pthread_mutex_destroy(&vk->lock.mutex);
    if (vk->messenger) {
        PFN_vkDestroyDebugUtilsMessengerEXT destroy =
            (PFN_vkDestroyDebugUtilsMessengerEXT)load(vk, "vkDestroyDebugUtilsMessengerEXT");
        destroy(vk->instance, vk->messenger, NULL);
    }
    if (vk->owns_instance)
        vk->call.DestroyInstance(vk->instance, NULL);
    vk_check_validation();
}

/* ---- The library's objects ---- */

static void library_locks(void *user)
{
    vk_context *vk = user;
    vk_lock_queue(vk);
    vk->lock.by_library++;
    if (vk->lock.inside)
        vk->lock.inside(vk->lock.user);
}

static void library_unlocks(void *user)
{
    vk_unlock_queue(user);
}

sp_vk_device_desc vk_device_desc(const vk_context *vk, PFN_vkGetInstanceProcAddr hooked)
{
    return (sp_vk_device_desc){
        .size = sizeof(sp_vk_device_desc),
        .instance = vk->instance,
        .physical_device = vk->physical_device,
        .device = vk->device,
        .get_instance_proc_addr = hooked ? hooked : vk->get_instance_proc_addr,
        .create_info = &vk->device_info,
        .api_version = vk->options.api_version,
    };
}

sp_vk_queue_desc vk_queue_desc(vk_context *vk)
{
    return (sp_vk_queue_desc){
        .size = sizeof(sp_vk_queue_desc),
        .queue = vk->queue,
        .lock = library_locks,
        .unlock = library_unlocks,
        .user = vk,
    };
}

void vk_open_library(vk_context *vk, PFN_vkGetInstanceProcAddr hooked)
{
    sp_vk_device_desc device = vk_device_desc(vk, hooked);
    sp_vk_queue_desc queue = vk_queue_desc(vk);
    CHECK_STATUS(sp_vk_device_create(&device, &vk->sp_device), SP_OK);
    CHECK_STATUS(sp_vk_queue_create(vk->sp_device, &queue, &vk->sp_queue), SP_OK);
}

void vk_close_library(vk_context *vk)
{
    CHECK_STATUS(sp_vk_queue_destroy(vk->sp_queue, PATIENCE_NS), SP_OK);
    CHECK_STATUS(sp_vk_device_destroy(vk->sp_device, PATIENCE_NS), SP_OK);
    vk->sp_queue = NULL;
    vk->sp_device = NULL;
}

void vk_open_both(vk_context *vk, const vk_options *options, PFN_vkGetInstanceProcAddr hooked)
{
    vk_open(vk, options);
    vk_open_library(vk, hooked);
}
