/* SPDX-License-Identifier: MIT
 * Work for a GL context that takes about as long as is asked for, and when it was done. */
#ifndef SP_BENCH_RAW_GL_WORK_H
#define SP_BENCH_RAW_GL_WORK_H

#include "raw_gl.h"

#include <stdint.h>

#include <GL/gl.h>

#include <GL/glext.h>

/* As glext.h has them; those of GL 1 under names of ours. */
typedef void(APIENTRYP raw_gl_viewport)(GLint, GLint, GLsizei, GLsizei);
typedef void(APIENTRYP raw_gl_draw)(GLenum, GLint, GLsizei);

#define RAW_GL_WORK(X)                                                                             \
    X(PFNGLCREATESHADERPROC, CreateShader)                                                         \
    X(PFNGLSHADERSOURCEPROC, ShaderSource)                                                         \
    X(PFNGLCOMPILESHADERPROC, CompileShader)                                                       \
    X(PFNGLCREATEPROGRAMPROC, CreateProgram)                                                       \
    X(PFNGLATTACHSHADERPROC, AttachShader)                                                         \
    X(PFNGLLINKPROGRAMPROC, LinkProgram)                                                           \
    X(PFNGLGETPROGRAMIVPROC, GetProgramiv)                                                         \
    X(PFNGLUSEPROGRAMPROC, UseProgram)                                                             \
    X(PFNGLGETUNIFORMLOCATIONPROC, GetUniformLocation)                                             \
    X(PFNGLUNIFORM1IPROC, Uniform1i)                                                               \
    X(PFNGLGENVERTEXARRAYSPROC, GenVertexArrays)                                                   \
    X(PFNGLBINDVERTEXARRAYPROC, BindVertexArray)                                                   \
    X(PFNGLGENRENDERBUFFERSPROC, GenRenderbuffers)                                                 \
    X(PFNGLBINDRENDERBUFFERPROC, BindRenderbuffer)                                                 \
    X(PFNGLRENDERBUFFERSTORAGEPROC, RenderbufferStorage)                                           \
    X(PFNGLGENFRAMEBUFFERSPROC, GenFramebuffers)                                                   \
    X(PFNGLBINDFRAMEBUFFERPROC, BindFramebuffer)                                                   \
    X(PFNGLFRAMEBUFFERRENDERBUFFERPROC, FramebufferRenderbuffer)                                   \
    X(PFNGLCHECKFRAMEBUFFERSTATUSPROC, CheckFramebufferStatus)                                     \
    X(PFNGLGENQUERIESPROC, GenQueries)                                                             \
    X(PFNGLGETINTEGER64VPROC, GetInteger64v)                                                       \
    X(raw_gl_viewport, Viewport)                                                                   \
    X(raw_gl_draw, DrawArrays)

typedef struct raw_gl_work {
    const raw_gl *gl;
#define RAW_GL_WORK_MEMBER(type, member) type member;
    RAW_GL_WORK(RAW_GL_WORK_MEMBER)
#undef RAW_GL_WORK_MEMBER
    PFNGLQUERYCOUNTERPROC QueryCounter; /* NULL: no timer queries           */
    PFNGLGETQUERYOBJECTUI64VPROC GetQueryObjectui64v;
    GLint count; /* the uniform                                             */
    GLuint query;
    double draws_per_ns;
    int64_t clock_offset; /* our clock, less GL's                           */
} raw_gl_work;

/* NULL, or what the driver lacks. */
const char *raw_gl_work_open(raw_gl_work *work, const raw_gl *gl);

/* Submits, without a flush, work that takes about so long; then asks for the time. */
void raw_gl_work_submit(const raw_gl_work *work, uint64_t ns);
/* When the last submitted work was done, on the clock of bench_now_ns(). Waits for it. */
uint64_t raw_gl_work_end_ns(const raw_gl_work *work);
/* Can that be told? */
bool raw_gl_work_has_clock(const raw_gl_work *work);

#endif
