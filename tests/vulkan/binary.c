/* SPDX-License-Identifier: MIT
 *
 * Binary semaphores: one signal serves one wait. O1, O6, and the states in between.
 */
#include "vk_case.h"

static void refuse_wait(const sp_point *point, sp_status expected)
{
    unsigned before = submits();
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, point), expected);
    CHECK_EQUAL(submits(), before);
}

/* O1 */
TEST(O1_wait_before_the_signal_is_submitted)
{
    start();
    VkSemaphore raw = vk_make_binary(&vk);
    sp_vk_semaphore *binary = wrap(raw, VK_SEMAPHORE_TYPE_BINARY, true);
    sp_point point = binary_point(binary, SP_POINT_UNSUBMITTED);
    CHECK(point.flags & SP_POINT_UNSUBMITTED);
    refuse_wait(&point, SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_poll(&point), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_wait_timeout(&point, 5 * MS), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_wait_many(&point, 1, SP_WAIT_ANY, MS, NULL), SP_NOT_SUBMITTED);
    CHECK_EQUAL(submits(), 0);
    vk_submit(&vk, &(vk_submit_info){.signal = raw});
    CHECK_STATUS(sp_point_mark_submitted(&point), SP_OK);
    CHECK_STATUS(sp_point_mark_submitted(&point), SP_OK);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    finish();
}

static void mark_late(void *user)
{
    const sp_point *point = user;
    vk_submit(&vk, &(vk_submit_info){.signal = sp_vk_semaphore_from_point(point)});
    CHECK_STATUS(sp_point_mark_submitted(point), SP_OK);
}

/* A host wait may begin before; it goes on once the signal is submitted. */
TEST(O1_host_wait_begins_before)
{
    start();
    worker late;
    VkSemaphore raw = vk_make_binary(&vk);
    sp_vk_semaphore *binary = wrap(raw, VK_SEMAPHORE_TYPE_BINARY, true);
    sp_point point = binary_point(binary, SP_POINT_UNSUBMITTED);
    worker_start(&late, DELAY_MS, mark_late, &point);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    worker_join(&late);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    finish();
}

/* O1: the signal is submitted, but behind a wait whose own signal nobody has submitted. */
TEST(O1_what_it_depends_on_is_not_submitted)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(0), *binary = make_binary();
    sp_point gate = timeline_point(timeline, 1);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &gate), SP_OK);
    sp_point point = queue_signals(binary, 0);
    refuse_wait(&point, SP_NOT_SUBMITTED);
    sp_status polled = sp_poll(&point);
    CHECK(polled == SP_NOT_SUBMITTED || polled == SP_PENDING);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    sp_status status;
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while ((status = sp_vk_queue_wait(vk.sp_queue, &point)) == SP_NOT_SUBMITTED &&
           sp_now_ns() < end)
        test_sleep_ms(1);
    CHECK_STATUS(status, SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_point_unref(&gate);
    sp_vk_semaphore_unref(binary);
    sp_vk_semaphore_unref(timeline);
    finish();
}

/* O6 */
TEST_NEEDING(O6_two_waits_for_one_signal, WITH_ASYNC_SUBMIT)
{
    start();
    vk_slow slow;
    vk_slow_init(&slow, &vk);
    sp_vk_semaphore *binary = make_binary();
    vk_slow_submit(&slow);
    sp_point point = queue_signals(binary, 0), copy = sp_point_ref(&point);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
    refuse_wait(&point, SP_ERROR_INVALID_STATE);
    refuse_wait(&copy, SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_poll(&copy), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&copy, PATIENCE_NS),
                 SP_OK); /* the host sees the wait that has run */
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&copy);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    vk_slow_fini(&slow);
    finish();
}

TEST_NEEDING(O6_an_old_point_keeps_its_answer, WITH_ASYNC_SUBMIT)
{
    start();
    vk_slow slow;
    vk_slow_init(&slow, &vk);
    sp_vk_semaphore *binary = make_binary();
    sp_point first = queue_signals(binary, 0);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &first), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&first, PATIENCE_NS), SP_OK);
    vk_slow_submit(&slow);
    sp_point second = queue_signals(binary, 0);
    CHECK_STATUS(sp_poll(&first), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&first, 0), SP_OK);
    CHECK_STATUS(sp_poll(&second), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&second, MS), SP_TIMEOUT);
    CHECK_STATUS(sp_wait_timeout(&second, PATIENCE_NS), SP_OK);
    CHECK_STATUS(sp_poll(&first), SP_OK);
    sp_point_unref(&first);
    sp_point_unref(&second);
    sp_vk_semaphore_unref(binary);
    vk_slow_fini(&slow);
    finish();
}

