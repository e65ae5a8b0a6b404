/* SPDX-License-Identifier: MIT
 *
 * Primitives that a user brings: what the library accepts, and what it makes of what they say.
 */
#include "support/counter.h"
#include "support/test.h"
#include "support/threads.h"

#include <limits.h>
#include <string.h>

/* ---- The table ---- */

static unsigned destroyed;

static sp_status some_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)waiter;
    (void)value;
    *reached = 0;
    return SP_OK;
}

static sp_status some_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    (void)waiter;
    (void)value;
    (void)deadline_ns;
    return SP_TIMEOUT;
}

static sp_status some_arm(sp_waiter *waiter, uint64_t value, sp_waker *waker)
{
    (void)waiter;
    (void)value;
    (void)waker;
    return SP_OK;
}

static void some_disarm(sp_waiter *waiter, sp_waker *waker)
{
    (void)waiter;
    (void)waker;
}

static const void *some_group(sp_waiter *waiter)
{
    return waiter;
}

static sp_status some_block_many(sp_waiter *const *waiters, const uint64_t *values, size_t count,
                                 sp_wait_mode mode, uint64_t deadline_ns)
{
    (void)waiters;
    (void)values;
    (void)count;
    (void)mode;
    (void)deadline_ns;
    return SP_TIMEOUT;
}

static void some_destroy(sp_waiter *waiter)
{
    (void)waiter;
    destroyed++;
}

static sp_waiter_ops full_table(void)
{
    return (sp_waiter_ops){
        .size = sizeof(sp_waiter_ops),
        .features = SP_FEATURE_COUNTING | SP_FEATURE_BLOCK | SP_FEATURE_ARM | SP_FEATURE_GROUP,
        .backend = SP_BACKEND_CUSTOM,
        .name = "full",
        .probe = some_probe,
        .block = some_block,
        .arm = some_arm,
        .disarm = some_disarm,
        .group = some_group,
        .block_many = some_block_many,
        .destroy = some_destroy,
    };
}

static void refuse(const sp_waiter_ops *ops)
{
    sp_waiter waiter, before;
    memset(&waiter, 0x5a, sizeof(waiter));
    before = waiter;
    CHECK_ERROR(sp_waiter_init(&waiter, ops), SP_ERROR_INVALID_ARGUMENT);
    CHECK(memcmp(&waiter, &before, sizeof(waiter)) == 0);
}

TEST(a_full_table_is_accepted)
{
    sp_waiter waiter;
    sp_waiter_ops ops = full_table();
    CHECK_STATUS(sp_waiter_init(&waiter, &ops), SP_OK);
    CHECK(sp_waiter_ref(&waiter) == &waiter);
    sp_waiter_unref(&waiter);
    CHECK_EQUAL(destroyed, 0);
    sp_waiter_unref(&waiter);
    CHECK_EQUAL(destroyed, 1);
    CHECK(sp_waiter_ref(NULL) == NULL);
    sp_waiter_unref(NULL);
    CHECK(!sp_waiter_forked(NULL));
}

TEST(each_required_entry)
{
    sp_waiter_ops ops = full_table();
    ops.probe = NULL;
    refuse(&ops);
    ops = full_table();
    ops.destroy = NULL;
    refuse(&ops);
    ops = full_table();
    ops.size--;
    refuse(&ops);
    ops = full_table();
    ops.size = 0;
    refuse(&ops);
    refuse(NULL);
    ops = full_table();
    CHECK_ERROR(sp_waiter_init(NULL, &ops), SP_ERROR_INVALID_ARGUMENT);
}

TEST(features_and_pointers_agree)
{
    const uint32_t bits[] = {SP_FEATURE_BLOCK, SP_FEATURE_ARM, SP_FEATURE_GROUP};
    for (unsigned i = 0; i < COUNT_OF(bits); i++) {
        sp_waiter_ops ops = full_table();
        ops.features &= ~bits[i];
        refuse(&ops);
    }
    sp_waiter_ops ops = full_table();
    ops.block = NULL;
    refuse(&ops);
    ops = full_table();
    ops.arm = NULL;
    refuse(&ops);
    ops = full_table();
    ops.disarm = NULL;
    refuse(&ops);
    ops = full_table();
    ops.group = NULL;
    refuse(&ops);
    ops = full_table();
    ops.block_many = NULL;
    refuse(&ops);
    for (unsigned bit = 6; bit < 32; bit++) {
        ops = full_table();
        ops.features |= UINT32_C(1) << bit;
        refuse(&ops);
    }
}

