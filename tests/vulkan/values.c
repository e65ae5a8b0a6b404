/* SPDX-License-Identifier: MIT
 *
 * Timeline values: V1 to V3, O5. Where a driver would have to misbehave, a double does.
 */
#include "vk_case.h"

static void refuse_host_signal(sp_vk_semaphore *timeline, uint64_t value)
{
    unsigned before = hook_calls(HOOK_SignalSemaphore);
    CHECK_ERROR(sp_vk_semaphore_signal(timeline, value), SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(hook_calls(HOOK_SignalSemaphore), before);
}

static void refuse_queue_signal(sp_vk_semaphore *timeline, uint64_t value)
{
    sp_point marked = test_marked_point(), out = marked;
    unsigned before = submits();
    CHECK_ERROR(sp_vk_queue_signal_semaphore(vk.sp_queue, timeline, value, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK(test_same_point(&out, &marked));
    CHECK_EQUAL(submits(), before);
}

/* Does the device still work? */
static void check_device_lives(void)
{
    sp_point done = {0};
    sp_vk_semaphore *timeline = make_timeline(0);
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
    CHECK_STATUS(sp_wait(&done), SP_OK);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    CHECK_EQUAL(value_of(timeline), 1);
    sp_point_unref(&done);
    sp_vk_semaphore_unref(timeline);
    vk_finish(&vk);
}

TEST(V1_not_above_the_current_value)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(10);
    const uint64_t refused[] = {1, 9, 10, UINT64_MAX};
    for (unsigned i = 0; i < COUNT_OF(refused); i++) {
        refuse_host_signal(timeline, refused[i]);
        refuse_queue_signal(timeline, refused[i]);
    }
    refuse_host_signal(timeline, 0);
    CHECK_EQUAL(value_of(timeline), 10);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 12), SP_OK);
    refuse_host_signal(timeline, 12);
    refuse_host_signal(timeline, 11);
    refuse_queue_signal(timeline, 12);
    CHECK_EQUAL(value_of(timeline), 12);
    check_device_lives();
    sp_vk_semaphore_unref(timeline);
    finish();
}

TEST(V1_not_above_a_pending_value)
{
    start();
    vk_gate gate;
    sp_vk_semaphore *timeline = make_timeline(0);
    vk_gate_init(&gate, &vk);
    vk_gate_close(&gate);
    sp_point pending = queue_signals(timeline, 5);
    const uint64_t refused[] = {1, 4, 5};
    for (unsigned i = 0; i < COUNT_OF(refused); i++) {
        refuse_host_signal(timeline, refused[i]);
        refuse_queue_signal(timeline, refused[i]);
    }
    sp_point next = queue_signals(timeline, 0);
    CHECK_EQUAL(next.value, 6);
    refuse_queue_signal(timeline, 6);
    CHECK_STATUS(sp_poll(&pending), SP_PENDING);
    vk_gate_open_all(&gate);
    CHECK_STATUS(sp_wait(&next), SP_OK);
    CHECK_STATUS(sp_poll(&pending), SP_OK);
    CHECK_EQUAL(value_of(timeline), 6);
    check_device_lives();
    sp_point_unref(&pending);
    sp_point_unref(&next);
    sp_vk_semaphore_unref(timeline);
    vk_gate_fini(&gate);
    finish();
}

/* A host signal above a pending one would make the pending one go back. Vulkan forbids it. */
TEST(V1_host_signal_beside_a_pending_queue_signal)
{
    start();
    vk_gate gate;
    sp_vk_semaphore *timeline = make_timeline(0);
    vk_gate_init(&gate, &vk);
    vk_gate_close(&gate);
    sp_point pending = queue_signals(timeline, 5);
    unsigned before = hook_calls(HOOK_SignalSemaphore);
    CHECK(sp_vk_semaphore_signal(timeline, 6) < 0);
    CHECK_EQUAL(hook_calls(HOOK_SignalSemaphore), before);
    vk_gate_open_all(&gate);
    CHECK_STATUS(sp_wait(&pending), SP_OK);
    CHECK_EQUAL(value_of(timeline), 5);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 6), SP_OK); /* now it may */
    CHECK_EQUAL(value_of(timeline), 6);
    check_device_lives();
    sp_point_unref(&pending);
    sp_vk_semaphore_unref(timeline);
    vk_gate_fini(&gate);
    finish();
}

typedef struct racer {
    worker worker;
    sp_vk_semaphore *timeline;
    bool by_queue;
    unsigned won;
} racer;

