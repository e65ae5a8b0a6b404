/* SPDX-License-Identifier: MIT
 *
 * Watches: fences that tell of a semaphore with values, which GL cannot read. Behind each signal
 * of ours stands one, and behind each wait that the host inserted. A signal's fence is reached once
 * the work before it is done; a wait's may stay in its stream for ever, behind another semaphore's.
 * So there are two lists, each by value.
 */
#include "gl_internal.h"

/* How many of the oldest signals each new one looks at. One would make no long list shorter. */
#define LOOKS_PER_SIGNAL 2

/* So many waits for one semaphore may be parked in a stream. Those of threads that wait at the same
 * time must all be, in their order; those whose time ran out must not gather. */
#define PARKED_PER_STREAM 16

/* ---- Lists ---- */

static void add(sp_gl_semaphore *timeline, sp_gl_sync **list, sp_gl_sync *fence)
{
    sp_waiter_ref(&fence->base);
    sp_os_mutex_lock(&timeline->lock);
    sp_gl_sync **link = list;
    while (*link && (*link)->watched < fence->watched)
        link = &(*link)->next;
    fence->next = *link;
    *link = fence;
    sp_os_mutex_unlock(&timeline->lock);
}

static sp_gl_sync *at_least(sp_gl_sync *list, uint64_t value)
{
    while (list && list->watched < value)
        list = list->next;
    return list;
}

static sp_gl_sync *in_stream(sp_gl_sync *list, uint64_t stream)
{
    while (list && list->watched_in != stream)
        list = list->next;
    return list;
}

static sp_gl_sync *ref_or_null(sp_gl_sync *watch)
{
    if (watch)
        sp_waiter_ref(&watch->base);
    return watch;
}

/* The first of at least `value`, as a reference; NULL: none. */
static sp_gl_sync *find_signal(sp_gl_semaphore *timeline, uint64_t value)
{
    sp_os_mutex_lock(&timeline->lock);
    sp_gl_sync *found = ref_or_null(at_least(timeline->signals, value));
    sp_os_mutex_unlock(&timeline->lock);
    return found;
}

/* The same of each stream, after `skip` other streams' have come. */
static sp_gl_sync *find_wait(sp_gl_semaphore *timeline, uint64_t value, unsigned skip)
{
    sp_os_mutex_lock(&timeline->lock);
    sp_gl_sync *first = at_least(timeline->waits, value);
    sp_gl_sync *at = first;
    while (at && (in_stream(first, at->watched_in) != at || skip-- > 0))
        at = at->next;
    ref_or_null(at);
    sp_os_mutex_unlock(&timeline->lock);
    return at;
}

static bool unlink_locked(sp_gl_sync **list, const sp_gl_sync *watch)
{
    while (*list && *list != watch)
        list = &(*list)->next;
    bool found = *list != NULL;
    if (found)
        *list = watch->next;
    return found;
}

void sp_gl_watch_drop(sp_gl_semaphore *timeline, sp_gl_sync *watch)
{
    sp_os_mutex_lock(&timeline->lock);
    bool found = unlink_locked(&timeline->signals, watch) || unlink_locked(&timeline->waits, watch);
    sp_os_mutex_unlock(&timeline->lock);
    if (found)
        sp_gl_sync_unref(watch);
}

static void unref_list(sp_gl_sync *list)
{
    while (list) {
        sp_gl_sync *next = list->next;
        list->next = NULL;
        sp_gl_sync_unref(list);
        list = next;
    }
}

/* Unlinks the watches up to `value`, which nobody needs any more. */
static sp_gl_sync *take_known_locked(sp_gl_sync **list, uint64_t value)
{
    sp_gl_sync *taken = *list;
    sp_gl_sync **link = list;
    while (*link && (*link)->watched <= value)
        link = &(*link)->next;
    if (link == list)
        return NULL;
    *list = *link;
    *link = NULL;
    return taken;
}

static void drop_known(sp_gl_semaphore *timeline)
{
    uint64_t reached = sp_load64(&timeline->base.reached);
    sp_os_mutex_lock(&timeline->lock);
    sp_gl_sync *signals = take_known_locked(&timeline->signals, reached);
    sp_gl_sync *waits = take_known_locked(&timeline->waits, reached);
    sp_os_mutex_unlock(&timeline->lock);
    unref_list(signals);
    unref_list(waits);
}

/* ---- Looking ---- */

/* SP_OK, PENDING, or an error of the call, which is no failure of the watch. One that has failed
 * says nothing of the semaphore: it is dropped, and PENDING, since another one may tell, and a wait
 * for the value inserts its own. */
static sp_status look(sp_gl_semaphore *timeline, sp_gl_sync *watch)
{
    sp_status status = sp_gl_sync_look(watch);
    if (status >= 0 || !sp_gl_sync_has_failed(watch))
        return status;
    sp_gl_watch_drop(timeline, watch);
    return SP_PENDING;
}