TEST(counting_excludes_consuming)
{
    sp_waiter_ops ops = full_table();
    ops.features |= SP_FEATURE_CONSUMING;
    refuse(&ops);
}

/* A group's wait fails and no primitive owns up: the error is told all the same. */
TEST(group_failure_that_no_probe_shows)
{
    size_t index = 9;
    counter *counters[2] = {counter_create(COUNTER_GROUP), counter_create(COUNTER_GROUP)};
    const sp_point points[2] = {counter_point(counters[0], 1), counter_point(counters[1], 1)};
    counters[1]->failed = SP_ERROR_SYSTEM;
    CHECK_ERROR(sp_wait_many(points, 2, SP_WAIT_ALL, PATIENCE_NS, &index), SP_ERROR_SYSTEM);
    CHECK(index < 2);
    for (unsigned i = 0; i < 2; i++) {
        sp_point copy = points[i];
        sp_point_unref(&copy);
        counter_unref(counters[i]);
    }
}

TEST(error_says_what_is_wrong)
{
    sp_waiter waiter;
    sp_waiter_ops ops = full_table();
    ops.probe = NULL;
    CHECK_ERROR(sp_waiter_init(&waiter, &ops), SP_ERROR_INVALID_ARGUMENT);
    CHECK(strstr(sp_last_error()->message, "probe") != NULL);
    ops = full_table();
    ops.features &= ~(uint32_t)SP_FEATURE_ARM;
    CHECK_ERROR(sp_waiter_init(&waiter, &ops), SP_ERROR_INVALID_ARGUMENT);
    CHECK(strstr(sp_last_error()->message, "ARM") != NULL);
    ops = full_table();
    ops.name = NULL;
    CHECK_ERROR(sp_waiter_init(&waiter, &ops), SP_ERROR_INVALID_ARGUMENT);
    CHECK(strstr(sp_last_error()->message, "name") != NULL);
}

/* ---- Points ---- */

