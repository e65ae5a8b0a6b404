/* SPDX-License-Identifier: MIT
 *
 * OpenGL: making the context object, what it says about itself, and arguments of every function.
 */
#include "gl_case.h"

#include <string.h>
#include <unistd.h>

static sp_status create(const sp_gl_context_desc *desc)
{
    sp_gl_context *marker = (sp_gl_context *)(void *)&gl, *made = marker;
    sp_status status = sp_gl_context_create(desc, &made);
    CHECK((made != marker) == (status == SP_OK));
    context = status == SP_OK ? made : NULL;
    return status;
}

static bool says(const char *what)
{
    if (!strstr(sp_last_error()->message, what))
        print_error("not there: '%s' in '%s'\n", what, sp_last_error()->message);
    return strstr(sp_last_error()->message, what) != NULL;
}

static sp_gl_caps caps_of(void)
{
    sp_gl_caps caps = {.size = sizeof(caps)};
    CHECK_STATUS(sp_gl_context_caps(context, &caps), SP_OK);
    return caps;
}

TEST(create_and_destroy)
{
    start();
    sp_gl_caps caps = caps_of();
    CHECK(caps.gl_sync);
    CHECK(caps.egl_sync);
    CHECK(caps.egl_wait_sync);
    CHECK(caps.semaphore == (caps.why_no_semaphore == NULL));
    finish();
    CHECK_STATUS(sp_gl_context_destroy(NULL), SP_OK);
    sp_gl_context_lost(NULL);
}

TEST(create_checks_its_description)
{
    open_gl();
    sp_gl_context_desc good = context_desc(), bad = good;
    bad.size--;
    CHECK_ERROR(create(&bad), SP_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.loader = 0;
    CHECK_ERROR(create(&bad), SP_ERROR_INVALID_ARGUMENT);
    bad.loader = (sp_gl_loader)7;
    CHECK_ERROR(create(&bad), SP_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.get_proc_address = NULL;
    CHECK_ERROR(create(&bad), SP_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.helper_enter = gl_helper_enter;
    CHECK_ERROR(create(&bad), SP_ERROR_INVALID_ARGUMENT);
    bad = good;
    bad.helper_leave = gl_helper_leave;
    CHECK_ERROR(create(&bad), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_gl_context_create(NULL, &context), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_gl_context_create(&good, NULL), SP_ERROR_INVALID_ARGUMENT);
    close_gl();
}

TEST(G2_create_needs_a_current_context)
{
    open_gl();
    sp_gl_context_desc desc = context_desc();
    gl_make_none_current(&gl);
    CHECK_ERROR(create(&desc), SP_ERROR_WRONG_CONTEXT);
    gl_make_current(&gl);
    close_gl();
}

TEST(create_names_the_missing_function)
{
    static const char *const needed[] = {
        "eglGetCurrentContext", "eglGetCurrentDisplay", "eglQueryString", "eglGetError",
        "glGetError",           "glGetString",          "glGetIntegerv",  "glFlush"};
    open_gl();
    sp_gl_context_desc desc = context_desc();
    for (unsigned i = 0; i < COUNT_OF(needed); i++) {
        gl_hook_hide(needed[i]);
        CHECK_ERROR(create(&desc), SP_ERROR_NOT_SUPPORTED);
        CHECK(says(needed[i]));
    }
    gl_hook_hide(NULL);
    CHECK_STATUS(create(&desc), SP_OK);
    finish();
}

TEST(create_names_each_loaders_function)
{
    static const struct {
        sp_gl_loader loader;
        const char *function;
    } table[] = {
        {SP_GL_LOADER_WGL, "wglGetCurrentContext"},
        {SP_GL_LOADER_CGL, "CGLGetCurrentContext"},
    };
    open_gl();
    sp_gl_context_desc desc = context_desc();
    for (unsigned i = 0; i < COUNT_OF(table); i++) {
        gl_hook_hide(table[i].function); /* some loaders give a stub for any name */
        desc.loader = table[i].loader;
        CHECK_ERROR(create(&desc), SP_ERROR_NOT_SUPPORTED);
        CHECK(says(table[i].function));
    }
    close_gl();
}

/* Fences that work, of the sort that is expected. */
static void check_fences(bool egl)
{
    sp_point point = signal_point();
    CHECK_EQUAL(point.raw.opengl_sync.display != NULL, egl);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
}

static void check_variant(const char *hidden, const char *gl_version, const char *egl_version,
                          bool egl)
{
    gl_hook_hide_extensions(hidden);
    gl_hook_set_versions(gl_version, egl_version);
    open_library();
    CHECK_EQUAL(caps_of().egl_sync, egl);
    check_fences(egl);
    close_library();
    gl_hook_hide_extensions("");
    gl_hook_set_versions(NULL, NULL);
}

TEST(EGL_1_5_without_the_extension)
{
    open_gl();
    check_variant(" EGL_KHR_fence_sync EGL_KHR_wait_sync ", NULL, NULL, true);
    CHECK(gl_hook_calls(GL_HOOK_eglCreateSync) > 0);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_eglCreateSyncKHR), 0);
    close_gl();
}

TEST(EGL_1_4_with_the_extension)
{
    open_gl();
    check_variant("", NULL, "1.4", true);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_eglCreateSync), 0);
    close_gl();
}

