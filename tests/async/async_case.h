/* SPDX-License-Identifier: MIT
 *
 * What the programs of the reactor share: a reactor of the target's drive, and listeners, whose
 * callback notes what it was told.
 *
 * Whatever a case does, these hold in the end: as many callbacks as notifications; no waker left,
 * no primitive, no handle and no thread. And in each callback: the right thread, not inside a call
 * of the library, no other callback of the same reactor.
 */
#ifndef TESTS_ASYNC_ASYNC_CASE_H
#define TESTS_ASYNC_ASYNC_CASE_H

#include "source.h"
#include "support/census.h"
#include "support/test.h"
#include "support/threads.h"

#include <syncpoint/async.h>

/* What the targets are. */
enum { ON_THREAD = 1 << 0, ON_LOOP = 1 << 1 };

extern sp_reactor *reactor; /* made before each case, destroyed after it                        */
extern sp_reactor_drive drive;

sp_reactor *make_reactor(void); /* another one */
/* Also of `reactor`, which is NULL then. */
void destroy_reactor(sp_reactor **which);

/* ---- Listeners ------------------------------------------------------------------------------ */

typedef struct listener listener;
struct listener {
    sp_reactor *reactor;
    sp_ticket ticket;
    void (*then)(listener *self); /* Optional: what the callback does besides                    */
    void *user;                   /* for then()                                                  */

    /* Of the last call, to be read after listener_wait(). */
    unsigned calls; /* atomic */
    sp_status status;
    sp_status cause;   /* sp_last_error()->cause for an error, else SP_OK                        */
    char message[208]; /* and its message                                                        */
    sp_ticket seen;    /* `ticket` as it was then                                                */
    pthread_t thread;
    uint64_t when_ns;
};

/* sp_notify() of `reactor`, SP_OK. */
void listen(listener *self, const sp_point *point, uint64_t timeout_ns);
/* The same for a value of a source, without end. */
void listen_to(listener *self, source *from, uint64_t value);
void listen_to_for(listener *self, source *from, uint64_t value, uint64_t timeout_ns);
/* As the listener says: `reactor` is set. Any answer. */
sp_status try_to_listen(listener *self, const sp_point *point, uint64_t timeout_ns);
sp_status cancel(const listener *self);

/* The callback, for who calls sp_notify() on its own; then say that it was SP_OK. */
void listener_call(void *self, sp_status status);
void count_notification(void);

unsigned listener_calls(const listener *self);
/* Waits for so many calls, dispatching if need be; false if that takes longer than PATIENCE_NS. */
bool listener_wait(const listener *self, unsigned calls);

/* It was called once, with this status. */
#define CHECK_HEARD(listener_, status_)                                                            \
    do {                                                                                           \
        CHECK(listener_wait((listener_), 1));                                                      \
        CHECK_STATUS((listener_)->status, (status_));                                              \
        CHECK_EQUAL(listener_calls(listener_), 1);                                                 \
    } while (0)

/* ---- Going on ------------------------------------------------------------------------------- */

/* sp_reactor_dispatch(), after which callbacks know that they are where they should be. */
sp_status dispatch(sp_reactor *which, uint64_t timeout_ns);
/* Dispatches if need be, until done(what) or PATIENCE_NS is over: false. */
bool go_on_until(sp_reactor *which, bool (*done)(const void *what), const void *what);
/* And for a while. */
void go_on_ms(unsigned ms);

/* source_signal() on a thread, DELAY_MS from now. */
typedef struct late_signal {
    worker worker;
    source *source;
    uint64_t value;
    bool fails; /* source_fail() instead */
    flag sent;  /* set just before       */
} late_signal;

void signal_late(late_signal *late, source *from, uint64_t value);
void fail_late(late_signal *late, source *from);
/* Joins, and checks that what has just been heard was not early. */
void join_not_early(late_signal *late);

/* Until callbacks that have begun have returned, and what was asked before has been seen to. */
void flush(void);

/* ---- Threads and handles -------------------------------------------------------------------- */

/* It has a thread of its own, from when the first other one starts, and cannot start any in the
 * child of a fork(). */
#if defined(__SANITIZE_THREAD__)
#define THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define THREAD_SANITIZER 1
#endif
#endif
#ifndef THREAD_SANITIZER
#define THREAD_SANITIZER 0
#endif

unsigned thread_count(void);
/* These fail the case unless there are so many soon: a thread that was joined may still be listed,
 * and the reactor lets go of its own handle after it was raised. */
void check_thread_count(unsigned expected);
void check_handle_count(unsigned expected);

#endif
