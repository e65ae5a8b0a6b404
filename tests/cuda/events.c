/* SPDX-License-Identifier: MIT
 *
 * Events as points.
 */
#include "cu_case.h"

TEST(point_tells_what_it_is)
{
    start();
    sp_point point = stream_point(ctx.stream);
    CHECK_EQUAL(point.kind, SP_KIND_CUDA_EVENT);
    CHECK_EQUAL(sp_point_backend(&point), SP_BACKEND_CUDA);
    CHECK(point.raw.cuda_event.context == ctx.handle);
    CHECK_EQUAL(point.raw.cuda_event.ordinal, 0);
    CHECK(sp_cuda_event_from_point(&point) == point.raw.cuda_event.event);
    CHECK(sp_cuda_event_from_point(&point) != NULL);
    CHECK(sp_cuda_semaphore_from_point(&point) == NULL);
    CHECK(sp_cuda_event_from_point(NULL) == NULL);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    CHECK(sp_cuda_event_from_point(&point) == NULL);
    finish();
}

TEST(waits_for_the_stream)
{
    late_open late;
    start();
    gate_close(ctx.stream, 1);
    sp_point point = stream_point(ctx.stream);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&point, 2 * MS), SP_TIMEOUT);
    open_late(&late, 1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    join_not_early(&late);
    sp_point_unref(&point);
    finish();
}

/* An event whose points are gone is recorded again, and a wait for its earlier record stands. */
TEST(events_are_used_again)
{
    start();
    cu_word written;
    cu_word_init(&written);
    CUstream consumer = cu_new_stream();
    gate_close(ctx.stream, 1);
    sp_point point = stream_point(ctx.stream);
    CUevent first = sp_cuda_event_from_point(&point);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, consumer, &point), SP_OK);
    sp_point_unref(&point);
    cu_word_write(&written, consumer, 5);

    CUstream other = cu_new_stream();
    sp_point again = stream_point(other);
    CHECK(sp_cuda_event_from_point(&again) == first);
    CHECK_STATUS(sp_wait(&again), SP_OK);
    CHECK_UNWRITTEN(&written);
    gate_open(1);
    CHECK(cu_word_arrives(&written, 5));
    sp_point_unref(&again);
    CHECK_CU(cu.StreamSynchronize(consumer));
    CHECK_CU(cu.StreamDestroy(consumer));
    CHECK_CU(cu.StreamDestroy(other));
    cu_word_fini(&written);
    finish();
}

TEST(old_points_keep_their_answer)
{
    start();
    sp_point done = stream_point(ctx.stream);
    CHECK_STATUS(sp_wait(&done), SP_OK);
    gate_close(ctx.stream, 1);
    sp_point pending = stream_point(ctx.stream);
    CHECK_STATUS(sp_poll(&done), SP_OK);
    CHECK_STATUS(sp_poll(&pending), SP_PENDING);
    sp_point_unref(&done);
    sp_point_unref(&pending);
    finish();
}

TEST_NEEDING(calls_of_a_record_and_a_probe, ON_DOUBLE)
{
    start();
    gate_close(ctx.stream, 1);
    sp_point point = stream_point(ctx.stream);
    sp_point_unref(&point);
    unsigned before = calls(NULL);
    point = stream_point(ctx.stream);
    CHECK_EQUAL(calls(NULL) - before, 2); /* capturing?, record */
    before = calls(NULL);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_EQUAL(calls(NULL) - before, 4); /* mode, alive?, query, mode */
    gate_open(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    before = calls(NULL);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &point), SP_OK);
    sp_point_unref(&point);
    CHECK_EQUAL(calls(NULL), before);
    finish();
}

TEST(special_streams)
{
    start();
    CUstream special[] = {NULL, (CUstream)(uintptr_t)1, (CUstream)(uintptr_t)2};
    for (unsigned i = 0; i < COUNT_OF(special); i++) {
        sp_point point = stream_point(special[i]);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, special[i], &point), SP_OK);
        sp_point_unref(&point);
    }
    CUcontext before;
    CHECK_CU(cu.CtxPopCurrent(&before));
    for (unsigned i = 0; i < COUNT_OF(special); i++) {
        sp_point unchanged = test_marked_point(), marked = test_marked_point();
        CHECK_ERROR(sp_cuda_stream_signal(ctx.sp, special[i], &unchanged), SP_ERROR_WRONG_CONTEXT);
        CHECK(test_same_point(&unchanged, &marked));
    }
    CHECK_CU(cu.CtxPushCurrent(before));
    finish();
}

/* ---- C1 ---- */

