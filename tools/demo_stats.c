/* SPDX-License-Identifier: MIT */
#include "demo_stats.h"

#include <stdlib.h>

static int compare(const void *left, const void *right)
{
    const uint64_t a = *(const uint64_t *)left;
    const uint64_t b = *(const uint64_t *)right;
    return (a > b) - (a < b);
}

struct demo_stats demo_stats_of(uint64_t *values, uint32_t count)
{
    if (count == 0)
        return (struct demo_stats){0, 0};
    qsort(values, count, sizeof *values, compare);
    return (struct demo_stats){
        .median = values[count / 2],
        .p99 = values[(uint32_t)((uint64_t)count * 99 / 100)],
    };
}
