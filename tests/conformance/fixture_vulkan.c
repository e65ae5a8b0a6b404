/* SPDX-License-Identifier: MIT
 *
 * Vulkan semaphores on each driver.
 *
 * timeline: signalled by turns from the host and from the queue.
 *
 * binary: signalled by the library on the queue, behind a wait of the library's for a timeline that
 * the fixture signals. The host cannot look at a binary: a wait puts a device-side wait on the
 * queue, so it notices only once all that was submitted before is done, and a poll alone never does.
 *
 * late-binary: signalled by a submit of ours, which comes when the fixture signals. Until then the
 * point is not submitted, which is what it says.
 */
#include "conformance.h"
#include "doubles/hook.h"
#include "support/vk_fixture.h"

#define MAX_NUMBER 8192

static vk_context device;
static unsigned library_own; /* semaphores that are not the fixture's */

static void open_device(const void *user)
{
    vk_open(&device, user);
    vk_open_library(&device, hook_install(device.get_instance_proc_addr));
    library_own = hook_live_semaphores();
}

static void close_device(void)
{
    hook_lose_device(false);
    vk_finish(&device);
    vk_close_library(&device);
    CHECK_EQUAL(hook_calls(HOOK_QueueWaitIdle), 0);
    CHECK_EQUAL(hook_calls(HOOK_DeviceWaitIdle), 0);
    vk_close(&device);
}

static VkSemaphore lost_gate; /* what device work of the fixture still waits for */

/* Only the library's calls see the loss. A device that is really lost needs none of its semaphores
 * any more; so that the same is true here, the work ends, a little later. */
static void lose_device(void)
{
    hook_lose_device(true);
    test_sleep_ms(DELAY_MS);
    if (lost_gate != VK_NULL_HANDLE)
        vk_signal(&device, lost_gate, MAX_NUMBER);
    vk_finish(&device);
}

/* The library destroys what its own submits used at a later call, once they are done. */
static void poke(void)
{
    const sp_vk_semaphore_desc desc = {.size = sizeof(desc), .type = VK_SEMAPHORE_TYPE_BINARY};
    sp_vk_semaphore *made = NULL;
    CHECK_STATUS(sp_vk_semaphore_create(device.sp_device, &desc, &made), SP_OK);
    sp_vk_semaphore_unref(made);
}

static unsigned alive(void)
{
    return hook_live_semaphores() - (device.sp_device ? library_own : 0);
}

/* ---- timeline ---- */

static sp_vk_semaphore *timeline;
static uint64_t last_signal;

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
    if (number <= last_signal)
        return;
    last_signal = number;
    if (number % 2) {
        CHECK_STATUS(sp_vk_semaphore_signal(timeline, number), SP_OK);
    } else {
        sp_point point = {0};
        CHECK_STATUS(sp_vk_queue_signal_semaphore(device.sp_queue, timeline, number, &point),
                     SP_OK);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
    }
}

static void timeline_release(void)
{
    sp_vk_semaphore_unref(timeline);
    timeline = NULL;
}

static void timeline_teardown(void)
{
    hook_lose_device(false);
    timeline_release();
    close_device();
}

/* ---- binary ---- */

static uint64_t gates;                  /* how many there are */
static uint64_t gate_value[MAX_NUMBER]; /* what opens the gate of number k */

static sp_vk_semaphore *make_binary(void)
{
    const sp_vk_semaphore_desc desc = {.size = sizeof(desc), .type = VK_SEMAPHORE_TYPE_BINARY};
    sp_vk_semaphore *semaphore = NULL;
    CHECK_STATUS(sp_vk_semaphore_create(device.sp_device, &desc, &semaphore), SP_OK);
    return semaphore;
}

static void binary_setup(const void *user)
{
    timeline_setup(user);
    library_own++; /* the timeline of the gates */
    lost_gate = sp_vk_semaphore_handle(timeline);
}

static sp_point binary_point(uint64_t number)
{
    sp_vk_semaphore *semaphore = make_binary();
    sp_point point = {0}, gate = timeline_point(++gates);
    assert_true(number < MAX_NUMBER);
    gate_value[number] = gates;
    CHECK_STATUS(sp_vk_queue_wait(device.sp_queue, &gate), SP_OK);
    CHECK_STATUS(sp_vk_queue_signal_semaphore(device.sp_queue, semaphore, 0, &point), SP_OK);
    sp_point_unref(&gate);
    sp_vk_semaphore_unref(semaphore);
    return point;
}

static void binary_signal(uint64_t number)
{
    while (number > 0 && gate_value[number] == 0)
        number--;
    if (gate_value[number] <= last_signal)
        return;
    last_signal = gate_value[number];
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, last_signal), SP_OK);
}

static void binary_release(void) {}

static void binary_teardown(void)
{
    hook_lose_device(false);
    if (vk_counter(&device, lost_gate) < MAX_NUMBER)
        vk_signal(&device, lost_gate, MAX_NUMBER);
    vk_finish(&device);
    timeline_release();
    close_device();
}

/* ---- late-binary ---- */

static sp_point late[MAX_NUMBER];
static uint64_t late_number[MAX_NUMBER];
static unsigned late_first, late_end;

