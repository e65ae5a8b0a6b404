/* SPDX-License-Identifier: MIT
 *
 * One set of semantic tests for every primitive there is. A fixture stands for one primitive.
 *
 * Its points are known by a number. Signalling k reaches every point made so far with a number of at
 * most k. Points are made in growing order of their number (a queue cannot do otherwise) and
 * signalled in growing order.
 */
#ifndef TESTS_CONFORMANCE_CONFORMANCE_H
#define TESTS_CONFORMANCE_CONFORMANCE_H

#include "support/census.h"
#include "support/test.h"
#include "support/threads.h"

/* What a fixture has, and a case needs. */
enum {
    COUNTING = 1 << 0, /* one primitive with values                                              */
    ONE_SHOT = 1 << 1, /* each point is an operation of its own                                  */
    FAILING = 1 << 2,  /* can be made to fail                                                    */
    COUNTED = 1 << 3,  /* tells how many primitives are alive                                    */
    CALLS = 1 << 4,    /* tells how many driver calls were made                                  */
    POLLED = 1 << 5,   /* a poll alone notices signal and failure; else a wait must have begun   */
    INDEPENDENT = 1 << 6, /* a wait notices while points made later are still pending            */
    UNLAYERED = 1 << 7 /* no validation layer, which may stall for 10 s after a wait for any      */
};

typedef struct fixture {
    sp_kind kind;
    sp_backend backend;
    uint32_t flags;           /* of its points                                                */
    sp_status pending;        /* what a poll says before the signal                           */
    sp_status timed_out;      /* and a wait whose time runs out                               */
    sp_status mark_submitted; /* what sp_point_mark_submitted() says                          */
    sp_status fail_status;    /* what waits give after fail_all()                                */
    sp_status fail_cause;     /* and what sp_last_error()->cause is                           */
    const void *user;
    unsigned most_at_once; /* more waits than these at once hold each other up; 0: no limit      */
    void (*setup)(const void *user);
    sp_point (*point)(uint64_t number);
    void (*signal)(uint64_t number); /* from any thread */
    void (*fail_all)(void);          /* from any thread; points not reached fail */
    void (*release_owner)(void);     /* lets go of everything but the points */
    unsigned (*alive)(void);
    void (*poke)(void); /* optional: a call that does what was put off */
    unsigned (*calls)(void);
    void (*teardown)(void);
} fixture;

/* The one under test. */
extern const fixture *fx;

/* fixture_*.c: lists that end with a NULL name. */
extern const test_target host_targets[];
extern const test_target custom_targets[];
extern const test_target fd_targets[];
extern const test_target vulkan_targets[];
extern const test_target opencl_targets[];
extern const test_target cuda_targets[];
extern const test_target opengl_targets[];

/* Releases points made by fx->point(). */
void release_points(sp_point *points, size_t count);

/* fx->signal(number) on a thread, DELAY_MS from now. */
typedef struct late_signal {
    worker worker;
    uint64_t number;
    flag sent; /* set just before the signal */
} late_signal;
void signal_late(late_signal *late, uint64_t number);
/* Joins, and checks that the wait that has just returned did not do so early. */
#define JOIN_NOT_EARLY(late)                                                                       \
    do {                                                                                           \
        CHECK(flag_is_set(&(late)->sent));                                                         \
        worker_join(&(late)->worker);                                                              \
    } while (0)

#endif
