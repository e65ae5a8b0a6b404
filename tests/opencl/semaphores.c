/* SPDX-License-Identifier: MIT
 *
 * Binary semaphores: one signal is one point, and one wait uses it up. O1, O6. The other side is a
 * queue of the test's own.
 */
#include "cl_case.h"

#include <string.h>

static unsigned waits(void)
{
    return cl_hook_calls(CL_HOOK_EnqueueWaitSemaphoresKHR);
}

/* ---- Signals of our own ---- */

TEST_NEEDING(own_signal_and_a_host_wait, WITH_GATED_SEMAPHORES)
{
    start();
    late_gate late;
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    cl_close_queue(cl.queue, gate);
    sp_point point = signal_semaphore(cl.queue, semaphore);
    CHECK_EQUAL(point.kind, SP_KIND_OPENCL);
    CHECK_EQUAL(point.flags, SP_POINT_BINARY);
    CHECK(point.raw.opencl.semaphore == sp_cl_semaphore_handle(semaphore));
    CHECK(sp_cl_semaphore_from_point(&point) == sp_cl_semaphore_handle(semaphore));
    CHECK(sp_cl_event_from_point(&point) == NULL);
    CHECK_EQUAL(cl_hook_unflushed(cl.queue), 0);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&point, DELAY_MS * MS), SP_TIMEOUT);
    CHECK_EQUAL(waits(), 0); /* not before the signal is there: it would hold up the wait queue */
    open_late(&late, gate);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    join_not_early(&late);
    CHECK_EQUAL(waits(), 1);
    CHECK_EQUAL(cl_hook_unflushed(cl.wait_queue), 0);
    unsigned calls = cl_hook_all_calls();
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    CHECK_EQUAL(cl_hook_all_calls(), calls);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(a_failed_producer_fails_its_point, WITH_DOUBLE)
{
    for (unsigned round = 0; round < 3; round++) {
        start();
        late_gate late;
        cl_event gate = cl_make_gate();
        sp_cl_semaphore *semaphore = make_semaphore();
        cl_mem buffer = cl_make_buffer();
        cl_event fill = cl_fill(cl.queue, buffer, 5, gate);
        sp_point point = signal_semaphore(cl.queue, semaphore), behind = {0};
        if (round == 1) {
            CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &point), SP_OK);
            behind = queue_signals(cl.other);
        }
        fail_late(&late, gate);
        if (round == 2) {
            size_t index = 7;
            CHECK_ERROR(sp_wait_many(&point, 1, SP_WAIT_ANY, PATIENCE_NS, &index), SP_ERROR_FAILED);
            CHECK_EQUAL(index, 0);
        }
        CHECK_ERROR(sp_wait_timeout(&point, PATIENCE_NS), SP_ERROR_FAILED);
        /* A queue that waits for it goes on, with an error. */
        if (round == 1)
            CHECK_ERROR(sp_wait_timeout(&behind, PATIENCE_NS), SP_ERROR_FAILED);
        else
            CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.other, &point), SP_ERROR_FAILED);
        CHECK_EQUAL(waits(), round == 1);
        join_not_early(&late);
        if (round != 1) { /* no signal came, and no wait is enqueued: the semaphore is free */
            sp_point again = binary_point(semaphore, 0);
            sp_point_unref(&again);
        }
        sp_point_unref(&behind);
        sp_point_unref(&point);
        sp_cl_semaphore_unref(semaphore);
        CHECK_CL(cl.raw.ReleaseEvent(fill));
        CHECK_CL(cl.raw.ReleaseMemObject(buffer));
        finish();
    }
}

/* The wait is enqueued, and the driver gives no reference of its event. */
TEST_NEEDING(H1_nothing_tells_when_a_wait_is_over, WITH_DOUBLE)
{
    for (unsigned on_host = 0; on_host < 2; on_host++) {
        for (unsigned skip = 0; skip < 2; skip++) {
            start();
            sp_cl_semaphore *semaphore = make_semaphore();
            sp_point point = binary_point(semaphore, 0);
            signal_raw(semaphore, NULL);
            cl_hook_fail(CL_HOOK_RetainEvent, CL_OUT_OF_HOST_MEMORY, skip, 2 - skip);
            for (unsigned i = 0; i < 2; i++) {
                if (i == 0 && !on_host)
                    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.queue, &point),
                                 skip ? SP_OK : SP_ERROR_FAILED);
                else
                    CHECK_STATUS(sp_wait(&point), skip ? SP_OK : SP_ERROR_FAILED);
                if (!skip)
                    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_OUT_OF_MEMORY);
            }
            sp_point_unref(&point);
            sp_cl_semaphore_unref(semaphore);
            finish();
        }
    }
}

/* Such a wait may run after any later signal, so there is none: once the point has no reference of
 * the event, once the semaphore. */
