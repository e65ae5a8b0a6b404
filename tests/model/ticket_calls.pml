/* SPDX-License-Identifier: MIT
 *
 * Part of ticket.pml: what any thread may call, of src/async/ticket.c and point_fd.c.
 */

/* ---- Steps done wrong ---- */

#ifdef WRONG_CANCEL_STORES
#define CANCEL_SPLIT IN_TWO
#else
#define CANCEL_SPLIT
#endif
#ifdef WRONG_RELEASE_UNLOCKED
#define RELEASE_SPLIT IN_TWO
#else
#define RELEASE_SPLIT
#endif
#ifdef WRONG_NO_GENERATION
#define IS_PENDING(number, generation) (STATE(word[number]) == SP_TICKET_PENDING)
#else
#define IS_PENDING(number, generation) (word[number] == WORD(generation, SP_TICKET_PENDING))
#endif
#ifdef WRONG_ONE_LOOK
#define IS_CANCELLED(number, generation) false
#else
#define IS_CANCELLED(number, generation) (word[number] == WORD(generation, SP_TICKET_CANCELLED))
#endif
#ifdef WRONG_SAME_GENERATION
#define NEXT_GENERATION(number) GENERATION(word[number])
#else
#define NEXT_GENERATION(number) (GENERATION(word[number]) + 1)
#endif
#ifdef WRONG_RELEASE_IGNORED
#define IS_KEPT(number) (flags[number] & SP_TICKET_KEPT)
#else
#define IS_KEPT(number) (flags[number] == SP_TICKET_KEPT)
#endif
#ifdef WRONG_ENDING_IGNORED
#define IS_REFUSED false
#else
#define IS_REFUSED ending
#endif

/* ---- Calls ---- */

/* open_locked(), for sp_notify() or with SP_TICKET_KEPT for sp_point_fd(). The slab does not grow
 * here: that is one more OUT_OF_MEMORY. */
inline open(with_flags)
{
    atomic {
        n = free_list;
        if
        :: IS_REFUSED || n == 0 || given == TICKETS
        :: else ->
            if
            :: reaches[given] = 1
            :: skip
            fi;
            d_step {
                assert(use_of_next[n] == FREE && use_of_u[n] == NOTHING && !filed[n]);
                assert(STATE(word[n]) == SP_TICKET_FREE);
                free_list = next[n];
                next[n] = 0;
                use_of_next[n] = NOTHING;
                status_cancelled[n] = 0;
                flags[n] = with_flags;
                holder[n] = given;
                number_of[given] = n;
                generation_of[given] = GENERATION(word[n]);
                kept[given] = with_flags;
                given++;
                word[n] = WORD(GENERATION(word[n]), SP_TICKET_PENDING);
                u[n] = 0;
                use_of_u[n] = INTAKE;
                if
                :: intake_last -> u[intake_last] = n
                :: else -> intake_first = n
                fi;
                intake_last = n
            }
        fi;
        n = 0
    }
}

/* sp_ticket_cancel(): the compare-and-swap; then, if that won, the list, else a second look. */
inline ticket_cancel(ticket)
{
    d_step {
        n = number_of[ticket];
        won = IS_PENDING(n, generation_of[ticket]);
        CANCEL_SPLIT
        if
        :: won ->
            word[n] = WORD(GENERATION(word[n]), SP_TICKET_CANCELLED);
            granted[ticket] = 1
        :: else
        fi
    };
    d_step {
        if
        :: won ->
            assert(use_of_next[n] == NOTHING);
#ifndef WRONG_CANCEL_FORGETS
            next[n] = cancelled;
            cancelled = n;
            use_of_next[n] = CANCELLED
#endif
        :: !won && IS_CANCELLED(n, generation_of[ticket]) ->
            assert(granted[ticket]) /* SP_OK */
        :: else ->
            assert(granted[ticket] -> returned[ticket] : resolved[ticket]) /* SP_PENDING */
        fi;
        won = false;
        n = 0
    }
}

/* sp_ticket_close_locked(), free_locked(), sp_slab_put() */
inline close_locked(number)
{
    if
    :: IS_KEPT(number) -> word[number] = WORD(GENERATION(word[number]), SP_TICKET_DONE)
    :: else ->
        assert(use_of_next[number] == NOTHING && use_of_u[number] == FAILURE && !filed[number]);
        use_of_u[number] = NOTHING;
        word[number] = WORD(NEXT_GENERATION(number), SP_TICKET_FREE);
        next[number] = free_list;
        free_list = number;
        use_of_next[number] = FREE
    fi
}

/* find_locked() of sp_point_fd() */
#define FIND(number, generation)                                                                   \
    (GENERATION(word[number]) == generation && STATE(word[number]) != SP_TICKET_FREE &&            \
     flags[number] == SP_TICKET_KEPT)

/* sp_point_fd_release() */
inline release(ticket)
{
    d_step {
        n = number_of[ticket];
        found = FIND(n, generation_of[ticket]);
        won = found && STATE(word[n]) == SP_TICKET_DONE;
        RELEASE_SPLIT
        if
        :: found ->
            assert(!released[ticket]);
            released[ticket] = 1;
            flags[n] = flags[n] | SP_TICKET_RELEASED
        :: else -> assert(released[ticket]) /* SP_ERROR_INVALID_ARGUMENT */
        fi;
        if
        :: won -> close_locked(n)
        :: else
        fi;
        won = won || !found;
        found = false;
        n = 0
    };
    if
    :: won -> won = false
    :: else -> ticket_cancel(ticket)
    fi
}

/* sp_point_fd_status() */
inline fd_status(ticket)
{
    d_step {
        n = number_of[ticket];
        if
        :: !FIND(n, generation_of[ticket]) -> assert(released[ticket]) /* INVALID_ARGUMENT */
        :: FIND(n, generation_of[ticket]) && STATE(word[n]) == SP_TICKET_DONE ->
            assert(status_cancelled[n] == granted[ticket])
        :: else -> assert(!raised[ticket]) /* SP_PENDING */
        fi;
        n = 0
    }
}

/* One call of the user's, whichever. */
inline act()
{
    if
    :: given < TICKETS -> open(0)
    :: given < TICKETS -> open(SP_TICKET_KEPT)
    :: given > 0 ->
        do
        :: k + 1 < given -> k++
        :: break
        od;
        if
        :: ticket_cancel(k)
        :: kept[k] -> release(k)
        :: kept[k] -> fd_status(k)
        fi;
        k = 0
    :: skip
    fi
}

proctype thread(byte most)
{
    byte n, k, acts;
    bool won, found;
    do
    :: acts < most -> acts++; act()
    :: acts == most -> break
    od;
    threads_over++
}
