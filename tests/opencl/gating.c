/* SPDX-License-Identifier: MIT
 *
 * Waits on the device for events: what is enqueued later runs after the point, and not before. The
 * results prove it.
 */
#include "cl_case.h"

/* The producer fills `source` when its gate opens; the consumer copies it to `target`. */
typedef struct pair {
    cl_mem source;
    cl_mem target;
    cl_event gate;
    cl_event fill;
} pair;

static pair start_producer(void)
{
    pair p = {.source = cl_make_buffer(), .target = cl_make_buffer(), .gate = cl_make_gate()};
    p.fill = cl_fill(cl.queue, p.source, 1234, p.gate);
    return p;
}

static void end_pair(pair *p)
{
    CHECK_CL(cl.raw.ReleaseEvent(p->fill));
    CHECK_CL(cl.raw.ReleaseMemObject(p->source));
    CHECK_CL(cl.raw.ReleaseMemObject(p->target));
}

static void check_gated_copy(cl_command_queue consumer)
{
    pair p = start_producer();
    sp_point ready = queue_signals(cl.queue);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, consumer, &ready), SP_OK);
    cl_copy(consumer, p.source, p.target);
    sp_point copied = queue_signals(consumer);
    CHECK_STAYS_UNWRITTEN(p.target); /* withheld so far */
    CHECK_STATUS(sp_poll(&copied), SP_PENDING);
    cl_open_gate(p.gate);
    CHECK_STATUS(sp_wait(&copied), SP_OK);
    CHECK_EQUAL(cl_content(p.target), 1234);
    CHECK_STATUS(sp_poll(&ready), SP_OK);
    sp_point_unref(&ready);
    sp_point_unref(&copied);
    end_pair(&p);
}

TEST(O3_another_queue_waits)
{
    start();
    check_gated_copy(cl.other);
    finish();
}

TEST(O3_an_out_of_order_queue_waits)
{
    start();
    cl_command_queue queue = cl_make_queue(cl.context, true);
    check_gated_copy(queue);
    CHECK_CL(cl.raw.ReleaseCommandQueue(queue));
    finish();
}

/* The host route of other backends: user event, barrier. */
TEST(O3_the_host_opens_a_queue)
{
    start();
    sp_point opened = user_event();
    cl_mem buffer = cl_make_buffer();
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.queue, &opened), SP_OK);
    cl_event fill = cl_fill(cl.queue, buffer, 9, NULL);
    CHECK_CL(cl.raw.Flush(cl.queue));
    CHECK_STAYS_UNWRITTEN(buffer);
    CHECK_STATUS(sp_cl_user_event_set(&opened, SP_OK), SP_OK);
    CHECK(cl_arrives(buffer, 9));
    sp_point_unref(&opened);
    CHECK_CL(cl.raw.ReleaseEvent(fill));
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    finish();
}

TEST(O3_a_chain_gates_until_both)
{
    start();
    sp_point parts[2] = {user_event(), user_event()}, chain = {0};
    cl_mem buffer = cl_make_buffer();
    CHECK_STATUS(sp_chain(&parts[0], &parts[1], &chain), SP_OK);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.queue, &chain), SP_OK);
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueBarrierWithWaitList), 1);
    cl_event fill = cl_fill(cl.queue, buffer, 9, NULL);
    CHECK_CL(cl.raw.Flush(cl.queue));
    CHECK_STATUS(sp_cl_user_event_set(&parts[1], SP_OK), SP_OK);
    CHECK_STAYS_UNWRITTEN(buffer);
    CHECK_STATUS(sp_cl_user_event_set(&parts[0], SP_OK), SP_OK);
    CHECK(cl_arrives(buffer, 9));
    for (unsigned i = 0; i < 2; i++)
        sp_point_unref(&parts[i]);
    sp_point_unref(&chain);
    CHECK_CL(cl.raw.ReleaseEvent(fill));
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    finish();
}

TEST(many_events_in_one_barrier)
{
    enum { COUNT = 70 };
    start();
    sp_point events[COUNT], chain = {0};
    cl_mem buffer = cl_make_buffer();
    for (unsigned i = 0; i < COUNT; i++) {
        sp_point longer = {0};
        events[i] = user_event();
        CHECK_STATUS(sp_chain(&chain, &events[i], &longer), SP_OK);
        sp_point_unref(&chain);
        CHECK_STATUS(sp_chain(&longer, &events[i / 2], &chain), SP_OK); /* some twice */
        sp_point_unref(&longer);
    }
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.queue, &chain), SP_OK);
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueBarrierWithWaitList), 1);
    cl_event fill = cl_fill(cl.queue, buffer, 9, NULL);
    CHECK_CL(cl.raw.Flush(cl.queue));
    for (unsigned i = 0; i < COUNT; i++) {
        if (i == COUNT - 1)
            CHECK_STAYS_UNWRITTEN(buffer);
        CHECK_STATUS(sp_cl_user_event_set(&events[(i * 3) % COUNT], SP_OK), SP_OK);
    }
    CHECK(cl_arrives(buffer, 9));
    for (unsigned i = 0; i < COUNT; i++)
        sp_point_unref(&events[i]);
    sp_point_unref(&chain);
    CHECK_CL(cl.raw.ReleaseEvent(fill));
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    finish();
}

