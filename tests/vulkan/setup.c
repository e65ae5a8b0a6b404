/* SPDX-License-Identifier: MIT
 *
 * Descriptions: what is accepted, what is refused and why. The log.
 */
#include "vk_case.h"

#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <unistd.h>

#define OPAQUE VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT
#define SYNC VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT

TEST(bad_semaphore_descriptions)
{
    start();
    sp_vk_semaphore *out = (sp_vk_semaphore *)16;
    const sp_vk_semaphore_desc good = {.size = sizeof(good), .type = VK_SEMAPHORE_TYPE_TIMELINE};
    sp_vk_semaphore_desc desc = good;
    CHECK_ERROR(sp_vk_semaphore_create(NULL, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_semaphore_create(vk.sp_device, NULL, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_semaphore_create(vk.sp_device, &desc, NULL), SP_ERROR_INVALID_ARGUMENT);
    desc.size--;
    CHECK_ERROR(sp_vk_semaphore_create(vk.sp_device, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    desc = good;
    desc.type = (VkSemaphoreType)2;
    CHECK_ERROR(sp_vk_semaphore_create(vk.sp_device, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    desc = good;
    desc.initial_value = UINT64_MAX;
    CHECK_ERROR(sp_vk_semaphore_create(vk.sp_device, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK(out == (sp_vk_semaphore *)16);
    finish();
}

TEST(bad_queue_descriptions)
{
    start();
    sp_vk_queue *out = (sp_vk_queue *)16;
    const sp_vk_queue_desc good = vk_queue_desc(&vk);
    sp_vk_queue_desc desc = good;
    CHECK_ERROR(sp_vk_queue_create(NULL, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_queue_create(vk.sp_device, NULL, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_queue_create(vk.sp_device, &desc, NULL), SP_ERROR_INVALID_ARGUMENT);
    desc.queue = VK_NULL_HANDLE;
    CHECK_ERROR(sp_vk_queue_create(vk.sp_device, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    desc = good;
    desc.unlock = NULL;
    CHECK_ERROR(sp_vk_queue_create(vk.sp_device, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    desc = good;
    desc.lock = NULL;
    CHECK_ERROR(sp_vk_queue_create(vk.sp_device, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    desc = good;
    desc.size = 8;
    CHECK_ERROR(sp_vk_queue_create(vk.sp_device, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK(out == (sp_vk_queue *)16);
    finish();
}

static void refuse_device(const sp_vk_device_desc *desc, sp_status expected)
{
    sp_vk_device *out = (sp_vk_device *)16;
    CHECK_ERROR(sp_vk_device_create(desc, &out), expected);
    CHECK(out == (sp_vk_device *)16);
}

TEST(bad_device_descriptions)
{
    vk_open(&vk, options);
    const sp_vk_device_desc good = vk_device_desc(&vk, NULL);
    sp_vk_device_desc desc = good;
    refuse_device(NULL, SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_device_create(&desc, NULL), SP_ERROR_INVALID_ARGUMENT);
    desc.size++;
    refuse_device(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc = good;
    desc.instance = VK_NULL_HANDLE;
    refuse_device(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc = good;
    desc.physical_device = VK_NULL_HANDLE;
    refuse_device(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc = good;
    desc.device = VK_NULL_HANDLE;
    refuse_device(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc = good;
    desc.get_instance_proc_addr = NULL;
    refuse_device(&desc, SP_ERROR_INVALID_ARGUMENT);
    vk_close(&vk);
}

TEST(timelines_are_not_enabled)
{
    vk_open(&vk, options);
    sp_vk_device_desc desc = vk_device_desc(&vk, NULL);
    vk.timeline_features.timelineSemaphore = VK_FALSE; /* says the create info */
    refuse_device(&desc, SP_ERROR_NOT_SUPPORTED);
    vk.device_info.pNext = NULL;
    refuse_device(&desc, SP_ERROR_NOT_SUPPORTED);
    desc.create_info = NULL;
    desc.api_version = VK_API_VERSION_1_0;
    refuse_device(&desc, SP_ERROR_NOT_SUPPORTED);
    vk_close(&vk);
}

/* Each function that a driver may lack: the error names it, or it is done without. */
TEST(missing_functions)
{
    static const char *const required[] = {
        "vkGetDeviceProcAddr",
        "vkCreateSemaphore",
        "vkDestroySemaphore",
        "vkWaitSemaphores",
        "vkGetSemaphoreCounterValue",
        "vkSignalSemaphore",
        "vkGetPhysicalDeviceProperties",
    };
    vk_open(&vk, options);
    PFN_vkGetInstanceProcAddr hooked = hook_install(vk.get_instance_proc_addr);
    sp_vk_device_desc desc = vk_device_desc(&vk, hooked);
    unsigned live = hook_live_semaphores(), open = census_open_handles();
    for (unsigned i = 0; i < COUNT_OF(required); i++) {
        sp_vk_device *made = NULL;
        hook_hide(required[i]);
        sp_status status = sp_vk_device_create(&desc, &made);
        if (status == SP_OK) {
            CHECK_EQUAL(i, COUNT_OF(required) - 1); /* may use ...2 instead */
            CHECK_STATUS(sp_vk_device_destroy(made, 0), SP_OK);
            continue;
        }
        CHECK_STATUS(status, SP_ERROR_NOT_SUPPORTED);
        CHECK(made == NULL);
        CHECK(sp_last_error()->message[0] != '\0');
    }
    hook_hide(NULL);
    CHECK_EQUAL(hook_live_semaphores(), live);
    CHECK_HANDLES(open);
    vk_close(&vk);
}

/* ---- Features, said in other structs ---- */

static void check_works(void)
{
    sp_point done = {0};
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
    CHECK_STATUS(sp_wait(&done), SP_OK);
    sp_point_unref(&done);
}

TEST(features_of_vulkan_1_2_and_1_3)
{
    VkPhysicalDeviceVulkan13Features three = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_3_FEATURES,
        .synchronization2 = VK_TRUE,
    };
    VkPhysicalDeviceVulkan12Features two = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_FEATURES,
        .pNext = &three,
        .timelineSemaphore = VK_TRUE,
    };
    for (unsigned with_sync2 = 0; with_sync2 < 2; with_sync2++) {
        vk_open(&vk, options);
        three.synchronization2 = with_sync2 != 0;
        vk.device_info.pNext = &two;
        vk_open_library(&vk, hook_install(vk.get_instance_proc_addr));
        check_works();
        CHECK((hook_calls(HOOK_QueueSubmit2) > 0) == (with_sync2 != 0));
        finish();
    }
    vk_open(&vk, options);
    sp_vk_device_desc desc = vk_device_desc(&vk, NULL);
    two.timelineSemaphore = VK_FALSE;
    vk.device_info.pNext = &two;
    refuse_device(&desc, SP_ERROR_NOT_SUPPORTED);
    vk_close(&vk);
}

TEST(timeline_extension_is_not_enabled)
{
    vk_options with = *options;
    with.api_version = VK_API_VERSION_1_1;
    with.no_synchronization2 = true;
    vk_open(&vk, &with);
    sp_vk_device_desc desc = vk_device_desc(&vk, NULL);
    vk.device_info.enabledExtensionCount = 0; /* says the create info */
    refuse_device(&desc, SP_ERROR_NOT_SUPPORTED);
    CHECK(strstr(sp_last_error()->message, "timeline_semaphore") != NULL);
    vk_close(&vk);
}

TEST(export_types_that_there_are_not)
{
    start();
    sp_vk_semaphore *out = (sp_vk_semaphore *)16;
    sp_vk_semaphore_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .export_types = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE_BIT,
    };
    CHECK_ERROR(sp_vk_semaphore_create(vk.sp_device, &desc, &out), SP_ERROR_NOT_SUPPORTED);
    desc.export_types = OPAQUE | SYNC;
    CHECK_ERROR(sp_vk_semaphore_create(vk.sp_device, &desc, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK(out == (sp_vk_semaphore *)16);
    finish();
}

/* ---- The log ---- */

static unsigned logged[3];
static int log_user;

static void take_log(void *user, sp_log_level level, const char *message)
{
    CHECK(user == &log_user);
    CHECK(level <= SP_LOG_INFO);
    CHECK(message[0] != '\0');
    logged[level]++;
}

static VKAPI_ATTR VkResult VKAPI_CALL removed(VkDevice device, VkSemaphore semaphore,
                                              uint64_t *value)
{
    (void)device;
    (void)semaphore;
    *value = UINT64_MAX;
    return VK_SUCCESS;
}

TEST(log_tells_what_no_status_can)
{
    vk_open(&vk, options);
    sp_vk_device_desc device = vk_device_desc(&vk, hook_install(vk.get_instance_proc_addr));
    sp_vk_queue_desc queue = vk_queue_desc(&vk);
    device.log = (sp_log){.fn = take_log, .user = &log_user};
    CHECK_STATUS(sp_vk_device_create(&device, &vk.sp_device), SP_OK);
    CHECK_STATUS(sp_vk_queue_create(vk.sp_device, &queue, &vk.sp_queue), SP_OK);
    check_works();
    CHECK_EQUAL(logged[SP_LOG_ERROR] + logged[SP_LOG_WARN], 0);
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point point = timeline_point(timeline, 1);
    HOOK_REPLACE(GetSemaphoreCounterValue, removed);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_DEVICE_LOST);
    CHECK(logged[SP_LOG_ERROR] > 0);
    hook_replace(HOOK_GetSemaphoreCounterValue, NULL);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(timeline);
    finish();
}

/* ---- A double: a driver that imports and does not export, so that the library has no handle of
 * the driver's to compare with ---- */

static VkExternalSemaphoreFeatureFlags allowed;

static VKAPI_ATTR void VKAPI_CALL half_properties(VkPhysicalDevice device,
                                                  const VkPhysicalDeviceExternalSemaphoreInfo *info,
                                                  VkExternalSemaphoreProperties *out)
{
    hook_real.GetPhysicalDeviceExternalSemaphoreProperties(device, info, out);
    out->externalSemaphoreFeatures &= allowed;
}

static sp_vk_semaphore_caps open_half(VkExternalSemaphoreFeatureFlags features)
{
    sp_vk_semaphore_caps caps = {.size = sizeof(caps)};
    allowed = features;
    vk_open(&vk, options);
    PFN_vkGetInstanceProcAddr hooked = hook_install(vk.get_instance_proc_addr);
    HOOK_REPLACE(GetPhysicalDeviceExternalSemaphoreProperties, half_properties);
    vk_open_library(&vk, hooked);
    CHECK_STATUS(sp_vk_device_semaphore_caps(vk.sp_device, VK_SEMAPHORE_TYPE_BINARY, OPAQUE, &caps),
                 SP_OK);
    CHECK(caps.why_not != NULL);
    return caps;
}

TEST_NEEDING(H5_no_handle_to_compare_with, WITH_OPAQUE_FD)
{
    sp_vk_semaphore_caps caps = open_half(VK_EXTERNAL_SEMAPHORE_FEATURE_IMPORTABLE_BIT);
    CHECK(caps.can_import && !caps.can_export);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    const int fds[] = {eventfd(0, EFD_CLOEXEC),
                       memfd_create("test", MFD_CLOEXEC),
                       pipes[0],
                       pipes[1],
                       census_free_number() + 8,
                       -1};
    for (unsigned i = 0; i < COUNT_OF(fds); i++) {
        const sp_vk_semaphore_import_desc desc = {
            .size = sizeof(desc),
            .type = VK_SEMAPHORE_TYPE_BINARY,
            .handle_type = OPAQUE,
            .fd = fds[i],
        };
        sp_vk_semaphore *made = NULL;
        CHECK_ERROR(sp_vk_semaphore_import(vk.sp_device, &desc, &made), SP_ERROR_INVALID_HANDLE);
        CHECK(made == NULL);
    }
    CHECK_EQUAL(hook_calls(HOOK_ImportSemaphoreFdKHR), 0);
    for (unsigned i = 0; i < 4; i++)
        CHECK(close(fds[i]) == 0);
    finish();
}

TEST_NEEDING(exports_and_does_not_import, WITH_OPAQUE_FD)
{
    sp_vk_semaphore_caps caps = open_half(VK_EXTERNAL_SEMAPHORE_FEATURE_EXPORTABLE_BIT);
    CHECK(!caps.can_import && caps.can_export);
    sp_vk_semaphore *exported = make_exportable(&vk), *imported = NULL;
    int fd = export_fd(exported);
    const sp_vk_semaphore_import_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .handle_type = OPAQUE,
        .fd = fd,
        .adopt = true,
    };
    CHECK_ERROR(sp_vk_semaphore_import(vk.sp_device, &desc, &imported), SP_ERROR_NOT_SUPPORTED);
    CHECK(close(fd) == 0);
    sp_vk_semaphore_unref(exported);
    finish();
}

/* Nobody says the version: the library finds the names that the device has. */
static void check_untold(uint32_t version, bool with_create_info)
{
    vk_options with = *options;
    with.api_version = version;
    vk_open(&vk, &with);
    sp_vk_device_desc desc = vk_device_desc(&vk, NULL);
    desc.api_version = 0;
    if (!with_create_info)
        desc.create_info = NULL;
    CHECK_STATUS(sp_vk_device_create(&desc, &vk.sp_device), SP_OK);
    sp_vk_queue_desc queue = vk_queue_desc(&vk);
    sp_point point = {0};
    CHECK_STATUS(sp_vk_queue_create(vk.sp_device, &queue, &vk.sp_queue), SP_OK);
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    vk_close(&vk);
}

TEST(untold_version)
{
    const uint32_t versions[] = {VK_API_VERSION_1_1, VK_API_VERSION_1_2, VK_API_VERSION_1_3};
    for (unsigned i = 0; i < COUNT_OF(versions); i++) {
        check_untold(versions[i], true);
        check_untold(versions[i], false);
    }
}
