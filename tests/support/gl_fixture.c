/* SPDX-License-Identifier: MIT
 *
 * Opening drivers, displays and contexts.
 */
#include "gl_fixture.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const gl_options llvmpipe = {.driver = "llvmpipe"};
static const gl_options angle = {.driver = "angle"};
static const gl_options nvidia = {.driver = "nvidia"};

const test_target gl_targets[] = {
    {"llvmpipe", WITH_DOUBLES | WITH_DESKTOP_GL | WITHOUT_GL_SEMAPHORES, (void *)&llvmpipe},
    {"angle", WITH_GL_SEMAPHORES, (void *)&angle},
    {"nvidia", WITH_GL_SEMAPHORES | WITH_GL_TIMELINES | WITH_DESKTOP_GL, (void *)&nvidia},
};
const size_t gl_target_count = COUNT_OF(gl_targets);

static bool is(const gl_options *options, const char *driver)
{
    return strcmp(options->driver, driver) == 0;
}

const char *gl_vulkan_driver(const gl_options *options)
{
    return is(options, "nvidia") ? "nvidia" : "swiftshader";
}

/* ---- Libraries ---- */

static void *open_library(const char *name)
{
    void *library = dlopen(name, RTLD_NOW | RTLD_GLOBAL);
    if (!library)
        test_skip("no EGL: %s", dlerror());
    return library;
}

/* ANGLE opens its Vulkan loader by name, which is found if it is loaded already; that loader, and
 * the tests', find ANGLE's own SwiftShader by these variables. */
static void *open_angle(void)
{
    char path[1024];
    const char *folder = getenv("SP_TEST_ANGLE");
    if (!folder)
        test_skip("ANGLE is not here: SP_TEST_ANGLE is not set (scripts/fetch-angle, "
                  "scripts/driver-env)");
    snprintf(path, sizeof(path), "%s/vk_swiftshader_icd.json", folder);
    setenv("VK_ICD_FILENAMES", path, 1);
    setenv("SP_TEST_SWIFTSHADER_ICD", path, 1);
    snprintf(path, sizeof(path), "%s/libvulkan.so.1", folder);
    open_library(path);
    snprintf(path, sizeof(path), "%s/libEGL.so", folder);
    return open_library(path);
}

static void load_egl(gl_context *gl)
{
    void *library = is(&gl->options, "angle") ? open_angle() : open_library("libEGL.so.1");
    void *function = dlsym(library, "eglGetProcAddress");
    assert_non_null(function);
    memcpy(&gl->get_proc_address, &function, sizeof(function));
#define EFIND_GL(type, name) gl->egl.name = (type)gl->get_proc_address("egl" #name);
    GL_FIXTURE_EGL(EFIND_GL)
#undef EFIND_GL
}

/* ---- Displays ---- */

/* The first display of the device platform that this vendor makes. */
static EGLDisplay device_display(gl_context *gl, const char *wanted)
{
    EGLDeviceEXT devices[32];
    EGLint count = 0;
    PFNEGLQUERYDEVICESEXTPROC query =
        (PFNEGLQUERYDEVICESEXTPROC)gl->get_proc_address("eglQueryDevicesEXT");
    if (!query || !query(COUNT_OF(devices), devices, &count))
        return EGL_NO_DISPLAY;
    for (EGLint i = 0; i < count; i++) {
        EGLDisplay display =
            gl->egl.GetPlatformDisplayEXT(EGL_PLATFORM_DEVICE_EXT, devices[i], NULL);
        if (display == EGL_NO_DISPLAY || !gl->egl.Initialize(display, NULL, NULL))
            continue;
        const char *vendor = gl->egl.QueryString(display, EGL_VENDOR);
        if (vendor && strstr(vendor, wanted))
            return display;
    }
    return EGL_NO_DISPLAY;
}

/* Of EGL_ANGLE_platform_angle and its relatives, which Khronos' headers do not have. */
#define ANGLE_PLATFORM 0x3202
#define ANGLE_TYPE 0x3203
#define ANGLE_TYPE_VULKAN 0x3450
#define ANGLE_DEVICE_TYPE 0x3209
#define ANGLE_DEVICE_TYPE_SWIFTSHADER 0x3487

static EGLDisplay find_display(gl_context *gl)
{
    static const EGLint over_swiftshader[] = {ANGLE_TYPE, ANGLE_TYPE_VULKAN, ANGLE_DEVICE_TYPE,
                                              ANGLE_DEVICE_TYPE_SWIFTSHADER, EGL_NONE};
    if (is(&gl->options, "angle"))
        return gl->egl.GetPlatformDisplayEXT(ANGLE_PLATFORM, NULL, over_swiftshader);
    if (is(&gl->options, "nvidia"))
        return device_display(gl, "NVIDIA");
    setenv("LIBGL_ALWAYS_SOFTWARE", "1", 1);
    setenv("GALLIUM_DRIVER", "llvmpipe", 1);
    if (is(&gl->options, "llvmpipe-device"))
        return device_display(gl, "Mesa");
    return gl->egl.GetPlatformDisplayEXT(EGL_PLATFORM_SURFACELESS_MESA, NULL, NULL);
}

