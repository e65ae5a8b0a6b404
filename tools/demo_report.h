/* SPDX-License-Identifier: MIT
 *
 * What the demo says in the end: on stdout and in demo.json.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_REPORT_H
#define SYNCPOINT_TOOLS_DEMO_REPORT_H

#include "demo.h"

struct demo_report {
    const struct demo_options *options;
    const struct gpu *gpu;
    const struct demo_result *result;
    const char *one_process_because; /* NULL: it was two processes */
};

/* Prints the report and the verdict, writes demo.png and demo.json. Returns the exit status. */
int demo_report(const struct demo_report *report);

#endif
