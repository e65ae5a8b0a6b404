/* SPDX-License-Identifier: MIT */
#include "stress.h"

static void on_call(void *user, sp_status status);

static uint64_t random_timeout(test_rng *rng)
{
    switch (test_random_below(rng, 8)) {
    case 0:
        return 0;
    case 1:
        return 1 + test_random_below(rng, 20000);
    case 2:
        return 1 + test_random_below(rng, 2000000);
    case 3:
        return SP_TIMEOUT_DEFAULT;
    default:
        return SP_FOREVER;
    }
}

static bool is_ending(station *at)
{
    return __atomic_load_n(&at->ending, __ATOMIC_SEQ_CST);
}

static void let_go(record *self)
{
    subject_drop(self->subject);
    self->subject = NULL;
    __atomic_store_n(&self->state, RECORD_FREE, __ATOMIC_SEQ_CST);
}

static bool notify(record *self, const sp_point *point, test_rng *rng)
{
    uint64_t timeout_ns = random_timeout(rng);
    self->reached = sp_poll(point) == SP_OK;
    self->not_before_ns = sp_deadline_ns(timeout_ns);
    __atomic_fetch_add(&self->at->outstanding, 1, __ATOMIC_SEQ_CST);
    __atomic_store_n(&self->state, RECORD_LIVE, __ATOMIC_SEQ_CST);
    sp_status status =
        sp_notify(self->at->reactor, point, timeout_ns, on_call, self, &self->ticket);
    if (status == SP_OK)
        return true;
    __atomic_fetch_sub(&self->at->outstanding, 1, __ATOMIC_SEQ_CST);
    if (status != SP_ERROR_INVALID_STATE || !is_ending(self->at))
        complain("sp_notify said %s", sp_status_name(status));
    let_go(self);
    return false;
}

bool record_notify(record *self, station *at, test_rng *rng)
{
    sp_point point = {0};
    *self = (record){.at = at, .generation = at->generation, .subject = subject_get(rng)};
    if (!subject_point(self->subject, rng, &point, &self->value)) {
        let_go(self);
        return false;
    }
    bool done = notify(self, &point, rng);
    sp_point_unref(&point);
    return done;
}

void record_cancel(record *self)
{
    __atomic_store_n(&self->asked, true, __ATOMIC_SEQ_CST);
    sp_status said = sp_cancel(self->at->reactor, self->ticket);
    if (said == SP_OK)
        self->said_ok = true;
    else if (said != SP_PENDING)
        complain("sp_cancel said %s", sp_status_name(said));
}

/* ---- The callback ---- */

static bool is_legal(const record *self)
{
    switch (self->status) {
    case SP_TIMEOUT:
        return self->not_before_ns != SP_FOREVER && sp_now_ns() >= self->not_before_ns &&
               !self->reached;
    case SP_ERROR_CANCELLED:
        return self->in_the_end || __atomic_load_n(&self->asked, __ATOMIC_SEQ_CST);
    case SP_OK:
        return subject_may_say(self->subject, self->value, SP_OK);
    default:
        return !self->reached && subject_may_say(self->subject, self->value, self->status);
    }
}

static bool is_own(const record *self)
{
    return self >= self->at->own && self < self->at->own + OWN_RECORDS;
}

/* Callbacks come one at a time, so that their records need no lock. */
static void act(station *at)
{
    record *any = &at->own[test_random_below(&at->rng, OWN_RECORDS)];
    unsigned state = __atomic_load_n(&any->state, __ATOMIC_SEQ_CST);
    if (state == RECORD_FREE)
        record_notify(any, at, &at->rng);
    else if (state == RECORD_LIVE)
        record_cancel(any);
}

static void on_call(void *user, sp_status status)
{
    record *self = user;
    station *at = self->at;
    if (__atomic_fetch_add(&at->running, 1, __ATOMIC_SEQ_CST) != 0)
        complain("two callbacks of one reactor at a time");
    if (status < 0 && sp_last_error()->status != status)
        complain("sp_last_error() does not tell of %s", sp_status_name(status));
    self->status = status;
    self->in_the_end = is_ending(at);
    if (!is_legal(self))
        complain("%s cannot be: sort %d, value %llu", sp_status_name(status),
                 (int)self->subject->source.sort, (unsigned long long)self->value);
    count_told(status);
    if (test_random_below(&at->rng, 8) == 0)
        act(at);
    bool own = is_own(self);
    if (__atomic_exchange_n(&self->state, RECORD_CALLED, __ATOMIC_SEQ_CST) != RECORD_LIVE)
        complain("called twice, or for nothing");
    if (own)
        record_judge(self);
    __atomic_fetch_sub(&at->running, 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_sub(&at->outstanding, 1, __ATOMIC_SEQ_CST);
}

/* What sp_cancel() said, and what came. */
void record_judge(record *self)
{
    bool cancelled = self->status == SP_ERROR_CANCELLED;
    if (self->said_ok && !cancelled)
        complain("sp_cancel said OK, and then came %s", sp_status_name(self->status));
    if (!self->said_ok && cancelled && !self->in_the_end)
        complain("cancelled, and no sp_cancel said OK");
    let_go(self);
}
