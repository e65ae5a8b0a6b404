/* SPDX-License-Identifier: MIT
 *
 * Contexts that break, that are gone, and calls that fail.
 */
#include "cu_peer.h"

#include <stdlib.h>
#include <unistd.h>

/* ---- Sticky errors ---- */

TEST(a_broken_context_is_lost)
{
    start();
    sp_point done = stream_point(ctx.stream), known = sp_point_ref(&done);
    CHECK_STATUS(sp_wait(&known), SP_OK);
    gate_close(ctx.stream, 1);
    sp_point pending = stream_point(ctx.stream), unchanged = test_marked_point(),
             marked = test_marked_point();
    cu_break(&ctx, cu_new_stream());
    CHECK_ERROR(sp_wait_timeout(&pending, PATIENCE_NS), SP_ERROR_DEVICE_LOST);
    CHECK_EQUAL(sp_last_error()->native_code, 700);
    CHECK_ERROR(sp_poll(&pending), SP_ERROR_DEVICE_LOST);
    CHECK_STATUS(sp_poll(&done), SP_OK);
    CHECK_ERROR(sp_cuda_stream_signal(ctx.sp, ctx.stream, &unchanged), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &pending), SP_ERROR_DEVICE_LOST);
    CHECK(test_same_point(&unchanged, &marked));
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, 0), SP_OK); /* nothing to wait for */
    ctx.sp = NULL;
    CHECK_ERROR(sp_poll(&pending), SP_ERROR_DEVICE_LOST);
    sp_point_unref(&done);
    sp_point_unref(&known);
    sp_point_unref(&pending);
    finish();
}

TEST_NEEDING(sticky_errors_and_others, ON_DOUBLE)
{
    static const int sticky[] = {214, 220, 226, 700, 702, 710, 714, 715,
                                 716, 717, 718, 719, 721, 810, 911};
    for (unsigned i = 0; i < COUNT_OF(sticky); i++) {
        start();
        gate_close(ctx.stream, 1);
        sp_point one = stream_point(ctx.stream), two = stream_point(ctx.stream);
        cu_control->inject("cuEventQuery", 0, 1, sticky[i]);
        CHECK_ERROR(sp_poll(&one), SP_ERROR_DEVICE_LOST);
        CHECK_EQUAL(sp_last_error()->native_code, sticky[i]);
        unsigned before = calls(NULL);
        CHECK_ERROR(sp_poll(&two), SP_ERROR_DEVICE_LOST); /* known of all */
        CHECK_ERROR(sp_poll(&one), SP_ERROR_DEVICE_LOST);
        CHECK_EQUAL(calls(NULL), before);
        sp_point_unref(&one);
        sp_point_unref(&two);
        finish();
    }
    static const struct {
        int result;
        sp_status status;
    } others[] = {
        {1, SP_ERROR_INVALID_ARGUMENT}, {2, SP_ERROR_OUT_OF_MEMORY},
        {801, SP_ERROR_NOT_SUPPORTED},  {900, SP_ERROR_INVALID_STATE},
        {906, SP_ERROR_INVALID_STATE},  {999, SP_ERROR_BACKEND},
        {12345, SP_ERROR_BACKEND},
    };
    for (unsigned i = 0; i < COUNT_OF(others); i++) {
        sp_point unchanged = test_marked_point(), marked = test_marked_point();
        start();
        cu_control->inject("cuEventRecord", 0, 1, others[i].result);
        CHECK_ERROR(sp_cuda_stream_signal(ctx.sp, ctx.stream, &unchanged), others[i].status);
        CHECK_EQUAL(sp_last_error()->native_code, others[i].result);
        CHECK(sp_last_error()->backend == SP_BACKEND_CUDA);
        CHECK(test_same_point(&unchanged, &marked));
        sp_point point = stream_point(ctx.stream); /* nothing stuck */
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
        finish();
    }
}

/* ---- H1 ---- */

typedef struct failing_step {
    const char *call;
    sp_status (*attempt)(void);
} failing_step;

static sp_point made;
static cu_peer peer;
static sp_cuda_semaphore *timeline, *binary;
static uint64_t next_value = 1;