static bool is_es(const gl_context *gl)
{
    return is(&gl->options, "angle");
}

static void open_display(gl_context *gl)
{
    const EGLint wanted[] = {EGL_SURFACE_TYPE, EGL_PBUFFER_BIT, EGL_RENDERABLE_TYPE,
                             is_es(gl) ? EGL_OPENGL_ES3_BIT : EGL_OPENGL_BIT, EGL_NONE};
    EGLint count = 0;
    load_egl(gl);
    gl->display = find_display(gl);
    if (gl->display == EGL_NO_DISPLAY || !gl->egl.Initialize(gl->display, NULL, NULL))
        test_skip("%s has no EGL display here", gl->options.driver);
    gl->owns_display = true;
    if (!gl->egl.ChooseConfig(gl->display, wanted, &gl->config, 1, &count) || count < 1)
        test_skip("%s has no EGL config for GL", gl->options.driver);
}

/* ---- Contexts ---- */

static void create_context(gl_context *gl, EGLContext share)
{
    const EGLint version[] = {EGL_CONTEXT_MAJOR_VERSION, is_es(gl) ? 3 : 4,
                              EGL_CONTEXT_MINOR_VERSION, is_es(gl) ? 1 : 4, EGL_NONE};
    CHECK(gl->egl.BindAPI(is_es(gl) ? EGL_OPENGL_ES_API : EGL_OPENGL_API));
    gl->native = gl->egl.CreateContext(gl->display, gl->config, share, version);
    if (gl->native == EGL_NO_CONTEXT)
        test_skip("%s makes no context (0x%04x)", gl->options.driver, (unsigned)gl->egl.GetError());
}

static void load_gl(gl_context *gl)
{
#define FIND_GL(type, name) gl->call.name = (type)gl->get_proc_address("gl" #name);
    GL_FIXTURE_GL(FIND_GL)
#undef FIND_GL
    if (is_es(gl))
        gl->call.BufferStorage = (PFNGLBUFFERSTORAGEPROC)gl->get_proc_address("glBufferStorageEXT");
}

void gl_open(gl_context *gl, const gl_options *options)
{
    memset(gl, 0, sizeof(*gl));
    gl->options = *options;
    gl->loader = is_es(gl) ? SP_GL_LOADER_ANGLE : SP_GL_LOADER_EGL;
    open_display(gl);
    create_context(gl, EGL_NO_CONTEXT);
    gl_make_current(gl);
    load_gl(gl);
}

void gl_open_second(gl_context *gl, const gl_context *first, bool shares)
{
    *gl = *first;
    gl->owns_display = false;
    create_context(gl, shares ? first->native : EGL_NO_CONTEXT);
}

void gl_close(gl_context *gl)
{
    if (gl_is_current(gl))
        gl_make_none_current(gl);
    CHECK(gl->egl.DestroyContext(gl->display, gl->native));
    if (gl->owns_display)
        CHECK(gl->egl.Terminate(gl->display));
}

void gl_make_current(gl_context *gl)
{
    CHECK(gl->egl.BindAPI(is_es(gl) ? EGL_OPENGL_ES_API : EGL_OPENGL_API));
    if (!gl->egl.MakeCurrent(gl->display, EGL_NO_SURFACE, EGL_NO_SURFACE, gl->native))
        fail_msg("eglMakeCurrent: 0x%04x", (unsigned)gl->egl.GetError());
}

void gl_make_none_current(gl_context *gl)
{
    CHECK(gl->egl.MakeCurrent(gl->display, EGL_NO_SURFACE, EGL_NO_SURFACE, EGL_NO_CONTEXT));
}

bool gl_is_current(const gl_context *gl)
{
    return gl->egl.GetCurrentContext() == gl->native;
}

static PFNEGLGETPROCADDRESSPROC library_get_proc_address;

static sp_gl_function get_for_library(const char *name)
{
    return (sp_gl_function)library_get_proc_address(name);
}

sp_gl_context_desc gl_context_desc(const gl_context *gl, PFNEGLGETPROCADDRESSPROC hooked)
{
    library_get_proc_address = hooked ? hooked : gl->get_proc_address;
    return (sp_gl_context_desc){
        .size = sizeof(sp_gl_context_desc),
        .loader = gl->loader,
        .get_proc_address = get_for_library,
    };
}

/* ---- Helper ---- */

unsigned gl_helper_entered, gl_helper_wrong;
static unsigned helper_inside;
static EGLContext helper_before;

