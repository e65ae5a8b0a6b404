/* SPDX-License-Identifier: MIT
 *
 * Waiting for all or any of many points, of any mix of primitives.
 *
 * Each round looks at every point that is not reached and finds the member it waits for now. Then
 * it blocks: in one native call if all those members belong to one group; for ALL on the first of
 * them, since every one must come; for ANY on an event that the primitives which can arm wake,
 * with a growing sleep if there are others.
 */
#include "core.h"

#include <stdlib.h>

#define ENTRIES_ON_STACK 16

/* What a waker wakes. */
typedef struct wake_event {
    sp_os_mutex mutex;
    sp_os_cond woken;
    bool set;
} wake_event;

typedef struct entry {
    const sp_point *leaf; /* what the point waits for now; NULL: reached                        */
    sp_waiter *armed;     /* where `waker` is left; NULL: nowhere                               */
    sp_waker waker;
} entry;

typedef struct many {
    const sp_point *points;
    size_t count;
    sp_wait_mode mode;
    uint64_t deadline_ns;
    entry *entries;
    sp_waiter **waiters; /* for block_many()                                                    */
    uint64_t *values;
    size_t pending;       /* entries with a leaf                                                */
    size_t first_pending; /* and the first of them                                              */
    bool all_unsubmitted; /* none of them is submitted                                          */
    size_t index;         /* the point that ended the wait                                      */
    wake_event event;
    sp_backoff backoff;
} many;

void sp_waker_wake(sp_waker *waker)
{
    wake_event *event = waker->target;
    sp_os_mutex_lock(&event->mutex);
    event->set = true;
    sp_os_cond_broadcast(&event->woken);
    sp_os_mutex_unlock(&event->mutex);
}

static bool event_init(wake_event *event)
{
    event->set = false;
    if (!sp_os_mutex_init(&event->mutex))
        return false;
    if (sp_os_cond_init(&event->woken))
        return true;
    sp_os_mutex_fini(&event->mutex);
    return false;
}

static void event_fini(wake_event *event)
{
    sp_os_cond_fini(&event->woken);
    sp_os_mutex_fini(&event->mutex);
}

static void event_wait(wake_event *event, uint64_t deadline_ns)
{
    sp_os_mutex_lock(&event->mutex);
    bool in_time = true;
    while (!event->set && in_time)
        in_time = sp_os_cond_wait_until(&event->woken, &event->mutex, deadline_ns);
    event->set = false;
    sp_os_mutex_unlock(&event->mutex);
}

static void disarm(entry *e)
{
    if (e->armed)
        e->armed->ops->disarm(e->armed, &e->waker);
    e->armed = NULL;
}

/* Looks at every point. PENDING: go on waiting; else the wait is over, with that status. */
static sp_status look(many *m)
{
    sp_status failure = SP_OK;
    m->pending = 0;
    m->all_unsubmitted = true;
    for (size_t i = 0; i < m->count; i++) {
        entry *e = &m->entries[i];
        const sp_point *leaf = NULL;
        sp_status status = sp_point_front(&m->points[i], &leaf);
        bool waits = status == SP_PENDING || status == SP_NOT_SUBMITTED;
        if (leaf != e->leaf || !waits)
            disarm(e);
        e->leaf = waits ? leaf : NULL;
        if (status == SP_OK && m->mode == SP_WAIT_ANY) {
            m->index = i;
            return SP_OK;
        }
        if (status < 0 && failure == SP_OK) {
            failure = status;
            m->index = i;
            if (m->mode == SP_WAIT_ALL)
                break;
        }
        if (waits && m->pending++ == 0)
            m->first_pending = i;
        m->all_unsubmitted = m->all_unsubmitted && status != SP_PENDING;
    }
    if (failure != SP_OK)
        return failure;
    return m->pending ? SP_PENDING : SP_OK;
}

/* The group that every pending leaf belongs to, or NULL. Fills waiters and values. */
static const void *common_group(many *m)
{
    const void *common = NULL;
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++) {
        const sp_point *leaf = m->entries[i].leaf;
        if (!leaf)
            continue;
        sp_waiter *waiter = leaf->waiter;
        uint32_t wanted = waiter->features & (SP_FEATURE_GROUP | SP_FEATURE_POLL);
        const void *group = wanted == SP_FEATURE_GROUP ? waiter->ops->group(waiter) : NULL;
        if (!group || (common && group != common))
            return NULL;
        common = group;
        m->waiters[n] = waiter;
        m->values[n++] = sp_point_target(leaf);
    }
    return common;
}

static uint64_t slice_end(const many *m)
{
    uint64_t end = sp_os_now_ns() + SP_WAIT_SLICE;
    return end < m->deadline_ns ? end : m->deadline_ns;
}

/* What shows itself only to who waits for it: blocking until now starts that wait without
 * blocking. */
static sp_status begin(sp_waiter *waiter, const sp_point *leaf)
{
    if (!sp_waiter_shows_only_to_waits(waiter))
        return SP_OK;
    uint64_t target = sp_point_target(leaf);
    sp_status status = waiter->ops->block(waiter, target, sp_os_now_ns());
    return status < 0 ? sp_waiter_keep_error(waiter, target, status) : SP_OK;
}

static sp_status begin_all(many *m)
{
    sp_status status = SP_OK;
    for (size_t i = 0; i < m->count && status == SP_OK; i++) {
        m->index = i;
        if (m->entries[i].leaf)
            status = begin(m->entries[i].leaf->waiter, m->entries[i].leaf);
    }
    return status;
}

