/* SPDX-License-Identifier: MIT
 *
 * A wait delays nobody (W1, W5), and a lost device ends every wait (W6).
 */
#include "vk_case.h"

#include <unistd.h>

/* ---- W1 ---- */

typedef struct waiting {
    worker worker;
    const sp_point *points;
    size_t count;
    flag began;
} waiting;

static void wait_long(void *user)
{
    waiting *self = user;
    flag_set(&self->began);
    if (self->count == 1)
        CHECK_STATUS(sp_wait_timeout(self->points, PATIENCE_NS), SP_OK);
    else
        CHECK_STATUS(sp_wait_many(self->points, self->count, SP_WAIT_ALL, PATIENCE_NS, NULL),
                     SP_OK);
}

/* All that a second thread may want to do on the device. */
static void be_busy(void)
{
    sp_vk_semaphore *timeline = make_timeline(0), *binary = make_binary();
    for (uint64_t i = 1; i <= 20; i++) {
        sp_point done = {0};
        CHECK_STATUS(sp_vk_semaphore_signal(timeline, 2 * i - 1), SP_OK);
        sp_point point = queue_signals(timeline, 2 * i);
        sp_point signal = queue_signals(binary, 0);
        CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &signal), SP_OK);
        CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
        CHECK_STATUS(sp_wait(&done), SP_OK);
        CHECK_STATUS(sp_poll(&point), SP_OK);
        CHECK_EQUAL(value_of(timeline), 2 * i);
        sp_point_unref(&signal);
        sp_point_unref(&point);
        sp_point_unref(&done);
    }
    sp_vk_semaphore_unref(timeline);
    sp_vk_semaphore_unref(binary);
}

static void check_undelayed(size_t points_count)
{
    start();
    sp_vk_semaphore *blocker = make_timeline(0), *other = make_timeline(0);
    sp_point points[2] = {timeline_point(blocker, 1), timeline_point(other, 1)};
    waiting first = {.points = points, .count = points_count};
    worker_start(&first.worker, 0, wait_long, &first);
    CHECK(flag_wait(&first.began));
    test_sleep_ms(DELAY_MS);
    uint64_t begin = sp_now_ns();
    be_busy();
    CHECK(sp_now_ns() - begin < PATIENCE_NS / 4);
    /* Also on the very semaphore that the other thread waits for. */
    CHECK_EQUAL(value_of(blocker), 0);
    sp_point copy = sp_point_ref(&points[0]);
    CHECK_STATUS(sp_poll(&copy), SP_PENDING);
    sp_point_unref(&copy);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &points[0]), SP_OK);
    CHECK(!worker_is_done(&first.worker)); /* it has waited all this time */
    CHECK_STATUS(sp_vk_semaphore_signal(other, 1), SP_OK);
    CHECK_STATUS(sp_vk_semaphore_signal(blocker, 1), SP_OK);
    worker_join(&first.worker);
    sp_point_unref(&points[0]);
    sp_point_unref(&points[1]);
    sp_vk_semaphore_unref(blocker);
    sp_vk_semaphore_unref(other);
    finish();
}

TEST(W1_a_wait_delays_no_other_thread)
{
    check_undelayed(1);
}
TEST(W1_a_wait_for_many_delays_no_other_thread)
{
    check_undelayed(2);
}

TEST_NEEDING(W1_export_and_import_while_another_waits, WITH_OPAQUE_FD)
{
    start();
    sp_vk_semaphore *blocker = make_timeline(0), *exported = make_exportable(&vk);
    sp_point point = timeline_point(blocker, 1);
    waiting first = {.points = &point, .count = 1};
    worker_start(&first.worker, 0, wait_long, &first);
    CHECK(flag_wait(&first.began));
    test_sleep_ms(DELAY_MS);
    for (unsigned i = 0; i < 50; i++) {
        int fd = export_fd(exported);
        sp_vk_semaphore *imported = import_fd(&vk, fd, i % 2);
        close(fd);
        sp_vk_semaphore_unref(imported);
    }
    CHECK(!worker_is_done(&first.worker));
    CHECK_STATUS(sp_vk_semaphore_signal(blocker, 1), SP_OK);
    worker_join(&first.worker);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(exported);
    sp_vk_semaphore_unref(blocker);
    finish();
}