TEST(what_is_reached_needs_no_wait)
{
    start();
    sp_point points[3] = {sp_point_noop(), sp_point_cpu(), queue_signals(cl.queue)};
    CHECK_STATUS(sp_wait(&points[2]), SP_OK);
    for (unsigned i = 0; i < 3; i++)
        CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &points[i]), SP_OK);
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueBarrierWithWaitList), 0);
    sp_point_unref(&points[2]);
    finish();
}

/* A driver takes the command and its queue never ends. */
TEST(dead_event_is_never_enqueued_on)
{
    start();
    cl_event gate = cl_make_gate();
    sp_point dead = wrap_event(gate), alive = user_event(), chain = {0};
    CHECK_STATUS(sp_chain(&alive, &dead, &chain), SP_OK);
    cl_fail_gate(gate);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.other, &dead), SP_ERROR_FAILED);
    CHECK_EQUAL(sp_last_error()->native_code, CL_TEST_FAILURE);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.other, &chain), SP_ERROR_FAILED);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.other, &dead), SP_ERROR_FAILED);
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueBarrierWithWaitList), 0);
    sp_point point = queue_signals(cl.other); /* the queue works */
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_point_unref(&chain);
    sp_point_unref(&dead);
    sp_point_unref(&alive);
    finish();
}

/* An event that dies between the look at the point and the enqueueing of others. */
TEST(events_are_looked_at_right_before_the_barrier)
{
    start();
    sp_point first = user_event(), second = user_event(), chain = {0};
    CHECK_STATUS(sp_chain(&first, &second, &chain), SP_OK);
    cl_hook_fail(CL_HOOK_GetEventInfo, CL_OUT_OF_HOST_MEMORY, 3, 1); /* two looks, two checks */
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.other, &chain), SP_ERROR_OUT_OF_MEMORY);
    CHECK(!cl_hook_heal());
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueBarrierWithWaitList), 0);
    sp_point_unref(&chain);
    sp_point_unref(&first);
    sp_point_unref(&second);
    finish();
}

TEST_NEEDING(failure_behind_a_barrier_reaches_the_consumer, WITH_FAILURES_ALONG_QUEUES)
{
    start();
    pair p = start_producer();
    late_gate late;
    sp_point ready = queue_signals(cl.queue);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &ready), SP_OK);
    cl_copy(cl.other, p.source, p.target);
    sp_point copied = queue_signals(cl.other);
    fail_late(&late, p.gate);
    CHECK_ERROR(sp_wait_timeout(&copied, PATIENCE_NS), SP_ERROR_FAILED);
    CHECK_ERROR(sp_wait_timeout(&ready, PATIENCE_NS), SP_ERROR_FAILED);
    join_not_early(&late);
    CHECK_EQUAL(cl_content(p.target), 0);
    sp_point_unref(&ready);
    sp_point_unref(&copied);
    end_pair(&p);
    finish();
}

/* ---- Points that are not of this context ---- */

TEST(points_of_others)
{
    start();
    sp_host_timeline *timeline = NULL;
    sp_slot *slot = NULL;
    sp_point host = {0}, promise = {0}, marker = queue_signals(cl.queue);
    sp_point carrier = sp_carrier_vulkan_semaphore(5, NULL, 6);
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &host), SP_OK);
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &promise), SP_OK);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.other, &host), SP_ERROR_BACKEND_MISMATCH);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.other, &carrier), SP_ERROR_NOT_SUPPORTED);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &promise), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &host), SP_OK);
    CHECK_STATUS(sp_slot_set(slot, &marker), SP_OK);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &promise), SP_OK);
    sp_point_unref(&host);
    CHECK_STATUS(sp_host_timeline_point(timeline, 2, &host), SP_OK);
    CHECK_STATUS(sp_host_timeline_fail(timeline, SP_ERROR_DEVICE_LOST, "gone"), SP_OK);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.other, &host), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_DEVICE_LOST);
    sp_point_unref(&host);
    sp_point_unref(&promise);
    sp_point_unref(&marker);
    sp_slot_destroy(slot);
    sp_host_timeline_destroy(timeline);
    finish();
}

