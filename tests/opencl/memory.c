/* SPDX-License-Identifier: MIT
 *
 * OpenCL: what asks for memory, what does not, and what happens when there is none. Only the
 * library's own requests are counted and refused, not the driver's.
 */
#include "cl_case.h"
#include "support/malloc_double.h"

#include <unistd.h>

TEST(points_and_waits_need_no_memory)
{
    start();
    malloc_double_init();
    for (unsigned round = 0; round < 4; round++) { /* the first may fill a pool */
        unsigned before = malloc_double_calls();
        sp_point marker = queue_signals(cl.queue), event = user_event();
        sp_point wrapped = wrap_event(sp_cl_event_from_point(&event));
        CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &event), SP_OK);
        CHECK_STATUS(sp_poll(&event), SP_PENDING);
        sp_point copy = sp_point_ref(&event);
        sp_point_unref(&copy);
        CHECK_STATUS(sp_cl_user_event_set(&event, SP_OK), SP_OK);
        CHECK_STATUS(sp_wait(&wrapped), SP_OK);
        CHECK_STATUS(sp_wait(&marker), SP_OK);
        sp_point_unref(&marker);
        sp_point_unref(&wrapped);
        sp_point_unref(&event);
        CHECK_CL(cl.raw.Finish(cl.other));
        if (round > 1)
            CHECK_EQUAL(malloc_double_calls(), before);
    }
    finish();
    CHECK(malloc_double_calls() > 0);
    CHECK_EQUAL(malloc_double_held(), 0);
}

TEST_NEEDING(signals_need_no_memory, WITH_SEMAPHORES)
{
    start();
    malloc_double_init();
    sp_cl_semaphore *semaphore = make_semaphore();
    for (unsigned round = 0; round < 4; round++) {
        unsigned before = malloc_double_calls();
        sp_point point = signal_semaphore(cl.queue, semaphore);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
        point = signal_semaphore(cl.queue, semaphore);
        CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &point), SP_OK);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
        if (round > 0)
            CHECK_EQUAL(malloc_double_calls(), before);
    }
    sp_cl_semaphore_unref(semaphore);
    finish();
    CHECK_EQUAL(malloc_double_held(), 0);
}

/* No object of the driver's is left behind either. */
static void refuse_each(sp_status (*attempt)(void), void (*release)(void))
{
    int live = cl_hook_live_objects();
    malloc_double_refuse_each(attempt, release);
    CHECK_EQUAL(cl_hook_live_objects(), live);
}

static sp_cl_context *made_context;

static sp_status make_context(void)
{
    sp_cl_context_desc desc = cl_desc();
    return sp_cl_context_create(&desc, &made_context);
}

static void destroy_context(void)
{
    CHECK_STATUS(sp_cl_context_destroy(made_context, PATIENCE_NS), SP_OK);
}

TEST(no_memory_for_a_context)
{
    cl_open_driver(options);
    malloc_double_init();
    refuse_each(make_context, destroy_context);
    cl_close_driver();
}

static sp_cl_semaphore *made;
static cl_semaphore_khr raw;
static int good_fd;

static sp_status wrap_semaphore(void)
{
    return sp_cl_semaphore_wrap(cl.sp, raw, &made);
}

static sp_status import_semaphore(void)
{
    const sp_cl_semaphore_import_desc desc = {.size = sizeof(desc), .fd = good_fd};
    return sp_cl_semaphore_import(cl.sp, &desc, &made);
}

static void unref_semaphore(void)
{
    sp_cl_semaphore_unref(made);
}

TEST_NEEDING(no_memory_for_a_semaphore, WITH_DOUBLE)
{
    start();
    malloc_double_init();
    raw = make_raw_semaphore();
    good_fd = cl_double_export();
    refuse_each(wrap_semaphore, unref_semaphore);
    refuse_each(import_semaphore, unref_semaphore);
    release_raw_semaphore(raw);
    close(good_fd);
    finish();
}

