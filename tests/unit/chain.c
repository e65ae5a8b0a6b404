/* SPDX-License-Identifier: MIT
 *
 * Chains: what their conformance cases leave out.
 */
#include "support/counter.h"
#include "support/test.h"
#include "support/threads.h"

static sp_point chain_of(const sp_point *first, const sp_point *then)
{
    sp_point chain = {0};
    CHECK_STATUS(sp_chain(first, then, &chain), SP_OK);
    return chain;
}

TEST(nothing_after_nothing)
{
    const sp_point nothing[] = {sp_point_noop(), sp_point_cpu()};
    for (unsigned i = 0; i < 4; i++) {
        sp_point both = chain_of(&nothing[i / 2], &nothing[i % 2]);
        CHECK(both.waiter == NULL);
        CHECK_STATUS(sp_poll(&both), SP_OK);
        CHECK_STATUS(sp_wait(&both), SP_OK);
        sp_point_unref(&both);
    }
}

TEST(has_no_raw_fields)
{
    counter *one = counter_create(COUNTER_BLOCK);
    const uint64_t words[3] = {7, 8, 9};
    sp_point point = {0};
    CHECK_STATUS(sp_point_custom(&one->base, 1, words, &point), SP_OK);
    sp_point chain = chain_of(&point, &point);
    CHECK_EQUAL(chain.kind, SP_KIND_CHAIN);
    CHECK_EQUAL(chain.flags, 0);
    CHECK_EQUAL(chain.value, 0);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQUAL(chain.raw.words[i], 0);
    sp_point_unref(&chain);
    sp_point_unref(&point);
    counter_unref(one);
}

TEST(backend_is_the_firsts)
{
    sp_host_timeline *timeline = NULL;
    counter *one = counter_create(COUNTER_PROBE);
    sp_point host = {0}, custom = counter_point(one, 1);
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &host), SP_OK);
    sp_point a = chain_of(&host, &custom), b = chain_of(&custom, &host), c = chain_of(&b, &a);
    CHECK_EQUAL(sp_point_backend(&a), SP_BACKEND_CPU);
    CHECK_EQUAL(sp_point_backend(&b), SP_BACKEND_CUSTOM);
    CHECK_EQUAL(sp_point_backend(&c), SP_BACKEND_CUSTOM);
    sp_point_unref(&a);
    sp_point_unref(&b);
    sp_point_unref(&c);
    sp_point_unref(&host);
    sp_point_unref(&custom);
    sp_host_timeline_destroy(timeline);
    counter_unref(one);
}

/* The order of the sides is kept whatever is joined to what: the first that fails is told. */
TEST(order_survives_any_shape)
{
    enum { COUNT = 12 };
    test_rng rng = {77};
    for (unsigned round = 0; round < 200; round++) {
        counter *counters[COUNT];
        sp_point parts[COUNT];
        unsigned count = COUNT;
        for (unsigned i = 0; i < COUNT; i++) {
            counters[i] = counter_create(COUNTER_PROBE);
            parts[i] = counter_point(counters[i], 1);
        }
        while (count > 1) {
            unsigned at = test_random_below(&rng, count - 1);
            sp_point joined = chain_of(&parts[at], &parts[at + 1]);
            sp_point_unref(&parts[at]);
            sp_point_unref(&parts[at + 1]);
            parts[at] = joined;
            count--;
            for (unsigned i = at + 1; i < count; i++)
                parts[i] = parts[i + 1];
        }
        unsigned bad = test_random_below(&rng, COUNT);
        counter_fail(counters[bad], SP_ERROR_CANCELLED);
        for (unsigned i = 0; i < bad; i++) {
            CHECK_STATUS(sp_poll(&parts[0]), SP_PENDING);
            counter_signal(counters[i], 1);
        }
        CHECK_ERROR(sp_poll(&parts[0]), SP_ERROR_CANCELLED);
        for (unsigned i = bad + 1; i < COUNT; i++)
            counter_signal(counters[i], 1);
        CHECK_ERROR(sp_wait(&parts[0]), SP_ERROR_CANCELLED);
        sp_point_unref(&parts[0]);
        for (unsigned i = 0; i < COUNT; i++)
            counter_unref(counters[i]);
    }
    CHECK_EQUAL(counter_alive(), 0);
}

/* A chain of a chain with itself, again and again: 2^40 leaves, two primitives. */
TEST(shared_halves_do_not_double_the_work)
{
    sp_host_timeline *timeline = NULL;
    sp_slot *slot = NULL;
    sp_point points[2] = {{0}}, promise = {0};
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &points[0]), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 2, &points[1]), SP_OK);
    sp_point chain = chain_of(&points[0], &points[1]);
    for (unsigned i = 0; i < 40; i++) {
        sp_point twice = chain_of(&chain, &chain);
        sp_point_unref(&chain);
        chain = twice;
    }
    CHECK_STATUS(sp_poll(&chain), SP_PENDING);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&chain, MS), SP_TIMEOUT);
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &promise), SP_OK);
    CHECK_STATUS(sp_slot_set(slot, &chain), SP_OK);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 2), SP_OK);
    CHECK_STATUS(sp_wait(&promise), SP_OK);
    CHECK_STATUS(sp_poll(&chain), SP_OK);
    sp_point_unref(&promise);
    sp_slot_destroy(slot);
    sp_point_unref(&chain);
    sp_point_unref(&points[0]);
    sp_point_unref(&points[1]);
    sp_host_timeline_destroy(timeline);
}

/* Slots of slots of slots, and chains of them, on a small stack. */
static void nest(void *unused)
{
    (void)unused;
    sp_host_timeline *timeline = NULL;
    sp_point inner = {0};
    unsigned levels = 0;
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &inner), SP_OK);
    for (; levels < 100000; levels++) {
        sp_slot *slot = NULL;
        sp_point outer = {0};
        CHECK_STATUS(sp_slot_create(&slot), SP_OK);
        CHECK_STATUS(sp_slot_point(slot, &outer), SP_OK);
        sp_status status = sp_slot_set(slot, &inner);
        sp_slot_destroy(slot);
        if (status != SP_OK) { /* a limit is fine, if it is told */
            CHECK_STATUS(status, SP_ERROR_INVALID_STATE);
            sp_point_unref(&outer);
            break;
        }
        sp_point_unref(&inner);
        inner = outer;
    }
    CHECK(levels >= 2);
    CHECK_STATUS(sp_poll(&inner), SP_PENDING);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_wait(&inner), SP_OK);
    sp_point_unref(&inner);
    sp_host_timeline_destroy(timeline);
}

TEST(slots_in_slots)
{
    run_on_small_stack((size_t)96 * 1024, nest, NULL);
}
