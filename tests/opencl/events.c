/* SPDX-License-Identifier: MIT
 *
 * OpenCL events as points: markers, the user's own, user events. L1, L2.
 */
#include "cl_case.h"

#include <string.h>

/* ---- Markers ---- */

TEST(marker_is_pending_then_reached)
{
    start();
    cl_event gate = cl_make_gate();
    late_gate late;
    cl_close_queue(cl.queue, gate);
    sp_point point = queue_signals(cl.queue);
    CHECK_EQUAL(point.kind, SP_KIND_OPENCL);
    CHECK_EQUAL(point.flags, 0);
    CHECK_EQUAL(sp_point_backend(&point), SP_BACKEND_OPENCL);
    CHECK(point.raw.opencl.event == sp_cl_event_from_point(&point));
    CHECK(sp_cl_event_from_point(&point) != NULL);
    CHECK(sp_cl_semaphore_from_point(&point) == NULL);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    open_late(&late, gate);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    join_not_early(&late);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
    finish();
}

TEST(L2_what_a_point_stands_for_is_flushed)
{
    start();
    sp_point point = queue_signals(cl.queue);
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueMarkerWithWaitList), 1);
    CHECK_EQUAL(cl_hook_unflushed(cl.queue), 0);
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_Flush), 1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    cl_mem buffer = cl_make_buffer();
    cl_event gate = cl_make_gate();
    cl_event unflushed = cl_fill(cl.other, buffer, 5, gate);
    point = wrap_event(unflushed);
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_Flush), 2);
    cl_open_gate(gate);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_EQUAL(cl_content(buffer), 5);
    sp_point_unref(&point);
    CHECK_CL(cl.raw.ReleaseEvent(unflushed));
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    finish();
}

TEST(marker_of_an_out_of_order_queue_is_after_all_of_it)
{
    start();
    cl_command_queue queue = cl_make_queue(cl.context, true);
    cl_mem buffers[2] = {cl_make_buffer(), cl_make_buffer()};
    cl_event gates[2] = {cl_make_gate(), cl_make_gate()}, fills[2];
    for (unsigned i = 0; i < 2; i++)
        fills[i] = cl_fill(queue, buffers[i], 7 + i, gates[i]);
    sp_point point = queue_signals(queue);
    cl_open_gate(gates[1]);
    CHECK_STATUS(sp_wait_timeout(&point, DELAY_MS * MS), SP_TIMEOUT);
    cl_open_gate(gates[0]);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_EQUAL(cl_content(buffers[i]), 7 + i);
        CHECK_CL(cl.raw.ReleaseEvent(fills[i]));
        CHECK_CL(cl.raw.ReleaseMemObject(buffers[i]));
    }
    sp_point_unref(&point);
    CHECK_CL(cl.raw.ReleaseCommandQueue(queue));
    finish();
}

/* ---- Events that the user has ---- */

TEST(wrap_keeps_a_reference_of_its_own)
{
    start();
    late_gate late;
    cl_event gate = cl_make_gate();
    sp_point point = wrap_event(gate);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    open_late(&late, gate); /* which releases the caller's */
    CHECK_STATUS(sp_wait(&point), SP_OK);
    join_not_early(&late);
    sp_point copy = sp_point_ref(&point);
    sp_point_unref(&point);
    CHECK_STATUS(sp_poll(&copy), SP_OK);
    CHECK_EQUAL(cl_hook_live_events(), 1);
    sp_point_unref(&copy);
    CHECK_EQUAL(cl_hook_live_events(), 0);
    finish();
}