static sp_status try_signal(void)
{
    return sp_cuda_stream_signal(ctx.sp, ctx.stream, &made);
}
static sp_status try_signal_ipc(void)
{
    uint8_t handle[SP_CUDA_IPC_SIZE];
    return sp_cuda_stream_signal_ipc(ctx.sp, ctx.stream, handle, &made);
}
static sp_status try_signal_value(void)
{
    return sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, next_value, &made);
}
static sp_status try_signal_on_a_new_stream(void)
{
    CUstream stream = cu_new_stream();
    sp_status status = sp_cuda_stream_signal(ctx.sp, stream, &made);
    CHECK_CU(cu.StreamDestroy(stream));
    return status;
}
static sp_status try_signal_binary(void)
{
    return sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, binary, 0, &made);
}
static sp_status try_wait(void)
{
    sp_point point = timeline_point(timeline, next_value + 10);
    sp_status status = sp_cuda_stream_wait(ctx.sp, ctx.stream, &point);
    sp_point_unref(&point);
    return status;
}
static sp_status try_host_wait(void)
{
    sp_cuda_semaphore *fresh = peer_import(&peer, NULL);
    sp_point point = timeline_point(fresh, next_value + 10);
    sp_status status = sp_wait_timeout(&point, PATIENCE_NS);
    sp_point_unref(&point);
    sp_cuda_semaphore_unref(fresh);
    return status;
}

/* A host wait that fails breaks nothing, so its error is not one that is kept. */
static sp_status expected_of(const failing_step *step)
{
    return step->attempt == try_host_wait ? SP_ERROR_INVALID_STATE : SP_ERROR_BACKEND;
}

static const failing_step every_step[] = {
    {"cuStreamIsCapturing", try_signal},
    {"cuStreamGetCtx", try_signal_on_a_new_stream},
    {"cuEventRecord", try_signal},
    {"cuEventCreate", try_signal_ipc},
    {"cuEventRecord", try_signal_ipc},
    {"cuIpcGetEventHandle", try_signal_ipc},
    {"cuSignalExternalSemaphoresAsync", try_signal_value},
    {"cuSignalExternalSemaphoresAsync", try_signal_binary},
    {"cuStreamGetCtx", try_signal_binary},
    {"cuWaitExternalSemaphoresAsync", try_wait},
    {"cuStreamIsCapturing", try_wait},
    {"cuStreamCreate", try_host_wait},
    {"cuWaitExternalSemaphoresAsync", try_host_wait},
};

/* Each call that each function makes, failing for an ordinary reason, is told, and nothing is lost
 * by it. */
TEST_NEEDING(H1_every_step_fails, ON_DOUBLE)
{
    cu_peer other;
    start();
    peer_init(&peer, true);
    peer_init(&other, false);
    timeline = peer_import(&peer, NULL);
    binary = peer_import(&other, NULL);
    sp_point point = stream_point(ctx.stream); /* fills the pools */
    sp_point_unref(&point);
    for (unsigned i = 0; i < COUNT_OF(every_step); i++) {
        unsigned handles = census_open_handles();
        unsigned events = cu_control->live(CUDA_DOUBLE_EVENT);
        for (unsigned round = 0; round < 1000; round++) {
            made = test_marked_point();
            sp_point marked = test_marked_point();
            cu_control->inject(every_step[i].call, 0, 1, 999);
            CHECK_ERROR(every_step[i].attempt(), expected_of(&every_step[i]));
            CHECK_EQUAL(cu_control->failed(), 1);
            CHECK(test_same_point(&made, &marked));
        }
        CHECK(cu_control->live(CUDA_DOUBLE_EVENT) <= events + 1); /* one more spare */
        CHECK_HANDLES(handles);
        CHECK_EQUAL(cu_control->capture_mode(), 0);
    }
    sp_cuda_semaphore_unref(timeline);
    sp_cuda_semaphore_unref(binary);
    finish();
    peer_fini(&peer);
    peer_fini(&other);
}

/* What was enqueued, but could not be marked, is not forgotten: nobody knows when the context is
 * idle, so all semaphores go with it. */
