/* SPDX-License-Identifier: MIT
 * `syncpoint info`: the drivers of this machine, and what the library can do with them. */
#include "info.h"

#include "commands.h"

#include <stdio.h>
#include <string.h>
#include <syncpoint/syncpoint.h>

static const info_section *const sections[] = {
    &info_vulkan,
#ifdef SP_INFO_OPENGL
    &info_opengl,
#endif
#ifdef SP_INFO_OPENCL
    &info_opencl,
#endif
#ifdef SP_INFO_CUDA
    &info_cuda,
#endif
    NULL,
};

static const struct {
    const char *name, *meaning;
} results[] = {
    {"proven", "done on this machine now; and what was not signalled was not reached"},
    {"reported", "the driver says so; not run here"},
    {"no", "not there"},
    {"failed", "the driver says so, and it did not work"},
};
#define RESULT_COUNT (sizeof results / sizeof *results)

/* What the library has code for that no driver within reach has run yet. */
static const char *const only_on_doubles[] = {
    "Vulkan: sync_file import and export",
    "OpenGL: D3D12 fences, Win32 handles, sync_files",
    "CUDA: D3D12 and D3D11 fences, keyed mutexes, NT handles",
};
#define DOUBLE_COUNT (sizeof only_on_doubles / sizeof *only_on_doubles)

static const info_section *section_of(const char *backend)
{
    for (size_t i = 0; sections[i]; i++) {
        if (strcmp(sections[i]->backend, backend) == 0)
            return sections[i];
    }
    return NULL;
}

static json_t *backend_entry(sp_backend backend, const json_t *section)
{
    const char *name = sp_backend_name(backend);
    bool always = backend == SP_BACKEND_CPU || backend == SP_BACKEND_CUSTOM;
    bool built = always || section;
    json_int_t devices = json_integer_value(json_object_get(section, "devices"));
    const char *note = always        ? "needs no driver"
                       : !built      ? "not in this build"
                       : devices > 0 ? "driver found"
                                     : "no driver here";
    return json_pack("{s:s, s:b, s:b, s:s}", "name", name, "built", built, "driver",
                     always || devices > 0, "note", note);
}

static json_t *legend(void)
{
    json_t *object = json_object();
    for (size_t i = 0; i < RESULT_COUNT; i++)
        json_object_set_new(object, results[i].name, json_string(results[i].meaning));
    return object;
}

/* How many of each result all sections have. */
static json_t *count_results(const json_t *report)
{
    json_t *total = json_object();
    for (size_t i = 0; i < RESULT_COUNT; i++) {
        json_int_t count = 0;
        for (size_t s = 0; sections[s]; s++) {
            const json_t *section = json_object_get(report, sections[s]->backend);
            count += json_integer_value(
                json_object_get(json_object_get(section, "results"), results[i].name));
        }
        json_object_set_new(total, results[i].name, json_integer(count));
    }
    return total;
}

static json_t *gather(bool verbose)
{
    const uint32_t version = sp_version();
    json_t *backends = json_array();
    json_t *report =
        json_pack("{s:o, s:o, s:o}", "version",
                  json_sprintf("%u.%u.%u", version >> 16, (version >> 8) & 0xFF, version & 0xFF),
                  "backends", backends, "legend", legend());
    for (int backend = SP_BACKEND_CPU; backend <= SP_BACKEND_CUSTOM; backend++) {
        const info_section *section = section_of(sp_backend_name((sp_backend)backend));
        json_t *found = section ? section->gather(verbose) : NULL;
        json_array_append_new(backends, backend_entry((sp_backend)backend, found));
        if (found)
            json_object_set_new(report, section->backend, found);
    }
    json_object_set_new(report, "results", count_results(report));
    json_t *doubles = json_array();
    for (size_t i = 0; i < DOUBLE_COUNT; i++)
        json_array_append_new(doubles, json_string(only_on_doubles[i]));
    json_object_set_new(report, "only_on_doubles", doubles);
    return report;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static void print_backends(const json_t *report, const char *note, const char *heading)
{
    const json_t *backends = json_object_get(report, "backends");
    bool any = false;
    for (size_t i = 0; i < json_array_size(backends); i++) {
        const json_t *entry = json_array_get(backends, i);
        if (strcmp(text_of(entry, "note"), note) != 0)
            continue;
        printf(any ? ", %s" : "%s%s", any ? text_of(entry, "name") : heading,
               text_of(entry, "name"));
        any = true;
    }
    if (any)
        putchar('\n');
}

static void print_text(const json_t *report)
{
    printf("syncpoint %s\n", text_of(report, "version"));
    print_backends(report, "needs no driver", "  always there       ");
    print_backends(report, "driver found", "  with a driver here ");
    print_backends(report, "no driver here", "  no driver here     ");
    print_backends(report, "not in this build", "  not in this build  ");
    for (size_t i = 0; sections[i]; i++)
        sections[i]->print(json_object_get(report, sections[i]->backend));
    puts("\nOn this machine:");
    for (size_t i = 0; i < RESULT_COUNT; i++) {
        printf("  %4d %-9s %s\n",
               (int)json_integer_value(
                   json_object_get(json_object_get(report, "results"), results[i].name)),
               results[i].name, results[i].meaning);
    }
    puts("\nRan on doubles of drivers only, in the tests of syncpoint:");
    for (size_t i = 0; i < DOUBLE_COUNT; i++)
        printf("  %s\n", only_on_doubles[i]);
}

static void print_usage(FILE *file)
{
    fputs("usage: syncpoint info [--json] [--verbose]\n\n"
          "The drivers of this machine, and what their semaphores can do, tried out.\n\n"
          "  --json     one JSON object instead of text\n"
          "  --verbose  let through what drivers print to stderr\n",
          file);
}

int sp_cmd_info(int argc, char **argv)
{
    bool json = false, verbose = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--json") == 0) {
            json = true;
        } else if (strcmp(argv[i], "--verbose") == 0) {
            verbose = true;
        } else {
            bool help = strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0;
            if (!help)
                tool_error("info: unknown option '%s'", argv[i]);
            print_usage(help ? stdout : stderr);
            return help ? TOOL_EXIT_GOOD : TOOL_EXIT_FAILED;
        }
    }
    json_t *report = gather(verbose);
    if (json) {
        json_dumpf(report, stdout, JSON_INDENT(2));
        putchar('\n');
    } else {
        print_text(report);
    }
    json_decref(report);
    return TOOL_EXIT_GOOD;
}
