/* SPDX-License-Identifier: MIT
 *
 * GL contexts of the test's own, on a driver picked by name, with the raw calls that tests need
 * beside the library's. Everything here checks for itself and ends the case when the driver refuses.
 */
#ifndef TESTS_SUPPORT_GL_FIXTURE_H
#define TESTS_SUPPORT_GL_FIXTURE_H

#include "test.h"

#define EGL_NO_X11
#include <GL/gl.h>

#include <GL/glext.h>

#include <EGL/egl.h>

#include <EGL/eglext.h>

#include <syncpoint/opengl.h>

/* What a target offers: bits of test_target.features. */
enum {
    WITH_DOUBLES = 1 << 0,       /* runs the cases whose semaphores or fences are played          */
    WITH_GL_SEMAPHORES = 1 << 1, /* GL_EXT_semaphore_fd, with a Vulkan device for the other side  */
    WITH_GL_TIMELINES = 1 << 2,  /* GL_NV_timeline_semaphore as well                              */
    WITH_DESKTOP_GL = 1 << 3,
    WITHOUT_GL_SEMAPHORES = 1 << 4
};

typedef struct gl_options {
    const char *driver; /* a target's name; "llvmpipe-device": the same on another display */
} gl_options;

extern const test_target gl_targets[];
extern const size_t gl_target_count;

#define GL_FIXTURE_EGL(X)                                                                          \
    X(PFNEGLQUERYSTRINGPROC, QueryString)                                                          \
    X(PFNEGLGETPLATFORMDISPLAYEXTPROC, GetPlatformDisplayEXT)                                      \
    X(PFNEGLINITIALIZEPROC, Initialize)                                                            \
    X(PFNEGLTERMINATEPROC, Terminate)                                                              \
    X(PFNEGLBINDAPIPROC, BindAPI)                                                                  \
    X(PFNEGLCHOOSECONFIGPROC, ChooseConfig)                                                        \
    X(PFNEGLCREATECONTEXTPROC, CreateContext)                                                      \
    X(PFNEGLDESTROYCONTEXTPROC, DestroyContext)                                                    \
    X(PFNEGLMAKECURRENTPROC, MakeCurrent)                                                          \
    X(PFNEGLGETCURRENTCONTEXTPROC, GetCurrentContext)                                              \
    X(PFNEGLGETERRORPROC, GetError)                                                                \
    X(PFNEGLCREATESYNCKHRPROC, CreateSyncKHR)                                                      \
    X(PFNEGLDESTROYSYNCKHRPROC, DestroySyncKHR)                                                    \
    X(PFNEGLCLIENTWAITSYNCKHRPROC, ClientWaitSyncKHR)

typedef const GLubyte *(APIENTRYP gl_get_string)(GLenum name);
typedef GLenum(APIENTRYP gl_get_error)(void);
typedef void(APIENTRYP gl_flush)(void);

#define GL_FIXTURE_GL(X)                                                                           \
    X(gl_get_string, GetString)                                                                    \
    X(gl_get_error, GetError)                                                                      \
    X(gl_flush, Flush)                                                                             \
    X(gl_flush, Finish)                                                                            \
    X(PFNGLFENCESYNCPROC, FenceSync)                                                               \
    X(PFNGLISSYNCPROC, IsSync)                                                                     \
    X(PFNGLDELETESYNCPROC, DeleteSync)                                                             \
    X(PFNGLCLIENTWAITSYNCPROC, ClientWaitSync)                                                     \
    X(PFNGLGENBUFFERSPROC, GenBuffers)                                                             \
    X(PFNGLDELETEBUFFERSPROC, DeleteBuffers)                                                       \
    X(PFNGLBINDBUFFERPROC, BindBuffer)                                                             \
    X(PFNGLMAPBUFFERRANGEPROC, MapBufferRange)                                                     \
    X(PFNGLUNMAPBUFFERPROC, UnmapBuffer)                                                           \
    X(PFNGLCOPYBUFFERSUBDATAPROC, CopyBufferSubData)                                               \
    X(PFNGLBUFFERSTORAGEPROC, BufferStorage)

typedef struct gl_functions {
#define GL_MEMBER(type, name) type name;
    GL_FIXTURE_GL(GL_MEMBER)
#undef GL_MEMBER
} gl_functions;

typedef struct egl_functions {
#define EGL_MEMBER(type, name) type name;
    GL_FIXTURE_EGL(EGL_MEMBER)
#undef EGL_MEMBER
} egl_functions;

typedef struct gl_context {
    gl_options options;
    PFNEGLGETPROCADDRESSPROC get_proc_address;
    sp_gl_loader loader;
    EGLDisplay display;
    EGLConfig config;
    EGLContext native;
    bool owns_display;
    egl_functions egl;
    gl_functions call;
} gl_context;

/* Opens a display and a context, and makes it current. Skips the case if the driver is not here. */
void gl_open(gl_context *gl, const gl_options *options);
/* A further context on the same display, not made current: `shares` objects with it, or not. */
void gl_open_second(gl_context *gl, const gl_context *first, bool shares);
void gl_close(gl_context *gl);

void gl_make_current(gl_context *gl);
void gl_make_none_current(gl_context *gl);
bool gl_is_current(const gl_context *gl);

/* What the library is given: `hooked` is NULL, or stands in for the loader's function. */
sp_gl_context_desc gl_context_desc(const gl_context *gl, PFNEGLGETPROCADDRESSPROC hooked);

/* A helper: `user` is the gl_context that enter makes current. */
bool gl_helper_enter(void *user);
void gl_helper_leave(void *user);
/* How often enter was called, and how often by two threads at once, or nested. */
extern unsigned gl_helper_entered, gl_helper_wrong;

/* Where the Vulkan driver of the same device is: what vk_options.driver is to be. */
const char *gl_vulkan_driver(const gl_options *options);

/* ---- Work whose result shows whether it ran, and after what ---- */

/* A copy from one buffer to another, both mapped for good. The producer fills the source on the
 * host; a copy that ran too early has copied something else. */
typedef struct gl_copy {
    gl_context *gl;
    GLuint buffers[2];
    volatile uint32_t *source;
    volatile uint32_t *target;
    GLsync fence;
} gl_copy;
#define GL_COPY_WORDS 4096u
void gl_copy_init(gl_copy *copy, gl_context *gl);
void gl_copy_fini(gl_copy *copy);
void gl_copy_produce(gl_copy *copy, uint32_t seed);
void gl_copy_submit(gl_copy *copy);
#define CHECK_GL_UNWRITTEN(copy) CHECK(gl_copy_stays_unwritten(copy))
bool gl_copy_stays_unwritten(gl_copy *copy);
bool gl_copy_arrives(gl_copy *copy, uint32_t seed);

#endif
