/* SPDX-License-Identifier: MIT
 *
 * OpenGL: semaphores of every sort, played by the double of doubles/gl_play.h: what no driver that
 * is always here has, and states that no driver can be brought to on command.
 */
#include "gl_case.h"

#include <unistd.h>

/* ---- Binary: signalled by the other side ---- */

typedef struct late_signal {
    worker worker;
    gl_play_semaphore *payload;
    uint64_t value;
    flag sent;
} late_signal;

static void send_late(void *user)
{
    late_signal *self = user;
    flag_set(&self->sent);
    gl_play_signal(self->payload, self->value);
}

static void signal_late(late_signal *self, gl_play_semaphore *payload, uint64_t value)
{
    *self = (late_signal){.payload = payload, .value = value};
    worker_start(&self->worker, DELAY_MS, send_late, self);
}

static void join_not_early(late_signal *self)
{
    CHECK(flag_is_set(&self->sent));
    worker_join(&self->worker);
}

static gl_play_semaphore payload;

static sp_gl_semaphore *start_binary(void)
{
    start_plays();
    return import_played(SP_GL_SEMAPHORE_BINARY, &payload);
}

static void end(sp_gl_semaphore *semaphore)
{
    sp_gl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(host_wait_uses_a_binary_up, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary();
    late_signal late;
    sp_point point = binary_point(binary, 0);
    CHECK_EQUAL(point.kind, SP_KIND_OPENGL);
    CHECK_EQUAL(point.flags, SP_POINT_BINARY);
    CHECK_EQUAL(sp_gl_semaphore_name_from_point(&point), sp_gl_semaphore_name(binary));
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 0);
    CHECK_STATUS(sp_wait_timeout(&point, 5 * MS), SP_TIMEOUT);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 1);
    signal_late(&late, &payload, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK); /* goes on with the same wait */
    join_not_early(&late);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 1);
    CHECK(!payload.signalled);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
    end(binary);
}

TEST_NEEDING(poll_never_uses_a_binary_up, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary();
    sp_point point = binary_point(binary, 0);
    gl_play_signal(&payload, 0);
    for (unsigned i = 0; i < 10; i++)
        CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK(payload.signalled);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    end(binary);
}

TEST_NEEDING(O6_one_signal_serves_one_wait, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary();
    sp_point point = binary_point(binary, 0);
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
    CHECK_ERROR(sp_gl_context_wait(context, &point, NULL), SP_ERROR_INVALID_STATE);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 1);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_poll(&point), SP_OK);                           /* the device's wait has run */
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK); /* known */
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 1);
    sp_point_unref(&point);
    end(binary);
}

TEST_NEEDING(host_waits_behind_a_device_wait, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary();
    late_signal late;
    sp_point point = binary_point(binary, 0);
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
    signal_late(&late, &payload, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    join_not_early(&late);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 1);
    sp_point_unref(&point);
    end(binary);
}

TEST_NEEDING(O1_not_submitted_yet, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary();
    sp_point point = binary_point(binary, SP_POINT_UNSUBMITTED);
    CHECK_EQUAL(point.flags, SP_POINT_BINARY | SP_POINT_UNSUBMITTED);
    CHECK_STATUS(sp_poll(&point), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_wait_timeout(&point, 2 * MS), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_NOT_SUBMITTED);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 0);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_point_mark_submitted(&point), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    end(binary);
}

TEST_NEEDING(O6_a_later_point_takes_over, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary();
    sp_point first = binary_point(binary, 0), second = binary_point(binary, 0);
    CHECK_ERROR(sp_poll(&first), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_gl_context_wait(context, &first, NULL), SP_ERROR_INVALID_STATE);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_wait(&second), SP_OK);
    sp_point third = binary_point(binary, 0);
    CHECK_STATUS(sp_poll(&second), SP_OK); /* an old point keeps its answer */
    CHECK_STATUS(sp_poll(&third), SP_PENDING);
    sp_point_unref(&first);
    sp_point_unref(&second);
    sp_point_unref(&third);
    end(binary);
}

/* ---- Binary: signalled by us ---- */

