/* SPDX-License-Identifier: MIT
 *
 * Several queue objects, and what host waits on binaries need of them.
 */
#include "vk_case.h"

/* A second object over the same VkQueue, which has the same lock. */
static sp_vk_queue *another_queue(void)
{
    sp_vk_queue *made = NULL;
    sp_vk_queue_desc desc = vk_queue_desc(&vk);
    CHECK_STATUS(sp_vk_queue_create(vk.sp_device, &desc, &made), SP_OK);
    return made;
}

/* Handles that no driver gave. */
static uint64_t nobody[SP_VK_MAX_QUEUES];

/* An object over what the library takes for another VkQueue: the software drivers have one only. */
static sp_vk_queue *queue_of_a_double(void)
{
    sp_vk_queue *made = NULL;
    sp_vk_queue_desc desc = vk_queue_desc(&vk);
    desc.queue = (VkQueue)(void *)&nobody[0];
    hook_alias_queue(desc.queue, vk.queue);
    CHECK_STATUS(sp_vk_queue_create(vk.sp_device, &desc, &made), SP_OK);
    return made;
}

/* No driver is asked about a VkQueue before a submit, so names that nobody has will do. */
TEST(as_many_queues_as_there_may_be)
{
    start();
    sp_vk_queue *queues[SP_VK_MAX_QUEUES] = {vk.sp_queue}, *out = NULL;
    sp_vk_queue_desc desc = vk_queue_desc(&vk);
    for (unsigned i = 1; i < SP_VK_MAX_QUEUES; i++) {
        desc.queue = (VkQueue)(void *)&nobody[i];
        CHECK_STATUS(sp_vk_queue_create(vk.sp_device, &desc, &queues[i]), SP_OK);
    }
    desc.queue = (VkQueue)(void *)&nobody[0];
    CHECK_ERROR(sp_vk_queue_create(vk.sp_device, &desc, &out), SP_ERROR_INVALID_STATE);
    CHECK(out == NULL);
    for (unsigned i = 1; i < SP_VK_MAX_QUEUES; i++)
        CHECK_STATUS(sp_vk_queue_destroy(queues[i], PATIENCE_NS), SP_OK);
    CHECK_STATUS(sp_vk_queue_create(vk.sp_device, &desc, &out), SP_OK);
    CHECK_STATUS(sp_vk_queue_destroy(out, PATIENCE_NS), SP_OK);
    finish();
}

TEST(many_objects_over_one_queue)
{
    start();
    enum { OBJECTS = 20 };
    sp_vk_queue *queues[OBJECTS] = {vk.sp_queue};
    sp_vk_queue_desc desc = vk_queue_desc(&vk);
    sp_point points[OBJECTS] = {{0}};
    for (unsigned i = 1; i < OBJECTS; i++)
        CHECK_STATUS(sp_vk_queue_create(vk.sp_device, &desc, &queues[i]), SP_OK);
    for (unsigned i = 0; i < OBJECTS; i++)
        CHECK_STATUS(sp_vk_queue_signal(queues[i], &points[i]), SP_OK);
    CHECK_STATUS(sp_wait_many(points, OBJECTS, SP_WAIT_ALL, PATIENCE_NS, NULL), SP_OK);
    /* A place that was given back can be had again, and old points keep their answers. */
    for (unsigned round = 0; round < 40; round++) {
        unsigned i = round % OBJECTS;
        CHECK_STATUS(sp_vk_queue_destroy(queues[i], PATIENCE_NS), SP_OK);
        CHECK_STATUS(sp_poll(&points[i]), SP_OK);
        CHECK_STATUS(sp_vk_queue_create(vk.sp_device, &desc, &queues[i]), SP_OK);
        CHECK_STATUS(sp_poll(&points[i]), SP_OK);
    }
    for (unsigned i = 0; i < OBJECTS; i++) {
        sp_point_unref(&points[i]);
        CHECK_STATUS(sp_vk_queue_destroy(queues[i], PATIENCE_NS), SP_OK);
    }
    vk.sp_queue = NULL;
    finish();
}

/* V1: what one queue is still to signal, another must not overtake. */
static hook_batch last_batch;

static void remember(const hook_batch *batch)
{
    last_batch = *batch;
}

TEST(V1_a_second_queue_signals_behind_the_first)
{
    start();
    vk_gate gate;
    sp_point first = {0}, second = {0};
    sp_vk_queue *other = queue_of_a_double();
    sp_vk_semaphore *timeline = make_timeline(0);
    vk_gate_init(&gate, &vk);
    vk_gate_close(&gate);
    CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, timeline, 0, &first), SP_OK);
    hook_watch_submits(remember);
    CHECK_STATUS(sp_vk_queue_signal_semaphore(other, timeline, 0, &second), SP_OK);
    CHECK_EQUAL(second.value, first.value + 1);
    CHECK_EQUAL(last_batch.wait_count, 1);
    CHECK(last_batch.waits[0].semaphore == sp_vk_semaphore_handle(timeline));
    CHECK_EQUAL(last_batch.waits[0].value, first.value);
    vk_gate_open_all(&gate);
    CHECK_STATUS(sp_wait(&second), SP_OK);
    CHECK_STATUS(sp_poll(&first), SP_OK);
    sp_point_unref(&first);
    sp_point_unref(&second);
    sp_vk_semaphore_unref(timeline);
    vk_gate_fini(&gate);
    CHECK_STATUS(sp_vk_queue_destroy(other, PATIENCE_NS), SP_OK);
    finish();
}

