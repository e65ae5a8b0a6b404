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

/* What the wakers of one wait wake. */
typedef struct wake_event {
    sp_os_mutex mutex;
    sp_os_cond woken;
    bool set;
} wake_event;

typedef struct entry {
    const sp_point *leaf; /* what the point waits for now; NULL: reached                        */
    sp_waiter *armed;     /* where `waker` is left; NULL: nowhere                               */
    wake_event *event;    /* what it wakes                                                      */
    sp_waker waker;
} entry;

typedef struct many {
    const sp_point *points;
    size_t count;
    sp_wait_mode mode;
    uint64_t deadline_ns;
    const sp_wait_options *options;
    entry *entries;
    sp_waiter **waiters; /* for block_many()                                                    */
    uint64_t *values;
    size_t pending;       /* entries with a leaf                                                */
    size_t first_pending; /* and the first of them                                              */
    bool all_unsubmitted; /* none of them is submitted                                          */
    bool interrupted;
    size_t index; /* the point that ended the wait                                      */
    wake_event event;
    sp_backoff backoff;
} many;

static void wake(sp_waker *waker)
{
    wake_event *event = SP_CONTAINER_OF(waker, entry, waker)->event;
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
    sp_error failure = {.status = SP_OK};
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
        if (status < 0 && failure.status == SP_OK) {
            failure = *sp_last_error();
            m->index = i;
            if (m->mode == SP_WAIT_ALL)
                break;
        }
        if (waits && m->pending++ == 0)
            m->first_pending = i;
        m->all_unsubmitted = m->all_unsubmitted && status != SP_PENDING;
    }
    if (failure.status != SP_OK)
        return sp_fail_with(&failure);
    return m->pending ? SP_PENDING : SP_OK;
}

/* The group that every pending leaf belongs to, or NULL. Fills waiters and values. */
static const void *common_group(many *m)
{
    const void *common = NULL;
    const sp_waiter_ops *ops = NULL;
    size_t n = 0;
    for (size_t i = 0; i < m->count; i++) {
        const sp_point *leaf = m->entries[i].leaf;
        if (!leaf)
            continue;
        sp_waiter *waiter = leaf->waiter;
        uint32_t wanted = waiter->features & (SP_FEATURE_GROUP | SP_FEATURE_POLL);
        const void *group = wanted == SP_FEATURE_GROUP ? waiter->ops->group(waiter) : NULL;
        /* Tables of different makers may have one key by chance. */
        if (!group || (common && (group != common || waiter->ops != ops)))
            return NULL;
        common = group;
        ops = waiter->ops;
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

/* PENDING: all that show only to waits are waited for. SP_OK: one is reached; else its error. */
static sp_status start_all_waits(many *m)
{
    sp_status status = SP_PENDING;
    for (size_t i = 0; i < m->count && status == SP_PENDING; i++) {
        const sp_point *leaf = m->entries[i].leaf;
        m->index = i;
        if (leaf && sp_waiter_shows_only_to_waits(leaf->waiter))
            status = sp_waiter_block(leaf->waiter, sp_point_target(leaf), sp_os_now_ns());
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
        e->event = &m->event;
        e->waker = (sp_waker){.wake = wake};
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
    uint32_t number = sp_error_number();
    sp_status status = ops->block_many(m->waiters, m->values, m->pending, m->mode, slice_end(m));
    if (status == SP_TIMEOUT)
        sp_pause_between_slices(m->deadline_ns);
    if (status >= 0)
        return SP_OK;
    sp_fail_as_told(status, ops, number);
    sp_error error = *sp_last_error();
    sp_status found = look(m);
    if (found != SP_PENDING)
        return found < 0 ? found : SP_OK;
    m->index = m->first_pending;
    return sp_fail_with(&error);
}

/* Blocks for one slice at most. Only an error is worth telling: the caller looks again. */
static sp_status block(many *m)
{
    const sp_point *first = m->entries[m->first_pending].leaf;
    if (common_group(m))
        return block_on_group(m, first->waiter->ops);
    if (m->mode == SP_WAIT_ANY) {
        sp_status status = start_all_waits(m);
        if (status == SP_PENDING)
            sleep_until_woken(m);
        return status < 0 ? status : SP_OK;
    }
    m->index = m->first_pending;
    return sp_point_block_slice(first, m->deadline_ns, &m->backoff);
}

static sp_status wait_loop(many *m)
{
    uint64_t spin_end = sp_deadline_ns(m->options->spin_ns);
    for (;;) {
        sp_status status = look(m);
        if (status != SP_PENDING)
            return status;
        uint64_t now = sp_os_now_ns();
        status = sp_interrupt_check(m->options->interrupt);
        if (status != SP_OK) {
            m->interrupted = true;
            return status;
        }
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
    if (!index || m->interrupted)
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

static const char *check_arguments(const sp_point *points, size_t count, sp_wait_mode mode)
{
    if (!points && count > 0)
        return "points are required";
    if (mode != SP_WAIT_ALL && mode != SP_WAIT_ANY)
        return "mode is neither ALL nor ANY";
    return count == 0 && mode == SP_WAIT_ANY ? "any of no points never comes" : NULL;
}

static sp_status wait_many(const sp_point *points, size_t count, sp_wait_mode mode,
                           const sp_wait_options *options, size_t *index)
{
    const char *why = check_arguments(points, count, mode);
    if (why)
        return sp_fail(SP_ERROR_INVALID_ARGUMENT, "sp_wait_many: %s", why);
    sp_status status = check_points(points, count, index);
    if (status != SP_OK || count == 0)
        return status;
    many m = {
        .points = points,
        .count = count,
        .mode = mode,
        .deadline_ns = sp_deadline_ns(options->timeout_ns),
        .options = options,
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

sp_status sp_wait_many(const sp_point *points, size_t count, sp_wait_mode mode, uint64_t timeout_ns,
                       size_t *index)
{
    const sp_wait_options options = {.timeout_ns = timeout_ns, .spin_ns = SP_SPIN_DEFAULT};
    return wait_many(points, count, mode, &options, index);
}

sp_status sp_wait_many_with(const sp_point *points, size_t count, sp_wait_mode mode,
                            const sp_wait_options *options, size_t *index)
{
    SP_CHECK_ARGUMENT(options, "options are required");
    SP_CHECK_SIZE(options);
    return wait_many(points, count, mode, options, index);
}
