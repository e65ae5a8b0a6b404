/* SPDX-License-Identifier: MIT
 *
 * Conformance: chains, of any length, on a stack too small to recurse on.
 */
#include "conformance.h"

#define LINKS 100000
#define SMALL_STACK ((size_t)(96 * 1024))

static sp_point chain_of(const sp_point *first, const sp_point *then)
{
    sp_point chain = {0};
    CHECK_STATUS(sp_chain(first, then, &chain), SP_OK);
    return chain;
}

TEST_NEEDING(chain_waits_for_both, INDEPENDENT)
{
    sp_point one = fx->point(1), two = fx->point(2);
    sp_point forth = chain_of(&one, &two), back = chain_of(&two, &one);
    CHECK_EQUAL(forth.kind, SP_KIND_CHAIN);
    CHECK_EQUAL(sp_point_backend(&forth), fx->backend);
    CHECK_STATUS(sp_poll(&forth), fx->pending);
    CHECK_STATUS(sp_poll(&back), fx->pending);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&one), SP_OK);
    CHECK_STATUS(sp_poll(&forth), fx->pending);
    CHECK_STATUS(sp_wait_timeout(&forth, MS), fx->timed_out);
    CHECK_STATUS(sp_wait_timeout(&back, MS), fx->timed_out);
    fx->signal(2);
    CHECK_STATUS(sp_wait(&forth), SP_OK);
    CHECK_STATUS(sp_wait(&back), SP_OK);
    CHECK_STATUS(sp_poll(&forth), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&forth, 0), SP_OK);
    sp_point_unref(&forth);
    sp_point_unref(&back);
    sp_point_unref(&one);
    sp_point_unref(&two);
}

TEST(chain_keeps_its_own_references)
{
    sp_point one = fx->point(1), two = fx->point(2);
    sp_point chain = chain_of(&one, &two);
    sp_point_unref(&one);
    sp_point_unref(&two);
    CHECK_STATUS(sp_poll(&chain), fx->pending);
    fx->signal(2);
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    sp_point_unref(&chain);
}

TEST(chain_of_nothing_is_the_other_side)
{
    sp_point point = fx->point(1);
    const sp_point nothing[] = {sp_point_noop(), sp_point_cpu()};
    for (unsigned i = 0; i < 2; i++) {
        sp_point left = chain_of(&nothing[i], &point), right = chain_of(&point, &nothing[i]);
        CHECK(test_same_point(&left, &point));
        CHECK(test_same_point(&right, &point));
        sp_point_unref(&left);
        sp_point_unref(&right);
    }
    CHECK_STATUS(sp_poll(&point), fx->pending);
    fx->signal(1);
    sp_point_unref(&point);
}

/* One budget for both: the second gets what the first has left. */
TEST(chain_has_one_time_budget)
{
    late_signal late;
    sp_host_timeline *timeline = NULL;
    sp_point host = {0}, one = fx->point(1);
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &host), SP_OK);
    sp_point chain = chain_of(&one, &host);
    uint64_t budget = 3 * DELAY_MS * MS, start = sp_now_ns();
    signal_late(&late, 1);
    CHECK_STATUS(sp_wait_timeout(&chain, budget), SP_TIMEOUT);
    uint64_t took = sp_now_ns() - start;
    CHECK(took >= budget);
    CHECK(took < budget + PATIENCE_NS);
    worker_join(&late.worker);
    CHECK_STATUS(sp_wait(&one), SP_OK);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&chain, 0), SP_OK); /* the second is at least probed */
    sp_point_unref(&chain);
    sp_point_unref(&one);
    sp_point_unref(&host);
    sp_host_timeline_destroy(timeline);
}

/* The first's error ends it; the second's shows only when the first is reached. */
TEST_NEEDING(chain_fails_in_order, FAILING)
{
    sp_host_timeline *timeline = NULL;
    sp_point host = {0}, one = fx->point(1);
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &host), SP_OK);
    sp_point first = chain_of(&one, &host), second = chain_of(&host, &one);
    fx->fail_all();
    CHECK_ERROR(sp_wait(&first), fx->fail_status);
    CHECK_STATUS(sp_last_error()->cause, fx->fail_cause);
    CHECK_ERROR(sp_poll(&first), fx->fail_status);
    CHECK_STATUS(sp_poll(&second), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&second, MS), SP_TIMEOUT);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_ERROR(sp_wait(&second), fx->fail_status);
    CHECK_ERROR(sp_poll(&second), fx->fail_status);
    sp_point_unref(&first);
    sp_point_unref(&second);
    sp_point_unref(&one);
    sp_point_unref(&host);
    sp_host_timeline_destroy(timeline);
}