/* Takes the reference. SP_OK: *reached is set. */
static sp_status ask_one(sp_gl_semaphore *timeline, sp_gl_sync *watch, uint64_t *reached)
{
    sp_status status = look(timeline, watch);
    if (status == SP_OK)
        *reached = watch->watched;
    sp_gl_sync_unref(watch);
    return status;
}

/* Signals run in order, and so do the waits of one stream: if the first has not run, none has. */
sp_status sp_gl_watches_ask(sp_gl_semaphore *timeline, uint64_t value, uint64_t *reached)
{
    *reached = 0;
    sp_status status = SP_PENDING;
    sp_gl_sync *watch = find_signal(timeline, value);
    if (watch)
        status = ask_one(timeline, watch, reached);
    for (unsigned i = 0; status == SP_PENDING; i++) {
        watch = find_wait(timeline, value, i);
        if (!watch)
            return SP_OK;
        status = ask_one(timeline, watch, reached);
    }
    return status;
}

static void look_at_oldest_signals(sp_gl_semaphore *timeline)
{
    uint64_t reached = 0;
    for (unsigned i = 0; i < LOOKS_PER_SIGNAL; i++) {
        sp_gl_sync *oldest = find_signal(timeline, sp_load64(&timeline->base.reached) + 1);
        if (!oldest || ask_one(timeline, oldest, &reached) != SP_OK)
            return;
        sp_waiter_reached(&timeline->base, reached);
    }
}

void sp_gl_watch_signal(sp_gl_semaphore *timeline, uint64_t value, sp_gl_sync *fence)
{
    look_at_oldest_signals(timeline);
    drop_known(timeline);
    fence->watched = value;
    add(timeline, &timeline->signals, fence);
}

void sp_gl_watch_wait(sp_gl_semaphore *timeline, uint64_t value, sp_gl_sync *fence, uint64_t stream)
{
    drop_known(timeline);
    fence->watched = value;
    fence->watched_in = stream;
    add(timeline, &timeline->waits, fence);
}

/* ---- What a wait finds ---- */

static sp_gl_sync *exactly(sp_gl_sync *list, uint64_t value)
{
    sp_gl_sync *at = at_least(list, value);
    return at && at->watched == value ? at : NULL;
}

/* Behind a wait for more a new one would tell nothing sooner. Behind those for less it has to be
 * inserted, so that it comes before later ones for more: unless they are too many. */
static sp_gl_sync *find_parked_locked(const sp_gl_semaphore *timeline, uint64_t value,
                                      uint64_t stream)
{
    unsigned count = 0;
    sp_gl_sync *first = in_stream(timeline->waits, stream);
    for (sp_gl_sync *at = first; at; at = in_stream(at->next, stream)) {
        if (at->watched > value)
            return at;
        count++;
    }
    return count < PARKED_PER_STREAM ? NULL : first;
}

sp_gl_sync *sp_gl_watch_find(sp_gl_semaphore *timeline, uint64_t value, uint64_t stream)
{
    sp_os_mutex_lock(&timeline->lock);
    sp_gl_sync *found = exactly(timeline->signals, value);
    if (!found)
        found = exactly(timeline->waits, value);
    if (!found)
        found = find_parked_locked(timeline, value, stream);
    ref_or_null(found);
    sp_os_mutex_unlock(&timeline->lock);
    return found;
}

/* ---- The end ---- */

static uint64_t known_of(const sp_gl_sync *list)
{
    uint64_t reached = 0;
    for (; list; list = list->next) {
        if (sp_waiter_known_reached(&list->base, 1))
            reached = list->watched;
    }
    return reached;
}

void sp_gl_timeline_settle(sp_gl_semaphore *timeline)
{
    sp_os_mutex_lock(&timeline->lock);
    uint64_t signals = known_of(timeline->signals), waits = known_of(timeline->waits);
    sp_os_mutex_unlock(&timeline->lock);
    sp_waiter_reached(&timeline->base, signals > waits ? signals : waits);
}

void sp_gl_semaphore_drop_fences(sp_gl_semaphore *semaphore)
{
    bool forked = sp_gl_is_forked(semaphore->context);
    if (!forked)
        sp_os_mutex_lock(&semaphore->lock);
    sp_gl_sync *signals = semaphore->signals;
    sp_gl_sync *waits = semaphore->waits;
    sp_gl_sync *gate = semaphore->last_gate;
    semaphore->signals = NULL;
    semaphore->waits = NULL;
    semaphore->last_gate = NULL;
    if (!forked)
        sp_os_mutex_unlock(&semaphore->lock);
    unref_list(signals);
    unref_list(waits);
    sp_gl_sync_unref(gate);
}