TEST(custom_points)
{
    const uint64_t words[3] = {11, 22, 33};
    counter *counting = counter_create(COUNTER_PROBE), *shot = counter_create(COUNTER_ONE_SHOT_ARM);
    sp_point marked = test_marked_point(), out = marked;
    CHECK_STATUS(sp_point_custom(&counting->base, 5, words, &out), SP_OK);
    CHECK_EQUAL(out.kind, SP_KIND_CUSTOM);
    CHECK_EQUAL(out.flags, SP_POINT_HAS_VALUE);
    CHECK_EQUAL(out.value, 5);
    CHECK(memcmp(out.raw.words, words, sizeof(words)) == 0);
    CHECK(out.waiter == &counting->base);
    sp_point_unref(&out);
    CHECK_STATUS(sp_point_custom(&shot->base, 5, NULL, &out), SP_OK);
    CHECK_EQUAL(out.value, 0); /* "0 if the kind has none" */
    CHECK_EQUAL(out.raw.words[0] | out.raw.words[1] | out.raw.words[2], 0);
    counter_signal(shot, 1);
    CHECK_STATUS(sp_poll(&out), SP_OK);
    sp_point_unref(&out);
    out = marked;
    CHECK_ERROR(sp_point_custom(&counting->base, UINT64_MAX, NULL, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_point_custom(NULL, 1, NULL, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_point_custom(&counting->base, 1, NULL, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK(test_same_point(&out, &marked));
    counter_unref(counting);
    counter_unref(shot);
    CHECK_EQUAL(counter_alive(), 0);
}

/* ---- What a primitive says ---- */

TEST(fatal_probe_errors_are_kept)
{
    const sp_status fatal[] = {SP_ERROR_DEVICE_LOST, SP_ERROR_ABANDONED, SP_ERROR_FAILED,
                               SP_ERROR_PEER_CLOSED, SP_ERROR_BACKEND};
    for (unsigned i = 0; i < COUNT_OF(fatal); i++) {
        counter *one = counter_create(COUNTER_BLOCK);
        sp_point reached = counter_point(one, 1), pending = counter_point(one, 2);
        counter_signal(one, 1);
        CHECK_STATUS(sp_poll(&reached), SP_OK);
        counter_set_probe_status(one, fatal[i]);
        CHECK_ERROR(sp_poll(&pending), fatal[i]);
        counter_set_probe_status(one, SP_OK);
        counter_signal(one, 2);
        CHECK_ERROR(sp_poll(&pending), fatal[i]);
        CHECK_ERROR(sp_wait(&pending), fatal[i]);
        CHECK_STATUS(sp_poll(&reached), SP_OK);
        sp_point_unref(&reached);
        sp_point_unref(&pending);
        counter_unref(one);
    }
}

TEST(other_probe_errors_pass)
{
    const sp_status passing[] = {SP_ERROR_OUT_OF_MEMORY, SP_ERROR_SYSTEM, SP_ERROR_WRONG_CONTEXT};
    counter *one = counter_create(COUNTER_BLOCK);
    sp_point point = counter_point(one, 1);
    for (unsigned i = 0; i < COUNT_OF(passing); i++) {
        counter_set_probe_status(one, passing[i]);
        CHECK_STATUS(sp_poll(&point), passing[i]);
        CHECK_STATUS(sp_wait(&point), passing[i]);
        counter_set_probe_status(one, SP_OK);
        CHECK_STATUS(sp_poll(&point), SP_PENDING);
    }
    counter_signal(one, 1);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
    counter_unref(one);
}

static void submit_late(void *user)
{
    counter_set_probe_status(user, SP_OK);
    test_sleep_ms(DELAY_MS);
    counter_signal(user, 1);
}

TEST(not_submitted_from_a_probe)
{
    const counter_style styles[] = {COUNTER_PROBE, COUNTER_BLOCK, COUNTER_ARM, COUNTER_GROUP};
    for (unsigned i = 0; i < COUNT_OF(styles); i++) {
        worker late;
        counter *one = counter_create(styles[i]);
        sp_point point = counter_point(one, 1);
        counter_set_probe_status(one, SP_NOT_SUBMITTED);
        CHECK_STATUS(sp_poll(&point), SP_NOT_SUBMITTED);
        CHECK_STATUS(sp_wait_timeout(&point, MS), SP_NOT_SUBMITTED);
        worker_start(&late, DELAY_MS, submit_late, one);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        worker_join(&late);
        sp_point_unref(&point);
        counter_unref(one);
    }
}

/* POLL: the primitive's own wait notices late, so it is left alone. */
static unsigned block_calls;

static sp_status forbidden_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    __atomic_fetch_add(&block_calls, 1, __ATOMIC_SEQ_CST);
    return some_block(waiter, value, deadline_ns);
}

static uint64_t polled_value;

static sp_status poll_value(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)waiter;
    (void)value;
    *reached = __atomic_load_n(&polled_value, __ATOMIC_SEQ_CST);
    return SP_OK;
}

static void reach_late(void *unused)
{
    (void)unused;
    __atomic_store_n(&polled_value, 1, __ATOMIC_SEQ_CST);
}

TEST(poll_feature_never_blocks)
{
    static const sp_waiter_ops ops = {
        .size = sizeof(sp_waiter_ops),
        .features = SP_FEATURE_COUNTING | SP_FEATURE_BLOCK | SP_FEATURE_POLL,
        .backend = SP_BACKEND_CUSTOM,
        .name = "polled",
        .probe = poll_value,
        .block = forbidden_block,
        .destroy = some_destroy,
    };
    worker late;
    sp_waiter waiter;
    sp_point point = {0};
    CHECK_STATUS(sp_waiter_init(&waiter, &ops), SP_OK);
    CHECK_STATUS(sp_point_custom(&waiter, 1, NULL, &point), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&point, 5 * MS), SP_TIMEOUT);
    worker_start(&late, DELAY_MS, reach_late, NULL);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    worker_join(&late);
    CHECK_EQUAL(__atomic_load_n(&block_calls, __ATOMIC_SEQ_CST), 0);
    sp_point_unref(&point);
    sp_waiter_unref(&waiter);
    CHECK_EQUAL(destroyed, 1);
}

/* block() may come back early with TIMEOUT; the wait goes on to its own deadline. */
TEST(early_timeouts_of_block)
{
    static const sp_waiter_ops ops = {
        .size = sizeof(sp_waiter_ops),
        .features = SP_FEATURE_COUNTING | SP_FEATURE_BLOCK,
        .backend = SP_BACKEND_CUSTOM,
        .name = "impatient",
        .probe = poll_value,
        .block = some_block,
        .destroy = some_destroy,
    };
    worker late;
    sp_waiter waiter;
    sp_point point = {0};
    CHECK_STATUS(sp_waiter_init(&waiter, &ops), SP_OK);
    CHECK_STATUS(sp_point_custom(&waiter, 1, NULL, &point), SP_OK);
    uint64_t start = sp_now_ns();
    CHECK_STATUS(sp_wait_timeout(&point, 20 * MS), SP_TIMEOUT);
    CHECK(sp_now_ns() - start >= 20 * MS);
    worker_start(&late, DELAY_MS, reach_late, NULL);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    worker_join(&late);
    sp_point_unref(&point);
    sp_waiter_unref(&waiter);
}

/* A group whose wait fails: the index is the point that failed, not the first one pending. */
TEST(group_failure_has_an_index)
{
    for (unsigned mode = SP_WAIT_ALL; mode <= SP_WAIT_ANY; mode++) {
        size_t index = 9;
        counter *counters[3];
        sp_point points[3];
        for (unsigned i = 0; i < 3; i++) {
            counters[i] = counter_create(COUNTER_GROUP);
            points[i] = counter_point(counters[i], 1);
        }
        /* Only the primitive knows: it says so when it is asked. */
        counters[2]->failed = SP_ERROR_DEVICE_LOST;
        counters[2]->fails_probe_later = true;
        CHECK_ERROR(sp_wait_many(points, 3, (sp_wait_mode)mode, PATIENCE_NS, &index),
                    SP_ERROR_DEVICE_LOST);
        CHECK_EQUAL(index, 2);
        for (unsigned i = 0; i < 3; i++) {
            sp_point_unref(&points[i]);
            counter_unref(counters[i]);
        }
    }
}

/* ---- sp_waiter_reached(), sp_waiter_fail() ---- */

static sp_error some_error(sp_status status)
{
    sp_error error = {.status = status,
                      .cause = SP_ERROR_SYSTEM,
                      .backend = SP_BACKEND_CUSTOM,
                      .native_code = 77,
                      .native_call = "their_call"};
    strcpy(error.message, "their message");
    return error;
}

TEST(noted_values_need_no_probe)
{
    counter *one = counter_create(COUNTER_PROBE);
    sp_point five = counter_point(one, 5), six = counter_point(one, 6);
    sp_waiter_reached(&one->base, 5);
    sp_waiter_reached(&one->base, 2); /* never goes back */
    unsigned probes = one->probes;
    CHECK_STATUS(sp_poll(&five), SP_OK);
    CHECK_STATUS(sp_wait(&five), SP_OK);
    CHECK_EQUAL(one->probes, probes);
    CHECK_STATUS(sp_poll(&six), SP_PENDING);
    CHECK(one->probes > probes);
    sp_point_unref(&five);
    sp_point_unref(&six);
    counter_unref(one);
}

TEST(failure_from_a_value_on)
{
    counter *one = counter_create(COUNTER_PROBE);
    sp_point four = counter_point(one, 4), five = counter_point(one, 5);
    sp_error error = some_error(SP_ERROR_CANCELLED), other = some_error(SP_ERROR_BACKEND);
    CHECK_STATUS(sp_waiter_fail(&one->base, 5, &error), SP_OK);
    memset(&error, 0, sizeof(error)); /* duplicated */
    CHECK_STATUS(sp_poll(&four), SP_PENDING);
    CHECK_ERROR(sp_poll(&five), SP_ERROR_CANCELLED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_SYSTEM);
    CHECK_EQUAL(sp_last_error()->native_code, 77);
    assert_string_equal(sp_last_error()->native_call, "their_call");
    assert_string_equal(sp_last_error()->message, "their message");
    counter_signal(one, 9);
    CHECK_STATUS(sp_poll(&four), SP_OK);
    CHECK_ERROR(sp_poll(&five), SP_ERROR_CANCELLED);
    sp_waiter_reached(&one->base, 9); /* what failed stays failed */
    CHECK_ERROR(sp_poll(&five), SP_ERROR_CANCELLED);
    CHECK_STATUS(sp_waiter_fail(&one->base, 0, &other), SP_OK);
    CHECK_ERROR(sp_poll(&five), SP_ERROR_CANCELLED); /* the first cause */
    CHECK_STATUS(sp_poll(&four), SP_OK);
    sp_point_unref(&four);
    sp_point_unref(&five);
    counter_unref(one);
}

TEST(failure_of_all_that_is_not_reached)
{
    counter *one = counter_create(COUNTER_PROBE);
    sp_point two = counter_point(one, 2), three = counter_point(one, 3);
    sp_error error = some_error(SP_ERROR_BACKEND), positive = some_error(SP_TIMEOUT),
             none = some_error(SP_OK);
    CHECK_ERROR(sp_waiter_fail(&one->base, 0, &positive), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_waiter_fail(&one->base, 0, &none), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_waiter_fail(&one->base, 0, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_waiter_fail(NULL, 0, &error), SP_ERROR_INVALID_ARGUMENT);
    sp_waiter_reached(NULL, 1);
    counter_signal(one, 2);
    CHECK_STATUS(sp_poll(&two), SP_OK);
    CHECK_STATUS(sp_waiter_fail(&one->base, 0, &error), SP_OK);
    CHECK_STATUS(sp_poll(&two), SP_OK);
    CHECK_ERROR(sp_poll(&three), SP_ERROR_BACKEND);
    sp_point_unref(&two);
    sp_point_unref(&three);
    counter_unref(one);
}

TEST(one_shot_failure)
{
    counter *one = counter_create(COUNTER_ONE_SHOT_PROBE);
    sp_point point = counter_point(one, 0);
    sp_error error = some_error(SP_ERROR_BACKEND);
    CHECK_STATUS(sp_waiter_fail(&one->base, 0, &error), SP_OK);
    counter_signal(one, 1);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_BACKEND);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_BACKEND);
    sp_point_unref(&point);
    counter_unref(one);
}

