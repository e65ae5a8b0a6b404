/* SPDX-License-Identifier: MIT */
#ifndef SYNCPOINT_TOOLS_DEMO_STATS_H
#define SYNCPOINT_TOOLS_DEMO_STATS_H

#include <stdint.h>

struct demo_stats {
    uint64_t median;
    uint64_t p99;
};

/* Of `count` values, which it sorts. All 0 for none. */
struct demo_stats demo_stats_of(uint64_t *values, uint32_t count);

#endif