TEST_NEEDING(an_operation_without_a_mark, ON_DOUBLE)
{
    static const failing_step steps[] = {
        {"cuEventRecord", try_signal_value},
        {"cuEventRecord", try_signal_binary},
        {"cuEventRecord", try_wait},
        {"cuEventRecord", try_host_wait},
    };
    for (unsigned i = 0; i < COUNT_OF(steps); i++) {
        cu_peer other;
        start();
        peer_init(&peer, true);
        peer_init(&other, false);
        timeline = peer_import(&peer, NULL);
        binary = peer_import(&other, NULL);
        cu_control->inject(steps[i].call, 0, 1, 999);
        made = sp_point_noop();
        if (i < 2) /* it is enqueued, and that is what was asked for */
            CHECK_STATUS(steps[i].attempt(), SP_OK);
        else
            CHECK_ERROR(steps[i].attempt(), expected_of(&steps[i]));
        CHECK_EQUAL(cu_control->failed(), 1);
        sp_point_unref(&made);
        sp_cuda_semaphore_unref(timeline);
        sp_cuda_semaphore_unref(binary);
        CHECK_STATUS(sp_cuda_context_collect(ctx.sp), SP_OK);
        CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, 0), SP_OK);
        ctx.sp = NULL;
        CHECK_EQUAL(calls("cuDestroyExternalSemaphore"), 0);
        if (steps[i].attempt != try_wait)
            CHECK_CU(cu.StreamSynchronize(ctx.stream));
        peer_signal(&peer, next_value + 10);
        CHECK_CU(cu.StreamSynchronize(ctx.stream));
        for (unsigned wait = 0; wait < 100 && cu_control->pending(); wait++)
            test_sleep_ms(10);
        finish();
        peer_fini(&peer);
        peer_fini(&other);
    }
}

TEST_NEEDING(a_claimed_signal_without_a_mark_fails, ON_DOUBLE)
{
    for (unsigned host = 0; host < 2; host++) {
        start();
        peer_init(&peer, false);
        binary = peer_import(&peer, NULL);
        sp_point point = binary_point(binary, 0);
        cu_control->inject("cuEventRecord", 0, 1, 999);
        CHECK_ERROR(host ? sp_wait(&point) : sp_cuda_stream_wait(ctx.sp, ctx.stream, &point),
                    SP_ERROR_BACKEND);
        CHECK_ERROR(sp_wait(&point), SP_ERROR_BACKEND); /* not for ever */
        peer_signal(&peer, 0);
        sp_point_unref(&point);
        sp_cuda_semaphore_unref(binary);
        for (unsigned wait = 0; wait < 100 && cu_control->pending(); wait++)
            test_sleep_ms(10);
        finish();
        peer_fini(&peer);
    }
}

/* ---- C2: the CUcontext went first ---- */

static void check_gone(sp_point *points, unsigned count, bool reached)
{
    sp_point unchanged = test_marked_point(), marked = test_marked_point();
    for (unsigned i = 0; i < count; i++) {
        if (reached)
            CHECK_STATUS(sp_poll(&points[i]), SP_OK);
        else
            CHECK_ERROR(sp_wait_timeout(&points[i], 10 * MS), SP_ERROR_INVALID_STATE);
        CHECK(sp_cuda_event_from_point(&points[i]) == NULL || reached);
    }
    CHECK_ERROR(sp_cuda_stream_signal(ctx.sp, NULL, &unchanged), SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&unchanged, &marked));
    for (unsigned i = 0; i < count; i++)
        sp_point_unref(&points[i]);
}

static void end_context(void)
{
    gate_open(1000);
    CHECK_CU(cu.StreamSynchronize(ctx.stream));
    CHECK_CU(cu.CtxDestroy(ctx.handle));
}

