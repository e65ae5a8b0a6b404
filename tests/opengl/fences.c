/* SPDX-License-Identifier: MIT
 *
 * OpenGL: waits for fences on the device, syncs of the user's, and what fails.
 */
#include "gl_case.h"

#include <string.h>

static gl_context other;

static void wait_for(void *user)
{
    CHECK_STATUS(sp_wait(user), SP_OK);
}

/* ---- Device side ---- */

TEST(device_waits_for_fences)
{
    start();
    sp_point first = signal_point(), second = signal_point(), chain = {0};
    CHECK_STATUS(sp_chain(&first, &second, &chain), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(context, &chain, NULL), SP_OK);
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    unsigned before = gl_hook_calls(GL_HOOK_eglWaitSync);
    CHECK_STATUS(sp_gl_context_wait(context, &chain, NULL), SP_OK); /* known reached */
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_eglWaitSync), before);
    sp_point_unref(&chain);
    sp_point_unref(&first);
    sp_point_unref(&second);
    finish();
}

static void check_device_wait(gl_hook_id call, sp_status injected, gl_hook_error error)
{
    gl_hook_withhold(true);
    sp_point point = signal_point();
    unsigned before = gl_hook_calls(call);
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
    CHECK_EQUAL(gl_hook_calls(call), before + 1);
    gl_hook_fail(call, error, 0, 1);
    CHECK_ERROR(sp_gl_context_wait(context, &point, NULL), injected);
    gl_hook_let_go(sp_gl_sync_from_point(&point));
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    finish();
}

TEST(device_wait_for_an_EGLSync)
{
    start();
    check_device_wait(GL_HOOK_eglWaitSync, SP_ERROR_BACKEND, GL_HOOK_INVALID);
}

TEST(device_wait_for_a_GLsync)
{
    start_with_glsyncs(false);
    check_device_wait(GL_HOOK_glWaitSync, SP_ERROR_OUT_OF_MEMORY, GL_HOOK_NO_MEMORY);
}

TEST(device_wait_that_the_display_cannot_do)
{
    open_gl();
    gl_hook_hide("eglWaitSyncKHR");
    gl_hook_set_versions(NULL, "1.4");
    open_library();
    gl_hook_withhold(true);
    sp_point point = signal_point();
    CHECK_ERROR(sp_gl_context_wait(context, &point, NULL), SP_ERROR_NOT_SUPPORTED);
    gl_hook_let_go(sp_gl_sync_from_point(&point));
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
    sp_point_unref(&point);
    finish();
}

TEST(device_wait_for_other_kinds)
{
    start();
    sp_host_timeline *host = NULL;
    sp_slot *slot = NULL;
    sp_point point = {0}, promise = {0};
    CHECK_STATUS(sp_host_timeline_create(0, &host), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(host, 1, &point), SP_OK);
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &promise), SP_OK);
    const sp_point noop = sp_point_noop(), cpu = sp_point_cpu();
    CHECK_STATUS(sp_gl_context_wait(context, &noop, NULL), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(context, &cpu, NULL), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(context, &promise, NULL), SP_NOT_SUBMITTED);
    CHECK_ERROR(sp_gl_context_wait(context, &point, NULL), SP_ERROR_BACKEND_MISMATCH);
    CHECK_STATUS(sp_host_timeline_signal(host, 1), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
    CHECK_STATUS(sp_slot_set(slot, &point), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(context, &promise, NULL), SP_OK);
    sp_point_unref(&promise);
    sp_slot_destroy(slot);
    sp_point_unref(&point);
    CHECK_STATUS(sp_host_timeline_point(host, 5, &point), SP_OK);
    sp_host_timeline_destroy(host);
    CHECK_ERROR(sp_gl_context_wait(context, &point, NULL), SP_ERROR_ABANDONED);
    sp_point_unref(&point);
    finish();
}

TEST(a_GLsync_of_a_context_that_shares_nothing)
{
    start_with_glsyncs(false);
    sp_gl_context_desc desc = context_desc();
    sp_gl_context *second = NULL;
    gl_hook_withhold(true);
    sp_point point = signal_point();
    gl_open_second(&other, &gl, false);
    gl_make_current(&other);
    CHECK_STATUS(sp_gl_context_create(&desc, &second), SP_OK);
    CHECK_ERROR(sp_gl_context_wait(second, &point, NULL), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_WRONG_CONTEXT);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    gl_make_current(&gl);
    gl_hook_let_go(sp_gl_sync_from_point(&point));
    sp_point_unref(&point);
    gl_close(&other);
    finish();
}