bool gl_helper_enter(void *user)
{
    gl_context *gl = user;
    if (__atomic_fetch_add(&helper_inside, 1, __ATOMIC_SEQ_CST) != 0)
        __atomic_fetch_add(&gl_helper_wrong, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&gl_helper_entered, 1, __ATOMIC_SEQ_CST);
    helper_before = gl->egl.GetCurrentContext();
    gl_make_current(gl);
    return true;
}

void gl_helper_leave(void *user)
{
    gl_context *gl = user;
    CHECK(gl->egl.MakeCurrent(gl->display, EGL_NO_SURFACE, EGL_NO_SURFACE, helper_before));
    __atomic_fetch_sub(&helper_inside, 1, __ATOMIC_SEQ_CST);
}

/* ---- Copies ---- */

#define UNWRITTEN 0xdeadbeefu
#define COPY_BYTES (GL_COPY_WORDS * sizeof(uint32_t))

static volatile uint32_t *make_buffer(gl_context *gl, GLuint name, bool writes)
{
    static uint32_t first[GL_COPY_WORDS];
    const GLbitfield how =
        (writes ? GL_MAP_WRITE_BIT : GL_MAP_READ_BIT) | GL_MAP_PERSISTENT_BIT | GL_MAP_COHERENT_BIT;
    for (unsigned i = 0; i < GL_COPY_WORDS; i++)
        first[i] = UNWRITTEN;
    if (!gl->call.BufferStorage)
        test_skip("%s has no persistent mappings", gl->options.driver);
    gl->call.BindBuffer(GL_COPY_READ_BUFFER, name);
    gl->call.BufferStorage(GL_COPY_READ_BUFFER, (GLsizeiptr)COPY_BYTES, first, how);
    volatile uint32_t *mapped =
        gl->call.MapBufferRange(GL_COPY_READ_BUFFER, 0, (GLsizeiptr)COPY_BYTES, how);
    assert_non_null((const void *)mapped);
    return mapped;
}

void gl_copy_init(gl_copy *copy, gl_context *gl)
{
    *copy = (gl_copy){.gl = gl};
    gl->call.GenBuffers(2, copy->buffers);
    copy->source = make_buffer(gl, copy->buffers[0], true);
    copy->target = make_buffer(gl, copy->buffers[1], false);
    gl->call.Finish();
    CHECK_EQUAL(gl->call.GetError(), GL_NO_ERROR);
}

void gl_copy_fini(gl_copy *copy)
{
    if (copy->fence)
        copy->gl->call.DeleteSync(copy->fence);
    copy->gl->call.DeleteBuffers(2, copy->buffers);
}

void gl_copy_produce(gl_copy *copy, uint32_t seed)
{
    for (unsigned i = 0; i < GL_COPY_WORDS; i++)
        copy->source[i] = seed + i;
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
}

void gl_copy_submit(gl_copy *copy)
{
    gl_functions *call = &copy->gl->call;
    call->BindBuffer(GL_COPY_READ_BUFFER, copy->buffers[0]);
    call->BindBuffer(GL_COPY_WRITE_BUFFER, copy->buffers[1]);
    call->CopyBufferSubData(GL_COPY_READ_BUFFER, GL_COPY_WRITE_BUFFER, 0, 0,
                            (GLsizeiptr)COPY_BYTES);
    copy->fence = call->FenceSync(GL_SYNC_GPU_COMMANDS_COMPLETE, 0);
    call->Flush();
    CHECK_EQUAL(call->GetError(), GL_NO_ERROR);
}

bool gl_copy_stays_unwritten(gl_copy *copy)
{
    for (unsigned look = 0; look < 5; look++) {
        test_sleep_ms(DELAY_MS / 2);
        if (copy->target[0] != UNWRITTEN || copy->target[GL_COPY_WORDS - 1] != UNWRITTEN)
            return false;
    }
    return true;
}

bool gl_copy_arrives(gl_copy *copy, uint32_t seed)
{
    GLenum result = copy->gl->call.ClientWaitSync(copy->fence, 0, PATIENCE_NS);
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (result == GL_TIMEOUT_EXPIRED && sp_now_ns() < end) {
        test_sleep_ms(1);
        result = copy->gl->call.ClientWaitSync(copy->fence, 0, 0);
    }
    if (result != GL_ALREADY_SIGNALED && result != GL_CONDITION_SATISFIED) {
        print_error("the copy did not run: 0x%04x\n", (unsigned)result);
        return false;
    }
    for (unsigned i = 0; i < GL_COPY_WORDS; i++) {
        if (copy->target[i] != seed + i) {
            print_error("word %u is %08x, not %08x\n", i, (unsigned)copy->target[i], seed + i);
            return false;
        }
    }
    return true;
}
