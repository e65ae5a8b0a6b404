/* SPDX-License-Identifier: MIT */
#include "things.h"

void thing_open(thing *self, thing_kind kind)
{
    *self = (thing){.kind = kind};
    if (kind == THING_POLLED) {
        self->counter = counter_create(COUNTER_PROBE);
        self->point = counter_point(self->counter, 1);
        return;
    }
    CHECK_STATUS(sp_host_timeline_create(0, &self->timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(self->timeline, 1, &self->point), SP_OK);
    if (kind == THING_SLOT) {
        sp_point_unref(&self->point);
        CHECK_STATUS(sp_slot_create(&self->slot), SP_OK);
        CHECK_STATUS(sp_slot_point(self->slot, &self->point), SP_OK);
    }
}

void thing_close(thing *self)
{
    if (self->late.run)
        worker_join(&self->late);
    sp_point_unref(&self->point);
    if (self->counter)
        counter_unref(self->counter);
    sp_slot_destroy(self->slot);
    sp_host_timeline_destroy(self->timeline);
}

void thing_signal(thing *self)
{
    sp_point inner = {0};
    flag_set(&self->ending);
    if (self->counter) {
        counter_signal(self->counter, 1);
        return;
    }
    if (self->slot) {
        CHECK_STATUS(sp_host_timeline_point(self->timeline, 1, &inner), SP_OK);
        CHECK_STATUS(sp_slot_set(self->slot, &inner), SP_OK);
        sp_point_unref(&inner);
    }
    CHECK_STATUS(sp_host_timeline_signal(self->timeline, 1), SP_OK);
}

void thing_fail(thing *self)
{
    flag_set(&self->ending);
    if (self->counter)
        counter_set_probe_status(self->counter, SP_ERROR_DEVICE_LOST);
    else if (self->slot)
        CHECK_STATUS(sp_slot_fail(self->slot, SP_ERROR_PEER_CLOSED, "gone"), SP_OK);
    else
        CHECK_STATUS(sp_host_timeline_fail(self->timeline, SP_ERROR_PEER_CLOSED, "gone"), SP_OK);
}

static void signal_now(void *user)
{
    thing_signal(user);
}

static void fail_now(void *user)
{
    thing_fail(user);
}

void thing_signal_late(thing *self)
{
    worker_start(&self->late, DELAY_MS, signal_now, self);
}

void thing_fail_late(thing *self)
{
    worker_start(&self->late, DELAY_MS, fail_now, self);
}

sp_status thing_failure(const thing *self)
{
    return self->counter ? SP_ERROR_DEVICE_LOST : SP_ERROR_FAILED;
}
