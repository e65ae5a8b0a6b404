/* SPDX-License-Identifier: MIT
 *
 * Vulkan semaphores on each driver. A timeline is signalled by turns from the host and from the
 * queue. A binary is signalled by the queue, behind a gate that the fixture opens.
 */
#include "conformance.h"
#include "doubles/hook.h"
#include "support/vk_fixture.h"

static vk_context device;
static sp_vk_semaphore *timeline;
static vk_gate gate; /* binary */
static uint64_t gate_value[8192]; /* binary: what opens the gate of number k */
static unsigned library_own;      /* semaphores that are not the fixture's */

static void open_device(const void *user)
{
    vk_open(&device, user);
    vk_open_library(&device, hook_install(device.get_instance_proc_addr));
    library_own = hook_live_semaphores();
}

/* ---- Timeline ---- */

static void timeline_setup(const void *user)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_TIMELINE,
    };
    open_device(user);
    CHECK_STATUS(sp_vk_semaphore_create(device.sp_device, &desc, &timeline), SP_OK);
}

static sp_point timeline_point(uint64_t number)
{
    sp_point point = {0};
    CHECK_STATUS(sp_vk_timeline_point(timeline, number, &point), SP_OK);
    return point;
}

/* The queue's signal is waited for: a host signal beside a pending one would be our own mistake. */
static void timeline_signal(uint64_t number)
{
    if (number % 2) {
        CHECK_STATUS(sp_vk_semaphore_signal(timeline, number), SP_OK);
    } else {
        sp_point point = {0};
        CHECK_STATUS(
            sp_vk_queue_signal_semaphore(device.sp_queue, timeline, number, &point), SP_OK);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
    }
}

static void timeline_release(void)
{
    sp_vk_semaphore_unref(timeline);
    timeline = NULL;
}

/* ---- Binary ---- */

static void binary_setup(const void *user)
{
    open_device(user);
    vk_gate_init(&gate, &device);
}

static sp_point binary_point(uint64_t number)
{
    const sp_vk_semaphore_desc desc = {.size = sizeof(desc), .type = VK_SEMAPHORE_TYPE_BINARY};
    sp_vk_semaphore *semaphore = NULL;
    sp_point point = {0};
    assert_true(number < COUNT_OF(gate_value));
    gate_value[number] = vk_gate_close(&gate);
    CHECK_STATUS(sp_vk_semaphore_create(device.sp_device, &desc, &semaphore), SP_OK);
    CHECK_STATUS(sp_vk_queue_signal_semaphore(device.sp_queue, semaphore, 0, &point), SP_OK);
    sp_vk_semaphore_unref(semaphore);
    return point;
}

static void binary_signal(uint64_t number)
{
    while (number > 0 && gate_value[number] == 0)
        number--;
    vk_gate_open(&gate, gate_value[number]);
}

static void binary_release(void) {}

/* ---- Both ---- */

static void fail_all(void) { hook_lose_device(true); }

static void close_device(void)
{
    hook_lose_device(false);
    timeline_release();
    vk_finish(&device);
    vk_close_library(&device);
    CHECK_EQUAL(hook_calls(HOOK_QueueWaitIdle), 0);
    CHECK_EQUAL(hook_calls(HOOK_DeviceWaitIdle), 0);
    vk_close(&device);
}

static void binary_teardown(void)
{
    hook_lose_device(false);
    vk_gate_fini(&gate);
    close_device();
}

static unsigned alive(void)
{
    return hook_live_semaphores() - (device.sp_device ? library_own : 0);
}

#define COMMON                                                                                     \
    .kind = SP_KIND_VULKAN, .backend = SP_BACKEND_VULKAN, .fail_status = SP_ERROR_DEVICE_LOST,     \
    .fail_cause = SP_ERROR_DEVICE_LOST, .fail_all = fail_all, .alive = alive, .calls = hook_all_calls

#define TIMELINE(options_)                                                                         \
    {                                                                                              \
        COMMON, .flags = SP_POINT_HAS_VALUE, .mark_submitted = SP_ERROR_NOT_SUPPORTED,             \
                .user = &(options_), .setup = timeline_setup, .point = timeline_point,             \
                .signal = timeline_signal, .release_owner = timeline_release,                      \
                .teardown = close_device                                                           \
    }

#define BINARY(options_)                                                                           \
    {                                                                                              \
        COMMON, .flags = SP_POINT_BINARY, .mark_submitted = SP_OK, .user = &(options_),            \
                .setup = binary_setup, .point = binary_point, .signal = binary_signal,             \
                .release_owner = binary_release, .teardown = binary_teardown                       \
    }

static const vk_options lavapipe = {.driver = "lavapipe"};
static const vk_options swiftshader = {.driver = "swiftshader"};
static const vk_options lavapipe_layer = {.driver = "lavapipe", .validation = true};
static const vk_options swiftshader_layer = {.driver = "swiftshader", .validation = true};

static const fixture fixtures[] = {
    TIMELINE(lavapipe),       BINARY(lavapipe),       TIMELINE(swiftshader),
    BINARY(swiftshader),      TIMELINE(lavapipe_layer), BINARY(lavapipe_layer),
    TIMELINE(swiftshader_layer), BINARY(swiftshader_layer),
};

#define TIMELINE_FEATURES (COUNTING | FAILING | COUNTED | CALLS)
#define BINARY_FEATURES (ONE_SHOT | FAILING | COUNTED | CALLS)

const test_target vulkan_targets[] = {
    {"timeline-lavapipe", TIMELINE_FEATURES, (void *)&fixtures[0]},
    {"binary-lavapipe", BINARY_FEATURES, (void *)&fixtures[1]},
    {"timeline-swiftshader", TIMELINE_FEATURES, (void *)&fixtures[2]},
    {"binary-swiftshader", BINARY_FEATURES, (void *)&fixtures[3]},
    {"timeline-lavapipe-validation", TIMELINE_FEATURES, (void *)&fixtures[4]},
    {"binary-lavapipe-validation", BINARY_FEATURES, (void *)&fixtures[5]},
    {"timeline-swiftshader-validation", TIMELINE_FEATURES, (void *)&fixtures[6]},
    {"binary-swiftshader-validation", BINARY_FEATURES, (void *)&fixtures[7]},
    {NULL, 0, NULL},
};
