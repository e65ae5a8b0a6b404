/* SPDX-License-Identifier: MIT
 *
 * OpenGL: sync_files in and out (EGL_ANDROID_native_fence_sync). Played: no driver here has them,
 * and this kernel makes none. The fds are those of doubles/sync_fd.h.
 */
#include "doubles/sync_fd.h"
#include "gl_case.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- A display with native fences ---- */

typedef struct native_sync {
    int fd;
} native_sync;

static int dup_error; /* what a dup of the double's says in errno */
static bool signalled_is_minus_one;

static EGLSyncKHR EGLAPIENTRY create(EGLDisplay display, EGLenum type, const EGLint *attributes)
{
    if (type != EGL_SYNC_NATIVE_FENCE_ANDROID)
        return gl_hook_real.eglCreateSyncKHR(display, type, attributes);
    if (gl_hook_real.eglGetCurrentContext() == EGL_NO_CONTEXT) { /* as Mesa */
        gl_hook_set_egl_error(EGL_BAD_MATCH);
        return EGL_NO_SYNC_KHR;
    }
    native_sync *made = malloc(sizeof(*made));
    assert_non_null(made);
    bool given = attributes && attributes[0] == EGL_SYNC_NATIVE_FENCE_FD_ANDROID;
    made->fd = given ? attributes[1] : sync_fd_make();
    assert_true(made->fd >= 0);
    return made;
}

static bool is_native(EGLSync sync)
{
    /* The driver's own syncs of this case are gone by the time that it makes native ones. */
    return sync != NULL;
}

static EGLBoolean EGLAPIENTRY destroy(EGLDisplay display, EGLSync sync)
{
    native_sync *self = sync;
    (void)display;
    assert_true(is_native(sync));
    close(self->fd);
    free(self);
    return EGL_TRUE;
}

static EGLint EGLAPIENTRY client_wait(EGLDisplay display, EGLSync sync, EGLint flags,
                                      EGLTime timeout)
{
    const native_sync *self = sync;
    struct pollfd look = {.fd = self->fd, .events = POLLIN};
    (void)display;
    (void)flags;
    return poll(&look, 1, (int)(timeout / MS)) == 1 ? EGL_CONDITION_SATISFIED : EGL_TIMEOUT_EXPIRED;
}

static EGLint EGLAPIENTRY dup_fd(EGLDisplay display, EGLSync sync)
{
    const native_sync *self = sync;
    (void)display;
    if (dup_error || (signalled_is_minus_one && sync_fd_is_signalled(self->fd))) {
        errno = dup_error;
        gl_hook_set_egl_error(EGL_BAD_PARAMETER);
        return EGL_NO_NATIVE_FENCE_FD_ANDROID;
    }
    return dup(self->fd);
}

static flag entering, go_on;
static bool enters_slowly;

/* If so, the first time, and then it says no. */
static bool enter(void *user)
{
    if (!enters_slowly || flag_is_set(&entering))
        return gl_helper_enter(user);
    flag_set(&entering);
    CHECK(flag_wait(&go_on)); /* not, if who is to set it waits for this */
    return false;
}

static void start_native_with(bool helped)
{
    open_gl();
    if (helped) {
        gl_play_install();
        with_helper();
    }
    sp_gl_context_desc desc = context_desc();
    if (helped)
        desc.helper_enter = enter;
    gl_hook_add_egl_extensions("EGL_ANDROID_native_fence_sync");
    GL_HOOK_REPLACE(PFNEGLDUPNATIVEFENCEFDANDROIDPROC, eglDupNativeFenceFDANDROID, dup_fd);
    CHECK_STATUS(sp_gl_context_create(&desc, &context), SP_OK);
    GL_HOOK_REPLACE(PFNEGLCREATESYNCKHRPROC, eglCreateSyncKHR, create);
    GL_HOOK_REPLACE(PFNEGLDESTROYSYNCPROC, eglDestroySync, destroy);
    GL_HOOK_REPLACE(PFNEGLCLIENTWAITSYNCPROC, eglClientWaitSync, client_wait);
}