/* One-shot points come from the context's pools, which grow. */
TEST(no_memory_for_a_point)
{
    enum { COUNT = 100 };
    start();
    malloc_double_init();
    cl_event gate = cl_make_gate();
    sp_point points[COUNT] = {{0}};
    unsigned refused = 0;
    for (unsigned i = 0; i < COUNT; i++) {
        unsigned markers = cl_hook_calls(CL_HOOK_EnqueueMarkerWithWaitList);
        malloc_double_fail(0);
        sp_status status = i % 3 == 0   ? sp_cl_queue_signal(cl.sp, cl.queue, &points[i])
                           : i % 3 == 1 ? sp_cl_user_event(cl.sp, &points[i])
                                        : sp_cl_event_wrap(cl.sp, gate, &points[i]);
        bool failed = malloc_double_failed();
        CHECK_STATUS(status, failed ? SP_ERROR_OUT_OF_MEMORY : SP_OK);
        CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueMarkerWithWaitList),
                    markers + (!failed && i % 3 == 0));
        refused += failed;
        if (failed)
            points[i] = user_event();
    }
    CHECK(refused > 0);
    for (unsigned i = 0; i < COUNT; i++)
        sp_point_unref(&points[i]);
    cl_open_gate(gate);
    finish();
    CHECK_EQUAL(malloc_double_held(), 0);
}

TEST_NEEDING(no_memory_for_a_signal, WITH_DOUBLE)
{
    enum { COUNT = 20 };
    start();
    malloc_double_init();
    sp_cl_semaphore *semaphores[COUNT];
    sp_point points[COUNT] = {{0}};
    for (unsigned i = 0; i < COUNT; i++) {
        semaphores[i] = make_semaphore();
        unsigned signals = cl_hook_calls(CL_HOOK_EnqueueSignalSemaphoresKHR);
        for (unsigned again = 0; again < 2; again++) {
            malloc_double_fail(again); /* the second time nothing is refused */
            sp_status status =
                i % 2 ? sp_cl_binary_point(semaphores[i], 0, &points[i])
                      : sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphores[i], &points[i]);
            bool failed = malloc_double_failed();
            CHECK(failed == !again);
            CHECK_STATUS(status, failed ? SP_ERROR_OUT_OF_MEMORY : SP_OK);
        }
        CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueSignalSemaphoresKHR), signals + (i % 2 == 0));
    }
    for (unsigned i = 0; i < COUNT; i++) {
        sp_point_unref(&points[i]);
        sp_cl_semaphore_unref(semaphores[i]);
    }
    finish();
    CHECK_EQUAL(malloc_double_held(), 0);
}

/* The barrier is in the queue, and its event is only kept for one driver's sake. */
TEST(no_memory_to_park_an_event)
{
    start();
    malloc_double_init();
    sp_point event = user_event();
    malloc_double_fail(0);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &event), SP_OK);
    CHECK(malloc_double_failed());
    CHECK_EQUAL(cl_hook_live_events(), 1);
    CHECK_EQUAL(cl_hook_early_releases(), 1);
    CHECK_STATUS(sp_cl_user_event_set(&event, SP_OK), SP_OK);
    sp_point_unref(&event);
    finish();
}

/* More events, and more signals, than a small array holds. */
enum { LINKS = 60 };
static sp_point links[LINKS], chain;

static sp_status queue_waits(void)
{
    return sp_cl_queue_wait(cl.sp, cl.other, &chain);
}
static void nothing(void) {}

TEST(no_memory_for_many_waits)
{
    start();
    for (unsigned i = 0; i < LINKS; i++) {
        sp_point longer = {0};
        links[i] = user_event();
        CHECK_STATUS(sp_chain(&chain, &links[i], &longer), SP_OK);
        sp_point_unref(&chain);
        chain = longer;
    }
    sp_point spare = user_event(); /* for the barrier's event, which is parked */
    sp_point_unref(&spare);
    malloc_double_init();
    malloc_double_refuse_each(queue_waits, nothing);
    for (unsigned i = 0; i < LINKS; i++) {
        CHECK_STATUS(sp_cl_user_event_set(&links[i], SP_OK), SP_OK);
        sp_point_unref(&links[i]);
    }
    sp_point_unref(&chain);
    finish();
}
