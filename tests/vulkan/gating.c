/* SPDX-License-Identifier: MIT
 *
 * Real work behind a wait: a copy that must not run before its producer is done. Each of these has
 * a twin in which the signal is withheld, and the copy's target must stay unwritten.
 */
#include "vk_case.h"

#include <unistd.h>

static vk_copy copy;

static void gate_copy_on(const sp_point *point)
{
    vk_copy_init(&copy, &vk);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, point), SP_OK);
    vk_copy_submit(&copy);
}

static void check_gated_by_timeline(void)
{
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point point = timeline_point(timeline, 1);
    gate_copy_on(&point);
    CHECK_UNWRITTEN(&copy);
    vk_copy_produce(&copy, 100);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    CHECK(vk_copy_arrives(&copy, 100));
    sp_point_unref(&point);
    sp_vk_semaphore_unref(timeline);
    vk_copy_fini(&copy);
}

TEST(timeline_gates_a_copy)
{
    start();
    check_gated_by_timeline();
    finish();
}

/* O3 */
TEST(O3_timeline_withheld)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point point = timeline_point(timeline, 2);
    gate_copy_on(&point);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK); /* not enough */
    CHECK_UNWRITTEN(&copy);
    CHECK_UNWRITTEN(&copy);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 2), SP_OK); /* so that all can be freed */
    sp_point_unref(&point);
    sp_vk_semaphore_unref(timeline);
    vk_finish(&vk);
    vk_copy_fini(&copy);
    finish();
}

TEST(wrapped_timeline_gates_a_copy)
{
    start();
    VkSemaphore raw = vk_make_timeline(&vk, 10);
    sp_vk_semaphore *timeline = wrap(raw, VK_SEMAPHORE_TYPE_TIMELINE, false);
    sp_point point = timeline_point(timeline, 11);
    gate_copy_on(&point);
    CHECK_UNWRITTEN(&copy);
    vk_copy_produce(&copy, 200);
    vk_signal(&vk, raw, 11); /* by the user, not through the library */
    CHECK(vk_copy_arrives(&copy, 200));
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(timeline);
    vk_copy_fini(&copy);
    vk_close_library(&vk);
    vk_destroy_semaphore(&vk, raw);
    vk_close(&vk);
}

TEST(chain_gates_a_copy)
{
    start();
    sp_vk_semaphore *one = make_timeline(0), *two = make_timeline(0);
    sp_point points[2] = {timeline_point(one, 1), timeline_point(two, 1)}, chain = {0};
    CHECK_STATUS(sp_chain(&points[0], &points[1], &chain), SP_OK);
    gate_copy_on(&chain);
    CHECK_UNWRITTEN(&copy);
    CHECK_STATUS(sp_vk_semaphore_signal(two, 1), SP_OK);
    CHECK_UNWRITTEN(&copy);
    vk_copy_produce(&copy, 300);
    CHECK_STATUS(sp_vk_semaphore_signal(one, 1), SP_OK);
    CHECK(vk_copy_arrives(&copy, 300));
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    sp_point_unref(&chain);
    sp_point_unref(&points[0]);
    sp_point_unref(&points[1]);
    sp_vk_semaphore_unref(one);
    sp_vk_semaphore_unref(two);
    vk_copy_fini(&copy);
    finish();
}

/* More links than one submit holds. */
TEST(long_chain_gates_a_copy)
{
    enum { LINKS = 50 };
    start();
    sp_vk_semaphore *timelines[LINKS];
    sp_point chain = sp_point_noop();
    for (unsigned i = 0; i < LINKS; i++) {
        timelines[i] = make_timeline(0);
        sp_point link = timeline_point(timelines[i], 1), longer = {0};
        CHECK_STATUS(sp_chain(&chain, &link, &longer), SP_OK);
        sp_point_unref(&chain);
        sp_point_unref(&link);
        chain = longer;
    }
    gate_copy_on(&chain);
    for (unsigned i = 1; i < LINKS; i++)
        CHECK_STATUS(sp_vk_semaphore_signal(timelines[i], 1), SP_OK);
    CHECK_UNWRITTEN(&copy);
    vk_copy_produce(&copy, 400);
    CHECK_STATUS(sp_vk_semaphore_signal(timelines[0], 1), SP_OK);
    CHECK(vk_copy_arrives(&copy, 400));
    sp_point_unref(&chain);
    for (unsigned i = 0; i < LINKS; i++)
        sp_vk_semaphore_unref(timelines[i]);
    vk_copy_fini(&copy);
    finish();
}