TEST(EGL_without_fences)
{
    open_gl();
    check_variant(" EGL_KHR_fence_sync EGL_KHR_wait_sync ", NULL, "1.4", false);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_eglCreateSync), 0);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_eglCreateSyncKHR), 0);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_eglClientWaitSync), 0);
    close_gl();
}

/* Of one client API only: found out by asking for a fence. */
TEST(EGL_fences_that_the_context_cannot_insert)
{
    open_gl();
    gl_hook_fail(GL_HOOK_eglCreateSyncKHR, GL_HOOK_INVALID, 0, 1);
    open_library();
    CHECK(!caps_of().egl_sync);
    check_fences(false);
    finish();
}

TEST_NEEDING(OpenGL_2_1_with_ARB_sync, WITH_DESKTOP_GL)
{
    open_gl();
    check_variant(" EGL_KHR_fence_sync ", "2.1 of old", "1.4", false);
    close_gl();
}

TEST_NEEDING(OpenGL_2_1_without_fences, WITH_DESKTOP_GL)
{
    open_gl();
    sp_gl_context_desc desc = context_desc();
    gl_hook_hide_extensions(" EGL_KHR_fence_sync GL_ARB_sync GL_APPLE_sync ");
    gl_hook_set_versions("2.1 of old", "1.4");
    CHECK_ERROR(create(&desc), SP_ERROR_NOT_SUPPORTED);
    CHECK(says("GL_ARB_sync"));
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glFenceSync), 0);
    close_gl();
}

/* APPLE's functions are played by the core's. */
TEST(OpenGL_ES_2_with_APPLE_sync)
{
    static const char *const apple[] = {"GL_APPLE_sync"};
    open_gl();
    gl_hook_add_gl_extensions(apple, 1);
    check_variant(" EGL_KHR_fence_sync GL_ARB_sync ", "OpenGL ES 2.0 of old", "1.4", false);
    close_gl();
}

TEST(GLX_has_GLsyncs_only)
{
    open_gl();
    sp_gl_context_desc desc = context_desc();
    desc.loader = SP_GL_LOADER_GLX;
    CHECK_STATUS(create(&desc), SP_OK);
    CHECK(!caps_of().egl_sync);
    check_fences(false);
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_eglQueryString), 0);
    finish();
}

TEST(optional_functions_that_are_missing)
{
    static const char *const optional[] = {"glFenceSync",           "glWaitSync",
                                           "eglCreateSyncKHR",      "eglWaitSyncKHR",
                                           "glGetUnsignedBytevEXT", "glGenSemaphoresEXT"};
    open_gl();
    for (unsigned i = 0; i < COUNT_OF(optional); i++) {
        gl_hook_hide(optional[i]);
        open_library();
        sp_gl_caps caps = caps_of();
        CHECK(caps.gl_sync || i < 2);
        CHECK(!caps.gl_sync || i >= 2);
        CHECK(caps.egl_sync || i == 2);
        CHECK(caps.egl_wait_sync || i == 2 || i == 3);
        CHECK(!caps.has_uuid || i != 4);
        CHECK(!caps.semaphore || i != 5);
        check_fences(i != 2);
        close_library();
    }
    close_gl();
}

