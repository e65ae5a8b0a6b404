/* SPDX-License-Identifier: MIT
 * OpenGL: EGL's fences as points.
 *
 * How late a wait is: what passes between the time that the driver has written for the end of the
 * work (a timestamp query) and the return of the wait. */
#include "bench.h"
#include "raw_gl.h"
#include "raw_gl_work.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FEWER 20 /* batches of what flushes, or needs work to wait for: they take long */
#define PENDING_OPS 200
#define PENDING_NS UINT64_C(3000000)

typedef struct gl_bench {
    const bench *b;
    raw_gl raw;
    raw_gl_work work;
    sp_gl_context *context;
    EGLSyncKHR sync;
    sp_point point;
    sp_status expected; /* of a poll                          */
    bool surprised;     /* a poll, or a raw probe, said another thing */
} gl_bench;

static void check(sp_status status, const char *what)
{
    bench_check(status == SP_OK, what);
}

static void say(const gl_bench *g, const char *what, const char *why)
{
    fprintf(stderr, "syncpoint-bench: %s: %s: %s\n", g->b->driver, what, why);
}

/* ---- Making a point ---- */

static void signal_ours(void *argument, size_t ops)
{
    const gl_bench *g = argument;
    sp_status wrong = SP_OK;
    for (size_t i = 0; i < ops; i++) {
        sp_point point = {0};
        wrong |= sp_gl_context_signal(g->context, 0, &point);
        sp_point_unref(&point);
    }
    check(wrong, "sp_gl_context_signal");
}

static void signal_raw(void *argument, size_t ops)
{
    const gl_bench *g = argument;
    bool ok = true;
    for (size_t i = 0; i < ops; i++) {
        EGLSyncKHR sync = g->raw.CreateSyncKHR(g->raw.display, EGL_SYNC_FENCE_KHR, NULL);
        g->raw.Flush();
        ok = g->raw.DestroySyncKHR(g->raw.display, sync) && ok;
    }
    bench_check(ok, "eglCreateSyncKHR");
}

static void copy_release(void *argument, size_t ops)
{
    const gl_bench *g = argument;
    bench_copies(&g->point, ops);
}

/* ---- Probes ---- */

static void probe_ours(void *argument, size_t ops)
{
    gl_bench *g = argument;
    g->surprised |= !bench_polls(&g->point, g->expected, ops);
}

static void probe_raw(void *argument, size_t ops)
{
    gl_bench *g = argument;
    const EGLint expected =
        g->expected == SP_OK ? EGL_CONDITION_SATISFIED_KHR : EGL_TIMEOUT_EXPIRED_KHR;
    EGLint wrong = 0;
    for (size_t i = 0; i < ops; i++)
        wrong |= g->raw.ClientWaitSyncKHR(g->raw.display, g->sync, 0, 0) ^ expected;
    g->surprised |= wrong != 0;
}

/* ---- Rows of nanoseconds ---- */

/* The point, and a fence of the raw calls, for all work so far. */
static void insert_both(gl_bench *g)
{
    check(sp_gl_context_signal(g->context, 0, &g->point), "sp_gl_context_signal");
    g->sync = g->raw.CreateSyncKHR(g->raw.display, EGL_SYNC_FENCE_KHR, NULL);
    bench_check(g->sync != EGL_NO_SYNC_KHR, "eglCreateSyncKHR");
    g->raw.Flush();
}

static void release_both(gl_bench *g)
{
    g->raw.Finish();
    sp_point_unref(&g->point);
    bench_check(g->raw.DestroySyncKHR(g->raw.display, g->sync), "eglDestroySyncKHR");
}

static void measure_reached(gl_bench *g)
{
    insert_both(g);
    g->raw.Finish();
    check(sp_wait(&g->point), "sp_wait");
    g->expected = SP_OK;
    if (bench_wants(g->b, "gl.copy_release"))
        bench_batches(g->b, "gl.copy_release", copy_release, NULL, g);
    if (bench_wants(g->b, "gl.probe_reached"))
        bench_batches(g->b, "gl.probe_reached", probe_ours, probe_raw, g);
    bench_check(!g->surprised, "what is reached does not say so");
    release_both(g);
}

static double time_probes(gl_bench *g, bench_batch probe)
{
    uint64_t start = bench_now_ns();
    probe(g, PENDING_OPS);
    return (double)(bench_now_ns() - start) / PENDING_OPS;
}

/* Of both sorts, while there is work. False: it was over before they were. */
static bool probe_pending(gl_bench *g, uint64_t work_ns, double *ours, double *raw)
{
    g->surprised = false;
    raw_gl_work_submit(&g->work, work_ns);
    insert_both(g);
    *ours = time_probes(g, probe_ours);
    *raw = time_probes(g, probe_raw);
    release_both(g);
    return !g->surprised;
}

