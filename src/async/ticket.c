/* SPDX-License-Identifier: MIT
 *
 * Tickets: from sp_notify() to the one call of its function.
 */
#include "async/reactor.h"

#include <stdlib.h>

#define GENERATION_BITS (64 - SP_SLAB_NUMBER_BITS)
#define GENERATION_MASK ((UINT64_C(1) << GENERATION_BITS) - 1)

static sp_heap_of by_deadline(const sp_reactor *reactor)
{
    return (sp_heap_of){&reactor->tickets, offsetof(sp_reactor_ticket, by_deadline)};
}

static void append(const sp_reactor *reactor, sp_ticket_list *list, uint32_t number)
{
    sp_ticket_at(reactor, number)->next = 0;
    if (list->last)
        sp_ticket_at(reactor, list->last)->next = number;
    else
        list->first = number;
    list->last = number;
}

/* ---- Any thread ---- */

uint64_t sp_ticket_generation(sp_ticket ticket)
{
    return ticket >> SP_SLAB_NUMBER_BITS;
}

/* A slot's word is written last, so that a number from nowhere finds it free. */
static sp_status open_locked(sp_reactor *reactor, const sp_reactor_ticket *with, sp_ticket *out)
{
    if (reactor->inbox.ending)
        return sp_fail(SP_ERROR_INVALID_STATE, "the reactor is being destroyed");
    uint32_t number = sp_slab_get(&reactor->tickets);
    if (!number)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "out of memory for one more ticket");
    sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
    uint64_t generation = sp_ticket_generation_of(ticket);
    ticket->status = SP_PENDING;
    ticket->waiter = sp_waiter_ref(with->waiter);
    ticket->value = with->value;
    ticket->by_deadline.key = with->by_deadline.key;
    ticket->by_deadline.linked = 0;
    ticket->fn = with->fn;
    ticket->user = with->user;
    ticket->source = 0;
    ticket->flags = with->flags;
    if (out)
        *out = generation << SP_SLAB_NUMBER_BITS | number;
    sp_store64(&ticket->word, sp_ticket_word(generation, SP_TICKET_PENDING));
    sp_inbox *inbox = &reactor->inbox;
    ticket->u.by_value = (sp_heap_node){.next = 0};
    if (inbox->intake.last)
        sp_ticket_at(reactor, inbox->intake.last)->u.by_value.next = number;
    else
        inbox->intake.first = number;
    inbox->intake.last = number;
    return SP_OK;
}

sp_status sp_ticket_open(sp_reactor *reactor, const sp_point *point, uint64_t timeout_ns,
                         const sp_reactor_ticket *with, sp_ticket *out)
{
    sp_reactor_ticket filled = *with;
    sp_status status = sp_reactor_check(reactor);
    if (status == SP_OK)
        status = sp_point_check(point, &filled.waiter);
    if (status != SP_OK)
        return status;
    filled.value = point->value;
    filled.by_deadline.key = sp_deadline_ns(timeout_ns);
    sp_os_mutex_lock(&reactor->inbox.lock);
    status = open_locked(reactor, &filled, out);
    sp_os_mutex_unlock(&reactor->inbox.lock);
    if (status == SP_OK)
        sp_reactor_ring(reactor);
    return status;
}

sp_status sp_notify(sp_reactor *reactor, const sp_point *point, uint64_t timeout_ns,
                    sp_notify_fn fn, void *user, sp_ticket *ticket)
{
    SP_CHECK_ARGUMENT(reactor && point && fn, "reactor, point and fn are required");
    const sp_reactor_ticket with = {.fn = fn, .user = user};
    return sp_ticket_open(reactor, point, timeout_ns, &with, ticket);
}

sp_reactor_ticket *sp_ticket_find(const sp_reactor *reactor, sp_ticket ticket, uint32_t *number)
{
    *number = (uint32_t)(ticket & ((UINT64_C(1) << SP_SLAB_NUMBER_BITS) - 1));
    if (!sp_slab_has(&reactor->tickets, *number))
        return NULL;
    sp_reactor_ticket *found = sp_ticket_at(reactor, *number);
    uint64_t word = sp_load64(&found->word);
    uint64_t now = word >> SP_TICKET_STATE_BITS, asked = sp_ticket_generation(ticket);
    bool given_out = asked < now || (asked == now && sp_ticket_state(word) != SP_TICKET_FREE);
    return given_out ? found : NULL;
}

