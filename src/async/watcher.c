/* SPDX-License-Identifier: MIT
 *
 * Watchers: a thread for each group of primitives (the timelines of one Vulkan device), which waits in
 * the driver for any of them and for a bell of ours, and tells the dispatcher.
 *
 * The thread works on a *list*, which the dispatcher made and which holds references. It leaves the
 * driver when its list is out of date, since the bell is rung then, and stays out after news until the
 * dispatcher has looked. A source is closed only when no list in the driver has it: whoever is called
 * back may destroy the device.
 */
#include "async/reactor.h"

#include <stdlib.h>

#define MOST 256u /* sources of one watcher: a wait for more takes longer than polling the rest  */
#define VAIN 4u   /* so often in a row news were none: the driver's wait is no good              */

typedef struct watch_list {
    size_t count; /* the bell is the first                                                      */
    uint64_t *values;
    sp_waiter *waiters[];
} watch_list;

typedef struct sp_watcher {
    struct sp_watcher *next;
    sp_reactor *reactor;
    const void *group;
    const sp_group_ops *ops;
    /* The dispatcher's. */
    sp_waiter *bell;
    sp_source_ring ring;
    bool is_stale;   /* the list that it has is not what it should wait for                     */
    bool has_closed; /* and has a source that was closed                                        */
    bool given_up;
    unsigned vain;
    sp_os_thread thread;
    /* Under the lock. */
    sp_os_mutex lock;
    sp_os_cond changed;
    watch_list *list; /* to wait for; NULL: nothing                                             */
    uint64_t rung;
    watch_list *in_driver; /* what the thread waits for now; NULL: it is out                    */
    bool has_news;
    bool is_broken;
    bool ending;
} sp_watcher;

/* ---- Lists ---- */

static void free_list(watch_list *list)
{
    if (!list)
        return;
    for (size_t i = 0; i < list->count; i++)
        sp_waiter_unref(list->waiters[i]);
    free(list);
}

/* NULL: out of memory. */
static watch_list *make_list(const sp_watcher *watcher)
{
    sp_reactor *reactor = watcher->reactor;
    size_t count = (size_t)watcher->ring.count + 1;
    watch_list *list =
        malloc(sizeof(*list) + count * (sizeof(list->waiters[0]) + sizeof(list->values[0])));
    if (!list)
        return NULL;
    list->count = count;
    list->values = (uint64_t *)(void *)&list->waiters[count];
    list->waiters[0] = sp_waiter_ref(watcher->bell);
    list->values[0] = watcher->rung + 1;
    uint32_t number = watcher->ring.first;
    for (size_t i = 1; i < count; i++) {
        const sp_source *source = sp_source_at(reactor, number);
        list->waiters[i] = sp_waiter_ref(source->waiter);
        list->values[i] = sp_source_lowest(reactor, source);
        number = source->next_in_ring;
    }
    return list;
}

/* ---- The thread ---- */

static void tell(sp_watcher *watcher)
{
    sp_inbox *inbox = &watcher->reactor->inbox;
    sp_os_mutex_lock(&inbox->lock);
    inbox->has_news = true;
    sp_os_mutex_unlock(&inbox->lock);
    sp_reactor_ring(watcher->reactor);
}

static bool group_is_good(const sp_watcher *watcher, const watch_list *list)
{
    return watcher->ops->base.group(list->waiters[0]) == watcher->group;
}

/* One slice in the driver. True: there may be news. */
static bool block(const sp_watcher *watcher, const watch_list *list, bool *is_broken)
{
    uint64_t end = sp_os_now_ns() + SP_WAIT_SLICE;
    sp_status status =
        watcher->ops->base.block_many(list->waiters, list->values, list->count, SP_WAIT_ANY, end);
    *is_broken = status < 0 || !group_is_good(watcher, list);
    if (status == SP_TIMEOUT && !*is_broken)
        sp_pause_between_slices(SP_FOREVER);
    return status != SP_TIMEOUT || *is_broken;
}

/* Whoever replaced the list meanwhile left the old one to us. */
static void come_out_locked(sp_watcher *watcher, bool has_news)
{
    bool is_old = watcher->in_driver != watcher->list;
    if (is_old)
        free_list(watcher->in_driver);
    watcher->in_driver = NULL;
    sp_os_cond_broadcast(&watcher->changed);
    if (is_old || !has_news)
        return;
    watcher->has_news = true;
    sp_os_mutex_unlock(&watcher->lock);
    tell(watcher);
    sp_os_mutex_lock(&watcher->lock);
}

