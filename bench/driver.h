/* SPDX-License-Identifier: MIT
 * One driver's measurements, in a process of its own. */
#ifndef SP_BENCH_DRIVER_H
#define SP_BENCH_DRIVER_H

#include "bench.h"

#include <jansson.h>

typedef struct bench_driver {
    const char *name; /* for messages */
    /* Runs in the process. False: the driver is not here, and no row was added. */
    bool (*measure)(bench *b, const struct bench_driver *self);
    const char *icd; /* of Vulkan: the driver's JSON file                              */
    unsigned number; /* of OpenGL and OpenCL: see bench_gl() and bench_cl()            */
} bench_driver;

bool bench_measure_core(bench *b, const bench_driver *self);
bool bench_measure_vulkan(bench *b, const bench_driver *self);

typedef enum bench_outcome { BENCH_DONE, BENCH_NOT_HERE, BENCH_BROKEN } bench_outcome;

/* Runs it and appends its rows to `rows`. BENCH_BROKEN, and it says why on stderr: the process did
 * not get to its end. */
bench_outcome bench_run_driver(const bench_driver *driver, bool quick, const char *filter,
                               json_t *rows);

#endif
