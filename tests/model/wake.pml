/* SPDX-License-Identifier: MIT
 *
 * How the dispatcher is woken: src/async/reactor.c over the alarm of src/os/alarm_linux.c. With
 * -DLOOP for SP_REACTOR_LOOP, where the user's loop waits for the handle.
 *
 * Two threads put things into the inbox and ring, and so do callbacks; deadlines pass; one thread
 * ends the reactor. A step stands for what the function in its comment does between two moments at
 * which another thread can see or change something.
 *
 * `sleeping` is stored with release order and loaded with acquire order, which is less than one
 * order of all for everyone. So what the dispatcher stores lies in `late` for as long as the
 * machine likes, at the most until the dispatcher gives a lock back; and a thread may load it as
 * early as while it still holds the inbox's lock. A compare-and-swap works on what is there.
 *
 * Left out: descriptors that the alarm rings for as well; it does as long as they are readable.
 *
 * What is shown:
 *   - nothing stays in the inbox, and no deadline unseen, while the dispatcher sleeps for good or,
 *     in a loop, while the handle is not readable;
 *   - the dispatcher does not turn for ever: what happens is counted, so no state comes twice;
 *   - the end comes.
 *
 * Each switch WRONG_* does one step wrong; meson.build names them with what they break.
 */

#define THREADS 2
#define CALLBACK_PUTS 1 /* of all callbacks; the two threads put twice and once */
#ifndef DEADLINES
#define DEADLINES 2 /* that pass: of tickets, or the poller's */
#endif
#define CALLS 1         /* of sp_reactor_dispatch() though the handle is not readable */

/* sp_inbox: whether there is something in its lists. */
bool inbox;
bool ending;
bool lock;
bit sleeping;

/* Stored in `sleeping`, but not seen by others yet: in this order. NO is none. */
#define NO 2
byte late = NO;
byte later = NO;

/* sp_os_alarm: its eventfd, and whether its timer has run out. */
bit event;
bit timer;
bool is_set; /* to the next deadline */
bool is_due; /* which has passed */
#define IS_READABLE (event || timer)

/* Witnesses. */
byte callback_puts, deadlines, threads_over;
bool is_made, is_over;

/* ---- Steps done wrong ---- */

#ifdef WRONG_END_NOT_SEEN
#define IS_EMPTY (!inbox)
#else
#define IS_EMPTY (!inbox && !ending)
#endif
#ifdef WRONG_NO_RING
#define RING skip
#else
#define RING event = 1 /* sp_os_alarm_ring() */
#endif

#define LOCK                                                                                       \
    atomic                                                                                         \
    {                                                                                              \
        !lock;                                                                                     \
        lock = true                                                                                \
    }

/* ---- Any thread ---- */

/* sp_reactor_ring(), after its load. */
inline ring_if_seen()
{
    if
    :: seen ->
        d_step {
            won = sleeping;
            sleeping = 0;
            seen = 0
        };
        if
        :: won -> RING; won = 0
        :: else
        fi
    :: else
    fi
}

/* sp_ticket_open(), sp_ticket_cancel(), wake(), tell(): under the lock; then sp_reactor_ring(). */
proctype thread(byte most)
{
    bit seen, won;
    bool is_early;
    byte puts;
    is_made;
    do
    :: puts < most ->
        puts++;
#ifdef WRONG_RINGS_FIRST
        seen = sleeping;
        ring_if_seen();
#endif
        LOCK;
        if
        :: seen = sleeping; is_early = true
        :: true
        fi;
        inbox = true;
        lock = false;
        if
        :: !is_early -> seen = sleeping
        :: else
        fi;
        is_early = false;
#ifdef WRONG_RINGS_FIRST
        seen = 0;
#endif
        ring_if_seen()
    :: puts == most -> break
    od;
    threads_over++
}

/* Time. */
proctype clock()
{
    do
    :: atomic {
        deadlines < DEADLINES && is_made ->
            deadlines++;
            is_due = true;
            timer = (is_set -> 1 : timer)
    }
    :: deadlines == DEADLINES -> break
    od
}

/* ---- The dispatcher ---- */

inline store_sleeping(with)
{
    d_step {
        if
        :: late == NO -> late = with
        :: else ->
            assert(later == NO);
            later = with
        fi
    }
}

