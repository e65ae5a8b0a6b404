/* SPDX-License-Identifier: MIT */
#include "table.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

/* From design.md section 10. A row without a target is there to compare. */
static const struct target {
    const char *name;
    double limit;
    bool above_raw; /* the limit is on top of the raw call; no target without one */
} targets[] = {
    {"point.copy_release", 15, false},
    {"point.make_copy_release", 25, false},
    {"point.allocations", 0, false},
    {"probe.reached", 3, false},
    {"probe.pending", 6, true},
    {"wait.wake_spin", 3000, false},
    {"cuda.probe_reached", 3, false},
    {"cuda.probe_pending", 80, true},
    {"cuda.record", 50, true},
    {"cuda.late_timeline_300us", 50000, false},
    {"cuda.cpu_timeline_300us", 10, false},
    {"cuda.late_timeline_20ms", 150000, false},
    {"cuda.cpu_timeline_20ms", 10, false},
    {"cuda.late_event_300us", 50000, false},
    {"cuda.cpu_event_300us", 10, false},
    {"cuda.late_event_20ms", 150000, false},
    {"cuda.cpu_event_20ms", 10, false},
    {"gl.copy_release", 15, false},
    {"gl.probe_reached", 3, false},
    {"gl.probe_pending", 6, true},
    {"opencl.copy_release", 15, false},
    {"opencl.probe_reached", 3, false},
    {"opencl.probe_pending", 6, true},
    {"opencl.wake_spin", 3000, false},
    {"reactor.late", 200000, false},
    {"reactor.late_p99", 1000000, false},
    {"reactor.idle_10000", 3, false},
    {"reactor.callback", 2000, false},
    {"reactor.bytes", 200, false},
    {"reactor.cancel", 1000, false},
    {"reactor.cuda_300us", 150000, false},
    {"reactor.cuda_300us_cpu", 5, false},
    {"reactor.cuda_20ms", 150000, false},
    {"reactor.cuda_20ms_cpu", 5, false},
    {"reactor.cuda_latency_300us", 60000, false},
    {"reactor.cuda_latency_20ms", 60000, false},
    {"pace.balanced_64", 200000, false},
    {"pace.balanced_64_p99", 1000000, false},
};

static const struct target *target_of(const char *name)
{
    for (size_t i = 0; i < sizeof targets / sizeof *targets; i++) {
        if (strcmp(targets[i].name, name) == 0)
            return &targets[i];
    }
    return NULL;
}

static void print_number(const json_t *number, int digits)
{
    if (json_is_number(number)) {
        printf(" %10.*f", digits, json_number_value(number));
    } else {
        printf(" %10s", "-");
    }
}

static void print_target(const struct target *target, double ours, const json_t *raw)
{
    char text[32];
    if (!target || (target->above_raw && !json_is_number(raw))) {
        printf("  %-12s", "");
        return;
    }
    double limit = target->limit + (target->above_raw ? json_number_value(raw) : 0);
    snprintf(text, sizeof text, target->above_raw ? "<= raw + %g" : "<= %g", target->limit);
    printf("  %-12s %s", text, ours <= limit ? "ok" : "over");
}

void bench_print_table(const json_t *rows)
{
    printf("%-24s %-12s %-6s %10s %10s %10s  target\n", "name", "driver", "unit", "ours", "raw",
           "ratio");
    for (size_t i = 0; i < json_array_size(rows); i++) {
        const json_t *row = json_array_get(rows, i);
        const char *name = json_string_value(json_object_get(row, "name"));
        const json_t *ours = json_object_get(row, "ours"), *raw = json_object_get(row, "raw");
        printf("%-24s %-12s %-6s", name, json_string_value(json_object_get(row, "driver")),
               json_string_value(json_object_get(row, "unit")));
        print_number(ours, 1);
        print_number(raw, 1);
        print_number(json_object_get(row, "ratio"), 2);
        print_target(target_of(name), json_number_value(ours), raw);
        putchar('\n');
    }
}