/* ---- G3 ---- */

TEST_NEEDING(G3_no_semaphores, WITHOUT_GL_SEMAPHORES)
{
    start();
    sp_gl_semaphore *marker = (sp_gl_semaphore *)(void *)&gl, *made = marker;
    int fd = gl_play_fd();
    sp_gl_semaphore_import_desc desc = import_desc(SP_GL_SEMAPHORE_BINARY, fd);
    unsigned before = gl_hook_all_calls();
    CHECK(caps_of().why_no_semaphore != NULL);
    CHECK_ERROR(sp_gl_semaphore_import(context, &desc, &made), SP_ERROR_NOT_SUPPORTED);
    CHECK(says("GL_EXT_semaphore"));
    desc.type = SP_GL_SEMAPHORE_TIMELINE;
    CHECK_ERROR(sp_gl_semaphore_import(context, &desc, &made), SP_ERROR_NOT_SUPPORTED);
    CHECK(made == marker);
    CHECK(census_is_open(fd));
    CHECK_EQUAL(gl_hook_all_calls(), before);
    close(fd);
    finish();
}

/* All of the double's extensions but one. */
static void add_extensions_without(const char *left_out)
{
    static const char *const all[] = {"GL_EXT_semaphore", "GL_EXT_semaphore_fd",
                                      "GL_EXT_semaphore_win32", "GL_NV_timeline_semaphore"};
    static const char *kept[COUNT_OF(all)];
    unsigned count = 0;
    for (unsigned i = 0; i < COUNT_OF(all); i++) {
        if (strcmp(all[i], left_out) != 0)
            kept[count++] = all[i];
    }
    gl_hook_add_gl_extensions(kept, count);
}

TEST_NEEDING(G3_each_missing_extension_is_named, WITH_DOUBLES)
{
    static const struct {
        sp_gl_semaphore_type type;
        sp_gl_handle_type handle_type;
        const char *missing;
    } table[] = {
        {SP_GL_SEMAPHORE_BINARY, SP_GL_HANDLE_OPAQUE_FD, "GL_EXT_semaphore"},
        {SP_GL_SEMAPHORE_BINARY, SP_GL_HANDLE_OPAQUE_FD, "GL_EXT_semaphore_fd"},
        {SP_GL_SEMAPHORE_BINARY, SP_GL_HANDLE_OPAQUE_WIN32, "GL_EXT_semaphore_win32"},
        {SP_GL_SEMAPHORE_D3D12_FENCE, SP_GL_HANDLE_D3D12_FENCE, "GL_EXT_semaphore_win32"},
        {SP_GL_SEMAPHORE_TIMELINE, SP_GL_HANDLE_OPAQUE_FD, "GL_NV_timeline_semaphore"},
    };
    int fd = gl_play_fd();
    for (unsigned i = 0; i < COUNT_OF(table); i++) {
        sp_gl_semaphore *made = NULL;
        open_gl();
        gl_play_install();
        add_extensions_without(table[i].missing);
        open_library();
        sp_gl_semaphore_import_desc import = import_desc(table[i].type, fd);
        import.handle_type = table[i].handle_type;
        import.handle = &gl;
        CHECK_ERROR(sp_gl_semaphore_import(context, &import, &made), SP_ERROR_NOT_SUPPORTED);
        CHECK(says(table[i].missing));
        CHECK(made == NULL);
        CHECK_EQUAL(gl_hook_calls(GL_HOOK_glGenSemaphoresEXT), 0);
        CHECK_EQUAL(gl_hook_calls(GL_HOOK_glCreateSemaphoresNV), 0);
        finish();
    }
    close(fd);
}

/* ---- Arguments ---- */