typedef struct claimer {
    worker worker;
    const sp_point *point;
    sp_status status;
} claimer;

static void claim(void *user)
{
    claimer *self = user;
    self->status = sp_vk_queue_wait(vk.sp_queue, self->point);
}

TEST_NEEDING(O6_racing_waits_have_one_winner, WITH_ASYNC_SUBMIT)
{
    enum { ROUNDS = 50 };
    start();
    vk_slow slow;
    sp_vk_semaphore *binaries[ROUNDS];
    sp_point points[ROUNDS];
    vk_slow_init(&slow, &vk);
    vk_slow_submit(&slow); /* one whose wait has run may be asked again */
    for (unsigned round = 0; round < ROUNDS; round++) {
        binaries[round] = make_binary();
        points[round] = queue_signals(binaries[round], 0);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        const sp_point *point = &points[round];
        claimer claimers[2] = {{.point = point}, {.point = point}};
        for (unsigned i = 0; i < 2; i++)
            worker_start(&claimers[i].worker, 0, claim, &claimers[i]);
        unsigned won = 0;
        for (unsigned i = 0; i < 2; i++) {
            worker_join(&claimers[i].worker);
            won += claimers[i].status == SP_OK;
            CHECK(claimers[i].status == SP_OK || claimers[i].status == SP_ERROR_INVALID_STATE);
        }
        CHECK_EQUAL(won, 1);
    }
    for (unsigned round = 0; round < ROUNDS; round++) {
        CHECK_STATUS(sp_wait_timeout(&points[round], PATIENCE_NS), SP_OK);
        sp_point_unref(&points[round]);
        sp_vk_semaphore_unref(binaries[round]);
    }
    vk_slow_fini(&slow);
    finish();
}

TEST(a_failed_submit_gives_the_claim_back)
{
    start();
    sp_vk_semaphore *binary = make_binary();
    sp_point point = queue_signals(binary, 0);
    for (unsigned i = 0; i < 3; i++) {
        hook_fail(HOOK_QueueSubmit2, VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
        CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, &point), SP_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(sp_poll(&point), SP_PENDING);
    }
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    hook_fail(HOOK_QueueSubmit2, VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
    sp_point unmade = {0};
    CHECK_ERROR(sp_vk_queue_signal_semaphore(vk.sp_queue, binary, 0, &unmade),
                SP_ERROR_OUT_OF_MEMORY);
    CHECK(unmade.waiter == NULL);
    sp_point again = queue_signals(binary, 0);
    CHECK_STATUS(sp_wait(&again), SP_OK);
    sp_point_unref(&again);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    finish();
}

/* Chains: either all claims are made or none. */
TEST(a_chain_claims_all_or_nothing)
{
    start();
    VkSemaphore raw = vk_make_binary(&vk);
    sp_vk_semaphore *ours = make_binary(), *theirs = wrap(raw, VK_SEMAPHORE_TYPE_BINARY, true);
    sp_point first = queue_signals(ours, 0);
    sp_point second = binary_point(theirs, SP_POINT_UNSUBMITTED), chain = {0};
    CHECK_STATUS(sp_chain(&first, &second, &chain), SP_OK);
    refuse_wait(&chain, SP_NOT_SUBMITTED);
    vk_submit(&vk, &(vk_submit_info){.signal = raw});
    CHECK_STATUS(sp_point_mark_submitted(&second), SP_OK);
    hook_fail(HOOK_QueueSubmit2, VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
    CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, &chain), SP_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &first), SP_OK); /* was given back */
    CHECK_STATUS(sp_wait(&first), SP_OK);
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    sp_point_unref(&chain);
    sp_point_unref(&first);
    sp_point_unref(&second);
    sp_vk_semaphore_unref(ours);
    sp_vk_semaphore_unref(theirs);
    finish();
}

TEST(the_same_signal_twice_in_a_chain)
{
    start();
    sp_vk_semaphore *binary = make_binary();
    sp_point point = queue_signals(binary, 0), chain = {0};
    CHECK_STATUS(sp_chain(&point, &point, &chain), SP_OK);
    sp_status status = sp_vk_queue_wait(vk.sp_queue, &chain);
    if (status == SP_ERROR_INVALID_STATE) /* refused, and not used up */
        CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
    else
        CHECK_STATUS(status, SP_OK);
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    sp_point_unref(&chain);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    finish();
}

