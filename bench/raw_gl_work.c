/* SPDX-License-Identifier: MIT */
#include "raw_gl_work.h"

#include "bench.h"

#include <stdio.h>
#include <string.h>

#define SIDE 8      /* of what is drawn, in pixels */
#define ROUNDS 2000 /* of the loop in one draw: a driver ends loops after 65535 */
#define MATCHES 50
#define CLOCK_ERROR_NS 5000 /* the most that the two clocks may be apart */

static const char vertex_text[] = "void main() {\n"
                                  "  gl_Position = vec4(gl_VertexID == 1 ? 3.0 : -1.0,\n"
                                  "                     gl_VertexID == 2 ? 3.0 : -1.0, 0.0, 1.0);\n"
                                  "}\n";
static const char fragment_text[] = "uniform int count;\n"
                                    "out vec4 color;\n"
                                    "void main() {\n"
                                    "  float x = gl_FragCoord.x;\n"
                                    "  for (int i = 0; i < count; i++)\n"
                                    "    x = fract(x * 1.37 + 0.11);\n"
                                    "  color = vec4(x);\n"
                                    "}\n";

/* ---- Opening ---- */

static void load(raw_gl_work *work, const raw_gl *gl)
{
#define FIND(type, member) work->member = (type)gl->get_proc_address("gl" #member);
    RAW_GL_WORK(FIND)
#undef FIND
    const char *extensions = (const char *)gl->GetString(GL_EXTENSIONS);
    bool es = gl->loader == SP_GL_LOADER_ANGLE;
    if (es && (!extensions || !strstr(extensions, "GL_EXT_disjoint_timer_query")))
        return;
    work->QueryCounter =
        (PFNGLQUERYCOUNTERPROC)gl->get_proc_address(es ? "glQueryCounterEXT" : "glQueryCounter");
    work->GetQueryObjectui64v = (PFNGLGETQUERYOBJECTUI64VPROC)gl->get_proc_address(
        es ? "glGetQueryObjectui64vEXT" : "glGetQueryObjectui64v");
}

static void attach(const raw_gl_work *work, GLuint program, GLenum type, const char *text)
{
    bool es = work->gl->loader == SP_GL_LOADER_ANGLE;
    const char *parts[] = {es ? "#version 300 es\nprecision highp float;\nprecision highp int;\n"
                              : "#version 150\n",
                           text};
    GLuint shader = work->CreateShader(type);
    work->ShaderSource(shader, 2, parts, NULL);
    work->CompileShader(shader);
    work->AttachShader(program, shader);
}

static bool make_program(raw_gl_work *work)
{
    GLuint program = work->CreateProgram(), array;
    GLint linked = 0;
    attach(work, program, GL_VERTEX_SHADER, vertex_text);
    attach(work, program, GL_FRAGMENT_SHADER, fragment_text);
    work->LinkProgram(program);
    work->GetProgramiv(program, GL_LINK_STATUS, &linked);
    work->UseProgram(program);
    work->count = work->GetUniformLocation(program, "count");
    work->GenVertexArrays(1, &array);
    work->BindVertexArray(array);
    return linked;
}

static bool make_target(const raw_gl_work *work)
{
    GLuint buffer, target;
    work->GenRenderbuffers(1, &buffer);
    work->BindRenderbuffer(GL_RENDERBUFFER, buffer);
    work->RenderbufferStorage(GL_RENDERBUFFER, GL_RGBA8, SIDE, SIDE);
    work->GenFramebuffers(1, &target);
    work->BindFramebuffer(GL_FRAMEBUFFER, target);
    work->FramebufferRenderbuffer(GL_FRAMEBUFFER, GL_COLOR_ATTACHMENT0, GL_RENDERBUFFER, buffer);
    work->Viewport(0, 0, SIDE, SIDE);
    return work->CheckFramebufferStatus(GL_FRAMEBUFFER) == GL_FRAMEBUFFER_COMPLETE;
}

/* ---- Time ---- */

static void draw(const raw_gl_work *work, double draws)
{
    size_t whole = (size_t)draws;
    work->Uniform1i(work->count, ROUNDS);
    for (size_t i = 0; i < whole; i++)
        work->DrawArrays(GL_TRIANGLES, 0, 3);
    work->Uniform1i(work->count, (GLint)((draws - (double)whole) * ROUNDS));
    work->DrawArrays(GL_TRIANGLES, 0, 3);
}

static double time_draws(const raw_gl_work *work, double draws)
{
    uint64_t start = bench_now_ns();
    draw(work, draws);
    work->gl->Finish();
    return (double)(bench_now_ns() - start);
}

/* What is the same for any number of draws does not count. */
static void calibrate(raw_gl_work *work)
{
    double one = 0, all = 0, draws = 1;
    for (unsigned i = 0; i < 5; i++)
        one = time_draws(work, 1);
    while (draws < 1e5 && all < 5e6) {
        draws *= 2;
        all = time_draws(work, draws);
    }
    work->draws_per_ns = (draws - 1) / (all > one ? all - one : all);
}

/* Reads both clocks, and keeps the pair that was read in the shortest time. */
static bool match_clocks(raw_gl_work *work)
{
    uint64_t shortest = UINT64_MAX;
    for (unsigned i = 0; i < MATCHES; i++) {
        GLint64 gl_ns = 0;
        uint64_t start = bench_now_ns();
        work->GetInteger64v(GL_TIMESTAMP, &gl_ns);
        uint64_t took = bench_now_ns() - start;
        if (gl_ns <= 0 || took >= shortest)
            continue;
        shortest = took;
        work->clock_offset = (int64_t)(start + took / 2) - gl_ns;
    }
    return shortest < 2 * CLOCK_ERROR_NS;
}

const char *raw_gl_work_open(raw_gl_work *work, const raw_gl *gl)
{
    memset(work, 0, sizeof *work);
    work->gl = gl;
    load(work, gl);
    if (!make_program(work))
        return "its shader does not link";
    if (!make_target(work))
        return "there is nothing to draw to";
    calibrate(work);
    if (work->QueryCounter && match_clocks(work))
        work->GenQueries(1, &work->query);
    return NULL;
}

void raw_gl_work_submit(const raw_gl_work *work, uint64_t ns)
{
    draw(work, (double)ns * work->draws_per_ns);
    if (work->query)
        work->QueryCounter(work->query, GL_TIMESTAMP);
}

uint64_t raw_gl_work_end_ns(const raw_gl_work *work)
{
    GLuint64 gl_ns = 0;
    work->GetQueryObjectui64v(work->query, GL_QUERY_RESULT, &gl_ns);
    return (uint64_t)((int64_t)gl_ns + work->clock_offset);
}

bool raw_gl_work_has_clock(const raw_gl_work *work)
{
    return work->query != 0;
}