#define REFUSED(call) CHECK_ERROR(call, SP_ERROR_INVALID_ARGUMENT)

static gl_play_semaphore payloads[2] = {{0}, {.counting = true}};
static sp_gl_semaphore *binary, *timeline;
static sp_point marked, out, noop;

static void start_arguments(void)
{
    start_plays();
    binary = import_played(SP_GL_SEMAPHORE_BINARY, &payloads[0]);
    timeline = import_played(SP_GL_SEMAPHORE_TIMELINE, &payloads[1]);
    marked = test_marked_point();
    out = marked;
    noop = sp_point_noop();
}

/* Nothing was called, nothing was written. */
static void finish_arguments(unsigned calls_before)
{
    CHECK_EQUAL(gl_hook_all_calls(), calls_before);
    CHECK(test_same_point(&out, &marked));
    sp_gl_semaphore_unref(binary);
    sp_gl_semaphore_unref(timeline);
    finish();
}

TEST_NEEDING(arguments_of_contexts_and_fences, WITH_DOUBLES)
{
    sp_gl_caps caps = {.size = 1};
    sp_gl_sync_wrap_desc wrap = {.size = sizeof(wrap)};
    int fd = 77;
    start_arguments();
    unsigned before = gl_hook_all_calls();
    REFUSED(sp_gl_context_collect(NULL));
    REFUSED(sp_gl_context_caps(NULL, &caps));
    REFUSED(sp_gl_context_caps(context, NULL));
    REFUSED(sp_gl_context_caps(context, &caps));
    REFUSED(sp_gl_context_signal(NULL, 0, &out));
    REFUSED(sp_gl_context_signal(context, 0, NULL));
    REFUSED(sp_gl_context_signal(context, 2, &out));
    REFUSED(sp_gl_sync_wrap(NULL, &wrap, &out));
    REFUSED(sp_gl_sync_wrap(context, NULL, &out));
    REFUSED(sp_gl_sync_wrap(context, &wrap, NULL));
    REFUSED(sp_gl_sync_wrap(context, &wrap, &out));
    wrap.size = 1;
    wrap.sync = &gl;
    REFUSED(sp_gl_sync_wrap(context, &wrap, &out));
    REFUSED(sp_gl_sync_import_fd(NULL, 0, false, &out));
    REFUSED(sp_gl_sync_import_fd(context, 0, false, NULL));
    REFUSED(sp_gl_point_export_sync_fd(NULL, &fd));
    REFUSED(sp_gl_point_export_sync_fd(&noop, NULL));
    CHECK_EQUAL(fd, 77);
    finish_arguments(before);
}

TEST_NEEDING(arguments_of_imports, WITH_DOUBLES)
{
    sp_gl_semaphore *made = (sp_gl_semaphore *)(void *)&gl, *before_it = made;
    start_arguments();
    unsigned before = gl_hook_all_calls();
    const sp_gl_semaphore_import_desc import = import_desc(SP_GL_SEMAPHORE_BINARY, 1);
    sp_gl_semaphore_import_desc bad = import;
    REFUSED(sp_gl_semaphore_import(NULL, &import, &made));
    REFUSED(sp_gl_semaphore_import(context, NULL, &made));
    REFUSED(sp_gl_semaphore_import(context, &import, NULL));
    bad.size++;
    REFUSED(sp_gl_semaphore_import(context, &bad, &made));
    bad = import;
    bad.type = 0;
    REFUSED(sp_gl_semaphore_import(context, &bad, &made));
    bad.type = (sp_gl_semaphore_type)4;
    REFUSED(sp_gl_semaphore_import(context, &bad, &made));
    bad = import;
    bad.handle_type = 0;
    REFUSED(sp_gl_semaphore_import(context, &bad, &made));
    bad.handle_type = (sp_gl_handle_type)5;
    REFUSED(sp_gl_semaphore_import(context, &bad, &made));
    CHECK(made == before_it);
    finish_arguments(before);
}

