/* SPDX-License-Identifier: MIT
 *
 * Who is waiting for a primitive of the CPU: threads that block, and wakers that waits have left.
 */
#include "core.h"

void sp_waker_wake(sp_waker *waker)
{
    waker->wake(waker);
}

bool sp_watch_init(sp_watch *watch, bool (*settled)(sp_waiter *waiter, uint64_t value))
{
    watch->first = NULL;
    watch->settled = settled;
    if (!sp_os_mutex_init(&watch->mutex))
        return false;
    if (sp_os_cond_init(&watch->changed))
        return true;
    sp_os_mutex_fini(&watch->mutex);
    return false;
}

void sp_watch_fini(sp_watch *watch)
{
    sp_os_cond_fini(&watch->changed);
    sp_os_mutex_fini(&watch->mutex);
}

sp_status sp_watch_block(sp_watch *watch, sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    bool in_time = true;
    sp_os_mutex_lock(&watch->mutex);
    bool settled = watch->settled(waiter, value);
    while (!settled && in_time) {
        in_time = sp_os_cond_wait_until(&watch->changed, &watch->mutex, deadline_ns);
        settled = watch->settled(waiter, value);
    }
    sp_os_mutex_unlock(&watch->mutex);
    return settled ? SP_OK : SP_TIMEOUT;
}

void sp_watch_arm(sp_watch *watch, sp_waiter *waiter, uint64_t value, sp_waker *waker)
{
    sp_os_mutex_lock(&watch->mutex);
    waker->value = value;
    waker->prev = NULL;
    waker->next = watch->first;
    if (watch->first)
        watch->first->prev = waker;
    watch->first = waker;
    if (watch->settled(waiter, value))
        sp_waker_wake(waker);
    sp_os_mutex_unlock(&watch->mutex);
}

void sp_watch_disarm(sp_watch *watch, sp_waker *waker)
{
    sp_os_mutex_lock(&watch->mutex);
    if (waker->prev)
        waker->prev->next = waker->next;
    else
        watch->first = waker->next;
    if (waker->next)
        waker->next->prev = waker->prev;
    sp_os_mutex_unlock(&watch->mutex);
}

void sp_watch_wake_locked(sp_watch *watch, uint64_t reached)
{
    sp_os_cond_broadcast(&watch->changed);
    for (sp_waker *waker = watch->first; waker; waker = waker->next) {
        if (waker->value <= reached)
            sp_waker_wake(waker);
    }
}
