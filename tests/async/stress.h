/* SPDX-License-Identifier: MIT
 *
 * What the parts of the stress program share.
 *
 * Threads do at random what can be done: notify, cancel, signal, fail, replace primitives and
 * reactors. All of it is noted before it is done, so that each callback can tell whether what it is
 * told can be.
 */
#ifndef TESTS_ASYNC_STRESS_H
#define TESTS_ASYNC_STRESS_H

#include "source.h"
#include "support/test.h"
#include "support/threads.h"

#include <pthread.h>
#include <syncpoint/async.h>

/* ---- Subjects: what is waited for ---------------------------------------------------------- */

typedef struct subject {
    source source;
    unsigned refs;        /* atomic */
    pthread_mutex_t lock; /* one thread at a time does something to it                          */
    bool ended;           /* under the lock */
    uint64_t begun;       /* atomic: signals up to this value have begun                        */
    bool failing;         /* atomic: so has its failure, or its end                             */
} subject;

#define SUBJECTS 64

void subjects_make(test_rng *rng);
void subjects_end(void);
/* One of them, with a reference. */
subject *subject_get(test_rng *rng);
void subject_drop(subject *self);
/* False: it has ended meanwhile. *value is one that is near. */
bool subject_point(subject *self, test_rng *rng, sp_point *point, uint64_t *value);
/* False: nothing more can become of it. */
bool subject_signal(subject *self, test_rng *rng);
bool subject_fail(subject *self);
void subject_replace(test_rng *rng); /* any one of them */
bool subject_may_say(const subject *self, uint64_t value, sp_status status);

/* ---- Records: what each notification is about ----------------------------------------------- */

typedef struct station station;

enum { RECORD_FREE, RECORD_LIVE, RECORD_CALLED };

typedef struct record {
    unsigned state; /* atomic */
    bool asked;     /* atomic: sp_cancel() has begun                                             */
    bool said_ok;   /* and said SP_OK                                                            */
    bool reached;   /* so it was before the notification                                         */
    station *at;
    unsigned generation; /* of the station */
    subject *subject;
    uint64_t value;
    uint64_t not_before_ns; /* no TIMEOUT earlier than this                                      */
    sp_ticket ticket;
    sp_status status; /* what was told */
    bool in_the_end;  /* while the reactor was being destroyed                                   */
} record;

/* Fills the record and notifies; false: nothing came of it. The reactor stays meanwhile: its
 * station is locked, or this is one of its callbacks. */
bool record_notify(record *self, station *at, test_rng *rng);
void record_cancel(record *self);
/* Of one that was called: that all agrees. It is free then. */
void record_judge(record *self);

/* ---- Stations: reactors that come and go ---------------------------------------------------- */

#define OWN_RECORDS 16 /* of a station: notified, cancelled and judged in its callbacks         */

struct station {
    pthread_rwlock_t lock; /* the reactor is used under it, and replaced                         */
    sp_reactor_drive drive;
    sp_reactor *reactor;
    unsigned generation;
    worker dispatcher;
    flag stop;
    bool ending;          /* atomic */
    unsigned running;     /* atomic: callbacks                                                   */
    unsigned outstanding; /* atomic: notifications without one                                   */
    test_rng rng;         /* the callbacks'; and so are these                                    */
    record own[OWN_RECORDS];
};

#define STATIONS 3

extern station stations[STATIONS];

void stations_make(test_rng *rng);
void stations_end(void);
void station_replace(station *self);

/* ---- What came of it ------------------------------------------------------------------------ */

/* Something is wrong: tells what, fails the test and lets all threads end. */
void complain(const char *format, ...) __attribute__((format(printf, 1, 2)));
bool is_spoiled(void);

/* How often each was told: OK, TIMEOUT, CANCELLED, errors. */
enum { TOLD_OK, TOLD_TIMEOUT, TOLD_CANCELLED, TOLD_ERROR, TOLD_KINDS };
extern unsigned long told[TOLD_KINDS]; /* atomic */
void count_told(sp_status status);

#endif
