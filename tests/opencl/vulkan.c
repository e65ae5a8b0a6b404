/* SPDX-License-Identifier: MIT
 *
 * OpenCL and Vulkan on one GPU: binary semaphores cross as opaque fds, both ways. H1, H5.
 */
#include "cl_case.h"
#include "support/vk_fixture.h"

#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define OPAQUE VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT

static vk_context vk;
static sp_vk_semaphore *exported;
static sp_cl_semaphore *imported;

static sp_vk_semaphore *make_exportable(VkSemaphoreType type)
{
    const sp_vk_semaphore_desc desc = {.size = sizeof(desc), .type = type, .export_types = OPAQUE};
    sp_vk_semaphore *made = NULL;
    CHECK_STATUS(sp_vk_semaphore_create(vk.sp_device, &desc, &made), SP_OK);
    return made;
}

static int export_fd(void)
{
    int fd = -1;
    CHECK_STATUS(sp_vk_semaphore_export(exported, OPAQUE, &fd), SP_OK);
    return fd;
}

static sp_cl_semaphore *import_fd(int fd)
{
    const sp_cl_semaphore_import_desc desc = {.size = sizeof(desc), .fd = fd};
    sp_cl_semaphore *made = NULL;
    CHECK_STATUS(sp_cl_semaphore_import(cl.sp, &desc, &made), SP_OK);
    CHECK(census_is_open(fd));
    return made;
}

/* Both APIs, and a semaphore that both have. */
static void start_both(void)
{
    static const vk_options vulkan = {.driver = "nvidia"};
    vk_open(&vk, &vulkan);
    vk_open_library(&vk, NULL);
    start();
    exported = make_exportable(VK_SEMAPHORE_TYPE_BINARY);
    int fd = export_fd();
    imported = import_fd(fd);
    close(fd);
}

static void finish_both(void)
{
    sp_cl_semaphore_unref(imported);
    finish();
    sp_vk_semaphore_unref(exported);
    vk_close(&vk);
}

static void vulkan_signals(void)
{
    CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, exported, 0, NULL), SP_OK);
}

TEST_NEEDING(one_device_has_one_number, WITH_VULKAN)
{
    start_both();
    VkPhysicalDeviceIDProperties ids = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES};
    VkPhysicalDeviceProperties2 properties = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
        .pNext = &ids,
    };
    PFN_vkGetPhysicalDeviceProperties2 get =
        (PFN_vkGetPhysicalDeviceProperties2)vk.get_instance_proc_addr(
            vk.instance, "vkGetPhysicalDeviceProperties2");
    get(vk.physical_device, &properties);
    sp_cl_caps caps = {.size = sizeof(caps)};
    CHECK_STATUS(sp_cl_context_caps(cl.sp, &caps), SP_OK);
    CHECK(caps.has_uuid);
    /* NVIDIA's two drivers do not agree on their own number. */
    CHECK(memcmp(caps.device_uuid, ids.deviceUUID, VK_UUID_SIZE) == 0);
    finish_both();
}

typedef struct filling {
    worker worker;
    sp_point ready;
    cl_mem target;
} filling;

/* On a thread of its own: while the wait is pending, this driver holds up calls on its context. */
static void fill_behind(void *user)
{
    filling *self = user;
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.queue, &self->ready), SP_OK);
    cl_event fill = cl_fill(cl.queue, self->target, 4711, NULL);
    CHECK(cl.raw.Finish(cl.queue) == CL_SUCCESS);
    CHECK(cl.raw.ReleaseEvent(fill) == CL_SUCCESS);
}

/* Withheld first, then let through. */
TEST_NEEDING(O3_vulkan_gates_an_opencl_copy, WITH_VULKAN)
{
    start_both();
    vk_gate gate;
    vk_gate_init(&gate, &vk);
    filling self = {.target = cl_make_buffer()};
    CHECK_CL(cl.raw.Finish(cl.queue));
    vk_gate_close(&gate);
    vulkan_signals();
    self.ready = binary_point(imported, 0);
    worker_start(&self.worker, 0, fill_behind, &self);
    test_sleep_ms(DELAY_MS);
    CHECK(!worker_is_done(&self.worker));
    vk_gate_open_all(&gate);
    worker_join(&self.worker);
    CHECK(cl_arrives(self.target, 4711));
    sp_point_unref(&self.ready);
    CHECK_CL(cl.raw.ReleaseMemObject(self.target));
    vk_gate_fini(&gate);
    finish_both();
}