/* A slot that is set is the point it was set to; one that is not is no point yet. */
TEST(slot_gates_a_copy)
{
    start();
    sp_slot *slot = NULL;
    sp_point promise = {0};
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point point = timeline_point(timeline, 1);
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &promise), SP_OK);
    unsigned before = submits();
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &promise), SP_NOT_SUBMITTED);
    CHECK_EQUAL(submits(), before);
    CHECK_STATUS(sp_slot_set(slot, &point), SP_OK);
    gate_copy_on(&promise);
    CHECK_UNWRITTEN(&copy);
    vk_copy_produce(&copy, 500);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    CHECK(vk_copy_arrives(&copy, 500));
    sp_point_unref(&promise);
    sp_point_unref(&point);
    sp_slot_destroy(slot);
    sp_vk_semaphore_unref(timeline);
    vk_copy_fini(&copy);
    finish();
}

/* The library's signal covers all that was submitted before it. */
TEST(signal_covers_earlier_work)
{
    start();
    vk_gate gate;
    sp_point done = {0};
    vk_gate_init(&gate, &vk);
    vk_copy_init(&copy, &vk);
    vk_copy_produce(&copy, 600);
    vk_gate_close(&gate);
    vk_copy_submit(&copy);
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
    CHECK(done.flags & SP_POINT_HAS_VALUE);
    CHECK_EQUAL(done.kind, SP_KIND_VULKAN);
    CHECK_UNWRITTEN(&copy);
    CHECK_STATUS(sp_poll(&done), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&done, MS), SP_TIMEOUT);
    vk_gate_open_all(&gate);
    CHECK_STATUS(sp_wait(&done), SP_OK);
    CHECK_EQUAL(copy.target[VK_COPY_WORDS - 1], 600 + VK_COPY_WORDS - 1);
    CHECK(vk_copy_arrives(&copy, 600));
    sp_point_unref(&done);
    vk_gate_fini(&gate);
    vk_copy_fini(&copy);
    finish();
}

/* ---- What needs no submit, and what does ---- */

TEST(reached_points_need_no_submit)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(5);
    sp_point points[] = {sp_point_noop(), sp_point_cpu(), timeline_point(timeline, 5)};
    sp_point both = {0};
    CHECK_STATUS(sp_wait(&points[2]), SP_OK);
    CHECK_STATUS(sp_chain(&points[2], &points[2], &both), SP_OK);
    unsigned before = submits();
    for (unsigned i = 0; i < COUNT_OF(points); i++)
        CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &points[i]), SP_OK);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &both), SP_OK);
    CHECK_EQUAL(submits(), before);
    sp_point_unref(&both);
    sp_point_unref(&points[2]);
    sp_vk_semaphore_unref(timeline);
    finish();
}

static hook_batch seen;

static void remember(const hook_batch *batch)
{
    if (batch->wait_count)
        seen = *batch;
}

TEST(waits_gate_all_commands)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_point point = timeline_point(timeline, 1);
    hook_watch_submits(remember);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
    CHECK_EQUAL(seen.wait_count, 1);
    CHECK_EQUAL(seen.command_count, 0);
    CHECK(seen.waits[0].semaphore == sp_vk_semaphore_handle(timeline));
    CHECK_EQUAL(seen.waits[0].value, 1);
    CHECK_EQUAL(seen.waits[0].stages, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(timeline);
    finish();
}

/* O2 */
TEST(O2_wait_before_signal_on_the_same_queue)
{
    start();
    sp_point done = {0}, later = {0};
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
    CHECK_STATUS(sp_point_at(&done, done.value + 1, &later), SP_OK);
    unsigned before = submits();
    CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, &later), SP_ERROR_INVALID_STATE);
    CHECK_EQUAL(submits(), before);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &done), SP_OK); /* in order already */
    sp_point next = {0};
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &next), SP_OK);
    CHECK_STATUS(sp_wait(&next), SP_OK);
    sp_point_unref(&next);
    sp_point_unref(&later);
    sp_point_unref(&done);
    finish();
}

TEST(points_of_other_apis_are_refused)
{
    start();
    sp_host_timeline *timeline = NULL;
    sp_point host = {0}, chain = {0}, done = {0};
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &host), SP_OK);
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
    CHECK_STATUS(sp_chain(&done, &host, &chain), SP_OK);
    unsigned before = submits();
    CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, &host), SP_ERROR_BACKEND_MISMATCH);
    CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, &chain), SP_ERROR_BACKEND_MISMATCH);
    CHECK_EQUAL(submits(), before);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_wait(&host), SP_OK);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &host), SP_OK); /* known reached: no wait */
    sp_point_unref(&chain);
    sp_point_unref(&done);
    sp_point_unref(&host);
    sp_host_timeline_destroy(timeline);
    finish();
}

TEST(failed_points_are_refused)
{
    start();
    sp_slot *slot = NULL;
    sp_point promise = {0};
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &promise), SP_OK);
    CHECK_STATUS(sp_slot_fail(slot, SP_ERROR_SYSTEM, "gone"), SP_OK);
    unsigned before = submits();
    CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, &promise), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_SYSTEM);
    CHECK_EQUAL(submits(), before);
    sp_point_unref(&promise);
    sp_slot_destroy(slot);
    finish();
}