/* A waker is left with each waiter once and taken back, however the wait ends. */
TEST(W4_wakers_are_taken_back)
{
    enum { COUNT = 100 };
    counter *counters[COUNT];
    sp_point points[2 * COUNT];
    for (unsigned i = 0; i < COUNT; i++) {
        counters[i] = counter_create(i % 2 ? COUNTER_ARM : COUNTER_ONE_SHOT_ARM);
        points[2 * i] = counter_point(counters[i], 1);
        points[2 * i + 1] = points[2 * i];
    }
    CHECK_STATUS(sp_wait_many(points, 2 * COUNT, SP_WAIT_ANY, 5 * MS, NULL), SP_TIMEOUT);
    CHECK_EQUAL(counter_armed(), 0);
    for (unsigned i = 0; i < COUNT; i++)
        counter_signal(counters[i], 1);
    CHECK_STATUS(sp_wait_many(points, 2 * COUNT, SP_WAIT_ANY, 5 * MS, NULL), SP_OK);
    CHECK_STATUS(sp_wait_many(points, 2 * COUNT, SP_WAIT_ALL, 5 * MS, NULL), SP_OK);
    CHECK_EQUAL(counter_armed(), 0);
    for (unsigned i = 0; i < COUNT; i++) {
        sp_point_unref(&points[2 * i]);
        counter_unref(counters[i]);
    }
    CHECK_EQUAL(counter_alive(), 0);
}

