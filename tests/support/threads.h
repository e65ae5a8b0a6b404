/* SPDX-License-Identifier: MIT
 *
 * Threads for tests: something done late, something done in the background, a small stack.
 */
#ifndef TESTS_SUPPORT_THREADS_H
#define TESTS_SUPPORT_THREADS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct worker {
    pthread_t thread;
    void (*run)(void *user);
    void *user;
    unsigned delay_ms;
    unsigned done; /* atomic: run() has returned */
} worker;

/* Calls run(user) on a thread of its own, `delay_ms` from now. */
void worker_start(worker *self, unsigned delay_ms, void (*run)(void *user), void *user);
void worker_join(worker *self);
bool worker_is_done(const worker *self);

/* Calls run(user) on a thread with a stack of `stack_size` bytes and waits for it. */
void run_on_small_stack(size_t stack_size, void (*run)(void *user), void *user);

/* A flag that threads set and read. */
typedef struct flag {
    unsigned set;
} flag;

void flag_set(flag *self);
bool flag_is_set(const flag *self);
/* Waits until it is set; false if that takes longer than PATIENCE_NS. */
bool flag_wait(const flag *self);

#endif
