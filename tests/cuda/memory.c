/* SPDX-License-Identifier: MIT
 *
 * What asks for memory, what does not, and what happens when there is none. Only the library's own
 * requests are counted and refused.
 */
#include "cu_peer.h"
#include "support/malloc_double.h"

#include <unistd.h>

static cu_peer peers[2];
static sp_cuda_semaphore *timeline, *binary;
static sp_point made;

static void begin(void)
{
    start();
    malloc_double_init();
    peer_init(&peers[0], true);
    peer_init(&peers[1], false);
    timeline = peer_import(&peers[0], NULL);
    binary = peer_import(&peers[1], NULL);
}

static void end(void)
{
    sp_cuda_semaphore_unref(timeline);
    sp_cuda_semaphore_unref(binary);
    finish();
    peer_fini(&peers[0]);
    peer_fini(&peers[1]);
}

TEST(points_and_waits_need_no_memory)
{
    begin();
    for (unsigned round = 0; round < 8; round++) { /* the first may fill the pools */
        unsigned before = malloc_double_calls();
        gate_close(ctx.stream, round + 1); /* so that each round has as much pending at once */
        sp_point event = stream_point(ctx.stream), copy = sp_point_ref(&event);
        sp_point value = stream_signals(ctx.stream, timeline, 0);
        sp_point signal = stream_signals(ctx.stream, binary, 0);
        CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &event), SP_OK);
        CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &value), SP_OK);
        CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &signal), SP_OK);
        sp_point ahead = timeline_point(timeline, 1000);
        CHECK_STATUS(sp_wait_timeout(&ahead, MS), SP_TIMEOUT);
        sp_point_unref(&ahead);
        gate_open(round + 1);
        CHECK_STATUS(sp_wait(&event), SP_OK);
        CHECK_STATUS(sp_wait(&value), SP_OK);
        CHECK_STATUS(sp_wait(&signal), SP_OK);
        sp_point_unref(&copy);
        sp_point_unref(&event);
        sp_point_unref(&value);
        sp_point_unref(&signal);
        CHECK_CU(cu.StreamSynchronize(ctx.stream)); /* what was enqueued is given back */
        if (round > 3)
            CHECK_EQUAL(malloc_double_calls(), before);
    }
    peer_signal(&peers[0], 1000);
    end();
}

static sp_cuda_context *made_context;
static sp_status make_context(void)
{
    sp_cuda_context_desc desc = cu_context_desc(ctx.handle);
    return sp_cuda_context_create(&desc, &made_context);
}
static void destroy_context(void)
{
    CHECK_STATUS(sp_cuda_context_destroy(made_context, PATIENCE_NS), SP_OK);
}

TEST(no_memory_for_a_context)
{
    begin();
    malloc_double_refuse_each(make_context, destroy_context);
    end();
}

static int fd;
static sp_cuda_semaphore *imported;
static sp_status import_one(void)
{
    const sp_cuda_semaphore_import_desc desc = {
        .size = sizeof(desc), .type = SP_CUDA_TIMELINE_FD, .fd = fd};
    return sp_cuda_semaphore_import(ctx.sp, &desc, &imported);
}
static void unref_imported(void)
{
    sp_cuda_semaphore_unref(imported);
    CHECK_STATUS(sp_cuda_context_collect(ctx.sp), SP_OK);
}

TEST(no_memory_for_an_import)
{
    begin();
    fd = peer_export(&peers[0]);
    CHECK_STATUS(import_one(), SP_OK); /* what a driver opens once */
    unref_imported();
    malloc_double_refuse_each(import_one, unref_imported);
    close(fd);
    end();
}

/* Everything that takes an object from a pool, on a context whose pools are empty. */
static sp_status make_event(void)
{
    return sp_cuda_stream_signal(ctx.sp, ctx.stream, &made);
}
static sp_status open_wrapped(void)
{
    const sp_cuda_event_wrap_desc desc = {.size = sizeof(desc), .event = (CUevent)16};
    return sp_cuda_event_wrap(ctx.sp, &desc, &made);
}
static sp_status make_ipc(void)
{
    uint8_t handle[SP_CUDA_IPC_SIZE];
    return sp_cuda_stream_signal_ipc(ctx.sp, ctx.stream, handle, &made);
}
static sp_status make_value(void)
{
    return sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, 0, &made);
}
static sp_status make_binary(void)
{
    return sp_cuda_binary_point(binary, 0, 0, &made);
}
static sp_status make_signal(void)
{
    return sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, binary, 0, &made);
}
static sp_status wait_for_value(void)
{
    sp_point ahead = timeline_point(timeline, 1000);
    sp_status status = sp_cuda_stream_wait(ctx.sp, ctx.stream, &ahead);
    sp_point_unref(&ahead);
    return status;
}

/* False once nothing was refused any more. */
static bool refuse_one(sp_status (*attempt)(void), unsigned skip)
{
    sp_point marked = test_marked_point();
    begin(); /* with empty pools */
    unsigned handles = census_open_handles();
    made = test_marked_point();
    malloc_double_fail(skip);
    sp_status status = attempt();
    bool refused = malloc_double_failed();
    CHECK_STATUS(status, refused ? SP_ERROR_OUT_OF_MEMORY : SP_OK);
    if (refused) {
        CHECK(test_same_point(&made, &marked));
        if (cu_control) /* a driver opens files with the first object of a kind */
            CHECK_HANDLES(handles);
        CHECK_STATUS(attempt(), SP_OK); /* nothing was lost by it */
    }
    if (made.waiter)
        sp_point_unref(&made);
    if (attempt == wait_for_value)
        peer_signal(&peers[0], 1000);
    end();
    return refused;
}

TEST(no_memory_for_points_and_waits)
{
    sp_status (*const attempts[])(void) = {make_event,  open_wrapped, make_ipc,      make_value,
                                           make_binary, make_signal,  wait_for_value};
    for (unsigned i = 0; i < COUNT_OF(attempts); i++) {
        unsigned skip = 0;
        while (refuse_one(attempts[i], skip))
            skip++;
        CHECK(skip > 0);
    }
}

TEST(no_memory_for_a_long_wait)
{
    enum { COUNT = 40 };
    sp_point chain = {0};
    begin();
    gate_close(ctx.stream, 1);
    for (unsigned i = 0; i < COUNT; i++) {
        sp_point next = stream_point(ctx.stream), both = {0};
        CHECK_STATUS(sp_chain(&chain, &next, &both), SP_OK);
        sp_point_unref(&chain);
        sp_point_unref(&next);
        chain = both;
    }
    sp_point signal = binary_point(binary, 0), all = {0};
    CHECK_STATUS(sp_chain(&signal, &chain, &all), SP_OK);
    CUstream other = cu_new_stream();
    sp_status status = SP_ERROR_OUT_OF_MEMORY;
    unsigned refused = 0;
    for (unsigned skip = 0; status == SP_ERROR_OUT_OF_MEMORY; skip++) {
        malloc_double_fail(skip);
        status = sp_cuda_stream_wait(ctx.sp, other, &all);
        refused += malloc_double_failed();
    }
    CHECK_STATUS(status, SP_OK); /* the binary was not left claimed */
    CHECK(refused >= 2);
    gate_open(1);
    peer_signal(&peers[1], 0);
    CHECK_STATUS(sp_wait(&all), SP_OK);
    sp_point_unref(&all);
    sp_point_unref(&chain);
    sp_point_unref(&signal);
    CHECK_CU(cu.StreamDestroy(other));
    end();
}