/* Its signal comes after a delay: it cannot be gated by a user event here. */
TEST_NEEDING(O3_opencl_gates_a_vulkan_copy, WITH_VULKAN)
{
    start_both();
    vk_copy copy;
    vk_copy_init(&copy, &vk);
    sp_point ready = {0};
    CHECK_STATUS(sp_vk_binary_point(exported, 0, &ready), SP_OK);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &ready), SP_OK);
    vk_copy_submit(&copy);
    CHECK(vk_copy_stays_unwritten(&copy));
    vk_copy_produce(&copy, 99);
    CHECK_STATUS(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, imported, NULL), SP_OK);
    CHECK(vk_copy_arrives(&copy, 99));
    CHECK_STATUS(sp_wait(&ready), SP_OK);
    sp_point_unref(&ready);
    vk_copy_fini(&copy);
    finish_both();
}

TEST_NEEDING(host_waits_for_vulkan, WITH_VULKAN)
{
    start_both();
    vk_gate gate;
    vk_gate_init(&gate, &vk);
    vk_gate_close(&gate);
    vulkan_signals();
    sp_point point = binary_point(imported, 0);
    CHECK_STATUS(sp_wait_timeout(&point, DELAY_MS * MS), SP_TIMEOUT);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    vk_gate_open_all(&gate);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueWaitSemaphoresKHR), 1);
    sp_point_unref(&point);
    vk_gate_fini(&gate);
    finish_both();
}

TEST_NEEDING(one_semaphore_goes_back_and_forth, WITH_VULKAN)
{
    start_both();
    for (unsigned round = 0; round < 100; round++) {
        vulkan_signals();
        sp_point there = binary_point(imported, 0), back = {0};
        CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.queue, &there), SP_OK);
        /* Else Vulkan's own wait could take the signal that it sent. */
        CHECK_STATUS(sp_wait(&there), SP_OK);
        CHECK_STATUS(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, imported, NULL), SP_OK);
        CHECK_STATUS(sp_vk_binary_point(exported, 0, &back), SP_OK);
        CHECK_STATUS(sp_wait(&back), SP_OK);
        sp_point_unref(&there);
        sp_point_unref(&back);
    }
    finish_both();
}

TEST_NEEDING(H1_imports_leave_no_handles, WITH_VULKAN)
{
    start_both();
    int fd = export_fd();
    unsigned before = census_open_handles();
    for (unsigned i = 0; i < 1000; i++)
        sp_cl_semaphore_unref(import_fd(fd));
    CHECK_HANDLES(before);
    cl_hook_fail(CL_HOOK_CreateSemaphoreWithPropertiesKHR, CL_OUT_OF_RESOURCES, 0, 1000);
    for (unsigned i = 0; i < 1000; i++) {
        const sp_cl_semaphore_import_desc desc = {.size = sizeof(desc), .fd = fd};
        sp_cl_semaphore *made = NULL;
        CHECK_ERROR(sp_cl_semaphore_import(cl.sp, &desc, &made), SP_ERROR_OUT_OF_MEMORY);
    }
    CHECK_HANDLES(before);
    close(fd);
    finish_both();
}

TEST_NEEDING(H5_bad_handles_leave_the_device_unharmed, WITH_VULKAN)
{
    start_both();
    int event = eventfd(0, EFD_CLOEXEC);
    const int bad[] = {event, census_free_number(), -2, INT32_MAX};
    for (unsigned i = 0; i < COUNT_OF(bad); i++) {
        const sp_cl_semaphore_import_desc desc = {.size = sizeof(desc), .fd = bad[i]};
        sp_cl_semaphore *made = NULL;
        CHECK_ERROR(sp_cl_semaphore_import(cl.sp, &desc, &made), SP_ERROR_INVALID_HANDLE);
    }
    close(event);
    sp_vk_semaphore *timeline = make_exportable(VK_SEMAPHORE_TYPE_TIMELINE);
    sp_vk_semaphore_unref(timeline);
    finish_both();
}