TEST_NEEDING(a_signal_of_ours, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary();
    unsigned flushes = gl_hook_calls(GL_HOOK_glFlush);
    sp_point point = signal_semaphore(binary, 0), marked = test_marked_point(), out = marked;
    CHECK(gl_hook_calls(GL_HOOK_glFlush) > flushes);
    CHECK(payload.signalled);
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, binary, 0, NULL, &out),
                SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, binary, 0, NULL, NULL),
                SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_gl_binary_point(binary, 0, &out), SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&out, &marked));
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK(!payload.signalled);
    sp_point again = signal_semaphore(binary, 0);
    CHECK_STATUS(sp_gl_context_wait(context, &again, NULL), SP_OK);
    CHECK_STATUS(sp_wait(&again), SP_OK);
    sp_point_unref(&again);
    sp_point_unref(&point);
    end(binary);
}

TEST_NEEDING(a_signal_for_the_other_side, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary();
    for (unsigned i = 0; i < 3; i++) {
        CHECK_STATUS(sp_gl_context_signal_semaphore(context, binary, 0, NULL, NULL), SP_OK);
        CHECK(gl_play_take(&payload));
    }
    sp_point dropped = signal_semaphore(binary, 0);
    sp_point_unref(&dropped);
    CHECK(gl_play_take(&payload));
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, binary, 0, NULL, NULL), SP_OK);
    CHECK(gl_play_take(&payload));
    end(binary);
}

/* In the stream of the wait a new signal comes after it in any case; elsewhere it must have run. */
TEST_NEEDING(a_signal_while_a_wait_has_not_run, WITH_DOUBLES)
{
    open_gl();
    gl_play_install();
    with_helper();
    open_library();
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payload);
    sp_point point = binary_point(binary, 0);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT); /* in the helper's stream */
    CHECK(gl_helper_entered > 0);
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, binary, 0, NULL, NULL),
                SP_ERROR_INVALID_STATE);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, binary, 0, NULL, NULL), SP_OK);
    CHECK(gl_play_take(&payload));
    point = binary_point(binary, 0);
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK); /* in the context's stream */
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, binary, 0, NULL, NULL), SP_OK);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK(gl_play_take(&payload));
    sp_point_unref(&point);
    end(binary);
}

/* ---- Where a host wait is inserted ---- */

typedef struct elsewhere {
    const sp_point *point;
    sp_status status;
} elsewhere;

static void wait_elsewhere(void *user)
{
    elsewhere *self = user;
    self->status = sp_wait_timeout(self->point, 20 * MS);
}

TEST_NEEDING(G2_host_wait_needs_a_context_or_a_helper, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary();
    sp_point point = binary_point(binary, 0);
    elsewhere job = {.point = &point};
    gl_play_signal(&payload, 0);
    run_elsewhere(wait_elsewhere, &job);
    CHECK_STATUS(job.status, SP_ERROR_WRONG_CONTEXT);
    CHECK(payload.signalled); /* nothing was used up */
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    end(binary);
}

TEST_NEEDING(helper_takes_host_waits, WITH_DOUBLES)
{
    open_gl();
    gl_play_install();
    with_helper();
    open_library();
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payload);
    sp_point point = binary_point(binary, 0);
    elsewhere job = {.point = &point};
    run_elsewhere(wait_elsewhere, &job);
    CHECK_STATUS(job.status, SP_TIMEOUT);
    sp_point fence = signal_point(); /* the context's own stream does not stand still */
    CHECK_STATUS(sp_wait(&fence), SP_OK);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&fence);
    sp_point_unref(&point);
    end(binary);
}

/* ---- With values ---- */

static sp_gl_semaphore *start_values(sp_gl_semaphore_type type)
{
    payload = (gl_play_semaphore){.counting = true};
    start_plays();
    if (type == SP_GL_SEMAPHORE_TIMELINE)
        return import_played(type, &payload);
    sp_gl_semaphore *made = NULL;
    const sp_gl_semaphore_import_desc desc = import_desc(type, -1);
    gl_play_next_import(&payload);
    CHECK_STATUS(sp_gl_semaphore_import(context, &desc, &made), SP_OK);
    CHECK(gl_play_last_handle == desc.handle);
    return made;
}

