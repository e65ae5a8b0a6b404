/* SPDX-License-Identifier: MIT
 *
 * Signals of binary semaphores: each is one point. O1. The other side is a queue of the test's own.
 */
#include "cl_case.h"

#include <string.h>

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