static void check_other_context(int device)
{
    cu_context other;
    start();
    cu_open(&other, device);
    for (unsigned round = 0; round < 2; round++) {
        sp_point unchanged = test_marked_point(), marked = test_marked_point();
        CHECK_ERROR(sp_cuda_stream_signal(ctx.sp, other.stream, &unchanged),
                    SP_ERROR_WRONG_CONTEXT);
        CHECK(test_same_point(&unchanged, &marked));
        CHECK_ERROR(sp_cuda_stream_signal(other.sp, ctx.stream, &unchanged),
                    SP_ERROR_WRONG_CONTEXT);
        CHECK(test_same_point(&unchanged, &marked));
        /* Nothing sticks: both go on, whichever is current. */
        sp_point mine = stream_point(ctx.stream), theirs = {0};
        CHECK_STATUS(sp_cuda_stream_signal(other.sp, other.stream, &theirs), SP_OK);
        CHECK_STATUS(sp_wait(&mine), SP_OK);
        CHECK_STATUS(sp_wait(&theirs), SP_OK);
        sp_point_unref(&mine);
        sp_point_unref(&theirs);
        CUcontext current = NULL;
        CHECK_CU(cu.CtxGetCurrent(&current));
        CHECK(current == (round ? ctx.handle : other.handle));
        CHECK_CU(cu.CtxSetCurrent(ctx.handle));
    }
    CHECK_CU(cu.CtxSetCurrent(other.handle));
    cu_close(&other);
    finish();
}

TEST(C1_stream_of_another_context)
{
    check_other_context(0);
}

/* A record does not ask again whose stream it is. */
TEST_NEEDING(C1_a_stream_at_the_address_of_one_before, ON_DOUBLE)
{
    cu_context other;
    start();
    cu_open(&other, 0);
    sp_point unchanged = test_marked_point(), marked = test_marked_point(), point = {0};
    point = stream_point(ctx.stream);
    sp_point_unref(&point);
    cu_control->move_stream(ctx.stream, other.handle);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_ERROR(sp_cuda_stream_signal(ctx.sp, ctx.stream, &unchanged), SP_ERROR_WRONG_CONTEXT);
        CHECK(test_same_point(&unchanged, &marked));
    }
    CHECK_STATUS(sp_cuda_stream_signal(other.sp, ctx.stream, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    cu_control->move_stream(ctx.stream, ctx.handle);
    cu_close(&other);
    finish();
}

TEST(C1_stream_of_another_device)
{
    int devices = 0;
    cu_load(cu_target);
    CHECK_CU(cu.DeviceGetCount(&devices));
    if (devices < 2)
        test_skip("there is one device only");
    check_other_context(1);
}

TEST(wait_for_an_event_of_another_context)
{
    cu_context other;
    cu_word written;
    start();
    cu_word_init(&written);
    gate_close(ctx.stream, 1);
    sp_point point = stream_point(ctx.stream);
    cu_open(&other, 0);
    CHECK_STATUS(sp_cuda_stream_wait(other.sp, other.stream, &point), SP_OK);
    CHECK_CU(cu.CtxSetCurrent(ctx.handle));
    sp_point_unref(&point);
    CUstream mine = cu_new_stream();
    sp_point theirs = {0};
    CHECK_STATUS(sp_cuda_stream_signal(other.sp, other.stream, &theirs), SP_OK);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, mine, &theirs), SP_OK);
    cu_word_write(&written, mine, 7);
    CHECK_UNWRITTEN(&written);
    gate_open(1);
    CHECK(cu_word_arrives(&written, 7));
    sp_point_unref(&theirs);
    CHECK_CU(cu.StreamSynchronize(mine));
    CHECK_CU(cu.StreamDestroy(mine));
    cu_word_fini(&written);
    CHECK_CU(cu.CtxPushCurrent(other.handle));
    cu_close(&other);
    CHECK_CU(cu.CtxSetCurrent(ctx.handle));
    finish();
}

/* A call may be told what is wrong with the current context, which is another's. */
static void check_trouble_of_another(bool broken)
{
    cu_context other;
    start();
    cu_open(&other, 0);
    if (broken)
        cu_break(&other, other.stream);
    else
        cu_control->inject("cuEventRecord", 0, 1, 709); /* another thread destroyed it */
    sp_point point = stream_point(ctx.stream);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    cu_control->heal();
    cu_close(&other);
    CHECK_CU(cu.CtxSetCurrent(ctx.handle));
    point = stream_point(ctx.stream);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    finish();
}

TEST_NEEDING(C1_a_destroyed_context_is_current, ON_DOUBLE)
{
    check_trouble_of_another(false);
}

TEST_NEEDING(C1_a_broken_context_is_current, ON_DOUBLE)
{
    check_trouble_of_another(true);
}

/* ---- Waits on streams ---- */