static void start_native(void)
{
    start_native_with(false);
}

static sp_point import_fd(int fd, bool adopt)
{
    sp_point point = {0};
    CHECK_STATUS(sp_gl_sync_import_fd(context, fd, adopt, &point), SP_OK);
    return point;
}

static int export_fd(const sp_point *point)
{
    int fd = -77;
    CHECK_STATUS(sp_gl_point_export_sync_fd(point, &fd), SP_OK);
    return fd;
}

TEST_NEEDING(a_sync_file_in, WITH_DOUBLES)
{
    start_native();
    unsigned before = census_open_handles();
    int fd = sync_fd_make();
    sp_point point = import_fd(fd, false);
    CHECK_EQUAL(point.kind, SP_KIND_OPENGL_SYNC);
    CHECK_STATUS(sp_wait_timeout(&point, 2 * MS), SP_TIMEOUT);
    sync_fd_signal(fd);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    CHECK(census_is_open(fd));
    close(fd);
    fd = sync_fd_make();
    point = import_fd(fd, true);
    CHECK(!census_is_open(fd));
    sp_point_unref(&point);
    CHECK_HANDLES(before);
    finish();
}

static void import_and_wait(void *user)
{
    sp_point point = import_fd(*(int *)user, false);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    sync_fd_signal(*(int *)user);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK(gl.egl.GetCurrentContext() == EGL_NO_CONTEXT);
    sp_point_unref(&point);
}

TEST_NEEDING(a_sync_file_in_through_the_helper, WITH_DOUBLES)
{
    start_native_with(true);
    int fd = sync_fd_make();
    run_elsewhere(import_and_wait, &fd);
    CHECK_EQUAL(gl_helper_entered, 1);
    close(fd);
    finish();
}

/* ---- The helper is in use ---- */

static void wait_in_vain(void *user)
{
    CHECK_ERROR(sp_wait(user), SP_ERROR_WRONG_CONTEXT);
}

static void import_beside_a_wait(void *user)
{
    int fd = *(int *)user;
    sp_point marked = test_marked_point(), out = marked;
    CHECK_STATUS(sp_gl_sync_import_fd(context, fd, true, &out), SP_TIMEOUT);
    CHECK(test_same_point(&out, &marked));
    CHECK(census_is_open(fd));
}

TEST_NEEDING(a_sync_file_in_while_a_wait_has_the_helper, WITH_DOUBLES)
{
    worker waits;
    gl_play_semaphore payload = {0};
    start_native_with(true);
    enters_slowly = true;
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payload);
    sp_point point = binary_point(binary, 0);
    int fd = sync_fd_make();
    worker_start(&waits, 0, wait_in_vain, &point);
    CHECK(flag_wait(&entering));
    run_elsewhere(import_beside_a_wait, &fd);
    flag_set(&go_on);
    worker_join(&waits);
    run_elsewhere(import_and_wait, &fd);
    close(fd);
    sp_point_unref(&point);
    sp_gl_semaphore_unref(binary);
    finish();
}

static void import_in_vain(void *user)
{
    sp_point marked = test_marked_point(), out = marked;
    CHECK_ERROR(sp_gl_sync_import_fd(context, *(int *)user, true, &out), SP_ERROR_WRONG_CONTEXT);
    CHECK(test_same_point(&out, &marked));
    out = import_fd(-1, false); /* makes no sync */
    CHECK_STATUS(sp_poll(&out), SP_OK);
    sp_point_unref(&out);
}

TEST_NEEDING(G2_a_sync_file_needs_a_context_or_a_helper, WITH_DOUBLES)
{
    start_native();
    int fd = sync_fd_make();
    unsigned before = census_open_handles(), steps = gl_hook_steps();
    run_elsewhere(import_in_vain, &fd);
    CHECK_EQUAL(gl_hook_steps(), steps);
    CHECK_HANDLES(before);
    CHECK(census_is_open(fd));
    close(fd);
    finish();
}

