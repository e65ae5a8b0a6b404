/* SPDX-License-Identifier: MIT
 *
 * The queue's lock: once around each of our queue calls, never nested, with no lock of ours held.
 */
#include "vk_case.h"

static unsigned unlocked_submits;

static void check_lock_is_held(const hook_batch *batch)
{
    (void)batch;
    if (vk_locks_held() != 1)
        __atomic_fetch_add(&unlocked_submits, 1, __ATOMIC_SEQ_CST);
}

static void check_counts(unsigned locks_before, unsigned submits_before, const char *what)
{
    unsigned locks = vk.lock.by_library - locks_before, calls = submits() - submits_before;
    if (locks != calls)
        print_error("%s: %u locks, %u queue calls\n", what, locks, calls);
    CHECK_EQUAL(locks, calls);
    CHECK_EQUAL(unlocked_submits, 0);
}

#define COUNTED_CALL(call, expected)                                                               \
    do {                                                                                           \
        unsigned locks_ = vk.lock.by_library, submits_ = submits();                                \
        CHECK_STATUS(call, expected);                                                              \
        check_counts(locks_, submits_, #call);                                                     \
    } while (0)

TEST(O4_once_around_each_queue_call)
{
    start();
    sp_point points[4] = {{0}};
    hook_watch_submits(check_lock_is_held);
    sp_vk_semaphore *timeline = make_timeline(0), *binary = make_binary();
    COUNTED_CALL(sp_vk_queue_signal(vk.sp_queue, &points[0]), SP_OK);
    COUNTED_CALL(sp_vk_queue_signal_semaphore(vk.sp_queue, timeline, 0, NULL), SP_OK);
    COUNTED_CALL(sp_vk_queue_signal_semaphore(vk.sp_queue, timeline, 9, NULL), SP_OK);
    COUNTED_CALL(sp_vk_queue_signal_semaphore(vk.sp_queue, binary, 0, &points[2]), SP_OK);
    COUNTED_CALL(sp_vk_queue_wait(vk.sp_queue, &points[2]), SP_OK);
    points[3] = timeline_point(timeline, 10);
    COUNTED_CALL(sp_vk_queue_wait(vk.sp_queue, &points[3]), SP_OK);
    CHECK_STATUS(sp_point_at(&points[3], 9, &points[1]), SP_OK);
    COUNTED_CALL(sp_wait(&points[1]), SP_OK);
    COUNTED_CALL(sp_vk_semaphore_signal(timeline, 10), SP_OK);
    for (unsigned i = 0; i < 4; i++) {
        COUNTED_CALL(sp_wait(&points[i]), SP_OK);
        COUNTED_CALL(sp_poll(&points[i]), SP_OK);
        sp_point_unref(&points[i]);
    }
    sp_vk_semaphore_unref(timeline);
    sp_vk_semaphore_unref(binary);
    COUNTED_CALL(sp_vk_queue_destroy(vk.sp_queue, PATIENCE_NS), SP_OK);
    vk.sp_queue = NULL;
    finish();
}

/* A host wait on somebody else's binary is a submit to the first queue. */
TEST(O4_host_wait_on_a_wrapped_binary)
{
    start();
    hook_watch_submits(check_lock_is_held);
    VkSemaphore raw = vk_make_binary(&vk);
    sp_vk_semaphore *binary = wrap(raw, VK_SEMAPHORE_TYPE_BINARY, true);
    vk_submit(&vk, &(vk_submit_info){.signal = raw});
    sp_point point = binary_point(binary, 0);
    unsigned before = submits();
    COUNTED_CALL(sp_poll(&point), SP_PENDING); /* it has nothing to look at */
    CHECK_EQUAL(submits(), before);
    COUNTED_CALL(sp_wait(&point), SP_OK);
    CHECK_EQUAL(submits(), before + 1);
    COUNTED_CALL(sp_wait(&point), SP_OK);
    CHECK_EQUAL(submits(), before + 1);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    finish();
}

/* ---- The callback may call us ---- */

typedef struct inside {
    sp_vk_semaphore *timeline;
    sp_vk_semaphore *other;
    sp_point point;
    unsigned calls;
} inside;

static void call_the_library(void *user)
{
    inside *self = user;
    uint64_t value;
    sp_point copy = {0};
    self->calls++;
    CHECK_STATUS(sp_vk_semaphore_value(self->timeline, &value), SP_OK);
    CHECK(sp_poll(&self->point) >= 0);
    CHECK_STATUS(sp_vk_timeline_point(self->timeline, 1000, &copy), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&copy, 1000), SP_TIMEOUT);
    sp_point_unref(&copy);
    CHECK_STATUS(sp_vk_semaphore_signal(self->other, self->calls), SP_OK);
    sp_vk_semaphore *made = make_timeline(0);
    sp_vk_semaphore_unref(made);
}