TEST(C2_context_destroyed_before_the_points)
{
    sp_point points[3];
    start();
    peer_init(&peer, true);
    timeline = peer_import(&peer, NULL);
    gate_close(ctx.stream, 1);
    points[0] = stream_point(ctx.stream);
    points[1] = stream_signals(ctx.stream, timeline, 1);
    CUevent event = NULL;
    CHECK_CU(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    CHECK_CU(cu.EventRecord(event, ctx.stream));
    const sp_cuda_event_wrap_desc desc = {.size = sizeof(desc), .event = event, .take = true};
    CHECK_STATUS(sp_cuda_event_wrap(ctx.sp, &desc, &points[2]), SP_OK);
    end_context();
    check_gone(points, 3, false);
    CHECK(sp_cuda_semaphore_handle(timeline) == NULL);
    sp_cuda_semaphore_unref(timeline);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, 0), SP_OK);
    if (cu_control)
        CHECK_EQUAL(cu_control->misuse(), 0);
    peer_fini(&peer);
}

TEST(C2_reached_points_stay_reached)
{
    start();
    sp_point point = stream_point(ctx.stream);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    end_context();
    CHECK_STATUS(sp_poll(&point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, 0), SP_OK);
    if (cu_control)
        CHECK_EQUAL(cu_control->misuse(), 0);
}

/* Another CUcontext, at the same address if the driver does so, is not taken for the first. */
TEST_NEEDING(C2_the_address_is_used_again, WITH_IDS)
{
    start();
    gate_close(ctx.stream, 1);
    sp_point point = stream_point(ctx.stream);
    CUcontext before = ctx.handle, after = NULL;
    end_context();
    CHECK_CU(cu.CtxCreate(&after, 0, 0));
    CHECK(after == before || !cu_control);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_INVALID_STATE);
    sp_point unchanged = test_marked_point();
    CHECK_ERROR(sp_cuda_stream_signal(ctx.sp, cu_new_stream(), &unchanged), SP_ERROR_INVALID_STATE);
    sp_point_unref(&point);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, 0), SP_OK);
    if (cu_control)
        CHECK_EQUAL(cu_control->misuse(), 0);
    CHECK_CU(cu.CtxDestroy(after));
}

TEST(C2_a_destroyed_context_is_refused)
{
    sp_cuda_context *out = (sp_cuda_context *)16;
    start();
    CUcontext other = NULL;
    CHECK_CU(cu.CtxCreate(&other, 0, 0));
    CHECK_CU(cu.CtxDestroy(other));
    sp_cuda_context_desc desc = cu_context_desc(other);
    CHECK_ERROR(sp_cuda_context_create(&desc, &out), SP_ERROR_INVALID_STATE);
    CHECK(out == (sp_cuda_context *)16);
    finish();
}

TEST(C2_an_event_of_a_context_that_is_gone)
{
    cu_context other;
    sp_point theirs = {0};
    start();
    cu_open(&other, 0);
    CHECK_STATUS(sp_cuda_stream_signal(other.sp, other.stream, &theirs), SP_OK);
    CHECK_CU(cu.StreamSynchronize(other.stream));
    CHECK_CU(cu.CtxDestroy(other.handle));
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &theirs), SP_ERROR_INVALID_STATE);
    sp_point_unref(&theirs);
    CHECK_STATUS(sp_cuda_context_destroy(other.sp, 0), SP_OK);
    finish();
}

/* Whose it is, is not said: neither context is given up for it. */
TEST_NEEDING(a_failure_of_a_wait_for_another_contexts_event, ON_DOUBLE)
{
    static const int results[] = {700, 709};
    for (unsigned i = 0; i < COUNT_OF(results); i++) {
        sp_status status = i == 0 ? SP_ERROR_DEVICE_LOST : SP_ERROR_INVALID_STATE;
        cu_context other;
        sp_point theirs = {0};
        start();
        cu_open(&other, 0);
        CHECK_STATUS(sp_cuda_stream_signal(other.sp, other.stream, &theirs), SP_OK);
        CHECK_CU(cu.CtxSetCurrent(ctx.handle));
        cu_control->inject("cuStreamWaitEvent", 0, 1, results[i]);
        CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &theirs), status);
        CHECK_EQUAL(sp_last_error()->native_code, results[i]);
        CHECK_STATUS(sp_wait(&theirs), SP_OK);
        sp_point ours = stream_point(ctx.stream);
        CHECK_STATUS(sp_wait(&ours), SP_OK);
        sp_point_unref(&ours);
        sp_point_unref(&theirs);
        CHECK_CU(cu.CtxSetCurrent(other.handle));
        cu_close(&other);
        CHECK_CU(cu.CtxSetCurrent(ctx.handle));
        finish();
    }
}

