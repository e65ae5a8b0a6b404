/* SPDX-License-Identifier: MIT
 *
 * The point: a plain value with one reference.
 */
#include "core.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

_Static_assert(sizeof(void *) != 8 || sizeof(sp_point) == 48, "a point is 48 bytes");

sp_point sp_point_noop(void)
{
    return (sp_point){.kind = SP_KIND_NOOP};
}
sp_point sp_point_cpu(void)
{
    return (sp_point){.kind = SP_KIND_CPU};
}

sp_point sp_point_ref(const sp_point *point)
{
    if (!point)
        return sp_point_noop();
    if (point->waiter)
        sp_ref_inc(&point->waiter->refs);
    return *point;
}

void sp_point_unref(sp_point *point)
{
    if (!point)
        return;
    sp_waiter *waiter = point->waiter;
    *point = (sp_point){.kind = SP_KIND_NOOP};
    sp_waiter_unref(waiter);
}

static bool counts(const sp_point *point)
{
    if (point->waiter)
        return (point->waiter->features & SP_FEATURE_COUNTING) != 0;
    return (point->flags & SP_POINT_CARRIER) && (point->flags & SP_POINT_HAS_VALUE);
}

sp_status sp_point_at(const sp_point *point, uint64_t value, sp_point *out)
{
    SP_CHECK_ARGUMENT(point && out, "point and out are required");
    SP_CHECK_ARGUMENT(value != UINT64_MAX, "UINT64_MAX is not a timeline value");
    if (!counts(point))
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_point_at: a %s point has no other values: it does not count",
                       sp_kind_name((sp_kind)point->kind));
    if (point->waiter && sp_waiter_is_forked(point->waiter))
        return sp_fail_forked();
    sp_point made = point == out ? *point : sp_point_ref(point);
    made.flags |= SP_POINT_HAS_VALUE;
    made.value = value;
    *out = made;
    return SP_OK;
}

sp_backend sp_point_backend(const sp_point *point)
{
    if (!point)
        return SP_BACKEND_CPU;
    while (sp_point_is_chain(point))
        point = sp_chain_first(point);
    if (sp_point_is_slot(point)) {
        const sp_point *target = sp_slot_target(point);
        return target ? sp_point_backend(target) : SP_BACKEND_CPU;
    }
    if (point->waiter)
        return point->waiter->ops->backend;
    switch (point->kind) {
    case SP_KIND_VULKAN:
        return SP_BACKEND_VULKAN;
    case SP_KIND_D3D12:
        return SP_BACKEND_D3D12;
    case SP_KIND_METAL:
        return SP_BACKEND_METAL;
    default:
        return SP_BACKEND_CPU;
    }
}

sp_waiter *sp_point_waiter(const sp_point *point)
{
    return point ? point->waiter : NULL;
}

sp_status sp_point_custom(sp_waiter *waiter, uint64_t value, const uint64_t words[3], sp_point *out)
{
    SP_CHECK_ARGUMENT(waiter && out, "waiter and out are required");
    SP_CHECK_ARGUMENT(value != UINT64_MAX, "UINT64_MAX is not a timeline value");
    if (sp_waiter_is_forked(waiter))
        return sp_fail_forked();
    bool counting = (waiter->features & SP_FEATURE_COUNTING) != 0;
    sp_point made = {
        .kind = SP_KIND_CUSTOM,
        .flags = counting ? SP_POINT_HAS_VALUE : 0,
        .value = counting ? value : 0,
        .waiter = sp_waiter_ref(waiter),
    };
    if (words)
        memcpy(made.raw.words, words, sizeof(made.raw.words));
    *out = made;
    return SP_OK;
}

/* ---- Carriers ---- */

sp_point sp_carrier_d3d12_fence(void *fence, uint64_t value)
{
    return (sp_point){
        .kind = SP_KIND_D3D12,
        .flags = SP_POINT_CARRIER | SP_POINT_HAS_VALUE,
        .value = value,
        .raw.d3d12 = {.fence = fence},
    };
}

