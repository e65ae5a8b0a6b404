/* SPDX-License-Identifier: MIT
 * What the measurements share. Each driver is measured in a process of its own. */
#ifndef SP_BENCH_H
#define SP_BENCH_H

#include "../tools/vk_probe_driver.h"
#include "raw_vk.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* How much is done; smaller with --quick. */
typedef struct bench_scale {
    size_t batches; /* of OPS_PER_BATCH operations, for what takes nanoseconds */
    size_t wakes;   /* waits that end within the spin budget                   */
    size_t blocks;  /* waits that end after 2 ms                               */
    size_t handoffs;
} bench_scale;

#define OPS_PER_BATCH 2000
#define OPS_PER_BURST 200

typedef struct bench {
    const char *driver; /* "core" if there is none: then all that follows is zero */
    bool has_driver;
    bool can_share;  /* `b` is open, and opaque fds of binary semaphores work  */
    vkp_device a, b; /* two devices on one physical device                     */
    raw_vk raw_a, raw_b;
    bench_scale scale;
    const char *filter; /* "": everything                                         */
    int fd;             /* where rows go                                          */
} bench;

/* One row of the result. `ours` and `raw` are medians; raw < 0: there is none. */
typedef struct bench_row {
    const char *name, *unit;
    double ours, raw;
    size_t n; /* operations on our side, and as many on the raw one */
} bench_row;

/* Is this row asked for? */
bool bench_wants(const bench *b, const char *name);
void bench_emit(const bench *b, const bench_row *row);

/* Ends the process: a measurement of something that does not work is none. */
void bench_die(const char *what) __attribute__((noreturn));

static inline void bench_check(bool ok, const char *what)
{
    if (!ok)
        bench_die(what);
}

/* The compiler must take what is behind `pointer` as read and written here, so that no operation
 * in a loop is moved out of it. */
static inline void bench_barrier(const void *pointer)
{
    __asm__ volatile("" : : "r"(pointer) : "memory");
}

/* Ns on the clock that everything here is measured with. */
uint64_t bench_now_ns(void);

/* Of a core, by this thread. */
uint64_t bench_thread_ns(void);

/* Sorts `samples`. */
double bench_median(double *samples, size_t count);
/* A row of `count` samples of ours, which are followed by as many raw ones. */
void bench_emit_medians(const bench *b, const char *name, const char *unit, double *samples,
                        size_t count);

/* Does the operation `ops` times. */
typedef void (*bench_batch)(void *argument, size_t ops);

/* Polls, and copies and releases, that many times. The loop's own work is part of the figure, so there
 * is as little of it as can be. Did each poll say what was expected? */
bool bench_polls(const sp_point *point, sp_status expected, size_t ops);
void bench_copies(const sp_point *point, size_t ops);

/* Runs batches of ours and of the raw one (NULL: none) in turn, and emits the medians of ns per
 * operation. */
void bench_batches(const bench *b, const char *name, bench_batch ours, bench_batch raw,
                   void *argument);
/* The same in bursts of OPS_PER_BURST, with settle(argument) after each, which is not measured: for
 * calls that fill a queue. */
void bench_bursts(const bench *b, const char *name, bench_batch ours, bench_batch raw,
                  void (*settle)(void *argument), void *argument);

/* What one thread waits for and another signals, again and again. */
typedef struct bench_wake {
    const char *spin_row,
        *block_row; /* signalled within the spin budget, and long after it       */
    bool has_raw;   /* every other round is the raw calls'                       */
    void *user;
    void (*begin)(void *user, bool raw); /* something new to wait for; on the signalling thread   */
    void (*wait)(void *user, bool raw);  /* on the waiting thread                                 */
    void (*signal)(void *user,
                   bool raw); /* on the signalling thread, as the next                 */
    void (*end)(void *user, bool raw);
} bench_wake;

/* Emits both rows: ns from the signal to the end of the wait. */
void bench_wakes(const bench *b, const bench_wake *what);

/* A timeline of the driver, or of the core where there is none. */
typedef struct bench_timeline {
    sp_vk_semaphore *vk;
    sp_host_timeline *host;
} bench_timeline;

bench_timeline bench_timeline_create(const bench *b, uint64_t initial_value);
void bench_timeline_destroy(bench_timeline *timeline);
sp_point bench_timeline_point(const bench_timeline *timeline, uint64_t value);
sp_status bench_timeline_signal(const bench_timeline *timeline, uint64_t value);

/* Calls of the allocator by this thread so far: alloc.c. */
bool bench_counts_allocations(void);
size_t bench_allocations(void);

void bench_points(const bench *b);
void bench_probes(const bench *b);
void bench_waits(const bench *b);
void bench_wait_any(const bench *b); /* nothing without a driver */
void bench_reactor(const bench *b);
void bench_handoffs(const bench *b);
void bench_cuda(const bench *b); /* nothing without an NVIDIA GPU */

/* With a driver of their own, whose name they set. False: there is none. `source`: a raw_gl_source;
 * `platform`: its number in the loader's list. */
bool bench_gl(bench *b, unsigned source);
bool bench_cl(bench *b, unsigned platform);

#endif
