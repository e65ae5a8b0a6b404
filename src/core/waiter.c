/* SPDX-License-Identifier: MIT
 *
 * The base of every primitive: references, what is known reached, the sticky failure.
 *
 * `reached` and `failed_from` together never change an answer that was given: `reached` stays below
 * `failed_from`, and `failed_from` is only ever set above `reached`. Both are written under `lock`;
 * the fast path reads `reached` alone.
 */
#include "core.h"

#include <stdlib.h>

/* What failures share when there is no memory to keep their own cause. */
static sp_error lost_cause = {
    .status = SP_ERROR_FAILED,
    .cause = SP_ERROR_OUT_OF_MEMORY,
    .message = "the primitive failed; there was no memory left to keep the cause",
};

static bool agree(uint32_t features, uint32_t feature, bool first, bool second)
{
    bool wanted = (features & feature) != 0;
    return first == wanted && second == wanted;
}

/* Why the table cannot be used, or NULL. */
static const char *check_ops(const sp_waiter_ops *ops)
{
    if (ops->size != sizeof(sp_waiter_ops))
        return "size is not sizeof(sp_waiter_ops)";
    if (!ops->name)
        return "name is required";
    if (!ops->destroy)
        return "destroy is required";
    if (!ops->probe && !(ops->features & SP_FEATURE_COMPOSITE))
        return "probe is required";
    if (!agree(ops->features, SP_FEATURE_BLOCK, ops->block, ops->block))
        return "SP_FEATURE_BLOCK and block() go together, and one is missing";
    if (!agree(ops->features, SP_FEATURE_ARM, ops->arm, ops->disarm))
        return "SP_FEATURE_ARM, arm() and disarm() go together, and one is missing";
    if (!agree(ops->features, SP_FEATURE_GROUP, ops->group, ops->block_many))
        return "SP_FEATURE_GROUP, group() and block_many() go together, and one is missing";
    if ((ops->features & SP_FEATURE_COUNTING) && (ops->features & SP_FEATURE_CONSUMING))
        return "COUNTING and CONSUMING exclude each other";
    return NULL;
}

void sp_waiter_setup(sp_waiter *waiter, const sp_waiter_ops *ops)
{
    assert(!check_ops(ops));
    sp_os_watch_forks();
    *waiter = (sp_waiter){
        .ops = ops,
        .refs = 1,
        .features = ops->features,
        .fork_generation = sp_fork_generation,
        .failed_from = UINT64_MAX,
    };
}

sp_status sp_waiter_init(sp_waiter *waiter, const sp_waiter_ops *ops)
{
    const uint32_t known = SP_FEATURE_COUNTING | SP_FEATURE_CONSUMING | SP_FEATURE_BLOCK |
                           SP_FEATURE_ARM | SP_FEATURE_GROUP | SP_FEATURE_POLL;
    SP_CHECK_ARGUMENT(waiter && ops, "waiter and ops are required");
    const char *why = check_ops(ops);
    if (!why && (ops->features & ~known))
        why = "unknown feature bits";
    if (why)
        return sp_fail(SP_ERROR_INVALID_ARGUMENT, "sp_waiter_init: %s", why);
    sp_waiter_setup(waiter, ops);
    waiter->features |= SP_FEATURE_USER_MADE;
    return SP_OK;
}

sp_waiter *sp_waiter_ref(sp_waiter *waiter)
{
    if (waiter)
        sp_ref_inc(&waiter->refs);
    return waiter;
}

void sp_waiter_unref(sp_waiter *waiter)
{
    if (!waiter || !sp_ref_dec(&waiter->refs))
        return;
    sp_error *failure = waiter->failure;
    waiter->ops->destroy(waiter);
    if (failure != &lost_cause)
        free(failure);
}

sp_status sp_waiter_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    uint32_t number = sp_error_number();
    sp_status status = waiter->ops->block(waiter, value, deadline_ns);
    if (status < 0)
        return sp_waiter_keep_error(waiter, value, status, number);
    if (status != SP_OK)
        return SP_PENDING;
    sp_waiter_reached(waiter, value);
    return sp_waiter_check_failed(waiter, value);
}

bool sp_waiter_try_ref(sp_waiter *waiter)
{
    uint32_t refs = sp_load32(&waiter->refs);
    while (refs != 0) {
        if (sp_cas32(&waiter->refs, refs, refs + 1))
            return true;
        refs = sp_load32(&waiter->refs);
    }
    return false;
}

bool sp_waiter_forked(const sp_waiter *waiter)
{
    return waiter && sp_waiter_is_forked(waiter);
}

sp_status sp_fail_forked(void)
{
    return sp_fail(SP_ERROR_FORKED, "made before fork(): in the child it can only be released");
}

