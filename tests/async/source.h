/* SPDX-License-Identifier: MIT
 *
 * What a point can be made of without a driver, each sort under the same few functions.
 */
#ifndef TESTS_ASYNC_SOURCE_H
#define TESTS_ASYNC_SOURCE_H

#include "support/counter.h"

typedef enum sort {
    SORT_HOST,  /* a value of a software timeline                                       */
    SORT_SLOT,  /* a slot, set when it is signalled                                     */
    SORT_CHAIN, /* two timelines, one after the other                                   */
    SORT_FD,    /* a pipe, which is written to when it is signalled                    */
    SORT_PROBE, /* and the counters of support/counter.h                                */
    SORT_BLOCK,
    SORT_ARM,
    SORT_GROUP,
    SORT_ONE_SHOT_PROBE,
    SORT_ONE_SHOT_ARM,
    SORT_COUNT
} sort;

typedef struct source {
    sort sort;
    sp_host_timeline *first;
    sp_host_timeline *second;
    sp_slot *slot;
    int pipe[2]; /* -1: closed, or never opened                                                  */
    counter *counter;
} source;

/* for (EACH_SORT(which)) */
#define EACH_SORT(name)                                                                            \
    sort name = SORT_HOST;                                                                         \
    (name) < SORT_COUNT;                                                                           \
    (name)++

bool sort_counts(sort which); /* else it has one signal, and values are ignored */
/* What a point that failed says, and its cause. */
sp_status sort_failure(sort which);
sp_status sort_cause(sort which);

/* source_make() names the sort, unless this says not to: so a failure tells of which it is. */
extern bool sources_are_quiet;

source source_make(sort which);
/* Lets go of it: points that are pending then stay so for ever, or are abandoned. */
void source_end(source *self);
sp_point source_point(source *self, uint64_t value);

/* From any thread, not two at a time. */
void source_signal(source *self, uint64_t value);
void source_fail(source *self);

#endif