sp_point sp_carrier_vulkan_semaphore(uint64_t semaphore, void *device, uint64_t value)
{
    return (sp_point){
        .kind = SP_KIND_VULKAN,
        .flags = SP_POINT_CARRIER | (value ? SP_POINT_HAS_VALUE : SP_POINT_BINARY),
        .value = value,
        .raw.vulkan = {.semaphore = semaphore, .device = device},
    };
}

sp_point sp_carrier_metal_event(void *shared_event, uint64_t value)
{
    return (sp_point){
        .kind = SP_KIND_METAL,
        .flags = SP_POINT_CARRIER | SP_POINT_HAS_VALUE,
        .value = value,
        .raw.metal = {.shared_event = shared_event},
    };
}

/* ---- For the other files ---- */

/* No primitive reaches UINT64_MAX: it marks a point that has not got its value yet. */
static bool lacks_value(const sp_point *point)
{
    return point->value == UINT64_MAX && (point->waiter->features & SP_FEATURE_COUNTING);
}

static sp_status check_waiter(const sp_point *point)
{
    if (sp_waiter_is_forked(point->waiter))
        return sp_fail_forked();
    if (!lacks_value(point))
        return SP_OK;
    return sp_fail(SP_ERROR_INVALID_STATE,
                   "a %s point without a value: give it one with sp_point_at()",
                   sp_kind_name((sp_kind)point->kind));
}

sp_status sp_point_check(const sp_point *point, sp_waiter **waiter)
{
    *waiter = NULL;
    if (!point)
        return sp_fail(SP_ERROR_INVALID_ARGUMENT, "the point is NULL");
    if (point->waiter) {
        *waiter = point->waiter;
        return check_waiter(point);
    }
    if (point->flags & SP_POINT_CARRIER)
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "a carrier only transports %s handles: import it, then wait on the import",
                       sp_kind_name((sp_kind)point->kind));
    if (point->kind == SP_KIND_NOOP || point->kind == SP_KIND_CPU)
        return SP_OK;
    return sp_fail(SP_ERROR_INVALID_ARGUMENT, "a %s point without a waiter: no function made it",
                   sp_kind_name((sp_kind)point->kind));
}

/* ---- Description ---- */

static const char *known_state(const sp_point *point)
{
    if (!point->waiter)
        return point->flags & SP_POINT_CARRIER ? "to be imported" : "complete";
    if (sp_waiter_is_forked(point->waiter))
        return "made before fork";
    if (lacks_value(point))
        return "without a value";
    uint64_t target = sp_point_target(point);
    if (sp_waiter_known_reached(point->waiter, target))
        return "reached";
    if (target >= sp_load64(&point->waiter->failed_from))
        return "failed";
    return "not known reached";
}

/* "vulkan timeline", "host", "d3d12 carrier", or what a user calls their own. */
static void print_sort(const sp_point *point, char *text, size_t size)
{
    const char *name = sp_kind_name((sp_kind)point->kind);
    const char *sort = "";
    if (point->kind == SP_KIND_CUSTOM && point->waiter)
        name = point->waiter->ops->name;
    else if (point->flags & SP_POINT_CARRIER)
        sort = " carrier";
    else if (point->flags & SP_POINT_BINARY)
        sort = " binary";
    else if (point->flags & SP_POINT_HAS_VALUE)
        sort = " timeline";
    snprintf(text, size, "%s%s", name, sort);
}

size_t sp_point_describe(const sp_point *point, char *text, size_t size)
{
    char none[1];
    char sort[64];
    char handle[24] = "";
    char value[32] = "";
    if (!text || size == 0) {
        text = none;
        size = sizeof(none);
    }
    if (!point)
        return (size_t)snprintf(text, size, "no point");
    print_sort(point, sort, sizeof(sort));
    if (point->raw.words[0])
        snprintf(handle, sizeof(handle), " 0x%" PRIx64, point->raw.words[0]);
    if (point->flags & SP_POINT_HAS_VALUE)
        snprintf(value, sizeof(value), " value %" PRIu64, point->value);
    return (size_t)snprintf(text, size, "%s%s%s, %s", sort, handle, value, known_state(point));
}