TEST(a_withheld_event_gates_the_stream)
{
    cu_word written;
    start();
    cu_word_init(&written);
    CUstream consumer = cu_new_stream();
    gate_close(ctx.stream, 1);
    cu_delay(&ctx, ctx.stream, DELAY_MS * MS);
    sp_point point = stream_point(ctx.stream), chain = {0};
    CHECK_STATUS(sp_chain(&point, &point, &chain), SP_OK);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, consumer, &chain), SP_OK);
    cu_word_write(&written, consumer, 3);
    CHECK_UNWRITTEN(&written);
    gate_open(1);
    CHECK(cu_word_arrives(&written, 3));
    sp_point_unref(&chain);
    sp_point_unref(&point);
    CHECK_CU(cu.StreamSynchronize(consumer));
    CHECK_CU(cu.StreamDestroy(consumer));
    cu_word_fini(&written);
    finish();
}

TEST(long_chains_on_a_stream)
{
    enum { COUNT = 100 };
    start();
    sp_point chain = {0};
    gate_close(ctx.stream, 1);
    for (unsigned i = 0; i < COUNT; i++) {
        sp_point next = stream_point(ctx.stream), both = {0};
        CHECK_STATUS(sp_chain(&chain, &next, &both), SP_OK);
        sp_point_unref(&chain);
        sp_point_unref(&next);
        chain = both;
    }
    CUstream consumer = cu_new_stream();
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, consumer, &chain), SP_OK);
    CHECK(cu.StreamQuery(consumer) == CUDA_ERROR_NOT_READY);
    gate_open(1);
    CHECK_CU(cu.StreamSynchronize(consumer));
    sp_point_unref(&chain);
    CHECK_CU(cu.StreamDestroy(consumer));
    finish();
}

TEST(what_a_stream_need_not_or_cannot_wait_for)
{
    sp_host_timeline *timeline = NULL;
    sp_slot *slot = NULL;
    sp_point host = {0}, unset = {0};
    start();
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &host), SP_OK);
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &unset), SP_OK);
    sp_point noop = sp_point_noop(), cpu = sp_point_cpu();
    sp_point carrier = sp_carrier_d3d12_fence(&host, 1);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &noop), SP_OK);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &cpu), SP_OK);
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &host), SP_ERROR_BACKEND_MISMATCH);
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &carrier), SP_ERROR_NOT_SUPPORTED);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &unset), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &host), SP_OK);
    sp_point_unref(&host);
    sp_point_unref(&unset);
    sp_slot_destroy(slot);
    sp_host_timeline_destroy(timeline);
    finish();
}

/* ---- Wrapped events ---- */

TEST(wrapped_events)
{
    start();
    for (unsigned take = 0; take < 2; take++) {
        CUevent event = NULL;
        sp_point point = {0};
        CHECK_CU(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
        gate_close(ctx.stream, take + 1);
        CHECK_CU(cu.EventRecord(event, ctx.stream));
        const sp_cuda_event_wrap_desc desc = {
            .size = sizeof(desc), .event = event, .take = take != 0};
        CHECK_STATUS(sp_cuda_event_wrap(ctx.sp, &desc, &point), SP_OK);
        CHECK(sp_cuda_event_from_point(&point) == event);
        CHECK_STATUS(sp_poll(&point), SP_PENDING);
        gate_open(take + 1);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point copy = sp_point_ref(&point);
        sp_point_unref(&point);
        sp_point_unref(&copy);
        if (!take)
            CHECK_CU(cu.EventDestroy(event));
    }
    finish();
}

/* ---- Other threads ---- */

typedef struct recorder {
    worker worker;
    CUstream stream;
} recorder;

static void record_and_wait(void *user)
{
    const recorder *self = user;
    for (unsigned i = 0; i < 200; i++) {
        sp_point point = {0};
        CUcontext current = NULL;
        if (!CHECK_STATUS(sp_cuda_stream_signal(ctx.sp, self->stream, &point), SP_OK))
            return;
        CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, self->stream, &point), SP_OK);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
        CHECK(cu.CtxGetCurrent(&current) == CUDA_SUCCESS && current == NULL);
        if (cu_control)
            CHECK_EQUAL(cu_control->context_depth(), 0);
    }
}

TEST(threads_without_a_current_context)
{
    enum { THREADS = 4 };
    recorder threads[THREADS];
    start();
    for (unsigned i = 0; i < THREADS; i++) {
        threads[i].stream = cu_new_stream();
        worker_start(&threads[i].worker, 0, record_and_wait, &threads[i]);
    }
    for (unsigned i = 0; i < THREADS; i++) {
        worker_join(&threads[i].worker);
        CHECK_CU(cu.StreamDestroy(threads[i].stream));
    }
    finish();
}
