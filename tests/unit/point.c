/* SPDX-License-Identifier: MIT
 *
 * The point as a value; carriers.
 */
#include "support/counter.h"
#include "support/test.h"

#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(void *) != 8 || sizeof(sp_point) == 48, "a point is 48 bytes");
_Static_assert(offsetof(sp_point, kind) == 0 && offsetof(sp_point, flags) == 4 &&
                   offsetof(sp_point, value) == 8 && offsetof(sp_point, raw) == 16,
               "the fields are where the header says");

TEST(a_zeroed_point_is_complete)
{
    sp_point point;
    memset(&point, 0, sizeof(point));
    CHECK_EQUAL(point.kind, SP_KIND_NOOP);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&point, 0), SP_OK);
    CHECK_EQUAL(sp_point_backend(&point), SP_BACKEND_CPU);
    CHECK(sp_point_waiter(&point) == NULL);
    sp_point_unref(&point);
    sp_point_unref(&point);
}

TEST(noop_and_cpu)
{
    sp_point noop = sp_point_noop(), cpu = sp_point_cpu(), zero = {0};
    CHECK(test_same_point(&noop, &zero));
    CHECK_EQUAL(cpu.kind, SP_KIND_CPU);
    CHECK(cpu.waiter == NULL);
    CHECK_STATUS(sp_poll(&cpu), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&cpu, SP_FOREVER), SP_OK);
    CHECK_EQUAL(sp_point_backend(&cpu), SP_BACKEND_CPU);
    sp_point copy = sp_point_ref(&cpu);
    CHECK(test_same_point(&copy, &cpu));
    sp_point_unref(&copy);
    CHECK_EQUAL(copy.kind, SP_KIND_NOOP);
    sp_point marked = test_marked_point(), out = marked;
    CHECK_ERROR(sp_point_at(&noop, 1, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_point_at(&cpu, 1, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_point_mark_submitted(&cpu), SP_ERROR_NOT_SUPPORTED);
    CHECK(test_same_point(&out, &marked));
}

TEST(null_points)
{
    sp_point copy = sp_point_ref(NULL);
    CHECK_EQUAL(copy.kind, SP_KIND_NOOP);
    CHECK(copy.waiter == NULL);
    sp_point_unref(NULL);
    CHECK_EQUAL(sp_point_backend(NULL), SP_BACKEND_CPU);
    CHECK(sp_point_waiter(NULL) == NULL);
    CHECK(sp_point_describe(NULL, NULL, 0) > 0);
}

/* A point that no function made: refused, not followed. */
TEST(forged_points)
{
    for (uint32_t kind = SP_KIND_HOST; kind <= SP_KIND_DEFERRED + 3; kind++) {
        char text[100];
        sp_point point = {.kind = kind, .value = 7}, noop = sp_point_noop();
        sp_point marked = test_marked_point(), out = marked;
        size_t index = 5;
        CHECK_ERROR(sp_poll(&point), SP_ERROR_INVALID_ARGUMENT);
        CHECK_ERROR(sp_wait(&point), SP_ERROR_INVALID_ARGUMENT);
        CHECK_ERROR(sp_wait_many(&point, 1, SP_WAIT_ANY, 0, &index), SP_ERROR_INVALID_ARGUMENT);
        CHECK_ERROR(sp_chain(&point, &noop, &out), SP_ERROR_INVALID_ARGUMENT);
        CHECK_ERROR(sp_chain(&noop, &point, &out), SP_ERROR_INVALID_ARGUMENT);
        CHECK(test_same_point(&out, &marked));
        CHECK(sp_point_describe(&point, text, sizeof(text)) > 0);
        sp_point copy = sp_point_ref(&point);
        sp_point_unref(&copy);
    }
}

TEST(unref_zeroes)
{
    sp_host_timeline *timeline = NULL;
    sp_point point = {0}, zero = {0};
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &point), SP_OK);
    sp_point_unref(&point);
    CHECK(test_same_point(&point, &zero));
    sp_point_unref(&point);
    sp_host_timeline_destroy(timeline);
}

TEST(describe_cuts_and_terminates)
{
    sp_point point = sp_point_cpu();
    char text[64];
    size_t length = sp_point_describe(&point, text, sizeof(text));
    CHECK(length > 0 && length < sizeof(text));
    CHECK_EQUAL(strlen(text), length);
    for (size_t size = 1; size <= length + 1; size++) {
        char cut[64];
        memset(cut, 'x', sizeof(cut));
        CHECK_EQUAL(sp_point_describe(&point, cut, size), length);
        CHECK_EQUAL(strlen(cut), size - 1);
        CHECK(memcmp(cut, text, size - 1) == 0);
        CHECK(cut[size] == 'x');
    }
    CHECK_EQUAL(sp_point_describe(&point, NULL, 0), length);
}

