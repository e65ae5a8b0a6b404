/* SPDX-License-Identifier: MIT
 *
 * What lives how long: devices, queues and semaphores with work pending, points that outlive them,
 * the child of a fork. The validation layer's targets show that nothing goes too soon.
 */
#include "vk_case.h"

#include <sys/wait.h>
#include <unistd.h>

/* ---- Destroying with work pending ---- */

TEST(destroy_times_out_and_can_be_repeated)
{
    start();
    vk_gate gate;
    sp_point done = {0};
    vk_gate_init(&gate, &vk);
    vk_gate_close(&gate);
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
    const uint64_t timeouts[] = {0, MS, 20 * MS};
    for (unsigned i = 0; i < COUNT_OF(timeouts); i++) {
        uint64_t begin = sp_now_ns();
        CHECK_STATUS(sp_vk_device_destroy(vk.sp_device, timeouts[i]), SP_TIMEOUT);
        CHECK_STATUS(sp_vk_queue_destroy(vk.sp_queue, timeouts[i]), SP_TIMEOUT);
        CHECK(sp_now_ns() - begin >= 2 * timeouts[i]);
    }
    /* Nothing was freed. */
    sp_point again = {0};
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &again), SP_OK);
    CHECK_STATUS(sp_poll(&done), SP_PENDING);
    vk_gate_open_all(&gate);
    CHECK_STATUS(sp_wait(&again), SP_OK);
    CHECK_STATUS(sp_vk_queue_destroy(vk.sp_queue, PATIENCE_NS), SP_OK);
    vk.sp_queue = NULL;
    CHECK_STATUS(sp_poll(&done), SP_OK); /* its points stay */
    CHECK_STATUS(sp_poll(&again), SP_OK);
    CHECK_STATUS(sp_vk_device_destroy(vk.sp_device, PATIENCE_NS), SP_OK);
    vk.sp_device = NULL;
    sp_point_unref(&done);
    sp_point_unref(&again);
    vk_gate_fini(&gate);
    finish();
}

static void open_gate(void *user)
{
    vk_gate_open_all(user);
}

TEST(destroy_waits_for_the_work)
{
    start();
    worker late;
    vk_gate gate;
    sp_point done = {0};
    vk_gate_init(&gate, &vk);
    vk_gate_close(&gate);
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
    worker_start(&late, DELAY_MS, open_gate, &gate);
    CHECK_STATUS(sp_vk_device_destroy(vk.sp_device, PATIENCE_NS), SP_OK); /* and its queue */
    vk.sp_device = NULL;
    vk.sp_queue = NULL;
    worker_join(&late);
    CHECK_STATUS(sp_poll(&done), SP_OK);
    sp_point_unref(&done);
    vk_gate_fini(&gate);
    finish();
}

TEST(destroy_nothing)
{
    CHECK_STATUS(sp_vk_device_destroy(NULL, 0), SP_OK);
    CHECK_STATUS(sp_vk_queue_destroy(NULL, 0), SP_OK);
}

/* ---- Points that outlive their device ---- */

TEST(device_goes_before_its_points)
{
    start();
    sp_point points[5] = {{0}};
    VkSemaphore raw = vk_make_timeline(&vk, 0);
    sp_vk_semaphore *timeline = make_timeline(0), *binary = make_binary();
    sp_vk_semaphore *wrapped = wrap(raw, VK_SEMAPHORE_TYPE_TIMELINE, false);
    points[0] = timeline_point(timeline, 1);
    points[1] = timeline_point(timeline, 2);
    points[2] = queue_signals(binary, 0);
    points[3] = timeline_point(wrapped, 1);
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &points[4]), SP_OK);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_wait(&points[0]), SP_OK);
    CHECK_STATUS(sp_wait(&points[4]), SP_OK);
    sp_point chain = {0};
    CHECK_STATUS(sp_chain(&points[0], &points[1], &chain), SP_OK);
    CHECK_STATUS(sp_vk_device_destroy(vk.sp_device, PATIENCE_NS), SP_OK);
    vk.sp_device = NULL;
    vk.sp_queue = NULL;
    vk_destroy_semaphore(&vk, raw);
    unsigned calls = hook_all_calls();
    CHECK_STATUS(sp_poll(&points[0]), SP_OK);
    CHECK_STATUS(sp_poll(&points[4]), SP_OK);
    CHECK_ERROR(sp_poll(&points[1]), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&points[1]), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&points[3]), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&chain), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait_many(&points[1], 1, SP_WAIT_ANY, SP_FOREVER, NULL), SP_ERROR_INVALID_STATE);
    char text[128];
    CHECK(sp_point_describe(&points[1], text, sizeof(text)) > 0);
    sp_point_unref(&chain);
    for (unsigned i = 0; i < 5; i++)
        sp_point_unref(&points[i]);
    sp_vk_semaphore_unref(timeline);
    sp_vk_semaphore_unref(binary);
    sp_vk_semaphore_unref(wrapped);
    CHECK_EQUAL(hook_all_calls(), calls); /* releasing them calls no driver */
    CHECK_EQUAL(hook_live_semaphores(), 0);
    finish();
}

