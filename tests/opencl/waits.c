/* SPDX-License-Identifier: MIT
 *
 * Waits for signals of binary semaphores, on the device and on the host: one uses a signal up. O3, O6.
 */
#include "cl_case.h"

/* ---- Waits on the device ---- */

static void check_gated_copy(cl_command_queue consumer, bool own)
{
    cl_event gate = cl_make_gate();
    cl_mem source = cl_make_buffer(), target = cl_make_buffer();
    sp_cl_semaphore *semaphore = make_semaphore();
    cl_event fill = cl_fill(own ? cl.queue : cl.look, source, 77, gate);
    sp_point ready = {0};
    if (own) {
        ready = signal_semaphore(cl.queue, semaphore);
    } else {
        signal_raw(semaphore, gate);
        ready = binary_point(semaphore, 0);
    }
    cl_command_queue reader = cl.look; /* not behind the gate */
    cl.look = own ? cl.look : cl.queue;
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, consumer, &ready), SP_OK);
    CHECK_EQUAL(cl_hook_unflushed(consumer), 0);
    cl_copy(consumer, source, target);
    sp_point copied = queue_signals(consumer);
    CHECK_STAYS_UNWRITTEN(target); /* withheld so far */
    CHECK_STATUS(sp_poll(&ready), SP_PENDING);
    cl_open_gate(gate);
    CHECK_STATUS(sp_wait(&copied), SP_OK);
    CHECK_EQUAL(cl_content(target), 77);
    CHECK_STATUS(sp_wait(&ready), SP_OK);
    CHECK_EQUAL(waits(), 1);
    cl.look = reader;
    sp_point_unref(&ready);
    sp_point_unref(&copied);
    sp_cl_semaphore_unref(semaphore);
    CHECK_CL(cl.raw.ReleaseEvent(fill));
    CHECK_CL(cl.raw.ReleaseMemObject(source));
    CHECK_CL(cl.raw.ReleaseMemObject(target));
}

TEST_NEEDING(O3_own_signal_gates_a_queue, WITH_GATED_SEMAPHORES)
{
    start();
    check_gated_copy(cl.other, true);
    finish();
}

TEST_NEEDING(O3_other_sides_signal_gates_a_queue, WITH_GATED_SEMAPHORES)
{
    start();
    check_gated_copy(cl.other, false);
    finish();
}

TEST_NEEDING(O3_a_signal_gates_an_out_of_order_queue, WITH_GATED_SEMAPHORES)
{
    start();
    cl_command_queue queue = cl_make_queue(cl.context, true);
    check_gated_copy(queue, false);
    CHECK_CL(cl.raw.ReleaseCommandQueue(queue));
    finish();
}

TEST_NEEDING(a_chain_of_events_and_signals_is_one_wait, WITH_GATED_SEMAPHORES)
{
    enum { COUNT = 20 };
    start();
    sp_cl_semaphore *semaphores[COUNT];
    sp_point signals[COUNT], opened = user_event(), chain = sp_point_ref(&opened);
    for (unsigned i = 0; i < COUNT; i++) {
        sp_point longer = {0};
        semaphores[i] = make_semaphore();
        signal_raw(semaphores[i], NULL);
        signals[i] = binary_point(semaphores[i], 0);
        CHECK_STATUS(sp_chain(&chain, &signals[i], &longer), SP_OK);
        sp_point_unref(&chain);
        CHECK_STATUS(sp_chain(&longer, &signals[i / 2], &chain), SP_OK); /* some twice */
        sp_point_unref(&longer);
    }
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &chain), SP_OK);
    CHECK_EQUAL(waits(), 1);
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueBarrierWithWaitList), 0);
    sp_point behind = queue_signals(cl.other);
    CHECK_STATUS(sp_wait_timeout(&behind, DELAY_MS * MS), SP_TIMEOUT);
    CHECK_STATUS(sp_cl_user_event_set(&opened, SP_OK), SP_OK);
    CHECK_STATUS(sp_wait(&behind), SP_OK);
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    for (unsigned i = 0; i < COUNT; i++) {
        sp_point_unref(&signals[i]);
        sp_cl_semaphore_unref(semaphores[i]);
    }
    sp_point_unref(&chain);
    sp_point_unref(&behind);
    sp_point_unref(&opened);
    finish();
}