static void check_values(sp_gl_semaphore_type type)
{
    sp_gl_semaphore *timeline = start_values(type);
    late_signal late;
    sp_point five = value_point(timeline, 5), six = {0}, zero = value_point(timeline, 0);
    CHECK_EQUAL(five.kind, SP_KIND_OPENGL);
    CHECK_EQUAL(five.flags, SP_POINT_HAS_VALUE);
    CHECK_EQUAL(five.value, 5);
    CHECK_STATUS(sp_point_at(&five, 6, &six), SP_OK);
    CHECK_STATUS(sp_poll(&zero), SP_OK);
    CHECK_STATUS(sp_poll(&five), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&five, 2 * MS), SP_TIMEOUT);
    signal_late(&late, &payload, 5);
    CHECK_STATUS(sp_wait(&five), SP_OK);
    join_not_early(&late);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 1);
    CHECK_STATUS(sp_poll(&six), SP_PENDING);
    CHECK_STATUS(sp_gl_context_wait(context, &six, NULL), SP_OK);
    sp_point fence = signal_point();
    CHECK_STATUS(sp_wait_timeout(&fence, 5 * MS), SP_TIMEOUT);
    gl_play_signal(&payload, 6);
    CHECK_STATUS(sp_wait(&fence), SP_OK);
    CHECK_STATUS(sp_wait(&six), SP_OK);
    sp_point_unref(&fence);
    sp_point_unref(&five);
    sp_point_unref(&six);
    sp_point_unref(&zero);
    end(timeline);
}

TEST_NEEDING(timeline_values_of_the_other_side, WITH_DOUBLES)
{
    check_values(SP_GL_SEMAPHORE_TIMELINE);
    CHECK_EQUAL(gl_play_last_type, GL_HANDLE_TYPE_OPAQUE_FD_EXT);
    CHECK_EQUAL(gl_play_last_semaphore_type, GL_SEMAPHORE_TYPE_TIMELINE_NV);
}

TEST_NEEDING(d3d12_fence_values_of_the_other_side, WITH_DOUBLES)
{
    check_values(SP_GL_SEMAPHORE_D3D12_FENCE);
    CHECK_EQUAL(gl_play_last_type, GL_HANDLE_TYPE_D3D12_FENCE_EXT);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glCreateSemaphoresNV), 0);
}

static void check_signals(sp_gl_semaphore_type type)
{
    sp_gl_semaphore *timeline = start_values(type);
    sp_point marked = test_marked_point(), out = marked;
    sp_point three = signal_semaphore(timeline, 3), four = signal_semaphore(timeline, 0);
    CHECK_EQUAL(three.value, 3);
    CHECK_EQUAL(four.value, 4);
    CHECK_EQUAL(gl_play_value(&payload), 4);
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, timeline, 4, NULL, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, timeline, 1, NULL, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK(test_same_point(&out, &marked));
    CHECK_STATUS(sp_poll(&four), SP_OK); /* our own signals are noticed without a wait */
    CHECK_STATUS(sp_poll(&three), SP_OK);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 0);
    sp_point_unref(&three);
    sp_point_unref(&four);
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, timeline, UINT64_MAX - 1, NULL, &out),
                 SP_OK);
    sp_point_unref(&out);
    out = marked;
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, timeline, 0, NULL, &out),
                SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&out, &marked));
    end(timeline);
}

TEST_NEEDING(timeline_values_of_ours, WITH_DOUBLES)
{
    check_signals(SP_GL_SEMAPHORE_TIMELINE);
}

TEST_NEEDING(d3d12_fence_values_of_ours, WITH_DOUBLES)
{
    check_signals(SP_GL_SEMAPHORE_D3D12_FENCE);
}

TEST_NEEDING(a_failed_signal_gives_its_value_back, WITH_DOUBLES)
{
    static const gl_hook_id calls[] = {GL_HOOK_glSemaphoreParameterui64vEXT,
                                       GL_HOOK_glSignalSemaphoreEXT};
    sp_gl_semaphore *timeline = start_values(SP_GL_SEMAPHORE_TIMELINE);
    sp_point marked = test_marked_point(), out = marked;
    for (unsigned i = 0; i < COUNT_OF(calls); i++) {
        gl_hook_fail(calls[i], GL_HOOK_INVALID, 0, 1);
        CHECK_ERROR(sp_gl_context_signal_semaphore(context, timeline, 0, NULL, &out),
                    SP_ERROR_BACKEND);
        CHECK(test_same_point(&out, &marked));
    }
    sp_point point = signal_semaphore(timeline, 0);
    CHECK_EQUAL(point.value, 1);
    sp_point_unref(&point);
    end(timeline);
}

