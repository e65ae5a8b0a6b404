/* SPDX-License-Identifier: MIT
 * The rows as a table, each beside its target. */
#ifndef SP_BENCH_TABLE_H
#define SP_BENCH_TABLE_H

#include <jansson.h>

void bench_print_table(const json_t *rows);

#endif
