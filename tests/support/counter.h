/* SPDX-License-Identifier: MIT
 *
 * Primitives that a user of the library brings: a counter, or one signal, waited on in each way
 * that the table of operations allows.
 */
#ifndef TESTS_SUPPORT_COUNTER_H
#define TESTS_SUPPORT_COUNTER_H

#include <stdbool.h>
#include <syncpoint/syncpoint.h>

typedef enum counter_style {
    COUNTER_PROBE, /* probe() only                                                               */
    COUNTER_BLOCK, /* and block()                                                                */
    COUNTER_ARM,   /* and arm(), disarm()                                                        */
    COUNTER_GROUP, /* and block(), group(), block_many()                                         */
    COUNTER_ONE_SHOT_PROBE,
    COUNTER_ONE_SHOT_ARM
} counter_style;

typedef struct counter {
    sp_waiter base;
    uint64_t value;
    sp_status probe_status; /* what probe() says instead of SP_OK                                */
    sp_status failed;
    bool fails_probe_later; /* once a block_many() has told of `failed`, probe() does as well     */
    sp_waker *armed;
    unsigned probes;
    unsigned blocks;
} counter;

/* With one reference. */
counter *counter_create(counter_style style);
/* A point of kind CUSTOM; the counter keeps its own reference. */
sp_point counter_point(counter *self, uint64_t value);
void counter_signal(counter *self, uint64_t value);
/* From here on values above the current one fail with `status`. */
void counter_fail(counter *self, sp_status status);
/* What probe() answers instead of SP_OK, from now on. */
void counter_set_probe_status(counter *self, sp_status status);
void counter_unref(counter *self);

/* Counters that were made and not destroyed; wakers that are armed. */
unsigned counter_alive(void);
unsigned counter_armed(void);

#endif
