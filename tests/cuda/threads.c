/* SPDX-License-Identifier: MIT
 *
 * Several threads at once.
 */
#include "cu_peer.h"

#define THREADS 6

static cu_peer peer;
static sp_cuda_semaphore *timeline;
static unsigned stop;

typedef struct part {
    worker worker;
    unsigned number;
    sp_point point;
} part;

static bool stopped(void)
{
    return __atomic_load_n(&stop, __ATOMIC_SEQ_CST) != 0;
}

/* ---- W1: waits delay nobody ---- */

static void wait_long(void *user)
{
    part *self = user;
    CHECK_STATUS(sp_wait_timeout(&self->point, PATIENCE_NS), SP_OK);
}

TEST(W1_waits_delay_nobody)
{
    part waiting[2] = {0};
    start();
    peer_init(&peer, true);
    timeline = peer_import(&peer, NULL);
    gate_close(ctx.stream, 1);
    waiting[0].point = stream_point(ctx.stream);
    waiting[1].point = timeline_point(timeline, 100);
    for (unsigned i = 0; i < 2; i++)
        worker_start(&waiting[i].worker, 0, wait_long, &waiting[i]);
    test_sleep_ms(DELAY_MS);
    CUstream other = cu_new_stream();
    for (unsigned i = 0; i < 50; i++) {
        sp_point event = stream_point(other), value = stream_signals(other, timeline, i + 1);
        CHECK_STATUS(sp_wait_timeout(&event, PATIENCE_NS), SP_OK);
        CHECK_STATUS(sp_wait_timeout(&value, PATIENCE_NS), SP_OK);
        sp_point_unref(&event);
        sp_point_unref(&value);
        sp_cuda_semaphore_unref(peer_import(&peer, NULL));
    }
    for (unsigned i = 0; i < 2; i++)
        CHECK(!worker_is_done(&waiting[i].worker));
    gate_open(1);
    peer_signal(&peer, 100);
    for (unsigned i = 0; i < 2; i++) {
        worker_join(&waiting[i].worker);
        sp_point_unref(&waiting[i].point);
    }
    CHECK_CU(cu.StreamDestroy(other));
    sp_cuda_semaphore_unref(timeline);
    finish();
    peer_fini(&peer);
}

/* ---- O5: minting and submitting are one step ---- */

static void mint(void *user)
{
    const part *self = user;
    CUstream stream = NULL;
    CHECK(cu.CtxPushCurrent(ctx.handle) == CUDA_SUCCESS);
    CHECK(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS);
    for (unsigned i = 0; i < 100; i++) {
        sp_point point = {0};
        CHECK_STATUS(sp_cuda_stream_signal_semaphore(ctx.sp, self->number % 2 ? stream : ctx.stream,
                                                     timeline, 0, &point),
                     SP_OK);
        if (i % 10 == 0)
            CHECK_STATUS(sp_wait_timeout(&point, PATIENCE_NS), SP_OK);
        sp_point_unref(&point);
    }
    CHECK(cu.StreamSynchronize(stream) == CUDA_SUCCESS);
    CHECK(cu.StreamDestroy(stream) == CUDA_SUCCESS);
}

TEST(O5_values_reach_the_device_in_order)
{
    part parts[THREADS];
    start();
    peer_init(&peer, true);
    timeline = peer_import(&peer, NULL);
    for (unsigned i = 0; i < THREADS; i++) {
        parts[i] = (part){.number = i};
        worker_start(&parts[i].worker, 0, mint, &parts[i]);
    }
    for (unsigned i = 0; i < THREADS; i++)
        worker_join(&parts[i].worker);
    sp_point last = timeline_point(timeline, 100 * THREADS);
    CHECK_STATUS(sp_wait(&last), SP_OK);
    CHECK_EQUAL(peer_value(&peer), 100 * THREADS);
    sp_point_unref(&last);
    sp_cuda_semaphore_unref(timeline);
    finish(); /* the double notes a value that goes back */
    peer_fini(&peer);
}

/* ---- Destroying a context while points are polled and released ---- */

static void poll_and_release(void *user)
{
    part *self = user;
    while (!stopped()) {
        sp_point copy = sp_point_ref(&self->point);
        sp_status status = sp_poll(&copy);
        CHECK(status == SP_OK || status == SP_PENDING || status == SP_ERROR_INVALID_STATE);
        sp_point_unref(&copy);
    }
    sp_point_unref(&self->point);
}