/* ---- Signalling ---- */

TEST(a_signal_that_nobody_waited_for)
{
    start();
    sp_point marked = test_marked_point(), out = marked;
    sp_vk_semaphore *binary = make_binary();
    sp_point point = queue_signals(binary, 0);
    unsigned before = submits();
    CHECK_ERROR(sp_vk_queue_signal_semaphore(vk.sp_queue, binary, 0, &out), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_vk_binary_point(binary, 0, &out), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_vk_queue_signal_semaphore(vk.sp_queue, binary, 1, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(submits(), before);
    CHECK(test_same_point(&out, &marked));
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point next = queue_signals(binary, 0);
    CHECK_STATUS(sp_wait(&next), SP_OK);
    sp_point_unref(&next);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    finish();
}

/* Then the wait is the user's own, and so is the order. */
TEST(a_signal_without_a_point)
{
    start();
    sp_vk_semaphore *binary = make_binary();
    for (unsigned i = 0; i < 3; i++) {
        CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, binary, 0, NULL), SP_OK);
        vk_submit(&vk, &(vk_submit_info){.wait = sp_vk_semaphore_handle(binary)});
    }
    vk_finish(&vk);
    sp_vk_semaphore_unref(binary);
    finish();
}

/* More binaries than one submit takes, and the second submit fails: the same call again works. */
TEST_NEEDING(a_long_chain_whose_second_submit_fails, WITH_ASYNC_SUBMIT)
{
    enum { LINKS = 40 };
    start();
    sp_vk_semaphore *binaries[LINKS];
    sp_point chain = sp_point_noop();
    for (unsigned i = 0; i < LINKS; i++) {
        sp_point longer = {0};
        binaries[i] = make_binary();
        sp_point link = queue_signals(binaries[i], 0);
        CHECK_STATUS(sp_chain(&chain, &link, &longer), SP_OK);
        sp_point_unref(&chain);
        sp_point_unref(&link);
        chain = longer;
    }
    vk_slow slow;
    vk_slow_init(&slow, &vk);
    vk_slow_submit(&slow); /* so that no wait is done meanwhile */
    hook_fail(HOOK_QueueSubmit2, VK_ERROR_OUT_OF_HOST_MEMORY, 1, 1);
    sp_status status = sp_vk_queue_wait(vk.sp_queue, &chain);
    hook_heal();
    if (status != SP_OK) {
        CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &chain), SP_OK);
    }
    CHECK_STATUS(sp_wait_timeout(&chain, PATIENCE_NS), SP_OK);
    sp_point_unref(&chain);
    for (unsigned i = 0; i < LINKS; i++)
        sp_vk_semaphore_unref(binaries[i]);
    vk_slow_fini(&slow);
    finish();
}

/* "An earlier point of the semaphore that is still pending then never completes." */
TEST(a_newer_point_ends_an_older_one)
{
    start();
    VkSemaphore raw = vk_make_binary(&vk);
    sp_vk_semaphore *binary = wrap(raw, VK_SEMAPHORE_TYPE_BINARY, true);
    vk_submit(&vk, &(vk_submit_info){.signal = raw});
    sp_point older = binary_point(binary, 0);
    CHECK_STATUS(sp_poll(&older), SP_PENDING);
    sp_point newer = binary_point(binary, 0);
    CHECK_ERROR(sp_poll(&older), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&older), SP_ERROR_INVALID_STATE);
    refuse_wait(&older, SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_wait(&newer), SP_OK);
    CHECK_ERROR(sp_poll(&older), SP_ERROR_INVALID_STATE);
    sp_point_unref(&older);
    sp_point_unref(&newer);
    sp_vk_semaphore_unref(binary);
    finish();
}

TEST(a_newer_point_ends_one_that_is_not_submitted)
{
    start();
    VkSemaphore raw = vk_make_binary(&vk);
    sp_vk_semaphore *binary = wrap(raw, VK_SEMAPHORE_TYPE_BINARY, true);
    sp_point older = binary_point(binary, SP_POINT_UNSUBMITTED);
    sp_point newer = binary_point(binary, SP_POINT_UNSUBMITTED);
    CHECK_ERROR(sp_poll(&older), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_point_mark_submitted(&older), SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_poll(&newer), SP_NOT_SUBMITTED);
    vk_submit(&vk, &(vk_submit_info){.signal = raw});
    CHECK_STATUS(sp_point_mark_submitted(&newer), SP_OK);
    CHECK_STATUS(sp_wait(&newer), SP_OK);
    CHECK_ERROR(sp_wait(&older), SP_ERROR_INVALID_STATE);
    sp_point_unref(&older);
    sp_point_unref(&newer);
    sp_vk_semaphore_unref(binary);
    finish();
}

