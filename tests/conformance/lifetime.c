/* SPDX-License-Identifier: MIT
 *
 * Conformance: a primitive is destroyed once, when the last point goes.
 */
#include "conformance.h"

/* Device work that still uses it may delay the end a little. */
static void check_alive(unsigned expected)
{
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (fx->alive() != expected && sp_now_ns() < end) {
        test_sleep_ms(1);
        if (fx->poke)
            fx->poke();
    }
    CHECK_EQUAL(fx->alive(), expected);
}

TEST_NEEDING(lives_until_the_last_point, COUNTED)
{
    sp_point point = fx->point(1);
    sp_point copy = sp_point_ref(&point), another = sp_point_ref(&copy);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    fx->release_owner();
    check_alive(1);
    sp_point_unref(&point);
    check_alive(1);
    CHECK_STATUS(sp_poll(&copy), SP_OK);
    sp_point_unref(&copy);
    check_alive(1);
    sp_point_unref(&another);
    check_alive(0);
    sp_point_unref(&another);
    sp_point_unref(&point);
}

TEST_NEEDING(points_first_then_the_owner, COUNTED | COUNTING)
{
    sp_point point = fx->point(1);
    sp_point_unref(&point);
    check_alive(1);
    fx->release_owner();
    check_alive(0);
}

TEST_NEEDING(chains_and_slots_keep_it_alive, COUNTED)
{
    sp_slot *slot = NULL;
    sp_point point = fx->point(1), promise = {0}, chain = {0};
    fx->signal(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    fx->release_owner();
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &promise), SP_OK);
    CHECK_STATUS(sp_slot_set(slot, &point), SP_OK);
    CHECK_STATUS(sp_chain(&promise, &point, &chain), SP_OK);
    sp_point_unref(&point);
    check_alive(1);
    sp_slot_destroy(slot);
    sp_point_unref(&promise);
    check_alive(1);
    CHECK_STATUS(sp_poll(&chain), SP_OK);
    sp_point_unref(&chain);
    check_alive(0);
}

TEST_NEEDING(waits_for_many_keep_nothing, COUNTED)
{
    sp_point points[4];
    for (unsigned i = 0; i < 4; i++)
        points[i] = fx->point(i + 1);
    CHECK_STATUS(sp_wait_many(points, 4, SP_WAIT_ANY, MS, NULL), fx->timed_out);
    CHECK_STATUS(sp_wait_many(points, 4, SP_WAIT_ALL, MS, NULL), fx->timed_out);
    fx->signal(4);
    CHECK_STATUS(sp_wait_many(points, 4, SP_WAIT_ALL, PATIENCE_NS, NULL), SP_OK);
    fx->release_owner();
    release_points(points, 4);
    check_alive(0);
}

/* Many threads, each with copies of its own: the last one to let go ends it, whoever that is. */
typedef struct holder {
    worker worker;
    sp_point point;
} holder;

static void copy_and_drop(void *user)
{
    holder *self = user;
    for (unsigned i = 0; i < 2000; i++) {
        sp_point copy = sp_point_ref(&self->point);
        CHECK_STATUS(sp_poll(&copy), SP_OK);
        sp_point_unref(&copy);
    }
    sp_point_unref(&self->point);
}

TEST_NEEDING(released_by_many_threads, COUNTED)
{
    enum { COUNT = 8 };
    holder holders[COUNT];
    sp_point point = fx->point(1);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    for (unsigned i = 0; i < COUNT; i++)
        holders[i].point = sp_point_ref(&point);
    fx->release_owner();
    sp_point_unref(&point);
    check_alive(1);
    for (unsigned i = 0; i < COUNT; i++)
        worker_start(&holders[i].worker, 0, copy_and_drop, &holders[i]);
    for (unsigned i = 0; i < COUNT; i++)
        worker_join(&holders[i].worker);
    check_alive(0);
}

/* ---- Open handles ---- */

static void one_round(uint64_t number)
{
    sp_point points[3] = {fx->point(number), fx->point(number + 1), fx->point(number + 2)};
    sp_point chain = {0};
    CHECK_STATUS(sp_chain(&points[0], &points[2], &chain), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&chain, 1), fx->timed_out);
    CHECK_STATUS(sp_wait_many(points, 3, SP_WAIT_ANY, 1000, NULL), fx->timed_out);
    CHECK_ERROR(sp_wait_many(points, 3, (sp_wait_mode)7, 0, NULL), SP_ERROR_INVALID_ARGUMENT);
    fx->signal(number + 2);
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    CHECK_STATUS(sp_wait_many(points, 3, SP_WAIT_ALL, PATIENCE_NS, NULL), SP_OK);
    sp_point_unref(&chain);
    release_points(points, 3);
}

/* Drivers put the end of some handles off. */
static void settle(void)
{
    for (unsigned i = 0; i < 5 && fx->poke; i++) {
        fx->poke();
        test_sleep_ms(1);
    }
}

TEST(open_handles_do_not_move)
{
    one_round(1); /* what a driver opens once */
    settle();
    unsigned before = census_open_handles();
    for (unsigned i = 1; i <= 200; i++)
        one_round(1 + 3 * i);
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (fx->poke && census_open_handles() != before && sp_now_ns() < end)
        settle();
    CHECK_HANDLES(before);
}