/* Its own signal is pending behind a wait; then poll sees it, each at its own value. */
TEST_NEEDING(W7_our_signals_are_seen_one_by_one, WITH_DOUBLES)
{
    enum { COUNT = 20 };
    sp_gl_semaphore *timeline = start_values(SP_GL_SEMAPHORE_TIMELINE);
    gl_play_semaphore gate_payload = {.counting = true};
    sp_gl_semaphore *gate = import_played(SP_GL_SEMAPHORE_TIMELINE, &gate_payload);
    sp_point points[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        sp_point closed = value_point(gate, i + 1);
        CHECK_STATUS(sp_gl_context_wait(context, &closed, NULL), SP_OK);
        points[i] = signal_semaphore(timeline, 0);
        sp_point_unref(&closed);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK_STATUS(sp_poll(&points[i]), SP_PENDING);
        gl_play_signal(&gate_payload, i + 1);
        CHECK_STATUS(sp_poll(&points[i]), SP_OK);
        if (i + 1 < COUNT)
            CHECK_STATUS(sp_wait_timeout(&points[i + 1], MS), SP_TIMEOUT);
    }
    for (unsigned i = 0; i < COUNT; i++)
        sp_point_unref(&points[i]);
    sp_gl_semaphore_unref(gate);
    end(timeline);
}

TEST_NEEDING(a_wait_for_any_notices_a_timeline, WITH_DOUBLES)
{
    sp_gl_semaphore *timeline = start_values(SP_GL_SEMAPHORE_TIMELINE);
    late_signal late;
    size_t index = 9;
    sp_point points[2] = {value_point(timeline, 7), value_point(timeline, 8)};
    signal_late(&late, &payload, 7);
    CHECK_STATUS(sp_wait_many(points, 2, SP_WAIT_ANY, PATIENCE_NS, &index), SP_OK);
    join_not_early(&late);
    CHECK_EQUAL(index, 0);
    gl_play_signal(&payload, 8);
    sp_point_unref(&points[0]);
    sp_point_unref(&points[1]);
    end(timeline);
}

static gl_context other;

/* Streams of two contexts run as they like: the later value waits for the earlier one. */
TEST_NEEDING(values_do_not_go_back_between_contexts, WITH_DOUBLES)
{
    sp_gl_semaphore *timeline = start_values(SP_GL_SEMAPHORE_TIMELINE);
    gl_play_semaphore gate_payload = {.counting = true};
    sp_gl_semaphore *gate = import_played(SP_GL_SEMAPHORE_TIMELINE, &gate_payload);
    sp_point closed = value_point(gate, 1), out = {0};
    sp_gl_context *second = NULL;
    sp_gl_context_desc desc = context_desc();
    CHECK_STATUS(sp_gl_context_wait(context, &closed, NULL), SP_OK);
    sp_point first = signal_semaphore(timeline, 0);
    gl_open_second(&other, &gl, true);
    gl_make_current(&other);
    desc.share = context;
    CHECK_STATUS(sp_gl_context_create(&desc, &second), SP_OK);
    CHECK_STATUS(sp_gl_context_signal_semaphore(second, timeline, 0, NULL, &out), SP_OK);
    CHECK_EQUAL(out.value, 2);
    CHECK_STATUS(sp_poll(&out), SP_PENDING);
    CHECK_EQUAL(gl_play_value(&payload), 0);
    gl_play_signal(&gate_payload, 1);
    CHECK_STATUS(sp_wait(&out), SP_OK);
    CHECK_STATUS(sp_poll(&first), SP_OK);
    CHECK_EQUAL(gl_play_wrong(), 0); /* no value went back */
    sp_point_unref(&out);
    sp_point_unref(&first);
    sp_point_unref(&closed);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    gl_make_current(&gl);
    gl_close(&other);
    sp_gl_semaphore_unref(gate);
    end(timeline);
}

/* Setting the value and using it are one step. */
static sp_gl_semaphore *shared;
static gl_context racers[2];

typedef struct racer {
    worker worker;
    gl_context *native;
    sp_gl_context *context;
} racer;

