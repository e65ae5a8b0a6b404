/* SPDX-License-Identifier: MIT
 *
 * The software timeline, which is the oracle for every other primitive, and what the core makes of
 * it: chains and slots.
 */
#include "conformance.h"

static sp_host_timeline *timeline;

static void setup(const void *user)
{
    (void)user;
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
}

static sp_point host_point(uint64_t number)
{
    sp_point point = {0};
    CHECK_STATUS(sp_host_timeline_point(timeline, number, &point), SP_OK);
    return point;
}

static sp_point chain_point(uint64_t number)
{
    sp_point side = host_point(number), chain = {0};
    CHECK_STATUS(sp_chain(&side, &side, &chain), SP_OK);
    sp_point_unref(&side);
    return chain;
}

static sp_point slot_point(uint64_t number)
{
    sp_point what = host_point(number), point = {0};
    sp_slot *slot = NULL;
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &point), SP_OK);
    CHECK_STATUS(sp_slot_set(slot, &what), SP_OK);
    sp_slot_destroy(slot);
    sp_point_unref(&what);
    return point;
}

static void signal(uint64_t number)
{
    if (number > sp_host_timeline_value(timeline))
        CHECK_STATUS(sp_host_timeline_signal(timeline, number), SP_OK);
}

static void fail_all(void)
{
    CHECK_STATUS(sp_host_timeline_fail(timeline, SP_ERROR_DEVICE_LOST, "made to fail"), SP_OK);
}

static void release_owner(void)
{
    sp_host_timeline_destroy(timeline);
    timeline = NULL;
}

static const fixture host = {
    .kind = SP_KIND_HOST,
    .backend = SP_BACKEND_CPU,
    .flags = SP_POINT_HAS_VALUE,
    .pending = SP_PENDING,
    .timed_out = SP_TIMEOUT,
    .mark_submitted = SP_ERROR_NOT_SUPPORTED,
    .fail_status = SP_ERROR_FAILED,
    .fail_cause = SP_ERROR_DEVICE_LOST,
    .setup = setup,
    .point = host_point,
    .signal = signal,
    .fail_all = fail_all,
    .release_owner = release_owner,
    .teardown = release_owner,
};

static const fixture chain = {
    .kind = SP_KIND_CHAIN,
    .backend = SP_BACKEND_CPU,
    .pending = SP_PENDING,
    .timed_out = SP_TIMEOUT,
    .mark_submitted = SP_ERROR_NOT_SUPPORTED,
    .fail_status = SP_ERROR_FAILED,
    .fail_cause = SP_ERROR_DEVICE_LOST,
    .setup = setup,
    .point = chain_point,
    .signal = signal,
    .fail_all = fail_all,
    .release_owner = release_owner,
    .teardown = release_owner,
};

static const fixture slot = {
    .kind = SP_KIND_DEFERRED,
    .backend = SP_BACKEND_CPU,
    .pending = SP_PENDING,
    .timed_out = SP_TIMEOUT,
    .mark_submitted = SP_ERROR_NOT_SUPPORTED,
    .fail_status = SP_ERROR_FAILED,
    .fail_cause = SP_ERROR_DEVICE_LOST,
    .setup = setup,
    .point = slot_point,
    .signal = signal,
    .fail_all = fail_all,
    .release_owner = release_owner,
    .teardown = release_owner,
};

#define COMMON_FEATURES (FAILING | POLLED | INDEPENDENT | UNLAYERED)

const test_target host_targets[] = {
    {"host", COUNTING | COMMON_FEATURES, (void *)&host},
    {"chain", ONE_SHOT | COMMON_FEATURES, (void *)&chain},
    {"slot", ONE_SHOT | COMMON_FEATURES, (void *)&slot},
    {NULL, 0, NULL},
};