/* The same timeline twice in one chain: one wait, for the higher value. */
TEST(one_wait_for_each_timeline)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point one = timeline_point(timeline, 1), three = timeline_point(timeline, 3);
    sp_point two = timeline_point(timeline, 2), chain = {0}, longer = {0};
    CHECK_STATUS(sp_chain(&one, &three, &chain), SP_OK);
    CHECK_STATUS(sp_chain(&chain, &two, &longer), SP_OK);
    hook_watch_submits(remember);
    unsigned before = submits();
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &longer), SP_OK);
    CHECK_EQUAL(submits(), before + 1);
    CHECK_EQUAL(last_batch.wait_count, 1);
    CHECK_EQUAL(last_batch.waits[0].value, 3);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 3), SP_OK);
    sp_point_unref(&one);
    sp_point_unref(&two);
    sp_point_unref(&three);
    sp_point_unref(&chain);
    sp_point_unref(&longer);
    sp_vk_semaphore_unref(timeline);
    finish();
}

/* ---- Host waits on binaries ---- */

TEST(a_host_wait_needs_a_queue)
{
    start();
    CHECK_STATUS(sp_vk_queue_destroy(vk.sp_queue, PATIENCE_NS), SP_OK);
    vk.sp_queue = NULL;
    VkSemaphore raw = vk_make_binary(&vk);
    sp_vk_semaphore *binary = wrap(raw, VK_SEMAPHORE_TYPE_BINARY, true);
    vk_submit(&vk, &(vk_submit_info){.signal = raw});
    sp_point point = binary_point(binary, 0);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_NOT_SUPPORTED);
    vk.sp_queue = another_queue(); /* the same wait again */
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    finish();
}

TEST(a_host_wait_whose_submit_fails)
{
    start();
    sp_vk_semaphore *binary = make_binary();
    sp_point point = queue_signals(binary, 0);
    hook_fail(HOOK_QueueSubmit2, VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_wait(&point), SP_OK); /* the signal was given back */
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    finish();
}

static void wait_for_point(void *user)
{
    CHECK_STATUS(sp_wait(user), SP_OK);
}

TEST_NEEDING(destroy_waits_for_host_waits, WITH_ASYNC_SUBMIT)
{
    start();
    vk_slow slow;
    worker waiter;
    vk_slow_init(&slow, &vk);
    sp_vk_semaphore *binary = make_binary();
    vk_slow_submit(&slow);
    sp_point point = queue_signals(binary, 0);
    worker_start(&waiter, 0, wait_for_point, &point);
    test_sleep_ms(5);
    sp_status status = sp_vk_queue_destroy(vk.sp_queue, 0);
    CHECK_STATUS(status, SP_TIMEOUT);
    CHECK_STATUS(sp_vk_queue_destroy(vk.sp_queue, PATIENCE_NS), SP_OK);
    vk.sp_queue = NULL;
    worker_join(&waiter);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    vk_slow_fini(&slow);
    finish();
}

/* A wait on the semaphore has not run yet: nothing new may begin there but on the same queue. */
TEST_NEEDING(a_wait_that_has_not_run, WITH_ASYNC_SUBMIT)
{
    start();
    vk_slow slow;
    vk_slow_init(&slow, &vk);
    sp_point marked = test_marked_point(), out = marked;
    sp_vk_queue *other = queue_of_a_double();
    sp_vk_semaphore *binary = make_binary();
    vk_slow_submit(&slow);
    sp_point first = queue_signals(binary, 0);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &first), SP_OK);
    CHECK_ERROR(sp_vk_binary_point(binary, 0, &out), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_vk_queue_signal_semaphore(other, binary, 0, &out), SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&out, &marked));
    sp_point second = queue_signals(binary, 0); /* runs behind it in any case */
    CHECK_STATUS(sp_wait_timeout(&second, PATIENCE_NS), SP_OK);
    CHECK_STATUS(sp_poll(&first), SP_OK);
    sp_point_unref(&first);
    sp_point_unref(&second);
    sp_vk_semaphore_unref(binary);
    vk_slow_fini(&slow);
    CHECK_STATUS(sp_vk_queue_destroy(other, PATIENCE_NS), SP_OK);
    finish();
}

