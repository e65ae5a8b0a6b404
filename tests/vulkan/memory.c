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

/* No semaphore of the driver's is left behind either. */
static void refuse_each(sp_status (*attempt)(void), void (*release)(void))
{
    unsigned live = hook_live_semaphores();
    malloc_double_refuse_each(attempt, release);
    CHECK_EQUAL(hook_live_semaphores(), live);
}

static sp_vk_device *made_device;
static sp_vk_device_desc device_desc;

static sp_status make_device(void)
{
    return sp_vk_device_create(&device_desc, &made_device);
}

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

static void unref_semaphore(void)
{
    sp_vk_semaphore_unref(made);
}

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
        sp_status status = sp_vk_queue_signal_semaphore(vk.sp_queue, binaries[i], 0, &points[i]);
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

/* More points than a small array holds. */
enum { LINKS = 60 };
static sp_vk_semaphore *timelines[LINKS];
static sp_point links[LINKS], chain;

static sp_status queue_waits(void)
{
    return sp_vk_queue_wait(vk.sp_queue, &chain);
}
static sp_status host_waits(void)
{
    sp_status status = sp_wait_many(links, LINKS, SP_WAIT_ALL, 2 * MS, NULL);
    return status == SP_TIMEOUT ? SP_OK : status;
}
static void nothing(void) {}

TEST(no_memory_for_many_waits)
{
    start();
    malloc_double_init();
    for (unsigned i = 0; i < LINKS; i++) {
        sp_point longer = {0};
        timelines[i] = make_timeline(0);
        links[i] = timeline_point(timelines[i], 1);
        CHECK_STATUS(sp_chain(&chain, &links[i], &longer), SP_OK);
        sp_point_unref(&chain);
        chain = longer;
    }
    refuse_each(host_waits, nothing);
    refuse_each(queue_waits, nothing);
    for (unsigned i = 0; i < LINKS; i++) {
        CHECK_STATUS(sp_vk_semaphore_signal(timelines[i], 1), SP_OK);
        sp_point_unref(&links[i]);
        sp_vk_semaphore_unref(timelines[i]);
    }
    sp_point_unref(&chain);
    finish();
    CHECK_EQUAL(malloc_double_held(), 0);
}