TEST(callback_may_call_the_library)
{
    start();
    inside self = {.timeline = make_timeline(0), .other = make_timeline(0)};
    sp_vk_semaphore *binary = make_binary();
    sp_point done = {0};
    self.point = timeline_point(self.timeline, 3);
    vk.lock.inside = call_the_library;
    vk.lock.user = &self;
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
    CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, self.timeline, 0, NULL), SP_OK);
    CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, self.timeline, 2, NULL), SP_OK);
    sp_point signal = queue_signals(binary, 0);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &self.point), SP_OK);
    CHECK_STATUS(sp_wait(&done), SP_OK);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &signal), SP_OK);
    CHECK(self.calls >= 6);
    vk.lock.inside = NULL;
    CHECK_STATUS(sp_wait_timeout(&self.point, MS), SP_TIMEOUT);
    sp_point two = timeline_point(self.timeline, 2);
    CHECK_STATUS(sp_wait(&two), SP_OK);
    sp_point_unref(&two);
    CHECK_EQUAL(value_of(self.timeline), 2);
    CHECK_STATUS(sp_vk_semaphore_signal(self.timeline, 3), SP_OK);
    sp_point_unref(&signal);
    sp_point_unref(&self.point);
    sp_point_unref(&done);
    sp_vk_semaphore_unref(binary);
    sp_vk_semaphore_unref(self.timeline);
    sp_vk_semaphore_unref(self.other);
    finish();
}

/* While a callback waits for the user's lock, nothing else of the library stands still (W1). */
static flag in_callback, leave;

static void stay_inside(void *unused)
{
    (void)unused;
    flag_set(&in_callback);
    CHECK(flag_wait(&leave));
}

static void submit_one(void *user)
{
    CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, user, 0, NULL), SP_OK);
}

TEST(W1_a_held_queue_lock_delays_nobody_else)
{
    start();
    worker submitter;
    sp_vk_semaphore *timeline = make_timeline(0), *other = make_timeline(0);
    sp_point point = timeline_point(timeline, 1);
    vk.lock.inside = stay_inside;
    worker_start(&submitter, 0, submit_one, timeline);
    CHECK(flag_wait(&in_callback));
    CHECK_STATUS(sp_vk_semaphore_signal(other, 1), SP_OK);
    CHECK_EQUAL(value_of(other), 1);
    CHECK_EQUAL(value_of(timeline), 0);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    sp_point copy = sp_point_ref(&point);
    sp_point_unref(&copy);
    sp_vk_semaphore *made = make_binary();
    sp_vk_semaphore_unref(made);
    CHECK(!worker_is_done(&submitter));
    flag_set(&leave);
    worker_join(&submitter);
    vk.lock.inside = NULL;
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(timeline);
    sp_vk_semaphore_unref(other);
    finish();
}

/* ---- O4: the queue is the user's as well ---- */

#define ROUNDS 200