TEST(another_device_is_refused)
{
    start();
    vk_context second;
    sp_point done = {0}, out = test_marked_point(), marked = out;
    vk_open_second(&second, &vk);
    vk_open_library(&second, hook_install(vk.get_instance_proc_addr));
    sp_vk_semaphore *timeline = make_timeline(0);
    CHECK_STATUS(sp_vk_queue_signal(second.sp_queue, &done), SP_OK);
    unsigned before = submits();
    sp_point ours = timeline_point(timeline, 1);
    CHECK_ERROR(sp_vk_queue_wait(second.sp_queue, &ours), SP_ERROR_DEVICE_MISMATCH);
    CHECK_ERROR(sp_vk_queue_signal_semaphore(second.sp_queue, timeline, 1, &out),
                SP_ERROR_DEVICE_MISMATCH);
    CHECK(test_same_point(&out, &marked));
    CHECK_EQUAL(submits(), before);
    sp_point_unref(&ours);
    sp_point_unref(&done);
    sp_vk_semaphore_unref(timeline);
    vk_close(&second);
    vk_close(&vk);
}

/* ---- Versions ---- */

static void check_version(uint32_t version, bool synchronization2)
{
    vk_options with = *options;
    with.api_version = version;
    with.no_synchronization2 = !synchronization2;
    vk_open_both(&vk, &with, NULL);
    check_gated_by_timeline();
    vk_close_library(&vk);
    vk_open_library(&vk, hook_install(vk.get_instance_proc_addr));
    check_gated_by_timeline();
    sp_vk_semaphore *binary = make_binary();
    sp_point point = queue_signals(binary, 0);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(binary);
    CHECK((hook_calls(HOOK_QueueSubmit2) > 0) == synchronization2);
    CHECK((hook_calls(HOOK_QueueSubmit) > 0) == !synchronization2);
    vk_close(&vk);
}

TEST(vulkan_1_1)
{
    check_version(VK_API_VERSION_1_1, false);
}
TEST(vulkan_1_1_with_synchronization2)
{
    check_version(VK_API_VERSION_1_1, true);
}
TEST(vulkan_1_2)
{
    check_version(VK_API_VERSION_1_2, false);
}
TEST(vulkan_1_2_with_synchronization2)
{
    check_version(VK_API_VERSION_1_2, true);
}
TEST(vulkan_1_3)
{
    check_version(VK_API_VERSION_1_3, true);
}
TEST(vulkan_1_3_without_synchronization2)
{
    check_version(VK_API_VERSION_1_3, false);
}

/* Without the create info: timelines are taken as enabled, synchronization2 as not. */
TEST(without_create_info)
{
    vk_open(&vk, options);
    sp_vk_device_desc device = vk_device_desc(&vk, hook_install(vk.get_instance_proc_addr));
    sp_vk_queue_desc queue = vk_queue_desc(&vk);
    device.create_info = NULL;
    CHECK_STATUS(sp_vk_device_create(&device, &vk.sp_device), SP_OK);
    CHECK_STATUS(sp_vk_queue_create(vk.sp_device, &queue, &vk.sp_queue), SP_OK);
    check_gated_by_timeline();
    CHECK_EQUAL(hook_calls(HOOK_QueueSubmit2), 0);
    vk_close(&vk);
}

/* ---- Two devices ---- */

static vk_context producer;

static void open_producer(void)
{
    start();
    vk_open_second(&producer, &vk);
    vk_open_library(&producer, NULL);
}

static void close_producer(void)
{
    vk_finish(&vk);
    vk_finish(&producer);
    vk_close_library(&vk);
    vk_close(&producer);
    vk_close(&vk);
}

static void check_crossing(bool temporary, bool withheld)
{
    vk_gate gate;
    open_producer();
    sp_vk_semaphore *exported = make_exportable(&producer);
    int fd = export_fd(exported);
    sp_vk_semaphore *imported = import_fd(&vk, fd, temporary);
    close(fd);
    vk_gate_init(&gate, &producer);
    vk_gate_close(&gate);
    CHECK_STATUS(sp_vk_queue_signal_semaphore(producer.sp_queue, exported, 0, NULL), SP_OK);
    sp_point arrived = binary_point(imported, 0);
    gate_copy_on(&arrived);
    CHECK_UNWRITTEN(&copy);
    CHECK_STATUS(sp_poll(&arrived), SP_PENDING);
    if (withheld)
        CHECK_UNWRITTEN(&copy);
    vk_copy_produce(&copy, 700);
    vk_gate_open_all(&gate);
    CHECK(vk_copy_arrives(&copy, 700));
    CHECK_STATUS(sp_wait(&arrived), SP_OK);
    sp_point_unref(&arrived);
    sp_vk_semaphore_unref(imported);
    sp_vk_semaphore_unref(exported);
    vk_gate_fini(&gate);
    vk_copy_fini(&copy);
    close_producer();
}

