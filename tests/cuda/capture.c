/* SPDX-License-Identifier: MIT
 *
 * Stream captures: neither recorded into nor invalidated, whoever captures.
 */
#include "cu_peer.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED, MODES };
enum { NOT_CAPTURING, CAPTURING };

static cu_peer peer;

static void begin(CUstream stream, int mode)
{
    CHECK_CU(cu.StreamBeginCapture(stream, mode));
}

/* The capture was not invalidated. */
static void end(CUstream stream)
{
    int status = NOT_CAPTURING;
    void *graph = NULL;
    CHECK_CU(cu.StreamIsCapturing(stream, &status));
    CHECK_EQUAL(status, CAPTURING);
    CHECK_CU(cu.StreamEndCapture(stream, &graph));
    CHECK(graph != NULL);
    CHECK_CU(cu.GraphDestroy(graph));
}

TEST(a_stream_that_is_captured_is_refused)
{
    start();
    peer_init(&peer, true);
    sp_cuda_semaphore *timeline = peer_import(&peer, NULL);
    sp_point value = timeline_point(timeline, 1);
    sp_point before = stream_point(ctx.stream); /* not known reached */
    for (int mode = GLOBAL; mode < MODES; mode++) {
        uint8_t handle[SP_CUDA_IPC_SIZE];
        sp_point unchanged = test_marked_point(), marked = test_marked_point();
        begin(ctx.stream, mode);
        CHECK_ERROR(sp_cuda_stream_signal(ctx.sp, ctx.stream, &unchanged), SP_ERROR_INVALID_STATE);
        CHECK_ERROR(sp_cuda_stream_signal_ipc(ctx.sp, ctx.stream, handle, &unchanged),
                    SP_ERROR_INVALID_STATE);
        CHECK_ERROR(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, 1, &unchanged),
                    SP_ERROR_INVALID_STATE);
        CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &before), SP_ERROR_INVALID_STATE);
        CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &value), SP_ERROR_INVALID_STATE);
        CHECK(test_same_point(&unchanged, &marked));
        end(ctx.stream);
    }
    sp_point after = stream_point(ctx.stream);
    CHECK_STATUS(sp_wait(&after), SP_OK);
    sp_point_unref(&after);
    sp_point_unref(&before);
    sp_point_unref(&value);
    sp_cuda_semaphore_unref(timeline);
    finish();
    peer_fini(&peer);
}

/* While a blocking stream is captured, the legacy stream cannot be used. */
TEST(the_legacy_stream_beside_a_capture)
{
    CUstream blocking = NULL;
    start();
    sp_point unchanged = test_marked_point(), marked = test_marked_point();
    CHECK_CU(cu.StreamCreate(&blocking, 0));
    begin(blocking, RELAXED);
    CHECK_ERROR(sp_cuda_stream_signal(ctx.sp, NULL, &unchanged), SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&unchanged, &marked));
    end(blocking);
    sp_point point = stream_point(NULL);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    CHECK_CU(cu.StreamDestroy(blocking));
    finish();
}

/* All that the library does, but on the stream that is captured. */
static void use_everything(void *unused)
{
    (void)unused;
    CUcontext popped;
    CHECK(cu.CtxPushCurrent(ctx.handle) == CUDA_SUCCESS);
    CUstream stream = ctx.stream;
    cu_peer other;
    peer_init(&other, true);
    sp_cuda_semaphore *timeline = peer_import(&other, NULL);
    gate_close(stream, 1);
    sp_point event = stream_point(stream), value = timeline_point(timeline, 1);
    CHECK_STATUS(sp_poll(&event), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&event, MS), SP_TIMEOUT);
    CHECK_STATUS(sp_wait_timeout(&value, MS), SP_TIMEOUT);
    gate_open(1);
    peer_signal(&other, 1);
    CHECK_STATUS(sp_wait(&event), SP_OK);
    CHECK_STATUS(sp_wait(&value), SP_OK);
    sp_point two = stream_signals(stream, timeline, 2);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, stream, &two), SP_OK);
    CHECK_STATUS(sp_wait(&two), SP_OK);
    uint8_t handle[SP_CUDA_IPC_SIZE];
    sp_point shared = {0};
    CHECK_STATUS(sp_cuda_stream_signal_ipc(ctx.sp, stream, handle, &shared), SP_OK);
    CHECK_STATUS(sp_wait(&shared), SP_OK);
    sp_point_unref(&shared);
    sp_point_unref(&two);
    sp_point_unref(&event);
    sp_point_unref(&value);
    sp_cuda_semaphore_unref(timeline);
    peer_fini(&other);
    sp_cuda_context_desc desc = cu_context_desc(ctx.handle);
    sp_cuda_context *second = NULL;
    CHECK_STATUS(sp_cuda_context_create(&desc, &second), SP_OK);
    CHECK_STATUS(sp_cuda_context_destroy(second, 0), SP_OK);
    if (cu_control)
        CHECK_EQUAL(cu_control->capture_mode(), GLOBAL); /* as it was */
    CHECK(cu.CtxPopCurrent(&popped) == CUDA_SUCCESS);
}

static void check_capture_stands(int mode, bool elsewhere)
{
    start();
    peer_init(&peer, true); /* so that the driver's is open */
    CUstream captured = cu_new_stream();
    begin(captured, mode);
    if (elsewhere) {
        worker other;
        worker_start(&other, 0, use_everything, NULL);
        worker_join(&other);
    } else {
        use_everything(NULL);
    }
    end(captured);
    CHECK_CU(cu.StreamDestroy(captured));
    finish();
    peer_fini(&peer);
}

TEST(another_threads_global_capture_stands)
{
    check_capture_stands(GLOBAL, true);
}
TEST(another_threads_local_capture_stands)
{
    check_capture_stands(THREAD_LOCAL, true);
}
TEST(the_same_threads_global_capture_stands)
{
    check_capture_stands(GLOBAL, false);
}
TEST(the_same_threads_local_capture_stands)
{
    check_capture_stands(THREAD_LOCAL, false);
}

/* The double is as strict as the driver: without the library's care the capture would be lost. */
TEST(a_plain_query_would_invalidate)
{
    void *graph = NULL;
    start();
    CUstream captured = cu_new_stream();
    sp_point point = stream_point(ctx.stream);
    begin(captured, GLOBAL);
    CHECK(cu.EventQuery(sp_cuda_event_from_point(&point)) != CUDA_SUCCESS);
    CHECK(cu.StreamEndCapture(captured, &graph) != CUDA_SUCCESS);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    CHECK_CU(cu.StreamDestroy(captured));
    finish();
}
