/* SPDX-License-Identifier: MIT
 *
 * External semaphores with values.
 */
#include "cu_peer.h"

static cu_peer peer;

/* With or without an origin. */
static sp_cuda_semaphore *open_timeline(bool follow)
{
    start();
    peer_init(&peer, true);
    sp_point origin = follow ? peer_origin(&peer) : sp_point_noop();
    sp_cuda_semaphore *made = peer_import(&peer, follow ? &origin : NULL);
    sp_point_unref(&origin);
    return made;
}

static void close_timeline(sp_cuda_semaphore *timeline)
{
    sp_cuda_semaphore_unref(timeline);
    finish();
    peer_fini(&peer);
}

static void check_host_wait(bool follow)
{
    late_peer late;
    sp_cuda_semaphore *timeline = open_timeline(follow);
    sp_point point = timeline_point(timeline, 5);
    CHECK_EQUAL(point.kind, SP_KIND_CUDA);
    CHECK_EQUAL(point.flags, SP_POINT_HAS_VALUE);
    CHECK_EQUAL(sp_point_backend(&point), SP_BACKEND_CUDA);
    CHECK(sp_cuda_semaphore_from_point(&point) == sp_cuda_semaphore_handle(timeline));
    CHECK(sp_cuda_event_from_point(&point) == NULL);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&point, 2 * MS), SP_TIMEOUT);
    peer_signal(&peer, 4);
    CHECK_STATUS(sp_wait_timeout(&point, 2 * MS), SP_TIMEOUT);
    peer_signal_late(&late, &peer, 5);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    peer_join_not_early(&late);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point lower = timeline_point(timeline, 3);
    CHECK_STATUS(sp_poll(&lower), SP_OK);
    sp_point_unref(&lower);
    sp_point_unref(&point);
    close_timeline(timeline);
}

TEST(host_wait_without_an_origin)
{
    check_host_wait(false);
}
TEST(host_wait_with_an_origin)
{
    check_host_wait(true);
}

/* ---- W7 ---- */

typedef struct host_wait {
    worker worker;
    sp_point point;
} host_wait;

static void wait_for_it(void *user)
{
    host_wait *self = user;
    CHECK_STATUS(sp_wait_timeout(&self->point, PATIENCE_NS), SP_OK);
}

static void check_two_values(bool follow)
{
    sp_cuda_semaphore *timeline = open_timeline(follow);
    host_wait first = {.point = timeline_point(timeline, 99)};
    host_wait second = {.point = timeline_point(timeline, 100)};
    worker_start(&second.worker, 0, wait_for_it, &second);
    test_sleep_ms(10);
    worker_start(&first.worker, 0, wait_for_it, &first);
    test_sleep_ms(DELAY_MS);
    CHECK(!worker_is_done(&first.worker));
    peer_signal(&peer, 99);
    worker_join(&first.worker);
    test_sleep_ms(DELAY_MS);
    CHECK(!worker_is_done(&second.worker));
    peer_signal(&peer, 100);
    worker_join(&second.worker);
    sp_point_unref(&first.point);
    sp_point_unref(&second.point);
    close_timeline(timeline);
}

TEST(W7_two_values_without_an_origin)
{
    check_two_values(false);
}
TEST(W7_two_values_with_an_origin)
{
    check_two_values(true);
}

/* ---- Parked waits ---- */