static void run_locked(sp_watcher *watcher)
{
    while (!watcher->ending) {
        watch_list *list = watcher->list;
        if (!list || watcher->has_news) {
            sp_os_cond_wait_until(&watcher->changed, &watcher->lock, SP_FOREVER);
            continue;
        }
        bool is_broken;
        watcher->in_driver = list;
        sp_os_mutex_unlock(&watcher->lock);
        bool has_news = block(watcher, list, &is_broken);
        sp_os_mutex_lock(&watcher->lock);
        watcher->is_broken = watcher->is_broken || is_broken;
        come_out_locked(watcher, has_news);
    }
}

static void *run_thread(void *user)
{
    sp_watcher *watcher = user;
    sp_os_mutex_lock(&watcher->lock);
    run_locked(watcher);
    sp_os_mutex_unlock(&watcher->lock);
    return NULL;
}

/* ---- Telling the thread ---- */

/* Gives it another list, NULL for none, and calls it out of the driver if it is there; with `wait`
 * until it is out. */
static void replace_list(sp_watcher *watcher, watch_list *list, bool wait)
{
    sp_os_mutex_lock(&watcher->lock);
    watch_list *old = watcher->list;
    bool must_ring = watcher->in_driver != NULL;
    bool is_ours = old != watcher->in_driver;
    watcher->list = list;
    watcher->has_news = false;
    if (must_ring)
        watcher->rung++;
    if (list)
        list->values[0] = watcher->rung + 1;
    uint64_t rung = watcher->rung;
    sp_os_cond_broadcast(&watcher->changed);
    sp_os_mutex_unlock(&watcher->lock);
    if (is_ours)
        free_list(old);
    if (must_ring)
        watcher->ops->ring_bell(watcher->bell, rung);
    sp_os_mutex_lock(&watcher->lock);
    while (wait && watcher->in_driver)
        sp_os_cond_wait_until(&watcher->changed, &watcher->lock, SP_FOREVER);
    sp_os_mutex_unlock(&watcher->lock);
}

static void end_thread(sp_watcher *watcher)
{
    replace_list(watcher, NULL, true);
    sp_os_mutex_lock(&watcher->lock);
    watcher->ending = true;
    sp_os_cond_broadcast(&watcher->changed);
    sp_os_mutex_unlock(&watcher->lock);
    sp_os_thread_join(&watcher->thread);
}

static void end_watcher(sp_watcher *watcher)
{
    if (!watcher->given_up)
        end_thread(watcher);
    sp_waiter_unref(watcher->bell);
    sp_os_cond_fini(&watcher->changed);
    sp_os_mutex_fini(&watcher->lock);
    free(watcher);
}

/* Its sources are polled from now on. It stays in the list, so that no other is made, and keeps the
 * bell, so that no other group has its address. */
static void give_up(sp_watcher *watcher)
{
    sp_reactor *reactor = watcher->reactor;
    bool has_sources = watcher->ring.count > 0;
    end_thread(watcher);
    watcher->given_up = true;
    while (watcher->ring.count) {
        uint32_t number = watcher->ring.first;
        sp_ring_remove(reactor, &watcher->ring, number);
        sp_source_at(reactor, number)->mode = SP_SOURCE_POLLED;
        sp_poller_add(reactor, number);
    }
    if (!has_sources)
        return;
    sp_log_message(
        &reactor->log, SP_LOG_INFO,
        "reactor: this driver's wait for any of several is no good; %s points are polled",
        sp_backend_name(watcher->ops->base.backend));
}

/* ---- Making ---- */

static bool start(sp_watcher *watcher, sp_waiter *member)
{
    if (!sp_os_mutex_init(&watcher->lock))
        return false;
    if (!sp_os_cond_init(&watcher->changed)) {
        sp_os_mutex_fini(&watcher->lock);
        return false;
    }
    watcher->bell = watcher->ops->make_bell(member);
    if (watcher->bell &&
        sp_os_thread_start(&watcher->thread, watcher->reactor->name, run_thread, watcher) == 0)
        return true;
    sp_waiter_unref(watcher->bell);
    sp_os_cond_fini(&watcher->changed);
    sp_os_mutex_fini(&watcher->lock);
    return false;
}

static sp_watcher *make_watcher(sp_reactor *reactor, sp_waiter *member, const void *group)
{
    sp_watcher *made = calloc(1, sizeof(*made));
    if (!made)
        return NULL;
    made->reactor = reactor;
    made->group = group;
    made->ops = (const sp_group_ops *)(const void *)member->ops;
    if (!start(made, member)) {
        free(made);
        return NULL;
    }
    made->next = reactor->watchers;
    reactor->watchers = made;
    return made;
}

/* Those whose device has ended: their bell has failed with it. */
static void end_dead(sp_reactor *reactor)
{
    sp_watcher **at = &reactor->watchers;
    while (*at) {
        sp_watcher *watcher = *at;
        if (watcher->ring.count > 0 || sp_waiter_probe(watcher->bell, UINT64_MAX - 1) >= 0) {
            at = &watcher->next;
            continue;
        }
        *at = watcher->next;
        end_watcher(watcher);
    }
}

