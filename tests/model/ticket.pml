/* SPDX-License-Identifier: MIT
 *
 * The life of tickets: src/async/ticket.c and point_fd.c, and what turns them in reactor.c.
 *
 * Two threads and the callbacks notify, cancel and release as they like; the dispatcher turns; one
 * thread destroys the reactor once the others are through, as the contract asks for. A step stands
 * for what the function in its comment does between two moments at which another thread can see or
 * change something. What is done under the inbox's lock is one step: all of it is looked at under
 * that lock only, but for a slot's word, and of that each such section writes one, once.
 *
 * Left out: that the dispatcher is woken (wake.pml), and how it learns what is reached
 * (source.pml). Here it turns when there is something to do, and finds a ticket that `reaches` to
 * be reached, or out of time, at any moment after it was filed.
 *
 * What is shown:
 *   - each ticket is called back once, with CANCELLED if and only if sp_cancel(), a release or the
 *     end won it; even without the end, if it was cancelled or reached;
 *   - sp_cancel() says PENDING only of a ticket that has another result, or was called back before;
 *   - no link is used for two lists at a time; a slot is not used again before it is out of all of
 *     them and its callback has returned; what comes late for one ticket does nothing to the next;
 *   - a handle is raised; who sees that has its status, until the ticket is released, and is freed
 *     then, once;
 *   - the end comes, and leaves nothing behind.
 *
 * Each switch WRONG_* does one step wrong; meson.build names them with what they break.
 */

#define SLOTS 2
#ifndef TICKETS
#define TICKETS 3 /* given out in all: slots are used again */
#endif
#define THREADS 2
#define THREAD_ACTS 2
#ifndef OTHER_ACTS
#define OTHER_ACTS 1 /* of the other thread */
#endif
#ifndef CALLBACK_ACTS
#define CALLBACK_ACTS 2
#endif

#include "ticket_state.pml"

/* A step done wrong: in two. */
#define IN_TWO }; d_step {
#ifdef WRONG_RESOLVE_STORES
#define RESOLVE_SPLIT IN_TWO
#else
#define RESOLVE_SPLIT
#endif

#include "ticket_calls.pml"

/* ---- The dispatcher ---- */

/* append() to those that are due */
inline append(number)
{
    assert(use_of_next[number] == NOTHING);
    use_of_next[number] = DUE;
    next[number] = 0;
    if
    :: due_last -> next[due_last] = number
    :: else -> due_first = number
    fi;
    due_last = number
}

/* detach(), and the place of the failure, which its node was in. */
inline detach(number)
{
    if
    :: filed[number] ->
        assert(use_of_u[number] == HEAP);
        filed[number] = 0;
        use_of_u[number] = NOTHING
    :: else
    fi
}

inline keep_failure(number)
{
    assert(use_of_u[number] == NOTHING);
    use_of_u[number] = FAILURE;
    u[number] = 0
}

/* sp_ticket_resolve() */
inline resolve(number)
{
    d_step {
        detach(number);
        won = IS_PENDING(number, GENERATION(word[number]));
        RESOLVE_SPLIT
        if
        :: won ->
            word[number] = WORD(GENERATION(word[number]), SP_TICKET_CALLING);
            resolved[holder[number]] = 1
        :: else
        fi;
#ifdef WRONG_RESOLVES_CANCELLED
        won = true;
#endif
        if
        :: won ->
            keep_failure(number);
            append(number)
        :: else
        fi;
        won = false
    }
}

/* sp_ticket_take_back() */
inline take_back(number)
{
    detach(number);
#ifdef WRONG_CANCELLED_IS_CALLING
    word[number] = WORD(GENERATION(word[number]), SP_TICKET_CALLING);
#endif
    status_cancelled[number] = 1;
    keep_failure(number);
    append(number)
}

/* take() */
inline take()
{
    d_step {
        batch_intake = intake_first;
        batch_cancelled = cancelled;
        intake_first = 0;
        intake_last = 0;
        cancelled = 0
    }
}

/* see_cancelled(): no other thread sees what it does. */
inline see_cancelled()
{
    d_step {
        do
        :: batch_cancelled ->
            n = batch_cancelled;
            batch_cancelled = next[n];
            assert(use_of_next[n] == CANCELLED);
            use_of_next[n] = NOTHING;
            take_back(n)
        :: else -> break
        od;
        n = 0
    }
}

/* see_intake(), sp_ticket_file(), sp_ticket_advance() */
inline see_intake()
{
    do
    :: batch_intake ->
        d_step {
            n = batch_intake;
            batch_intake = u[n];
            assert(use_of_u[n] == INTAKE);
            use_of_u[n] = NOTHING;
            u[n] = 0;
            if
            :: STATE(word[n]) == SP_TICKET_PENDING ->
                filed[n] = 1;
                use_of_u[n] = HEAP
            :: else
            fi
        };
        if
        :: filed[n] && reaches[holder[n]] -> resolve(n)
        :: true
        fi;
        n = 0
    :: else -> break
    od
}

#define IS_REACHED(number) (filed[number] && reaches[holder[number]])
#define ONE_IS_REACHED (IS_REACHED(1) || IS_REACHED(2))