TEST_NEEDING(no_signal_behind_a_wait_that_nothing_tells_of, WITH_DOUBLE)
{
    for (unsigned skip = 0; skip < 2; skip++) {
        start();
        cl_event gate = cl_make_gate();
        sp_cl_semaphore *semaphore = make_semaphore();
        cl_close_queue(cl.other, gate);
        sp_point out = test_marked_point(), marked = out;
        sp_point point = signal_semaphore(cl.queue, semaphore);
        cl_hook_fail(CL_HOOK_RetainEvent, CL_OUT_OF_HOST_MEMORY, skip, 1);
        CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &point), skip ? SP_OK : SP_ERROR_FAILED);
        CHECK_STATUS(sp_poll(&point), skip ? SP_PENDING : SP_ERROR_FAILED);
        sp_point_unref(&point);
        CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, &out),
                    SP_ERROR_INVALID_STATE);
        CHECK(strstr(sp_last_error()->message, "anew"));
        CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, NULL),
                    SP_ERROR_INVALID_STATE);
        CHECK_ERROR(sp_cl_binary_point(semaphore, 0, &out), SP_ERROR_INVALID_STATE);
        CHECK(test_same_point(&out, &marked));
        CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueSignalSemaphoresKHR), 1);
        cl_open_gate(gate);
        CHECK_CL(cl.raw.Finish(cl.other));
        sp_cl_semaphore_unref(semaphore);
        finish();
    }
}

/* A driver that cannot say where the wait before is. */
TEST_NEEDING(H1_a_new_signal_looks_at_the_last_wait, WITH_DOUBLE)
{
    start();
    sp_cl_semaphore *semaphore = make_semaphore();
    sp_point out = test_marked_point(), marked = out, point = binary_point(semaphore, 0);
    signal_raw(semaphore, NULL);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    cl_hook_fail(CL_HOOK_GetEventInfo, CL_DEVICE_NOT_AVAILABLE, 0, 2);
    CHECK_ERROR(sp_cl_binary_point(semaphore, 0, &out), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, &out),
                SP_ERROR_DEVICE_LOST);
    CHECK(test_same_point(&out, &marked));
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

/* The wait is pending, and its point goes; once also, as above, without
 * a reference of the point's. */
TEST_NEEDING(a_wait_that_nothing_tells_of_is_kept, WITH_DOUBLE)
{
    for (unsigned refused = 0; refused < 2; refused++) {
        start();
        int live = cl_hook_live_objects();
        cl_event gate = cl_make_gate();
        sp_cl_semaphore *semaphore = make_semaphore();
        sp_point point = binary_point(semaphore, 0);
        signal_raw(semaphore, gate);
        if (refused)
            cl_hook_fail(CL_HOOK_RetainEvent, CL_OUT_OF_HOST_MEMORY, 0, 1);
        CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.queue, &point), refused ? SP_ERROR_FAILED : SP_OK);
        sp_point_unref(&point);
        sp_cl_semaphore_unref(semaphore);
        CHECK_EQUAL(cl_hook_live_events(), 2 - (int)refused);
        CHECK_EQUAL(cl_hook_early_releases(), 0);
        cl_open_gate(gate);
        CHECK_CL(cl.raw.Finish(cl.queue));
        check_live_objects(live);
        finish();
    }
}

/* The events of what stays in the queue are kept. */
TEST_NEEDING(failing_signals_release_nothing_early, WITH_DOUBLE)
{
    for (unsigned round = 0; round < 2; round++) {
        start();
        cl_event gate = cl_make_gate();
        cl_command_queue queue = cl_make_queue(cl.context, true);
        sp_cl_semaphore *semaphore = make_semaphore();
        cl_close_queue(queue, gate);
        sp_point point = {0};
        cl_hook_fail(round ? CL_HOOK_Flush : CL_HOOK_GetEventInfo, CL_OUT_OF_HOST_MEMORY, 0, 1);
        CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, queue, semaphore, &point),
                    SP_ERROR_OUT_OF_MEMORY);
        CHECK_EQUAL(cl_hook_early_releases(), 0);
        CHECK_EQUAL(cl_hook_live_events(), round + 1); /* the marker; the signal */
        cl_open_gate(gate);
        CHECK_CL(cl.raw.Finish(queue));
        sp_cl_semaphore_unref(semaphore);
        CHECK_CL(cl.raw.ReleaseCommandQueue(queue));
        finish();
    }
}

