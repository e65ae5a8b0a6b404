/* SPDX-License-Identifier: MIT
 *
 * One signal operation of a primitive that a wait uses up.
 */
#include "core.h"

void sp_oneshot_setup(sp_oneshot *oneshot, const sp_waiter_ops *ops, uint32_t state)
{
    sp_waiter_setup(&oneshot->base, ops);
    assert(oneshot->base.features & SP_FEATURE_ONESHOT);
    sp_store32(&oneshot->state, state);
}

static sp_status fail_used_up(const sp_oneshot *oneshot)
{
    return sp_fail(SP_ERROR_INVALID_STATE,
                   "%s: another wait has used this signal up; one signal serves one wait",
                   oneshot->base.ops->name);
}

sp_status sp_oneshot_claim(sp_oneshot *oneshot)
{
    sp_status failed = sp_waiter_check_failed(&oneshot->base, 1);
    if (failed != SP_OK)
        return failed;
    if (sp_cas32(&oneshot->state, SP_ONESHOT_SUBMITTED, SP_ONESHOT_CLAIMED))
        return SP_OK;
    if (sp_load32(&oneshot->state) == SP_ONESHOT_UNSUBMITTED)
        return SP_NOT_SUBMITTED;
    return fail_used_up(oneshot);
}

void sp_oneshot_unclaim(sp_oneshot *oneshot)
{
    bool was_claimed = sp_cas32(&oneshot->state, SP_ONESHOT_CLAIMED, SP_ONESHOT_SUBMITTED);
    assert(was_claimed);
    (void)was_claimed;
}

sp_status sp_oneshot_claim_or_join(sp_oneshot *oneshot)
{
    sp_status failed = sp_waiter_check_failed(&oneshot->base, 1);
    if (failed != SP_OK)
        return failed;
    if (sp_cas32(&oneshot->state, SP_ONESHOT_SUBMITTED, SP_ONESHOT_CLAIMED))
        return SP_OK;
    bool used_up = sp_load32(&oneshot->state) == SP_ONESHOT_CONSUMED;
    return used_up ? fail_used_up(oneshot) : SP_PENDING;
}

/* Nothing will wake us. */
sp_status sp_oneshot_wait_for_mark(const sp_oneshot *oneshot, uint64_t deadline_ns)
{
    sp_backoff backoff = {0};
    while (sp_load32(&oneshot->state) == SP_ONESHOT_UNSUBMITTED &&
           sp_load64(&oneshot->base.failed_from) == UINT64_MAX) {
        if (sp_now_ns() >= deadline_ns)
            break;
        sp_backoff_sleep(&backoff, deadline_ns);
    }
    return SP_TIMEOUT;
}

sp_oneshot *sp_oneshot_supersede(sp_oneshot *oneshot)
{
    if (!oneshot)
        return NULL;
    bool taken = sp_cas32(&oneshot->state, SP_ONESHOT_UNSUBMITTED, SP_ONESHOT_CONSUMED) ||
                 sp_cas32(&oneshot->state, SP_ONESHOT_SUBMITTED, SP_ONESHOT_CONSUMED);
    return taken && sp_waiter_try_ref(&oneshot->base) ? oneshot : NULL;
}

void sp_oneshot_fail_superseded(sp_oneshot *oneshot)
{
    sp_error error;
    if (!oneshot)
        return;
    sp_error_format(&error, SP_ERROR_INVALID_STATE,
                    "a later point of the same binary semaphore took this one's place");
    error.backend = oneshot->base.ops->backend;
    sp_waiter_fail(&oneshot->base, 1, &error);
    sp_waiter_unref(&oneshot->base);
}

sp_status sp_fail_signal_pending(void)
{
    return sp_fail(
        SP_ERROR_INVALID_STATE,
        "a signal of this semaphore is pending, and nobody waits for it yet: wait for its "
        "point, or release that if another API or process waits");
}

sp_status sp_point_mark_submitted(const sp_point *point)
{
    sp_waiter *waiter;
    sp_status status = sp_point_check(point, &waiter);
    if (status != SP_OK)
        return status;
    if (!waiter || !(waiter->features & SP_FEATURE_ONESHOT))
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_point_mark_submitted: only one signal of a binary tracks submission");
    status = sp_waiter_check_failed(waiter, 1);
    if (status != SP_OK)
        return sp_fail(SP_ERROR_INVALID_STATE, "sp_point_mark_submitted: the signal has failed");
    sp_oneshot *oneshot = SP_CONTAINER_OF(waiter, sp_oneshot, base);
    sp_cas32(&oneshot->state, SP_ONESHOT_UNSUBMITTED, SP_ONESHOT_SUBMITTED);
    return SP_OK;
}
