/* SPDX-License-Identifier: MIT
 *
 * What the files of the reactor share.
 *
 * A *ticket* is one notification. A *source* is one primitive that tickets wait for: it is armed, or
 * waited for in its group's watcher, or polled, once for all its tickets. Other threads only put things
 * into the *inbox*, under its lock; one thread at a time, the *dispatcher*, takes them out, and it
 * alone touches sources and what tickets are linked in.
 *
 *   sp_notify() --> intake --.                     .--> source --> due --> fn
 *   sp_cancel() --> cancelled --> inbox --> turn --+--> deadlines --^
 *   wakers      --> woken ---'                     '--> cancelled --^
 */
#ifndef SP_ASYNC_REACTOR_H
#define SP_ASYNC_REACTOR_H

#include "async/heap.h"
#include "async/slab.h"
#include "core/core.h"

#include <syncpoint/async.h>

/* ---- Tickets (ticket.c) ---- */

/* The life of a ticket; each use of a slot is a generation of its own.
 *
 *   FREE -> PENDING -> CALLING -> FREE              it has a result of its own
 *              |          '-----> DONE -> FREE      sp_point_fd(): until it is released
 *              '----> CANCELLED -> FREE or DONE     sp_cancel(), sp_reactor_destroy()
 *
 * Out of PENDING goes who wins the compare-and-swap; all else is the dispatcher's. */
enum {
    SP_TICKET_FREE = 0,
    SP_TICKET_PENDING = 1,
    SP_TICKET_CANCELLED = 2,
    SP_TICKET_CALLING = 3,
    SP_TICKET_DONE = 4
};
#define SP_TICKET_STATE_BITS 3

/* Flags, of sp_point_fd()'s; under the inbox's lock. */
enum {
    SP_TICKET_KEPT = 1 << 0,    /* stays until it is released                                    */
    SP_TICKET_RELEASED = 1 << 1 /* which it was while it was pending                             */
};

typedef struct sp_reactor_ticket {
    uint32_t next; /* free, cancelled or due                                                    */
    int32_t status;
    uint64_t word; /* generation << SP_TICKET_STATE_BITS | state; atomic                        */
    sp_waiter *waiter; /* the point: one reference, until it was called back for                 */
    uint64_t value;
    union {
        sp_heap_node by_value; /* in its source; before that .next links the intake              */
        sp_error *failure;     /* once it is due: why, if status is an error of the point's      */
    } u;
    sp_heap_node by_deadline;
    sp_notify_fn fn; /* NULL: of sp_point_fd(), and `user` is the reactor's own handle            */
    void *user;
    uint32_t source; /* 0: none */
    uint32_t flags;
} sp_reactor_ticket;

/* ---- Sources (source.c) ---- */

enum {
    SP_SOURCE_ARMED = 1,   /* the primitive wakes us                                            */
    SP_SOURCE_WATCHED = 2, /* the thread of its group's watcher waits for it                    */
    SP_SOURCE_POLLED = 3,
    SP_SOURCE_FD = 4 /* the alarm rings for it */
};

typedef struct sp_source {
    uint32_t next; /* free or woken                                                             */
    uint32_t same_hash;
    sp_waiter *waiter; /* one reference */
    sp_reactor *reactor;
    union {
        sp_waker waker;             /* of one that can be armed */
        struct sp_watcher *watcher; /* of one that is watched   */
    } u;
    uint32_t tickets;            /* heap by value                                         */
    uint32_t prev, next_in_ring; /* of those that are polled, or of its watcher's         */
    uint32_t number;             /* its own                                               */
    uint8_t mode;
    uint8_t is_armed;
    uint8_t is_looking; /* what comes and goes meanwhile is seen to afterwards                  */
    uint8_t is_woken;   /* in the woken list; under the inbox's lock                              */
    uint8_t is_over;    /* and to be put back when it is taken from there                         */
} sp_source;