/* Leaves a waker wherever one can be left. True if every pending point has one. */
static bool arm_all(many *m)
{
    bool all = true;
    for (size_t i = 0; i < m->count; i++) {
        entry *e = &m->entries[i];
        if (!e->leaf || e->armed)
            continue;
        sp_waiter *waiter = e->leaf->waiter;
        e->waker = (sp_waker){.target = &m->event};
        if ((waiter->features & SP_FEATURE_ARM) &&
            waiter->ops->arm(waiter, sp_point_target(e->leaf), &e->waker) == SP_OK)
            e->armed = waiter;
        else
            all = false;
    }
    return all;
}

static void sleep_until_woken(many *m)
{
    uint64_t end = slice_end(m);
    if (!arm_all(m)) {
        uint64_t polled = sp_os_now_ns() + sp_backoff_next(&m->backoff);
        end = polled < end ? polled : end;
    }
    event_wait(&m->event, end);
}

/* An error of the group is one of its members': looking at them tells which and why. */
static sp_status block_on_group(many *m, const sp_waiter_ops *ops)
{
    sp_status status = ops->block_many(m->waiters, m->values, m->pending, m->mode, slice_end(m));
    if (status == SP_TIMEOUT)
        sp_pause_between_slices(m->deadline_ns);
    if (status >= 0)
        return SP_OK;
    sp_status found = look(m);
    if (found != SP_PENDING)
        return found < 0 ? found : SP_OK;
    m->index = m->first_pending;
    return sp_fail_as_told(status, ops->name);
}

/* Blocks for one slice at most. Only an error is worth telling: the caller looks again. */
static sp_status block(many *m)
{
    const sp_point *first = m->entries[m->first_pending].leaf;
    if (common_group(m))
        return block_on_group(m, first->waiter->ops);
    if (m->mode == SP_WAIT_ANY) {
        sp_status status = begin_all(m);
        if (status == SP_OK)
            sleep_until_woken(m);
        return status;
    }
    m->index = m->first_pending;
    return sp_point_block_slice(first, m->deadline_ns, &m->backoff);
}

static sp_status wait_loop(many *m)
{
    uint64_t spin_end = sp_deadline_ns(SP_SPIN_DEFAULT);
    for (;;) {
        sp_status status = look(m);
        if (status != SP_PENDING)
            return status;
        uint64_t now = sp_os_now_ns();
        if (now >= m->deadline_ns)
            return m->all_unsubmitted ? SP_NOT_SUBMITTED : SP_TIMEOUT;
        if (now < spin_end) {
            sp_pause_between_probes();
            continue;
        }
        status = block(m);
        if (status != SP_OK)
            return status;
    }
}

/* Room for `count` points, in one piece after the entries. */
static void *room_for(many *m, size_t count)
{
    const size_t each = sizeof(entry) + sizeof(*m->waiters) + sizeof(*m->values);
    if (count > SIZE_MAX / each)
        return NULL;
    char *room = malloc(count * each);
    if (!room)
        return NULL;
    m->entries = (entry *)(void *)room;
    m->waiters = (sp_waiter **)(void *)(room + count * sizeof(entry));
    m->values = (uint64_t *)(void *)(m->waiters + count);
    return room;
}

static void tell_index(const many *m, sp_status status, size_t *index)
{
    if (!index)
        return;
    bool timed_out = status == SP_TIMEOUT || status == SP_NOT_SUBMITTED;
    if (timed_out && m->mode == SP_WAIT_ALL)
        *index = m->first_pending;
    else if (!timed_out && (status < 0 || m->mode == SP_WAIT_ANY))
        *index = m->index;
}

static sp_status wait_with_room(many *m, size_t *index)
{
    for (size_t i = 0; i < m->count; i++)
        m->entries[i] = (entry){0};
    if (!event_init(&m->event))
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_wait_many: no mutex to be had");
    sp_status status = wait_loop(m);
    for (size_t i = 0; i < m->count; i++)
        disarm(&m->entries[i]);
    event_fini(&m->event);
    tell_index(m, status, index);
    return status;
}

static sp_status check_points(const sp_point *points, size_t count, size_t *index)
{
    for (size_t i = 0; i < count; i++) {
        sp_waiter *waiter;
        sp_status status = sp_point_check(&points[i], &waiter);
        if (status == SP_OK)
            continue;
        if (index)
            *index = i;
        return status;
    }
    return SP_OK;
}

sp_status sp_wait_many(const sp_point *points, size_t count, sp_wait_mode mode, uint64_t timeout_ns,
                       size_t *index)
{
    SP_CHECK_ARGUMENT(points || count == 0, "points are required");
    SP_CHECK_ARGUMENT(mode == SP_WAIT_ALL || mode == SP_WAIT_ANY, "mode is neither ALL nor ANY");
    SP_CHECK_ARGUMENT(count > 0 || mode == SP_WAIT_ALL, "any of no points never comes");
    sp_status status = check_points(points, count, index);
    if (status != SP_OK || count == 0)
        return status;
    many m = {
        .points = points,
        .count = count,
        .mode = mode,
        .deadline_ns = sp_deadline_ns(timeout_ns),
    };
    entry entries[ENTRIES_ON_STACK];
    sp_waiter *waiters[ENTRIES_ON_STACK];
    uint64_t values[ENTRIES_ON_STACK];
    if (count <= ENTRIES_ON_STACK) {
        m.entries = entries;
        m.waiters = waiters;
        m.values = values;
        return wait_with_room(&m, index);
    }
    void *room = room_for(&m, count);
    if (!room)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_wait_many: out of memory for %zu points", count);
    status = wait_with_room(&m, index);
    free(room);
    return status;
}