TEST(wrap_of_what_is_over)
{
    start();
    cl_event complete = cl_make_gate(), failed = cl_make_gate();
    CHECK_CL(cl.raw.SetUserEventStatus(complete, CL_COMPLETE));
    CHECK_CL(cl.raw.SetUserEventStatus(failed, CL_TEST_FAILURE));
    sp_point points[2] = {wrap_event(complete), wrap_event(failed)};
    CHECK_STATUS(sp_poll(&points[0]), SP_OK);
    CHECK_ERROR(sp_poll(&points[1]), SP_ERROR_FAILED);
    CHECK_ERROR(sp_wait(&points[1]), SP_ERROR_FAILED);
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_Flush), 0);
    for (unsigned i = 0; i < 2; i++)
        sp_point_unref(&points[i]);
    CHECK_CL(cl.raw.ReleaseEvent(complete));
    CHECK_CL(cl.raw.ReleaseEvent(failed));
    finish();
}

/* ---- L1: an event fails, and nobody calls back ---- */

TEST(L1_failed_event_ends_a_wait)
{
    start();
    late_gate late;
    cl_event gate = cl_make_gate();
    sp_point point = wrap_event(gate);
    fail_late(&late, gate);
    CHECK_ERROR(sp_wait_timeout(&point, PATIENCE_NS), SP_ERROR_FAILED);
    CHECK_EQUAL(sp_last_error()->native_code, CL_TEST_FAILURE);
    CHECK_EQUAL(sp_last_error()->backend, SP_BACKEND_OPENCL);
    CHECK(sp_last_error()->native_call != NULL);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_BACKEND);
    join_not_early(&late);
    unsigned calls = cl_hook_all_calls();
    CHECK_ERROR(sp_poll(&point), SP_ERROR_FAILED);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_FAILED);
    CHECK_EQUAL(sp_last_error()->native_code, CL_TEST_FAILURE);
    CHECK_EQUAL(cl_hook_all_calls(), calls);
    sp_point_unref(&point);
    finish();
}

TEST_NEEDING(L1_failure_travels_along_a_queue, WITH_FAILURES_ALONG_QUEUES)
{
    start();
    late_gate late;
    cl_event gate = cl_make_gate();
    cl_mem buffer = cl_make_buffer();
    cl_event fill = cl_fill(cl.queue, buffer, 5, gate);
    sp_point filled = wrap_event(fill), after = queue_signals(cl.queue);
    fail_late(&late, gate);
    CHECK_ERROR(sp_wait_timeout(&after, PATIENCE_NS), SP_ERROR_FAILED);
    CHECK_ERROR(sp_wait_timeout(&filled, PATIENCE_NS), SP_ERROR_FAILED);
    join_not_early(&late);
    CHECK_EQUAL(cl_content(buffer), 0);
    sp_point_unref(&filled);
    sp_point_unref(&after);
    CHECK_CL(cl.raw.ReleaseEvent(fill));
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    finish();
}

TEST(L1_through_chains_and_many)
{
    for (unsigned round = 0; round < 4; round++) {
        start();
        late_gate late;
        cl_event gate = cl_make_gate();
        sp_point failing = wrap_event(gate), never = user_event(), chain = {0};
        sp_point points[2] = {never, failing};
        size_t index = 77;
        CHECK_STATUS(sp_chain(&failing, &never, &chain), SP_OK);
        fail_late(&late, gate);
        if (round == 0)
            CHECK_ERROR(sp_wait_timeout(&chain, PATIENCE_NS), SP_ERROR_FAILED);
        else if (round == 1)
            CHECK_ERROR(sp_wait_many(points, 2, SP_WAIT_ANY, PATIENCE_NS, &index), SP_ERROR_FAILED);
        else if (round == 2)
            CHECK_ERROR(sp_wait_many(points, 2, SP_WAIT_ALL, PATIENCE_NS, &index), SP_ERROR_FAILED);
        else
            CHECK_ERROR(sp_wait_many(&chain, 1, SP_WAIT_ALL, PATIENCE_NS, &index), SP_ERROR_FAILED);
        CHECK_EQUAL(sp_last_error()->native_code, CL_TEST_FAILURE);
        CHECK_EQUAL(index, round == 0 ? 77 : round == 3 ? 0 : 1);
        join_not_early(&late);
        sp_point_unref(&chain);
        sp_point_unref(&failing);
        sp_point_unref(&never);
        finish();
    }
}

