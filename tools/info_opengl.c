/* SPDX-License-Identifier: MIT
 * The OpenGL section of `syncpoint info`: what EGL gives without a window. */
#include "info_simple.h"

#define EGL_NO_X11
#include <GL/gl.h>

#include <EGL/egl.h>

#include <dlfcn.h>
#include <EGL/eglext.h>
#include <syncpoint/opengl.h>

static PFNEGLGETPROCADDRESSPROC get_proc_address;

#define EGL(type, name) ((type)get_proc_address(name))

static bool load(void)
{
    void *library = dlopen("libEGL.so.1", RTLD_NOW | RTLD_LOCAL);
    void *symbol = library ? dlsym(library, "eglGetProcAddress") : NULL;
    *(void **)(void *)&get_proc_address = symbol;
    return symbol != NULL;
}

/* Of the first device that EGL names, or Mesa's without any. */
static EGLDisplay open_display(void)
{
    PFNEGLGETPLATFORMDISPLAYEXTPROC get =
        EGL(PFNEGLGETPLATFORMDISPLAYEXTPROC, "eglGetPlatformDisplayEXT");
    PFNEGLQUERYDEVICESEXTPROC query = EGL(PFNEGLQUERYDEVICESEXTPROC, "eglQueryDevicesEXT");
    PFNEGLINITIALIZEPROC initialize = EGL(PFNEGLINITIALIZEPROC, "eglInitialize");
    EGLDeviceEXT devices[8];
    EGLint count = 0;
    if (!get || !initialize)
        return EGL_NO_DISPLAY;
    if (query && !query(8, devices, &count))
        count = 0;
    for (EGLint i = 0; i < count; i++) {
        EGLDisplay display = get(EGL_PLATFORM_DEVICE_EXT, devices[i], NULL);
        if (display != EGL_NO_DISPLAY && initialize(display, NULL, NULL))
            return display;
    }
    EGLDisplay display = get(EGL_PLATFORM_SURFACELESS_MESA, NULL, NULL);
    return display != EGL_NO_DISPLAY && initialize(display, NULL, NULL) ? display : EGL_NO_DISPLAY;
}

static bool make_current(EGLDisplay display)
{
    PFNEGLBINDAPIPROC bind = EGL(PFNEGLBINDAPIPROC, "eglBindAPI");
    PFNEGLCREATECONTEXTPROC create = EGL(PFNEGLCREATECONTEXTPROC, "eglCreateContext");
    PFNEGLMAKECURRENTPROC current = EGL(PFNEGLMAKECURRENTPROC, "eglMakeCurrent");
    const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_NONE};
    const EGLenum apis[] = {EGL_OPENGL_API, EGL_OPENGL_ES_API};
    for (int i = 0; i < 2; i++) {
        if (!bind(apis[i]))
            continue;
        EGLContext context = create(display, EGL_NO_CONFIG_KHR, EGL_NO_CONTEXT, version);
        if (context != EGL_NO_CONTEXT && current(display, EGL_NO_SURFACE, EGL_NO_SURFACE, context))
            return true;
    }
    return false;
}

static void prove_fences(json_t *device, sp_gl_context *context)
{
    sp_point point = {0};
    sp_status status = sp_gl_context_signal(context, 0, &point);
    info_proven(device, "signal from a context", status);
    info_proven(device, "wait on a context",
                status == SP_OK ? sp_gl_context_wait(context, &point, NULL) : status);
    info_proven(device, "wait on the host", status == SP_OK ? sp_wait(&point) : status);
    sp_point_unref(&point);
}

static void ask_context(json_t *device, sp_gl_context *context)
{
    sp_gl_caps caps = {.size = sizeof caps};
    if (sp_gl_context_caps(context, &caps) != SP_OK)
        return;
    info_uuid(device, caps.has_uuid, caps.device_uuid);
    info_reported(device, "EGLSync", caps.egl_sync, "the display has no fence syncs");
    info_reported(device, "import, export sync fd", caps.native_fence,
                  "no EGL_ANDROID_native_fence_sync");
    info_reported(device, "import opaque fd", caps.semaphore_fd, caps.why_no_semaphore);
    info_reported(device, "timeline semaphores", caps.timeline_semaphore,
                  "no GL_NV_timeline_semaphore");
}

static void probe(json_t *devices)
{
    typedef const GLubyte *(*get_string_function)(GLenum name);
    EGLDisplay display = load() ? open_display() : EGL_NO_DISPLAY;
    if (display == EGL_NO_DISPLAY || !make_current(display))
        return;
    get_string_function get_string = EGL(get_string_function, "glGetString");
    json_t *device = info_device(devices, (const char *)get_string(GL_RENDERER));
    info_about(device, "driver", "%s", (const char *)get_string(GL_VERSION));
    sp_gl_context *context = NULL;
    const sp_gl_context_desc desc = {
        .size = sizeof desc, .loader = SP_GL_LOADER_EGL, .get_proc_address = get_proc_address};
    if (sp_gl_context_create(&desc, &context) != SP_OK) {
        info_about(device, "not usable", "%s", sp_last_error()->message);
        return;
    }
    ask_context(device, context);
    prove_fences(device, context);
}

static const info_simple simple = {.title = "OpenGL", .probe = probe};

static json_t *gather(bool verbose)
{
    return info_simple_gather(&simple, verbose);
}

static void print(const json_t *section)
{
    info_simple_print(&simple, section);
}

const info_section info_opengl = {.backend = "opengl", .gather = gather, .print = print};
