/* SPDX-License-Identifier: MIT
 *
 * Conformance: a wait that another thread ends leaves everything as it was.
 */
#include "conformance.h"

#define UNTOUCHED 4711u

typedef struct late_interrupt {
    worker worker;
    sp_interrupt *interrupt;
    flag raised;
} late_interrupt;

static void raise_it(void *user)
{
    late_interrupt *late = user;
    flag_set(&late->raised);
    sp_interrupt_raise(late->interrupt);
}

static void raise_late(late_interrupt *late, sp_interrupt *interrupt)
{
    *late = (late_interrupt){.interrupt = interrupt};
    worker_start(&late->worker, DELAY_MS, raise_it, late);
}

static sp_wait_options carrying(sp_interrupt *interrupt, uint64_t timeout_ns)
{
    return (sp_wait_options){
        .size = sizeof(sp_wait_options),
        .timeout_ns = timeout_ns,
        .spin_ns = SP_SPIN_DEFAULT,
        .interrupt = interrupt,
    };
}

static sp_interrupt *make_interrupt(void)
{
    sp_interrupt *made = NULL;
    CHECK_STATUS(sp_interrupt_create(&made), SP_OK);
    return made;
}

TEST(interrupt_ends_a_wait)
{
    late_interrupt late;
    sp_interrupt *interrupt = make_interrupt();
    const sp_wait_options forever = carrying(interrupt, SP_FOREVER), now = carrying(interrupt, 0),
                          soon = carrying(interrupt, MS);
    sp_point point = fx->point(1);
    CHECK_STATUS(sp_wait_with(&point, &soon), fx->timed_out); /* nobody raised it */
    raise_late(&late, interrupt);
    CHECK_ERROR(sp_wait_with(&point, &forever), SP_ERROR_CANCELLED);
    CHECK(flag_is_set(&late.raised));
    worker_join(&late.worker);
    CHECK_ERROR(sp_wait_with(&point, &now), SP_ERROR_CANCELLED); /* until it is reset */
    CHECK_STATUS(sp_wait_timeout(&point, MS), fx->timed_out);    /* does not carry it  */
    sp_interrupt_reset(interrupt);
    CHECK_STATUS(sp_wait_with(&point, &soon), fx->timed_out);
    fx->signal(1);
    CHECK_STATUS(sp_wait_with(&point, &forever), SP_OK);
    sp_interrupt_raise(interrupt);
    CHECK_STATUS(sp_wait_with(&point, &forever), SP_OK); /* it is reached */
    sp_point_unref(&point);
    sp_interrupt_destroy(interrupt);
}

TEST(interrupt_ends_a_wait_for_many)
{
    enum { COUNT = 3 };
    sp_point points[COUNT];
    sp_interrupt *interrupt = make_interrupt();
    const sp_wait_options forever = carrying(interrupt, SP_FOREVER), soon = carrying(interrupt, MS);
    for (unsigned i = 0; i < COUNT; i++)
        points[i] = fx->point(i + 1);
    for (unsigned mode = SP_WAIT_ALL; mode <= SP_WAIT_ANY; mode++) {
        late_interrupt late;
        size_t index = UNTOUCHED;
        raise_late(&late, interrupt);
        CHECK_ERROR(sp_wait_many_with(points, COUNT, (sp_wait_mode)mode, &forever, &index),
                    SP_ERROR_CANCELLED);
        CHECK(flag_is_set(&late.raised));
        CHECK_EQUAL(index, UNTOUCHED);
        worker_join(&late.worker);
        sp_interrupt_reset(interrupt);
        CHECK_STATUS(sp_wait_many_with(points, COUNT, (sp_wait_mode)mode, &soon, NULL),
                     fx->timed_out);
    }
    fx->signal(COUNT);
    CHECK_STATUS(sp_wait_many_with(points, COUNT, SP_WAIT_ALL, &forever, NULL), SP_OK);
    release_points(points, COUNT);
    sp_interrupt_destroy(interrupt);
}