/* ---- Carriers ---- */

static void check_carrier(sp_point carrier, sp_kind kind, sp_backend backend, uint64_t value)
{
    sp_point noop = sp_point_noop(), out = {0};
    size_t index = 5;
    CHECK_EQUAL(carrier.kind, kind);
    CHECK(carrier.flags & SP_POINT_CARRIER);
    CHECK_EQUAL(carrier.value, value);
    CHECK(carrier.waiter == NULL);
    CHECK_EQUAL(sp_point_backend(&carrier), backend);
    CHECK_ERROR(sp_poll(&carrier), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_wait(&carrier), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_wait_timeout(&carrier, SP_FOREVER), SP_ERROR_NOT_SUPPORTED);
    const sp_point points[] = {noop, carrier};
    CHECK_ERROR(sp_wait_many(points, 2, SP_WAIT_ALL, 0, &index), SP_ERROR_NOT_SUPPORTED);
    CHECK_EQUAL(index, 1);
    CHECK_ERROR(sp_chain(&noop, &carrier, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_chain(&carrier, &noop, &out), SP_ERROR_NOT_SUPPORTED);
    sp_point copy = sp_point_ref(&carrier);
    CHECK(test_same_point(&copy, &carrier));
    sp_point_unref(&copy);
    sp_point_unref(&carrier);
    CHECK_EQUAL(carrier.kind, SP_KIND_NOOP);
}

TEST(carriers)
{
    int thing;
    sp_point d3d12 = sp_carrier_d3d12_fence(&thing, 7);
    sp_point vulkan = sp_carrier_vulkan_semaphore(0x1234, &thing, 8);
    sp_point metal = sp_carrier_metal_event(&thing, 9);
    CHECK(d3d12.raw.d3d12.fence == &thing);
    CHECK_EQUAL(vulkan.raw.vulkan.semaphore, 0x1234);
    CHECK(vulkan.raw.vulkan.device == &thing);
    CHECK(metal.raw.metal.shared_event == &thing);
    check_carrier(d3d12, SP_KIND_D3D12, SP_BACKEND_D3D12, 7);
    check_carrier(vulkan, SP_KIND_VULKAN, SP_BACKEND_VULKAN, 8);
    check_carrier(metal, SP_KIND_METAL, SP_BACKEND_METAL, 9);
}

TEST(carrier_of_nothing)
{
    check_carrier(sp_carrier_d3d12_fence(NULL, 0), SP_KIND_D3D12, SP_BACKEND_D3D12, 0);
    check_carrier(sp_carrier_vulkan_semaphore(0, NULL, 0), SP_KIND_VULKAN, SP_BACKEND_VULKAN, 0);
    check_carrier(sp_carrier_metal_event(NULL, UINT64_MAX), SP_KIND_METAL, SP_BACKEND_METAL,
                  UINT64_MAX);
}

TEST(carrier_in_a_slot)
{
    sp_slot *slot = NULL;
    sp_point point = {0}, carrier = sp_carrier_d3d12_fence(NULL, 1), noop = sp_point_noop();
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &point), SP_OK);
    CHECK_ERROR(sp_slot_set(slot, &carrier), SP_ERROR_NOT_SUPPORTED);
    CHECK_STATUS(sp_poll(&point), SP_NOT_SUBMITTED);
    CHECK_STATUS(sp_slot_set(slot, &noop), SP_OK);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
    sp_slot_destroy(slot);
}

static void check_text(const sp_point *point, const char *expected)
{
    char text[100];
    sp_point_describe(point, text, sizeof(text));
    assert_string_equal(text, expected);
}

TEST(describe_says_what_it_is)
{
    sp_host_timeline *timeline = NULL;
    sp_point point = {0};
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 6, &point), SP_OK);
    check_text(&point, "host timeline value 6, not known reached");
    CHECK_STATUS(sp_host_timeline_signal(timeline, 6), SP_OK);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    check_text(&point, "host timeline value 6, reached");
    sp_point_unref(&point);
    sp_host_timeline_destroy(timeline);
    check_text(&point, "noop, complete");
    counter *one = counter_create(COUNTER_PROBE);
    point = counter_point(one, 3);
    CHECK(one->base.ops->name != NULL);
    char expected[100];
    snprintf(expected, sizeof(expected), "%s value 3, not known reached", one->base.ops->name);
    check_text(&point, expected);
    sp_point_unref(&point);
    counter_unref(one);
    point = sp_carrier_vulkan_semaphore(0x55, NULL, 0);
    check_text(&point, "vulkan carrier 0x55, to be imported");
}