static void race(void *user)
{
    racer *self = user;
    gl_make_current(self->native);
    for (unsigned i = 0; i < 300; i++) {
        sp_point point = {0};
        CHECK_STATUS(sp_gl_context_signal_semaphore(self->context, shared, 0, NULL, &point), SP_OK);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
    }
    gl_make_none_current(self->native);
}

TEST_NEEDING(O5_two_threads_signal_in_order, WITH_DOUBLES)
{
    racer two[2];
    shared = start_values(SP_GL_SEMAPHORE_TIMELINE);
    for (unsigned i = 0; i < 2; i++) {
        sp_gl_context_desc desc = context_desc();
        gl_open_second(&racers[i], &gl, true);
        gl_make_current(&racers[i]);
        desc.share = context;
        two[i] = (racer){.native = &racers[i]};
        CHECK_STATUS(sp_gl_context_create(&desc, &two[i].context), SP_OK);
    }
    gl_make_current(&gl);
    for (unsigned i = 0; i < 2; i++)
        worker_start(&two[i].worker, 0, race, &two[i]);
    for (unsigned i = 0; i < 2; i++)
        worker_join(&two[i].worker);
    CHECK_EQUAL(gl_play_value(&payload), 600);
    CHECK_EQUAL(gl_play_wrong(), 0);
    for (unsigned i = 0; i < 2; i++) {
        CHECK_STATUS(sp_gl_context_destroy(two[i].context), SP_OK);
        gl_close(&racers[i]);
    }
    end(shared);
}

/* ---- Several at once ---- */

TEST_NEEDING(a_chain_of_semaphores, WITH_DOUBLES)
{
    enum { COUNT = 40 }; /* more than need no allocator */
    start_plays();
    gl_play_semaphore payloads[COUNT] = {{0}};
    sp_gl_semaphore *binaries[COUNT];
    sp_point chain = {0}, points[COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        sp_point longer = {0};
        binaries[i] = import_played(SP_GL_SEMAPHORE_BINARY, &payloads[i]);
        points[i] = binary_point(binaries[i], 0);
        CHECK_STATUS(sp_chain(&chain, &points[i], &longer), SP_OK);
        sp_point_unref(&chain);
        chain = longer;
    }
    const sp_gl_barriers barriers = {
        .size = sizeof(barriers),
        .buffers = (const uint32_t[]){1, 2},
        .buffer_count = 2,
        .textures = (const uint32_t[]){3},
        .layouts = (const uint32_t[]){GL_LAYOUT_GENERAL_EXT},
        .texture_count = 1,
    };
    CHECK_STATUS(sp_gl_context_wait(context, &chain, &barriers), SP_OK);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), COUNT);
    CHECK_EQUAL(gl_play_last_buffers, 2);
    CHECK_EQUAL(gl_play_last_textures, 1);
    CHECK_EQUAL(gl_play_last_layout, GL_LAYOUT_GENERAL_EXT);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK_STATUS(sp_poll(&chain), SP_PENDING);
        gl_play_signal(&payloads[i], 0);
    }
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK_STATUS(sp_poll(&points[i]), SP_OK);
        sp_point_unref(&points[i]);
        sp_gl_semaphore_unref(binaries[i]);
    }
    sp_point_unref(&chain);
    finish();
}

TEST_NEEDING(barriers_of_a_timeline_that_is_reached, WITH_DOUBLES)
{
    sp_gl_semaphore *timeline = start_values(SP_GL_SEMAPHORE_TIMELINE);
    const sp_gl_barriers barriers = {
        .size = sizeof(barriers), .buffers = (const uint32_t[]){1}, .buffer_count = 1};
    sp_point point = {0};
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, timeline, 0, &barriers, &point), SP_OK);
    CHECK_EQUAL(gl_play_last_buffers, 1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 0);
    gl_play_last_buffers = 0;
    CHECK_STATUS(sp_gl_context_wait(context, &point, &barriers), SP_OK); /* memory is handed over */
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 1);
    CHECK_EQUAL(gl_play_last_buffers, 1);
    sp_point_unref(&point);
    end(timeline);
}

