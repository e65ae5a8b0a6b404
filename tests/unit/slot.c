/* SPDX-License-Identifier: MIT
 *
 * Slots: a promise of a point.
 */
#include "support/test.h"
#include "support/threads.h"

#include <string.h>

static sp_host_timeline *timeline;

typedef struct promise {
    sp_slot *slot;
    sp_point point;
} promise;

static promise make(void)
{
    promise made = {0};
    CHECK_STATUS(sp_slot_create(&made.slot), SP_OK);
    CHECK_STATUS(sp_slot_point(made.slot, &made.point), SP_OK);
    return made;
}

static void drop(promise *self)
{
    sp_point_unref(&self->point);
    sp_slot_destroy(self->slot);
}

static sp_point host_point(uint64_t value)
{
    sp_point point = {0};
    if (!timeline)
        CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, value, &point), SP_OK);
    return point;
}

TEST(unset_is_not_submitted)
{
    promise one = make();
    size_t index = 9;
    CHECK_EQUAL(one.point.kind, SP_KIND_DEFERRED);
    CHECK_EQUAL(sp_point_backend(&one.point), SP_BACKEND_CPU);
    CHECK_STATUS(sp_poll(&one.point), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_wait_timeout(&one.point, 0), SP_NOT_SUBMITTED);
    uint64_t start = sp_now_ns();
    CHECK_STATUS(sp_wait_timeout(&one.point, 20 * MS), SP_NOT_SUBMITTED);
    CHECK(sp_now_ns() - start >= 20 * MS);
    CHECK_STATUS(sp_wait_many(&one.point, 1, SP_WAIT_ALL, MS, &index), SP_NOT_SUBMITTED);
    CHECK_EQUAL(index, 0);
    CHECK_STATUS(sp_wait_many(&one.point, 1, SP_WAIT_ANY, MS, NULL), SP_NOT_SUBMITTED);
    sp_point marked = test_marked_point(), out = marked;
    CHECK_ERROR(sp_point_at(&one.point, 1, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK(test_same_point(&out, &marked));
    drop(&one);
}

/* NOT_SUBMITTED only if all that is pending is not submitted. */
TEST(many_unset_and_pending)
{
    promise one = make();
    sp_point host = host_point(1);
    const sp_point both[] = {host, one.point};
    CHECK_STATUS(sp_wait_many(both, 2, SP_WAIT_ALL, MS, NULL), SP_TIMEOUT);
    CHECK_STATUS(sp_wait_many(both, 2, SP_WAIT_ANY, MS, NULL), SP_TIMEOUT);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_wait_many(both, 2, SP_WAIT_ALL, MS, NULL), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_wait_many(both, 2, SP_WAIT_ANY, MS, NULL), SP_OK);
    sp_point_unref(&host);
    drop(&one);
    sp_host_timeline_destroy(timeline);
}

TEST(set_once_and_the_first_is_kept)
{
    promise one = make();
    sp_point host = host_point(1), noop = sp_point_noop();
    CHECK_STATUS(sp_slot_set(one.slot, &host), SP_OK);
    CHECK_STATUS(sp_poll(&one.point), SP_PENDING);
    CHECK_ERROR(sp_slot_set(one.slot, &noop), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_slot_set(one.slot, &host), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_slot_fail(one.slot, SP_ERROR_CANCELLED, NULL), SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_poll(&one.point), SP_PENDING);
    sp_point_unref(&host);
    CHECK_STATUS(sp_wait_timeout(&one.point, MS), SP_TIMEOUT);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_poll(&one.point), SP_OK);
    CHECK_STATUS(sp_wait(&one.point), SP_OK);
    drop(&one);
    sp_host_timeline_destroy(timeline);
}

typedef struct late_set {
    promise *promise;
    const sp_point *point;
    flag set, signalled;
} late_set;

static void set_then_signal(void *user)
{
    late_set *self = user;
    flag_set(&self->set);
    CHECK_STATUS(sp_slot_set(self->promise->slot, self->point), SP_OK);
    test_sleep_ms(DELAY_MS);
    flag_set(&self->signalled);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
}

