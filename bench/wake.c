/* SPDX-License-Identifier: MIT
 * How soon a waiting thread goes on after another one signals: rounds of two threads on two cores,
 * whatever is waited for. */
#include "bench.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define SPIN_DELAY_NS 5000     /* well within the default spin budget */
#define BLOCK_DELAY_NS 2000000 /* long after it                       */

/* Rounds alternate: odd ones are ours, even ones raw, if there is a raw one. */
typedef struct wake {
    const bench_wake *what;
    size_t rounds;
    int waiter_cpu;
    atomic_size_t turn, waiting, done; /* the round that each of them has got to, from 1 */
    uint64_t returned_ns;              /* written before `done` */
} wake;

static void relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#endif
}

static void spin_until(atomic_size_t *reached, size_t round)
{
    while (atomic_load_explicit(reached, memory_order_acquire) < round)
        relax();
}

static bool is_raw(const wake *w, size_t round)
{
    return w->what->has_raw && round % 2 == 0;
}

static void pin(int cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    bench_check(sched_setaffinity(0, sizeof set, &set) == 0, "sched_setaffinity");
}

static void *run_waiter(void *argument)
{
    wake *w = argument;
    pin(w->waiter_cpu);
    for (size_t round = 1; round <= w->rounds; round++) {
        spin_until(&w->turn, round);
        atomic_store_explicit(&w->waiting, round, memory_order_release);
        w->what->wait(w->what->user, is_raw(w, round));
        w->returned_ns = bench_now_ns();
        atomic_store_explicit(&w->done, round, memory_order_release);
    }
    return NULL;
}

static void delay(uint64_t ns)
{
    uint64_t end = bench_now_ns() + ns;
    if (ns > 100000)
        nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
    while (bench_now_ns() < end)
        relax();
}

/* The clock is read just before the signal call, so the call's own way to the driver counts; that
 * is the same on both sides, and what a user sees. */
static double signal_once(wake *w, size_t round, uint64_t delay_ns)
{
    const bench_wake *what = w->what;
    bool raw = is_raw(w, round);
    what->begin(what->user, raw);
    atomic_store_explicit(&w->turn, round, memory_order_release);
    spin_until(&w->waiting, round);
    delay(delay_ns);
    uint64_t start = bench_now_ns();
    what->signal(what->user, raw);
    spin_until(&w->done, round);
    what->end(what->user, raw);
    /* A waiter that saw the value before the call returned is possible; before it began is not. */
    bench_check(w->returned_ns >= start, "a wait ended before its signal");
    return (double)(w->returned_ns - start);
}

/* The first two cores that this process may run on. */
static bool two_cores(cpu_set_t *before, int cores[2])
{
    int found = 0;
    bench_check(sched_getaffinity(0, sizeof *before, before) == 0, "sched_getaffinity");
    for (int cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++) {
        if (CPU_ISSET(cpu, before))
            cores[found++] = cpu;
    }
    return found == 2;
}

static void run_rounds(wake *w, const bench *b, const char *name, uint64_t delay_ns,
                       double *samples[2])
{
    size_t counts[2] = {0, 0};
    for (size_t round = 1; round <= w->rounds; round++) {
        int side = is_raw(w, round);
        samples[side][counts[side]++] = signal_once(w, round, delay_ns);
    }
    const bench_row row = {
        .name = name,
        .unit = "ns",
        .ours = bench_median(samples[0], counts[0]),
        .raw = w->what->has_raw ? bench_median(samples[1], counts[1]) : -1,
        .n = counts[0],
    };
    bench_emit(b, &row);
}

/* Threads that drivers made before are not pinned with us, and this thread is set free again. */
static void measure(const bench *b, const bench_wake *what, const char *name, size_t count,
                    uint64_t delay_ns)
{
    cpu_set_t before;
    int cores[2];
    pthread_t thread;
    if (!bench_wants(b, name))
        return;
    if (!two_cores(&before, cores)) {
        fprintf(stderr, "syncpoint-bench: %s left out: it takes two cores\n", name);
        return;
    }
    wake w = {.what = what, .rounds = what->has_raw ? 2 * count : count, .waiter_cpu = cores[1]};
    double *samples[2] = {calloc(w.rounds, sizeof(double)), calloc(w.rounds, sizeof(double))};
    bench_check(samples[0] && samples[1], "out of memory");
    bench_check(pthread_create(&thread, NULL, run_waiter, &w) == 0, "no thread");
    pin(cores[0]);
    run_rounds(&w, b, name, delay_ns, samples);
    pthread_join(thread, NULL);
    sched_setaffinity(0, sizeof before, &before);
    free(samples[0]);
    free(samples[1]);
}

void bench_wakes(const bench *b, const bench_wake *what)
{
    measure(b, what, what->spin_row, b->scale.wakes, SPIN_DELAY_NS);
    measure(b, what, what->block_row, b->scale.blocks, BLOCK_DELAY_NS);
}