/* arm() may refuse: then the wait polls. */
static sp_status refusing_arm(sp_waiter *waiter, uint64_t value, sp_waker *waker)
{
    (void)waiter;
    (void)value;
    (void)waker;
    return SP_ERROR_OUT_OF_MEMORY;
}

static void forbidden_disarm(sp_waiter *waiter, sp_waker *waker)
{
    (void)waiter;
    (void)waker;
    CHECK(false);
}

TEST(arm_may_refuse)
{
    static const sp_waiter_ops ops = {
        .size = sizeof(sp_waiter_ops),
        .features = SP_FEATURE_COUNTING | SP_FEATURE_ARM,
        .backend = SP_BACKEND_CUSTOM,
        .name = "refusing",
        .probe = poll_value,
        .arm = refusing_arm,
        .disarm = forbidden_disarm,
        .destroy = some_destroy,
    };
    worker late;
    sp_waiter waiter;
    sp_point points[2] = {{0}};
    CHECK_STATUS(sp_waiter_init(&waiter, &ops), SP_OK);
    CHECK_STATUS(sp_point_custom(&waiter, 1, NULL, &points[0]), SP_OK);
    CHECK_STATUS(sp_point_custom(&waiter, 2, NULL, &points[1]), SP_OK);
    worker_start(&late, DELAY_MS, reach_late, NULL);
    CHECK_STATUS(sp_wait_many(points, 2, SP_WAIT_ANY, PATIENCE_NS, NULL), SP_OK);
    worker_join(&late);
    sp_point_unref(&points[0]);
    sp_point_unref(&points[1]);
    sp_waiter_unref(&waiter);
}