TEST(one_wait_covers_set_and_signal)
{
    for (unsigned round = 0; round < 3; round++) {
        worker late;
        promise one = make();
        sp_point host = host_point(1);
        late_set what = {.promise = &one, .point = &host};
        worker_start(&late, DELAY_MS, set_then_signal, &what);
        if (round == 0)
            CHECK_STATUS(sp_wait_timeout(&one.point, PATIENCE_NS), SP_OK);
        else
            CHECK_STATUS(sp_wait_many(&one.point, 1, round == 1 ? SP_WAIT_ALL : SP_WAIT_ANY,
                                      PATIENCE_NS, NULL),
                         SP_OK);
        CHECK(flag_is_set(&what.set) && flag_is_set(&what.signalled));
        worker_join(&late);
        drop(&one);
        sp_point_unref(&host);
        sp_host_timeline_destroy(timeline);
        timeline = NULL;
    }
}

/* Time runs out between the set and the signal: TIMEOUT, the work is submitted now. */
TEST(budget_ends_after_the_set)
{
    worker late;
    promise one = make();
    sp_point host = host_point(1);
    late_set what = {.promise = &one, .point = &host};
    worker_start(&late, 0, set_then_signal, &what);
    CHECK(flag_wait(&what.set));
    while (sp_poll(&one.point) == SP_NOT_SUBMITTED)
        test_sleep_ms(1);
    CHECK_STATUS(sp_wait_timeout(&one.point, 1), SP_TIMEOUT);
    worker_join(&late);
    CHECK_STATUS(sp_wait_timeout(&one.point, 0), SP_OK);
    drop(&one);
    sp_point_unref(&host);
    sp_host_timeline_destroy(timeline);
}

/* W2 */
static void fail_slot(void *user)
{
    promise *self = user;
    CHECK_STATUS(sp_slot_fail(self->slot, SP_ERROR_DEVICE_LOST, "submit failed"), SP_OK);
}

TEST(W2_submission_behind_the_slot_fails)
{
    worker late;
    promise one = make();
    sp_point chain = {0}, noop = sp_point_noop();
    CHECK_STATUS(sp_chain(&one.point, &one.point, &chain), SP_OK);
    worker_start(&late, DELAY_MS, fail_slot, &one);
    CHECK_ERROR(sp_wait(&one.point), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_DEVICE_LOST);
    CHECK(strstr(sp_last_error()->message, "submit failed") != NULL);
    worker_join(&late);
    CHECK_ERROR(sp_poll(&chain), SP_ERROR_FAILED);
    CHECK_ERROR(sp_slot_set(one.slot, &noop), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_slot_fail(one.slot, SP_ERROR_CANCELLED, NULL), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_poll(&one.point), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_DEVICE_LOST);
    sp_point_unref(&chain);
    drop(&one);
}

static void destroy_slot(void *user)
{
    promise *self = user;
    sp_slot_destroy(self->slot);
    self->slot = NULL;
}

TEST(W2_abandoned)
{
    worker late;
    promise one = make();
    worker_start(&late, DELAY_MS, destroy_slot, &one);
    CHECK_ERROR(sp_wait(&one.point), SP_ERROR_ABANDONED);
    worker_join(&late);
    CHECK_ERROR(sp_poll(&one.point), SP_ERROR_ABANDONED);
    CHECK_ERROR(sp_wait_many(&one.point, 1, SP_WAIT_ANY, PATIENCE_NS, NULL), SP_ERROR_ABANDONED);
    drop(&one);
}

TEST(slot_of_nothing)
{
    const sp_point nothing[] = {sp_point_noop(), sp_point_cpu()};
    for (unsigned i = 0; i < 2; i++) {
        promise one = make();
        CHECK_STATUS(sp_slot_set(one.slot, &nothing[i]), SP_OK);
        CHECK_STATUS(sp_poll(&one.point), SP_OK);
        CHECK_STATUS(sp_wait(&one.point), SP_OK);
        drop(&one);
    }
}