/* The VkDevice itself goes first. */
TEST(vk_device_goes_before_the_points)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point pending = timeline_point(timeline, 1), copy = sp_point_ref(&pending);
    vk_close(&vk);
    CHECK_ERROR(sp_poll(&pending), SP_ERROR_INVALID_STATE);
    sp_point_unref(&pending);
    sp_vk_semaphore_unref(timeline);
    CHECK_ERROR(sp_wait(&copy), SP_ERROR_INVALID_STATE);
    sp_point_unref(&copy);
}

/* ---- The retire list ---- */

/* Released while a submit of ours still names them: they go when it is done. */
TEST(released_while_a_submit_is_pending)
{
    start();
    vk_gate gate;
    vk_gate_init(&gate, &vk);
    vk_gate_close(&gate);
    unsigned live = hook_live_semaphores();
    for (unsigned i = 0; i < 20; i++) {
        sp_vk_semaphore *signalled = make_timeline(0), *binary = make_binary();
        sp_point point = queue_signals(signalled, 1), signal = queue_signals(binary, 0);
        CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
        sp_vk_semaphore_unref(signalled);
        sp_vk_semaphore_unref(binary);
        sp_point_unref(&point);
        sp_point_unref(&signal);
    }
    CHECK_EQUAL(hook_live_semaphores(), live + 40);
    vk_gate_open_all(&gate);
    vk_finish(&vk);
    sp_point done = {0};
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (hook_live_semaphores() > live && sp_now_ns() < end) { /* drained by later calls */
        CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
        CHECK_STATUS(sp_wait(&done), SP_OK);
        sp_point_unref(&done);
        sp_vk_semaphore_unref(make_binary());
    }
    CHECK_EQUAL(hook_live_semaphores(), live);
    vk_gate_fini(&gate);
    finish();
}

TEST(retired_semaphores_go_with_the_device)
{
    start();
    worker late;
    vk_gate gate;
    vk_gate_init(&gate, &vk);
    vk_gate_close(&gate);
    sp_vk_semaphore *binary = make_binary();
    sp_point signal = queue_signals(binary, 0);
    sp_vk_semaphore_unref(binary);
    sp_point_unref(&signal);
    worker_start(&late, DELAY_MS, open_gate, &gate);
    CHECK_STATUS(sp_vk_device_destroy(vk.sp_device, PATIENCE_NS), SP_OK);
    vk.sp_device = NULL;
    vk.sp_queue = NULL;
    worker_join(&late);
    CHECK_EQUAL(hook_live_semaphores(), 0);
    vk_gate_fini(&gate);
    finish();
}

/* ---- Wrapping: take and borrow ---- */

TEST(take_destroys_and_borrow_does_not)
{
    start();
    const VkSemaphoreType types[] = {VK_SEMAPHORE_TYPE_TIMELINE, VK_SEMAPHORE_TYPE_BINARY};
    for (unsigned i = 0; i < 2; i++) {
        bool timeline = types[i] == VK_SEMAPHORE_TYPE_TIMELINE;
        VkSemaphore kept = timeline ? vk_make_timeline(&vk, 0) : vk_make_binary(&vk);
        VkSemaphore taken = timeline ? vk_make_timeline(&vk, 0) : vk_make_binary(&vk);
        unsigned before = hook_calls(HOOK_DestroySemaphore);
        sp_vk_semaphore *a = wrap(kept, types[i], false), *b = wrap(taken, types[i], true);
        CHECK(sp_vk_semaphore_handle(a) == kept);
        CHECK(sp_vk_semaphore_handle(b) == taken);
        sp_point point = timeline ? timeline_point(b, 1) : binary_point(b, SP_POINT_UNSUBMITTED);
        sp_vk_semaphore_unref(a);
        CHECK_EQUAL(hook_calls(HOOK_DestroySemaphore), before);
        sp_vk_semaphore_unref(b);
        CHECK_EQUAL(hook_calls(HOOK_DestroySemaphore), before); /* its point is still there */
        sp_point_unref(&point);
        CHECK_EQUAL(hook_calls(HOOK_DestroySemaphore), before + 1);
        vk_destroy_semaphore(&vk, kept);
    }
    finish();
}

