/* SPDX-License-Identifier: MIT */
#include "source.h"

#include "support/test.h"

#include <fcntl.h>
#include <stdio.h>
#include <syncpoint/linux.h>
#include <unistd.h>

static const char *const names[SORT_COUNT] = {
    "host",  "slot", "chain", "descriptor",     "probe",
    "block", "arm",  "group", "one-shot probe", "one-shot arm",
};

static counter_style style_of(sort which)
{
    return (counter_style)((int)which - SORT_PROBE + COUNTER_PROBE);
}

bool sort_counts(sort which)
{
    return which == SORT_HOST || (which >= SORT_PROBE && which <= SORT_GROUP);
}

sp_status sort_failure(sort which)
{
    if (which == SORT_FD)
        return SP_ERROR_ABANDONED;
    return which < SORT_PROBE ? SP_ERROR_FAILED : SP_ERROR_DEVICE_LOST;
}

sp_status sort_cause(sort which)
{
    sp_status failure = sort_failure(which);
    return failure == SP_ERROR_FAILED ? SP_ERROR_PEER_CLOSED : failure;
}

bool sources_are_quiet;

static void tell(sort which)
{
    static const char *told; /* atomic */
    if (sources_are_quiet)
        return;
    if (__atomic_exchange_n(&told, names[which], __ATOMIC_SEQ_CST) != names[which])
        printf("%s\n", names[which]);
}

source source_make(sort which)
{
    source made = {.sort = which, .pipe = {-1, -1}};
    tell(which);
    if (which >= SORT_PROBE)
        made.counter = counter_create(style_of(which));
    if (which <= SORT_CHAIN)
        CHECK_STATUS(sp_host_timeline_create(0, &made.first), SP_OK);
    if (which == SORT_CHAIN)
        CHECK_STATUS(sp_host_timeline_create(0, &made.second), SP_OK);
    if (which == SORT_SLOT)
        CHECK_STATUS(sp_slot_create(&made.slot), SP_OK);
    if (which == SORT_FD)
        CHECK(pipe2(made.pipe, O_CLOEXEC | O_NONBLOCK) == 0);
    return made;
}

static void close_end(int *end)
{
    if (*end >= 0)
        CHECK(close(*end) == 0);
    *end = -1;
}

void source_end(source *self)
{
    sp_slot_destroy(self->slot);
    sp_host_timeline_destroy(self->first);
    sp_host_timeline_destroy(self->second);
    if (self->counter)
        counter_unref(self->counter);
    close_end(&self->pipe[1]);
    close_end(&self->pipe[0]);
    *self = (source){.sort = self->sort, .pipe = {-1, -1}};
}

static sp_point host_point(sp_host_timeline *timeline, uint64_t value)
{
    sp_point point = {0};
    CHECK_STATUS(sp_host_timeline_point(timeline, value, &point), SP_OK);
    return point;
}

sp_point source_point(source *self, uint64_t value)
{
    sp_point point = {0};
    if (self->counter)
        return counter_point(self->counter, value);
    if (self->sort == SORT_HOST)
        return host_point(self->first, value);
    if (self->sort == SORT_FD) {
        CHECK_STATUS(sp_fd_point(self->pipe[0], 0, &point), SP_OK);
        return point;
    }
    if (self->sort == SORT_SLOT) {
        CHECK_STATUS(sp_slot_point(self->slot, &point), SP_OK);
        return point;
    }
    sp_point parts[2] = {host_point(self->first, 1), host_point(self->second, 1)};
    CHECK_STATUS(sp_chain(&parts[0], &parts[1], &point), SP_OK);
    sp_point_unref(&parts[0]);
    sp_point_unref(&parts[1]);
    return point;
}

void source_signal(source *self, uint64_t value)
{
    if (self->counter) {
        counter_signal(self->counter, sort_counts(self->sort) ? value : 1);
        return;
    }
    if (self->sort == SORT_FD) {
        CHECK(write(self->pipe[1], "", 1) == 1);
        return;
    }
    if (self->sort == SORT_SLOT) {
        sp_point target = host_point(self->first, 1);
        CHECK_STATUS(sp_slot_set(self->slot, &target), SP_OK);
        sp_point_unref(&target);
    }
    CHECK_STATUS(sp_host_timeline_signal(self->first, self->sort == SORT_HOST ? value : 1), SP_OK);
    if (self->sort == SORT_CHAIN)
        CHECK_STATUS(sp_host_timeline_signal(self->second, 1), SP_OK);
}

/* Of a chain the second part fails, and the first is reached. */
void source_fail(source *self)
{
    sp_status cause = sort_cause(self->sort);
    if (self->counter)
        counter_fail(self->counter, cause);
    if (self->sort == SORT_FD)
        close_end(&self->pipe[1]);
    if (self->sort == SORT_SLOT)
        CHECK_STATUS(sp_slot_fail(self->slot, cause, "it is gone"), SP_OK);
    if (self->sort == SORT_HOST)
        CHECK_STATUS(sp_host_timeline_fail(self->first, cause, "it is gone"), SP_OK);
    if (self->sort == SORT_CHAIN) {
        CHECK_STATUS(sp_host_timeline_signal(self->first, 1), SP_OK);
        CHECK_STATUS(sp_host_timeline_fail(self->second, cause, "it is gone"), SP_OK);
    }
}