TEST_NEEDING(a_sync_file_out, WITH_DOUBLES)
{
    start_native();
    unsigned before = census_open_handles();
    unsigned flushes = gl_hook_calls(GL_HOOK_glFlush);
    sp_point point = {0};
    CHECK_STATUS(sp_gl_context_signal(context, SP_GL_EXPORTABLE, &point), SP_OK);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glFlush), flushes + 1); /* only then there is a file */
    int fd = export_fd(&point), again = export_fd(&point);
    CHECK(fd >= 0 && again >= 0 && fd != again);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    sync_fd_signal(fd);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_EQUAL(export_fd(&point), -1); /* known reached */
    close(fd);
    close(again);
    sp_point_unref(&point);
    CHECK_HANDLES(before);
    finish();
}

TEST_NEEDING(H3_minus_one_is_reached, WITH_DOUBLES)
{
    start_native();
    unsigned before = gl_hook_steps();
    sp_point point = import_fd(-1, true);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
    CHECK_EQUAL(export_fd(&point), -1);
    CHECK(sp_gl_sync_from_point(&point) == NULL);
    sp_point_unref(&point);
    CHECK_EQUAL(gl_hook_steps(), before);
    /* A driver that says -1 for what is signalled. */
    signalled_is_minus_one = true;
    CHECK_STATUS(sp_gl_context_signal(context, SP_GL_EXPORTABLE, &point), SP_OK);
    int fd = export_fd(&point);
    sync_fd_signal(fd);
    close(fd);
    CHECK_EQUAL(export_fd(&point), -1);
    sp_point_unref(&point);
    finish();
}

TEST_NEEDING(H5_what_is_no_sync_file, WITH_DOUBLES)
{
    start_native();
    const int fds[] = {eventfd(0, EFD_CLOEXEC), 0, -2, INT32_MAX, census_free_number()};
    sp_point marked = test_marked_point(), out = marked;
    unsigned before = gl_hook_steps();
    for (unsigned i = 0; i < COUNT_OF(fds); i++)
        CHECK_ERROR(sp_gl_sync_import_fd(context, fds[i], true, &out), SP_ERROR_INVALID_HANDLE);
    CHECK(close(fds[0]) == 0);
    CHECK_EQUAL(gl_hook_steps(), before);
    CHECK(test_same_point(&out, &marked));
    finish();
}