typedef struct sp_source_table {
    sp_slab slab;
    uint32_t *buckets;
    uint32_t bucket_count; /* a power of two */
    uint32_t count;
} sp_source_table;

/* ---- The reactor (reactor.c) ---- */

/* A list in the order in which things came. */
typedef struct sp_ticket_list {
    uint32_t first, last;
} sp_ticket_list;

typedef struct sp_inbox {
    sp_os_mutex lock;
    sp_ticket_list intake; /* new                                                               */
    uint32_t cancelled;    /* by sp_cancel()                                                    */
    uint32_t woken;        /* sources                                                           */
    bool has_news;         /* a watcher has                                                     */
    bool ending;           /* nothing new is taken                                              */
    uint32_t sleeping;     /* the dispatcher wants to be rung for; atomic                       */
} sp_inbox;

/* Sources of one kind, in a ring. */
typedef struct sp_source_ring {
    uint32_t first; /* 0: none */
    uint32_t count;
} sp_source_ring;

typedef struct sp_poller {
    sp_source_ring ring; /* the first is the one whose turn it is                               */
    uint64_t next_ns;    /* when to poll again                                                  */
    uint64_t cpu_ns;     /* of the thread, after the last time                                  */
    uint64_t wake_up_ns; /* what waking up costs it, about                                      */
} sp_poller;

#define SP_READABLE_AT_ONCE 14

struct sp_reactor {
    sp_reactor_drive drive;
    sp_pace pace;
    sp_log log;
    char name[16];
    uint32_t fork_generation;
    sp_os_alarm alarm;
    sp_os_thread thread;
    uint64_t dispatcher; /* sp_os_thread_self() of who dispatches now, else 0; atomic           */
    sp_inbox inbox;
    sp_slab tickets; /* got and put under the inbox's lock                                      */
    /* The dispatcher's. */
    sp_source_table sources;
    uint32_t deadlines; /* heap of tickets                                                      */
    sp_ticket_list due;
    sp_poller poller;
    struct sp_watcher *watchers;
    uint32_t readable[SP_READABLE_AT_ONCE]; /* sources with a descriptor that is                 */
    size_t readable_count;
};

static inline sp_reactor_ticket *sp_ticket_at(const sp_reactor *reactor, uint32_t number)
{
    return sp_slab_at(&reactor->tickets, number);
}

static inline sp_source *sp_source_at(const sp_reactor *reactor, uint32_t number)
{
    return sp_slab_at(&reactor->sources.slab, number);
}

static inline bool sp_reactor_is_forked(const sp_reactor *reactor)
{
    return reactor->fork_generation != sp_fork_generation;
}

static inline sp_status sp_reactor_check(const sp_reactor *reactor)
{
    return sp_reactor_is_forked(reactor) ? sp_fail_forked() : SP_OK;
}

/* After something was put into the inbox, without its lock. */
void sp_reactor_ring(sp_reactor *reactor);

/* (ticket.c) What sp_notify() and sp_point_fd() share: takes it in. Flags: SP_TICKET_*. */
sp_status sp_ticket_open(sp_reactor *reactor, const sp_point *point, uint64_t timeout_ns,
                         const sp_reactor_ticket *with, sp_ticket *out);
/* Its slot and what is in it, if this is one of the reactor's. NULL: never given out. */
sp_reactor_ticket *sp_ticket_find(const sp_reactor *reactor, sp_ticket ticket, uint32_t *number);
uint64_t sp_ticket_generation(sp_ticket ticket);
/* As sp_cancel(), of a ticket that was found. */
sp_status sp_ticket_cancel(sp_reactor *reactor, uint32_t number, uint64_t generation);

static inline uint64_t sp_ticket_word(uint64_t generation, uint32_t state)
{
    return generation << SP_TICKET_STATE_BITS | state;
}

static inline uint64_t sp_ticket_generation_of(const sp_reactor_ticket *ticket)
{
    return sp_load64(&ticket->word) >> SP_TICKET_STATE_BITS;
}