/* ---- What is left when the sp_cuda_context is destroyed ---- */

TEST(destroyed_with_semaphores_and_signals_alive)
{
    cu_peer other;
    start();
    peer_init(&peer, true);
    peer_init(&other, false);
    sp_point origin = peer_origin(&peer);
    timeline = peer_import(&peer, &origin);
    binary = peer_import(&other, NULL);
    sp_point_unref(&origin);
    sp_point one = timeline_point(timeline, 1), two = timeline_point(timeline, 2);
    sp_point signal = binary_point(binary, 0), unchanged = test_marked_point(),
             marked = test_marked_point();
    peer_signal(&peer, 1);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, PATIENCE_NS), SP_OK);
    ctx.sp = NULL;
    CHECK_STATUS(sp_poll(&one), SP_OK); /* it was reached by then */
    CHECK_ERROR(sp_wait(&two), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&signal), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cuda_binary_point(binary, 0, 0, &unchanged), SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&unchanged, &marked));
    sp_point_unref(&one);
    sp_point_unref(&two);
    sp_point_unref(&signal);
    sp_cuda_semaphore_unref(timeline);
    sp_cuda_semaphore_unref(binary);
    finish();
    peer_fini(&peer);
    peer_fini(&other);
}

/* The first event that a context makes, and a wait with its mark. */
TEST_NEEDING(no_event_to_be_had, ON_DOUBLE)
{
    sp_point unchanged = test_marked_point(), marked = test_marked_point();
    start();
    peer_init(&peer, true);
    timeline = peer_import(&peer, NULL);
    for (unsigned round = 0; round < 1000; round++) {
        cu_control->inject("cuEventCreate", 0, 1, 2);
        CHECK_ERROR(sp_cuda_stream_signal(ctx.sp, ctx.stream, &unchanged), SP_ERROR_OUT_OF_MEMORY);
        cu_control->inject("cuEventCreate", 0, 1, 2);
        CHECK_ERROR(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, 1, &unchanged),
                    SP_ERROR_OUT_OF_MEMORY);
        cu_control->inject("cuEventCreate", 0, 1, 2);
        CHECK_ERROR(try_wait(), SP_ERROR_OUT_OF_MEMORY);
        cu_control->inject("cuEventCreate", 0, 1, 2);
        CHECK_ERROR(try_host_wait(), SP_ERROR_OUT_OF_MEMORY);
    }
    CHECK(test_same_point(&unchanged, &marked));
    CHECK_EQUAL(cu_control->live(CUDA_DOUBLE_EVENT), 0);
    sp_cuda_semaphore_unref(timeline);
    finish();
    peer_fini(&peer);
}

static sp_point kept[2];

static void release_at_exit(void)
{
    if (cu_control)
        cu_control->end(true);
    sp_status status = sp_poll(&kept[0]);
    if (status != SP_OK && status != SP_ERROR_INVALID_STATE && status != SP_PENDING)
        _exit(3);
    sp_point_unref(&kept[0]);
    sp_point_unref(&kept[1]);
    sp_cuda_semaphore_unref(timeline);
    if (sp_cuda_context_destroy(ctx.sp, 0) != SP_OK)
        _exit(4);
}

TEST(C2_release_at_process_exit)
{
    start();
    peer_init(&peer, true);
    timeline = peer_import(&peer, NULL);
    kept[0] = stream_point(ctx.stream);
    kept[1] = timeline_point(timeline, 1);
    CHECK_CU(cu.StreamSynchronize(ctx.stream));
    CHECK(atexit(release_at_exit) == 0);
}

TEST_NEEDING(deinitialized, ON_DOUBLE)
{
    start();
    gate_close(ctx.stream, 1);
    sp_point point = stream_point(ctx.stream);
    cu_control->end(true);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_INVALID_STATE);
    unsigned before = calls(NULL);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_INVALID_STATE);
    sp_point_unref(&point);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, 0), SP_OK);
    CHECK(calls(NULL) <= before + 4);
    cu_control->end(false);
    CHECK_EQUAL(cu_control->misuse(), 0);
}
