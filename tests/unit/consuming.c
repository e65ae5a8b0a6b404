/* SPDX-License-Identifier: MIT
 *
 * A primitive of a user's whose signal is used up by the wait that sees it: each way of waiting tells.
 */
#include "support/test.h"
#include "support/threads.h"

#include <syncpoint/async.h>

typedef struct ticket_box {
    sp_waiter base;
    unsigned signals; /* atomic; a wait takes one */
    unsigned blocks;  /* calls of block(); atomic */
} ticket_box;

static ticket_box *box_of(sp_waiter *waiter)
{
    return (ticket_box *)(void *)waiter;
}

/* It cannot be asked: only a wait finds out. */
static sp_status box_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)waiter;
    (void)value;
    *reached = 0;
    return SP_OK;
}

static bool take_one(ticket_box *box)
{
    unsigned left = __atomic_load_n(&box->signals, __ATOMIC_ACQUIRE);
    while (left > 0) {
        if (__atomic_compare_exchange_n(&box->signals, &left, left - 1, false, __ATOMIC_ACQ_REL,
                                        __ATOMIC_ACQUIRE))
            return true;
    }
    return false;
}

static sp_status box_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    ticket_box *box = box_of(waiter);
    (void)value;
    __atomic_add_fetch(&box->blocks, 1, __ATOMIC_RELAXED);
    bool taken = take_one(box);
    while (!taken && sp_now_ns() < deadline_ns) {
        test_sleep_ms(1);
        taken = take_one(box);
    }
    return taken ? SP_OK : SP_TIMEOUT;
}

static void box_destroy(sp_waiter *waiter)
{
    (void)waiter;
}

static const sp_waiter_ops box_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_CONSUMING | SP_FEATURE_BLOCK,
    .backend = SP_BACKEND_CUSTOM,
    .name = "box of signals",
    .probe = box_probe,
    .block = box_block,
    .destroy = box_destroy,
};

static sp_point point_of(ticket_box *box, unsigned signals)
{
    sp_point point = {0};
    *box = (ticket_box){.signals = signals};
    CHECK_STATUS(sp_waiter_init(&box->base, &box_ops), SP_OK);
    CHECK_STATUS(sp_point_custom(&box->base, 0, NULL, &point), SP_OK);
    return point;
}

static void end(sp_point *point, ticket_box *box)
{
    CHECK_STATUS(sp_poll(point), SP_OK); /* it remembers */
    CHECK_EQUAL(box->signals, 0);
    sp_point_unref(point);
    sp_waiter_unref(&box->base);
}

TEST(a_wait)
{
    ticket_box box;
    sp_point point = point_of(&box, 1);
    CHECK_STATUS(sp_wait_timeout(&point, PATIENCE_NS), SP_OK);
    end(&point, &box);
}

TEST(a_wait_for_any)
{
    ticket_box box, never;
    size_t index = 7;
    sp_point points[2] = {point_of(&never, 0), point_of(&box, 1)};
    CHECK_STATUS(sp_wait_many(points, 2, SP_WAIT_ANY, PATIENCE_NS, &index), SP_OK);
    CHECK_EQUAL(index, 1);
    end(&points[1], &box);
    sp_point_unref(&points[0]);
}

static void add_signal(void *user)
{
    __atomic_store_n(&((ticket_box *)user)->signals, 1, __ATOMIC_RELEASE);
}

TEST(a_late_signal_for_any)
{
    worker late;
    ticket_box box, never;
    sp_point points[2] = {point_of(&box, 0), point_of(&never, 0)};
    CHECK_STATUS(sp_wait_many(points, 2, SP_WAIT_ANY, 5 * MS, NULL), SP_TIMEOUT);
    worker_start(&late, DELAY_MS, add_signal, &box);
    CHECK_STATUS(sp_wait_many(points, 2, SP_WAIT_ANY, PATIENCE_NS, NULL), SP_OK);
    worker_join(&late);
    end(&points[0], &box);
    sp_point_unref(&points[1]);
}

static void note(void *user, sp_status status)
{
    CHECK_STATUS(status, SP_OK);
    flag_set(user);
}

TEST(a_notification)
{
    flag called = {0};
    ticket_box box;
    sp_reactor *reactor = NULL;
    sp_point point = point_of(&box, 0);
    CHECK_STATUS(sp_reactor_create(NULL, &reactor), SP_OK);
    CHECK_STATUS(sp_notify(reactor, &point, SP_FOREVER, note, &called, NULL), SP_OK);
    test_sleep_ms(DELAY_MS);
    CHECK(!flag_is_set(&called));
    add_signal(&box);
    CHECK(flag_wait(&called));
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    end(&point, &box);
}