static void race(void *user)
{
    racer *self = user;
    uint64_t last = 0;
    for (uint64_t value = 1; value <= 300; value++) {
        sp_status status =
            self->by_queue ? sp_vk_queue_signal_semaphore(vk.sp_queue, self->timeline, value, NULL)
                           : sp_vk_semaphore_signal(self->timeline, value);
        CHECK(status == SP_OK || status == SP_ERROR_INVALID_ARGUMENT ||
              status == SP_ERROR_INVALID_STATE);
        self->won += status == SP_OK;
        uint64_t now = value_of(self->timeline);
        CHECK(now >= last);
        last = now;
    }
}

static void run_race(bool first_by_queue, bool second_by_queue)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(0);
    racer racers[2] = {{.timeline = timeline, .by_queue = first_by_queue},
                       {.timeline = timeline, .by_queue = second_by_queue}};
    for (unsigned i = 0; i < 2; i++)
        worker_start(&racers[i].worker, 0, race, &racers[i]);
    for (unsigned i = 0; i < 2; i++)
        worker_join(&racers[i].worker);
    vk_finish(&vk);
    CHECK(racers[0].won + racers[1].won <= 300);
    CHECK(value_of(timeline) <= 300);
    if (first_by_queue == second_by_queue)
        CHECK_EQUAL(value_of(timeline), 300);
    check_device_lives();
    sp_vk_semaphore_unref(timeline);
    finish();
}

TEST(V1_racing_host_signals)
{
    run_race(false, false);
}
TEST(V1_racing_queue_signals)
{
    run_race(true, true);
}
TEST(V1_host_races_with_queue)
{
    run_race(false, true);
}

/* ---- V2, V3: doubles ---- */

#define MAX_DIFFERENCE 1000

static VKAPI_ATTR void VKAPI_CALL small_difference(VkPhysicalDevice device,
                                                   VkPhysicalDeviceProperties2 *out)
{
    hook_real.GetPhysicalDeviceProperties2(device, out);
    for (VkBaseOutStructure *at = out->pNext; at; at = at->pNext) {
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_PROPERTIES)
            ((VkPhysicalDeviceTimelineSemaphoreProperties *)at)
                ->maxTimelineSemaphoreValueDifference = MAX_DIFFERENCE;
        if (at->sType == VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_VULKAN_1_2_PROPERTIES)
            ((VkPhysicalDeviceVulkan12Properties *)at)->maxTimelineSemaphoreValueDifference =
                MAX_DIFFERENCE;
    }
}

static void start_with_small_difference(void)
{
    vk_open(&vk, options);
    PFN_vkGetInstanceProcAddr hooked = hook_install(vk.get_instance_proc_addr);
    HOOK_REPLACE(GetPhysicalDeviceProperties2, small_difference);
    vk_open_library(&vk, hooked);
}

TEST(V2_further_than_the_maximum_difference)
{
    start_with_small_difference();
    vk_gate gate;
    sp_vk_semaphore *timeline = make_timeline(50);
    refuse_host_signal(timeline, 50 + MAX_DIFFERENCE + 1);
    refuse_queue_signal(timeline, 50 + MAX_DIFFERENCE + 1);
    refuse_host_signal(timeline, UINT64_MAX - 1);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 50 + MAX_DIFFERENCE), SP_OK);
    vk_gate_init(&gate, &vk);
    vk_gate_close(&gate);
    sp_point pending = queue_signals(timeline, 50 + MAX_DIFFERENCE + 10);
    /* Counted from the current value, which is the lowest. */
    refuse_queue_signal(timeline, 50 + 2 * MAX_DIFFERENCE + 1);
    sp_point last = queue_signals(timeline, 50 + 2 * MAX_DIFFERENCE);
    vk_gate_open_all(&gate);
    CHECK_STATUS(sp_wait(&last), SP_OK);
    CHECK_EQUAL(value_of(timeline), 50 + 2 * MAX_DIFFERENCE);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 50 + 3 * MAX_DIFFERENCE), SP_OK);
    sp_point_unref(&pending);
    sp_point_unref(&last);
    sp_vk_semaphore_unref(timeline);
    vk_gate_fini(&gate);
    finish();
}