sp_status sp_ticket_cancel(sp_reactor *reactor, uint32_t number, uint64_t generation)
{
    sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
    const uint64_t pending = sp_ticket_word(generation, SP_TICKET_PENDING);
    const uint64_t cancelled = sp_ticket_word(generation, SP_TICKET_CANCELLED);
    if (!sp_cas64(&ticket->word, pending, cancelled))
        return sp_load64(&ticket->word) == cancelled ? SP_OK : SP_PENDING;
    sp_os_mutex_lock(&reactor->inbox.lock);
    ticket->next = reactor->inbox.cancelled;
    reactor->inbox.cancelled = number;
    sp_os_mutex_unlock(&reactor->inbox.lock);
    sp_reactor_ring(reactor);
    return SP_OK;
}

sp_status sp_cancel(sp_reactor *reactor, sp_ticket ticket)
{
    uint32_t number;
    SP_CHECK_ARGUMENT(reactor, "reactor is required");
    sp_status status = sp_reactor_check(reactor);
    if (status != SP_OK)
        return status;
    SP_CHECK_ARGUMENT(sp_ticket_find(reactor, ticket, &number), "no ticket of this reactor");
    return sp_ticket_cancel(reactor, number, sp_ticket_generation(ticket));
}

/* ---- The dispatcher ---- */

/* Out of what it waits in. */
static void detach(sp_reactor *reactor, uint32_t number)
{
    sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
    if (ticket->source)
        sp_source_drop(reactor, ticket->source, number);
    if (ticket->by_deadline.linked)
        sp_heap_remove(by_deadline(reactor), &reactor->deadlines, number);
}

static sp_error *copy_failure(sp_status status)
{
    sp_error *copy = status < 0 ? malloc(sizeof(*copy)) : NULL;
    if (copy)
        *copy = *sp_last_error();
    return copy;
}

void sp_ticket_resolve(sp_reactor *reactor, uint32_t number, sp_status status)
{
    sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
    sp_error *failure = copy_failure(status);
    detach(reactor, number);
    uint64_t word = sp_ticket_word(sp_ticket_generation_of(ticket), SP_TICKET_PENDING);
    if (!sp_cas64(&ticket->word, word, word - SP_TICKET_PENDING + SP_TICKET_CALLING)) {
        free(failure); /* cancelled: the list of those will bring it */
        return;
    }
    ticket->status = status;
    ticket->u.failure = failure;
    append(reactor, &reactor->due, number);
}

void sp_ticket_take_back(sp_reactor *reactor, uint32_t number)
{
    sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
    detach(reactor, number);
    ticket->status = SP_ERROR_CANCELLED;
    ticket->u.failure = NULL;
    append(reactor, &reactor->due, number);
}

void sp_ticket_advance(sp_reactor *reactor, uint32_t number)
{
    const sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
    const sp_point point = {.value = ticket->value, .waiter = ticket->waiter};
    const sp_point *leaf = NULL;
    sp_status status = sp_point_front(&point, &leaf);
    if (status != SP_PENDING && status != SP_NOT_SUBMITTED) {
        sp_ticket_resolve(reactor, number, status);
    } else if (!sp_source_add(reactor, leaf, number)) {
        status = sp_fail(SP_ERROR_OUT_OF_MEMORY, "out of memory for watching one more primitive");
        sp_ticket_resolve(reactor, number, status);
    }
}

void sp_ticket_file(sp_reactor *reactor, uint32_t number)
{
    sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
    if (sp_ticket_state(sp_load64(&ticket->word)) != SP_TICKET_PENDING)
        return; /* cancelled: the list of those will bring it */
    if (ticket->by_deadline.key != SP_FOREVER)
        sp_heap_add(by_deadline(reactor), &reactor->deadlines, number);
    sp_ticket_advance(reactor, number);
}

/* A point that is reached is OK even if the time is up. */
static void time_out(sp_reactor *reactor, uint32_t number)
{
    const sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
    const sp_point point = {.value = ticket->value, .waiter = ticket->waiter};
    const sp_point *leaf = NULL;
    sp_status status = sp_point_front(&point, &leaf);
    if (status == SP_PENDING || status == SP_NOT_SUBMITTED)
        status = SP_TIMEOUT;
    sp_ticket_resolve(reactor, number, status);
}

void sp_tickets_time_out(sp_reactor *reactor, uint64_t now_ns)
{
    while (reactor->deadlines &&
           sp_ticket_at(reactor, reactor->deadlines)->by_deadline.key <= now_ns)
        time_out(reactor, reactor->deadlines);
}

