/* SPDX-License-Identifier: MIT
 *
 * Part of watcher.pml: its lists, and its thread.
 */

inline free_list(which)
{
    if
    :: which ->
        assert(is_made[which]);
        is_made[which] = false;
        value0[which] = 0;
        value1[which] = 0;
        value2[which] = 0
    :: else
    fi
}

/* make_list() */
inline make_list()
{
    d_step {
        made = 1;
        do
        :: is_made[made] -> made++
        :: else -> break
        od;
        assert(made <= LISTS);
        is_made[made] = true;
        is_stale = false;
        value1[made] = (is_open1 -> LOWEST1 : 0);
        value2[made] = (is_open2 -> 1 : 0)
    }
}

/* ---- The thread ---- */

#define IS_READY(which)                                                                            \
    (bell >= value0[which] || (value1[which] && counter1 >= value1[which]) ||                      \
     (value2[which] && counter2 >= value2[which]))

inline broadcast()
{
    thread_waits = false;
    dispatcher_waits = false
}

/* run_thread(), run_locked(), block(), come_out_locked(), tell() */
proctype thread()
{
    byte slices;
    bool is_news;
    do
    :: atomic { !ending && (list == 0 || has_news) -> thread_waits = true };
        !thread_waits
    :: atomic { !ending && list && !has_news -> in_driver = list };
        if
        :: IS_READY(in_driver) -> is_news = true
        :: slices < SLICES -> slices++
        :: slices < SLICES -> slices++; is_broken = true; is_news = true
        fi;
        d_step {
            assert(is_made[in_driver]);
            is_news = is_news && in_driver == list;
            if
#ifndef WRONG_OLD_NOT_FREED
            :: in_driver != list -> free_list(in_driver)
#endif
            :: else
            fi;
            in_driver = 0;
#ifndef WRONG_COMES_OUT_QUIETLY
            broadcast();
#endif
            has_news = has_news || is_news
        };
        if
        :: is_news -> inbox_has_news = true; is_news = false
        :: else
        fi
    :: ending -> break
    od;
    is_joined = true
}