/* ---- What no primitive should say ---- */

static void check_broken(counter_style style, sp_status nonsense)
{
    size_t index = 9;
    counter *one = counter_create(style);
    sp_point point = counter_point(one, 1);
    counter_set_probe_status(one, nonsense);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_BACKEND);
    CHECK_EQUAL(sp_last_error()->native_code, nonsense);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_BACKEND);
    CHECK_ERROR(sp_wait_many(&point, 1, SP_WAIT_ALL, PATIENCE_NS, &index), SP_ERROR_BACKEND);
    CHECK_ERROR(sp_wait_many(&point, 1, SP_WAIT_ANY, PATIENCE_NS, &index), SP_ERROR_BACKEND);
    sp_point_unref(&point);
    counter_unref(one);
}

TEST(numbers_that_are_no_status)
{
    const int nonsense[] = {4, 77, INT_MAX, -19, -1000, INT_MIN};
    for (unsigned i = 0; i < COUNT_OF(nonsense); i++) {
        check_broken(COUNTER_PROBE, (sp_status)nonsense[i]);
        check_broken(COUNTER_ARM, (sp_status)nonsense[i]);
        check_broken(COUNTER_GROUP, (sp_status)nonsense[i]);
    }
}

/* Not the status that is asked for, but what it means is plain: nothing is reached. */
TEST(probe_says_timeout_or_pending)
{
    const sp_status waiting[] = {SP_TIMEOUT, SP_PENDING};
    for (unsigned i = 0; i < COUNT_OF(waiting); i++) {
        counter *one = counter_create(COUNTER_PROBE);
        sp_point point = counter_point(one, 1);
        counter_set_probe_status(one, waiting[i]);
        CHECK_STATUS(sp_poll(&point), SP_PENDING);
        uint64_t start = sp_now_ns();
        CHECK_STATUS(sp_wait_timeout(&point, 3 * MS), SP_TIMEOUT);
        CHECK_STATUS(sp_wait_many(&point, 1, SP_WAIT_ANY, 3 * MS, NULL), SP_TIMEOUT);
        CHECK_STATUS(sp_wait_many(&point, 1, SP_WAIT_ALL, 3 * MS, NULL), SP_TIMEOUT);
        CHECK(sp_now_ns() - start >= 9 * MS);
        sp_point_unref(&point);
        counter_unref(one);
    }
}

/* What a removed device's counter reads is never "reached". */
TEST(V3_counter_at_its_end)
{
    counter *one = counter_create(COUNTER_PROBE);
    sp_point early = counter_point(one, 1), late = counter_point(one, 2);
    counter_signal(one, 1);
    CHECK_STATUS(sp_poll(&early), SP_OK);
    counter_signal(one, UINT64_MAX);
    CHECK_ERROR(sp_poll(&late), SP_ERROR_DEVICE_LOST);
    CHECK_ERROR(sp_wait(&late), SP_ERROR_DEVICE_LOST);
    CHECK_STATUS(sp_poll(&early), SP_OK);
    sp_point_unref(&early);
    sp_point_unref(&late);
    counter_unref(one);
}

/* ---- Whose sentence it is ---- */

static sp_status told;
static bool tells;

static sp_status telling_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)waiter;
    (void)value;
    *reached = 0;
    const sp_error error = {.status = told,
                            .backend = SP_BACKEND_CUSTOM,
                            .native_code = 5,
                            .native_call = "read",
                            .message = "the wire is cut"};
    return tells ? sp_error_set(&error) : told;
}

static void make_telling(sp_waiter *waiter, sp_point *point)
{
    static const sp_waiter_ops ops = {
        .size = sizeof(sp_waiter_ops),
        .features = SP_FEATURE_COUNTING,
        .backend = SP_BACKEND_CUSTOM,
        .name = "wire",
        .probe = telling_probe,
        .destroy = some_destroy,
    };
    CHECK_STATUS(sp_waiter_init(waiter, &ops), SP_OK);
    CHECK_STATUS(sp_point_custom(waiter, 1, NULL, point), SP_OK);
}