TEST_NEEDING(arguments_of_semaphores, WITH_DOUBLES)
{
    const sp_gl_barriers bad_barriers[] = {
        {.size = 1},
        {.size = sizeof(sp_gl_barriers), .buffer_count = 1},
        {.size = sizeof(sp_gl_barriers), .texture_count = 1},
        {.size = sizeof(sp_gl_barriers), .texture_count = 1, .textures = (const uint32_t[]){1}},
    };
    start_arguments();
    unsigned before = gl_hook_all_calls();
    REFUSED(sp_gl_timeline_point(NULL, 1, &out));
    REFUSED(sp_gl_timeline_point(timeline, 1, NULL));
    REFUSED(sp_gl_timeline_point(timeline, UINT64_MAX, &out));
    REFUSED(sp_gl_timeline_point(binary, 1, &out));
    REFUSED(sp_gl_binary_point(NULL, 0, &out));
    REFUSED(sp_gl_binary_point(binary, 0, NULL));
    REFUSED(sp_gl_binary_point(binary, 1, &out));
    REFUSED(sp_gl_binary_point(timeline, 0, &out));
    REFUSED(sp_gl_context_signal_semaphore(NULL, binary, 0, NULL, &out));
    REFUSED(sp_gl_context_signal_semaphore(context, NULL, 0, NULL, &out));
    REFUSED(sp_gl_context_signal_semaphore(context, binary, 1, NULL, &out));
    REFUSED(sp_gl_context_signal_semaphore(context, timeline, UINT64_MAX, NULL, &out));
    REFUSED(sp_gl_context_wait(NULL, &noop, NULL));
    REFUSED(sp_gl_context_wait(context, NULL, NULL));
    for (unsigned i = 0; i < COUNT_OF(bad_barriers); i++) {
        REFUSED(sp_gl_context_wait(context, &noop, &bad_barriers[i]));
        REFUSED(sp_gl_context_signal_semaphore(context, binary, 0, &bad_barriers[i], &out));
    }
    finish_arguments(before);
}

TEST(nothing_is_harmless)
{
    noop = sp_point_noop();
    CHECK(sp_gl_sync_from_point(NULL) == NULL);
    CHECK(sp_gl_sync_from_point(&noop) == NULL);
    CHECK_EQUAL(sp_gl_semaphore_name_from_point(NULL), 0);
    CHECK_EQUAL(sp_gl_semaphore_name_from_point(&noop), 0);
    CHECK_EQUAL(sp_gl_semaphore_name(NULL), 0);
    CHECK(sp_gl_semaphore_ref(NULL) == NULL);
    sp_gl_semaphore_unref(NULL);
}

/* H7: types that do not go together. */
TEST_NEEDING(H7_types_and_handles_that_do_not_fit, WITH_DOUBLES)
{
    static const bool fits[4][5] = {
        [SP_GL_SEMAPHORE_BINARY] = {0, 1, 1, 1, 0},
        [SP_GL_SEMAPHORE_TIMELINE] = {0, 1, 1, 1, 0},
        [SP_GL_SEMAPHORE_D3D12_FENCE] = {0, 0, 0, 0, 1},
    };
    start_plays();
    gl_play_semaphore payload = {0};
    int fd = gl_play_fd();
    for (unsigned type = 1; type < 4; type++) {
        for (unsigned handle = 1; handle < 5; handle++) {
            sp_gl_semaphore *made = NULL;
            sp_gl_semaphore_import_desc desc = import_desc((sp_gl_semaphore_type)type, fd);
            desc.handle_type = (sp_gl_handle_type)handle;
            desc.fd = fd;
            desc.handle = &payload;
            gl_play_next_import(&payload);
            unsigned before = gl_hook_all_calls();
            sp_status status = sp_gl_semaphore_import(context, &desc, &made);
            CHECK_STATUS(status, fits[type][handle] ? SP_OK : SP_ERROR_INVALID_ARGUMENT);
            CHECK((made != NULL) == fits[type][handle]);
            CHECK(fits[type][handle] || gl_hook_all_calls() == before);
            CHECK(census_is_open(fd));
            sp_gl_semaphore_unref(made);
        }
    }
    close(fd);
    finish();
}