/* A host wait on a binary blocks behind the queue's work; the rest goes on. */
TEST_NEEDING(W1_a_wait_on_a_binary_delays_no_other_thread, WITH_ASYNC_SUBMIT)
{
    start();
    vk_gate gate;
    vk_gate_init(&gate, &vk);
    vk_gate_close(&gate);
    VkSemaphore raw = vk_make_binary(&vk);
    sp_vk_semaphore *binary = wrap(raw, VK_SEMAPHORE_TYPE_BINARY, true);
    vk_submit(&vk, &(vk_submit_info){.signal = raw});
    sp_point point = binary_point(binary, 0);
    waiting first = {.points = &point, .count = 1};
    worker_start(&first.worker, 0, wait_long, &first);
    CHECK(flag_wait(&first.began));
    test_sleep_ms(10);
    sp_vk_semaphore *timeline = make_timeline(0);
    for (uint64_t i = 1; i <= 50; i++) {
        sp_point done = {0};
        CHECK_STATUS(sp_vk_semaphore_signal(timeline, i), SP_OK);
        CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
        CHECK_STATUS(sp_poll(&done), SP_PENDING);
        sp_point_unref(&done);
    }
    CHECK(!worker_is_done(&first.worker));
    vk_gate_open_all(&gate);
    worker_join(&first.worker);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(timeline);
    sp_vk_semaphore_unref(binary);
    vk_gate_fini(&gate);
    finish();
}

/* ---- W5: a double of a layer that holds a lock around the driver's wait ---- */

static pthread_mutex_t layer = PTHREAD_MUTEX_INITIALIZER;

static VKAPI_ATTR VkResult VKAPI_CALL wait_under_lock(VkDevice device,
                                                      const VkSemaphoreWaitInfo *info,
                                                      uint64_t timeout)
{
    pthread_mutex_lock(&layer);
    VkResult result = hook_real.WaitSemaphores(device, info, timeout);
    pthread_mutex_unlock(&layer);
    return result;
}

static VKAPI_ATTR VkResult VKAPI_CALL signal_under_lock(VkDevice device,
                                                        const VkSemaphoreSignalInfo *info)
{
    pthread_mutex_lock(&layer);
    VkResult result = hook_real.SignalSemaphore(device, info);
    pthread_mutex_unlock(&layer);
    return result;
}

static void check_layer(size_t count)
{
    start();
    sp_vk_semaphore *one = make_timeline(0), *two = make_timeline(0);
    HOOK_REPLACE(WaitSemaphores, wait_under_lock);
    HOOK_REPLACE(SignalSemaphore, signal_under_lock);
    for (uint64_t value = 1; value <= 5; value++) {
        sp_point points[2] = {timeline_point(one, value), timeline_point(two, value)};
        waiting first = {.points = points, .count = count};
        worker_start(&first.worker, 0, wait_long, &first);
        CHECK(flag_wait(&first.began));
        test_sleep_ms(10);
        uint64_t begin = sp_now_ns();
        CHECK_STATUS(sp_vk_semaphore_signal(one, value), SP_OK);
        CHECK_STATUS(sp_vk_semaphore_signal(two, value), SP_OK);
        worker_join(&first.worker);
        CHECK(sp_now_ns() - begin < 3000 * MS);
        sp_point_unref(&points[0]);
        sp_point_unref(&points[1]);
    }
    sp_vk_semaphore_unref(one);
    sp_vk_semaphore_unref(two);
    finish();
}

TEST(W5_a_layer_locks_around_the_wait)
{
    check_layer(1);
}
TEST(W5_a_layer_locks_around_the_wait_for_many)
{
    check_layer(2);
}

/* Slices: no single driver call blocks for long. */
static uint64_t longest;

static VKAPI_ATTR VkResult VKAPI_CALL note_timeout(VkDevice device, const VkSemaphoreWaitInfo *info,
                                                   uint64_t timeout)
{
    if (timeout > longest)
        longest = timeout;
    return hook_real.WaitSemaphores(device, info, timeout);
}