/* The second of three waits fails: the first is in the stream, the third is as it was. */
TEST_NEEDING(a_wait_in_the_middle_fails, WITH_DOUBLES)
{
    start_plays();
    gl_play_semaphore payloads[3] = {{0}};
    sp_gl_semaphore *binaries[3];
    sp_point points[3], two = {0}, all = {0};
    for (unsigned i = 0; i < 3; i++) {
        binaries[i] = import_played(SP_GL_SEMAPHORE_BINARY, &payloads[i]);
        points[i] = binary_point(binaries[i], 0);
    }
    CHECK_STATUS(sp_chain(&points[0], &points[1], &two), SP_OK);
    CHECK_STATUS(sp_chain(&two, &points[2], &all), SP_OK);
    gl_hook_fail(GL_HOOK_glWaitSemaphoreEXT, GL_HOOK_NO_MEMORY, 1, 1);
    CHECK_ERROR(sp_gl_context_wait(context, &all, NULL), SP_ERROR_OUT_OF_MEMORY);
    for (unsigned i = 0; i < 3; i++)
        gl_play_signal(&payloads[i], 0);
    CHECK(!payloads[0].signalled);
    CHECK(payloads[1].signalled && payloads[2].signalled);
    CHECK_STATUS(sp_poll(&points[0]), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(context, &all, NULL), SP_OK); /* the other two */
    CHECK_STATUS(sp_wait(&all), SP_OK);
    sp_point_unref(&all);
    sp_point_unref(&two);
    for (unsigned i = 0; i < 3; i++) {
        sp_point_unref(&points[i]);
        sp_gl_semaphore_unref(binaries[i]);
    }
    finish();
}

/* ---- Failures ---- */

/* The wait is in the stream, and nothing will tell when it has run: the point fails, at once. */
TEST_NEEDING(a_wait_without_its_fence_fails_the_point, WITH_DOUBLES)
{
    for (unsigned on_host = 0; on_host < 2; on_host++) {
        payload = (gl_play_semaphore){0};
        sp_gl_semaphore *binary = start_binary();
        sp_point point = binary_point(binary, 0);
        gl_hook_fail(GL_HOOK_eglCreateSyncKHR, GL_HOOK_INVALID, 0, 1);
        sp_status status = on_host ? sp_wait(&point) : sp_gl_context_wait(context, &point, NULL);
        CHECK_STATUS(status, SP_ERROR_BACKEND);
        CHECK_ERROR(sp_poll(&point), SP_ERROR_BACKEND);
        gl_play_signal(&payload, 0);
        CHECK_ERROR(sp_wait(&point), SP_ERROR_BACKEND);
        sp_point_unref(&point);
        end(binary);
    }
}

TEST_NEEDING(a_host_wait_that_fails_uses_nothing_up, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary();
    sp_point point = binary_point(binary, 0);
    gl_hook_fail(GL_HOOK_glWaitSemaphoreEXT, GL_HOOK_NO_MEMORY, 0, 1);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_OUT_OF_MEMORY);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    end(binary);
}

/* ---- H1, with every sort of handle ---- */

static sp_gl_semaphore_import_desc attempt_desc;

static sp_status attempt(void)
{
    sp_gl_semaphore *made = NULL;
    gl_play_next_import(&payload);
    sp_status status = sp_gl_semaphore_import(context, &attempt_desc, &made);
    CHECK((made != NULL) == (status == SP_OK));
    sp_gl_semaphore_unref(made);
    return status;
}

TEST_NEEDING(H1_each_step_of_an_import_fails, WITH_DOUBLES)
{
    start_plays();
    int fd = gl_play_fd();
    static const sp_gl_semaphore_type types[] = {SP_GL_SEMAPHORE_BINARY, SP_GL_SEMAPHORE_TIMELINE,
                                                 SP_GL_SEMAPHORE_D3D12_FENCE};
    for (unsigned t = 0; t < COUNT_OF(types); t++) {
        attempt_desc = import_desc(types[t], fd);
        unsigned steps = gl_hook_steps();
        CHECK_STATUS(attempt(), SP_OK);
        steps = gl_hook_steps() - steps;
        CHECK(steps >= 2);
        unsigned open = census_open_handles(), live = gl_hook_live_semaphores();
        for (unsigned step = 0; step < steps; step++) {
            for (unsigned i = 0; i < 1000; i++) {
                gl_hook_fail_step(i % 2 ? GL_HOOK_NO_MEMORY : GL_HOOK_INVALID, step);
                CHECK(attempt() < 0);
                gl_hook_heal();
            }
            CHECK_HANDLES(open);
            CHECK_EQUAL(gl_hook_live_semaphores(), live);
            CHECK(census_is_open(fd));
        }
        CHECK_STATUS(attempt(), SP_OK);
    }
    close(fd);
    finish();
}

