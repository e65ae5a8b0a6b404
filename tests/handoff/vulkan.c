/* SPDX-License-Identifier: MIT
 *
 * The Vulkan synchronizer.
 */
#include "frames.h"

#include <limits.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

static vk_copy copy;
static vk_gate producer_gate;

static void hold_producer(void)
{
    vk_gate_init(&producer_gate, &producer);
    vk_gate_close(&producer_gate);
}

static const sp_texture texture = {
    .size = sizeof(sp_texture),
    .kind = SP_FRAME_VULKAN_OPAQUE_FD,
};

/* ---- Gating ---- */

TEST_NEEDING(a_frame_gates_the_hosts_queue, WITH_OPAQUE_FD)
{
    open_frames();
    hold_producer();
    vk_copy_init(&copy, &vk);
    sp_frame frame = make_frame();
    CHECK_STATUS(complete(&frame), SP_OK); /* does not block on the producer */
    CHECK_STATUS(sp_synchronizer_consumer_ready(synchronizer, &texture,
                                                SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE),
                 SP_OK);
    vk_copy_submit(&copy); /* a transfer: all commands are gated */
    sp_point gate = last_gate();
    CHECK_STATUS(sp_poll(&gate), SP_PENDING);
    CHECK_UNWRITTEN(&copy);
    vk_copy_produce(&copy, 70);
    vk_gate_open_all(&producer_gate);
    CHECK(vk_copy_arrives(&copy, 70));
    CHECK_STATUS(sp_wait(&gate), SP_OK);
    sp_point_unref(&gate);
    drop_frame(&frame);
    vk_gate_fini(&producer_gate);
    vk_finish(&vk);
    vk_copy_fini(&copy);
    close_frames();
}

/* O3 */
TEST_NEEDING(O3_a_frame_that_never_comes, WITH_OPAQUE_FD)
{
    open_frames();
    hold_producer();
    vk_copy_init(&copy, &vk);
    sp_frame frame = make_frame();
    CHECK_STATUS(complete(&frame), SP_OK);
    vk_copy_submit(&copy);
    for (unsigned i = 0; i < 3; i++)
        CHECK_UNWRITTEN(&copy);
    sp_point gate = last_gate();
    CHECK_STATUS(sp_wait_timeout(&gate, MS), SP_TIMEOUT);
    sp_point_unref(&gate);
    drop_frame(&frame);
    vk_gate_fini(&producer_gate); /* so that all can be freed */
    vk_finish(&vk);
    vk_copy_fini(&copy);
    close_frames();
}

static hook_batch seen;

static void remember(const hook_batch *batch)
{
    if (batch->wait_count)
        seen = *batch;
}

TEST_NEEDING(the_wait_is_for_all_commands, WITH_OPAQUE_FD)
{
    open_frames();
    sp_frame frame = make_frame();
    hook_watch_submits(remember);
    unsigned locks = vk.lock.by_library, before = submits();
    CHECK_STATUS(complete(&frame), SP_OK);
    CHECK_EQUAL(submits(), before + 1);
    CHECK_EQUAL(vk.lock.by_library, locks + 1);
    CHECK_EQUAL(seen.wait_count, 1);
    CHECK_EQUAL(seen.command_count, 0);
    CHECK_EQUAL(seen.waits[0].stages, VK_PIPELINE_STAGE_ALL_COMMANDS_BIT);
    CHECK_STATUS(sp_synchronizer_consumer_ready(synchronizer, &texture,
                                                SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE),
                 SP_OK);
    CHECK_EQUAL(submits(), before + 1);
    drop_frame(&frame);
    close_frames();
}

TEST_NEEDING(frames_in_order, WITH_OPAQUE_FD)
{
    enum { FRAMES = 5 };
    open_frames();
    uint64_t gates[FRAMES];
    sp_point passed[FRAMES];
    vk_gate_init(&producer_gate, &producer);
    for (unsigned i = 0; i < FRAMES; i++) {
        gates[i] = vk_gate_close(&producer_gate);
        sp_frame frame = make_frame();
        CHECK_STATUS(complete(&frame), SP_OK);
        passed[i] = last_gate();
        drop_frame(&frame);
    }
    for (unsigned i = 0; i < FRAMES; i++) {
        CHECK_STATUS(sp_wait_timeout(&passed[i], 10 * MS), SP_TIMEOUT);
        vk_gate_open(&producer_gate, gates[i]);
        CHECK_STATUS(sp_wait(&passed[i]), SP_OK);
        sp_point_unref(&passed[i]);
    }
    vk_gate_fini(&producer_gate);
    close_frames();
}

