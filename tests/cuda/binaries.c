/* SPDX-License-Identifier: MIT
 *
 * Binary external semaphores, and keyed mutexes.
 */
#include "cu_peer.h"

static cu_peer peer;

static sp_cuda_semaphore *open_binary(void)
{
    start();
    peer_init(&peer, false);
    return peer_import(&peer, NULL);
}

static void close_binary(sp_cuda_semaphore *binary)
{
    sp_cuda_semaphore_unref(binary);
    finish();
    peer_fini(&peer);
}

TEST(host_wait_uses_the_signal_up)
{
    late_peer late;
    sp_cuda_semaphore *binary = open_binary();
    sp_point point = binary_point(binary, 0);
    CHECK_EQUAL(point.kind, SP_KIND_CUDA);
    CHECK_EQUAL(point.flags, SP_POINT_BINARY);
    CHECK(sp_cuda_semaphore_from_point(&point) == sp_cuda_semaphore_handle(binary));
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&point, 2 * MS), SP_TIMEOUT);
    peer_signal_late(&late, &peer, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    peer_join_not_early(&late);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &point), SP_OK);
    sp_point_unref(&point);
    close_binary(binary);
}

TEST(a_withheld_signal_gates_the_stream)
{
    cu_word written;
    sp_cuda_semaphore *binary = open_binary();
    cu_word_init(&written);
    sp_point point = binary_point(binary, 0);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &point), SP_OK);
    cu_word_write(&written, ctx.stream, 4);
    CHECK_UNWRITTEN(&written);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &point), SP_ERROR_INVALID_STATE);
    peer_signal(&peer, 0);
    CHECK(cu_word_arrives(&written, 4));
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    cu_word_fini(&written);
    close_binary(binary);
}

TEST(O1_an_unsubmitted_signal)
{
    sp_cuda_semaphore *binary = open_binary();
    sp_point point = binary_point(binary, SP_POINT_UNSUBMITTED);
    CHECK_STATUS(sp_poll(&point), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_wait_timeout(&point, 2 * MS), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &point), SP_NOT_SUBMITTED);
    peer_signal(&peer, 0);
    CHECK_STATUS(sp_point_mark_submitted(&point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    close_binary(binary);
}

TEST(O6_a_later_point_takes_its_place)
{
    sp_cuda_semaphore *binary = open_binary();
    sp_point first = binary_point(binary, 0);
    sp_point second = binary_point(binary, 0);
    CHECK_ERROR(sp_poll(&first), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&first), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &first), SP_ERROR_INVALID_STATE);
    peer_signal(&peer, 0);
    CHECK_STATUS(sp_wait(&second), SP_OK);
    CHECK_ERROR(sp_poll(&first), SP_ERROR_INVALID_STATE);
    sp_point third = binary_point(binary, 0);
    CHECK_STATUS(sp_poll(&second), SP_OK);
    sp_point_unref(&first);
    sp_point_unref(&second);
    sp_point_unref(&third);
    close_binary(binary);
}

TEST(streams_signal_a_binary)
{
    sp_cuda_semaphore *binary = open_binary();
    gate_close(ctx.stream, 1);
    sp_point point = stream_signals(ctx.stream, binary, 0);
    sp_point unchanged = test_marked_point(), marked = test_marked_point();
    CHECK_ERROR(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, binary, 0, &unchanged),
                SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cuda_binary_point(binary, 0, 0, &unchanged), SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&unchanged, &marked));
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    gate_open(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point again = stream_signals(ctx.stream, binary, 0);
    CHECK_STATUS(sp_wait(&again), SP_OK);
    sp_point_unref(&point);
    sp_point_unref(&again);
    close_binary(binary);
}

/* Each wait takes its own signal, on whatever streams. */
TEST(signals_and_waits_stay_in_order)
{
    enum { ROUNDS = 20 };
    sp_cuda_semaphore *binary = open_binary();
    CUstream other = cu_new_stream();
    sp_point points[ROUNDS];
    gate_close(ctx.stream, 1);
    for (unsigned i = 0; i < ROUNDS; i++) {
        points[i] = stream_signals(i % 2 ? other : ctx.stream, binary, 0);
        if (i % 3)
            CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, i % 2 ? ctx.stream : other, &points[i]),
                         SP_OK);
        else
            CHECK_STATUS(sp_wait_timeout(&points[i], MS), SP_TIMEOUT);
    }
    CHECK_STATUS(sp_poll(&points[ROUNDS - 1]), SP_PENDING);
    gate_open(1);
    for (unsigned i = 0; i < ROUNDS; i++) {
        CHECK_STATUS(sp_wait(&points[i]), SP_OK);
        sp_point_unref(&points[i]);
    }
    CHECK_CU(cu.StreamDestroy(other));
    close_binary(binary);
}