TEST_NEEDING(points_of_pending_signals_are_released, WITH_GATED_SEMAPHORES)
{
    start();
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    cl_close_queue(cl.queue, gate);
    sp_point point = signal_semaphore(cl.queue, semaphore);
    sp_point_unref(&point);
    CHECK_EQUAL(cl_hook_early_releases(), 0);
    cl_open_gate(gate);
    CHECK_CL(cl.raw.Finish(cl.queue));
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(a_signal_is_after_all_of_an_out_of_order_queue, WITH_GATED_SEMAPHORES)
{
    start();
    cl_command_queue queue = cl_make_queue(cl.context, true);
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    cl_mem buffer = cl_make_buffer();
    cl_event fill = cl_fill(queue, buffer, 3, gate);
    sp_point point = signal_semaphore(queue, semaphore);
    CHECK_STATUS(sp_wait_timeout(&point, DELAY_MS * MS), SP_TIMEOUT);
    CHECK_EQUAL(waits(), 0);
    cl_open_gate(gate);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_EQUAL(cl_content(buffer), 3);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    CHECK_CL(cl.raw.ReleaseEvent(fill));
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    CHECK_CL(cl.raw.ReleaseCommandQueue(queue));
    finish();
}

/* ---- The other side's signals ---- */

TEST_NEEDING(a_poll_never_consumes, WITH_SEMAPHORES)
{
    start();
    sp_cl_semaphore *semaphore = make_semaphore();
    signal_raw(semaphore, NULL);
    CHECK_CL(cl.raw.Finish(cl.look));
    sp_point point = binary_point(semaphore, 0);
    for (unsigned i = 0; i < 100; i++)
        CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_EQUAL(waits(), 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_EQUAL(waits(), 1);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(a_wait_that_timed_out_goes_on, WITH_GATED_SEMAPHORES)
{
    start();
    cl_event gate = cl_make_gate();
    sp_cl_semaphore *semaphore = make_semaphore();
    signal_raw(semaphore, gate);
    sp_point point = binary_point(semaphore, 0);
    for (unsigned i = 0; i < 3; i++)
        CHECK_STATUS(sp_wait_timeout(&point, 5 * MS), SP_TIMEOUT);
    CHECK_EQUAL(waits(), 1);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    cl_open_gate(gate);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_EQUAL(waits(), 1);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(O1_not_submitted, WITH_SEMAPHORES)
{
    start();
    sp_cl_semaphore *semaphore = make_semaphore();
    sp_point point = binary_point(semaphore, SP_POINT_UNSUBMITTED);
    CHECK_EQUAL(point.flags, SP_POINT_BINARY | SP_POINT_UNSUBMITTED);
    CHECK_STATUS(sp_poll(&point), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_wait_timeout(&point, 10 * MS), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &point), SP_NOT_SUBMITTED);
    CHECK_EQUAL(waits(), 0);
    signal_raw(semaphore, NULL);
    CHECK_STATUS(sp_point_mark_submitted(&point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

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

/* ---- Objects ---- */

TEST_NEEDING(semaphore_lives_until_its_last_point, WITH_SEMAPHORES)
{
    start();
    int live = cl_hook_live_objects();
    sp_cl_semaphore *semaphore = make_semaphore();
    CHECK_EQUAL(cl_hook_live_objects(), live + 1);
    CHECK(sp_cl_semaphore_ref(semaphore) == semaphore);
    sp_cl_semaphore_unref(semaphore);
    signal_raw(semaphore, NULL);
    sp_point point = binary_point(semaphore, 0);
    sp_cl_semaphore_unref(semaphore);
    CHECK_EQUAL(cl_hook_live_objects(), live + 1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    CHECK_EQUAL(cl_hook_live_objects(), live);
    CHECK(sp_cl_semaphore_ref(NULL) == NULL);
    sp_cl_semaphore_unref(NULL);
    CHECK(sp_cl_semaphore_handle(NULL) == NULL);
    finish();
}

TEST_NEEDING(semaphore_arguments, WITH_SEMAPHORES)
{
    start();
    sp_cl_semaphore *semaphore = make_semaphore(), *made = (sp_cl_semaphore *)16;
    cl_semaphore_khr raw = sp_cl_semaphore_handle(semaphore);
    sp_point out = test_marked_point(), marked = out;
    unsigned calls = cl_hook_all_calls();
    CHECK_ERROR(sp_cl_semaphore_wrap(NULL, raw, &made), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_semaphore_wrap(cl.sp, NULL, &made), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_semaphore_wrap(cl.sp, raw, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_binary_point(NULL, 0, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_binary_point(semaphore, 0, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_binary_point(semaphore, SP_POINT_HAS_VALUE, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(NULL, cl.queue, semaphore, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, NULL, semaphore, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, NULL, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(cl_hook_all_calls(), calls);
    CHECK(made == (sp_cl_semaphore *)16);
    CHECK(test_same_point(&out, &marked));
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(only_binary_semaphores_are_wrapped, WITH_DOUBLE)
{
    start();
    cl_semaphore_khr raw = make_raw_semaphore();
    sp_cl_semaphore *made = (sp_cl_semaphore *)16;
    cl_double_set_type(raw, 2);
    CHECK_ERROR(sp_cl_semaphore_wrap(cl.sp, raw, &made), SP_ERROR_NOT_SUPPORTED);
    CHECK(made == (sp_cl_semaphore *)16);
    release_raw_semaphore(raw);
    finish();
}

TEST_NEEDING(semaphores_of_another_context, WITH_SEMAPHORES)
{
    start();
    cl_context ours = cl.context, theirs = cl_make_context();
    cl_command_queue queue = cl_make_queue(theirs, false);
    sp_cl_semaphore *semaphore = make_semaphore(), *made = (sp_cl_semaphore *)16;
    sp_cl_context *another = NULL;
    sp_point out = test_marked_point(), marked = out, point = binary_point(semaphore, 0);
    sp_cl_context_desc desc = cl_desc();
    desc.context = theirs;
    desc.wait_queue = queue;
    CHECK_STATUS(sp_cl_context_create(&desc, &another), SP_OK);
    CHECK_ERROR(sp_cl_semaphore_wrap(another, sp_cl_semaphore_handle(semaphore), &made),
                SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(another, queue, semaphore, &out),
                SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, queue, semaphore, &out),
                SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_cl_queue_wait(another, queue, &point), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, queue, &point), SP_ERROR_WRONG_CONTEXT);
    CHECK(made == (sp_cl_semaphore *)16);
    CHECK(test_same_point(&out, &marked));
    CHECK_EQUAL(waits(), 0);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    CHECK_STATUS(sp_cl_context_destroy(another, PATIENCE_NS), SP_OK);
    CHECK(cl.context == ours);
    CHECK_CL(cl.raw.ReleaseCommandQueue(queue));
    CHECK_CL(cl.raw.ReleaseContext(theirs));
    finish();
}

TEST_NEEDING(no_semaphores, WITHOUT_SEMAPHORES)
{
    start();
    sp_cl_semaphore *made = (sp_cl_semaphore *)16;
    const sp_cl_semaphore_import_desc desc = {.size = sizeof(desc), .fd = 0};
    int fake;
    CHECK_ERROR(sp_cl_semaphore_wrap(cl.sp, (cl_semaphore_khr)(void *)&fake, &made),
                SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_cl_semaphore_import(cl.sp, &desc, &made), SP_ERROR_NOT_SUPPORTED);
    CHECK(made == (sp_cl_semaphore *)16);
    finish();
}

/* ---- H1 ---- */

static sp_cl_semaphore *used, *new_one;
static cl_semaphore_khr raw_one;
static cl_command_queue used_queue;
static sp_point made_point;

static sp_status wrap(void)
{
    return sp_cl_semaphore_wrap(cl.sp, raw_one, &new_one);
}
static void unref(void)
{
    sp_cl_semaphore_unref(new_one);
}
static sp_status signal_it(void)
{
    return sp_cl_queue_signal_semaphore(cl.sp, used_queue, used, &made_point);
}
static void wait_for_it(void)
{
    CHECK_STATUS(sp_wait(&made_point), SP_OK);
    sp_point_unref(&made_point);
}

TEST_NEEDING(H1_every_call_for_a_semaphore_may_fail, WITH_DOUBLE)
{
    start();
    raw_one = make_raw_semaphore();
    refuse_each_call(wrap, unref, 3);
    release_raw_semaphore(raw_one);
    finish();
}

/* But for the flush, which is the last: see a_signal_whose_flush_failed. */
static void fail_each_step_of_a_signal(unsigned steps)
{
    used = make_semaphore();
    CHECK_STATUS(signal_it(), SP_OK);
    wait_for_it();
    for (unsigned step = 0; step < steps; step++) {
        int live = cl_hook_live_objects();
        cl_hook_fail_step(CL_OUT_OF_HOST_MEMORY, step);
        sp_status status = signal_it();
        CHECK(!cl_hook_heal());
        CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
        CHECK(cl_hook_live_objects() <= live + 1); /* a marker, parked */
    }
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueSignalSemaphoresKHR), 2);
    CHECK_STATUS(signal_it(), SP_OK);
    wait_for_it();
    sp_cl_semaphore_unref(used);
}

TEST_NEEDING(H1_every_call_of_a_signal_may_fail, WITH_DOUBLE)
{
    start();
    used_queue = cl.queue;
    fail_each_step_of_a_signal(4);
    finish();
}

TEST_NEEDING(H1_every_call_of_a_signal_out_of_order_may_fail, WITH_DOUBLE)
{
    start();
    used_queue = cl_make_queue(cl.context, true);
    fail_each_step_of_a_signal(6);
    CHECK_CL(cl.raw.ReleaseCommandQueue(used_queue));
    finish();
}
