/* SPDX-License-Identifier: MIT
 * A GL context without a window, and EGL's own entry points, for the raw calls that ours are
 * measured against. */
#ifndef SP_BENCH_RAW_GL_H
#define SP_BENCH_RAW_GL_H

#include <stdbool.h>

#define EGL_NO_X11
#include <EGL/egl.h>

#include <EGL/eglext.h>

#include <syncpoint/opengl.h>

/* X(type, member): of EGL, then of GL. */
#define RAW_GL_EGL(X)                                                                              \
    X(PFNEGLQUERYSTRINGPROC, QueryString)                                                          \
    X(PFNEGLGETPLATFORMDISPLAYEXTPROC, GetPlatformDisplayEXT)                                      \
    X(PFNEGLINITIALIZEPROC, Initialize)                                                            \
    X(PFNEGLTERMINATEPROC, Terminate)                                                              \
    X(PFNEGLBINDAPIPROC, BindAPI)                                                                  \
    X(PFNEGLCHOOSECONFIGPROC, ChooseConfig)                                                        \
    X(PFNEGLCREATECONTEXTPROC, CreateContext)                                                      \
    X(PFNEGLDESTROYCONTEXTPROC, DestroyContext)                                                    \
    X(PFNEGLMAKECURRENTPROC, MakeCurrent)                                                          \
    X(PFNEGLCREATESYNCKHRPROC, CreateSyncKHR)                                                      \
    X(PFNEGLDESTROYSYNCKHRPROC, DestroySyncKHR)                                                    \
    X(PFNEGLCLIENTWAITSYNCKHRPROC, ClientWaitSyncKHR)

typedef void (*raw_gl_call)(void);
typedef const unsigned char *(*raw_gl_get_string)(unsigned name);

#define RAW_GL_GL(X)                                                                               \
    X(raw_gl_get_string, GetString)                                                                \
    X(raw_gl_call, Flush)                                                                          \
    X(raw_gl_call, Finish)

typedef struct raw_gl {
    PFNEGLGETPROCADDRESSPROC get_proc_address;
#define RAW_GL_MEMBER(type, member) type member;
    RAW_GL_EGL(RAW_GL_MEMBER)
    RAW_GL_GL(RAW_GL_MEMBER)
#undef RAW_GL_MEMBER
    sp_gl_loader loader;
    EGLDisplay display;
    EGLContext context; /* current on the thread that opened it                     */
} raw_gl;

/* Where contexts may come from. */
typedef enum raw_gl_source {
    RAW_GL_SURFACELESS, /* of Mesa, with its software driver       */
    RAW_GL_ANGLE,       /* from the folder that SP_TEST_ANGLE names */
    RAW_GL_NVIDIA,      /* the first device of NVIDIA's             */
    RAW_GL_SOURCE_COUNT
} raw_gl_source;

const char *raw_gl_source_name(raw_gl_source source);

/* NULL, or why there is none here. */
const char *raw_gl_open(raw_gl *gl, raw_gl_source source);
void raw_gl_close(raw_gl *gl);

#endif