TEST(a_table_tells_what_went_wrong)
{
    const sp_status statuses[] = {SP_ERROR_SYSTEM, SP_ERROR_FAILED};
    tells = true;
    for (unsigned i = 0; i < COUNT_OF(statuses); i++) {
        sp_waiter waiter;
        sp_point point = {0};
        told = statuses[i];
        make_telling(&waiter, &point);
        for (unsigned again = 0; again < 2; again++) {
            CHECK_ERROR(sp_poll(&point), told);
            CHECK_EQUAL(sp_last_error()->native_code, 5);
            CHECK_STATUS(sp_last_error()->cause, told);
            assert_string_equal(sp_last_error()->message, "the wire is cut");
        }
        sp_point_unref(&point);
        sp_waiter_unref(&waiter);
    }
}

/* An earlier error of the thread, of the same status, is another's. */
TEST(an_old_error_is_not_taken_for_this_one)
{
    const sp_error old = {.status = SP_ERROR_FAILED,
                          .cause = SP_ERROR_DEVICE_LOST,
                          .backend = SP_BACKEND_METAL,
                          .message = "long ago"};
    sp_waiter waiter;
    sp_point point = {0};
    told = SP_ERROR_FAILED;
    tells = false;
    make_telling(&waiter, &point);
    CHECK_STATUS(sp_error_set(&old), SP_ERROR_FAILED);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_FAILED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_FAILED);
    CHECK_EQUAL(sp_last_error()->backend, SP_BACKEND_CUSTOM);
    CHECK(strstr(sp_last_error()->message, "wire") != NULL);
    sp_point_unref(&point);
    sp_waiter_unref(&waiter);
}

TEST(bad_errors_are_not_set)
{
    sp_error error = {.status = SP_OK};
    CHECK_ERROR(sp_error_set(NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_error_set(&error), SP_ERROR_INVALID_ARGUMENT);
    error.status = SP_TIMEOUT;
    CHECK_ERROR(sp_error_set(&error), SP_ERROR_INVALID_ARGUMENT);
}

TEST(failure_from_no_value)
{
    counter *one = counter_create(COUNTER_PROBE);
    sp_point point = counter_point(one, 1);
    sp_error error = some_error(SP_ERROR_PEER_CLOSED);
    CHECK_ERROR(sp_waiter_fail(&one->base, UINT64_MAX, &error), SP_ERROR_INVALID_ARGUMENT);
    error = some_error(SP_ERROR_ABANDONED);
    error.cause = SP_OK;
    CHECK_STATUS(sp_waiter_fail(&one->base, 1, &error), SP_OK);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_ABANDONED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_ABANDONED);
    sp_point_unref(&point);
    counter_unref(one);
}

TEST(any_tells_the_error_of_its_index)
{
    size_t index = 9;
    counter *counters[3];
    sp_point points[3];
    const sp_status statuses[] = {SP_OK, SP_ERROR_PEER_CLOSED, SP_ERROR_ABANDONED};
    for (unsigned i = 0; i < 3; i++) {
        counters[i] = counter_create(COUNTER_PROBE);
        points[i] = counter_point(counters[i], 1);
        counter_set_probe_status(counters[i], statuses[i]);
    }
    CHECK_ERROR(sp_wait_many(points, 3, SP_WAIT_ANY, PATIENCE_NS, &index), SP_ERROR_PEER_CLOSED);
    CHECK_EQUAL(index, 1);
    for (unsigned i = 0; i < 3; i++) {
        sp_point_unref(&points[i]);
        counter_unref(counters[i]);
    }
}

TEST(a_message_without_an_end)
{
    sp_error error = some_error(SP_ERROR_ABANDONED);
    memset(error.message, 'x', sizeof(error.message));
    CHECK_ERROR(sp_error_set(&error), SP_ERROR_ABANDONED);
    CHECK_EQUAL(strlen(sp_last_error()->message), sizeof(error.message) - 1);
    counter *one = counter_create(COUNTER_PROBE);
    sp_point point = counter_point(one, 1);
    CHECK_STATUS(sp_waiter_fail(&one->base, 1, &error), SP_OK);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_ABANDONED);
    CHECK_EQUAL(strlen(sp_last_error()->message), sizeof(error.message) - 1);
    sp_point_unref(&point);
    counter_unref(one);
}