TEST_NEEDING(export_is_for_some_points_only, WITH_DOUBLES)
{
    gl_play_semaphore payload = {0};
    open_gl();
    gl_play_install();
    open_library();
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payload);
    sp_point fence = signal_point(), signal = binary_point(binary, 0), noop = sp_point_noop();
    sp_point marked = test_marked_point(), out = marked;
    int fd = 77;
    CHECK_ERROR(sp_gl_point_export_sync_fd(&fence, &fd), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_gl_point_export_sync_fd(&signal, &fd), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_gl_point_export_sync_fd(&noop, &fd), SP_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(fd, 77);
    CHECK_ERROR(sp_gl_context_signal(context, SP_GL_EXPORTABLE, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_gl_sync_import_fd(context, -1, false, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK(test_same_point(&out, &marked));
    sp_point_unref(&fence);
    sp_point_unref(&signal);
    sp_gl_semaphore_unref(binary);
    finish();
}

/* ---- H1 ---- */

static int good_fd;

static sp_status import_once(void)
{
    sp_point point = {0};
    sp_status status = sp_gl_sync_import_fd(context, good_fd, false, &point);
    CHECK((point.waiter != NULL) == (status == SP_OK));
    sp_point_unref(&point);
    return status;
}

static sp_point exported;

static sp_status export_once(void)
{
    int fd = -77;
    sp_status status = sp_gl_point_export_sync_fd(&exported, &fd);
    CHECK((fd != -77) == (status == SP_OK));
    if (fd >= 0)
        close(fd);
    return status;
}

static void fail_each_step(sp_status (*attempt)(void))
{
    unsigned steps = gl_hook_steps();
    CHECK_STATUS(attempt(), SP_OK);
    steps = gl_hook_steps() - steps;
    CHECK(steps > 0);
    unsigned before = census_open_handles(), live = gl_hook_live_syncs();
    for (unsigned step = 0; step < steps; step++) {
        for (unsigned i = 0; i < 1000; i++) {
            gl_hook_fail_step(i % 2 ? GL_HOOK_NO_MEMORY : GL_HOOK_INVALID, step);
            CHECK(attempt() < 0);
            gl_hook_heal();
        }
        CHECK_HANDLES(before);
        CHECK_EQUAL(gl_hook_live_syncs(), live);
    }
    CHECK_STATUS(attempt(), SP_OK);
    CHECK_HANDLES(before);
}

TEST_NEEDING(H1_imports_and_exports_fail, WITH_DOUBLES)
{
    start_native();
    good_fd = sync_fd_make();
    fail_each_step(import_once);
    CHECK(census_is_open(good_fd));
    close(good_fd);
    CHECK_STATUS(sp_gl_context_signal(context, SP_GL_EXPORTABLE, &exported), SP_OK);
    fail_each_step(export_once);
    sp_point_unref(&exported);
    finish();
}

/* A double: a driver that closes the number although the import failed. */
static EGLSyncKHR EGLAPIENTRY close_and_fail(EGLDisplay display, EGLenum type,
                                             const EGLint *attributes)
{
    (void)display;
    (void)type;
    close(attributes[1]);
    gl_hook_set_egl_error(EGL_BAD_ATTRIBUTE);
    return EGL_NO_SYNC_KHR;
}

TEST_NEEDING(H1_a_failing_import_that_closes_the_file, WITH_DOUBLES)
{
    start_native();
    good_fd = sync_fd_make();
    unsigned before = census_open_handles();
    GL_HOOK_REPLACE(PFNEGLCREATESYNCKHRPROC, eglCreateSyncKHR, close_and_fail);
    for (unsigned i = 0; i < 1000; i++)
        CHECK_ERROR(import_once(), SP_ERROR_BACKEND);
    CHECK_HANDLES(before);
    CHECK(census_is_open(good_fd));
    close(good_fd);
    finish();
}

/* Of the export only: the double itself needs a number to know its files by. */
TEST_NEEDING(H1_no_free_number_for_a_file, WITH_DOUBLES)
{
    struct rlimit limit, tight;
    start_native();
    CHECK_STATUS(sp_gl_context_signal(context, SP_GL_EXPORTABLE, &exported), SP_OK);
    getrlimit(RLIMIT_NOFILE, &limit);
    tight = limit;
    tight.rlim_cur = (rlim_t)census_free_number();
    setrlimit(RLIMIT_NOFILE, &tight);
    for (unsigned i = 0; i < 100; i++)
        CHECK_ERROR(export_once(), SP_ERROR_SYSTEM);
    setrlimit(RLIMIT_NOFILE, &limit);
    CHECK_STATUS(export_once(), SP_OK);
    dup_error = EINVAL;
    CHECK_ERROR(export_once(), SP_ERROR_BACKEND);
    sp_point_unref(&exported);
    finish();
}

TEST_NEEDING(export_of_a_point_that_failed, WITH_DOUBLES)
{
    start_native();
    int fd = 77;
    CHECK_STATUS(sp_gl_context_signal(context, SP_GL_EXPORTABLE, &exported), SP_OK);
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
    CHECK_ERROR(sp_gl_point_export_sync_fd(&exported, &fd), SP_ERROR_INVALID_STATE);
    CHECK_EQUAL(fd, 77);
    sp_point_unref(&exported);
    close_gl();
}