TEST(W5_waits_come_in_slices)
{
    start();
    late_host_signal late;
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point point = timeline_point(timeline, 1);
    HOOK_REPLACE(WaitSemaphores, note_timeout);
    signal_late(&late, timeline, 1);
    CHECK_STATUS(sp_wait_timeout(&point, SP_FOREVER), SP_OK);
    join_not_early(&late);
    CHECK(longest <= 100 * MS);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(timeline);
    finish();
}

/* ---- W6: an injected loss ---- */

static void expect_lost(void *user)
{
    waiting *self = user;
    flag_set(&self->began);
    if (self->count == 1)
        CHECK_ERROR(sp_wait_timeout(self->points, PATIENCE_NS), SP_ERROR_DEVICE_LOST);
    else
        CHECK_ERROR(sp_wait_many(self->points, self->count,
                                 self->count % 2 ? SP_WAIT_ALL : SP_WAIT_ANY, PATIENCE_NS, NULL),
                    SP_ERROR_DEVICE_LOST);
}

TEST(W6_ten_waiters_and_a_lost_device)
{
    start();
    waiting waiters[10];
    vk_gate gate;
    sp_vk_semaphore *timeline = make_timeline(0), *other = make_timeline(0);
    vk_gate_init(&gate, &vk);
    vk_gate_close(&gate);
    sp_point reached = timeline_point(timeline, 1), out = {0};
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_wait(&reached), SP_OK);
    sp_point points[5] = {timeline_point(timeline, 2), timeline_point(other, 1)};
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &points[2]), SP_OK);
    points[3] = timeline_point(timeline, 3);
    points[4] = timeline_point(other, 9);
    for (unsigned i = 0; i < 10; i++) {
        waiters[i] = (waiting){.points = &points[i % 3], .count = 1 + i % 3};
        worker_start(&waiters[i].worker, 0, expect_lost, &waiters[i]);
        CHECK(flag_wait(&waiters[i].began));
    }
    test_sleep_ms(DELAY_MS);
    for (unsigned i = 0; i < 10; i++)
        CHECK(!worker_is_done(&waiters[i].worker));
    hook_lose_device(true);
    for (unsigned i = 0; i < 10; i++)
        worker_join(&waiters[i].worker);
    CHECK_STATUS(sp_poll(&reached), SP_OK);
    CHECK_ERROR(sp_vk_queue_signal(vk.sp_queue, &out), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, &points[0]), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_vk_semaphore_signal(other, 1), SP_ERROR_DEVICE_LOST);
    for (unsigned i = 0; i < 5; i++) {
        CHECK_ERROR(sp_poll(&points[i]), SP_ERROR_DEVICE_LOST);
        sp_point_unref(&points[i]);
    }
    sp_point_unref(&reached);
    sp_vk_semaphore_unref(timeline);
    sp_vk_semaphore_unref(other);
    vk_gate_fini(&gate);                                      /* in truth the device is well */
    CHECK_STATUS(sp_vk_queue_destroy(vk.sp_queue, 0), SP_OK); /* does not wait */
    vk.sp_queue = NULL;
    CHECK_STATUS(sp_vk_device_destroy(vk.sp_device, 0), SP_OK);
    vk.sp_device = NULL;
    CHECK_EQUAL(hook_live_semaphores(), 0);
    finish();
}

/* The submit is the first to notice. */
TEST(W6_a_submit_notices_the_loss)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point out = {0}, pending = timeline_point(timeline, 5);
    hook_fail(HOOK_QueueSubmit2, VK_ERROR_DEVICE_LOST, 0, 1);
    CHECK_ERROR(sp_vk_queue_signal(vk.sp_queue, &out), SP_ERROR_DEVICE_LOST);
    CHECK_EQUAL(sp_last_error()->native_code, (uint64_t)(int64_t)VK_ERROR_DEVICE_LOST);
    CHECK(out.waiter == NULL);
    unsigned before = submits();
    CHECK_ERROR(sp_vk_queue_signal(vk.sp_queue, &out), SP_ERROR_DEVICE_LOST);
    CHECK_EQUAL(submits(), before);
    CHECK_ERROR(sp_wait(&pending), SP_ERROR_DEVICE_LOST);
    sp_point_unref(&pending);
    sp_vk_semaphore_unref(timeline);
    finish();
}