TEST_NEEDING(the_next_wait_goes_on_with_a_parked_one, ON_DOUBLE)
{
    sp_cuda_semaphore *timeline = open_timeline(false);
    sp_point point = timeline_point(timeline, 2), other = timeline_point(timeline, 1);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    unsigned streams = calls("cuStreamCreate"), waits = calls("cuWaitExternalSemaphoresAsync");
    for (unsigned i = 0; i < 10; i++)
        CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    CHECK_EQUAL(calls("cuWaitExternalSemaphoresAsync"), waits);
    CHECK_STATUS(sp_wait_timeout(&other, MS), SP_TIMEOUT); /* its own */
    CHECK_EQUAL(calls("cuWaitExternalSemaphoresAsync"), waits + 1);
    CHECK_EQUAL(calls("cuStreamCreate"), streams + 1);
    peer_signal(&peer, 1);
    CHECK_STATUS(sp_wait(&other), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    peer_signal(&peer, 2);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    /* The streams are used again. */
    for (uint64_t value = 3; value < 20; value++) {
        late_peer late;
        sp_point next = timeline_point(timeline, value);
        peer_signal_late(&late, &peer, value);
        CHECK_STATUS(sp_wait(&next), SP_OK);
        peer_join_not_early(&late);
        sp_point_unref(&next);
    }
    CHECK_EQUAL(calls("cuStreamCreate"), streams + 1);
    sp_point_unref(&point);
    sp_point_unref(&other);
    close_timeline(timeline);
}

TEST(released_while_a_wait_is_parked)
{
    sp_cuda_semaphore *timeline = open_timeline(false);
    sp_point point = timeline_point(timeline, 1);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    sp_point_unref(&point);
    sp_cuda_semaphore_unref(timeline);
    CHECK_STATUS(sp_cuda_context_collect(ctx.sp), SP_OK); /* its wait is not done */
    if (cu_control)
        CHECK_EQUAL(cu_control->live(CUDA_DOUBLE_SEMAPHORE), 1);
    peer_signal(&peer, 1);
    test_sleep_ms(DELAY_MS);
    CHECK_STATUS(sp_cuda_context_collect(ctx.sp), SP_OK); /* does what was put off */
    if (cu_control)
        CHECK_EQUAL(cu_control->live(CUDA_DOUBLE_SEMAPHORE), 0);
    close_timeline(NULL);
}

TEST(destroying_the_context_waits_for_parked_waits)
{
    sp_cuda_semaphore *timeline = open_timeline(false);
    sp_point point = timeline_point(timeline, 1), later = timeline_point(timeline, 2);
    sp_point event = stream_point(ctx.stream);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    uint64_t begin = sp_now_ns();
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, 5 * MS), SP_TIMEOUT);
    CHECK(sp_now_ns() - begin >= 5 * MS);
    CHECK_STATUS(sp_poll(&point), SP_PENDING); /* nothing was freed */
    sp_point again = stream_point(ctx.stream);
    CHECK_STATUS(sp_wait(&again), SP_OK);
    sp_point_unref(&again);
    peer_signal(&peer, 1);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, PATIENCE_NS), SP_OK);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    CHECK_ERROR(sp_poll(&later), SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_poll(&event), SP_OK); /* was reached, if nobody had asked yet */
    CHECK(sp_cuda_semaphore_handle(timeline) == NULL);
    CHECK(sp_cuda_semaphore_from_point(&point) == NULL);
    CHECK(sp_cuda_event_from_point(&event) == NULL);
    sp_point refused = {0};
    CHECK_ERROR(sp_cuda_binary_point(timeline, 0, 0, &refused), SP_ERROR_INVALID_ARGUMENT);
    sp_point_unref(&point);
    sp_point_unref(&later);
    sp_point_unref(&event);
    sp_cuda_semaphore_unref(timeline);
    ctx.sp = NULL;
    close_timeline(NULL);
}

/* ---- Points without a value ---- */

TEST(a_point_without_a_value)
{
    sp_cuda_semaphore *timeline = open_timeline(false);
    sp_point bare = {0}, valued = {0}, chain = test_marked_point(), marked = test_marked_point();
    size_t index = 7;
    CHECK_STATUS(sp_cuda_semaphore_point(timeline, &bare), SP_OK);
    CHECK_EQUAL(bare.flags, 0);
    CHECK_ERROR(sp_poll(&bare), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&bare), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait_timeout(&bare, 0), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait_many(&bare, 1, SP_WAIT_ANY, MS, &index), SP_ERROR_INVALID_STATE);
    CHECK_EQUAL(index, 0);
    CHECK_ERROR(sp_chain(&bare, &bare, &chain), SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&chain, &marked));
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &bare), SP_ERROR_INVALID_STATE);
    char text[128];
    sp_point_describe(&bare, text, sizeof(text));
    CHECK(text[0] != '\0');
    sp_point copy = sp_point_ref(&bare);
    CHECK_STATUS(sp_point_at(&copy, 3, &valued), SP_OK);
    CHECK_EQUAL(valued.flags, SP_POINT_HAS_VALUE);
    CHECK_STATUS(sp_poll(&valued), SP_PENDING);
    peer_signal(&peer, 3);
    CHECK_STATUS(sp_wait(&valued), SP_OK);
    sp_point_unref(&copy);
    sp_point_unref(&bare);
    sp_point_unref(&valued);
    close_timeline(timeline);
}

/* ---- On streams ---- */