TEST(wrapping_fails_and_takes_nothing)
{
    start();
    VkSemaphore raw = vk_make_binary(&vk);
    sp_vk_semaphore *out = (sp_vk_semaphore *)16;
    sp_vk_semaphore_wrap_desc desc = {
        .size = sizeof(desc),
        .semaphore = raw,
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .take = true,
    };
    CHECK_ERROR(sp_vk_semaphore_wrap(NULL, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_semaphore_wrap(vk.sp_device, NULL, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_semaphore_wrap(vk.sp_device, &desc, NULL), SP_ERROR_INVALID_ARGUMENT);
    desc.type = (VkSemaphoreType)9;
    CHECK_ERROR(sp_vk_semaphore_wrap(vk.sp_device, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    desc.type = VK_SEMAPHORE_TYPE_BINARY;
    desc.size = 0;
    CHECK_ERROR(sp_vk_semaphore_wrap(vk.sp_device, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    desc.size = sizeof(desc);
    desc.semaphore = VK_NULL_HANDLE;
    CHECK_ERROR(sp_vk_semaphore_wrap(vk.sp_device, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK(out == (sp_vk_semaphore *)16);
    vk_destroy_semaphore(&vk, raw);
    finish();
}

TEST(semaphore_references)
{
    start();
    unsigned before = hook_calls(HOOK_DestroySemaphore);
    sp_vk_semaphore *timeline = make_timeline(3);
    CHECK(sp_vk_semaphore_ref(timeline) == timeline);
    sp_vk_semaphore_unref(timeline);
    CHECK_EQUAL(value_of(timeline), 3);
    CHECK_EQUAL(hook_calls(HOOK_DestroySemaphore), before);
    sp_vk_semaphore_unref(timeline);
    CHECK_EQUAL(hook_calls(HOOK_DestroySemaphore), before + 1);
    finish();
}

/* ---- Fork (F1) ---- */

#define EXPECT_IN_CHILD(call, expected)                                                            \
    do {                                                                                           \
        if ((call) != (expected))                                                                  \
            _exit(__LINE__ % 200 + 1);                                                             \
    } while (0)

static void use_in_child(sp_vk_semaphore *timeline, sp_vk_semaphore *binary, sp_point *pending)
{
    unsigned calls = hook_all_calls(), locks = vk.lock.by_library;
    uint64_t value;
    int fd;
    sp_point out = {0};
    sp_vk_semaphore *made = NULL;
    sp_vk_queue *queue = NULL;
    sp_vk_queue_desc queue_desc = vk_queue_desc(&vk);
    const sp_vk_semaphore_desc desc = {.size = sizeof(desc), .type = VK_SEMAPHORE_TYPE_BINARY};
    sp_vk_semaphore_caps caps = {.size = sizeof(caps)};
    EXPECT_IN_CHILD(sp_vk_queue_signal(vk.sp_queue, &out), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_vk_queue_signal_semaphore(vk.sp_queue, timeline, 0, &out), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_vk_queue_wait(vk.sp_queue, pending), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_vk_semaphore_signal(timeline, 9), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_vk_semaphore_value(timeline, &value), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_vk_timeline_point(timeline, 1, &out), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_vk_binary_point(binary, 0, &out), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_vk_semaphore_create(vk.sp_device, &desc, &made), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_vk_queue_create(vk.sp_device, &queue_desc, &queue), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_vk_device_semaphore_caps(vk.sp_device, VK_SEMAPHORE_TYPE_BINARY,
                                                VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
                                                &caps),
                    SP_ERROR_FORKED);
    sp_status exported =
        sp_vk_semaphore_export(binary, VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT, &fd);
    EXPECT_IN_CHILD(exported, SP_ERROR_FORKED);
    EXPECT_IN_CHILD(out.waiter, NULL);
    sp_point_unref(pending);
    sp_vk_semaphore_unref(timeline);
    sp_vk_semaphore_unref(binary);
    EXPECT_IN_CHILD(sp_vk_queue_destroy(vk.sp_queue, SP_FOREVER), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(sp_vk_device_destroy(vk.sp_device, SP_FOREVER), SP_ERROR_FORKED);
    EXPECT_IN_CHILD(hook_all_calls(), calls);
    EXPECT_IN_CHILD(vk.lock.by_library, locks);
    _exit(0);
}

TEST(F1_child_of_a_fork)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(0), *binary = make_binary();
    sp_point pending = timeline_point(timeline, 1);
    pid_t child = fork();
    if (child == 0)
        use_in_child(timeline, binary, &pending);
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
    late_host_signal late;
    signal_late(&late, timeline, 1);
    CHECK_STATUS(sp_wait(&pending), SP_OK);
    join_not_early(&late);
    sp_point done = {0};
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
    CHECK_STATUS(sp_wait(&done), SP_OK);
    sp_point_unref(&done);
    sp_point_unref(&pending);
    sp_vk_semaphore_unref(timeline);
    sp_vk_semaphore_unref(binary);
    finish();
}
