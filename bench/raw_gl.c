/* SPDX-License-Identifier: MIT */
#include "raw_gl.h"

#include "bench.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Libraries ---- */

static void *open_library(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_GLOBAL);
}

/* ANGLE opens its Vulkan loader by name, which is found if it is loaded already. */
static void *open_angle(void)
{
    char path[1024];
    const char *folder = getenv("SP_TEST_ANGLE");
    if (!folder)
        return NULL;
    snprintf(path, sizeof path, "%s/vk_swiftshader_icd.json", folder);
    setenv("VK_ICD_FILENAMES", path, 1);
    snprintf(path, sizeof path, "%s/libvulkan.so.1", folder);
    open_library(path);
    snprintf(path, sizeof path, "%s/libEGL.so", folder);
    return open_library(path);
}

static bool load(raw_gl *gl, void *library)
{
    void *function = library ? dlsym(library, "eglGetProcAddress") : NULL;
    if (!function)
        return false;
    memcpy(&gl->get_proc_address, &function, sizeof function);
#define FIND_EGL(type, member) gl->member = (type)gl->get_proc_address("egl" #member);
#define FIND_GL(type, member) gl->member = (type)gl->get_proc_address("gl" #member);
    RAW_GL_EGL(FIND_EGL)
    RAW_GL_GL(FIND_GL)
#undef FIND_EGL
#undef FIND_GL
    return gl->GetPlatformDisplayEXT != NULL;
}

/* ---- Displays ---- */

static EGLDisplay device_display(const raw_gl *gl, const char *vendor)
{
    EGLDeviceEXT devices[32];
    EGLint count = 0;
    PFNEGLQUERYDEVICESEXTPROC query =
        (PFNEGLQUERYDEVICESEXTPROC)gl->get_proc_address("eglQueryDevicesEXT");
    if (!query || !query(sizeof devices / sizeof *devices, devices, &count))
        return EGL_NO_DISPLAY;
    for (EGLint i = 0; i < count; i++) {
        EGLDisplay display = gl->GetPlatformDisplayEXT(EGL_PLATFORM_DEVICE_EXT, devices[i], NULL);
        if (display == EGL_NO_DISPLAY || !gl->Initialize(display, NULL, NULL))
            continue;
        const char *name = gl->QueryString(display, EGL_VENDOR);
        if (name && strstr(name, vendor))
            return display;
    }
    return EGL_NO_DISPLAY;
}

/* Of EGL_ANGLE_platform_angle and its relatives, which Khronos' headers do not have. */
static EGLDisplay angle_display(const raw_gl *gl)
{
    enum { PLATFORM = 0x3202, TYPE = 0x3203, VULKAN = 0x3450, DEVICE = 0x3209, SOFTWARE = 0x3487 };
    static const EGLint over_swiftshader[] = {TYPE, VULKAN, DEVICE, SOFTWARE, EGL_NONE};
    return gl->GetPlatformDisplayEXT(PLATFORM, NULL, over_swiftshader);
}

/* One thread draws, so that a core is left for each of the two that are measured. */
static EGLDisplay mesa_display(const raw_gl *gl)
{
    setenv("LIBGL_ALWAYS_SOFTWARE", "1", 1);
    setenv("GALLIUM_DRIVER", "llvmpipe", 1);
    setenv("LP_NUM_THREADS", "1", 0);
    return gl->GetPlatformDisplayEXT(EGL_PLATFORM_SURFACELESS_MESA, NULL, NULL);
}

/* ---- Contexts ---- */

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    const char *at = text ? strstr(text, word) : NULL;
    return at && (at == text || at[-1] == ' ') && (at[length] == ' ' || at[length] == '\0');
}

static bool create_context(raw_gl *gl, bool es)
{
    const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE,
                             es ? EGL_OPENGL_ES3_BIT : EGL_OPENGL_BIT, EGL_NONE};
    const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, 3, EGL_CONTEXT_MINOR_VERSION, es ? 0 : 3,
                              EGL_NONE};
    EGLConfig config;
    EGLint count = 0;
    if (!gl->BindAPI(es ? EGL_OPENGL_ES_API : EGL_OPENGL_API) ||
        !gl->ChooseConfig(gl->display, wanted, &config, 1, &count) || count < 1)
        return false;
    gl->context = gl->CreateContext(gl->display, config, EGL_NO_CONTEXT, version);
    return gl->context != EGL_NO_CONTEXT &&
           gl->MakeCurrent(gl->display, EGL_NO_SURFACE, EGL_NO_SURFACE, gl->context);
}

const char *raw_gl_source_name(raw_gl_source source)
{
    static const char *const names[RAW_GL_SOURCE_COUNT] = {
        "OpenGL of Mesa, without a window", "OpenGL ES of ANGLE", "OpenGL of NVIDIA"};
    return names[source];
}

const char *raw_gl_open(raw_gl *gl, raw_gl_source source)
{
    bool es = source == RAW_GL_ANGLE;
    memset(gl, 0, sizeof *gl);
    if (!load(gl, es ? open_angle() : open_library("libEGL.so.1")))
        return es ? "SP_TEST_ANGLE names no folder of it" : "no libEGL.so.1";
    gl->loader = es ? SP_GL_LOADER_ANGLE : SP_GL_LOADER_EGL;
    gl->display = es                        ? angle_display(gl)
                  : source == RAW_GL_NVIDIA ? device_display(gl, "NVIDIA")
                                            : mesa_display(gl);
    if (gl->display == EGL_NO_DISPLAY || !gl->Initialize(gl->display, NULL, NULL))
        return "no EGL display";
    const char *extensions = gl->QueryString(gl->display, EGL_EXTENSIONS);
    if (!has_word(extensions, "EGL_KHR_fence_sync"))
        return "no EGL_KHR_fence_sync";
    return create_context(gl, es) ? NULL : "no context without a surface";
}

void raw_gl_close(raw_gl *gl)
{
    gl->MakeCurrent(gl->display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT);
    gl->DestroyContext(gl->display, gl->context);
    gl->Terminate(gl->display);
}