TEST_NEEDING(an_error_claims_nothing, WITH_SEMAPHORES)
{
    start();
    sp_cl_semaphore *semaphore = make_semaphore();
    sp_host_timeline *timeline = NULL;
    sp_point host = {0}, chain = {0};
    signal_raw(semaphore, NULL);
    sp_point point = binary_point(semaphore, 0);
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &host), SP_OK);
    CHECK_STATUS(sp_chain(&point, &host, &chain), SP_OK);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.other, &chain), SP_ERROR_BACKEND_MISMATCH);
    cl_hook_fail(CL_HOOK_EnqueueWaitSemaphoresKHR, CL_OUT_OF_RESOURCES, 0, 2);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.other, &point), SP_ERROR_OUT_OF_MEMORY);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&chain);
    sp_point_unref(&point);
    sp_point_unref(&host);
    sp_host_timeline_destroy(timeline);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

static void fail_it(void *user, cl_event wait)
{
    cl_fail_gate(*(cl_event *)user);
    while (cl_status_of(wait) > CL_COMPLETE)
        test_sleep_ms(1);
}

/* The wait fails before what keeps the queue back behind it is there: nothing would. */
TEST_NEEDING(a_wait_that_fails_at_once_is_no_success, WITH_DOUBLE)
{
    for (unsigned out_of_order = 0; out_of_order < 2; out_of_order++) {
        start();
        cl_command_queue queue = cl_make_queue(cl.context, out_of_order);
        cl_event gate = cl_make_gate();
        sp_cl_semaphore *semaphore = make_semaphore();
        cl_mem buffer = cl_make_buffer();
        cl_event fill = cl_fill(cl.queue, buffer, 5, gate);
        sp_point ready = signal_semaphore(cl.queue, semaphore);
        cl_hook_inside(CL_HOOK_EnqueueWaitSemaphoresKHR, fail_it, &gate);
        CHECK_ERROR(sp_cl_queue_wait(cl.sp, queue, &ready), SP_ERROR_FAILED);
        CHECK_EQUAL(waits(), 1);
        CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueBarrierWithWaitList), 0);
        CHECK_ERROR(sp_wait(&ready), SP_ERROR_FAILED);
        sp_point behind = queue_signals(queue); /* the queue works */
        CHECK_STATUS(sp_wait(&behind), SP_OK);
        sp_point_unref(&behind);
        sp_point_unref(&ready);
        sp_cl_semaphore_unref(semaphore);
        CHECK_CL(cl.raw.ReleaseEvent(fill));
        CHECK_CL(cl.raw.ReleaseMemObject(buffer));
        CHECK_CL(cl.raw.ReleaseCommandQueue(queue));
        finish();
    }
}

/* ---- One signal, one wait ---- */

TEST_NEEDING(O6_the_second_consumer_is_refused, WITH_GATED_SEMAPHORES)
{
    start();
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    signal_raw(semaphore, gate);
    sp_point point = binary_point(semaphore, 0);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &point), SP_OK);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.queue, &point), SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_wait_timeout(&point, 5 * MS), SP_TIMEOUT); /* looks at that wait */
    CHECK_EQUAL(waits(), 1);
    cl_open_gate(gate);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.queue, &point), SP_OK); /* reached: nothing to do */
    CHECK_EQUAL(waits(), 1);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(O6_an_old_point_keeps_its_answer, WITH_GATED_SEMAPHORES)
{
    start();
    sp_cl_semaphore *semaphore = make_semaphore();
    sp_point points[5];
    for (unsigned i = 0; i < 5; i++) {
        points[i] = signal_semaphore(cl.queue, semaphore);
        CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, NULL),
                    SP_ERROR_INVALID_STATE); /* nobody waits yet */
        CHECK_STATUS(sp_wait(&points[i]), SP_OK);
    }
    cl_event gate = cl_make_gate();
    cl_close_queue(cl.queue, gate);
    sp_point last = signal_semaphore(cl.queue, semaphore);
    for (unsigned i = 0; i < 5; i++)
        CHECK_STATUS(sp_poll(&points[i]), SP_OK);
    CHECK_STATUS(sp_poll(&last), SP_PENDING);
    cl_open_gate(gate);
    CHECK_STATUS(sp_wait(&last), SP_OK);
    for (unsigned i = 0; i < 5; i++)
        sp_point_unref(&points[i]);
    sp_point_unref(&last);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(a_later_point_takes_the_place_of_an_unused_one, WITH_SEMAPHORES)
{
    start();
    sp_cl_semaphore *semaphore = make_semaphore();
    sp_point first = binary_point(semaphore, 0);
    sp_point second = binary_point(semaphore, SP_POINT_UNSUBMITTED);
    CHECK_ERROR(sp_poll(&first), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&first), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.other, &first), SP_ERROR_INVALID_STATE);
    sp_point third = signal_semaphore(cl.queue, semaphore);
    CHECK_ERROR(sp_poll(&second), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_point_mark_submitted(&second), SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_wait(&third), SP_OK);
    sp_point_unref(&first);
    sp_point_unref(&second);
    sp_point_unref(&third);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