/* ---- User events ---- */

static void set_event(void *user)
{
    CHECK_STATUS(sp_cl_user_event_set(user, SP_OK), SP_OK);
}

TEST(user_event_is_reached_when_it_is_set)
{
    start();
    worker late;
    sp_point point = user_event(), copy = sp_point_ref(&point);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    worker_start(&late, DELAY_MS, set_event, &copy);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    worker_join(&late);
    CHECK_ERROR(sp_cl_user_event_set(&point, SP_OK), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cl_user_event_set(&point, SP_ERROR_FAILED), SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_poll(&copy), SP_OK);
    sp_point_unref(&point);
    sp_point_unref(&copy);
    finish();
}

TEST(user_event_fails_with_its_cause)
{
    start();
    sp_point point = user_event();
    sp_point wrapped = wrap_event(sp_cl_event_from_point(&point));
    CHECK_STATUS(sp_cl_user_event_set(&point, SP_ERROR_DEVICE_LOST), SP_OK);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_DEVICE_LOST);
    /* Whoever looks at the event itself learns it, too. */
    CHECK_ERROR(sp_poll(&wrapped), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_DEVICE_LOST);
    sp_point_unref(&point);
    sp_point_unref(&wrapped);
    finish();
}

TEST(user_event_is_set_once)
{
    start();
    sp_point point = user_event(), noop = sp_point_noop(), marker = queue_signals(cl.queue);
    sp_point carrier = sp_carrier_vulkan_semaphore(5, NULL, 6);
    sp_point wrapped = wrap_event(sp_cl_event_from_point(&point));
    CHECK_ERROR(sp_cl_user_event_set(NULL, SP_OK), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_user_event_set(&noop, SP_OK), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_user_event_set(&carrier, SP_OK), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_cl_user_event_set(&marker, SP_OK), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_user_event_set(&wrapped, SP_OK), SP_ERROR_INVALID_ARGUMENT);
    static const int none[] = {SP_TIMEOUT, -19, -1000, -1001, -900000000, INT32_MIN};
    for (unsigned i = 0; i < COUNT_OF(none); i++)
        CHECK_ERROR(sp_cl_user_event_set(&point, (sp_status)none[i]), SP_ERROR_INVALID_ARGUMENT);
    cl_hook_fail(CL_HOOK_SetUserEventStatus, CL_OUT_OF_HOST_MEMORY, 0, 1);
    CHECK_ERROR(sp_cl_user_event_set(&point, SP_OK), SP_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    /* Somebody else sets it. */
    CHECK_CL(cl.raw.SetUserEventStatus(sp_cl_event_from_point(&point), CL_COMPLETE));
    cl_hook_fail(CL_HOOK_SetUserEventStatus, CL_INVALID_OPERATION, 0, 1);
    CHECK_ERROR(sp_cl_user_event_set(&point, SP_OK), SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_wait(&marker), SP_OK);
    sp_point_unref(&point);
    sp_point_unref(&wrapped);
    sp_point_unref(&marker);
    finish();
}

/* Nobody could set it any more, so that its queue would never go on. */
TEST(user_event_that_is_abandoned_fails)
{
    start();
    sp_point point = user_event();
    cl_mem buffer = cl_make_buffer();
    cl_event event = sp_cl_event_from_point(&point);
    CHECK_CL(cl.raw.RetainEvent(event));
    cl_event fill = cl_fill(cl.queue, buffer, 5, event);
    CHECK_CL(cl.raw.Flush(cl.queue));
    sp_point_unref(&point);
    point = wrap_event(event);
    CHECK_ERROR(sp_wait_timeout(&point, PATIENCE_NS), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_ABANDONED);
    sp_point_unref(&point);
    point = wrap_event(fill);
    CHECK_ERROR(sp_wait_timeout(&point, PATIENCE_NS), SP_ERROR_FAILED);
    sp_point_unref(&point);
    CHECK_EQUAL(cl_content(buffer), 0);
    CHECK_CL(cl.raw.ReleaseEvent(fill));
    CHECK_CL(cl.raw.ReleaseEvent(event));
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    finish();
}

static void CL_CALLBACK release_another(cl_event event, cl_int status, void *user)
{
    (void)event;
    (void)status;
    sp_point_unref(user);
    CHECK_STATUS(sp_cl_queue_signal(cl.sp, cl.other, user), SP_OK);
}

/* Drivers call back inside clSetUserEventStatus(), on the caller's thread: we hold no lock. */
TEST(callbacks_may_call_the_library)
{
    start();
    sp_point point = user_event(), another = queue_signals(cl.queue);
    CHECK_CL(cl.raw.SetEventCallback(sp_cl_event_from_point(&point), CL_COMPLETE, release_another,
                                     &another));
    CHECK_STATUS(sp_cl_user_event_set(&point, SP_OK), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_CL(cl.raw.Finish(cl.queue));
    test_sleep_ms(DELAY_MS);
    CHECK_STATUS(sp_wait(&another), SP_OK);
    sp_point_unref(&point);
    sp_point_unref(&another);
    finish();
}

static void end_the_context(void *user, cl_event event)
{
    (void)event;
    sp_status *status = user;
    *status = sp_cl_context_destroy(cl.sp, PATIENCE_NS);
}

/* A callback may call the library, but not end the context whose call it runs in: nothing would be
 * left for that call to return to. */
TEST(a_callback_cannot_end_its_context)
{
    for (unsigned round = 0; round < 3; round++) {
        start();
        sp_status ended = SP_PENDING;
        sp_point point = user_event();
        cl_hook_inside(CL_HOOK_SetUserEventStatus, end_the_context, &ended);
        if (round == 0) {
            sp_point_unref(&point); /* fails it */
        } else if (round == 1) {
            CHECK_STATUS(sp_cl_user_event_set(&point, SP_OK), SP_OK);
            CHECK_STATUS(sp_wait(&point), SP_OK);
        } else {
            CHECK_STATUS(sp_cl_context_destroy(cl.sp, PATIENCE_NS), SP_OK);
        }
        CHECK_STATUS(ended, SP_ERROR_INVALID_STATE);
        if (round < 2)
            finish();
        else
            cl_close_driver();
        sp_point_unref(&point);
    }
}

static void CL_CALLBACK set_the_other(cl_event event, cl_int status, void *user)
{
    (void)event;
    (void)status;
    CHECK_STATUS(sp_cl_user_event_set(user, SP_OK), SP_OK);
}

/* One inside the other: neither may end the outer one. */
TEST(callbacks_of_two_contexts)
{
    start();
    sp_cl_context *another = NULL;
    sp_cl_context_desc desc = cl_desc();
    desc.wait_queue = NULL;
    CHECK_STATUS(sp_cl_context_create(&desc, &another), SP_OK);
    sp_status ended = SP_PENDING;
    sp_point inner = {0}, outer = user_event();
    CHECK_STATUS(sp_cl_user_event(another, &inner), SP_OK);
    CHECK_CL(cl.raw.SetEventCallback(sp_cl_event_from_point(&outer), CL_COMPLETE, set_the_other,
                                     &inner));
    cl_hook_inside(CL_HOOK_SetUserEventStatus, end_the_context, &ended);
    CHECK_STATUS(sp_cl_user_event_set(&outer, SP_OK), SP_OK);
    CHECK_STATUS(sp_wait(&inner), SP_OK);
    CHECK_STATUS(ended, SP_ERROR_INVALID_STATE); /* of the outer one, two calls deep */
    sp_point_unref(&inner);
    sp_point_unref(&outer);
    CHECK_STATUS(sp_cl_context_destroy(another, PATIENCE_NS), SP_OK);
    finish();
}

/* A flush fails behind a marker that waits: it is kept until it is over. */
TEST(a_marker_whose_flush_failed)
{
    start();
    cl_event gate = cl_make_gate();
    sp_point point = test_marked_point(), marked = point;
    cl_close_queue(cl.queue, gate);
    cl_hook_fail(CL_HOOK_Flush, CL_OUT_OF_HOST_MEMORY, 0, 1);
    CHECK_ERROR(sp_cl_queue_signal(cl.sp, cl.queue, &point), SP_ERROR_OUT_OF_MEMORY);
    CHECK(test_same_point(&point, &marked));
    CHECK_EQUAL(cl_hook_early_releases(), 0);
    CHECK_EQUAL(cl_hook_live_events(), 1);
    cl_open_gate(gate);
    CHECK_CL(cl.raw.Finish(cl.queue));
    finish();
}

/* ---- Events that are kept until their commands are over ---- */

/* Behind a command that waits for the gate. The event of what the library enqueues is parked. */
static cl_event park_behind(cl_event gate, cl_mem buffer)
{
    cl_event fill = cl_fill(cl.queue, buffer, 1, gate);
    sp_point point = queue_signals(cl.queue);
    sp_point_unref(&point);
    CHECK_EQUAL(cl_hook_live_events(), 1);
    return fill;
}

static void look_at_parked_events(void)
{
    sp_point point = queue_signals(cl.other);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
}

TEST(a_parked_event_whose_query_fails_is_kept)
{
    start();
    cl_event gate = cl_make_gate();
    cl_mem buffer = cl_make_buffer();
    cl_event fill = park_behind(gate, buffer);
    cl_hook_fail(CL_HOOK_GetEventInfo, CL_OUT_OF_HOST_MEMORY, 0, 1);
    look_at_parked_events();
    CHECK(!cl_hook_heal());
    CHECK_EQUAL(cl_hook_early_releases(), 0);
    CHECK_EQUAL(cl_hook_live_events(), 1);
    cl_open_gate(gate);
    CHECK_CL(cl.raw.Finish(cl.queue));
    check_live_objects(cl_hook_live_objects() - 1);
    CHECK_CL(cl.raw.ReleaseEvent(fill));
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    finish();
}

enum { GRACE_MS = 100 };

/* A driver works on what has failed for a moment more, however long it was parked before. */
TEST_NEEDING(a_parked_event_that_fails_is_kept_for_a_while, WITH_FAILURES_ALONG_QUEUES)
{
    start();
    cl_event gate = cl_make_gate();
    cl_mem buffer = cl_make_buffer();
    int live = cl_hook_live_objects();
    cl_event fill = park_behind(gate, buffer);
    test_sleep_ms(GRACE_MS + DELAY_MS);
    uint64_t failed_ns = sp_now_ns();
    cl_fail_gate(gate);
    while (sp_now_ns() < failed_ns + GRACE_MS * MS / 2) {
        look_at_parked_events();
        bool kept = cl_hook_live_objects() > live;
        CHECK(kept || sp_now_ns() >= failed_ns + GRACE_MS * MS);
    }
    check_live_objects(live);
    CHECK_CL(cl.raw.ReleaseEvent(fill));
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    finish();
}

/* ---- Errors ---- */

TEST(objects_of_another_context)
{
    start();
    cl_context context = cl_make_context();
    cl_command_queue queue = cl_make_queue(context, false);
    cl_int result = CL_SUCCESS;
    cl_event event = cl.raw.CreateUserEvent(context, &result);
    sp_point out = test_marked_point(), marked = out;
    CHECK_ERROR(sp_cl_queue_signal(cl.sp, queue, &out), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_cl_event_wrap(cl.sp, event, &out), SP_ERROR_WRONG_CONTEXT);
    sp_point point = queue_signals(cl.queue);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, queue, &point), SP_ERROR_WRONG_CONTEXT);
    CHECK(test_same_point(&out, &marked));
    sp_point_unref(&point);
    CHECK_CL(cl.raw.SetUserEventStatus(event, CL_COMPLETE));
    CHECK_CL(cl.raw.ReleaseEvent(event));
    CHECK_CL(cl.raw.ReleaseCommandQueue(queue));
    CHECK_CL(cl.raw.ReleaseContext(context));
    finish();
}