/* A wait that the queue may not make is refused; the host may wait for anything. */
TEST(V2_waits)
{
    start_with_small_difference();
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point far_away = timeline_point(timeline, MAX_DIFFERENCE + 1);
    unsigned before = submits();
    CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, &far_away), SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(submits(), before);
    CHECK_STATUS(sp_poll(&far_away), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&far_away, MS), SP_TIMEOUT);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, MAX_DIFFERENCE), SP_OK);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &far_away), SP_OK);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, MAX_DIFFERENCE + 1), SP_OK);
    CHECK_STATUS(sp_wait(&far_away), SP_OK);
    sp_point_unref(&far_away);
    sp_vk_semaphore_unref(timeline);
    finish();
}

static uint64_t told;

static VKAPI_ATTR VkResult VKAPI_CALL tell_counter(VkDevice device, VkSemaphore semaphore,
                                                   uint64_t *value)
{
    (void)device;
    (void)semaphore;
    *value = __atomic_load_n(&told, __ATOMIC_SEQ_CST);
    return VK_SUCCESS;
}

/* Success: what a driver says of a counter that is at its end. */
static VKAPI_ATTR VkResult VKAPI_CALL wait_succeeds(VkDevice device,
                                                    const VkSemaphoreWaitInfo *info,
                                                    uint64_t timeout)
{
    (void)device;
    (void)info;
    (void)timeout;
    test_sleep_ms(1);
    return VK_SUCCESS;
}

static void tell(uint64_t value)
{
    __atomic_store_n(&told, value, __ATOMIC_SEQ_CST);
}

static void check_removed(bool while_waiting)
{
    start();
    size_t index = 9;
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point reached = timeline_point(timeline, 1), pending = timeline_point(timeline, 2);
    uint64_t value = 77;
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    tell(while_waiting ? 1 : UINT64_MAX);
    HOOK_REPLACE(GetSemaphoreCounterValue, tell_counter);
    if (while_waiting)
        CHECK_STATUS(sp_wait_timeout(&pending, MS), SP_TIMEOUT);
    HOOK_REPLACE(WaitSemaphores, wait_succeeds);
    tell(UINT64_MAX);
    if (while_waiting)
        CHECK_ERROR(sp_wait(&pending), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_poll(&pending), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_wait(&pending), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_wait_many(&pending, 1, SP_WAIT_ANY, SP_FOREVER, &index), SP_ERROR_DEVICE_LOST);
    CHECK_EQUAL(index, 0);
    CHECK_ERROR(sp_vk_semaphore_value(timeline, &value), SP_ERROR_DEVICE_LOST);
    CHECK_EQUAL(value, 77);
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    hook_replace(HOOK_GetSemaphoreCounterValue, NULL);
    hook_replace(HOOK_WaitSemaphores, NULL);
    CHECK_ERROR(sp_poll(&pending), SP_ERROR_DEVICE_LOST); /* for good */
    sp_point_unref(&pending);
    sp_point_unref(&reached);
    sp_vk_semaphore_unref(timeline);
    finish();
}

TEST(V3_counter_of_a_removed_device)
{
    check_removed(false);
}
TEST(V3_removed_while_waiting)
{
    check_removed(true);
}

/* Others signal a wrapped timeline, too: the guard looks at the counter and at our own signals. */
TEST(V1_best_effort_on_a_wrapped_timeline)
{
    start();
    VkSemaphore raw = vk_make_timeline(&vk, 0);
    sp_vk_semaphore *timeline = wrap(raw, VK_SEMAPHORE_TYPE_TIMELINE, true);
    vk_signal(&vk, raw, 7);
    const uint64_t refused[] = {1, 6, 7};
    for (unsigned i = 0; i < COUNT_OF(refused); i++) {
        refuse_host_signal(timeline, refused[i]);
        refuse_queue_signal(timeline, refused[i]);
    }
    sp_point next = queue_signals(timeline, 0);
    CHECK_EQUAL(next.value, 8);
    CHECK_STATUS(sp_wait(&next), SP_OK);
    vk_signal(&vk, raw, 20);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 21), SP_OK);
    CHECK_EQUAL(value_of(timeline), 21);
    check_device_lives();
    sp_point_unref(&next);
    sp_vk_semaphore_unref(timeline);
    finish();
}

