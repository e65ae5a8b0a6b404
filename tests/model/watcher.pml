/* SPDX-License-Identifier: MIT
 *
 * A watcher: src/async/watcher.c, one thread that waits in a driver for any of some timelines and
 * for a bell, with what sources and turns do about it (source.c, reactor.c).
 *
 * Two sources: tickets wait for 1 and for 2 of one, for 1 of the other. The device counts up;
 * tickets come, and some go early, as cancelled ones do and those that are out of time; one thread
 * ends the reactor. What is done under the watcher's lock is one step, since all of it is looked at
 * under that lock only; a wait for `changed` ends one step and begins another.
 *
 * What is shown:
 *   - a ticket whose value is reached is resolved, though nobody looks but after news, and though
 *     no slice in the driver need ever end by itself;
 *   - when somebody is called back, no list that still exists has a source that was closed;
 *   - no list is freed while the thread is in the driver with it, nor twice; in the end all are;
 *   - news are not in vain while the driver's wait is good: a watcher is not given up for nothing;
 *   - nobody waits for ever for the thread to come out, and the end comes.
 *
 * Each switch WRONG_* does one step wrong; meson.build names them with what they break.
 */

#define LISTS 3  /* that are there at a time, at the most */
#define SLICES 1 /* that end by themselves */

/* The device, and the bell. */
byte counter1, counter2, bell;

/* Sources: the tickets that are in them, a bit for each value. */
byte tickets1, tickets2;
bool is_open1, is_open2;
#define LOWEST1 ((tickets1 & 1) -> 1 : 2)

/* sp_watcher: the dispatcher's; */
bool is_stale, has_closed, given_up;
/* under the lock. Number 0 is none. */
byte list, in_driver, rung;
bool has_news, is_broken, ending;

/* watch_list */
bool is_made[LISTS + 1];
byte value0[LISTS + 1]; /* the bell's */
byte value1[LISTS + 1]; /* 0: not in it */
byte value2[LISTS + 1];

/* sp_inbox */
bool inbox_has_news;

/* sp_os_cond: who waits for `changed`. */
bool thread_waits, dispatcher_waits;

/* Witnesses. */
byte new1 = 3, new2 = 1; /* tickets to come */
byte early1;             /* those that go early */
bool wants_end, is_joined, is_over;

/* ---- Steps done wrong ---- */

#ifdef WRONG_BELL_TOO_LOW
#define NEXT_BELL rung
#else
#define NEXT_BELL (rung + 1)
#endif
#ifdef WRONG_FREES_IN_DRIVER
#define IS_OURS true
#else
#define IS_OURS (list != in_driver)
#endif
#ifdef WRONG_SETTLES_IN_PASSING
#define SETTLE_WAITS false
#else
#define SETTLE_WAITS true
#endif
#ifdef WRONG_OLD_NEWS_COUNT
#define IS_RIGHT true
#else
#define IS_RIGHT (!is_stale && !has_closed)
#endif

#include "watcher_thread.pml"

/* ---- Telling the thread ---- */

/* While there is no list the bell's value is all one: keeps the states few. */
inline begin_again()
{
    if
    :: !is_made[1] && !is_made[2] && !is_made[3] -> d_step { rung = 0; bell = 0 }
    :: else
    fi
}

/* replace_list() */
inline replace_list(with, waits)
{
    d_step {
        old = (IS_OURS -> list : 0);
        must_ring = in_driver != 0;
        list = with;
#ifndef WRONG_NEWS_KEPT
        has_news = false;
#endif
        rung = (must_ring -> rung + 1 : rung);
        value0[with] = (with -> NEXT_BELL : 0);
        broadcast();
        assert(old == 0 || old != in_driver);
        free_list(old);
        old = 0
    };
    if
    :: must_ring ->
#ifndef WRONG_NO_BELL
        bell = rung;
#endif
        must_ring = false
    :: else
    fi;
    do
    :: atomic { waits && in_driver -> dispatcher_waits = true };
        !dispatcher_waits
    :: !waits || in_driver == 0 -> break
    od;
    begin_again()
}

/* end_thread() */
inline end_thread()
{
    replace_list(0, true);
    d_step {
        ending = true;
        broadcast()
    };
    is_joined
}

/* give_up(): its sources are polled from now on. */
inline give_up()
{
    end_thread();
    given_up = true
}

/* ---- What the dispatcher does ---- */

/* close_source(), sp_watchers_remove() */
inline close_source(is_open)
{
    is_open = false;
    has_closed = !given_up
}

/* sp_source_look(), then watch() with sp_watchers_changed() */
inline look_at_all()
{
    d_step {
        if
        :: is_open1 && counter1 >= LOWEST1 ->
            found = true;
            tickets1 = (counter1 >= 2 -> 0 : tickets1 & 2)
        :: else
        fi;
        if
        :: is_open2 && counter2 >= 1 ->
            found = true;
            tickets2 = 0
        :: else
        fi;
        if
        :: is_open1 && !tickets1 -> close_source(is_open1)
        :: else
        fi;
        if
        :: is_open2 && !tickets2 -> close_source(is_open2)
        :: else
        fi;
        is_stale = true
    }
}

