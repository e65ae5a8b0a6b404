/* SPDX-License-Identifier: MIT
 *
 * A promise of a point.
 */
#include "core.h"

#include <stdlib.h>

struct sp_slot {
    sp_waiter base;
    sp_point target; /* written once, before `is_set`                                          */
    uint32_t is_set;
    sp_watch watch; /* told when the slot is set or failed */
};

static sp_slot *slot_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_slot, base);
}

static bool slot_settled(sp_waiter *waiter, uint64_t value)
{
    (void)value;
    return sp_load32(&slot_of(waiter)->is_set) || sp_load64(&waiter->failed_from) != UINT64_MAX;
}

static sp_status slot_next(sp_waiter *waiter, const sp_point **member)
{
    sp_slot *slot = slot_of(waiter);
    if (!sp_load32(&slot->is_set))
        return SP_NOT_SUBMITTED;
    *member = &slot->target;
    sp_waiter *target = slot->target.waiter;
    if (target && !sp_waiter_known_reached(target, sp_point_target(&slot->target)))
        return SP_PENDING;
    sp_waiter_reached(waiter, 1);
    return SP_OK;
}

static sp_status slot_block(sp_waiter *waiter, uint64_t deadline_ns)
{
    sp_watch_block(&slot_of(waiter)->watch, waiter, 1, deadline_ns);
    return SP_OK;
}

static sp_status slot_arm(sp_waiter *waiter, uint64_t value, sp_waker *waker)
{
    sp_watch_arm(&slot_of(waiter)->watch, waiter, value, waker);
    return SP_OK;
}

static void slot_disarm(sp_waiter *waiter, sp_waker *waker)
{
    sp_watch_disarm(&slot_of(waiter)->watch, waker);
}

static void slot_free(sp_waiter *waiter)
{
    sp_slot *slot = slot_of(waiter);
    if (!sp_waiter_is_forked(waiter))
        sp_watch_fini(&slot->watch);
    sp_point_unref(&slot->target);
    free(slot);
}

static const sp_composite_ops slot_ops = {
    .base =
        {
            .size = sizeof(sp_waiter_ops),
            .features = SP_FEATURE_COMPOSITE | SP_FEATURE_ARM,
            .backend = SP_BACKEND_CPU,
            .name = "slot",
            .arm = slot_arm,
            .disarm = slot_disarm,
            .destroy = slot_free,
        },
    .next = slot_next,
    .block = slot_block,
};

bool sp_point_is_slot(const sp_point *point)
{
    return point->waiter && point->waiter->ops == &slot_ops.base;
}

const sp_point *sp_slot_target(const sp_point *point)
{
    const sp_slot *slot = slot_of(point->waiter);
    return sp_load32(&slot->is_set) ? &slot->target : NULL;
}

sp_status sp_slot_create(sp_slot **out)
{
    SP_CHECK_ARGUMENT(out, "out is required");
    sp_slot *slot = calloc(1, sizeof(*slot));
    if (!slot || !sp_watch_init(&slot->watch, slot_settled)) {
        free(slot);
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_slot_create: out of memory");
    }
    sp_waiter_setup(&slot->base, &slot_ops.base);
    *out = slot;
    return SP_OK;
}

/* Resolves the slot with a point or, if that is NULL, with an error. False: it was resolved
 * before. Takes the point on success. */
static bool settle(sp_slot *slot, const sp_point *target, const sp_error *error)
{
    sp_os_mutex_lock(&slot->watch.mutex);
    bool first = !slot_settled(&slot->base, 1);
    if (first && target) {
        slot->target = *target;
        sp_store32(&slot->is_set, 1);
    } else if (first) {
        sp_waiter_fail(&slot->base, 0, error);
    }
    if (first)
        sp_watch_wake_locked(&slot->watch, UINT64_MAX);
    sp_os_mutex_unlock(&slot->watch.mutex);
    return first;
}

void sp_slot_destroy(sp_slot *slot)
{
    if (!slot)
        return;
    if (!sp_waiter_is_forked(&slot->base)) {
        sp_error error;
        sp_error_format(&error, SP_ERROR_ABANDONED,
                        "the slot was destroyed before it was set: nobody can set it");
        settle(slot, NULL, &error);
    }
    sp_waiter_unref(&slot->base);
}

sp_status sp_slot_point(sp_slot *slot, sp_point *out)
{
    SP_CHECK_ARGUMENT(slot && out, "slot and out are required");
    if (sp_waiter_is_forked(&slot->base))
        return sp_fail_forked();
    *out = (sp_point){.kind = SP_KIND_DEFERRED, .waiter = sp_waiter_ref(&slot->base)};
    return SP_OK;
}

enum { LEVELS_NOT_SET = -1 };

/* How many slots lie inside each other in a point; LEVELS_NOT_SET if one of them is not set. */
static int slot_levels(const sp_point *point)
{
    if (sp_point_is_slot(point)) {
        const sp_point *target = sp_slot_target(point);
        if (!target && sp_load64(&point->waiter->failed_from) != UINT64_MAX)
            return 1; /* it never will be: its failure travels on */
        int inner = target ? slot_levels(target) : LEVELS_NOT_SET;
        return inner < 0 ? inner : inner + 1;
    }
    if (!sp_point_is_chain(point))
        return 0;
    uint32_t *memo = sp_chain_memo(point); /* levels + 1, once all slots are set */
    uint32_t known = sp_load32(memo);
    if (known)
        return (int)known - 1;
    int first = slot_levels(sp_chain_first(point));
    int then = first < 0 ? first : slot_levels(sp_chain_then(point));
    int levels = then < 0 || then > first ? then : first;
    if (levels >= 0)
        sp_store32(memo, (uint32_t)levels + 1);
    return levels;
}

sp_status sp_slot_set(sp_slot *slot, const sp_point *point)
{
    SP_CHECK_ARGUMENT(slot && point, "slot and point are required");
    if (sp_waiter_is_forked(&slot->base))
        return sp_fail_forked();
    sp_waiter *waiter;
    sp_status status = sp_point_check(point, &waiter);
    if (status != SP_OK)
        return status;
    int levels = slot_levels(point);
    if (levels < 0)
        return sp_fail(SP_ERROR_INVALID_STATE,
                       "sp_slot_set: the point holds a slot that is not set: set that one first");
    if (levels >= SP_SLOT_MAX_LEVELS)
        return sp_fail(SP_ERROR_INVALID_STATE, "sp_slot_set: slots nest %d levels at most",
                       SP_SLOT_MAX_LEVELS);
    sp_point target = sp_point_ref(point);
    if (settle(slot, &target, NULL))
        return SP_OK;
    sp_point_unref(&target);
    return sp_fail(SP_ERROR_INVALID_STATE, "sp_slot_set: the slot was set or failed before");
}

sp_status sp_slot_fail(sp_slot *slot, sp_status cause, const char *message)
{
    SP_CHECK_ARGUMENT(slot, "slot is required");
    SP_CHECK_ARGUMENT(cause < 0, "the cause of a failure is a negative status");
    if (sp_waiter_is_forked(&slot->base))
        return sp_fail_forked();
    sp_error error;
    sp_error_format(&error, SP_ERROR_FAILED, "%s",
                    message ? message : "the work behind the slot failed");
    error.cause = cause;
    if (!settle(slot, NULL, &error))
        return sp_fail(SP_ERROR_INVALID_STATE, "sp_slot_fail: the slot was set or failed before");
    return SP_OK;
}