/* ---- Syncs of the user's ---- */

static sp_status wrap(void *sync, void *display, bool take, sp_point *out)
{
    const sp_gl_sync_wrap_desc desc = {
        .size = sizeof(desc), .sync = sync, .display = display, .take = take};
    return sp_gl_sync_wrap(context, &desc, out);
}

TEST(wrap_a_GLsync)
{
    start();
    sp_point point = {0}, marked = test_marked_point(), out = marked;
    for (unsigned take = 0; take < 2; take++) {
        GLsync sync = gl.call.FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
        unsigned flushes = gl_hook_calls(GL_HOOK_glFlush);
        CHECK_STATUS(wrap(sync, NULL, take, &point), SP_OK);
        CHECK_EQUAL(gl_hook_calls(GL_HOOK_glFlush), flushes + 1);
        CHECK(point.raw.opengl_sync.display == NULL);
        CHECK(sp_gl_sync_from_point(&point) == (void *)sync);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        gl_hook_count_syncs((int)take);
        sp_point_unref(&point);
        CHECK_EQUAL(gl.call.IsSync(sync), !take);
        if (!take)
            gl.call.DeleteSync(sync);
        CHECK_ERROR(wrap(sync, NULL, true, &out), SP_ERROR_INVALID_ARGUMENT);
    }
    CHECK(test_same_point(&out, &marked));
    finish();
}

TEST(wrap_an_EGLSync)
{
    start();
    sp_point point = {0}, marked = test_marked_point(), out = marked;
    for (unsigned take = 0; take < 2; take++) {
        EGLSyncKHR sync = gl.egl.CreateSyncKHR(gl.display, EGL_SYNC_FENCE_KHR, NULL);
        CHECK_STATUS(wrap(sync, gl.display, take, &point), SP_OK);
        CHECK(point.raw.opengl_sync.display == gl.display);
        run_elsewhere(wait_for, &point);
        gl_hook_count_syncs((int)take);
        sp_point_unref(&point);
        CHECK_EQUAL(gl.egl.DestroySyncKHR(gl.display, sync), !take);
        CHECK_ERROR(wrap(sync, gl.display, true, &out), SP_ERROR_INVALID_ARGUMENT);
    }
    CHECK(test_same_point(&out, &marked));
    finish();
}

TEST(wrap_when_the_context_is_lost)
{
    start();
    EGLSyncKHR sync = gl.egl.CreateSyncKHR(gl.display, EGL_SYNC_FENCE_KHR, NULL);
    sp_point marked = test_marked_point(), out = marked;
    gl_hook_lose_context(true);
    CHECK_ERROR(wrap(sync, gl.display, true, &out), SP_ERROR_DEVICE_LOST);
    CHECK(test_same_point(&out, &marked));
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
    gl.egl.DestroySyncKHR(gl.display, sync);
    close_gl();
}