static sp_watcher *find(const sp_reactor *reactor, const void *group)
{
    sp_watcher *at = reactor->watchers;
    while (at && at->group != group)
        at = at->next;
    return at;
}

/* What a member's group is, if its wait can be ended by us and is worth it. */
static const void *group_of(const sp_reactor *reactor, sp_waiter *waiter)
{
    const uint32_t wanted = SP_FEATURE_GROUP | SP_FEATURE_RING;
    if (reactor->drive != SP_REACTOR_THREAD ||
        (waiter->features & (wanted | SP_FEATURE_POLL)) != wanted)
        return NULL;
    return waiter->ops->group(waiter);
}

/* ---- For sources ---- */

bool sp_watchers_add(sp_reactor *reactor, uint32_t number)
{
    sp_waiter *waiter = sp_source_at(reactor, number)->waiter;
    const void *group = group_of(reactor, waiter);
    if (!group)
        return false;
    sp_watcher *watcher = find(reactor, group);
    if (!watcher) {
        end_dead(reactor);
        watcher = make_watcher(reactor, waiter, group);
    }
    if (!watcher || watcher->given_up || watcher->ring.count >= MOST)
        return false;
    sp_source_at(reactor, number)->u.watcher = watcher;
    sp_ring_add(reactor, &watcher->ring, number);
    watcher->is_stale = true;
    return true;
}

void sp_watchers_changed(sp_reactor *reactor, uint32_t number)
{
    sp_source_at(reactor, number)->u.watcher->is_stale = true;
}

void sp_watchers_remove(sp_reactor *reactor, uint32_t number)
{
    sp_watcher *watcher = sp_source_at(reactor, number)->u.watcher;
    sp_ring_remove(reactor, &watcher->ring, number);
    watcher->has_closed = true;
}

/* ---- For the dispatcher ---- */

static bool take_news(sp_watcher *watcher, bool *is_broken)
{
    sp_os_mutex_lock(&watcher->lock);
    bool has_news = watcher->has_news;
    *is_broken = watcher->is_broken;
    sp_os_mutex_unlock(&watcher->lock);
    return has_news;
}

/* Each source is looked at once, whatever comes and goes meanwhile. */
static bool look_at_all(sp_watcher *watcher)
{
    sp_reactor *reactor = watcher->reactor;
    bool found = false;
    for (uint32_t left = watcher->ring.count; left && watcher->ring.count; left--) {
        uint32_t number = watcher->ring.first;
        watcher->ring.first = sp_source_at(reactor, number)->next_in_ring;
        found = sp_source_look(reactor, number) || found;
    }
    return found;
}

static void see_news(sp_watcher *watcher)
{
    bool is_broken;
    if (!take_news(watcher, &is_broken))
        return;
    bool is_right = !watcher->is_stale && !watcher->has_closed;
    if (look_at_all(watcher))
        watcher->vain = 0;
    else if (is_right) /* else the news may be of what went meanwhile, as the cancelled do */
        watcher->vain++;
    if (is_broken || watcher->vain >= VAIN)
        give_up(watcher);
    watcher->is_stale = true; /* it stays out until it gets a list */
}

void sp_watchers_see_news(sp_reactor *reactor)
{
    for (sp_watcher *at = reactor->watchers; at; at = at->next) {
        if (!at->given_up)
            see_news(at);
    }
}

void sp_watchers_settle(sp_reactor *reactor)
{
    for (sp_watcher *at = reactor->watchers; at; at = at->next) {
        if (!at->has_closed)
            continue;
        at->has_closed = false;
        at->is_stale = true;
        if (!at->given_up)
            replace_list(at, NULL, true);
    }
}

static void resume(sp_watcher *watcher)
{
    watcher->is_stale = false;
    if (watcher->given_up || watcher->ring.count == 0)
        return;
    watch_list *list = make_list(watcher);
    if (list)
        replace_list(watcher, list, false);
    else
        give_up(watcher);
}

void sp_watchers_resume(sp_reactor *reactor)
{
    for (sp_watcher *at = reactor->watchers; at; at = at->next) {
        if (at->is_stale)
            resume(at);
    }
}

/* ---- The end ---- */

void sp_watchers_end(sp_reactor *reactor)
{
    while (reactor->watchers) {
        sp_watcher *first = reactor->watchers;
        reactor->watchers = first->next;
        end_watcher(first);
    }
}

void sp_watchers_forget(sp_reactor *reactor)
{
    while (reactor->watchers) {
        sp_watcher *first = reactor->watchers;
        reactor->watchers = first->next;
        free_list(first->list);
        sp_waiter_unref(first->bell);
        free(first);
    }
}