/* Without a point it is the other side's to wait for: here, by a second import. */
TEST(a_signal_for_the_other_side)
{
    sp_cuda_semaphore *binary = open_binary();
    sp_cuda_semaphore *theirs = peer_import(&peer, NULL);
    CHECK_STATUS(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, binary, 0, NULL), SP_OK);
    sp_point point = binary_point(theirs, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_cuda_semaphore_unref(theirs);
    close_binary(binary);
}

/* And so is one whose last point is released. */
TEST(a_signal_that_is_left_to_the_other_side)
{
    sp_cuda_semaphore *binary = open_binary();
    sp_cuda_semaphore *theirs = peer_import(&peer, NULL);
    for (unsigned round = 0; round < 3; round++) {
        sp_point ours = stream_signals(ctx.stream, binary, 0), copy = sp_point_ref(&ours);
        sp_point_unref(&ours);
        CHECK_ERROR(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, binary, 0, NULL),
                    SP_ERROR_INVALID_STATE);
        CHECK_ERROR(sp_cuda_binary_point(binary, 0, 0, &ours), SP_ERROR_INVALID_STATE);
        sp_point_unref(&copy);
        sp_point point = binary_point(theirs, 0);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
    }
    sp_point their_signal = binary_point(binary, 0); /* the other side's turn */
    CHECK_STATUS(sp_poll(&their_signal), SP_PENDING);
    peer_signal(&peer, 0);
    CHECK_STATUS(sp_wait(&their_signal), SP_OK);
    sp_point_unref(&their_signal);
    sp_cuda_semaphore_unref(theirs);
    close_binary(binary);
}

/* A later link fails: the signal is not claimed, and still can be waited for. */
TEST(a_failing_link_leaves_nothing_claimed)
{
    sp_host_timeline *host = NULL;
    sp_point never = {0}, chain = {0};
    sp_cuda_semaphore *binary = open_binary();
    CHECK_STATUS(sp_host_timeline_create(0, &host), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(host, 1, &never), SP_OK);
    sp_point point = binary_point(binary, 0);
    CHECK_STATUS(sp_chain(&point, &never, &chain), SP_OK);
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &chain), SP_ERROR_BACKEND_MISMATCH);
    if (cu_control) {
        sp_point event = stream_point(ctx.stream), mixed = {0};
        const char *const steps[] = {"cuStreamWaitEvent", "cuWaitExternalSemaphoresAsync"};
        gate_close(ctx.stream, 1);
        sp_point gated = stream_point(ctx.stream);
        CHECK_STATUS(sp_chain(&point, &gated, &mixed), SP_OK);
        for (unsigned i = 0; i < COUNT_OF(steps); i++) {
            cu_control->inject(steps[i], 0, 1, 999);
            CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &mixed), SP_ERROR_BACKEND);
            CHECK_EQUAL(cu_control->failed(), 1);
        }
        gate_open(1);
        sp_point_unref(&mixed);
        sp_point_unref(&gated);
        sp_point_unref(&event);
    }
    peer_signal(&peer, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&chain);
    sp_point_unref(&point);
    sp_point_unref(&never);
    sp_host_timeline_destroy(host);
    close_binary(binary);
}

TEST(a_point_twice_in_one_chain)
{
    sp_point chain = {0};
    sp_cuda_semaphore *binary = open_binary();
    sp_point point = binary_point(binary, 0);
    CHECK_STATUS(sp_chain(&point, &point, &chain), SP_OK);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &chain), SP_OK);
    peer_signal(&peer, 0);
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    sp_point_unref(&chain);
    sp_point_unref(&point);
    close_binary(binary);
}

typedef struct claimer {
    worker worker;
    const sp_point *point;
    unsigned *claimed;
} claimer;

static void try_claim(void *user)
{
    const claimer *self = user;
    sp_status status = sp_cuda_stream_wait(ctx.sp, ctx.stream, self->point);
    if (status == SP_OK)
        __atomic_fetch_add(self->claimed, 1, __ATOMIC_SEQ_CST);
    else
        CHECK_STATUS(status, SP_ERROR_INVALID_STATE);
}

TEST(O6_one_of_many_consumers_gets_it)
{
    enum { CONSUMERS = 6 };
    claimer consumers[CONSUMERS];
    sp_cuda_semaphore *binary = open_binary();
    for (unsigned round = 0; round < 10; round++) {
        unsigned claimed = 0;
        sp_point point = binary_point(binary, 0);
        for (unsigned i = 0; i < CONSUMERS; i++) {
            consumers[i] = (claimer){.point = &point, .claimed = &claimed};
            worker_start(&consumers[i].worker, 0, try_claim, &consumers[i]);
        }
        for (unsigned i = 0; i < CONSUMERS; i++)
            worker_join(&consumers[i].worker);
        CHECK_EQUAL(claimed, 1);
        peer_signal(&peer, 0);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
    }
    close_binary(binary);
}

