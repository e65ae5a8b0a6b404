/* SPDX-License-Identifier: MIT
 *
 * Looking the entry points up.
 */
#include "gl_internal.h"

#include <string.h>

/* ---- Looking up ---- */

typedef struct loader {
    const sp_gl_context_desc *desc;
    sp_gl_driver *driver;
    const char *missing; /* the first one that was not there */
} loader;

typedef struct function {
    const char *name;
    size_t offset;
} function;

#define FUNCTION(name, member)                                                                     \
    {                                                                                              \
        name, offsetof(sp_gl_driver, member)                                                       \
    }

/* All of the group or, if one is missing, none. */
static bool load_group(loader *load, const function *functions, size_t count, const char *suffix)
{
    sp_gl_function found[8];
    assert(count <= SP_ARRAY_LENGTH(found));
    for (size_t i = 0; i < count; i++) {
        char name[64];
        snprintf(name, sizeof(name), "%s%s", functions[i].name, suffix);
        found[i] = load->desc->get_proc_address(name);
        if (!found[i]) {
            load->missing = functions[i].name;
            return false;
        }
    }
    for (size_t i = 0; i < count; i++)
        memcpy((char *)load->driver + functions[i].offset, &found[i], sizeof(found[i]));
    return true;
}

#define LOAD(load, group, suffix) load_group(load, group, SP_ARRAY_LENGTH(group), suffix)

static const function core_functions[] = {
    FUNCTION("glGetError", get_error),
    FUNCTION("glGetString", get_string),
    FUNCTION("glGetIntegerv", get_integerv),
    FUNCTION("glFlush", flush),
};
static const function string_functions[] = {
    FUNCTION("glGetStringi", get_string_i),
};
static const function sync_functions[] = {
    FUNCTION("glFenceSync", fence_sync),   FUNCTION("glIsSync", is_sync),
    FUNCTION("glDeleteSync", delete_sync), FUNCTION("glClientWaitSync", client_wait_sync),
    FUNCTION("glWaitSync", wait_sync),
};
static const function semaphore_functions[] = {
    FUNCTION("glGenSemaphoresEXT", gen_semaphores),
    FUNCTION("glDeleteSemaphoresEXT", delete_semaphores),
    FUNCTION("glSemaphoreParameterui64vEXT", semaphore_parameter_ui64v),
    FUNCTION("glWaitSemaphoreEXT", wait_semaphore),
    FUNCTION("glSignalSemaphoreEXT", signal_semaphore),
};
static const function semaphore_fd_functions[] = {
    FUNCTION("glImportSemaphoreFdEXT", import_semaphore_fd),
};
static const function semaphore_win32_functions[] = {
    FUNCTION("glImportSemaphoreWin32HandleEXT", import_semaphore_win32),
};
static const function timeline_functions[] = {
    FUNCTION("glCreateSemaphoresNV", create_semaphores),
    FUNCTION("glSemaphoreParameterivNV", semaphore_parameter_iv),
};
static const function uuid_functions[] = {
    FUNCTION("glGetUnsignedBytevEXT", get_unsigned_bytev),
    FUNCTION("glGetUnsignedBytei_vEXT", get_unsigned_bytei_v),
};
static const function egl_functions[] = {
    FUNCTION("eglGetCurrentDisplay", egl_get_current_display),
    FUNCTION("eglQueryString", egl_query_string),
    FUNCTION("eglGetError", egl_get_error),
};
static const function egl_sync_functions[] = {
    FUNCTION("eglCreateSync", egl_create_sync),
    FUNCTION("eglDestroySync", egl_destroy_sync),
    FUNCTION("eglClientWaitSync", egl_client_wait_sync),
};
static const function egl_sync_khr_functions[] = {
    FUNCTION("eglCreateSync", egl_create_sync_khr),
    FUNCTION("eglDestroySync", egl_destroy_sync),
    FUNCTION("eglClientWaitSync", egl_client_wait_sync),
};
static const function egl_wait_functions[] = {
    FUNCTION("eglWaitSync", egl_wait_sync),
};
static const function native_fence_functions[] = {
    FUNCTION("eglDupNativeFenceFD", egl_dup_native_fence_fd),
};

/* ---- The current context ---- */

static bool uses_egl(sp_gl_loader which)
{
    return which == SP_GL_LOADER_EGL || which == SP_GL_LOADER_ANGLE ||
           which == SP_GL_LOADER_ANDROID;
}

static const char *current_function(sp_gl_loader which)
{
    switch (which) {
    case SP_GL_LOADER_GLX:
        return "glXGetCurrentContext";
    case SP_GL_LOADER_WGL:
        return "wglGetCurrentContext";
    case SP_GL_LOADER_CGL:
        return "CGLGetCurrentContext";
    default:
        return "eglGetCurrentContext";
    }
}

static sp_status fail_missing(const loader *load)
{
    return sp_fail(SP_ERROR_NOT_SUPPORTED,
                   "sp_gl_context_create: get_proc_address finds no %s; eglGetProcAddress of old "
                   "EGLs finds extensions only: look core functions up in the library, too",
                   load->missing);
}