TEST(slot_of_a_chain_and_chain_of_slots)
{
    promise one = make(), two = make();
    sp_point points[2] = {host_point(1), host_point(2)}, chain = {0}, slots = {0};
    CHECK_STATUS(sp_chain(&points[0], &points[1], &chain), SP_OK);
    CHECK_STATUS(sp_chain(&one.point, &two.point, &slots), SP_OK);
    CHECK_STATUS(sp_poll(&slots), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_slot_set(two.slot, &points[0]), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&slots, MS), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_slot_set(one.slot, &chain), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&slots, MS), SP_TIMEOUT);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_poll(&slots), SP_PENDING);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 2), SP_OK);
    CHECK_STATUS(sp_poll(&slots), SP_OK);
    sp_point_unref(&slots);
    sp_point_unref(&chain);
    sp_point_unref(&points[0]);
    sp_point_unref(&points[1]);
    drop(&one);
    drop(&two);
    sp_host_timeline_destroy(timeline);
}

/* So no slot ever waits for itself. */
TEST(refuses_what_holds_an_unset_slot)
{
    promise one = make(), two = make();
    sp_point host = host_point(1), chain = {0};
    CHECK_STATUS(sp_chain(&host, &two.point, &chain), SP_OK);
    CHECK_ERROR(sp_slot_set(one.slot, &one.point), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_slot_set(one.slot, &two.point), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_slot_set(one.slot, &chain), SP_ERROR_INVALID_STATE);
    CHECK_STATUS(sp_poll(&one.point), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_slot_set(two.slot, &host), SP_OK);
    CHECK_STATUS(sp_slot_set(one.slot, &chain), SP_OK);
    CHECK_STATUS(sp_poll(&one.point), SP_PENDING);
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
    CHECK_STATUS(sp_wait(&one.point), SP_OK);
    sp_point_unref(&chain);
    sp_point_unref(&host);
    drop(&one);
    drop(&two);
    sp_host_timeline_destroy(timeline);
}

typedef struct racer {
    worker worker;
    sp_slot *slot;
    sp_point point;
    sp_status status;
} racer;

static void race(void *user)
{
    racer *self = user;
    self->status = sp_slot_set(self->slot, &self->point);
}

TEST(racing_sets_have_one_winner)
{
    for (unsigned round = 0; round < 200; round++) {
        racer racers[2];
        promise one = make();
        unsigned winner = 2;
        for (unsigned i = 0; i < 2; i++) {
            racers[i] = (racer){.slot = one.slot, .point = host_point(i + 1)};
            worker_start(&racers[i].worker, 0, race, &racers[i]);
        }
        for (unsigned i = 0; i < 2; i++) {
            worker_join(&racers[i].worker);
            if (racers[i].status == SP_OK) {
                CHECK_EQUAL(winner, 2);
                winner = i;
            } else {
                CHECK_STATUS(racers[i].status, SP_ERROR_INVALID_STATE);
            }
        }
        CHECK(winner < 2);
        CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
        CHECK_STATUS(sp_poll(&one.point), winner == 0 ? SP_OK : SP_PENDING);
        sp_point_unref(&racers[0].point);
        sp_point_unref(&racers[1].point);
        drop(&one);
        sp_host_timeline_destroy(timeline);
        timeline = NULL;
    }
}

/* A slot that failed will never be set: who is set to it gets its failure. */
TEST(a_failed_slot_in_a_slot)
{
    sp_slot *inner = NULL, *outer = NULL;
    sp_point inside = {0}, outside = {0}, chain = {0};
    sp_host_timeline *own = NULL;
    sp_point late = {0};
    CHECK_STATUS(sp_slot_create(&inner), SP_OK);
    CHECK_STATUS(sp_slot_create(&outer), SP_OK);
    CHECK_STATUS(sp_slot_point(inner, &inside), SP_OK);
    CHECK_STATUS(sp_slot_point(outer, &outside), SP_OK);
    CHECK_STATUS(sp_host_timeline_create(0, &own), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(own, 1, &late), SP_OK);
    CHECK_STATUS(sp_chain(&inside, &late, &chain), SP_OK);
    CHECK_STATUS(sp_slot_fail(inner, SP_ERROR_PEER_CLOSED, "gone"), SP_OK);
    CHECK_STATUS(sp_slot_set(outer, &chain), SP_OK);
    CHECK_ERROR(sp_wait(&outside), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_PEER_CLOSED);
    sp_point_unref(&inside);
    sp_point_unref(&outside);
    sp_point_unref(&chain);
    sp_point_unref(&late);
    sp_slot_destroy(inner);
    sp_slot_destroy(outer);
    sp_host_timeline_destroy(own);
}