TEST(points_are_used_while_the_context_is_destroyed)
{
    for (unsigned round = 0; round < 10; round++) {
        part parts[THREADS] = {0};
        late_open late;
        start();
        peer_init(&peer, true);
        timeline = peer_import(&peer, NULL);
        __atomic_store_n(&stop, 0, __ATOMIC_SEQ_CST);
        gate_close(ctx.stream, 1);
        for (unsigned i = 0; i < THREADS; i++) {
            parts[i].point = i % 2 ? timeline_point(timeline, 1) : stream_point(ctx.stream);
            worker_start(&parts[i].worker, 0, poll_and_release, &parts[i]);
        }
        test_sleep_ms(2);
        open_late(&late, 1); /* semaphores are destroyed once the context is idle */
        CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, PATIENCE_NS), SP_OK);
        ctx.sp = NULL;
        join_not_early(&late);
        sp_cuda_semaphore_unref(timeline);
        __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
        for (unsigned i = 0; i < THREADS; i++)
            worker_join(&parts[i].worker);
        finish();
        peer_fini(&peer);
    }
}

/* ---- Two waits on one stream at once ---- */

/* What another thread could do just after the first one's mark was recorded. */
static void wait_for_two(void *user)
{
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, user), SP_OK);
}

TEST_NEEDING(a_mark_that_is_noted_late_hides_no_newer_one, ON_DOUBLE)
{
    start();
    peer_init(&peer, true);
    timeline = peer_import(&peer, NULL);
    sp_point one = timeline_point(timeline, 1), two = timeline_point(timeline, 2);
    cu_control->call_after("cuEventRecord", wait_for_two, &two);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &one), SP_OK);
    sp_point behind_one = stream_point(ctx.stream);
    peer_signal(&peer, 1);
    CHECK_STATUS(sp_wait_timeout(&behind_one, DELAY_MS * MS), SP_TIMEOUT);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, 0), SP_TIMEOUT);
    peer_signal(&peer, 2);
    CHECK_STATUS(sp_wait(&behind_one), SP_OK);
    sp_point_unref(&behind_one);
    sp_point_unref(&one);
    sp_point_unref(&two);
    sp_cuda_semaphore_unref(timeline);
    finish();
    peer_fini(&peer);
}

static void wait_for_values(void *user)
{
    (void)user;
    for (uint64_t value = 1; value <= 50; value++) {
        sp_point point = timeline_point(timeline, value);
        CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &point), SP_OK);
        sp_point_unref(&point);
    }
}

TEST(waits_of_several_threads_on_one_stream)
{
    part parts[THREADS] = {0};
    start();
    peer_init(&peer, true);
    timeline = peer_import(&peer, NULL);
    for (unsigned i = 0; i < THREADS; i++)
        worker_start(&parts[i].worker, 0, wait_for_values, &parts[i]);
    for (uint64_t value = 1; value < 50; value++)
        peer_signal(&peer, value);
    for (unsigned i = 0; i < THREADS; i++)
        worker_join(&parts[i].worker);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, MS), SP_TIMEOUT); /* for 50 */
    peer_signal(&peer, 50);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, PATIENCE_NS), SP_OK);
    ctx.sp = NULL;
    sp_cuda_semaphore_unref(timeline);
    finish();
    peer_fini(&peer);
}

/* ---- A host wait that meets the end of its context ---- */

static sp_point waited;

/* As a thread does that has looked at the point and found it pending just before. */
static void begin_late(void *user)
{
    sp_status *status = user;
    *status = waited.waiter->ops->block(waited.waiter, waited.value, sp_now_ns() + MS);
}

TEST_NEEDING(no_host_wait_begins_on_what_is_being_destroyed, ON_DOUBLE)
{
    for (unsigned binary = 0; binary < 2; binary++) {
        sp_status status = SP_OK;
        start();
        peer_init(&peer, binary == 0);
        timeline = peer_import(&peer, NULL);
        waited = binary ? binary_point(timeline, 0) : timeline_point(timeline, 1);
        /* The first call that destroying makes here: nothing was pending. */
        cu_control->call_after("cuThreadExchangeStreamCaptureMode", begin_late, &status);
        CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, 0), SP_OK);
        CHECK(status != SP_OK);
        CHECK_EQUAL(calls("cuWaitExternalSemaphoresAsync"), 0);
        CHECK_ERROR(sp_wait(&waited), SP_ERROR_INVALID_STATE);
        ctx.sp = NULL;
        sp_point_unref(&waited);
        sp_cuda_semaphore_unref(timeline);
        finish();
        peer_fini(&peer);
    }
}

static void wait_and_release(void *user)
{
    part *self = user;
    sp_status status = SP_TIMEOUT;
    while (status == SP_TIMEOUT)
        status = sp_wait_timeout(&self->point, MS);
    CHECK(status == SP_OK || status == SP_ERROR_INVALID_STATE);
    sp_point_unref(&self->point);
}