/* see_woken(), sp_poller_run(), sp_tickets_time_out() */
inline see_reached()
{
    do
    :: IS_REACHED(1) -> resolve(1)
    :: IS_REACHED(2) -> resolve(2)
    :: break
    od
}

/* call_back(): user code for sp_notify(), none for a handle. */
inline call_back(number)
{
    d_step {
        assert(!called[holder[number]]);
        called[holder[number]] = 1;
        assert(status_cancelled[number] == granted[holder[number]]);
        assert(granted[holder[number]] != resolved[holder[number]])
    };
    do
    :: acts < CALLBACK_ACTS && !kept[holder[number]] -> acts++; act()
    :: acts == CALLBACK_ACTS || kept[holder[number]] -> break
    od;
    acts = 0;
    returned[holder[number]] = 1
}

inline close(number)
{
    d_step {
        assert(use_of_next[number] == DUE);
        use_of_next[number] = NOTHING;
        close_locked(number)
    }
}

/* sp_point_fd_raise(), of what sp_point_fd_take() gave before. */
inline raise()
{
    if
    :: fd -> raised[fd - 1] = 1; fd = 0
    :: else
    fi
}

/* sp_tickets_run_due(), run_one() */
inline run_due()
{
    number = due_first;
    d_step {
        due_first = 0;
        due_last = 0
    };
    do
    :: number ->
#ifndef WRONG_LATE_NEXT
        next_due = next[number];
#endif
        fd = (kept[holder[number]] -> holder[number] + 1 : 0);
#ifdef WRONG_FREE_FIRST
        close(number);
#endif
        call_back(number);
#ifdef WRONG_RAISE_FIRST
        raise();
#endif
#ifndef WRONG_FREE_FIRST
        close(number);
#endif
        raise();
#ifdef WRONG_LATE_NEXT
        next_due = next[number];
#endif
        number = next_due;
        next_due = 0
    :: else -> break
    od
}

/* turn() */
inline turn()
{
    take();
#ifdef WRONG_CANCELLED_FIRST
    see_cancelled();
#endif
    see_intake();
#ifndef WRONG_CANCELLED_FIRST
    see_cancelled();
#endif
    see_reached();
    run_due()
}

/* sp_tickets_cancel_all() */
inline cancel_pending(number)
{
    d_step {
        if
        :: STATE(word[number]) == SP_TICKET_PENDING ->
            word[number] = WORD(GENERATION(word[number]), SP_TICKET_CANCELLED);
            granted[holder[number]] = 1;
            take_back(number)
        :: else
        fi
    }
}

/* What is in the intake is found by its slot: nobody follows its links any more. */
inline drop_intake()
{
    d_step {
        do
        :: batch_intake ->
            n = batch_intake;
            batch_intake = u[n];
            use_of_u[n] = NOTHING;
            u[n] = 0
        :: else -> break
        od;
        n = 0
    }
}

/* cancel_all() */
inline cancel_all()
{
    take();
    drop_intake();
#ifndef WRONG_END_DROPS_CANCELLED
    see_cancelled();
#endif
    cancel_pending(1);
    cancel_pending(2);
    run_due()
}

/* run_thread(); of sp_reactor_dispatch() and end_here() the steps are the same. */
proctype dispatcher()
{
    byte n, k, acts, number, next_due, fd;
    bool won, found;
    do
    :: !ending && (intake_first || cancelled || ONE_IS_REACHED) -> turn()
    :: ending -> break
    od;
    cancel_all();
    is_over = true
}

/* ---- The end ---- */

inline check_all_is_done()
{
    d_step {
        do
        :: k < given ->
            assert((granted[k] || reaches[k]) -> returned[k] : true);
            assert(kept[k] -> raised[k] == returned[k] : true);
            k++
        :: else -> break
        od;
        k = 0
    }
}

inline check_nothing_is_left()
{
    d_step {
        do
        :: k < given ->
            assert(returned[k] && raised[k] == kept[k]);
            k++
        :: else -> break
        od;
        k = 0;
        do
        :: k < SLOTS ->
            k++;
            assert(use_of_next[k] == FREE || STATE(word[k]) == SP_TICKET_DONE);
            assert(STATE(word[k]) == SP_TICKET_DONE -> !released[holder[k]] : true)
        :: else -> break
        od
    }
}

/* sp_reactor_destroy(), after all other calls; or first, once nothing happens any more, a look
 * whether all is done that needs no end. */
init
{
    byte k;
    bool waits;
    d_step {
        next[1] = 2;
        free_list = 1;
        use_of_next[1] = FREE;
        use_of_next[2] = FREE
    };
    atomic {
        run dispatcher();
        run thread(THREAD_ACTS);
        run thread(OTHER_ACTS)
    };
    threads_over == THREADS;
    if
    :: waits = true
    :: skip
    fi;
    if
    :: waits -> timeout; check_all_is_done()
    :: else
    fi;
    ending = true; /* say_ending() */
    is_over;       /* sp_os_thread_join() */
    check_nothing_is_left()
}
