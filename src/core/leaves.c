/* SPDX-License-Identifier: MIT
 *
 * Walking over the points that a chain is made of. Chains may share parts (a chain of a chain with
 * itself has twice the points, and one node more): a part is walked once, else a few dozen calls of
 * sp_chain() would make a walk without end.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

#define SEEN_ON_STACK 64 /* a power of two */

typedef struct walk {
    sp_status (*visit)(void *user, const sp_point *leaf);
    void *user;
    bool reached_too;
    /* A hash set of the shared parts that were walked. */
    const sp_waiter **seen;
    size_t seen_count;
    size_t capacity; /* a power of two */
    const sp_waiter *few[SEEN_ON_STACK];
} walk;

static const sp_waiter **place_of(const sp_waiter **table, size_t capacity, const sp_waiter *part)
{
    size_t at = (size_t)(((uintptr_t)part >> 4) * UINT64_C(0x9E3779B97F4A7C15) >> 20);
    while (table[at & (capacity - 1)] && table[at & (capacity - 1)] != part)
        at++;
    return &table[at & (capacity - 1)];
}

static bool grow(walk *self)
{
    size_t capacity = self->capacity * 2;
    const sp_waiter **table = calloc(capacity, sizeof(const sp_waiter *));
    if (!table)
        return false;
    for (size_t i = 0; i < self->capacity; i++) {
        if (self->seen[i])
            *place_of(table, capacity, self->seen[i]) = self->seen[i];
    }
    if (self->seen != self->few)
        free(self->seen);
    self->seen = table;
    self->capacity = capacity;
    return true;
}

/* Was the part walked before? Then *again. A part that one reference holds has one parent, which is
 * itself walked once: it needs no note. */
static sp_status note(walk *self, sp_waiter *part, bool *again)
{
    *again = false;
    if (sp_load32(&part->refs) < 2)
        return SP_OK;
    if (self->seen_count * 2 >= self->capacity && !grow(self))
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "walking a chain: out of memory");
    const sp_waiter **place = place_of(self->seen, self->capacity, part);
    *again = *place != NULL;
    self->seen_count += !*again;
    *place = part;
    return SP_OK;
}

static sp_status walk_point(walk *self, const sp_point *point);

static sp_status walk_parts(walk *self, const sp_point *point)
{
    bool again;
    sp_status status = note(self, point->waiter, &again);
    if (status != SP_OK || again)
        return status;
    if (sp_point_is_slot(point)) {
        const sp_point *target = sp_slot_target(point);
        return target ? walk_point(self, target) : SP_NOT_SUBMITTED;
    }
    status = walk_point(self, sp_chain_first(point));
    return status == SP_OK ? walk_point(self, sp_chain_then(point)) : status;
}

static sp_status walk_point(walk *self, const sp_point *point)
{
    if (!point->waiter)
        return SP_OK;
    if (!self->reached_too && sp_waiter_known_reached(point->waiter, sp_point_target(point)))
        return SP_OK;
    sp_status failed = sp_waiter_check_failed(point->waiter, sp_point_target(point));
    if (failed != SP_OK)
        return failed;
    if (sp_point_is_chain(point) || sp_point_is_slot(point))
        return walk_parts(self, point);
    return self->visit(self->user, point);
}

static sp_status visit_leaves(const sp_point *point, walk self)
{
    self.capacity = SEEN_ON_STACK;
    self.seen = self.few;
    sp_status status = walk_point(&self, point);
    if (self.seen != self.few)
        free(self.seen);
    return status;
}

sp_status sp_point_visit_leaves(const sp_point *point,
                                sp_status (*visit)(void *user, const sp_point *leaf), void *user)
{
    return visit_leaves(point, (walk){.visit = visit, .user = user});
}

sp_status sp_point_visit_all_leaves(const sp_point *point,
                                    sp_status (*visit)(void *user, const sp_point *leaf),
                                    void *user)
{
    return visit_leaves(point, (walk){.visit = visit, .user = user, .reached_too = true});
}
