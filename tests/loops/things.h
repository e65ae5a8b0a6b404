/* SPDX-License-Identifier: MIT
 *
 * Points for the cases, of each sort that a reactor tells apart, and what ends them late, from another
 * thread.
 */
#ifndef TESTS_LOOPS_THINGS_H
#define TESTS_LOOPS_THINGS_H

#include "support/counter.h"
#include "support/test.h"
#include "support/threads.h"

/* What a point comes from. */
typedef enum thing_kind {
    THING_TIMELINE, /* wakes the reactor                                                         */
    THING_SLOT,     /* set to a timeline's point, which is signalled then                        */
    THING_POLLED,   /* can only be asked                                                         */
    THING_KINDS
} thing_kind;

typedef struct thing {
    thing_kind kind;
    sp_point point;
    sp_host_timeline *timeline;
    sp_slot *slot;
    counter *counter;
    worker late;
    flag ending; /* set before the point is reached or fails                                     */
} thing;

void thing_open(thing *self, thing_kind kind);
void thing_close(thing *self);

/* Reached; failed with SP_ERROR_FAILED because of PEER_CLOSED, a counter with DEVICE_LOST. */
void thing_signal(thing *self);
void thing_fail(thing *self);
/* The same, DELAY_MS from now, on a thread of its own, which thing_close() joins. */
void thing_signal_late(thing *self);
void thing_fail_late(thing *self);

/* What a wait for one that was failed gives. */
sp_status thing_failure(const thing *self);

#endif