TEST(a_withheld_value_gates_the_stream)
{
    cu_word written;
    sp_cuda_semaphore *timeline = open_timeline(false);
    cu_word_init(&written);
    sp_point point = timeline_point(timeline, 2);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &point), SP_OK);
    cu_word_write(&written, ctx.stream, 9);
    sp_point_unref(&point);
    sp_cuda_semaphore_unref(timeline); /* the wait keeps it */
    CHECK_UNWRITTEN(&written);
    peer_signal(&peer, 1);
    CHECK_UNWRITTEN(&written);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, MS), SP_TIMEOUT);
    peer_signal(&peer, 2);
    CHECK(cu_word_arrives(&written, 9));
    cu_word_fini(&written);
    close_timeline(NULL);
}

TEST(streams_signal_values)
{
    sp_cuda_semaphore *timeline = open_timeline(false);
    gate_close(ctx.stream, 1);
    sp_point one = stream_signals(ctx.stream, timeline, 0);
    CHECK_EQUAL(one.value, 1);
    sp_point seven = stream_signals(ctx.stream, timeline, 7);
    CHECK_STATUS(sp_poll(&one), SP_PENDING);
    gate_open(1);
    CHECK_STATUS(sp_wait(&one), SP_OK);
    CHECK_STATUS(sp_wait(&seven), SP_OK);
    CHECK_EQUAL(peer_value(&peer), 7);
    sp_point_unref(&one);
    sp_point_unref(&seven);
    close_timeline(timeline);
}

static bool is_reached_soon(const sp_point *point)
{
    uint64_t begin = sp_now_ns();
    while (sp_poll(point) == SP_PENDING && sp_now_ns() - begin < PATIENCE_NS)
        test_sleep_ms(1);
    return sp_poll(point) == SP_OK;
}

/* However many later ones are pending, and without a wait. */
TEST(a_poll_sees_each_value_that_a_stream_signals)
{
    enum { VALUES = 100 };
    sp_point points[VALUES];
    sp_cuda_semaphore *timeline = open_timeline(false);
    for (unsigned i = 0; i < VALUES; i++) {
        gate_close(ctx.stream, i + 1);
        points[i] = stream_signals(ctx.stream, timeline, 2 * i + 2);
    }
    for (unsigned i = 0; i < VALUES; i += 1 + i / 4) {
        sp_point between = timeline_point(timeline, 2 * i + 1);
        CHECK_STATUS(sp_poll(&points[i]), SP_PENDING);
        gate_open(i + 1);
        CHECK(is_reached_soon(&points[i]));
        CHECK_STATUS(sp_poll(&between), SP_OK);
        CHECK_STATUS(sp_poll(&points[VALUES - 1]), i == VALUES - 1 ? SP_OK : SP_PENDING);
        sp_point_unref(&between);
    }
    gate_open(VALUES);
    CHECK(is_reached_soon(&points[VALUES - 1]));
    if (cu_control)
        CHECK_EQUAL(calls("cuWaitExternalSemaphoresAsync"), 0);
    for (unsigned i = 0; i < VALUES; i++)
        sp_point_unref(&points[i]);
    close_timeline(timeline);
}

TEST_NEEDING(signals_that_nobody_looks_at_do_not_gather, ON_DOUBLE)
{
    sp_cuda_semaphore *timeline = open_timeline(false);
    unsigned before = calls("cuEventQuery");
    for (unsigned i = 0; i < 1000; i++) {
        CHECK_STATUS(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, 0, NULL), SP_OK);
        if (i % 4 == 0)
            CHECK_CU(cu.StreamSynchronize(ctx.stream));
    }
    CHECK(cu_control->live(CUDA_DOUBLE_EVENT) <= 40);
    if (calls("cuStreamGetId")) /* else the last one may be on another stream: each looks at it */
        CHECK(calls("cuEventQuery") - before <= 200);
    close_timeline(timeline);
}

static void check_refused_value(sp_cuda_semaphore *timeline, uint64_t value)
{
    sp_point unchanged = test_marked_point(), marked = test_marked_point();
    CHECK_ERROR(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, value, &unchanged),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK(test_same_point(&unchanged, &marked));
}

TEST(values_only_grow)
{
    sp_cuda_semaphore *timeline = open_timeline(true);
    peer_signal(&peer, 10);
    check_refused_value(timeline, 10); /* the origin is asked */
    gate_close(ctx.stream, 1);
    sp_point twelve = stream_signals(ctx.stream, timeline, 12);
    check_refused_value(timeline, 12);
    check_refused_value(timeline, 11);
    check_refused_value(timeline, UINT64_MAX);
    sp_point next = stream_signals(ctx.stream, timeline, 0);
    CHECK_EQUAL(next.value, 13);
    gate_open(1);
    CHECK_STATUS(sp_wait(&next), SP_OK);
    sp_point_unref(&twelve);
    sp_point_unref(&next);
    close_timeline(timeline);
}

