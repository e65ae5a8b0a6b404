/* SPDX-License-Identifier: MIT
 *
 * What asks for memory, what does not, and what happens when there is none.
 */
#include "support/counter.h"
#include "support/malloc_double.h"
#include "support/test.h"

/* ---- No allocation ---- */

#define NO_ALLOCATION(statements)                                                                  \
    do {                                                                                           \
        unsigned before_ = malloc_double_calls();                                                  \
        statements;                                                                                \
        CHECK_EQUAL(malloc_double_calls(), before_);                                               \
    } while (0)

static void use_point(const sp_point *point)
{
    sp_point copies[100];
    for (unsigned i = 0; i < 100; i++)
        copies[i] = sp_point_ref(point);
    for (unsigned i = 0; i < 100; i++)
        sp_point_unref(&copies[i]);
}

TEST(points_of_a_timeline_need_no_memory)
{
    sp_host_timeline *timeline = NULL;
    sp_point point = {0}, other = {0};
    malloc_double_init();
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK(malloc_double_calls() > 0); /* the double works */
    NO_ALLOCATION({
        CHECK_STATUS(sp_host_timeline_point(timeline, 1, &point), SP_OK);
        CHECK_STATUS(sp_point_at(&point, 2, &other), SP_OK);
        use_point(&point);
        CHECK_STATUS(sp_poll(&point), SP_PENDING);
        CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
        CHECK_STATUS(sp_poll(&point), SP_OK);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        CHECK_STATUS(sp_wait_timeout(&other, 1000), SP_TIMEOUT);
        sp_point_unref(&point);
        sp_point_unref(&other);
    });
    sp_host_timeline_destroy(timeline);
    CHECK_EQUAL(malloc_double_held(), 0);
}

TEST(points_of_a_custom_primitive_and_a_slot_need_no_memory)
{
    sp_slot *promised = NULL;
    sp_point point = {0}, promise = {0};
    malloc_double_init();
    counter *one = counter_create(COUNTER_ARM);
    CHECK_STATUS(sp_slot_create(&promised), SP_OK);
    NO_ALLOCATION({
        CHECK_STATUS(sp_point_custom(&one->base, 1, NULL, &point), SP_OK);
        CHECK_STATUS(sp_slot_point(promised, &promise), SP_OK);
        CHECK_STATUS(sp_slot_set(promised, &point), SP_OK);
        use_point(&point);
        use_point(&promise);
        CHECK_STATUS(sp_poll(&promise), SP_PENDING);
        sp_point_unref(&point);
        sp_point_unref(&promise);
    });
    sp_slot_destroy(promised);
    counter_unref(one);
    CHECK_EQUAL(malloc_double_held(), 0);
    CHECK_EQUAL(counter_alive(), 0);
}

TEST(waits_on_chains_need_no_memory)
{
    sp_host_timeline *timeline = NULL;
    sp_point link = {0}, chain = {0};
    malloc_double_init();
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &link), SP_OK);
    CHECK_STATUS(sp_chain(&link, &link, &chain), SP_OK);
    for (unsigned i = 0; i < 1000; i++) {
        sp_point longer = {0};
        CHECK_STATUS(sp_chain(&chain, &link, &longer), SP_OK);
        sp_point_unref(&chain);
        chain = longer;
    }
    NO_ALLOCATION({
        CHECK_STATUS(sp_poll(&chain), SP_PENDING);
        CHECK_STATUS(sp_wait_timeout(&chain, MS), SP_TIMEOUT);
        CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
        CHECK_STATUS(sp_wait(&chain), SP_OK);
        use_point(&chain);
    });
    sp_point_unref(&chain);
    sp_point_unref(&link);
    sp_host_timeline_destroy(timeline);
    CHECK_EQUAL(malloc_double_held(), 0);
}

/* ---- No memory ---- */

static void nothing(void) {}

static sp_host_timeline *shared;

static sp_status make_timeline(void)
{
    shared = (sp_host_timeline *)16;
    sp_status status = sp_host_timeline_create(0, &shared);
    if (status != SP_OK)
        CHECK(shared == (sp_host_timeline *)16);
    return status;
}

static void destroy_timeline(void)
{
    sp_host_timeline_destroy(shared);
}

TEST(no_memory_for_a_timeline)
{
    malloc_double_init();
    malloc_double_refuse_each(make_timeline, destroy_timeline);
}