/* On a wrapped timeline others may do wrong: one that goes back is INVALID_STATE, for good. */
TEST(V1_regression_on_a_wrapped_timeline)
{
    start();
    VkSemaphore raw = vk_make_timeline(&vk, 0);
    sp_vk_semaphore *timeline = wrap(raw, VK_SEMAPHORE_TYPE_TIMELINE, true);
    sp_point five = timeline_point(timeline, 5), nine = timeline_point(timeline, 9);
    tell(7);
    HOOK_REPLACE(GetSemaphoreCounterValue, tell_counter);
    CHECK_STATUS(sp_poll(&five), SP_OK);
    CHECK_STATUS(sp_poll(&nine), SP_PENDING);
    tell(3);
    CHECK_ERROR(sp_poll(&nine), SP_ERROR_INVALID_STATE);
    tell(9);
    CHECK_ERROR(sp_poll(&nine), SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_poll(&five), SP_OK);
    hook_replace(HOOK_GetSemaphoreCounterValue, NULL);
    sp_point_unref(&five);
    sp_point_unref(&nine);
    sp_vk_semaphore_unref(timeline);
    hook_heal();
    vk_close_library(&vk);
    vk_close(&vk);
}

/* ---- O5 ---- */

static uint64_t last_value;
static unsigned out_of_order;
static VkSemaphore watched;

static void check_order(const hook_batch *batch)
{
    for (unsigned i = 0; i < batch->signal_count; i++) {
        if (batch->signals[i].semaphore != watched || batch->result != VK_SUCCESS)
            continue;
        if (batch->signals[i].value != last_value + 1)
            out_of_order++;
        last_value = batch->signals[i].value;
    }
}

#define MINTS 400

typedef struct minter {
    worker worker;
    sp_vk_semaphore *timeline;
    unsigned made;
    unsigned failed;
} minter;

static void mint(void *user)
{
    minter *self = user;
    uint64_t last = 0;
    for (unsigned i = 0; i < MINTS; i++) {
        sp_point point = {0};
        sp_status status = sp_vk_queue_signal_semaphore(vk.sp_queue, self->timeline, 0, &point);
        if (status == SP_OK) {
            CHECK(point.value > last);
            last = point.value;
            self->made++;
        } else {
            CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
            CHECK(point.waiter == NULL);
            self->failed++;
        }
        sp_point_unref(&point);
    }
}

/* Every third submit or so fails; its value is the next one's. */
static void fail_some(void *user)
{
    const flag *stop = user;
    while (!flag_is_set(stop))
        hook_fail(HOOK_QueueSubmit2, VK_ERROR_OUT_OF_HOST_MEMORY, 2, 1);
}

static void run_mint(bool failing)
{
    start();
    worker failer;
    flag stop = {0};
    sp_vk_semaphore *timeline = make_timeline(0);
    minter minters[2] = {{.timeline = timeline}, {.timeline = timeline}};
    watched = sp_vk_semaphore_handle(timeline);
    hook_watch_submits(check_order);
    if (failing)
        worker_start(&failer, 0, fail_some, &stop);
    for (unsigned i = 0; i < 2; i++)
        worker_start(&minters[i].worker, 0, mint, &minters[i]);
    for (unsigned i = 0; i < 2; i++)
        worker_join(&minters[i].worker);
    flag_set(&stop);
    if (failing)
        worker_join(&failer);
    hook_heal();
    vk_finish(&vk);
    unsigned made = minters[0].made + minters[1].made;
    CHECK_EQUAL(made + minters[0].failed + minters[1].failed, 2 * MINTS);
    CHECK_EQUAL(out_of_order, 0);
    CHECK_EQUAL(value_of(timeline), made);
    CHECK(failing || made == 2 * MINTS);
    sp_vk_semaphore_unref(timeline);
    finish();
}

TEST(O5_two_threads_mint_in_order)
{
    run_mint(false);
}
TEST(O5_failed_submits_give_their_value_back)
{
    run_mint(true);
}

TEST(O5_failed_submit_changes_nothing)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point marked = test_marked_point(), out = marked;
    hook_fail(HOOK_QueueSubmit2, VK_ERROR_OUT_OF_DEVICE_MEMORY, 0, 1);
    CHECK_ERROR(sp_vk_queue_signal_semaphore(vk.sp_queue, timeline, 8, &out),
                SP_ERROR_OUT_OF_MEMORY);
    CHECK(test_same_point(&out, &marked));
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 3), SP_OK); /* 8 is not minted */
    sp_point point = queue_signals(timeline, 0);
    CHECK_EQUAL(point.value, 4);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    hook_fail(HOOK_SignalSemaphore, VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
    CHECK_ERROR(sp_vk_semaphore_signal(timeline, 6), SP_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 6), SP_OK);
    CHECK_EQUAL(value_of(timeline), 6);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(timeline);
    finish();
}