/* A later value on another stream does not overtake the one before. */
TEST(values_keep_their_order_across_streams)
{
    sp_cuda_semaphore *timeline = open_timeline(false);
    CUstream other = cu_new_stream();
    gate_close(ctx.stream, 1);
    sp_point one = stream_signals(ctx.stream, timeline, 1);
    sp_point two = stream_signals(other, timeline, 2);
    test_sleep_ms(DELAY_MS);
    CHECK_EQUAL(peer_value(&peer), 0);
    CHECK_STATUS(sp_poll(&two), SP_PENDING);
    gate_open(1);
    CHECK_STATUS(sp_wait(&two), SP_OK);
    CHECK_EQUAL(peer_value(&peer), 2);
    sp_point_unref(&one);
    sp_point_unref(&two);
    CHECK_CU(cu.StreamDestroy(other));
    close_timeline(timeline);
}

TEST_NEEDING(a_failed_signal_gives_its_value_back, ON_DOUBLE)
{
    sp_cuda_semaphore *timeline = open_timeline(false);
    sp_point unchanged = test_marked_point(), marked = test_marked_point();
    cu_control->inject("cuSignalExternalSemaphoresAsync", 0, 1, 999);
    CHECK_ERROR(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, 5, &unchanged),
                SP_ERROR_BACKEND);
    CHECK(test_same_point(&unchanged, &marked));
    CHECK_EQUAL(sp_last_error()->native_code, 999);
    sp_point one = stream_signals(ctx.stream, timeline, 0);
    CHECK_EQUAL(one.value, 1);
    CHECK_STATUS(sp_wait(&one), SP_OK);
    sp_point_unref(&one);
    close_timeline(timeline);
}

/* The driver took the signal, and refused the event behind it. */
TEST_NEEDING(a_signal_without_its_mark, ON_DOUBLE)
{
    for (unsigned follow = 0; follow < 2; follow++) {
        sp_cuda_semaphore *timeline = open_timeline(follow != 0);
        CUstream other = cu_new_stream();
        gate_close(ctx.stream, 1);
        sp_point one = stream_signals(ctx.stream, timeline, 1);
        cu_control->inject("cuEventRecord", 0, 1, 2);
        sp_point two = stream_signals(ctx.stream, timeline, 0);
        CHECK_EQUAL(cu_control->failed(), 1);
        CHECK_EQUAL(two.value, 2);
        check_refused_value(timeline, 2);
        sp_point three = stream_signals(other, timeline, 3); /* which does not overtake it */
        test_sleep_ms(DELAY_MS);
        CHECK_EQUAL(peer_value(&peer), 0);
        CHECK_STATUS(sp_poll(&two), SP_PENDING);
        gate_open(1);
        CHECK_STATUS(sp_wait(&two), SP_OK);
        CHECK_STATUS(sp_wait(&one), SP_OK);
        CHECK_STATUS(sp_wait(&three), SP_OK);
        CHECK_EQUAL(peer_value(&peer), 3);
        sp_point_unref(&one);
        sp_point_unref(&two);
        sp_point_unref(&three);
        CHECK_CU(cu.StreamDestroy(other));
        close_timeline(timeline);
    }
}

TEST(a_semaphore_of_another_context)
{
    cu_context other;
    sp_cuda_semaphore *timeline = open_timeline(false);
    sp_point point = timeline_point(timeline, 1);
    cu_open(&other, 0);
    CHECK_ERROR(sp_cuda_stream_wait(other.sp, other.stream, &point), SP_ERROR_DEVICE_MISMATCH);
    CHECK_ERROR(sp_cuda_stream_signal_semaphore(other.sp, other.stream, timeline, 1, NULL),
                SP_ERROR_DEVICE_MISMATCH);
    cu_close(&other);
    CHECK_CU(cu.CtxSetCurrent(ctx.handle));
    sp_point_unref(&point);
    close_timeline(timeline);
}

/* ---- Origins ---- */