TEST(wrap_what_the_context_does_not_have)
{
    start_with_glsyncs(false);
    sp_point marked = test_marked_point(), out = marked;
    CHECK_ERROR(wrap(&gl, gl.display, true, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK(test_same_point(&out, &marked));
    close_library();
    gl_hook_hide_extensions("");
    gl_hook_set_versions(NULL, NULL);
    gl_hook_hide("glFenceSync");
    open_library();
    CHECK_ERROR(wrap(&gl, NULL, true, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK(test_same_point(&out, &marked));
    finish();
}

TEST_NEEDING(an_EGLSync_of_another_display, WITH_DOUBLES)
{
    static const gl_options on_device = {.driver = "llvmpipe-device"};
    start();
    sp_gl_context_desc desc = context_desc();
    sp_gl_context *second = NULL;
    gl_hook_withhold(true);
    sp_point point = signal_point(), marked = test_marked_point(), out = marked;
    gl_open(&other, &on_device);
    CHECK(other.display != gl.display);
    CHECK_STATUS(sp_gl_context_create(&desc, &second), SP_OK);
    CHECK_ERROR(sp_gl_context_wait(second, &point, NULL), SP_ERROR_DEVICE_MISMATCH);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    gl_hook_let_go(sp_gl_sync_from_point(&point));
    CHECK_STATUS(sp_wait(&point), SP_OK); /* on the host any display will do */
    CHECK_STATUS(sp_gl_context_wait(second, &point, NULL), SP_OK);
    CHECK_STATUS(sp_gl_context_destroy(second), SP_OK);
    gl_close(&other);
    gl_make_current(&gl);
    gl_hook_withhold(false);
    CHECK_ERROR(wrap(&other, gl.display, false, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK(test_same_point(&out, &marked));
    gl_hook_withhold(true);
    sp_point_unref(&point);
    finish();
}

/* ---- Failures ---- */

static void check_failures(gl_hook_id make, gl_hook_id look)
{
    static const struct {
        gl_hook_error error;
        sp_status status;
    } table[] = {
        {GL_HOOK_NO_MEMORY, SP_ERROR_OUT_OF_MEMORY},
        {GL_HOOK_INVALID, SP_ERROR_BACKEND},
    };
    sp_point marked = test_marked_point(), out = marked;
    for (unsigned i = 0; i < COUNT_OF(table); i++) {
        gl_hook_fail(make, table[i].error, 0, 1);
        CHECK_ERROR(sp_gl_context_signal(context, 0, &out), table[i].status);
        CHECK(test_same_point(&out, &marked));
        CHECK_EQUAL(sp_last_error()->backend, SP_BACKEND_OPENGL);
        CHECK(sp_last_error()->native_code != 0);
        assert_non_null(sp_last_error()->native_call);
    }
    sp_point point = signal_point();
    gl_hook_fail(look, GL_HOOK_INVALID, 0, 1);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_BACKEND);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_BACKEND); /* for good */
    sp_point_unref(&point);
    point = signal_point();
    gl_hook_fail(look, GL_HOOK_NO_MEMORY, 0, 1);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_OUT_OF_MEMORY);
    CHECK_STATUS(sp_wait(&point), SP_OK); /* not for good */
    sp_point_unref(&point);
    finish();
}

TEST(failing_EGLSyncs)
{
    start();
    check_failures(GL_HOOK_eglCreateSyncKHR, GL_HOOK_eglClientWaitSync);
}

TEST(failing_GLsyncs)
{
    start_with_glsyncs(false);
    check_failures(GL_HOOK_glFenceSync, GL_HOOK_glClientWaitSync);
}

/* ---- The user's own GL errors ---- */

static unsigned warnings; /* about GL_INVALID_ENUM */

static void count_warning(void *user, sp_log_level level, const char *message)
{
    (void)user;
    warnings += level == SP_LOG_WARN && strstr(message, "0x0500") != NULL;
}

static void start_with_a_log(void)
{
    open_gl();
    gl_hook_hide_extensions(" EGL_KHR_fence_sync ");
    gl_hook_set_versions(NULL, "1.4");
    sp_gl_context_desc desc = context_desc();
    desc.log.fn = count_warning;
    CHECK_STATUS(sp_gl_context_create(&desc, &context), SP_OK);
}

TEST(errors_of_the_user_are_no_failure_of_a_fence)
{
    start_with_a_log();
    sp_point marked = test_marked_point(), out = marked;
    gl_hook_set_gl_error(GL_INVALID_ENUM);
    gl_hook_fail(GL_HOOK_glFenceSync, GL_HOOK_NO_MEMORY, 0, 1);
    CHECK_ERROR(sp_gl_context_signal(context, 0, &out), SP_ERROR_OUT_OF_MEMORY);
    CHECK(test_same_point(&out, &marked));
    CHECK_EQUAL(warnings, 1);
    sp_point point = signal_point();
    gl_hook_set_gl_error(GL_INVALID_ENUM);
    gl_hook_fail(GL_HOOK_glClientWaitSync, GL_HOOK_NO_MEMORY, 0, 1);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_OUT_OF_MEMORY);
    CHECK_EQUAL(warnings, 2);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    finish();
}

TEST(errors_of_the_user_hide_no_lost_context)
{
    start_with_a_log();
    sp_point point = signal_point();
    gl_hook_set_gl_error(GL_INVALID_ENUM);
    gl_hook_lose_context(true);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_DEVICE_LOST);
    CHECK_EQUAL(warnings, 1);
    sp_point_unref(&point);
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
    close_gl();
}

TEST(errors_of_the_user_are_logged_not_ours)
{
    start_with_a_log();
    gl_hook_withhold(true);
    sp_point point = signal_point();
    gl.call.BindBuffer(0x1234, 0); /* GL_INVALID_ENUM */
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
    CHECK_EQUAL(warnings, 1);
    CHECK_EQUAL(gl.call.GetError(), GL_NO_ERROR);
    gl_hook_let_go(sp_gl_sync_from_point(&point));
    sp_point_unref(&point);
    finish();
}
