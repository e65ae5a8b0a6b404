/* SPDX-License-Identifier: MIT
 *
 * Event loops under one name, so that each case runs in every one of them. A program has the loop
 * that its first argument names; all of it is used on the thread of the case.
 */
#ifndef TESTS_LOOPS_LOOP_H
#define TESTS_LOOPS_LOOP_H

#include "support/test.h"

/* A handle that the loop waits for. */
typedef struct watch {
    int fd;
    void (*ready)(struct watch *self); /* called each time it is seen readable                   */
    void *native;                      /* the loop's                                             */
    bool armed, fired;                 /* the loop's                                             */
} watch;

typedef struct loop_ops {
    void (*open)(void);
    void (*close)(void);
    void (*add)(watch *self);
    void (*remove)(watch *self);
    /* Waits until a handle is readable, `timeout_ms` at the longest, and calls ready() for each that
     * is, or for some. */
    void (*turn)(int timeout_ms);
} loop_ops;

extern const loop_ops loop_epoll, loop_epoll_edge, loop_poll, loop_select, loop_io_uring,
    loop_libuv, loop_glib;

/* What cases may need of a loop. */
enum {
    LEVEL = 1 << 0 /* a handle that stays readable is seen again and again */
};

/* What a case calls. Handles are removed before they are closed, in ready() or out of it. */
void loop_add(watch *self, int fd, void (*ready)(watch *self));
void loop_remove(watch *self);
/* Turns until the counter is `target`; false if that takes longer than PATIENCE_NS. */
bool loop_until(const unsigned *counter, unsigned target);
void loop_turn(void);
/* Turns for that long. */
void loop_idle(unsigned ms);

/* For loops that keep no list of their own: what is watched, NULL where it was removed. compact()
 * closes the gaps. */
#define WATCH_LIMIT 600
extern watch *watched[WATCH_LIMIT];
extern size_t watched_count;
void watched_add(watch *self);
void watched_remove(watch *self);
void watched_compact(void);

#endif
