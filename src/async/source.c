/* SPDX-License-Identifier: MIT
 *
 * Sources: the primitives that tickets wait for, each once.
 *
 * A source is watched for the lowest value that a ticket waits for. It lives as long as it has tickets.
 */
#include "async/reactor.h"

#include <stdlib.h>

#define FIRST_BUCKETS 64u

static sp_heap_of by_value(const sp_reactor *reactor)
{
    return (sp_heap_of){&reactor->tickets, offsetof(sp_reactor_ticket, u.by_value)};
}

/* ---- The table ---- */

bool sp_sources_init(sp_source_table *table)
{
    table->slab.object_size = sizeof(sp_source);
    table->buckets = calloc(FIRST_BUCKETS, sizeof(uint32_t));
    table->bucket_count = FIRST_BUCKETS;
    return table->buckets != NULL;
}

void sp_sources_fini(sp_source_table *table)
{
    free(table->buckets);
    sp_slab_fini(&table->slab);
}

/* The parent's primitives are left armed: nothing here will signal them. */
void sp_sources_forget(sp_reactor *reactor)
{
    for (uint32_t number = 1; number <= reactor->sources.slab.made; number++)
        sp_waiter_unref(sp_source_at(reactor, number)->waiter);
}

static uint32_t *bucket_of(const sp_source_table *table, const sp_waiter *waiter)
{
    uint64_t hash = ((uintptr_t)waiter >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 32;
    return &table->buckets[hash & (table->bucket_count - 1)];
}

static sp_source *in_table(const sp_source_table *table, uint32_t number)
{
    return sp_slab_at(&table->slab, number);
}

static void table_link(sp_source_table *table, uint32_t number)
{
    sp_source *source = in_table(table, number);
    uint32_t *bucket = bucket_of(table, source->waiter);
    source->same_hash = *bucket;
    *bucket = number;
}

static void table_unlink(sp_source_table *table, uint32_t number)
{
    const sp_source *source = in_table(table, number);
    uint32_t *at = bucket_of(table, source->waiter);
    while (*at != number)
        at = &in_table(table, *at)->same_hash;
    *at = source->same_hash;
    table->count--;
}

/* Without memory it stays as it is, and takes longer. */
static void table_grow(sp_source_table *table)
{
    uint32_t old_count = table->bucket_count, *old = table->buckets;
    uint32_t *buckets = calloc((size_t)old_count * 2, sizeof(uint32_t));
    if (!buckets)
        return;
    table->buckets = buckets;
    table->bucket_count = old_count * 2;
    for (uint32_t i = 0; i < old_count; i++) {
        for (uint32_t number = old[i], next; number; number = next) {
            next = in_table(table, number)->same_hash;
            table_link(table, number);
        }
    }
    free(old);
}

static uint32_t table_find(const sp_source_table *table, const sp_waiter *waiter)
{
    uint32_t number = *bucket_of(table, waiter);
    while (number && in_table(table, number)->waiter != waiter)
        number = in_table(table, number)->same_hash;
    return number;
}

/* ---- Watching ---- */

/* On the thread that signals, perhaps with locks of the primitive held. */
static void wake(sp_waker *waker)
{
    sp_source *source = SP_CONTAINER_OF(waker, sp_source, u.waker);
    sp_reactor *reactor = source->reactor;
    sp_os_mutex_lock(&reactor->inbox.lock);
    bool first = !source->is_woken;
    if (first) {
        source->is_woken = 1;
        source->next = reactor->inbox.woken;
        reactor->inbox.woken = source->number;
    }
    sp_os_mutex_unlock(&reactor->inbox.lock);
    if (first)
        sp_reactor_ring(reactor);
}

uint64_t sp_source_lowest(const sp_reactor *reactor, const sp_source *source)
{
    return sp_ticket_at(reactor, source->tickets)->u.by_value.key;
}

static void disarm(sp_source *source)
{
    if (source->is_armed)
        source->waiter->ops->disarm(source->waiter, &source->u.waker);
    source->is_armed = 0;
}

static bool arm(sp_reactor *reactor, sp_source *source)
{
    sp_waiter *waiter = source->waiter;
    disarm(source);
    source->u.waker = (sp_waker){.wake = wake};
    source->is_armed =
        (waiter->features & SP_FEATURE_ARM) &&
        waiter->ops->arm(waiter, sp_source_lowest(reactor, source), &source->u.waker) == SP_OK;
    return source->is_armed;
}

static int descriptor_of(const sp_source *source)
{
    const sp_fd_ops *ops = (const sp_fd_ops *)(const void *)source->waiter->ops;
    return ops->descriptor(source->waiter);
}

static bool add_descriptor(sp_reactor *reactor, const sp_source *source)
{
    return (source->waiter->features & SP_FEATURE_FD) &&
           sp_os_alarm_add(&reactor->alarm, descriptor_of(source), source->number);
}

/* The first way that there is, by what tells soonest for least. */
static uint8_t first_mode(sp_reactor *reactor, sp_source *source)
{
    if (sp_waiter_shows_only_to_waits(source->waiter))
        return SP_SOURCE_POLLED;
    if (arm(reactor, source))
        return SP_SOURCE_ARMED;
    if (add_descriptor(reactor, source))
        return SP_SOURCE_FD;
    return sp_watchers_add(reactor, source->number) ? SP_SOURCE_WATCHED : SP_SOURCE_POLLED;
}

static void choose_mode(sp_reactor *reactor, sp_source *source)
{
    source->mode = first_mode(reactor, source);
    if (source->mode == SP_SOURCE_POLLED)
        sp_poller_add(reactor, source->number);
}

/* For the lowest value that it has now. */
static void watch(sp_reactor *reactor, uint32_t number)
{
    sp_source *source = sp_source_at(reactor, number);
    if (source->mode == SP_SOURCE_WATCHED)
        sp_watchers_changed(reactor, number);
    else if (source->mode == 0 || (source->mode == SP_SOURCE_ARMED && !arm(reactor, source)))
        choose_mode(reactor, source);
}

/* ---- Rings ---- */

void sp_ring_add(sp_reactor *reactor, sp_source_ring *ring, uint32_t number)
{
    sp_source *source = sp_source_at(reactor, number);
    if (ring->count++ == 0) {
        source->prev = source->next_in_ring = number;
        ring->first = number;
        return;
    }
    sp_source *first = sp_source_at(reactor, ring->first);
    source->next_in_ring = ring->first;
    source->prev = first->prev;
    sp_source_at(reactor, first->prev)->next_in_ring = number;
    first->prev = number;
}

void sp_ring_remove(sp_reactor *reactor, sp_source_ring *ring, uint32_t number)
{
    const sp_source *source = sp_source_at(reactor, number);
    sp_source_at(reactor, source->prev)->next_in_ring = source->next_in_ring;
    sp_source_at(reactor, source->next_in_ring)->prev = source->prev;
    if (ring->first == number)
        ring->first = source->next_in_ring;
    if (--ring->count == 0)
        ring->first = 0;
}

/* ---- Life ---- */

static uint32_t open_source(sp_reactor *reactor, sp_waiter *waiter)
{
    sp_source_table *table = &reactor->sources;
    uint32_t number = sp_slab_get(&table->slab);
    if (!number)
        return 0;
    if (table->count++ >= table->bucket_count)
        table_grow(table);
    *in_table(table, number) = (sp_source){
        .number = number,
        .waiter = sp_waiter_ref(waiter),
        .reactor = reactor,
    };
    table_link(table, number);
    return number;
}

/* Nothing waits for it any more. */
static void close_source(sp_reactor *reactor, uint32_t number)
{
    sp_source *source = sp_source_at(reactor, number);
    disarm(source);
    if (source->mode == SP_SOURCE_POLLED)
        sp_poller_remove(reactor, number);
    else if (source->mode == SP_SOURCE_WATCHED)
        sp_watchers_remove(reactor, number);
    else if (source->mode == SP_SOURCE_FD)
        sp_os_alarm_remove(&reactor->alarm, descriptor_of(source));
    table_unlink(&reactor->sources, number);
    sp_waiter *waiter = source->waiter;
    source->waiter = NULL; /* before: a fork() may come between */
    sp_waiter_unref(waiter);
    sp_os_mutex_lock(&reactor->inbox.lock);
    source->is_over = source->is_woken;
    sp_os_mutex_unlock(&reactor->inbox.lock);
    if (!source->is_over)
        sp_slab_put(&reactor->sources.slab, number);
}

bool sp_source_add(sp_reactor *reactor, const sp_point *leaf, uint32_t ticket_number)
{
    uint32_t number = table_find(&reactor->sources, leaf->waiter);
    if (!number)
        number = open_source(reactor, leaf->waiter);
    if (!number)
        return false;
    sp_source *source = sp_source_at(reactor, number);
    sp_reactor_ticket *ticket = sp_ticket_at(reactor, ticket_number);
    ticket->source = number;
    ticket->u.by_value.key = sp_point_target(leaf);
    sp_heap_add(by_value(reactor), &source->tickets, ticket_number);
    if (source->tickets == ticket_number && !source->is_looking)
        watch(reactor, number);
    return true;
}

void sp_source_drop(sp_reactor *reactor, uint32_t number, uint32_t ticket_number)
{
    sp_source *source = sp_source_at(reactor, number);
    bool was_lowest = source->tickets == ticket_number;
    sp_ticket_at(reactor, ticket_number)->source = 0;
    sp_heap_remove(by_value(reactor), &source->tickets, ticket_number);
    if (source->is_looking)
        return;
    if (!source->tickets)
        close_source(reactor, number);
    else if (was_lowest && source->mode == SP_SOURCE_WATCHED)
        sp_watchers_changed(reactor, number);
}

/* ---- Looking ---- */

/* Of a slot: SP_OK once it is set or has failed, whatever to. */
static sp_status ask(sp_waiter *waiter, uint64_t value)
{
    if (waiter->features & SP_FEATURE_COMPOSITE) {
        const sp_point self = {.waiter = waiter};
        const sp_point *leaf = NULL;
        sp_status status = sp_point_front(&self, &leaf);
        return status == SP_NOT_SUBMITTED && leaf == &self ? SP_PENDING : SP_OK;
    }
    if (sp_waiter_known_reached(waiter, value))
        return SP_OK;
    sp_status status = sp_waiter_probe(waiter, value);
    if (status == SP_PENDING && sp_waiter_shows_only_to_waits(waiter))
        return sp_waiter_block(waiter, value, sp_os_now_ns());
    return status;
}

/* The ticket waits for no more than this source; else for what is next in its chain or slot. */
static bool is_all_it_waits_for(const sp_source *source, const sp_reactor_ticket *ticket)
{
    return ticket->waiter == source->waiter && !(source->waiter->features & SP_FEATURE_COMPOSITE);
}

bool sp_source_look(sp_reactor *reactor, uint32_t number)
{
    sp_source *source = sp_source_at(reactor, number);
    bool found = false;
    source->is_looking = 1;
    while (source->tickets) {
        uint32_t first = source->tickets;
        sp_status status = ask(source->waiter, sp_source_lowest(reactor, source));
        if (status == SP_PENDING || status == SP_NOT_SUBMITTED)
            break;
        found = true;
        sp_source_drop(reactor, number, first);
        if (status < 0 || is_all_it_waits_for(source, sp_ticket_at(reactor, first)))
            sp_ticket_resolve(reactor, first, status);
        else
            sp_ticket_advance(reactor, first);
    }
    source->is_looking = 0;
    if (source->tickets)
        watch(reactor, number);
    else
        close_source(reactor, number);
    return found;
}

void sp_source_woken(sp_reactor *reactor, uint32_t number)
{
    sp_source *source = sp_source_at(reactor, number);
    sp_os_mutex_lock(&reactor->inbox.lock);
    source->is_woken = 0;
    sp_os_mutex_unlock(&reactor->inbox.lock);
    if (source->is_over)
        sp_slab_put(&reactor->sources.slab, number);
    else
        sp_source_look(reactor, number);
}