/* O2: the same VkQueue, through another object: its later submit is behind this wait, too. */
TEST(O2_a_queue_does_not_wait_for_its_twin)
{
    start();
    sp_vk_queue *twin = another_queue();
    sp_point now = {0}, later = {0};
    CHECK_STATUS(sp_vk_queue_signal(twin, &now), SP_OK);
    CHECK_STATUS(sp_point_at(&now, now.value + 1, &later), SP_OK);
    CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, &later), SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &now), SP_OK);
    sp_point_unref(&now);
    sp_point_unref(&later);
    CHECK_STATUS(sp_vk_queue_destroy(twin, PATIENCE_NS), SP_OK);
    finish();
}

/* One answer that cannot be believed fails the points, and does not hold the end up for ever. */
TEST(destroy_after_an_odd_answer)
{
    const VkResult odd[] = {VK_ERROR_UNKNOWN, VK_NOT_READY, (VkResult)-1000011001};
    for (unsigned i = 0; i < COUNT_OF(odd); i++) {
        vk_gate gate;
        sp_point point = {0};
        start();
        vk_gate_init(&gate, &vk);
        vk_gate_close(&gate);
        CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &point), SP_OK);
        hook_fail(HOOK_GetSemaphoreCounterValue, odd[i], 0, 2);
        CHECK_ERROR(sp_poll(&point), SP_ERROR_BACKEND);
        CHECK_STATUS(sp_vk_queue_destroy(vk.sp_queue, MS), SP_TIMEOUT);
        vk_gate_open_all(&gate);
        CHECK_STATUS(sp_vk_queue_destroy(vk.sp_queue, PATIENCE_NS), SP_OK);
        vk.sp_queue = NULL;
        sp_point_unref(&point);
        vk_gate_fini(&gate);
        finish();
    }
}

/* O1: what one object has gated, the other's work is behind, too. */
TEST(O1_gated_by_a_twin)
{
    start();
    sp_vk_queue *twin = another_queue();
    sp_vk_semaphore *timeline = make_timeline(0), *binary = make_binary();
    sp_point gate = timeline_point(timeline, 1), signal = {0};
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &gate), SP_OK);
    CHECK_STATUS(sp_vk_queue_signal_semaphore(twin, binary, 0, &signal), SP_OK);
    unsigned before = submits();
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &signal), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_vk_queue_wait(twin, &signal), SP_NOT_SUBMITTED);
    CHECK_EQUAL(submits(), before);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_wait(&signal), SP_OK);
    sp_point_unref(&gate);
    sp_point_unref(&signal);
    sp_vk_semaphore_unref(timeline);
    sp_vk_semaphore_unref(binary);
    CHECK_STATUS(sp_vk_queue_destroy(twin, PATIENCE_NS), SP_OK);
    finish();
}

/* A user's table whose key is, by chance, the one that the library's timelines have. */
static const void *borrowed_key;
static unsigned foreign_waiters;

static sp_status never_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)waiter;
    (void)value;
    *reached = 0;
    return SP_OK;
}

static const void *key_of(sp_waiter *waiter)
{
    (void)waiter;
    return borrowed_key;
}

static void keep(sp_waiter *waiter)
{
    (void)waiter;
}

static const sp_waiter_ops key_ops;

static sp_status block_own(sp_waiter *const *waiters, const uint64_t *values, size_t count,
                           sp_wait_mode mode, uint64_t deadline_ns)
{
    (void)values;
    (void)mode;
    (void)deadline_ns;
    for (size_t i = 0; i < count; i++)
        foreign_waiters += waiters[i]->ops != &key_ops;
    return SP_TIMEOUT;
}

static const sp_waiter_ops key_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_COUNTING | SP_FEATURE_GROUP,
    .backend = SP_BACKEND_CUSTOM,
    .name = "keyed",
    .probe = never_probe,
    .group = key_of,
    .block_many = block_own,
    .destroy = keep,
};

TEST(groups_of_two_makers)
{
    start();
    sp_waiter waiter;
    sp_point points[2] = {{0}};
    sp_vk_semaphore *timeline = make_timeline(0);
    borrowed_key = vk.sp_device;
    CHECK_STATUS(sp_waiter_init(&waiter, &key_ops), SP_OK);
    for (unsigned first = 0; first < 2; first++) {
        CHECK_STATUS(sp_point_custom(&waiter, 1, NULL, &points[first]), SP_OK);
        points[1 - first] = timeline_point(timeline, 1);
        CHECK_STATUS(sp_wait_many(points, 2, SP_WAIT_ANY, 5 * MS, NULL), SP_TIMEOUT);
        CHECK_STATUS(sp_wait_many(points, 2, SP_WAIT_ALL, 5 * MS, NULL), SP_TIMEOUT);
        sp_point_unref(&points[0]);
        sp_point_unref(&points[1]);
    }
    CHECK_EQUAL(foreign_waiters, 0);
    sp_waiter_unref(&waiter);
    sp_vk_semaphore_unref(timeline);
    finish();
}