static sp_point late_point(uint64_t number)
{
    sp_vk_semaphore *semaphore = make_binary();
    sp_point point = {0};
    assert_true(late_end < MAX_NUMBER);
    CHECK_STATUS(sp_vk_binary_point(semaphore, SP_POINT_UNSUBMITTED, &point), SP_OK);
    sp_vk_semaphore_unref(semaphore);
    late_number[late_end] = number;
    late[late_end++] = sp_point_ref(&point);
    return point;
}

/* A semaphore that a submit of our own uses stays referenced until that is done. */
static void late_signal_all(uint64_t number)
{
    unsigned first = late_first;
    for (; late_first < late_end && late_number[late_first] <= number; late_first++) {
        const sp_point *point = &late[late_first];
        vk_submit(&device, &(vk_submit_info){.signal = sp_vk_semaphore_from_point(point)});
        CHECK_STATUS(sp_point_mark_submitted(point), SP_OK);
    }
    vk_finish(&device);
    for (; first < late_first; first++)
        sp_point_unref(&late[first]);
}

static void late_release(void)
{
    for (; late_first < late_end; late_first++)
        sp_point_unref(&late[late_first]);
}

static void late_teardown(void)
{
    late_release();
    close_device();
}

/* ---- All ---- */

#define COMMON                                                                                     \
    .kind = SP_KIND_VULKAN, .backend = SP_BACKEND_VULKAN, .fail_status = SP_ERROR_DEVICE_LOST,     \
    .fail_cause = SP_ERROR_DEVICE_LOST, .fail_all = lose_device, .alive = alive, .poke = poke,     \
    .calls = hook_all_calls

#define TIMELINE(options_)                                                                         \
    {                                                                                              \
        COMMON, .flags = SP_POINT_HAS_VALUE, .pending = SP_PENDING, .timed_out = SP_TIMEOUT,       \
                .mark_submitted = SP_ERROR_NOT_SUPPORTED, .user = &(options_),                     \
                .setup = timeline_setup, .point = timeline_point, .signal = timeline_signal,       \
                .release_owner = timeline_release, .teardown = timeline_teardown                   \
    }

#define BINARY(options_)                                                                           \
    {                                                                                              \
        COMMON, .flags = SP_POINT_BINARY, .pending = SP_PENDING, .timed_out = SP_TIMEOUT,          \
                .mark_submitted = SP_OK, .user = &(options_), .setup = binary_setup,               \
                .point = binary_point, .signal = binary_signal, .release_owner = binary_release,   \
                .teardown = binary_teardown                                                        \
    }

#define LATE_BINARY(options_)                                                                      \
    {                                                                                              \
        COMMON, .flags = SP_POINT_BINARY | SP_POINT_UNSUBMITTED, .pending = SP_NOT_SUBMITTED,      \
                .timed_out = SP_NOT_SUBMITTED, .mark_submitted = SP_OK, .user = &(options_),       \
                .setup = open_device, .point = late_point, .signal = late_signal_all,              \
                .release_owner = late_release, .teardown = late_teardown                           \
    }

static const vk_options lavapipe = {.driver = "lavapipe"};
static const vk_options swiftshader = {.driver = "swiftshader"};
static const vk_options lavapipe_layer = {.driver = "lavapipe", .validation = true};
static const vk_options swiftshader_layer = {.driver = "swiftshader", .validation = true};
static const vk_options nvidia = {.driver = "nvidia"};

static const fixture timelines[] = {
    TIMELINE(lavapipe),          TIMELINE(swiftshader), TIMELINE(lavapipe_layer),
    TIMELINE(swiftshader_layer), TIMELINE(nvidia),
};
static const fixture binaries[] = {
    BINARY(lavapipe),          BINARY(swiftshader), BINARY(lavapipe_layer),
    BINARY(swiftshader_layer), BINARY(nvidia),
};
static const fixture late_binaries[] = {
    LATE_BINARY(lavapipe),          LATE_BINARY(swiftshader), LATE_BINARY(lavapipe_layer),
    LATE_BINARY(swiftshader_layer), LATE_BINARY(nvidia),
};

#define TIMELINE_FEATURES (COUNTING | FAILING | COUNTED | CALLS | POLLED | INDEPENDENT)
#define BINARY_FEATURES (ONE_SHOT | FAILING | COUNTED | CALLS)
#define LATE_FEATURES (ONE_SHOT | COUNTED | CALLS | INDEPENDENT)

#define TARGETS(name, index, more)                                                                 \
    {"timeline-" name, TIMELINE_FEATURES | (more), (void *)&timelines[index]},                     \
        {"binary-" name, BINARY_FEATURES | (more), (void *)&binaries[index]},                      \
    {                                                                                              \
        "late-binary-" name, LATE_FEATURES | (more), (void *)&late_binaries[index]                 \
    }

const test_target vulkan_targets[] = {
    TARGETS("lavapipe", 0, UNLAYERED),    TARGETS("swiftshader", 1, UNLAYERED),
    TARGETS("lavapipe-validation", 2, 0), TARGETS("swiftshader-validation", 3, 0),
    TARGETS("nvidia", 4, UNLAYERED),      {NULL, 0, NULL},
};
