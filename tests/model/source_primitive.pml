/* SPDX-License-Identifier: MIT
 *
 * Part of source.pml: the primitive and who signals it, src/core/host.c and watch.c, and wake() of
 * src/async/source.c, which that calls.
 */

/* sp_host_timeline, and its sp_watch: under `mutex`, but for probes of the value. */
byte value;
bool mutex;
bool is_left[SLOTS + 1];
byte waker_value[SLOTS + 1];

#define LOCK                                                                                       \
    atomic                                                                                         \
    {                                                                                              \
        !mutex;                                                                                    \
        mutex = true                                                                               \
    }
#define UNLOCK mutex = false

/* wake(), with the primitive's lock held: under the inbox's lock; then sp_reactor_ring(). */
inline wake(number)
{
    atomic {
        assert(is_open[number] && !is_freed);
        if
#ifdef WRONG_WOKEN_TWICE
        :: true ->
#else
        :: !is_woken[number] ->
#endif
            assert(use_of_next[number] == NOTHING);
            is_woken[number] = true;
            next[number] = woken;
            woken = number;
            use_of_next[number] = WOKEN;
            rings = true
#ifndef WRONG_WOKEN_TWICE
        :: else
#endif
        fi
    };
    if
    :: rings ->
        assert(!is_freed);
        rings = false
    :: else
    fi
}

/* sp_host_timeline_signal(), sp_watch_wake_locked() */
proctype signaller()
{
    byte at;
    bool rings;
    do
    :: value < LAST_VALUE ->
        LOCK;
        value++;
        at = 1;
        do
        :: at <= SLOTS && is_left[at] && waker_value[at] <= value -> wake(at); at++
        :: at <= SLOTS && !(is_left[at] && waker_value[at] <= value) -> at++
        :: at > SLOTS -> break
        od;
        at = 0;
        UNLOCK
    :: else -> break
    od
}