static void wait_raw(sp_cl_semaphore *semaphore)
{
    cl_semaphore_khr raw = sp_cl_semaphore_handle(semaphore);
    CHECK_CL(cl_hook_real.EnqueueWaitSemaphoresKHR(cl.look, 1, &raw, NULL, 0, NULL, NULL));
    CHECK_CL(cl.raw.Finish(cl.look));
}

/* As long as its point lives; then it is the other side's to wait for. */
TEST_NEEDING(a_signal_that_nobody_waited_for_blocks_the_next, WITH_SEMAPHORES)
{
    start();
    sp_cl_semaphore *semaphore = make_semaphore();
    sp_point out = test_marked_point(), marked = out;
    sp_point point = signal_semaphore(cl.queue, semaphore);
    CHECK_ERROR(sp_cl_binary_point(semaphore, 0, &out), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, &out),
                SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, NULL),
                SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&out, &marked));
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueSignalSemaphoresKHR), 1);
    sp_point_unref(&point);
    wait_raw(semaphore);
    point = signal_semaphore(cl.queue, semaphore);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

/* Also while it is pending: its order among signals is the caller's to know. */
TEST_NEEDING(a_pending_signal_is_left_to_the_other_side, WITH_GATED_SEMAPHORES)
{
    start();
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    cl_close_queue(cl.queue, gate);
    sp_point point = signal_semaphore(cl.queue, semaphore);
    sp_point_unref(&point);
    point = binary_point(semaphore, 0); /* the other side is this program, too */
    cl_open_gate(gate);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

/* A wait that fails for another reason uses no signal up. */
TEST_NEEDING(a_failed_wait_leaves_its_signal, WITH_DOUBLE)
{
    start();
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    sp_point failing = wrap_event(gate), chain = {0}, out = test_marked_point(), marked = out;
    sp_point ready = signal_semaphore(cl.queue, semaphore);
    CHECK_STATUS(sp_chain(&failing, &ready, &chain), SP_OK);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &chain), SP_OK);
    CHECK_EQUAL(waits(), 1);
    CHECK_CL(cl.raw.Finish(cl.queue)); /* the signal is there */
    cl_fail_gate(gate);
    CHECK_ERROR(sp_wait_timeout(&ready, PATIENCE_NS), SP_ERROR_FAILED);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, &out),
                SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&out, &marked));
    sp_point_unref(&chain);
    sp_point_unref(&ready);
    wait_raw(semaphore);
    ready = signal_semaphore(cl.queue, semaphore);
    CHECK_STATUS(sp_wait(&ready), SP_OK);
    sp_point_unref(&ready);
    sp_point_unref(&failing);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(behind_its_wait_a_semaphore_is_signalled_again, WITH_GATED_SEMAPHORES)
{
    start();
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    sp_point out = test_marked_point();
    signal_raw(semaphore, gate);
    sp_point first = binary_point(semaphore, 0);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &first), SP_OK);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, &out),
                SP_ERROR_INVALID_STATE); /* it could come before the wait */
    CHECK_ERROR(sp_cl_binary_point(semaphore, 0, &out), SP_ERROR_INVALID_STATE);
    sp_point second = signal_semaphore(cl.other, semaphore);
    CHECK_STATUS(sp_poll(&second), SP_PENDING);
    cl_open_gate(gate);
    CHECK_STATUS(sp_wait(&second), SP_OK);
    CHECK_STATUS(sp_poll(&first), SP_OK);
    sp_point_unref(&first);
    sp_point_unref(&second);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(a_signal_without_a_point_is_the_other_sides, WITH_SEMAPHORES)
{
    start();
    sp_cl_semaphore *semaphore = make_semaphore();
    cl_semaphore_khr raw = sp_cl_semaphore_handle(semaphore);
    for (unsigned i = 0; i < 3; i++) {
        CHECK_STATUS(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, NULL), SP_OK);
        CHECK_EQUAL(cl_hook_unflushed(cl.queue), 0);
        CHECK_CL(cl_hook_real.EnqueueWaitSemaphoresKHR(cl.look, 1, &raw, NULL, 0, NULL, NULL));
        CHECK_CL(cl.raw.Finish(cl.look));
    }
    CHECK_EQUAL(cl_hook_live_events(), 0);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

