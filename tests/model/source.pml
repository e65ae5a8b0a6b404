/* SPDX-License-Identifier: MIT
 *
 * How a reactor learns that a primitive is reached: src/async/source.c, against a primitive whose
 * signaller calls wakers with its own lock held (src/core/watch.c, host.c).
 *
 * One software timeline is signalled to 1, then to 2. Tickets wait for these values, one of them
 * for both, one after the other, as a chain does; some go early, as cancelled ones do and those
 * that are out of time. The reactor may end at any moment: signalling is no call of the reactor, so
 * nothing keeps it from running then. A step stands for what the function in its comment does
 * between two moments at which another thread can see or change something.
 *
 * Left out: sources that are polled, or have a descriptor: no other thread touches anything of
 * theirs; and those that a watcher waits for (watcher.pml).
 *
 * What is shown:
 *   - a ticket whose value is reached is resolved, though nobody looks but when woken;
 *   - a source is in the woken list once, and its slot is not used again before it is out of it;
 *   - no signaller touches a source that is closed, or a reactor that is freed;
 *   - wakers are left and taken back in turn; at the end all slots are free.
 *
 * Each switch WRONG_* does one step wrong; meson.build names them with what they break.
 */

#define SLOTS 3
#define TICKETS 3
#define LAST_VALUE 2

/* sp_source. Number 0 is none. `next` and `is_woken` are under the inbox's lock. */
byte next[SLOTS + 1];
bool is_woken[SLOTS + 1];
bool is_over[SLOTS + 1];
bool is_armed[SLOTS + 1];
bool is_looking[SLOTS + 1];

/* sp_inbox */
byte woken;
bool ending;

/* The dispatcher's. A ticket's values, 0: none; the source that it is in. */
byte table, free_list, batch;
byte ticket_value[TICKETS];
byte ticket_then[TICKETS];
byte source_of[TICKETS];

/* Witnesses. */
#define NOTHING 0
#define FREE 1
#define WOKEN 2
byte use_of_next[SLOTS + 1];
bool is_open[SLOTS + 1];
bool is_new[TICKETS];
bool goes_early[TICKETS];
bool is_done[TICKETS];
bool is_joined, is_freed;

#include "source_primitive.pml"

/* ---- Watching ---- */

/* disarm(), sp_watch_disarm() */
inline disarm(number)
{
    if
    :: is_armed[number] ->
        LOCK;
        assert(is_left[number]);
        is_left[number] = false;
        waker_value[number] = 0;
        is_armed[number] = false;
        UNLOCK
    :: else
    fi
}

#define WAITS_IN(ticket, number) (source_of[ticket] == number)
#define HAS_TICKETS(number) (WAITS_IN(0, number) || WAITS_IN(1, number) || WAITS_IN(2, number))

/* The heap's root: one with the lowest value. */
inline find_lowest(number)
{
    d_step {
        first = TICKETS;
        scan = 0;
        do
        :: scan == TICKETS -> break
        :: scan < TICKETS && WAITS_IN(scan, number) &&
           (first == TICKETS || ticket_value[scan] < ticket_value[first]) ->
            first = scan;
            scan++
        :: else -> scan++
        od;
        scan = 0
    }
}

/* watch(), arm(), sp_watch_arm() */
inline watch(number)
{
    disarm(number);
    LOCK;
    find_lowest(number);
    assert(!is_left[number]);
    is_left[number] = true;
    waker_value[number] = ticket_value[first];
#ifndef WRONG_ARM_UNCHECKED
    if
    :: value >= ticket_value[first] -> wake(number)
    :: else
    fi;
#endif
    first = 0;
    is_armed[number] = true;
    UNLOCK
}

/* ---- Life ---- */

/* sp_slab_put() */
inline put(number)
{
    d_step {
        assert(use_of_next[number] == NOTHING && !is_open[number] && !is_woken[number]);
        is_over[number] = false;
        next[number] = free_list;
        free_list = number;
        use_of_next[number] = FREE
    }
}

/* open_source() */
inline open_source()
{
    d_step {
        table = free_list;
        assert(table && use_of_next[table] == FREE);
        free_list = next[table];
        next[table] = 0;
        use_of_next[table] = NOTHING;
        is_open[table] = true
    }
}

/* close_source() */
inline close_source(number)
{
#ifdef WRONG_OVER_FIRST
    is_over[number] = is_woken[number];
#endif
#ifndef WRONG_STAYS_ARMED
    disarm(number);
#endif
    d_step {
        is_open[number] = false;
        table = 0;
#ifndef WRONG_OVER_FIRST
        is_over[number] = is_woken[number]
#endif
    };
    if
#ifdef WRONG_PUT_WHILE_WOKEN
    :: true -> put(number)
#else
    :: !is_over[number] -> put(number)
    :: else
#endif
    fi
}