TEST(arguments)
{
    start();
    sp_point out = test_marked_point(), marked = out;
    cl_event gate = cl_make_gate();
    unsigned calls = cl_hook_all_calls();
    CHECK_ERROR(sp_cl_queue_signal(NULL, cl.queue, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_queue_signal(cl.sp, NULL, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_queue_signal(cl.sp, cl.queue, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_event_wrap(NULL, gate, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_event_wrap(cl.sp, NULL, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_event_wrap(cl.sp, gate, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_user_event(NULL, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_user_event(cl.sp, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_queue_wait(NULL, cl.queue, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, NULL, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.queue, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(cl_hook_all_calls(), calls);
    CHECK(test_same_point(&out, &marked));
    CHECK(sp_cl_event_from_point(NULL) == NULL);
    CHECK(sp_cl_event_from_point(&(sp_point){0}) == NULL);
    CHECK(sp_cl_semaphore_from_point(NULL) == NULL);
    CHECK(sp_cl_semaphore_from_point(&(sp_point){0}) == NULL);
    cl_open_gate(gate);
    finish();
}

static sp_point made;
static cl_event wrapped, wrapped_gate;

static sp_status signal_queue(void)
{
    return sp_cl_queue_signal(cl.sp, cl.queue, &made);
}
static sp_status wrap(void)
{
    return sp_cl_event_wrap(cl.sp, wrapped, &made);
}
static sp_status make_user_event(void)
{
    return sp_cl_user_event(cl.sp, &made);
}
static void unref_reached(void)
{
    CHECK_STATUS(sp_wait(&made), SP_OK);
    sp_point_unref(&made);
}
/* The last attempt, with the event still pending. */
static void open_and_unref(void)
{
    cl_open_gate(wrapped_gate);
    unref_reached();
}
static void unref_made(void)
{
    sp_point_unref(&made);
}

TEST(H1_every_call_may_fail)
{
    start();
    cl_mem buffer = cl_make_buffer();
    wrapped_gate = cl_make_gate();
    wrapped = cl_fill(cl.queue, buffer, 1, wrapped_gate);
    refuse_each_call(wrap, open_and_unref, 3);
    refuse_each_call(signal_queue, unref_reached, 3);
    refuse_each_call(make_user_event, unref_made, 3);
    CHECK_CL(cl.raw.ReleaseEvent(wrapped));
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    finish();
}

/* A driver that cannot even say where an event is. */
TEST(status_query_fails)
{
    start();
    cl_event gate = cl_make_gate();
    sp_point point = wrap_event(gate);
    cl_hook_fail(CL_HOOK_GetEventInfo, CL_OUT_OF_HOST_MEMORY, 0, 1);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    cl_hook_fail(CL_HOOK_GetEventInfo, -9999, 0, 1);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_BACKEND);
    CHECK_EQUAL(sp_last_error()->native_code, (uint64_t)-9999);
    CHECK(strcmp(sp_last_error()->native_call, "clGetEventInfo") == 0);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_BACKEND); /* for good */
    cl_hook_fail(CL_HOOK_EnqueueMarkerWithWaitList, CL_DEVICE_NOT_AVAILABLE, 0, 1);
    sp_point out = test_marked_point(), marked = out;
    CHECK_ERROR(sp_cl_queue_signal(cl.sp, cl.queue, &out), SP_ERROR_DEVICE_LOST);
    CHECK(test_same_point(&out, &marked));
    sp_point_unref(&point);
    cl_open_gate(gate);
    finish();
}