TEST(poll_uses_nothing_up)
{
    start();
    sp_vk_semaphore *binary = make_binary();
    sp_point point = queue_signals(binary, 0);
    vk_finish(&vk);
    unsigned before = submits();
    for (unsigned i = 0; i < 100; i++)
        CHECK(sp_poll(&point) >= 0);
    CHECK(sp_wait_timeout(&point, 0) >= 0);
    CHECK(sp_wait_many(&point, 1, SP_WAIT_ANY, 0, NULL) >= 0);
    CHECK(sp_wait_many(&point, 1, SP_WAIT_ALL, 0, NULL) >= 0);
    CHECK_EQUAL(submits(), before);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    finish();
}

/* ---- Bad input ---- */

TEST(bad_arguments)
{
    start();
    sp_point marked = test_marked_point(), out = marked;
    sp_vk_semaphore *binary = make_binary(), *timeline = make_timeline(0);
    CHECK_ERROR(sp_vk_binary_point(NULL, 0, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_binary_point(binary, 0, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_binary_point(timeline, 0, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_binary_point(binary, SP_POINT_BINARY, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_binary_point(binary, 1u << 30, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_timeline_point(binary, 1, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_timeline_point(timeline, UINT64_MAX, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_timeline_point(NULL, 1, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_timeline_point(timeline, 1, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_semaphore_signal(binary, 1), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_semaphore_signal(NULL, 1), SP_ERROR_INVALID_ARGUMENT);
    uint64_t value = 5;
    CHECK_ERROR(sp_vk_semaphore_value(binary, &value), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_semaphore_value(NULL, &value), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_semaphore_value(timeline, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(value, 5);
    CHECK_ERROR(sp_vk_queue_wait(NULL, &marked), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_queue_signal(NULL, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_queue_signal(vk.sp_queue, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_queue_signal_semaphore(NULL, timeline, 0, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_queue_signal_semaphore(vk.sp_queue, NULL, 0, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK(test_same_point(&out, &marked));
    CHECK(sp_vk_semaphore_handle(NULL) == VK_NULL_HANDLE);
    CHECK(sp_vk_semaphore_ref(NULL) == NULL);
    sp_vk_semaphore_unref(NULL);
    CHECK(sp_vk_semaphore_from_point(NULL) == VK_NULL_HANDLE);
    CHECK(sp_vk_semaphore_from_point(&(sp_point){0}) == VK_NULL_HANDLE);
    sp_point carrier = sp_carrier_vulkan_semaphore(
        (uint64_t)(uintptr_t)sp_vk_semaphore_handle(binary), vk.device, 0);
    CHECK(sp_vk_semaphore_from_point(&carrier) == sp_vk_semaphore_handle(binary));
    CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, &carrier), SP_ERROR_NOT_SUPPORTED);
    sp_vk_semaphore_unref(binary);
    sp_vk_semaphore_unref(timeline);
    finish();
}

TEST(fields_of_a_point)
{
    start();
    sp_vk_semaphore *binary = make_binary(), *timeline = make_timeline(0);
    sp_point a = queue_signals(binary, 0), b = timeline_point(timeline, 7);
    CHECK(sp_vk_semaphore_from_point(&a) == sp_vk_semaphore_handle(binary));
    CHECK(sp_vk_semaphore_from_point(&b) == sp_vk_semaphore_handle(timeline));
    CHECK(a.raw.vulkan.device == vk.device);
    CHECK(b.raw.vulkan.device == vk.device);
    CHECK_EQUAL(a.raw.vulkan.semaphore, (uint64_t)(uintptr_t)sp_vk_semaphore_handle(binary));
    CHECK_EQUAL(b.raw.vulkan.semaphore, (uint64_t)(uintptr_t)sp_vk_semaphore_handle(timeline));
    CHECK_EQUAL(a.value, 0);
    CHECK_EQUAL(b.value, 7);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &a), SP_OK);
    sp_point_unref(&a);
    sp_point_unref(&b);
    sp_vk_semaphore_unref(binary);
    sp_vk_semaphore_unref(timeline);
    finish();
}