inline let_see()
{
    sleeping = late;
    late = later;
    later = NO
}

/* The machine. */
proctype store_buffer()
{
end:
    do
    :: d_step { late != NO -> let_see() }
    od
}

inline unlock()
{
    d_step {
        do
        :: late != NO -> let_see()
        :: else -> break
        od;
        lock = false
    }
}

/* inbox_is_empty() */
inline look()
{
#if defined(WRONG_NO_SECOND_LOOK)
    is_empty = true;
#elif defined(WRONG_LOOKS_UNLOCKED)
    is_empty = IS_EMPTY;
#else
    LOCK;
    is_empty = IS_EMPTY;
    unlock();
#endif
}

/* sp_os_alarm_set(): takes back that the timer has run out, if that was for another deadline. */
inline alarm_set()
{
    d_step {
        is_set = true;
#ifdef WRONG_TIMER_NOT_SET
        timer = (is_due -> 1 : timer)
#else
        timer = is_due
#endif
    }
}

/* prepare_sleep() */
inline prepare_sleep()
{
    alarm_set();
#ifdef WRONG_LOOKS_FIRST
    look();
    store_sleeping(1);
#else
    store_sleeping(1);
    look();
#endif
}

/* sp_os_alarm_wait(): if there is nothing to do it sleeps; then takes what has rung. In a loop it
 * may also have slept long enough. */
inline alarm_wait()
{
#ifdef WRONG_TAKEN_EARLY
    event = 0;
#endif
    if
    :: is_empty && IS_READABLE
#ifdef LOOP
    :: is_empty && calls < CALLS -> calls++
#endif
    :: !is_empty
    fi;
    is_empty = false;
#ifndef WRONG_NOT_TAKEN
    if
    :: event -> event = 0
    :: else
    fi;
#endif
}

/* hear() */
inline hear()
{
    alarm_wait();
    store_sleeping(0)
}

/* sleep_until() */
inline sleep_until()
{
    prepare_sleep();
    hear()
}

/* turn(): take(); what is due; callbacks, which put something in and ring. */
inline turn()
{
    LOCK;
    inbox = false;
    unlock();
    is_set = false;
    is_due = false;
    if
    :: callback_puts < CALLBACK_PUTS ->
        callback_puts++;
        LOCK;
        inbox = true;
        unlock();
        seen = sleeping;
        ring_if_seen()
    :: true
    fi
}

#ifndef LOOP

/* run_thread() */
proctype dispatcher()
{
    bit seen, won;
    bool is_empty;
    is_made = true;
    do
    :: !ending -> turn(); sleep_until()
    :: ending -> break
    od;
    is_over = true
}

#else

bool wants_end;

/* sp_reactor_dispatch(), dispatch_until(): until something was called back, or it is late. */
inline dispatch()
{
    hear();
    turn();
    do
    :: break
    :: calls < CALLS -> sleep_until(); turn()
    od;
    prepare_sleep();
#ifndef WRONG_LEAVES_QUIETLY
    if
    :: !is_empty -> seen = sleeping; ring_if_seen()
    :: else
    fi;
#endif
    is_empty = false
}

/* start(); then the user's loop, which may also call when there is nothing to dispatch. */
proctype dispatcher()
{
    bit seen, won;
    bool is_empty;
    byte calls;
    prepare_sleep();
    is_empty = false;
    is_made = true;
    do
    :: IS_READABLE -> dispatch()
    :: calls < CALLS -> calls++; dispatch()
    :: wants_end -> break
    od;
    ending = true;
    is_over = true
}

#endif

/* ---- The end ---- */

/* sp_reactor_destroy(); or first, once nothing happens any more, a look whether all was seen. */
init
{
    bit seen, won;
    bool waits;
    atomic {
        if
        :: waits = true
        :: skip
        fi;
        run dispatcher();
        run store_buffer();
        run clock();
        run thread(2);
        run thread(1)
    };
    threads_over == THREADS;
    if
    :: waits -> timeout; assert(!inbox && !is_due)
    :: else
    fi;
#ifdef LOOP
    wants_end = true;
#else
    LOCK;
    ending = true; /* say_ending() */
    lock = false;
    seen = sleeping;
    ring_if_seen();
#endif
    is_over /* sp_os_thread_join() */
}