TEST_NEEDING(binary_of_another_device_gates_a_copy, WITH_OPAQUE_FD)
{
    check_crossing(false, false);
}

TEST_NEEDING(temporary_import_gates_a_copy, WITH_OPAQUE_FD)
{
    check_crossing(true, false);
}
TEST_NEEDING(O3_other_device_withholds, WITH_OPAQUE_FD)
{
    check_crossing(false, true);
}

/* And back: the consumer's own signal, on the host of the other device. */
TEST_NEEDING(host_waits_for_another_device, WITH_OPAQUE_FD)
{
    vk_gate gate;
    open_producer();
    sp_vk_semaphore *exported = make_exportable(&producer);
    int fd = export_fd(exported);
    sp_vk_semaphore *imported = import_fd(&vk, fd, false);
    close(fd);
    vk_gate_init(&gate, &producer);
    for (unsigned round = 0; round < 3; round++) {
        vk_gate_close(&gate);
        CHECK_STATUS(sp_vk_queue_signal_semaphore(producer.sp_queue, exported, 0, NULL), SP_OK);
        sp_point arrived = binary_point(imported, 0);
        CHECK_STATUS(sp_poll(&arrived), SP_PENDING);
        CHECK_STATUS(sp_wait_timeout(&arrived, DELAY_MS * MS), SP_TIMEOUT);
        CHECK_STATUS(sp_poll(&arrived), SP_PENDING);
        vk_gate_open_all(&gate);
        CHECK_STATUS(sp_wait(&arrived), SP_OK);
        CHECK_STATUS(sp_poll(&arrived), SP_OK);
        sp_point_unref(&arrived);
    }
    sp_vk_semaphore_unref(imported);
    sp_vk_semaphore_unref(exported);
    vk_gate_fini(&gate);
    close_producer();
}

/* A signal whose point is released is the other side's to wait for; then comes the next one. */
TEST_NEEDING(released_signals_are_left_to_another_device, WITH_OPAQUE_FD)
{
    open_producer();
    sp_vk_semaphore *exported = make_exportable(&producer);
    int fd = export_fd(exported);
    sp_vk_semaphore *imported = import_fd(&vk, fd, false);
    close(fd);
    for (unsigned round = 0; round < 3; round++) {
        sp_point sent = {0}, refused = {0};
        CHECK_STATUS(sp_vk_queue_signal_semaphore(producer.sp_queue, exported, 0, &sent), SP_OK);
        CHECK_ERROR(sp_vk_queue_signal_semaphore(producer.sp_queue, exported, 0, &refused),
                    SP_ERROR_INVALID_STATE);
        sp_point_unref(&sent);
        sp_point arrived = binary_point(imported, 0);
        CHECK_STATUS(sp_wait(&arrived), SP_OK);
        sp_point_unref(&arrived);
    }
    sp_vk_semaphore_unref(imported);
    sp_vk_semaphore_unref(exported);
    close_producer();
}

/* A chain of a few dozen calls that holds millions of points: each part is looked at once. */
TEST(chains_that_share_parts)
{
    start();
    enum { CALLS_OF_CHAIN = 60 };
    sp_vk_semaphore *timelines[2] = {make_timeline(0), make_timeline(0)};
    sp_point parts[CALLS_OF_CHAIN + 2];
    parts[0] = timeline_point(timelines[0], 1);
    parts[1] = timeline_point(timelines[1], 1);
    for (unsigned i = 2; i < COUNT_OF(parts); i++)
        CHECK_STATUS(sp_chain(&parts[i - 1], &parts[i - 2], &parts[i]), SP_OK);
    unsigned before = submits();
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &parts[CALLS_OF_CHAIN + 1]), SP_OK);
    CHECK_EQUAL(submits(), before + 1);
    sp_point done = {0};
    CHECK_STATUS(sp_vk_queue_signal(vk.sp_queue, &done), SP_OK);
    CHECK_STATUS(sp_vk_semaphore_signal(timelines[0], 1), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&done, DELAY_MS * MS), SP_TIMEOUT);
    CHECK_STATUS(sp_vk_semaphore_signal(timelines[1], 1), SP_OK);
    CHECK_STATUS(sp_wait(&done), SP_OK);
    for (unsigned i = 0; i < COUNT_OF(parts); i++)
        sp_point_unref(&parts[i]);
    sp_point_unref(&done);
    sp_vk_semaphore_unref(timelines[0]);
    sp_vk_semaphore_unref(timelines[1]);
    finish();
}