/* The signal may be on its way although the driver failed: then there must be no second one. */
TEST_NEEDING(a_signal_whose_flush_failed, WITH_DOUBLE)
{
    start();
    sp_cl_semaphore *semaphore = make_semaphore();
    sp_point out = test_marked_point(), marked = out;
    cl_hook_fail(CL_HOOK_Flush, CL_OUT_OF_HOST_MEMORY, 0, 1);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, &out),
                SP_ERROR_OUT_OF_MEMORY);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, &out),
                SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&out, &marked));
    CHECK(cl_hook_live_events() <= 1); /* the signal's, until it is over */
    sp_cl_semaphore_unref(semaphore);
    finish();
}

/* ---- Host waits among others ---- */

TEST_NEEDING(any_of_signals_and_events, WITH_GATED_SEMAPHORES)
{
    start();
    late_gate late;
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    signal_raw(semaphore, gate);
    sp_point points[3] = {user_event(), binary_point(semaphore, 0), user_event()};
    size_t index = 9;
    CHECK_STATUS(sp_wait_many(points, 3, SP_WAIT_ANY, 10 * MS, &index), SP_TIMEOUT);
    open_late(&late, gate);
    CHECK_STATUS(sp_wait_many(points, 3, SP_WAIT_ANY, PATIENCE_NS, &index), SP_OK);
    CHECK_EQUAL(index, 1);
    join_not_early(&late);
    CHECK_EQUAL(waits(), 1);
    CHECK_STATUS(sp_cl_user_event_set(&points[0], SP_OK), SP_OK);
    CHECK_STATUS(sp_cl_user_event_set(&points[2], SP_OK), SP_OK);
    CHECK_STATUS(sp_wait_many(points, 3, SP_WAIT_ALL, PATIENCE_NS, &index), SP_OK);
    for (unsigned i = 0; i < 3; i++)
        sp_point_unref(&points[i]);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(without_a_wait_queue, WITH_GATED_SEMAPHORES)
{
    start();
    cl_close_library();
    sp_cl_context_desc desc = cl_desc();
    desc.wait_queue = NULL;
    CHECK_STATUS(sp_cl_context_create(&desc, &cl.sp), SP_OK);
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    cl_close_queue(cl.queue, gate);
    sp_point point = signal_semaphore(cl.queue, semaphore);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_NOT_SUPPORTED); /* at once */
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    cl_open_gate(gate);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

static void wait_here(void *user)
{
    CHECK_STATUS(sp_wait_timeout(user, PATIENCE_NS), SP_OK);
}

TEST_NEEDING(many_threads_wait_for_one_signal, WITH_GATED_SEMAPHORES)
{
    enum { COUNT = 8 };
    start();
    worker workers[COUNT];
    late_gate late;
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    signal_raw(semaphore, gate);
    sp_point point = binary_point(semaphore, 0);
    for (unsigned i = 0; i < COUNT; i++)
        worker_start(&workers[i], 0, wait_here, &point);
    open_late(&late, gate);
    for (unsigned i = 0; i < COUNT; i++)
        worker_join(&workers[i]);
    join_not_early(&late);
    CHECK_EQUAL(waits(), 1);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    finish();
}