/* ---- Handles of other systems: only the double takes them here ---- */

static sp_cuda_semaphore *import_handle(void *handle, sp_cuda_handle_type type)
{
    const sp_cuda_semaphore_import_desc desc = {
        .size = sizeof(desc), .type = type, .handle = handle};
    sp_cuda_semaphore *made = NULL;
    CHECK_STATUS(sp_cuda_semaphore_import(ctx.sp, &desc, &made), SP_OK);
    return made;
}

static void check_keyed_mutex(sp_cuda_handle_type type)
{
    start();
    void *handle = cu_control->make_handle(false, true);
    sp_cuda_semaphore *mutex = import_handle(handle, type);
    sp_point point = {0};
    CHECK_STATUS(sp_cuda_binary_point(mutex, 7, 0, &point), SP_OK);
    CHECK_EQUAL(point.value, 7);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    cu_control->signal_handle(handle, 3); /* released with another key */
    CHECK_STATUS(sp_wait_timeout(&point, 5 * MS), SP_TIMEOUT);
    cu_control->signal_handle(handle, 7);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_EQUAL(cu_control->value_of_handle(handle), 7); /* given back */
    sp_point_unref(&point);

    /* A wait on a stream keeps it, until a signal releases it. */
    CHECK_STATUS(sp_cuda_binary_point(mutex, 7, 0, &point), SP_OK);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &point), SP_OK);
    CHECK_CU(cu.StreamSynchronize(ctx.stream));
    CHECK_EQUAL(cu_control->value_of_handle(handle), UINT64_MAX);
    sp_point_unref(&point);
    CHECK_STATUS(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, mutex, 9, NULL), SP_OK);
    CHECK_CU(cu.StreamSynchronize(ctx.stream));
    CHECK_EQUAL(cu_control->value_of_handle(handle), 9);
    sp_cuda_semaphore_unref(mutex);
    finish();
}

TEST_NEEDING(keyed_mutex, ON_DOUBLE)
{
    check_keyed_mutex(SP_CUDA_KEYED_MUTEX);
}

TEST_NEEDING(keyed_mutex_by_its_shared_handle, ON_DOUBLE)
{
    check_keyed_mutex(SP_CUDA_KEYED_MUTEX_KMT);
}

TEST_NEEDING(binaries_of_win32, ON_DOUBLE)
{
    const sp_cuda_handle_type types[] = {SP_CUDA_BINARY_WIN32, SP_CUDA_BINARY_KMT};
    start();
    for (unsigned i = 0; i < COUNT_OF(types); i++) {
        void *handle = cu_control->make_handle(false, false);
        sp_cuda_semaphore *binary = import_handle(handle, types[i]);
        sp_point point = binary_point(binary, 0);
        CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
        cu_control->signal_handle(handle, 0);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
        sp_cuda_semaphore_unref(binary);
    }
    finish();
}

TEST_NEEDING(fences_of_direct3d, ON_DOUBLE)
{
    const sp_cuda_handle_type types[] = {SP_CUDA_D3D12_FENCE, SP_CUDA_D3D11_FENCE,
                                         SP_CUDA_TIMELINE_WIN32};
    start();
    for (unsigned i = 0; i < COUNT_OF(types); i++) {
        void *handle = cu_control->make_handle(true, false);
        sp_cuda_semaphore *fence = import_handle(handle, types[i]);
        sp_point point = timeline_point(fence, 2);
        CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
        cu_control->signal_handle(handle, 2);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point three = stream_signals(ctx.stream, fence, 3);
        CHECK_STATUS(sp_wait(&three), SP_OK);
        CHECK_EQUAL(cu_control->value_of_handle(handle), 3);
        sp_point_unref(&point);
        sp_point_unref(&three);
        sp_cuda_semaphore_unref(fence);
    }
    finish();
}

/* ---- More than go into one call of the driver ---- */

enum { MANY = 40 };
static cu_peer many_peers[MANY];
static sp_cuda_semaphore *many[MANY];
static sp_point many_points[MANY];

static sp_point open_many(void)
{
    sp_point chain = {0};
    start();
    for (unsigned i = 0; i < MANY; i++) {
        sp_point both = {0};
        peer_init(&many_peers[i], i % 4 == 0);
        many[i] = peer_import(&many_peers[i], NULL);
        many_points[i] = i % 4 ? binary_point(many[i], 0) : timeline_point(many[i], 1);
        CHECK_STATUS(sp_chain(&chain, &many_points[i], &both), SP_OK);
        sp_point_unref(&chain);
        chain = both;
    }
    return chain;
}

