/* SPDX-License-Identifier: MIT
 *
 * The list of wakers that a waiter keeps under its own lock.
 */
#include "core.h"

void sp_waker_list_add(sp_waker_list *list, sp_waker *waker, uint64_t value)
{
    waker->value = value;
    waker->prev = NULL;
    waker->next = list->first;
    if (list->first)
        list->first->prev = waker;
    list->first = waker;
}

void sp_waker_list_remove(sp_waker_list *list, sp_waker *waker)
{
    if (waker->prev)
        waker->prev->next = waker->next;
    else
        list->first = waker->next;
    if (waker->next)
        waker->next->prev = waker->prev;
}

void sp_waker_list_wake(const sp_waker_list *list, uint64_t reached)
{
    for (sp_waker *waker = list->first; waker; waker = waker->next) {
        if (waker->value <= reached)
            sp_waker_wake(waker);
    }
}