void sp_waiter_reached(sp_waiter *waiter, uint64_t value)
{
    if (!waiter || sp_waiter_known_reached(waiter, value))
        return;
    sp_os_spin_lock(&waiter->lock);
    if (value >= waiter->failed_from)
        value = waiter->failed_from - 1;
    if (value > waiter->reached)
        sp_store64(&waiter->reached, value);
    sp_os_spin_unlock(&waiter->lock);
}

static sp_error *duplicate_error(const sp_error *error)
{
    sp_error *copy = malloc(sizeof(*copy));
    if (!copy)
        return &lost_cause;
    *copy = *error;
    if (copy->cause == SP_OK)
        copy->cause = copy->status;
    copy->message[sizeof(copy->message) - 1] = '\0';
    return copy;
}

sp_status sp_waiter_fail(sp_waiter *waiter, uint64_t from, const sp_error *error)
{
    SP_CHECK_ARGUMENT(waiter && error, "waiter and error are required");
    SP_CHECK_ARGUMENT(error->status < 0, "a failure has a negative status");
    SP_CHECK_ARGUMENT(from != UINT64_MAX, "UINT64_MAX is not a value: nothing would fail");
    sp_error *copy = duplicate_error(error);
    sp_os_spin_lock(&waiter->lock);
    if (from <= waiter->reached)
        from = waiter->reached + 1;
    if (from < waiter->failed_from)
        sp_store64(&waiter->failed_from, from);
    bool first = !waiter->failure;
    if (first)
        waiter->failure = copy;
    sp_os_spin_unlock(&waiter->lock);
    if (!first && copy != &lost_cause)
        free(copy);
    return SP_OK;
}

void sp_waiter_fail_for_good(sp_waiter *waiter, const sp_error *error)
{
    sp_error kept = *error;
    if (sp_status_class(kept.status) == SP_CLASS_RECOVERABLE) {
        kept.cause = kept.status;
        kept.status = SP_ERROR_FAILED;
    }
    sp_waiter_fail(waiter, 0, &kept);
}

sp_status sp_waiter_require_reached(sp_waiter *waiter, uint64_t value, const char *call,
                                    const char *waits)
{
    sp_status status = sp_waiter_probe(waiter, value);
    if (status != SP_PENDING && status != SP_NOT_SUBMITTED)
        return status;
    bool consuming = waiter->features & SP_FEATURE_CONSUMING;
    return sp_fail(SP_ERROR_BACKEND_MISMATCH,
                   "%s: %s cannot wait on the device for this point (%s). Import the primitive and "
                   "wait for the import's point%s",
                   call, waits, waiter->ops->name,
                   consuming ? "; a wait on the host would use its one signal up"
                             : ", or wait on the host first");
}

sp_status sp_waiter_fail_as_stored(sp_waiter *waiter)
{
    /* Written once, before failed_from was, and never changed. */
    sp_os_spin_lock(&waiter->lock);
    const sp_error *failure = waiter->failure;
    sp_os_spin_unlock(&waiter->lock);
    return sp_fail_with(failure);
}

sp_status sp_waiter_keep_error(sp_waiter *waiter, uint64_t value, sp_status status, uint32_t number)
{
    status = sp_fail_as_told(status, waiter->ops, number);
    if (sp_status_class(status) != SP_CLASS_FATAL || status == SP_ERROR_FORKED)
        return status;
    sp_error error = *sp_last_error();
    sp_waiter_fail(waiter, 0, &error);
    return sp_waiter_known_reached(waiter, value) ? SP_OK : sp_fail_with(&error);
}

/* What counters read when the device behind them was removed. */
static sp_status keep_removed(sp_waiter *waiter, uint64_t value)
{
    sp_fail_native(SP_ERROR_DEVICE_LOST, waiter->ops->backend, 0, NULL,
                   "%s: the counter is UINT64_MAX: the device that signals it is gone",
                   waiter->ops->name);
    return sp_waiter_keep_error(waiter, value, SP_ERROR_DEVICE_LOST, 0);
}

sp_status sp_waiter_note_probe(sp_waiter *waiter, uint64_t value, sp_status status,
                               uint64_t reached)
{
    uint32_t number = 0;
    if (status < 0 && (waiter->features & SP_FEATURE_USER_MADE)) {
        /* The hot paths do not watch what a probe says about its error: ask once more. */
        number = sp_error_number();
        reached = 0;
        status = waiter->ops->probe(waiter, value, &reached);
    }
    if (status == SP_OK && reached == UINT64_MAX)
        return keep_removed(waiter, value);
    if (status == SP_NOT_SUBMITTED)
        return status;
    if (status == SP_PENDING || status == SP_TIMEOUT || (status == SP_OK && reached < value))
        return SP_PENDING;
    if (status != SP_OK)
        return sp_waiter_keep_error(waiter, value, status, number);
    sp_waiter_reached(waiter, reached);
    /* A failure may have come between: then that is the answer, for good. */
    return sp_waiter_check_failed(waiter, value);
}
