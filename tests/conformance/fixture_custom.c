/* SPDX-License-Identifier: MIT
 *
 * Primitives that a user brings, waited on in each way there is.
 */
#include "conformance.h"
#include "support/counter.h"

#include <stdlib.h>

#define MAX_SIGNALS 4096

static counter_style style;
static counter *one; /* COUNTING */

/* ONE_SHOT: each point has a counter of its own. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static counter *many[MAX_SIGNALS];
static uint64_t numbers[MAX_SIGNALS];
static unsigned count;

static void setup(const void *user)
{
    style = *(const counter_style *)user;
    if (style < COUNTER_ONE_SHOT_PROBE)
        one = counter_create(style);
}

static sp_point counting_point(uint64_t number)
{
    return counter_point(one, number);
}
static void counting_signal(uint64_t number)
{
    counter_signal(one, number);
}
static void counting_fail(void)
{
    counter_fail(one, SP_ERROR_DEVICE_LOST);
}

static void counting_release(void)
{
    if (one)
        counter_unref(one);
    one = NULL;
}

static sp_point one_shot_point(uint64_t number)
{
    counter *made = counter_create(style);
    sp_point point = counter_point(made, number);
    pthread_mutex_lock(&mutex);
    assert_true(count < MAX_SIGNALS);
    many[count] = made;
    numbers[count++] = number;
    pthread_mutex_unlock(&mutex);
    return point;
}

static void one_shot_signal(uint64_t number)
{
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < count; i++) {
        if (numbers[i] <= number)
            counter_signal(many[i], 1);
    }
    pthread_mutex_unlock(&mutex);
}

static void one_shot_fail(void)
{
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < count; i++)
        counter_fail(many[i], SP_ERROR_DEVICE_LOST);
    pthread_mutex_unlock(&mutex);
}

static void one_shot_release(void)
{
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < count; i++)
        counter_unref(many[i]);
    count = 0;
    pthread_mutex_unlock(&mutex);
}

/* Every wait has taken back what it left. */
static void counting_teardown(void)
{
    CHECK_EQUAL(counter_armed(), 0);
    counting_release();
}

static void one_shot_teardown(void)
{
    CHECK_EQUAL(counter_armed(), 0);
    one_shot_release();
}

static const counter_style styles[] = {
    COUNTER_PROBE, COUNTER_BLOCK,          COUNTER_ARM,
    COUNTER_GROUP, COUNTER_ONE_SHOT_PROBE, COUNTER_ONE_SHOT_ARM,
};

#define COMMON                                                                                     \
    .kind = SP_KIND_CUSTOM, .backend = SP_BACKEND_CUSTOM, .pending = SP_PENDING,                   \
    .timed_out = SP_TIMEOUT, .mark_submitted = SP_ERROR_NOT_SUPPORTED,                             \
    .fail_status = SP_ERROR_DEVICE_LOST, .fail_cause = SP_ERROR_DEVICE_LOST, .setup = setup,       \
    .alive = counter_alive

#define COUNTING_FIXTURE(style_)                                                                   \
    {                                                                                              \
        COMMON, .flags = SP_POINT_HAS_VALUE, .user = &styles[style_], .point = counting_point,     \
                .signal = counting_signal, .fail_all = counting_fail,                              \
                .release_owner = counting_release, .teardown = counting_teardown                   \
    }

#define ONE_SHOT_FIXTURE(style_)                                                                   \
    {                                                                                              \
        COMMON, .user = &styles[style_], .point = one_shot_point, .signal = one_shot_signal,       \
                .fail_all = one_shot_fail, .release_owner = one_shot_release,                      \
                .teardown = one_shot_teardown                                                      \
    }

static const fixture fixtures[] = {
    COUNTING_FIXTURE(COUNTER_PROBE),
    COUNTING_FIXTURE(COUNTER_BLOCK),
    COUNTING_FIXTURE(COUNTER_ARM),
    COUNTING_FIXTURE(COUNTER_GROUP),
    ONE_SHOT_FIXTURE(COUNTER_ONE_SHOT_PROBE),
    ONE_SHOT_FIXTURE(COUNTER_ONE_SHOT_ARM),
};

#define COMMON_FEATURES (FAILING | COUNTED | POLLED | INDEPENDENT | UNLAYERED)

const test_target custom_targets[] = {
    {"custom-probe", COUNTING | COMMON_FEATURES, (void *)&fixtures[COUNTER_PROBE]},
    {"custom-block", COUNTING | COMMON_FEATURES, (void *)&fixtures[COUNTER_BLOCK]},
    {"custom-arm", COUNTING | COMMON_FEATURES, (void *)&fixtures[COUNTER_ARM]},
    {"custom-group", COUNTING | COMMON_FEATURES, (void *)&fixtures[COUNTER_GROUP]},
    {"custom-one-shot", ONE_SHOT | COMMON_FEATURES, (void *)&fixtures[COUNTER_ONE_SHOT_PROBE]},
    {"custom-one-shot-arm", ONE_SHOT | COMMON_FEATURES, (void *)&fixtures[COUNTER_ONE_SHOT_ARM]},
    {NULL, 0, NULL},
};