static sp_slot *slot;

static sp_status make_slot(void)
{
    slot = (sp_slot *)16;
    sp_status status = sp_slot_create(&slot);
    if (status != SP_OK)
        CHECK(slot == (sp_slot *)16);
    return status;
}

static void destroy_slot(void)
{
    sp_slot_destroy(slot);
}

TEST(no_memory_for_a_slot)
{
    malloc_double_init();
    malloc_double_refuse_each(make_slot, destroy_slot);
}

static sp_point sides[2];
static sp_point made;

static sp_status make_chain(void)
{
    sp_point marked = test_marked_point();
    made = marked;
    sp_status status = sp_chain(&sides[0], &sides[1], &made);
    if (status != SP_OK)
        CHECK(test_same_point(&made, &marked));
    return status;
}

static void release_chain(void)
{
    sp_point_unref(&made);
}

static void make_long_side(unsigned links)
{
    sp_point link = sp_point_ref(&sides[0]);
    for (unsigned i = 0; i < links; i++) {
        sp_point longer = {0};
        CHECK_STATUS(sp_chain(&sides[0], &link, &longer), SP_OK);
        sp_point_unref(&sides[0]);
        sides[0] = longer;
    }
    sp_point_unref(&link);
}

TEST(no_memory_for_a_chain)
{
    malloc_double_init();
    CHECK_STATUS(sp_host_timeline_create(0, &shared), SP_OK);
    for (unsigned i = 0; i < 2; i++)
        CHECK_STATUS(sp_host_timeline_point(shared, i + 1, &sides[i]), SP_OK);
    malloc_double_refuse_each(make_chain, release_chain);
    make_long_side(37);
    malloc_double_refuse_each(make_chain, release_chain);
    sp_point_unref(&sides[0]);
    sp_point_unref(&sides[1]);
    sp_host_timeline_destroy(shared);
    CHECK_EQUAL(malloc_double_held(), 0);
}

#define MANY 500
static sp_point many[MANY];

static sp_status wait_for_many(void)
{
    return sp_wait_many(many, MANY, SP_WAIT_ALL, 0, NULL);
}

TEST(no_memory_for_a_wait_for_many)
{
    malloc_double_init();
    CHECK_STATUS(sp_host_timeline_create(MANY, &shared), SP_OK);
    for (unsigned i = 0; i < MANY; i++)
        CHECK_STATUS(sp_host_timeline_point(shared, i, &many[i]), SP_OK);
    malloc_double_refuse_each(wait_for_many, nothing);
    for (unsigned i = 0; i < MANY; i++)
        sp_point_unref(&many[i]);
    sp_host_timeline_destroy(shared);
    CHECK_EQUAL(malloc_double_held(), 0);
}

/* A failure must not get lost for want of memory: the waits fail, whatever is told of the cause. */
TEST(no_memory_for_a_failure)
{
    malloc_double_init();
    for (unsigned n = 0;; n++) {
        sp_point point = {0};
        CHECK_STATUS(sp_host_timeline_create(0, &shared), SP_OK);
        CHECK_STATUS(sp_host_timeline_point(shared, 1, &point), SP_OK);
        malloc_double_fail(n);
        sp_status status = sp_host_timeline_fail(shared, SP_ERROR_SYSTEM, "no room for this");
        bool failed = malloc_double_failed();
        CHECK_STATUS(status, SP_OK);
        CHECK_STATUS(sp_poll(&point), SP_ERROR_FAILED);
        sp_point_unref(&point);
        sp_host_timeline_destroy(shared);
        CHECK_EQUAL(malloc_double_held(), 0);
        if (!failed)
            break;
    }
}

TEST(no_memory_for_a_failure_of_a_slot)
{
    malloc_double_init();
    for (unsigned n = 0;; n++) {
        sp_point point = {0};
        CHECK_STATUS(sp_slot_create(&slot), SP_OK);
        CHECK_STATUS(sp_slot_point(slot, &point), SP_OK);
        malloc_double_fail(n);
        sp_slot_destroy(slot); /* abandons, which is a failure */
        bool failed = malloc_double_failed();
        CHECK(sp_poll(&point) < 0);
        sp_point_unref(&point);
        CHECK_EQUAL(malloc_double_held(), 0);
        if (!failed)
            break;
    }
}
