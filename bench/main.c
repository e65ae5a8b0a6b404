/* SPDX-License-Identifier: MIT
 * syncpoint-bench: measures the library beside the raw driver calls, on every driver here. */
#include "../tools/vk_probe_icd.h"
#include "driver.h"
#include "table.h"

#include <stdio.h>
#include <string.h>

typedef struct options {
    const char *json, *filter;
    bool quick;
} options;

static void print_usage(FILE *file)
{
    fputs("usage: syncpoint-bench [--json FILE] [--filter NAME] [--quick]\n\n"
          "Measures the library beside the raw driver calls, on every Vulkan driver here.\n\n"
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

static bool run_all(const options *o, json_t *rows)
{
    vkp_icd_list icds;
    bool ok = vkp_find_icds(&icds);
    ok = bench_run_driver(NULL, o->quick, o->filter, rows) && ok;
    for (size_t i = 0; i < icds.count; i++)
        ok = bench_run_driver(icds.items[i].path, o->quick, o->filter, rows) && ok;
    vkp_free_icds(&icds);
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