/* ---- What it takes and what not ---- */

TEST_NEEDING(mechanisms_that_are_no_ops, WITH_OPAQUE_FD)
{
    open_frames();
    const sp_mechanism none[] = {SP_MECHANISM_NONE, SP_MECHANISM_IMPLICIT_GL_FLUSH};
    unsigned before = hook_all_calls();
    for (unsigned i = 0; i < 2; i++) {
        for (int kind = SP_FRAME_UNKNOWN; kind <= SP_FRAME_GL_TEXTURE; kind++) {
            sp_frame frame = {
                .size = sizeof(frame), .kind = (sp_frame_kind)kind, .semaphore_fd = -1};
            sp_texture any = {.size = sizeof(any), .kind = (sp_frame_kind)kind};
            CHECK_STATUS(sp_synchronizer_producer_complete(synchronizer, &frame, none[i]), SP_OK);
            CHECK_STATUS(sp_synchronizer_consumer_ready(synchronizer, &any, none[i]), SP_OK);
        }
    }
    CHECK_EQUAL(hook_all_calls(), before);
    sp_point gate = last_gate();
    CHECK_EQUAL(gate.kind, SP_KIND_NOOP);
    close_frames();
}

TEST_NEEDING(what_it_refuses, WITH_OPAQUE_FD)
{
    open_frames();
    const sp_mechanism semaphore = SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE;
    sp_frame frame = make_frame();
    unsigned before = submits();
    CHECK_ERROR(
        sp_synchronizer_producer_complete(synchronizer, &frame, SP_MECHANISM_EXPLICIT_FENCE),
        SP_ERROR_UNSUPPORTED_SYNCHRONIZATION);
    CHECK_ERROR(sp_synchronizer_consumer_ready(synchronizer, &texture, SP_MECHANISM_EXPLICIT_FENCE),
                SP_ERROR_UNSUPPORTED_SYNCHRONIZATION);
    CHECK_ERROR(sp_synchronizer_producer_complete(synchronizer, &frame, (sp_mechanism)77),
                SP_ERROR_UNSUPPORTED_SYNCHRONIZATION);
    for (int kind = SP_FRAME_UNKNOWN; kind <= SP_FRAME_GL_TEXTURE + 1; kind++) {
        sp_texture other = {.size = sizeof(other), .kind = (sp_frame_kind)kind};
        if (kind == SP_FRAME_VULKAN_OPAQUE_FD)
            continue;
        frame.kind = (sp_frame_kind)kind;
        CHECK_ERROR(complete(&frame), SP_ERROR_INVALID_FRAME);
        CHECK_ERROR(sp_synchronizer_consumer_ready(synchronizer, &other, semaphore),
                    SP_ERROR_INVALID_FRAME);
    }
    frame.kind = SP_FRAME_VULKAN_OPAQUE_FD;
    frame.size--;
    CHECK_ERROR(complete(&frame), SP_ERROR_INVALID_ARGUMENT);
    frame.size++;
    CHECK_EQUAL(submits(), before);
    CHECK_STATUS(complete(&frame), SP_OK); /* the same frame, now right */
    drop_frame(&frame);
    close_frames();
}

TEST_NEEDING(explicit_without_a_usable_handle, WITH_OPAQUE_FD)
{
    open_frames();
    const int fds[] = {-1, -2, INT_MIN, INT_MAX, census_free_number() + 2, eventfd(0, EFD_CLOEXEC)};
    sp_frame warm = make_frame();
    CHECK_STATUS(complete(&warm), SP_OK);
    drop_frame(&warm);
    const unsigned before = submits();
    const unsigned imports = hook_calls(HOOK_ImportSemaphoreFdKHR);
    unsigned open = census_open_handles();
    for (unsigned i = 0; i < COUNT_OF(fds); i++) {
        for (unsigned adopt = 0; adopt < 2; adopt++) {
            const sp_frame frame = {
                .size = sizeof(frame),
                .kind = SP_FRAME_VULKAN_OPAQUE_FD,
                .semaphore_fd = fds[i],
                .adopt_fd = adopt,
            };
            CHECK_ERROR(complete(&frame), SP_ERROR_INVALID_HANDLE);
        }
    }
    CHECK_HANDLES(open);
    CHECK_EQUAL(submits(), before);
    CHECK_EQUAL(hook_calls(HOOK_ImportSemaphoreFdKHR), imports);
    close(fds[COUNT_OF(fds) - 1]);
    close_frames();
}