static void measure_pending(gl_bench *g)
{
    size_t count = g->b->scale.batches / FEWER;
    double *samples = calloc(2 * count, sizeof *samples);
    bench_check(samples, "out of memory");
    g->expected = SP_PENDING;
    for (size_t i = 0; i < count; i++) {
        uint64_t work_ns = PENDING_NS;
        while (!probe_pending(g, work_ns, &samples[i], &samples[count + i])) {
            work_ns *= 2;
            bench_check(work_ns < PENDING_NS << 8, "work is over at once");
        }
    }
    bench_emit_medians(g->b, "gl.probe_pending", "ns", samples, count);
    free(samples);
}

/* ---- Host waits ---- */

typedef struct sample {
    double late_ns, cpu_percent;
} sample;

static sample wait_once(gl_bench *g, uint64_t work_ns, bool raw)
{
    raw_gl_work_submit(&g->work, work_ns);
    insert_both(g);
    uint64_t start = bench_now_ns(), used = bench_thread_ns();
    if (raw)
        bench_check(g->raw.ClientWaitSyncKHR(g->raw.display, g->sync, 0, EGL_FOREVER_KHR) ==
                        EGL_CONDITION_SATISFIED_KHR,
                    "eglClientWaitSyncKHR");
    else
        check(sp_wait(&g->point), "sp_wait");
    uint64_t end = bench_now_ns();
    used = bench_thread_ns() - used;
    uint64_t done = raw_gl_work_end_ns(&g->work);
    release_both(g);
    return (sample){
        .late_ns = (double)(int64_t)(end - done),
        .cpu_percent = 100 * (double)used / (double)(end - start),
    };
}

static void measure_wait(gl_bench *g, const char *late_row, const char *cpu_row, uint64_t work_ns,
                         size_t rounds)
{
    double *late = calloc(2 * rounds, sizeof *late);
    double *cpu = calloc(2 * rounds, sizeof *cpu);
    bench_check(late && cpu, "out of memory");
    if (bench_wants(g->b, late_row) || bench_wants(g->b, cpu_row)) {
        for (size_t i = 0; i < 2 * rounds; i++) {
            size_t at = (i % 2) * rounds + i / 2;
            sample one = wait_once(g, work_ns, i % 2);
            late[at] = one.late_ns;
            cpu[at] = one.cpu_percent;
        }
        bench_emit_medians(g->b, late_row, "ns", late, rounds);
        bench_emit_medians(g->b, cpu_row, "%", cpu, rounds);
    }
    free(late);
    free(cpu);
}

static void measure_work(gl_bench *g)
{
    const size_t many = g->b->scale.blocks, few = many / 4;
    const char *why = raw_gl_work_open(&g->work, &g->raw);
    if (why) {
        say(g, "no work to wait for", why);
        return;
    }
    if (bench_wants(g->b, "gl.probe_pending"))
        measure_pending(g);
    if (!raw_gl_work_has_clock(&g->work)) {
        say(g, "no rows of late waits", "it does not tell the time of its work");
        return;
    }
    measure_wait(g, "gl.late_300us", "gl.cpu_300us", 300000, many);
    measure_wait(g, "gl.late_20ms", "gl.cpu_20ms", 20000000, few);
}

/* ---- Together ---- */

static PFNEGLGETPROCADDRESSPROC real_get_proc_address;

static sp_gl_function get_proc_address(const char *name)
{
    return (sp_gl_function)real_get_proc_address(name);
}

/* Its first word: "llvmpipe (LLVM ...)", "ANGLE (...)", "NVIDIA ...". */
static const char *name_of(const raw_gl *gl)
{
    enum { GL_RENDERER_NAME = 0x1F01 };
    static char name[64];
    snprintf(name, sizeof name, "%s", (const char *)gl->GetString(GL_RENDERER_NAME));
    name[strcspn(name, " /")] = '\0';
    return name;
}

bool bench_gl(bench *b, unsigned source)
{
    gl_bench g = {.b = b};
    const char *why = raw_gl_open(&g.raw, source);
    if (why) {
        fprintf(stderr, "syncpoint-bench: %s is not here: %s\n", raw_gl_source_name(source), why);
        return false;
    }
    b->driver = name_of(&g.raw);
    real_get_proc_address = g.raw.get_proc_address;
    const sp_gl_context_desc desc = {
        .size = sizeof desc, .loader = g.raw.loader, .get_proc_address = get_proc_address};
    check(sp_gl_context_create(&desc, &g.context), "sp_gl_context_create");
    if (bench_wants(b, "gl.signal")) {
        bench fewer = *b;
        fewer.scale.batches /= FEWER;
        bench_batches(&fewer, "gl.signal", signal_ours, signal_raw, &g);
    }
    measure_reached(&g);
    measure_work(&g);
    check(sp_gl_context_destroy(g.context), "sp_gl_context_destroy");
    raw_gl_close(&g.raw);
    return true;
}