TEST_NEEDING(chains_among_many, INDEPENDENT)
{
    late_signal late;
    size_t index = 99;
    sp_point points[3] = {fx->point(1), fx->point(2), fx->point(3)};
    const sp_point chains[2] = {chain_of(&points[0], &points[2]), chain_of(&points[1], &points[0])};
    CHECK_STATUS(sp_wait_many(chains, 2, SP_WAIT_ANY, MS, NULL), fx->timed_out);
    signal_late(&late, 2);
    CHECK_STATUS(sp_wait_many(chains, 2, SP_WAIT_ANY, PATIENCE_NS, &index), SP_OK);
    CHECK_EQUAL(index, 1);
    JOIN_NOT_EARLY(&late);
    CHECK_STATUS(sp_wait_many(chains, 2, SP_WAIT_ALL, MS, &index), fx->timed_out);
    CHECK_EQUAL(index, 0);
    signal_late(&late, 3);
    CHECK_STATUS(sp_wait_many(chains, 2, SP_WAIT_ALL, PATIENCE_NS, NULL), SP_OK);
    JOIN_NOT_EARLY(&late);
    for (unsigned i = 0; i < 2; i++) {
        sp_point copy = chains[i];
        sp_point_unref(&copy);
    }
    release_points(points, 3);
}

/* ---- Length ---- */

typedef enum shape { LEFT_DEEP, RIGHT_DEEP, BALANCED } shape;

/* Takes `chain`, returns a longer one. */
static sp_point lengthen(sp_point *chain, const sp_point *link, shape how)
{
    sp_point longer;
    if (how == LEFT_DEEP)
        longer = chain_of(chain, link);
    else if (how == RIGHT_DEEP)
        longer = chain_of(link, chain);
    else
        longer = chain_of(chain, chain); /* a diamond: doubles */
    sp_point_unref(chain);
    return longer;
}

static void use_long_chain(shape how, unsigned links)
{
    sp_point points[3] = {fx->point(1), fx->point(2), fx->point(3)};
    sp_point chain = chain_of(&points[0], &points[1]);
    for (unsigned i = 0; i < links; i++)
        chain = lengthen(&chain, &points[i % 3], how);
    CHECK_STATUS(sp_poll(&chain), fx->pending);
    CHECK_STATUS(sp_wait_timeout(&chain, MS), fx->timed_out);
    fx->signal(2);
    CHECK_STATUS(sp_wait(&points[1]), SP_OK);
    CHECK_STATUS(sp_poll(&chain), how == BALANCED ? SP_OK : fx->pending);
    late_signal late;
    signal_late(&late, 3);
    if (how == BALANCED)
        CHECK_STATUS(sp_wait(&points[2]), SP_OK);
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    JOIN_NOT_EARLY(&late);
    CHECK_STATUS(sp_poll(&chain), SP_OK);
    CHECK_STATUS(sp_wait_many(&chain, 1, SP_WAIT_ANY, 0, NULL), SP_OK);
    char text[128];
    CHECK(sp_point_describe(&chain, text, sizeof(text)) > 0);
    sp_point_unref(&chain);
    release_points(points, 3);
}

static void left_deep(void *unused)
{
    (void)unused;
    use_long_chain(LEFT_DEEP, LINKS);
}

static void right_deep(void *unused)
{
    (void)unused;
    use_long_chain(RIGHT_DEEP, LINKS);
}

static void balanced(void *unused)
{
    (void)unused;
    use_long_chain(BALANCED, 16);
}

TEST_NEEDING(left_deep_chain_of_100000, INDEPENDENT | POLLED)
{
    run_on_small_stack(SMALL_STACK, left_deep, NULL);
}
TEST_NEEDING(right_deep_chain_of_100000, INDEPENDENT | POLLED)
{
    run_on_small_stack(SMALL_STACK, right_deep, NULL);
}
TEST_NEEDING(chain_of_shared_halves, INDEPENDENT | POLLED)
{
    run_on_small_stack(SMALL_STACK, balanced, NULL);
}

static void drop_pending(void *user)
{
    sp_point *point = user;
    sp_point chain = chain_of(point, point);
    for (unsigned i = 0; i < LINKS; i++)
        chain = lengthen(&chain, point, i % 2 ? LEFT_DEEP : RIGHT_DEEP);
    sp_point_unref(&chain);
}

TEST(long_chain_released_while_pending)
{
    sp_point point = fx->point(1);
    run_on_small_stack(SMALL_STACK, drop_pending, &point);
    CHECK_STATUS(sp_poll(&point), fx->pending);
    fx->signal(1);
    sp_point_unref(&point);
}

static void fail_at_the_end(void *user)
{
    sp_point *points = user;
    sp_point chain = chain_of(&points[0], &points[1]);
    for (unsigned i = 0; i < LINKS; i++)
        chain = lengthen(&chain, &points[0], RIGHT_DEEP);
    fx->signal(1);
    CHECK_STATUS(sp_wait(&points[0]), SP_OK);
    fx->fail_all();
    CHECK_ERROR(sp_wait(&chain), fx->fail_status);
    sp_point_unref(&chain);
}

TEST_NEEDING(failure_at_the_end_of_a_long_chain, FAILING | INDEPENDENT)
{
    sp_point points[2] = {fx->point(1), fx->point(2)};
    run_on_small_stack(SMALL_STACK, fail_at_the_end, points);
    release_points(points, 2);
}