TEST(points_of_another_context)
{
    start();
    cl_context ours = cl.context;
    cl_context theirs = cl_make_context();
    sp_cl_context *same = NULL, *another = NULL;
    sp_cl_context_desc desc = cl_desc();
    CHECK_STATUS(sp_cl_context_create(&desc, &same), SP_OK);
    desc.context = theirs;
    desc.wait_queue = NULL;
    CHECK_STATUS(sp_cl_context_create(&desc, &another), SP_OK);
    sp_point of_same = {0}, of_another = {0};
    CHECK_STATUS(sp_cl_user_event(same, &of_same), SP_OK);
    CHECK_STATUS(sp_cl_user_event(another, &of_another), SP_OK);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, cl.queue, &of_another), SP_ERROR_WRONG_CONTEXT);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.queue, &of_same), SP_OK);
    sp_point behind = queue_signals(cl.queue);
    CHECK_STATUS(sp_wait_timeout(&behind, DELAY_MS * MS), SP_TIMEOUT);
    CHECK_STATUS(sp_cl_user_event_set(&of_same, SP_OK), SP_OK);
    CHECK_STATUS(sp_wait(&behind), SP_OK);
    sp_point_unref(&behind);
    sp_point_unref(&of_same);
    sp_point_unref(&of_another);
    CHECK_STATUS(sp_cl_context_destroy(same, PATIENCE_NS), SP_OK);
    CHECK_STATUS(sp_cl_context_destroy(another, PATIENCE_NS), SP_OK);
    CHECK(cl.context == ours);
    CHECK_CL(cl.raw.ReleaseContext(theirs));
    finish();
}

static sp_point gate_point;

static sp_status wait_on_queue(void)
{
    return sp_cl_queue_wait(cl.sp, cl.other, &gate_point);
}

/* The barrier's event is kept until that is over. */
static void end_wait(void)
{
    CHECK_STATUS(sp_cl_user_event_set(&gate_point, SP_OK), SP_OK);
    sp_point_unref(&gate_point);
    CHECK_CL(cl.raw.Finish(cl.other));
    sp_point done = queue_signals(cl.other);
    CHECK_STATUS(sp_wait(&done), SP_OK);
    sp_point_unref(&done);
    gate_point = user_event();
}

TEST(H1_every_call_of_a_wait_may_fail)
{
    start();
    gate_point = user_event();
    refuse_each_call(wait_on_queue, end_wait, 3);
    sp_point_unref(&gate_point);
    finish();
}

/* Points that are released before they are reached, and waits whose events nobody sees, keep
 * nothing for longer than their commands. */
TEST(parked_events_do_not_pile_up)
{
    start();
    for (unsigned round = 0; round < 2000; round++) {
        sp_point point = queue_signals(cl.queue);
        CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &point), SP_OK);
        sp_point_unref(&point);
        if (round % 50 == 0) {
            CHECK_CL(cl.raw.Flush(cl.other));
            CHECK_CL(cl.raw.Finish(cl.queue));
            CHECK_CL(cl.raw.Finish(cl.other));
        }
        CHECK(cl_hook_live_events() < 250);
    }
    finish();
}

TEST(released_early_events_do_not_pile_up)
{
    start();
    cl_mem buffer = cl_make_buffer();
    for (unsigned round = 0; round < 300; round++) {
        cl_event gate = cl_make_gate();
        cl_event fill = cl_fill(cl.queue, buffer, 1, gate);
        sp_point point = wrap_event(fill);
        sp_point_unref(&point);
        cl_open_gate(gate);
        CHECK_CL(cl.raw.ReleaseEvent(fill));
        CHECK_CL(cl.raw.Finish(cl.queue));
        CHECK(cl_hook_live_events() < 40);
    }
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    finish();
}

/* A driver ends the process when a marker or barrier fails whose event was released. */
TEST(failure_after_the_points_are_released)
{
    start();
    pair p = start_producer();
    sp_point ready = queue_signals(cl.queue);
    CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &ready), SP_OK);
    cl_event fill = cl_fill(cl.other, p.target, 6, NULL);
    CHECK_CL(cl.raw.Flush(cl.other));
    sp_point_unref(&ready);
    cl_event marker = NULL; /* the user's own, released by the user while the library has it */
    CHECK_CL(cl.raw.EnqueueMarkerWithWaitList(cl.other, 0, NULL, &marker));
    sp_point wrapped = wrap_event(marker);
    CHECK_CL(cl.raw.ReleaseEvent(marker));
    sp_point_unref(&wrapped);
    cl_fail_gate(p.gate);
    sp_point filled = wrap_event(p.fill);
    CHECK_ERROR(sp_wait_timeout(&filled, PATIENCE_NS), SP_ERROR_FAILED);
    sp_point_unref(&filled);
    test_sleep_ms(DELAY_MS);
    CHECK_CL(cl.raw.ReleaseEvent(fill));
    end_pair(&p);
    finish();
}