static inline uint32_t sp_ticket_state(uint64_t word)
{
    return (uint32_t)word & ((1u << SP_TICKET_STATE_BITS) - 1);
}

/* The dispatcher's: a new one, one that another thread cancelled, those whose time is up. */
void sp_ticket_file(sp_reactor *reactor, uint32_t number);
void sp_ticket_take_back(sp_reactor *reactor, uint32_t number);
void sp_tickets_time_out(sp_reactor *reactor, uint64_t now_ns);
/* Asks what the ticket's point waits for now: files it there, or resolves it. */
void sp_ticket_advance(sp_reactor *reactor, uint32_t number);
/* Out of its heaps and into the list of those that are due, unless it was cancelled meanwhile. For an
 * error of the point's it is the last one. */
void sp_ticket_resolve(sp_reactor *reactor, uint32_t number, sp_status status);
/* Cancels all there are. */
void sp_tickets_cancel_all(sp_reactor *reactor);
/* Calls back for those that were due when it began. Tells how many. */
size_t sp_tickets_run_due(sp_reactor *reactor);

/* Frees the slot of one that was called back for, or keeps it until it is released. */
void sp_ticket_close_locked(sp_reactor *reactor, uint32_t number);

/* A status that was kept, as the last error. `failure` has SP_OK if the details were not. */
sp_status sp_ticket_fail_again(sp_status status, const sp_error *failure);
/* The end; and in the child of a fork(), before that, what refers to the parent's. */
void sp_tickets_fini(sp_reactor *reactor);
void sp_tickets_forget(sp_reactor *reactor);

/* (point_fd.c) */
int sp_point_fd_take(sp_reactor_ticket *ticket); /* the handle to raise; -1: it was taken before */
void sp_point_fd_raise(int fd);                  /* and closes it. -1: none */
void sp_point_fd_forget(sp_reactor_ticket *ticket);

/* (source.c) */
bool sp_sources_init(sp_source_table *table);
void sp_sources_fini(sp_source_table *table);
void sp_sources_forget(sp_reactor *reactor); /* in the child of a fork() */
/* Adds a ticket to the source of `leaf`. False: out of memory. */
bool sp_source_add(sp_reactor *reactor, const sp_point *leaf, uint32_t ticket);
void sp_source_drop(sp_reactor *reactor, uint32_t source, uint32_t ticket);
/* Resolves what is reached or has failed, and goes on with the others. False: there was none. */
bool sp_source_look(sp_reactor *reactor, uint32_t source);
/* One that was taken from the woken list. */
void sp_source_woken(sp_reactor *reactor, uint32_t source);

uint64_t sp_source_lowest(const sp_reactor *reactor, const sp_source *source);
void sp_ring_add(sp_reactor *reactor, sp_source_ring *ring, uint32_t source);
void sp_ring_remove(sp_reactor *reactor, sp_source_ring *ring, uint32_t source);

/* (watcher.c) Threads that wait in a driver. */
/* False: it has no group whose wait is any good, or that is full. */
bool sp_watchers_add(sp_reactor *reactor, uint32_t source);
void sp_watchers_remove(sp_reactor *reactor, uint32_t source);
void sp_watchers_changed(sp_reactor *reactor, uint32_t source); /* its lowest value             */
void sp_watchers_see_news(sp_reactor *reactor);
/* After it no thread is in the driver with a source that was closed. */
void sp_watchers_settle(sp_reactor *reactor);
/* Lets those go on that were told to pause, or have something new to wait for. */
void sp_watchers_resume(sp_reactor *reactor);
void sp_watchers_end(sp_reactor *reactor);
void sp_watchers_forget(sp_reactor *reactor); /* in the child of a fork() */

/* (poll.c) */
void sp_poller_add(sp_reactor *reactor, uint32_t source);
void sp_poller_remove(sp_reactor *reactor, uint32_t source);
void sp_poller_run(sp_reactor *reactor, uint64_t now_ns);

#endif