static void signal_many(void)
{
    for (unsigned i = 0; i < MANY; i++)
        peer_signal(&many_peers[i], i % 4 ? 0 : 1);
}

static void close_many(sp_point *chain)
{
    sp_point_unref(chain);
    for (unsigned i = 0; i < MANY; i++) {
        sp_point_unref(&many_points[i]);
        sp_cuda_semaphore_unref(many[i]);
    }
    finish();
    for (unsigned i = 0; i < MANY; i++)
        peer_fini(&many_peers[i]);
}

TEST(a_chain_of_many_semaphores)
{
    cu_word written;
    sp_point chain = open_many();
    cu_word_init(&written);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &chain), SP_OK);
    cu_word_write(&written, ctx.stream, 8);
    CHECK_UNWRITTEN(&written);
    signal_many();
    CHECK(cu_word_arrives(&written, 8));
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    cu_word_fini(&written);
    close_many(&chain);
}

/* The first call went through, the second did not: what is enqueued stays used up, the rest is as
 * it was. */
TEST_NEEDING(a_chain_that_fails_half_way, ON_DOUBLE)
{
    unsigned used = 0;
    sp_point chain = open_many();
    cu_control->inject("cuWaitExternalSemaphoresAsync", 1, 1, 999);
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &chain), SP_ERROR_BACKEND);
    CHECK_EQUAL(cu_control->failed(), 1);
    signal_many();
    for (unsigned i = 0; i < MANY; i++) {
        sp_status status = sp_cuda_stream_wait(ctx.sp, ctx.stream, &many_points[i]);
        if (status != SP_OK)
            CHECK_STATUS(status, SP_ERROR_INVALID_STATE); /* its wait has not run yet */
        CHECK_STATUS(sp_wait(&many_points[i]), SP_OK);
        used += status != SP_OK;
    }
    CHECK(used <= 16);
    close_many(&chain);
}

/* The wait was enqueued, but no mark behind it. It is not free to be waited for again. */
TEST_NEEDING(a_host_wait_without_its_mark, ON_DOUBLE)
{
    sp_cuda_semaphore *binary = open_binary();
    for (unsigned round = 0; round < 2; round++) { /* also where an earlier wait left its stream */
        sp_point point = binary_point(binary, 0);
        peer_signal(&peer, 0);
        if (round == 1)
            cu_control->inject("cuEventRecord", 0, 1, 2);
        CHECK_STATUS(sp_wait(&point), round == 1 ? SP_ERROR_OUT_OF_MEMORY : SP_OK);
        cu_control->heal();
        CHECK_STATUS(sp_wait_timeout(&point, MS), round == 1 ? SP_ERROR_FAILED : SP_OK);
        sp_point_unref(&point);
    }
    close_binary(binary);
}

/* The signal was enqueued, but no mark behind it: it is as good as any. */
TEST_NEEDING(a_signal_without_its_mark, ON_DOUBLE)
{
    sp_cuda_semaphore *binary = open_binary();
    for (unsigned round = 0; round < 3; round++) {
        cu_control->inject("cuEventRecord", 0, round == 1, 2);
        sp_point point = stream_signals(ctx.stream, binary, 0);
        cu_control->heal();
        CHECK_STATUS(sp_poll(&point), SP_PENDING);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
    }
    close_binary(binary);
}

static sp_cuda_semaphore *contended;

/* What another thread could do between the claim of a wait and its enqueueing. */
static sp_status signal_meanwhile(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)waiter;
    *reached = value;
    CHECK_ERROR(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, contended, 0, NULL),
                SP_ERROR_INVALID_STATE);
    return SP_OK;
}

static void nothing_to_free(sp_waiter *waiter)
{
    (void)waiter;
}

TEST(no_second_signal_while_a_wait_begins)
{
    static const sp_waiter_ops ops = {
        .size = sizeof(ops),
        .features = SP_FEATURE_COUNTING,
        .name = "meanwhile",
        .probe = signal_meanwhile,
        .destroy = nothing_to_free,
    };
    sp_waiter waiter;
    sp_point custom = {0}, chain = {0};
    contended = open_binary();
    sp_point signal = stream_signals(ctx.stream, contended, 0);
    CHECK_STATUS(sp_waiter_init(&waiter, &ops), SP_OK);
    CHECK_STATUS(sp_point_custom(&waiter, 1, NULL, &custom), SP_OK);
    CHECK_STATUS(sp_chain(&signal, &custom, &chain), SP_OK);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &chain), SP_OK);
    CHECK_STATUS(sp_wait(&signal), SP_OK);
    sp_point_unref(&chain);
    sp_point_unref(&custom);
    sp_point_unref(&signal);
    close_binary(contended);
}