/* sp_watchers_see_news(), see_news(). A driver whose wait is broken may say anything; else news are
 * in vain only if the list was not what is waited for any more. */
inline see_news()
{
    d_step {
        has_seen = has_news;
        has_lied = is_broken;
        is_right = IS_RIGHT
    };
    if
    :: has_seen ->
        look_at_all();
        assert(found || has_lied || !is_right);
        if
        :: has_lied -> give_up()
        :: else
        fi
    :: else
    fi;
    d_step {
        found = false;
        has_seen = false;
        has_lied = false;
        is_right = false
    }
}

/* sp_ticket_advance(), sp_source_add(), sp_watchers_add() */
inline file1(value)
{
    d_step {
        new1 = new1 & ~value;
        if
        :: counter1 < value ->
            is_stale = is_stale || !is_open1 || value < LOWEST1;
            is_open1 = true;
            tickets1 = tickets1 | value
        :: else
        fi
    }
}

inline file2()
{
    d_step {
        new2 = 0;
        if
        :: counter2 < 1 ->
            is_stale = true;
            is_open2 = true;
            tickets2 = 1
        :: else
        fi
    }
}

/* sp_source_drop() */
inline drop1(value)
{
    d_step {
#ifndef WRONG_NOT_RENEWED
        is_stale = is_stale || LOWEST1 == value;
#endif
        tickets1 = tickets1 & ~value;
        if
        :: !tickets1 -> close_source(is_open1)
        :: else
        fi
    }
}

/* sp_watchers_settle() */
#ifdef WRONG_NOT_SETTLED
#define MUST_SETTLE false
#else
#define MUST_SETTLE (has_closed && !given_up)
#endif

inline settle()
{
    d_step {
        must_settle = MUST_SETTLE;
        is_stale = is_stale || has_closed;
        has_closed = false
    };
    if
    :: must_settle ->
        must_settle = false;
        replace_list(0, SETTLE_WAITS)
    :: else
    fi
}

#define HAS_CLOSED(which) ((value1[which] && !is_open1) || (value2[which] && !is_open2))

/* sp_tickets_run_due(): who is called may end what was closed. */
inline run_due()
{
    assert(!HAS_CLOSED(1) && !HAS_CLOSED(2) && !HAS_CLOSED(3))
}

/* sp_watchers_resume(), resume() */
inline resume()
{
    if
    :: is_stale && !given_up && (is_open1 || is_open2) -> make_list()
    :: else -> is_stale = false
    fi
}

#define IS_EARLY (tickets1 & early1)
#define IS_REACHED ((tickets1 && counter1 >= LOWEST1) || (tickets2 && counter2 >= 1))

/* turn(), cancel_all(). What comes and goes does so at one moment: the thread sees none of it. */
proctype dispatcher()
{
    byte old, made;
    bool news, must_ring, found, has_seen, has_lied, is_right, must_settle;
    do
    :: atomic {
        !wants_end && (inbox_has_news || new1 || new2 || IS_EARLY || (given_up && IS_REACHED)) ->
            news = inbox_has_news;
            inbox_has_news = false;
            do
            :: new1 & 1 -> file1(1)
            :: new1 & 2 -> file1(2)
            :: new2 -> file2()
            :: break
            od;
            do
            :: tickets1 & early1 & 1 -> drop1(1)
            :: tickets1 & early1 & 2 -> drop1(2)
            :: break
            od
    };
        if
        :: news -> news = false; see_news()
        :: else
        fi;
        if
        :: given_up -> look_at_all(); found = false
        :: else
        fi;
        settle();
        atomic {
            run_due();
            resume()
        };
        if
        :: made -> replace_list(made, false); made = 0
        :: else
        fi
    :: wants_end -> break
    od;
    skip;
    d_step {
        tickets1 = 0;
        tickets2 = 0;
        is_open1 = false;
        is_open2 = false
    };
    if
    :: !given_up -> end_thread() /* sp_watchers_end() */
    :: else
    fi;
    run_due();
    is_over = true
}

/* ---- The rest of the world ---- */

/* Counts up, and may stop before all that is waited for is reached. */
proctype device()
{
    do
    :: counter1 < 2 -> counter1++
    :: counter2 < 1 -> counter2++
    :: break
    od
}

init
{
    bool waits;
    atomic {
        if
        :: early1 = 1
        :: early1 = 2
        :: skip
        fi;
        if
        :: waits = true
        :: skip
        fi;
        run thread();
        run dispatcher();
        run device()
    };
    if
    :: waits -> timeout; assert(!new1 && !new2 && !IS_REACHED)
    :: else
    fi;
    wants_end = true;
    is_over;
    assert(!is_made[1] && !is_made[2] && !is_made[3])
}