/* A double: a driver that closes the number although the import failed. */
static void APIENTRY close_and_fail(GLuint name, GLenum type, GLint fd)
{
    (void)name;
    (void)type;
    close(fd);
    gl_hook_set_gl_error(GL_INVALID_VALUE);
}

TEST_NEEDING(H1_a_failing_import_that_closes, WITH_DOUBLES)
{
    start_plays();
    int fd = gl_play_fd();
    attempt_desc = import_desc(SP_GL_SEMAPHORE_BINARY, fd);
    unsigned open = census_open_handles();
    GL_HOOK_REPLACE(PFNGLIMPORTSEMAPHOREFDEXTPROC, glImportSemaphoreFdEXT, close_and_fail);
    for (unsigned i = 0; i < 1000; i++)
        CHECK_ERROR(attempt(), SP_ERROR_INVALID_HANDLE);
    CHECK_HANDLES(open);
    CHECK(census_is_open(fd));
    close(fd);
    finish();
}

TEST_NEEDING(adopted_fds_are_closed_on_success_only, WITH_DOUBLES)
{
    start_plays();
    int fd = gl_play_fd();
    attempt_desc = import_desc(SP_GL_SEMAPHORE_BINARY, fd);
    attempt_desc.adopt = true;
    gl_hook_fail(GL_HOOK_glImportSemaphoreFdEXT, GL_HOOK_INVALID, 0, 1);
    CHECK_ERROR(attempt(), SP_ERROR_INVALID_HANDLE);
    CHECK(census_is_open(fd));
    CHECK_STATUS(attempt(), SP_OK);
    CHECK(!census_is_open(fd));
    finish();
}

/* ---- Win32 handles ---- */

TEST_NEEDING(win32_handles, WITH_DOUBLES)
{
    static const struct {
        sp_gl_handle_type type;
        GLenum expected;
    } table[] = {
        {SP_GL_HANDLE_OPAQUE_WIN32, GL_HANDLE_TYPE_OPAQUE_WIN32_EXT},
        {SP_GL_HANDLE_OPAQUE_WIN32_KMT, GL_HANDLE_TYPE_OPAQUE_WIN32_KMT_EXT},
    };
    start_plays();
    for (unsigned i = 0; i < COUNT_OF(table); i++) {
        sp_gl_semaphore *made = NULL;
        sp_gl_semaphore_import_desc desc = {
            .size = sizeof(desc),
            .type = SP_GL_SEMAPHORE_BINARY,
            .handle_type = table[i].type,
            .handle = NULL,
        };
        CHECK_ERROR(sp_gl_semaphore_import(context, &desc, &made), SP_ERROR_INVALID_HANDLE);
        desc.handle = (void *)(intptr_t)-1;
        CHECK_ERROR(sp_gl_semaphore_import(context, &desc, &made), SP_ERROR_INVALID_HANDLE);
        CHECK(made == NULL);
        desc.handle = &payload;
        gl_play_next_import(&payload);
        CHECK_STATUS(sp_gl_semaphore_import(context, &desc, &made), SP_OK);
        CHECK_EQUAL(gl_play_last_type, table[i].expected);
        CHECK(gl_play_last_handle == &payload);
        sp_point point = binary_point(made, 0);
        gl_play_signal(&payload, 0);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
        sp_gl_semaphore_unref(made);
    }
    finish();
}

TEST_NEEDING(semaphores_have_references, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary();
    CHECK(sp_gl_semaphore_ref(binary) == binary);
    CHECK(sp_gl_semaphore_name(binary) != 0);
    sp_gl_semaphore_unref(binary);
    sp_point point = binary_point(binary, 0);
    sp_gl_semaphore_unref(binary);
    CHECK_EQUAL(gl_hook_live_semaphores(), 1);
    CHECK(sp_gl_semaphore_name_from_point(&point) != 0);
    sp_point_unref(&point);
    CHECK_EQUAL(gl_hook_live_semaphores(), 0);
    finish();
}