TEST_NEEDING(an_origin_costs_no_driver_call, ON_DOUBLE)
{
    sp_cuda_semaphore *timeline = open_timeline(true);
    sp_point point = timeline_point(timeline, 1);
    unsigned before = calls(NULL);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    peer_signal(&peer, 1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_EQUAL(calls(NULL), before);
    sp_point_unref(&point);
    close_timeline(timeline);
}

TEST(a_failure_of_the_origin_comes_through)
{
    sp_host_timeline *host = NULL;
    sp_point origin = {0};
    start();
    peer_init(&peer, true);
    CHECK_STATUS(sp_host_timeline_create(0, &host), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(host, 1, &origin), SP_OK);
    sp_cuda_semaphore *timeline = peer_import(&peer, &origin);
    sp_point_unref(&origin);
    sp_point one = timeline_point(timeline, 1), two = timeline_point(timeline, 2);
    CHECK_STATUS(sp_host_timeline_signal(host, 1), SP_OK);
    CHECK_STATUS(sp_wait(&one), SP_OK);
    CHECK_STATUS(sp_host_timeline_fail(host, SP_ERROR_DEVICE_LOST, "it broke"), SP_OK);
    CHECK_ERROR(sp_wait(&two), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &two), SP_ERROR_FAILED);
    CHECK_STATUS(sp_poll(&one), SP_OK);
    sp_point_unref(&one);
    sp_point_unref(&two);
    sp_host_timeline_destroy(host);
    close_timeline(timeline);
}

/* V3: what the other API says of a lost device. */
static sp_status lost_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)waiter;
    (void)value;
    (void)reached;
    return SP_ERROR_DEVICE_LOST;
}
static void lost_destroy(sp_waiter *waiter)
{
    (void)waiter;
}

/* A producer that fails opens the gate behind its failure: what is past it is not reached. */
TEST_NEEDING(a_failure_stays_though_its_gate_is_opened, ON_DOUBLE)
{
    const sp_error error = {.status = SP_ERROR_FAILED, .message = "it broke"};
    start();
    peer_init(&peer, true);
    sp_point origin = peer_origin(&peer);
    sp_cuda_semaphore *timeline = peer_import(&peer, &origin);
    sp_point before = timeline_point(timeline, 4), behind = timeline_point(timeline, 7);
    CHECK_STATUS(sp_waiter_fail(origin.waiter, 5, &error), SP_OK);
    peer_signal(&peer, 10);
    CHECK_ERROR(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, 10, NULL),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_STATUS(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, 11, NULL), SP_OK);
    CHECK_STATUS(sp_poll(&before), SP_OK);
    CHECK_ERROR(sp_poll(&behind), SP_ERROR_FAILED);
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &behind), SP_ERROR_FAILED);
    sp_point_unref(&before);
    sp_point_unref(&behind);
    sp_point_unref(&origin);
    close_timeline(timeline);
}

TEST(V3_an_origin_whose_device_is_lost)
{
    static const sp_waiter_ops ops = {
        .size = sizeof(ops),
        .features = SP_FEATURE_COUNTING,
        .backend = SP_BACKEND_CUSTOM,
        .name = "lost",
        .probe = lost_probe,
        .destroy = lost_destroy,
    };
    static sp_waiter waiter;
    sp_point origin = {0};
    start();
    peer_init(&peer, true);
    CHECK_STATUS(sp_waiter_init(&waiter, &ops), SP_OK);
    CHECK_STATUS(sp_point_custom(&waiter, 1, NULL, &origin), SP_OK);
    sp_cuda_semaphore *timeline = peer_import(&peer, &origin);
    sp_point point = timeline_point(timeline, 1);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_DEVICE_LOST);
    sp_point unchanged = test_marked_point(), marked = test_marked_point();
    CHECK_ERROR(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, 0, &unchanged),
                SP_ERROR_DEVICE_LOST);
    CHECK(test_same_point(&unchanged, &marked));
    CHECK_EQUAL(peer_value(&peer), 0);
    sp_point_unref(&point);
    sp_point_unref(&origin);
    close_timeline(timeline);
}

static void signal_host(void *user)
{
    CHECK_STATUS(sp_host_timeline_signal(user, 2), SP_OK);
}