TEST(host_waits_begin_while_the_context_is_destroyed)
{
    for (unsigned round = 0; round < 20; round++) {
        part parts[THREADS] = {0};
        start();
        peer_init(&peer, true);
        timeline = peer_import(&peer, NULL);
        for (unsigned i = 0; i < THREADS; i++) {
            parts[i].point = timeline_point(timeline, i + 1);
            worker_start(&parts[i].worker, i % 3 / 2, wait_and_release, &parts[i]);
        }
        sp_status status = SP_TIMEOUT;
        for (uint64_t value = 1; status == SP_TIMEOUT; value++) {
            status = sp_cuda_context_destroy(ctx.sp, round % 2 * MS);
            if (value <= THREADS)
                peer_signal(&peer, value);
        }
        CHECK_STATUS(status, SP_OK);
        ctx.sp = NULL;
        for (unsigned i = 0; i < THREADS; i++)
            worker_join(&parts[i].worker);
        sp_cuda_semaphore_unref(timeline);
        finish();
        peer_fini(&peer);
    }
}

/* The user's work holds up the driver's destroying, and nobody else. */
typedef struct end {
    worker worker;
    flag ended;
} end;

static void end_context(void *user)
{
    end *self = user;
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, 0), SP_OK);
    flag_set(&self->ended);
}

static void release_all(void *user)
{
    part *self = user;
    const sp_status status = sp_poll(&self->point);
    CHECK(status == SP_OK || status == SP_ERROR_INVALID_STATE);
    sp_point_unref(&self->point);
    sp_cuda_semaphore_unref(timeline);
}

TEST(W1_a_context_that_is_being_destroyed_delays_no_release)
{
    CUevent event = NULL;
    end ending = {0};
    part releasing = {0};
    start();
    peer_init(&peer, true);
    timeline = peer_import(&peer, NULL);
    sp_cuda_semaphore_unref(peer_import(&peer, NULL));
    gate_close(ctx.stream, 1);
    CHECK_CU(cu.EventCreate(&event, CU_EVENT_DISABLE_TIMING));
    const sp_cuda_event_wrap_desc desc = {.size = sizeof(desc), .event = event, .take = true};
    CHECK_STATUS(sp_cuda_event_wrap(ctx.sp, &desc, &releasing.point), SP_OK);
    worker_start(&ending.worker, 0, end_context, &ending);
    test_sleep_ms(DELAY_MS);
    CHECK(!cu_control || !flag_is_set(&ending.ended));
    worker_start(&releasing.worker, 0, release_all, &releasing);
    test_sleep_ms(DELAY_MS);
    bool released = worker_is_done(&releasing.worker);
    gate_open(1);
    worker_join(&ending.worker);
    worker_join(&releasing.worker);
    CHECK(released);
    ctx.sp = NULL;
    finish();
    peer_fini(&peer);
}

/* Another thread's release is held up by the driver: that counts as pending, too. */
static void collect(void *user)
{
    (void)user;
    for (unsigned i = 0; i < 65; i++) /* so many are not put off */
        sp_cuda_semaphore_unref(peer_import(&peer, NULL));
}

TEST_NEEDING(destroying_waits_no_longer_than_asked_for_a_release, ON_DOUBLE)
{
    part releasing = {0};
    start();
    peer_init(&peer, true);
    gate_close(ctx.stream, 1);
    worker_start(&releasing.worker, 0, collect, NULL);
    for (unsigned i = 0; calls("cuDestroyExternalSemaphore") == 0 && i < 1000; i++)
        test_sleep_ms(1);
    CHECK_EQUAL(calls("cuDestroyExternalSemaphore"), 1);
    late_open late;
    open_late(&late, 1);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, MS), SP_TIMEOUT);
    CHECK_STATUS(sp_cuda_context_destroy(ctx.sp, PATIENCE_NS), SP_OK);
    join_not_early(&late);
    worker_join(&releasing.worker);
    ctx.sp = NULL;
    CHECK_EQUAL(cu_control->live(CUDA_DOUBLE_SEMAPHORE), 0);
    finish();
    peer_fini(&peer);
}

/* ---- C3: user code never runs inside the driver, so a lock around both is no deadlock ---- */

static pthread_mutex_t user_lock = PTHREAD_MUTEX_INITIALIZER;

static void record_locked(void *user)
{
    (void)user;
    while (!stopped()) {
        sp_point point = {0};
        pthread_mutex_lock(&user_lock);
        CHECK_STATUS(sp_cuda_stream_signal(ctx.sp, ctx.stream, &point), SP_OK);
        pthread_mutex_unlock(&user_lock);
        CHECK_STATUS(sp_wait_timeout(&point, PATIENCE_NS), SP_OK);
        pthread_mutex_lock(&user_lock);
        sp_point_unref(&point);
        pthread_mutex_unlock(&user_lock);
    }
}

TEST(C3_a_lock_around_our_calls)
{
    part parts[THREADS] = {0};
    start();
    __atomic_store_n(&stop, 0, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < THREADS; i++)
        worker_start(&parts[i].worker, 0, record_locked, &parts[i]);
    test_sleep_ms(100);
    __atomic_store_n(&stop, 1, __ATOMIC_SEQ_CST);
    for (unsigned i = 0; i < THREADS; i++)
        worker_join(&parts[i].worker);
    finish();
}
