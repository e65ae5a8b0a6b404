/* SPDX-License-Identifier: MIT
 * A callback that notes when it ran, and what its thread had used of a core by then. */
#ifndef SP_BENCH_NOTIFIED_H
#define SP_BENCH_NOTIFIED_H

#include "bench.h"

#include <stdatomic.h>
#include <syncpoint/async.h>

typedef struct notified {
    uint64_t at_ns, thread_ns;
    volatile unsigned *word; /* Optional: read first of all */
    unsigned seen_word;
    atomic_bool called; /* written last */
} notified;

void notified_call(void *user, sp_status status);
void notified_wait(notified *n);

sp_reactor *bench_reactor_create(sp_pace pace);
void bench_reactor_destroy(sp_reactor *reactor);
/* notified_call(n) for `point`, which stays the caller's. */
void bench_notify(sp_reactor *reactor, const sp_point *point, notified *n);

void bench_sleep_us(unsigned us);
/* `count` samples: a row NAME with the median, and one NAME_p99. */
void bench_emit_late(const bench *b, const char *name, double *samples, size_t count,
                     double *raw); /* NULL: none */

#endif