/* An origin that wakes who waits: that, too, is passed on. */
TEST(an_origin_that_wakes)
{
    sp_host_timeline *host = NULL;
    sp_point origin = {0};
    worker late;
    size_t index = 7;
    start();
    peer_init(&peer, true);
    CHECK_STATUS(sp_host_timeline_create(0, &host), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(host, 1, &origin), SP_OK);
    sp_cuda_semaphore *timeline = peer_import(&peer, &origin);
    const sp_point points[2] = {timeline_point(timeline, 3), timeline_point(timeline, 2)};
    CHECK_STATUS(sp_wait_many(points, 2, SP_WAIT_ANY, MS, &index), SP_TIMEOUT);
    worker_start(&late, DELAY_MS, signal_host, host);
    CHECK_STATUS(sp_wait_many(points, 2, SP_WAIT_ANY, PATIENCE_NS, &index), SP_OK);
    CHECK_EQUAL(index, 1);
    worker_join(&late);
    CHECK_STATUS(sp_wait_timeout(&points[0], MS), SP_TIMEOUT); /* blocks in the origin */
    for (unsigned i = 0; i < 2; i++) {
        sp_point released = points[i];
        sp_point_unref(&released);
    }
    sp_point_unref(&origin);
    close_timeline(timeline);
    sp_host_timeline_destroy(host);
}

/* The CUDA context is lost, and with it our part of the work, though the origin knows nothing. */
TEST_NEEDING(a_lost_context_behind_an_origin, ON_DOUBLE)
{
    sp_cuda_semaphore *timeline = open_timeline(true);
    sp_point value = timeline_point(timeline, 1);
    gate_close(ctx.stream, 1);
    sp_point event = stream_point(ctx.stream);
    cu_break(&ctx, ctx.stream);
    CHECK_STATUS(sp_poll(&value), SP_PENDING); /* nobody has asked CUDA yet */
    CHECK_ERROR(sp_poll(&event), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_wait(&value), SP_ERROR_DEVICE_LOST);
    sp_point_unref(&value);
    sp_point_unref(&event);
    close_timeline(timeline);
}

TEST_NEEDING(a_lost_context_was_to_signal, ON_DOUBLE)
{
    sp_cuda_semaphore *timeline = open_timeline(true);
    gate_close(ctx.stream, 1);
    sp_point value = stream_signals(ctx.stream, timeline, 1);
    CHECK_STATUS(sp_wait_timeout(&value, MS), SP_TIMEOUT);
    cu_break(&ctx, ctx.stream);
    CHECK_ERROR(sp_wait(&value), SP_ERROR_DEVICE_LOST); /* though nobody else asks CUDA */
    sp_point_unref(&value);
    close_timeline(timeline);
}

/* CUDA destroys a semaphore only once the context is idle, and holds the caller up until then. */
TEST(W1_a_release_does_not_wait_for_the_context)
{
    sp_cuda_semaphore *timeline = open_timeline(false);
    gate_close(ctx.stream, 1);
    sp_cuda_semaphore_unref(timeline);
    for (unsigned i = 0; i < 20; i++)
        sp_cuda_semaphore_unref(peer_import(&peer, NULL));
    if (cu_control)
        CHECK_EQUAL(cu_control->live(CUDA_DOUBLE_SEMAPHORE), 21);
    gate_open(1);
    CHECK_STATUS(sp_cuda_context_collect(ctx.sp), SP_OK);
    if (cu_control)
        CHECK_EQUAL(cu_control->live(CUDA_DOUBLE_SEMAPHORE), 0);
    CHECK_ERROR(sp_cuda_context_collect(NULL), SP_ERROR_INVALID_ARGUMENT);
    close_timeline(NULL);
}

TEST(releases_do_not_gather_without_end)
{
    sp_cuda_semaphore *timeline = open_timeline(false);
    for (unsigned i = 0; i < 500; i++) {
        sp_cuda_semaphore_unref(peer_import(&peer, NULL));
        if (cu_control)
            CHECK(cu_control->live(CUDA_DOUBLE_SEMAPHORE) <= 66);
    }
    sp_cuda_semaphore_unref(timeline);
    close_timeline(NULL);
}

/* As the one above, but what keeps the context from being idle is the library's own wait. */
TEST_NEEDING(releases_gather_while_a_wait_is_parked, ON_DOUBLE)
{
    sp_cuda_semaphore *timeline = open_timeline(false);
    sp_point point = timeline_point(timeline, 1);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    for (unsigned i = 0; i < 100; i++)
        sp_cuda_semaphore_unref(peer_import(&peer, NULL));
    CHECK_STATUS(sp_cuda_context_collect(ctx.sp), SP_OK);
    CHECK_EQUAL(calls("cuDestroyExternalSemaphore"), 0);
    peer_signal(&peer, 1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_cuda_context_collect(ctx.sp), SP_OK);
    CHECK_EQUAL(calls("cuDestroyExternalSemaphore"), 100);
    sp_point_unref(&point);
    close_timeline(timeline);
}
