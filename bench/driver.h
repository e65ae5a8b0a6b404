/* SPDX-License-Identifier: MIT
 * One driver's measurements, in a process of its own. */
#ifndef SP_BENCH_DRIVER_H
#define SP_BENCH_DRIVER_H

#include <jansson.h>
#include <stdbool.h>

/* Runs them and appends their rows to `rows`. `icd` is the driver's JSON file, NULL: the core,
 * without any driver. A driver without a device adds no row and is no failure.
 * Returns false, and says why on stderr, if the process did not get to its end. */
bool bench_run_driver(const char *icd, bool quick, const char *filter, json_t *rows);

#endif
