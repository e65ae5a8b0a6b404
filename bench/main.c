/* SPDX-License-Identifier: MIT
 * syncpoint-bench: measures the library beside the raw driver calls, on every driver here. */
#include "../tools/vk_probe_icd.h"
#include "driver.h"
#include "table.h"
#ifdef SP_BENCH_CL
#include "raw_cl.h"
#endif
#ifdef SP_BENCH_GL
#include "raw_gl.h"
#endif

#include <stdio.h>
#include <string.h>

typedef struct options {
    const char *json, *filter;
    bool quick;
} options;

static void print_usage(FILE *file)
{
    fputs("usage: syncpoint-bench [--json FILE] [--filter NAME] [--quick]\n\n"
          "Measures the library beside the raw driver calls, on every Vulkan, OpenGL and OpenCL\n"
          "driver here, and of CUDA where Vulkan's is NVIDIA's.\n\n"
          "  --json FILE    write the rows to FILE, too\n"
          "  --filter NAME  only the rows whose name has NAME in it\n"
          "  --quick        fewer rounds\n",
          file);
}

/* Returns -1 to go on, else the exit status. */
static int parse(int argc, char **argv, options *o)
{
    for (int i = 1; i < argc; i++) {
        bool has_value = i + 1 < argc;
        if (strcmp(argv[i], "--quick") == 0) {
            o->quick = true;
        } else if (strcmp(argv[i], "--json") == 0 && has_value) {
            o->json = argv[++i];
        } else if (strcmp(argv[i], "--filter") == 0 && has_value) {
            o->filter = argv[++i];
        } else {
            bool help = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
            if (!help)
                fprintf(stderr, "syncpoint-bench: no such option, or no value: %s\n", argv[i]);
            print_usage(help ? stdout : stderr);
            return help ? 0 : 2;
        }
    }
    return -1;
}

static bench_outcome run(const options *o, const bench_driver *driver, json_t *rows)
{
    return bench_run_driver(driver, o->quick, o->filter, rows);
}

/* Vulkan drivers of hardware that is not here are nothing to report. */
static bool run_vulkan(const options *o, json_t *rows)
{
    vkp_icd_list icds;
    bool ok = vkp_find_icds(&icds);
    for (size_t i = 0; i < icds.count; i++) {
        const char *path = icds.items[i].path;
        const bench_driver driver = {.name = path, .measure = bench_measure_vulkan, .icd = path};
        ok = run(o, &driver, rows) != BENCH_BROKEN && ok;
    }
    vkp_free_icds(&icds);
    return ok;
}

#ifdef SP_BENCH_GL
static bool measure_gl(bench *b, const bench_driver *self)
{
    return bench_gl(b, self->number);
}

/* What is not here says so itself. */
static bool run_gl(const options *o, json_t *rows)
{
    bool ok = true;
    for (unsigned source = 0; source < RAW_GL_SOURCE_COUNT; source++) {
        const bench_driver driver = {
            .name = raw_gl_source_name(source), .measure = measure_gl, .number = source};
        ok = run(o, &driver, rows) != BENCH_BROKEN && ok;
    }
    return ok;
}
#endif

#ifdef SP_BENCH_CL
static bool measure_cl(bench *b, const bench_driver *self)
{
    return bench_cl(b, self->number);
}

static bool run_cl(const options *o, json_t *rows)
{
    bool ok = true;
    bench_driver driver = {.name = "OpenCL", .measure = measure_cl};
    for (; driver.number < RAW_CL_MAX_PLATFORMS; driver.number++) {
        bench_outcome outcome = run(o, &driver, rows);
        ok = ok && outcome != BENCH_BROKEN;
        if (outcome == BENCH_NOT_HERE)
            break;
    }
    if (driver.number == 0)
        fputs("syncpoint-bench: OpenCL is not here: no libOpenCL.so.1 with a platform\n", stderr);
    return ok;
}
#endif

static bool run_all(const options *o, json_t *rows)
{
    const bench_driver core = {.name = "core", .measure = bench_measure_core};
    bool ok = run(o, &core, rows) == BENCH_DONE;
    ok = run_vulkan(o, rows) && ok;
#ifdef SP_BENCH_GL
    ok = run_gl(o, rows) && ok;
#endif
#ifdef SP_BENCH_CL
    ok = run_cl(o, rows) && ok;
#endif
    return ok;
}

int main(int argc, char **argv)
{
    options o = {.filter = ""};
    int status = parse(argc, argv, &o);
    if (status >= 0)
        return status;
    json_t *rows = json_array();
    bool ok = run_all(&o, rows);
    if (json_array_size(rows) > 0) {
        bench_print_table(rows);
    } else {
        fprintf(stderr, "syncpoint-bench: no row's name holds '%s'\n", o.filter);
        ok = false;
    }
    if (o.json && json_dump_file(rows, o.json, JSON_INDENT(2)) != 0) {
        fprintf(stderr, "syncpoint-bench: cannot write %s\n", o.json);
        ok = false;
    }
    json_decref(rows);
    return ok ? 0 : 1;
}