static sp_status find_current(loader *load, void **native, void **display)
{
    const function current[] = {FUNCTION(current_function(load->desc->loader), get_current)};
    if (!LOAD(load, current, ""))
        return fail_missing(load);
    *native = load->driver->get_current();
    if (!*native) {
        return sp_fail(SP_ERROR_WRONG_CONTEXT,
                       "sp_gl_context_create: no GL context is current on this thread");
    }
    if (!uses_egl(load->desc->loader))
        return SP_OK;
    if (!LOAD(load, egl_functions, ""))
        return fail_missing(load);
    *display = load->driver->egl_get_current_display();
    return SP_OK;
}

/* ---- Capabilities ---- */

static bool load_gl_sync(loader *load, const sp_gl_strings *strings)
{
    if (strings->version >= (strings->es ? 30 : 32) || strings->arb_sync)
        return LOAD(load, sync_functions, "");
    return strings->apple_sync && LOAD(load, sync_functions, "APPLE");
}

static bool load_egl_sync(loader *load, const sp_gl_strings *strings)
{
    if (strings->egl_fence_sync)
        return LOAD(load, egl_sync_khr_functions, "KHR");
    return strings->egl_version >= 15 && LOAD(load, egl_sync_functions, "");
}

static void load_egl(loader *load, const sp_gl_strings *strings, sp_gl_caps *caps)
{
    caps->egl_sync = load_egl_sync(load, strings);
    if (!caps->egl_sync)
        return;
    if (strings->egl_wait_sync)
        caps->egl_wait_sync = LOAD(load, egl_wait_functions, "KHR");
    else if (strings->egl_version >= 15)
        caps->egl_wait_sync = LOAD(load, egl_wait_functions, "");
    caps->native_fence = strings->egl_native_fence && strings->egl_fence_sync &&
                         LOAD(load, native_fence_functions, "ANDROID");
}

static void load_semaphores(loader *load, const sp_gl_strings *strings, sp_gl_caps *caps)
{
    caps->has_uuid =
        (strings->semaphore || strings->memory_object) && LOAD(load, uuid_functions, "");
    caps->semaphore = strings->semaphore && LOAD(load, semaphore_functions, "");
    if (!caps->semaphore)
        return;
    caps->semaphore_fd = strings->semaphore_fd && LOAD(load, semaphore_fd_functions, "");
    caps->semaphore_win32 = strings->semaphore_win32 && LOAD(load, semaphore_win32_functions, "");
    caps->timeline_semaphore = strings->timeline_semaphore && LOAD(load, timeline_functions, "");
}

/* A display may have fence syncs that its contexts of one client API cannot insert: asks it for
 * one. */
static bool can_insert_egl_sync(const sp_gl_driver *driver, void *display)
{
    EGLSync sync = driver->egl_create_sync_khr
                       ? driver->egl_create_sync_khr(display, EGL_SYNC_FENCE, NULL)
                       : driver->egl_create_sync(display, EGL_SYNC_FENCE, NULL);
    if (sync == EGL_NO_SYNC)
        return false;
    driver->egl_destroy_sync(display, sync);
    return true;
}

static void note_renderer(sp_gl_driver *driver)
{
    const char *renderer = (const char *)driver->get_string(GL_RENDERER);
    driver->is_swiftshader = renderer && strstr(renderer, "SwiftShader");
    driver->closes_failed_fd = driver->is_swiftshader;
}

/* From here on the context can be asked. */
static sp_status load_core(loader *load)
{
    if (!LOAD(load, core_functions, ""))
        return fail_missing(load);
    LOAD(load, string_functions, ""); /* called only from version 3.0 on */
    GLenum forgotten = sp_gl_drain_errors(load->driver);
    if (forgotten != GL_NO_ERROR)
        sp_gl_log_forgotten(&load->desc->log, forgotten);
    return SP_OK;
}

static sp_status load_fences(loader *load, const sp_gl_strings *strings, void *display,
                             sp_gl_caps *caps)
{
    if (display)
        load_egl(load, strings, caps);
    if (caps->egl_sync && !can_insert_egl_sync(load->driver, display)) {
        caps->egl_sync = false;
        caps->egl_wait_sync = false;
        caps->native_fence = false;
    }
    caps->gl_sync = load_gl_sync(load, strings);
    if (caps->gl_sync || caps->egl_sync)
        return SP_OK;
    return sp_fail(SP_ERROR_NOT_SUPPORTED,
                   "sp_gl_context_create: no fence syncs: OpenGL 3.2, OpenGL ES 3.0, GL_ARB_sync, "
                   "GL_APPLE_sync or EGL_KHR_fence_sync is needed");
}

sp_status sp_gl_driver_load(sp_gl_driver *driver, const sp_gl_context_desc *desc, sp_gl_caps *caps,
                            void **native, void **display)
{
    loader load = {.desc = desc, .driver = driver};
    sp_gl_strings strings = {0};
    *driver = (sp_gl_driver){.loader = desc->loader};
    *caps = (sp_gl_caps){.size = sizeof(*caps)};
    *display = NULL;
    sp_status status = find_current(&load, native, display);
    if (status == SP_OK)
        status = load_core(&load);
    if (status != SP_OK)
        return status;
    sp_gl_strings_read_gl(driver, &strings);
    if (*display)
        sp_gl_strings_read_egl(driver, *display, &strings);
    status = load_fences(&load, &strings, *display, caps);
    if (status != SP_OK)
        return status;
    note_renderer(driver);
    load_semaphores(&load, &strings, caps);
    sp_gl_caps_read_uuid(driver, caps);
    caps->why_no_semaphore = sp_gl_why_no_semaphore(caps);
    return SP_OK;
}
