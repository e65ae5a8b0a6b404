/* SPDX-License-Identifier: MIT
 *
 * OpenGL: timelines and D3D12 fences, played by the double of doubles/gl_play.h: what no driver that
 * is always here has.
 */
#include "gl_case.h"

static gl_play_semaphore payload;

static void end(sp_gl_semaphore *semaphore)
{
    sp_gl_semaphore_unref(semaphore);
    finish();
}

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

TEST_NEEDING(a_value_signalled_without_a_point_is_seen, WITH_DOUBLES)
{
    sp_gl_semaphore *timeline = start_values(SP_GL_SEMAPHORE_TIMELINE);
    sp_point three = value_point(timeline, 3), four = value_point(timeline, 4);
    CHECK_STATUS(sp_poll(&three), SP_PENDING);
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, timeline, 3, NULL, NULL), SP_OK);
    CHECK_STATUS(sp_poll(&three), SP_OK);
    CHECK_STATUS(sp_poll(&four), SP_PENDING);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 0);
    sp_point_unref(&three);
    sp_point_unref(&four);
    end(timeline);
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
    CHECK_STATUS(sp_gl_context_wait(context, &closed, NULL), SP_OK);
    sp_point first = signal_semaphore(timeline, 0);
    sp_gl_context *second = open_sharing(&other);
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
        two[i] = (racer){.native = &racers[i], .context = open_sharing(&racers[i])};
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

static const sp_gl_barriers one_buffer = {
    .size = sizeof(one_buffer), .buffers = (const uint32_t[]){1}, .buffer_count = 1};

static void check_handed_over(const sp_point *point)
{
    unsigned before = gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT);
    gl_play_last_buffers = 0;
    CHECK_STATUS(sp_gl_context_wait(context, point, &one_buffer), SP_OK);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), before + 1);
    CHECK_EQUAL(gl_play_last_buffers, 1);
}

TEST_NEEDING(barriers_of_what_is_reached_in_chains_and_slots, WITH_DOUBLES)
{
    sp_gl_semaphore *timeline = start_values(SP_GL_SEMAPHORE_TIMELINE);
    sp_slot *slot = NULL;
    sp_point value = signal_semaphore(timeline, 0), fence = signal_point();
    sp_point chain = {0}, promise = {0};
    CHECK_STATUS(sp_chain(&value, &fence, &chain), SP_OK);
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_set(slot, &chain), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &promise), SP_OK);
    CHECK_STATUS(sp_wait(&value), SP_OK);
    check_handed_over(&chain); /* a reached leaf, and then all of it is reached */
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    check_handed_over(&chain);
    CHECK_STATUS(sp_wait(&promise), SP_OK);
    check_handed_over(&promise);
    sp_point_unref(&promise);
    sp_slot_destroy(slot);
    sp_point_unref(&chain);
    sp_point_unref(&fence);
    sp_point_unref(&value);
    end(timeline);
}

/* They are not dropped in silence. */
static void check_no_barriers(const sp_point *point, sp_status without)
{
    const sp_gl_barriers nothing = {.size = sizeof(nothing)};
    unsigned before = gl_hook_steps();
    CHECK_ERROR(sp_gl_context_wait(context, point, &one_buffer), SP_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_eglWaitSync), 0);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 0);
    CHECK(gl_hook_steps() <= before + 1); /* it may look */
    CHECK_STATUS(sp_gl_context_wait(context, point, &nothing), without);
}

static EGLBoolean EGLAPIENTRY wait_for_played(EGLDisplay display, EGLSync sync, EGLint flags)
{
    (void)display;
    (void)sync;
    (void)flags;
    return EGL_TRUE;
}

TEST_NEEDING(barriers_where_no_semaphore_is, WITH_DOUBLES)
{
    sp_gl_semaphore *timeline = start_values(SP_GL_SEMAPHORE_TIMELINE);
    const sp_point noop = sp_point_noop();
    check_no_barriers(&noop, SP_OK);
    sp_point fence = signal_point();
    CHECK_STATUS(sp_wait(&fence), SP_OK);
    check_no_barriers(&fence, SP_OK);
    sp_point_unref(&fence);
    gl_play_hold(true);
    fence = signal_point();
    GL_HOOK_REPLACE(PFNEGLWAITSYNCPROC, eglWaitSync, wait_for_played);
    check_no_barriers(&fence, SP_OK);
    gl_play_hold(false);
    sp_point_unref(&fence);
    end(timeline);
}
