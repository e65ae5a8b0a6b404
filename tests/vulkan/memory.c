/* SPDX-License-Identifier: MIT
 *
 * Vulkan: what asks for memory, what does not, and what happens when there is none. Only the
 * library's own requests are counted and refused, not the driver's.
 */
#include "support/malloc_double.h"
#include "vk_case.h"

#include <unistd.h>

TEST(points_and_submits_need_no_memory)
{
    start();
    malloc_double_init();
    sp_point done = {0}, point = {0}, signal = {0};
    sp_vk_semaphore *timeline = make_timeline(0), *binary = make_binary();
    for (unsigned round = 0; round < 3; round++) { /* the first may fill a pool */
        unsigned before = malloc_double_calls();
        CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
        CHECK_STATUS(sp_vk_timeline_point(timeline, round + 1, &point), SP_OK);
        CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, binary, 0, &signal), SP_OK);
        CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &signal), SP_OK);
        CHECK_STATUS(sp_poll(&point), SP_PENDING);
        CHECK_STATUS(sp_vk_semaphore_signal(timeline, round + 1), SP_OK);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        CHECK_STATUS(sp_wait(&done), SP_OK);
        CHECK_STATUS(sp_wait(&signal), SP_OK);
        sp_point copy = sp_point_ref(&point);
        sp_point_unref(&copy);
        sp_point_unref(&point);
        sp_point_unref(&done);
        sp_point_unref(&signal);
        if (round > 0)
            CHECK_EQUAL(malloc_double_calls(), before);
    }
    sp_vk_semaphore_unref(timeline);
    sp_vk_semaphore_unref(binary);
    finish();
    CHECK(malloc_double_calls() > 0);
}

/* attempt() with the n-th request refused, for each n until none is; release() after a success. */
static void refuse_each(sp_status (*attempt)(void), void (*release)(void))
{
    long held = malloc_double_held();
    unsigned live = hook_live_semaphores(), open = census_open_handles();
    for (unsigned n = 0;; n++) {
        malloc_double_fail(n);
        sp_status status = attempt();
        bool failed = malloc_double_failed();
        if (status == SP_OK)
            release();
        CHECK_EQUAL(malloc_double_held(), held);
        CHECK_EQUAL(hook_live_semaphores(), live);
        CHECK_HANDLES(open);
        if (!failed) {
            CHECK_STATUS(status, SP_OK);
            CHECK(n > 0);
            return;
        }
        CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(sp_last_error()->status, SP_ERROR_OUT_OF_MEMORY);
    }
}

static sp_vk_device *made_device;
static sp_vk_device_desc device_desc;

static sp_status make_device(void) { return sp_vk_device_create(&device_desc, &made_device); }

static void destroy_device(void)
{
    CHECK_STATUS(sp_vk_device_destroy(made_device, PATIENCE_NS), SP_OK);
}

TEST(no_memory_for_a_device)
{
    start();
    malloc_double_init();
    PFN_vkGetInstanceProcAddr hooked = hook_install(vk.get_instance_proc_addr);
    device_desc = vk_device_desc(&vk, hooked);
    refuse_each(make_device, destroy_device);
    vk_close(&vk);
}

static sp_vk_queue *made_queue;

static sp_status make_queue(void)
{
    sp_vk_queue_desc desc = vk_queue_desc(&vk);
    return sp_vk_queue_create(vk.sp_device, &desc, &made_queue);
}

static void destroy_queue(void)
{
    CHECK_STATUS(sp_vk_queue_destroy(made_queue, PATIENCE_NS), SP_OK);
}

TEST(no_memory_for_a_queue)
{
    start();
    malloc_double_init();
    refuse_each(make_queue, destroy_queue);
    finish();
}

static sp_vk_semaphore *made;
static VkSemaphore raw;
static int good_fd;
static VkSemaphoreType made_type;

static sp_status make_semaphore(void)
{
    const sp_vk_semaphore_desc desc = {.size = sizeof(desc), .type = made_type};
    return sp_vk_semaphore_create(vk.sp_device, &desc, &made);
}

static sp_status wrap_semaphore(void)
{
    const sp_vk_semaphore_wrap_desc desc = {
        .size = sizeof(desc),
        .semaphore = raw,
        .type = VK_SEMAPHORE_TYPE_BINARY,
    };
    return sp_vk_semaphore_wrap(vk.sp_device, &desc, &made);
}

static sp_status import_semaphore(void)
{
    const sp_vk_semaphore_import_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .handle_type = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
        .fd = good_fd,
    };
    return sp_vk_semaphore_import(vk.sp_device, &desc, &made);
}

static void unref_semaphore(void) { sp_vk_semaphore_unref(made); }

TEST(no_memory_for_a_semaphore)
{
    start();
    malloc_double_init();
    raw = vk_make_binary(&vk);
    made_type = VK_SEMAPHORE_TYPE_TIMELINE;
    refuse_each(make_semaphore, unref_semaphore);
    made_type = VK_SEMAPHORE_TYPE_BINARY;
    refuse_each(make_semaphore, unref_semaphore);
    refuse_each(wrap_semaphore, unref_semaphore);
    vk_destroy_semaphore(&vk, raw);
    finish();
}

TEST_NEEDING(no_memory_for_an_import, WITH_OPAQUE_FD)
{
    start();
    malloc_double_init();
    sp_vk_semaphore *exported = make_exportable(&vk);
    good_fd = export_fd(exported);
    CHECK_STATUS(import_semaphore(), SP_OK); /* what is asked of the driver once */
    unref_semaphore();
    refuse_each(import_semaphore, unref_semaphore);
    close(good_fd);
    sp_vk_semaphore_unref(exported);
    finish();
}

/* A binary's points come from the device's pool, which grows. */
TEST(no_memory_for_a_binary_point)
{
    enum { COUNT = 200 };
    start();
    malloc_double_init();
    sp_vk_semaphore *binaries[COUNT];
    sp_point points[COUNT] = {{0}};
    unsigned refused = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        binaries[i] = make_binary();
        unsigned before = submits();
        malloc_double_fail(0);
        sp_status status =
            sp_vk_queue_signal_semaphore(vk.sp_queue, binaries[i], 0, &points[i]);
        bool failed = malloc_double_failed();
        CHECK_STATUS(status, failed ? SP_ERROR_OUT_OF_MEMORY : SP_OK);
        CHECK_EQUAL(submits(), before + !failed);
        refused += failed;
        if (failed)
            points[i] = queue_signals(binaries[i], 0);
    }
    CHECK(refused > 0);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &points[i]), SP_OK);
        sp_point_unref(&points[i]);
        sp_vk_semaphore_unref(binaries[i]);
    }
    finish();
    CHECK_EQUAL(malloc_double_held(), 0);
}