/* sp_source_add() */
inline add(ticket)
{
    if
    :: table == 0 -> open_source()
    :: else
    fi;
    source_of[ticket] = table;
    find_lowest(table);
    if
    :: ticket_value[first] == ticket_value[ticket] && !is_looking[table] -> watch(table)
    :: else -> first = 0
    fi
}

/* sp_source_drop() */
inline drop(ticket)
{
    number = source_of[ticket];
    source_of[ticket] = 0;
    if
    :: !HAS_TICKETS(number) && !is_looking[number] -> close_source(number)
    :: else
    fi;
    number = 0
}

/* ---- Looking ---- */

/* sp_ticket_advance(): what it waits for now; done, or in a source. */
inline advance(ticket)
{
    do
    :: value < ticket_value[ticket] -> add(ticket); break
    :: value >= ticket_value[ticket] && ticket_then[ticket] ->
        ticket_value[ticket] = ticket_then[ticket];
        ticket_then[ticket] = 0
    :: value >= ticket_value[ticket] && ticket_then[ticket] == 0 -> is_done[ticket] = true; break
    od
}

/* sp_source_look(): takes a ticket out, then resolves it or lets it go on. */
inline look(at)
{
    is_looking[at] = true;
    do
    :: HAS_TICKETS(at) ->
        find_lowest(at);
        if
        :: value < ticket_value[first] -> break
        :: value >= ticket_value[first] ->
            ticket = first;
            first = 0;
            drop(ticket);
            advance(ticket);
            ticket = 0
        fi
    :: else -> break
    od;
    first = 0;
    is_looking[at] = false;
    if
    :: HAS_TICKETS(at) -> watch(at)
    :: else -> close_source(at)
    fi
}

/* sp_source_woken() */
inline source_woken(at)
{
#ifndef WRONG_CLEARED_LATE
    is_woken[at] = false;
#endif
    if
    :: is_over[at] -> put(at)
    :: else -> look(at)
    fi;
#ifdef WRONG_CLEARED_LATE
    is_woken[at] = false;
#endif
}

/* take() */
inline take()
{
    d_step {
        batch = woken;
        woken = 0
    }
}

/* see_woken() */
inline see_woken()
{
    do
    :: batch ->
        d_step {
            at = batch;
            batch = next[at];
            assert(use_of_next[at] == WOKEN);
            use_of_next[at] = NOTHING;
            next[at] = 0
        };
        source_woken(at);
        at = 0
    :: else -> break
    od
}

/* sp_ticket_file(), and detach() of one that is cancelled or out of time. */
inline file(which)
{
    is_new[which] = false;
    advance(which)
}

inline detach(which)
{
    if
    :: source_of[which] -> drop(which)
    :: else
    fi;
    is_done[which] = true
}

#define CAN_GO(ticket) (source_of[ticket] && goes_early[ticket])

/* turn(), run_thread(), cancel_all() */
proctype dispatcher()
{
    byte at, number, ticket, first, scan;
    bool rings;
    do
    :: !ending && woken -> take(); see_woken()
    :: !ending && is_new[0] -> file(0)
    :: !ending && is_new[1] -> file(1)
    :: !ending && is_new[2] -> file(2)
    :: !ending && CAN_GO(0) -> detach(0)
    :: !ending && CAN_GO(1) -> detach(1)
    :: !ending && CAN_GO(2) -> detach(2)
    :: ending -> break
    od;
    take();
    detach(0);
    detach(1);
    detach(2);
    /* The code frees the slab as a whole. Here each is put back, so that the end can count them. */
    see_woken();
    take();
    see_woken();
    is_joined = true
}

/* ---- The end ---- */

#define IS_RIGHT(ticket) (is_done[ticket] || ticket_value[ticket] > value)
#define IS_FREE(number) (use_of_next[number] == FREE)

init
{
    bool waits;
    d_step {
        free_list = 1;
        next[1] = 2;
        next[2] = 3;
        use_of_next[1] = FREE;
        use_of_next[2] = FREE;
        use_of_next[3] = FREE;
        is_new[0] = true;
        is_new[1] = true;
        is_new[2] = true;
        ticket_value[0] = 1;
        ticket_value[1] = 2;
        ticket_value[2] = 1;
        ticket_then[2] = 2
    };
    atomic {
        if
        :: goes_early[0] = true
        :: skip
        fi;
        if
        :: goes_early[1] = true
        :: skip
        fi;
        if
        :: goes_early[2] = true
        :: skip
        fi;
        if
        :: waits = true
        :: skip
        fi;
        run dispatcher();
        run signaller()
    };
    if
    :: waits -> timeout; assert(IS_RIGHT(0) && IS_RIGHT(1) && IS_RIGHT(2))
    :: else
    fi;
    ending = true;   /* say_ending() */
    is_joined;       /* sp_os_thread_join() */
    is_freed = true; /* free_reactor() */
    assert(IS_FREE(1) && IS_FREE(2) && IS_FREE(3))
}