TEST(a_host_that_cannot_import)
{
    vk_options with = *options;
    with.no_semaphore_fd = true;
    vk_open(&vk, &with);
    vk_open_library(&vk, hook_install(vk.get_instance_proc_addr));
    sp_synchronizer *out = (sp_synchronizer *)16;
    const sp_host host = {
        .size = sizeof(host),
        .backend = SP_BACKEND_VULKAN,
        .queue = vk.sp_queue,
    };
    CHECK_ERROR(sp_synchronizer_create_vulkan(&host, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK(out == (sp_synchronizer *)16);
    finish();
}

/* ---- Whose fd it is ---- */

TEST_NEEDING(adopt_on_success_only, WITH_OPAQUE_FD)
{
    open_frames();
    sp_frame frame = make_frame();
    CHECK_STATUS(complete(&frame), SP_OK);
    CHECK(census_is_open(frame.semaphore_fd)); /* duplicated */
    drop_frame(&frame);
    frame = make_frame();
    frame.adopt_fd = true;
    hook_fail(HOOK_QueueSubmit2, VK_ERROR_OUT_OF_DEVICE_MEMORY, 0, 1);
    CHECK_ERROR(complete(&frame), SP_ERROR_OUT_OF_MEMORY);
    CHECK(census_is_open(frame.semaphore_fd));
    hook_fail(HOOK_ImportSemaphoreFdKHR, VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
    CHECK_ERROR(complete(&frame), SP_ERROR_OUT_OF_MEMORY);
    CHECK(census_is_open(frame.semaphore_fd));
    CHECK_STATUS(complete(&frame), SP_OK);
    CHECK(!census_is_open(frame.semaphore_fd));
    close_frames();
}

/* A submit fails: nothing was queued, and the same frame works when it is given again. */
TEST_NEEDING(the_same_frame_again_after_a_failed_submit, WITH_OPAQUE_FD)
{
    open_frames();
    hold_producer();
    vk_copy_init(&copy, &vk);
    sp_frame frame = make_frame();
    frame.adopt_fd = true;
    for (unsigned i = 0; i < 3; i++) {
        hook_fail(HOOK_QueueSubmit2, VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
        CHECK_ERROR(complete(&frame), SP_ERROR_OUT_OF_MEMORY);
    }
    sp_point gate = last_gate();
    CHECK_EQUAL(gate.kind, SP_KIND_NOOP);
    vk_finish(&vk); /* the queue is not gated */
    CHECK_STATUS(complete(&frame), SP_OK);
    vk_copy_submit(&copy);
    CHECK_UNWRITTEN(&copy);
    vk_copy_produce(&copy, 71);
    vk_gate_open_all(&producer_gate);
    CHECK(vk_copy_arrives(&copy, 71));
    vk_gate_fini(&producer_gate);
    vk_finish(&vk);
    vk_copy_fini(&copy);
    close_frames();
}

/* ---- The pool ---- */

#define WATCHED 512

typedef struct pending_wait {
    VkSemaphore semaphore;
    VkSemaphore progress; /* a timeline that the same batch signals */
    uint64_t value;
} pending_wait;

static pending_wait waits[WATCHED];
static unsigned wait_count;
static unsigned imported_while_pending;

static void note_wait(const hook_batch *batch)
{
    if (batch->result != VK_SUCCESS)
        return;
    for (unsigned i = 0; i < batch->wait_count; i++) {
        if (batch->waits[i].value != 0)
            continue;
        assert_true(wait_count < WATCHED && batch->signal_count > 0);
        waits[wait_count++] = (pending_wait){
            batch->waits[i].semaphore,
            batch->signals[batch->signal_count - 1].semaphore,
            batch->signals[batch->signal_count - 1].value,
        };
    }
}

static VKAPI_ATTR VkResult VKAPI_CALL watch_import(VkDevice device,
                                                   const VkImportSemaphoreFdInfoKHR *info)
{
    for (unsigned i = 0; i < wait_count; i++) {
        if (waits[i].semaphore == info->semaphore &&
            vk_counter(&vk, waits[i].progress) < waits[i].value)
            imported_while_pending++;
    }
    return hook_real.ImportSemaphoreFdKHR(device, info);
}

TEST_NEEDING(never_imports_to_a_semaphore_with_a_pending_wait, WITH_OPAQUE_FD)
{
    enum { FRAMES = 300, DEEP = 10 };
    open_frames();
    test_rng rng = {4711};
    sp_point gates[DEEP] = {{0}}; /* of the last frames */
    vk_gate_init(&producer_gate, &producer);
    hook_watch_submits(note_wait);
    HOOK_REPLACE(ImportSemaphoreFdKHR, watch_import);
    unsigned made = hook_calls(HOOK_CreateSemaphore);
    for (unsigned i = 0; i < FRAMES; i++) {
        uint64_t value = vk_gate_close(&producer_gate);
        sp_frame frame = make_frame();
        frame.adopt_fd = true;
        CHECK_STATUS(complete(&frame), SP_OK);
        unsigned lag = test_random_below(&rng, DEEP);
        if (value > lag)
            vk_gate_open(&producer_gate, value - lag);
        CHECK_STATUS(sp_wait(&gates[i % DEEP]), SP_OK); /* frame i - DEEP */
        sp_point_unref(&gates[i % DEEP]);
        gates[i % DEEP] = last_gate();
    }
    CHECK_EQUAL(imported_while_pending, 0);
    /* And it does use them again: no more than were ever needed at once. */
    CHECK(hook_calls(HOOK_CreateSemaphore) - made <= DEEP + 2);
    for (unsigned i = 0; i < DEEP; i++)
        sp_point_unref(&gates[i]);
    vk_gate_fini(&producer_gate);
    close_frames();
}

/* ---- The end ---- */

TEST_NEEDING(destroy_with_a_pending_gate, WITH_OPAQUE_FD)
{
    open_frames();
    hold_producer();
    sp_frame frame = make_frame();
    CHECK_STATUS(complete(&frame), SP_OK);
    const uint64_t timeouts[] = {0, 1, 20 * MS};
    for (unsigned i = 0; i < COUNT_OF(timeouts); i++) {
        uint64_t begin = sp_now_ns();
        CHECK_STATUS(sp_synchronizer_destroy(synchronizer, timeouts[i]), SP_TIMEOUT);
        CHECK(sp_now_ns() - begin >= timeouts[i]);
    }
    sp_frame another = make_frame(); /* nothing was freed: it still works */
    CHECK_STATUS(complete(&another), SP_OK);
    vk_gate_open_all(&producer_gate);
    CHECK_STATUS(sp_synchronizer_destroy(synchronizer, PATIENCE_NS), SP_OK);
    synchronizer = NULL;
    drop_frame(&frame);
    drop_frame(&another);
    vk_gate_fini(&producer_gate);
    close_frames();
}

TEST_NEEDING(gate_points_outlive_the_synchronizer, WITH_OPAQUE_FD)
{
    open_frames();
    sp_frame frame = make_frame();
    CHECK_STATUS(complete(&frame), SP_OK);
    sp_point gate = last_gate();
    CHECK_STATUS(sp_synchronizer_destroy(synchronizer, PATIENCE_NS), SP_OK);
    synchronizer = NULL;
    CHECK_STATUS(sp_wait(&gate), SP_OK);
    sp_point_unref(&gate);
    drop_frame(&frame);
    close_frames();
}

TEST_NEEDING(a_lost_device, WITH_OPAQUE_FD)
{
    open_frames();
    sp_frame frame = make_frame();
    frame.adopt_fd = true;
    hook_lose_device(true);
    CHECK_ERROR(complete(&frame), SP_ERROR_DEVICE_LOST);
    CHECK(census_is_open(frame.semaphore_fd));
    CHECK_STATUS(sp_synchronizer_destroy(synchronizer, PATIENCE_NS), SP_OK);
    synchronizer = NULL;
    drop_frame(&frame);
    close_frames();
}

/* F1 */
TEST_NEEDING(F1_child_of_a_fork, WITH_OPAQUE_FD)
{
    open_frames();
    sp_frame frame = make_frame();
    CHECK_STATUS(complete(&frame), SP_OK);
    pid_t child = fork();
    if (child == 0) {
        unsigned calls = hook_all_calls();
        sp_point gate = {0};
        int wrong = 0;
        wrong += complete(&frame) != SP_ERROR_FORKED;
        wrong += sp_synchronizer_consumer_ready(synchronizer, &texture, SP_MECHANISM_NONE) !=
                 SP_ERROR_FORKED;
        wrong += sp_synchronizer_last_gate(synchronizer, &gate) != SP_ERROR_FORKED;
        wrong += sp_synchronizer_destroy(synchronizer, SP_FOREVER) != SP_ERROR_FORKED;
        wrong += hook_all_calls() != calls;
        _exit(wrong);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
    drop_frame(&frame);
    frame = make_frame(); /* the parent goes on */
    CHECK_STATUS(complete(&frame), SP_OK);
    drop_frame(&frame);
    close_frames();
}

/* ---- Many frames ---- */

static void one_good_frame(unsigned number)
{
    sp_frame frame = make_frame();
    frame.adopt_fd = number % 2;
    CHECK_STATUS(complete(&frame), SP_OK);
    CHECK_STATUS(sp_synchronizer_consumer_ready(synchronizer, &texture,
                                                SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE),
                 SP_OK);
    if (!frame.adopt_fd)
        drop_frame(&frame);
    if (number % 8 == 0) {
        sp_point gate = last_gate();
        CHECK_STATUS(sp_wait(&gate), SP_OK);
        sp_point_unref(&gate);
    }
}

TEST_NEEDING(open_handles_over_1000_frames, WITH_OPAQUE_FD)
{
    open_frames();
    for (unsigned i = 0; i < 16; i++)
        one_good_frame(i);
    vk_finish(&producer);
    vk_finish(&vk);
    one_good_frame(0);
    unsigned before = census_open_handles();
    for (unsigned i = 0; i <= 1000; i++)
        one_good_frame(i);
    one_good_frame(0);
    sp_point gate = last_gate();
    CHECK_STATUS(sp_wait(&gate), SP_OK);
    sp_point_unref(&gate);
    /* The driver keeps a handle for each semaphore that is pooled: a few, however many frames. */
    CHECK(census_open_handles() <= before + 16);
    close_frames();
}

TEST_NEEDING(open_handles_over_1000_failing_frames, WITH_OPAQUE_FD)
{
    open_frames();
    sp_frame frame = make_frame();
    CHECK_STATUS(complete(&frame), SP_OK);
    sp_point gate = last_gate();
    CHECK_STATUS(sp_wait(&gate), SP_OK);
    sp_point_unref(&gate);
    drop_frame(&frame);
    frame = make_frame();
    frame.adopt_fd = true;
    unsigned steps = hook_steps();
    hook_fail(HOOK_QueueSubmit2, VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
    CHECK_ERROR(complete(&frame), SP_ERROR_OUT_OF_MEMORY);
    steps = hook_steps() - steps;
    unsigned before = census_open_handles(), live = hook_live_semaphores();
    for (unsigned i = 0; i < 1000; i++) {
        hook_fail_step(i % 2 ? VK_ERROR_OUT_OF_HOST_MEMORY : VK_ERROR_OUT_OF_DEVICE_MEMORY,
                       i % steps);
        sp_status status = complete(&frame);
        hook_heal();
        if (status == SP_OK) { /* the step that failed was not needed: another frame */
            frame = make_frame();
            frame.adopt_fd = true;
            continue;
        }
        CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
        CHECK(census_is_open(frame.semaphore_fd));
    }
    CHECK(census_open_handles() <= before + 4);
    CHECK(hook_live_semaphores() <= live + 4);
    CHECK_STATUS(complete(&frame), SP_OK);
    close_frames();
}