void sp_tickets_cancel_all(sp_reactor *reactor)
{
    uint32_t made = reactor->tickets.made;
    for (uint32_t number = 1; number <= made; number++) {
        sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
        uint64_t word = sp_ticket_word(sp_ticket_generation_of(ticket), SP_TICKET_PENDING);
        if (sp_cas64(&ticket->word, word, word - SP_TICKET_PENDING + SP_TICKET_CANCELLED))
            sp_ticket_take_back(reactor, number);
    }
}

/* ---- Calling back ---- */

sp_status sp_ticket_fail_again(sp_status status, const sp_error *failure)
{
    if (failure && failure->status != SP_OK)
        return sp_fail_with(failure);
    if (status == SP_ERROR_CANCELLED)
        return sp_fail(status, "the notification was cancelled");
    return sp_fail(status, "there was no memory left to keep what happened");
}

static void call_back(sp_reactor_ticket *ticket)
{
    if (ticket->fn) {
        if (ticket->status < 0)
            sp_ticket_fail_again((sp_status)ticket->status, ticket->u.failure);
        ticket->fn(ticket->user, (sp_status)ticket->status);
    }
    sp_waiter *waiter = ticket->waiter;
    ticket->waiter = NULL; /* before: a fork() may come between */
    sp_waiter_unref(waiter);
}

/* The next use of the slot has another number. */
static void free_locked(sp_reactor *reactor, uint32_t number)
{
    sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
    uint64_t next = (sp_ticket_generation_of(ticket) + 1) & GENERATION_MASK;
    free(ticket->u.failure);
    ticket->u.failure = NULL;
    sp_store64(&ticket->word, sp_ticket_word(next, SP_TICKET_FREE));
    sp_slab_put(&reactor->tickets, number);
}

void sp_ticket_close_locked(sp_reactor *reactor, uint32_t number)
{
    sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
    bool kept = (ticket->flags & SP_TICKET_KEPT) && !(ticket->flags & SP_TICKET_RELEASED);
    if (kept)
        sp_store64(&ticket->word, sp_ticket_word(sp_ticket_generation_of(ticket), SP_TICKET_DONE));
    else
        free_locked(reactor, number);
}

/* A handle is raised last: who sees it may ask for the status at once. */
static void run_one(sp_reactor *reactor, uint32_t number)
{
    sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
    int fd = ticket->fn ? -1 : sp_point_fd_take(ticket);
    call_back(ticket);
    if (sp_reactor_is_forked(reactor))
        return; /* the callback did that: in the child nothing here is ours, and the lock may be held */
    sp_os_mutex_lock(&reactor->inbox.lock);
    sp_ticket_close_locked(reactor, number);
    sp_os_mutex_unlock(&reactor->inbox.lock);
    sp_point_fd_raise(fd);
}

size_t sp_tickets_run_due(sp_reactor *reactor)
{
    size_t count = 0;
    uint32_t number = reactor->due.first;
    reactor->due = (sp_ticket_list){0};
    while (number && !sp_reactor_is_forked(reactor)) {
        uint32_t next = sp_ticket_at(reactor, number)->next;
        run_one(reactor, number);
        number = next;
        count++;
    }
    return count;
}

/* ---- The end ---- */

static bool is_open(const sp_reactor_ticket *ticket)
{
    uint32_t state = sp_ticket_state(sp_load64(&ticket->word));
    return state != SP_TICKET_FREE && state != SP_TICKET_DONE;
}

/* The point's waiter sees by itself that it is the parent's. */
void sp_tickets_forget(sp_reactor *reactor)
{
    for (uint32_t number = 1; number <= reactor->tickets.made; number++) {
        sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
        if (!is_open(ticket))
            continue;
        sp_waiter_unref(ticket->waiter);
        if (!ticket->fn)
            sp_point_fd_forget(ticket);
    }
}

/* What nobody has released. */
void sp_tickets_fini(sp_reactor *reactor)
{
    for (uint32_t number = 1; number <= reactor->tickets.made; number++) {
        sp_reactor_ticket *ticket = sp_ticket_at(reactor, number);
        if (sp_ticket_state(sp_load64(&ticket->word)) == SP_TICKET_DONE)
            free(ticket->u.failure);
    }
    sp_slab_fini(&reactor->tickets);
}