static void user_submits(void *user)
{
    VkSemaphore raw = *(VkSemaphore *)user;
    for (uint64_t i = 1; i <= ROUNDS; i++)
        vk_submit(&vk, &(vk_submit_info){.signal = raw, .signal_value = i});
}

static void library_submits(void *user)
{
    for (unsigned i = 0; i < ROUNDS; i++) {
        sp_point done = {0};
        CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
        CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, user, 0, NULL), SP_OK);
        if (i % 16 == 0)
            CHECK_STATUS(sp_wait(&done), SP_OK);
        CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &done), SP_OK);
        sp_point_unref(&done);
    }
}

TEST(O4_library_and_application_share_a_queue)
{
    start();
    worker workers[3];
    VkSemaphore raw = vk_make_timeline(&vk, 0);
    sp_vk_semaphore *timeline = make_timeline(0);
    hook_watch_submits(check_lock_is_held);
    worker_start(&workers[0], 0, user_submits, &raw);
    worker_start(&workers[1], 0, library_submits, timeline);
    worker_start(&workers[2], 0, library_submits, timeline);
    for (unsigned i = 0; i < 3; i++)
        worker_join(&workers[i]);
    CHECK_EQUAL(unlocked_submits, 0);
    CHECK_EQUAL(vk.lock.by_library, submits());
    vk_finish(&vk);
    CHECK_EQUAL(vk_counter(&vk, raw), ROUNDS);
    CHECK_EQUAL(value_of(timeline), 2 * ROUNDS);
    sp_vk_semaphore_unref(timeline);
    vk_destroy_semaphore(&vk, raw);
    finish();
}

/* A failed submit gives the lock back, once. */
TEST(failed_submits_unlock)
{
    start();
    sp_point out = {0};
    sp_vk_semaphore *timeline = make_timeline(0);
    const VkResult results[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_OUT_OF_DEVICE_MEMORY,
                                VK_ERROR_UNKNOWN};
    const sp_status expected[] = {SP_ERROR_OUT_OF_MEMORY, SP_ERROR_OUT_OF_MEMORY, SP_ERROR_BACKEND};
    for (unsigned i = 0; i < COUNT_OF(results); i++) {
        hook_fail(HOOK_QueueSubmit2, results[i], 0, 1);
        COUNTED_CALL(sp_vk_queue_signal(vk.sp_queue, &out), expected[i]);
        CHECK_STATUS(sp_last_error()->status, expected[i]);
        CHECK_EQUAL(sp_last_error()->native_code, (uint64_t)(int64_t)results[i]);
        CHECK_EQUAL(sp_last_error()->backend, SP_BACKEND_VULKAN);
        CHECK(sp_last_error()->native_call != NULL);
        hook_fail(HOOK_QueueSubmit2, results[i], 0, 1);
        COUNTED_CALL(sp_vk_queue_signal_semaphore(vk.sp_queue, timeline, 7, &out), expected[i]);
    }
    CHECK(out.waiter == NULL);
    COUNTED_CALL(sp_vk_queue_signal_semaphore(vk.sp_queue, timeline, 7, &out), SP_OK);
    CHECK_STATUS(sp_wait(&out), SP_OK);
    sp_point_unref(&out);
    sp_vk_semaphore_unref(timeline);
    finish();
}

TEST(without_callbacks)
{
    vk_open(&vk, options);
    sp_vk_device_desc device = vk_device_desc(&vk, NULL);
    sp_vk_queue_desc queue = {.size = sizeof(queue), .queue = vk.queue};
    CHECK_STATUS(sp_vk_device_create(&device, &vk.sp_device), SP_OK);
    CHECK_STATUS(sp_vk_queue_create(vk.sp_device, &queue, &vk.sp_queue), SP_OK);
    sp_point done = {0};
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
    CHECK_STATUS(sp_wait(&done), SP_OK);
    sp_point_unref(&done);
    CHECK_EQUAL(vk.lock.by_library, 0);
    vk_close(&vk);
}
