/* SPDX-License-Identifier: MIT
 *
 * OpenGL: binary semaphores, played by the double of doubles/gl_play.h: states that no driver can be
 * brought to on command.
 */
#include "gl_case.h"

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

/* ---- Signalled by the other side ---- */

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

static gl_context other;

TEST_NEEDING(G2_semaphores_and_the_wrong_context, WITH_DOUBLES)
{
    sp_gl_semaphore *binary = start_binary(), *made = NULL;
    sp_point point = binary_point(binary, 0), marked = test_marked_point(), out = marked;
    const sp_gl_semaphore_import_desc desc = import_desc(SP_GL_SEMAPHORE_BINARY, 0);
    sp_gl_context_desc second_desc = context_desc();
    sp_gl_context *second = NULL;
    gl_open_second(&other, &gl, false);
    gl_make_current(&other);
    unsigned before = gl_hook_all_calls();
    CHECK_ERROR(sp_gl_semaphore_import(context, &desc, &made), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, binary, 0, NULL, &out),
                SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_gl_context_wait(context, &point, NULL), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_WRONG_CONTEXT);
    CHECK_EQUAL(gl_hook_all_calls(), before);
    CHECK_STATUS(sp_gl_context_create(&second_desc, &second), SP_OK); /* shares nothing */
    CHECK_ERROR(sp_gl_context_signal_semaphore(second, binary, 0, NULL, &out),
                SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_gl_context_wait(second, &point, NULL), SP_ERROR_WRONG_CONTEXT);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 0);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glSignalSemaphoreEXT), 0);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    gl_make_current(&gl);
    gl_close(&other);
    CHECK(test_same_point(&out, &marked));
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK); /* nothing was used up */
    sp_point_unref(&point);
    end(binary);
}

/* With GLsyncs, whose state only a context can tell: the signal itself asks. */
TEST_NEEDING(a_signal_after_a_wait_in_a_shared_context, WITH_DOUBLES)
{
    open_gl();
    gl_play_install();
    gl_hook_hide_extensions(" EGL_KHR_fence_sync ");
    gl_hook_set_versions(NULL, "1.4");
    open_library();
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payload);
    sp_gl_context *second = open_sharing(&other);
    sp_point point = binary_point(binary, 0);
    CHECK_STATUS(sp_gl_context_wait(second, &point, NULL), SP_OK);
    gl_make_current(&gl);
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, binary, 0, NULL, NULL),
                SP_ERROR_INVALID_STATE);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, binary, 0, NULL, NULL), SP_OK);
    CHECK(gl_play_take(&payload));
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
    gl_make_current(&other);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    gl_make_current(&gl);
    gl_close(&other);
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

/* ---- Several at once ---- */

static sp_gl_semaphore *contended;

/* What another thread could do between the claim of a wait and its insertion. */
static sp_status point_meanwhile(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    sp_point out = {0};
    (void)waiter;
    *reached = value;
    CHECK_ERROR(sp_gl_binary_point(contended, 0, &out), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, contended, 0, NULL, NULL),
                SP_ERROR_INVALID_STATE);
    return SP_OK;
}

static void nothing_to_free(sp_waiter *waiter)
{
    (void)waiter;
}

TEST_NEEDING(no_other_signal_while_a_wait_begins, WITH_DOUBLES)
{
    static const sp_waiter_ops ops = {
        .size = sizeof(ops),
        .features = SP_FEATURE_COUNTING,
        .name = "meanwhile",
        .probe = point_meanwhile,
        .destroy = nothing_to_free,
    };
    sp_waiter waiter;
    sp_point custom = {0}, chain = {0};
    contended = start_binary();
    sp_point signal = binary_point(contended, 0);
    CHECK_STATUS(sp_waiter_init(&waiter, &ops), SP_OK);
    CHECK_STATUS(sp_point_custom(&waiter, 1, NULL, &custom), SP_OK);
    CHECK_STATUS(sp_chain(&signal, &custom, &chain), SP_OK);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_gl_context_wait(context, &chain, NULL), SP_OK);
    CHECK_STATUS(sp_wait(&signal), SP_OK);
    sp_point_unref(&chain);
    sp_point_unref(&custom);
    sp_point_unref(&signal);
    end(contended);
}

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

/* A driver that holds the flush up, and then goes on as if the signal had come. */
static void flush_late(void)
{
    test_sleep_ms(8100);
}

static void check_given_up(bool on_host)
{
    sp_gl_semaphore *binary = start_binary();
    sp_point point = binary_point(binary, 0), out = {0};
    gl_hook_replace(GL_HOOK_glFlush, flush_late);
    CHECK_ERROR(on_host ? sp_wait(&point) : sp_gl_context_wait(context, &point, NULL),
                SP_ERROR_BACKEND);
    gl_hook_replace(GL_HOOK_glFlush, NULL);
    gl_play_signal(&payload, 0);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_BACKEND);
    CHECK_ERROR(sp_gl_context_signal_semaphore(context, binary, 0, NULL, &out),
                SP_ERROR_INVALID_STATE);
    sp_point_unref(&point);
    end(binary);
}

TEST_NEEDING(a_wait_that_the_driver_gave_up, WITH_DOUBLES)
{
    check_given_up(true);
}

TEST_NEEDING(a_device_wait_that_the_driver_gave_up, WITH_DOUBLES)
{
    check_given_up(false);
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
