/* SPDX-License-Identifier: MIT
 *
 * Semaphore objects: made by us, or the user's own.
 */
#include "vk_internal.h"

#include <stdlib.h>

/* ---- Binary semaphores as objects: only counted, their signals are the waiters ---- */

static sp_status binary_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)waiter;
    (void)value;
    (void)reached;
    return sp_fail(SP_ERROR_NOT_SUPPORTED, "a binary semaphore has no value");
}

/* The last reference of a semaphore of either type. */
static void semaphore_release(sp_waiter *waiter)
{
    sp_vk_semaphore *semaphore = sp_vk_timeline_of(waiter);
    if (sp_waiter_is_forked(waiter)) {
        sp_vk_semaphore_free(semaphore);
    } else {
        sp_vk_retire(semaphore);
    }
}

const sp_waiter_ops sp_vk_binary_ops = {
    .size = sizeof(sp_waiter_ops),
    .backend = SP_BACKEND_VULKAN,
    .name = "vulkan binary semaphore",
    .probe = binary_probe,
    .destroy = semaphore_release,
};

static sp_waiter *make_bell(sp_waiter *member)
{
    const sp_vk_semaphore_setup setup = {.type = VK_SEMAPHORE_TYPE_TIMELINE, .owned = true};
    sp_vk_semaphore *bell = NULL;
    sp_status status = sp_vk_semaphore_make(sp_vk_timeline_of(member)->device, &setup, &bell);
    return status == SP_OK ? &bell->base : NULL;
}

static sp_status ring_bell(sp_waiter *bell, uint64_t value)
{
    return sp_vk_semaphore_signal(sp_vk_timeline_of(bell), value);
}

const sp_group_ops sp_vk_timeline_ops = {
    .base =
        {
            .size = sizeof(sp_waiter_ops),
            .features = SP_FEATURE_COUNTING | SP_FEATURE_BLOCK | SP_FEATURE_GROUP | SP_FEATURE_RING,
            .backend = SP_BACKEND_VULKAN,
            .name = "vulkan timeline",
            .probe = sp_vk_timeline_probe,
            .block = sp_vk_timeline_block_op,
            .group = sp_vk_timeline_group,
            .block_many = sp_vk_timeline_block_many,
            .destroy = semaphore_release,
        },
    .make_bell = make_bell,
    .ring_bell = ring_bell,
};

/* ---- Making ---- */

static sp_status create_handle(sp_vk_device *device, const sp_vk_semaphore_setup *setup,
                               VkSemaphore *handle)
{
    VkExportSemaphoreCreateInfo export_info = {
        .sType = VK_STRUCTURE_TYPE_EXPORT_SEMAPHORE_CREATE_INFO,
        .handleTypes = setup->export_types,
    };
    VkSemaphoreTypeCreateInfo type_info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_TYPE_CREATE_INFO,
        .pNext = setup->export_types ? &export_info : NULL,
        .semaphoreType = setup->type,
        .initialValue = setup->initial_value,
    };
    VkSemaphoreCreateInfo info = {
        .sType = VK_STRUCTURE_TYPE_SEMAPHORE_CREATE_INFO,
        .pNext = &type_info,
    };
    VkResult result = device->vk.create_semaphore(device->handle, &info, NULL, handle);
    return result == VK_SUCCESS ? SP_OK : sp_vk_fail(device, result, "vkCreateSemaphore");
}

static sp_vk_semaphore *allocate(sp_vk_device *device, const sp_vk_semaphore_setup *setup)
{
    sp_vk_semaphore *made = calloc(1, sizeof(*made));
    if (!made || !sp_os_mutex_init(&made->lock)) {
        free(made);
        sp_fail(SP_ERROR_OUT_OF_MEMORY, "a semaphore object: out of memory");
        return NULL;
    }
    bool timeline = setup->type == VK_SEMAPHORE_TYPE_TIMELINE;
    sp_waiter_setup(&made->base, timeline ? &sp_vk_timeline_ops.base : &sp_vk_binary_ops);
    made->device = sp_vk_device_ref(device);
    made->handle = setup->wrapped;
    made->type = setup->type;
    made->export_types = setup->export_types;
    made->owned = setup->owned;
    made->signal_slot = SP_VK_NO_SLOT;
    made->shared = setup->wrapped || setup->to_import;
    /* That driver's own wait notices the signals of other APIs 9.8 ms late, its counter at once. */
    bool foreign = made->shared || setup->export_types;
    if (timeline && foreign && device->vk.is_nvidia)
        made->base.features |= SP_FEATURE_POLL;
    return made;
}

/* Where a timeline starts. Only the driver knows that of one which is not new. */
static sp_status read_start(sp_vk_semaphore *made, const sp_vk_semaphore_setup *setup)
{
    uint64_t start = setup->initial_value;
    if (setup->type != VK_SEMAPHORE_TYPE_TIMELINE)
        return SP_OK;
    if (setup->wrapped) {
        sp_status status = sp_vk_timeline_read(made, &start);
        if (status != SP_OK)
            return status;
    }
    sp_vk_timeline_start(made, start);
    return SP_OK;
}

sp_status sp_vk_semaphore_make(sp_vk_device *device, const sp_vk_semaphore_setup *setup,
                               sp_vk_semaphore **out)
{
    sp_vk_drain(device);
    sp_vk_semaphore *made = allocate(device, setup);
    if (!made)
        return SP_ERROR_OUT_OF_MEMORY;
    sp_status status = SP_OK;
    if (!setup->wrapped)
        status = create_handle(device, setup, &made->handle);
    if (status == SP_OK)
        status = read_start(made, setup);
    if (status != SP_OK) {
        sp_vk_semaphore_free(made);
        return status;
    }
    sp_vk_list_add(device, made);
    *out = made;
    return SP_OK;
}

void sp_vk_semaphore_free(sp_vk_semaphore *semaphore)
{
    sp_vk_device *device = semaphore->device;
    if (!sp_vk_is_forked(device))
        sp_os_mutex_fini(&semaphore->lock);
    free(semaphore);
    sp_vk_device_unref(device);
}

/* ---- What can be exported ---- */

static const char *check_export(const sp_vk_device *device, const sp_vk_semaphore_desc *desc)
{
    VkExternalSemaphoreHandleTypeFlags left = desc->export_types;
    while (left) {
        VkExternalSemaphoreHandleTypeFlags one = left & (~left + 1);
        const sp_vk_semaphore_caps *caps = sp_vk_caps_of(device, desc->type, one);
        left &= ~one;
        if (!caps)
            return "only OPAQUE_FD and SYNC_FD are known";
        if (!caps->can_export)
            return caps->why_not;
        if ((desc->export_types & ~one) & ~caps->compatible)
            return "the driver does not export one semaphore by both handle types";
    }
    return NULL;
}

/* ---- Public ---- */

sp_status sp_vk_semaphore_create(sp_vk_device *device, const sp_vk_semaphore_desc *desc,
                                 sp_vk_semaphore **out)
{
    SP_CHECK_ARGUMENT(device && desc && out, "device, desc and out are required");
    SP_CHECK_SIZE(desc);
    SP_CHECK_ARGUMENT(sp_vk_is_semaphore_type(desc->type), "unknown semaphore type");
    SP_CHECK_ARGUMENT(desc->type == VK_SEMAPHORE_TYPE_TIMELINE || desc->initial_value == 0,
                      "a binary semaphore has no initial value");
    SP_CHECK_ARGUMENT(desc->initial_value != UINT64_MAX, "UINT64_MAX is not a timeline value");
    sp_status status = sp_vk_check(device);
    if (status != SP_OK)
        return status;
    const char *why = check_export(device, desc);
    if (why)
        return sp_fail(SP_ERROR_NOT_SUPPORTED, "sp_vk_semaphore_create: not exportable: %s", why);
    sp_vk_semaphore_setup setup = {
        .type = desc->type,
        .owned = true,
        .initial_value = desc->initial_value,
        .export_types = desc->export_types,
    };
    return sp_vk_semaphore_make(device, &setup, out);
}

sp_status sp_vk_semaphore_wrap(sp_vk_device *device, const sp_vk_semaphore_wrap_desc *desc,
                               sp_vk_semaphore **out)
{
    SP_CHECK_ARGUMENT(device && desc && out, "device, desc and out are required");
    SP_CHECK_SIZE(desc);
    SP_CHECK_ARGUMENT(desc->semaphore != VK_NULL_HANDLE, "desc->semaphore is required");
    SP_CHECK_ARGUMENT(sp_vk_is_semaphore_type(desc->type), "unknown semaphore type");
    sp_status status = sp_vk_check(device);
    if (status != SP_OK)
        return status;
    sp_vk_semaphore_setup setup = {
        .type = desc->type,
        .wrapped = desc->semaphore,
        .owned = desc->take,
        .export_types = desc->export_types,
    };
    return sp_vk_semaphore_make(device, &setup, out);
}

sp_vk_semaphore *sp_vk_semaphore_ref(sp_vk_semaphore *semaphore)
{
    if (semaphore)
        sp_waiter_ref(&semaphore->base);
    return semaphore;
}

void sp_vk_semaphore_unref(sp_vk_semaphore *semaphore)
{
    if (semaphore)
        sp_waiter_unref(&semaphore->base);
}

VkSemaphore sp_vk_semaphore_handle(const sp_vk_semaphore *semaphore)
{
    return semaphore ? semaphore->handle : VK_NULL_HANDLE;
}

VkSemaphore sp_vk_semaphore_from_point(const sp_point *point)
{
    if (!point || point->kind != SP_KIND_VULKAN)
        return VK_NULL_HANDLE;
    if (!point->waiter)
        return sp_vk_handle_of_word(point->raw.vulkan.semaphore);
    if (point->waiter->ops == &sp_vk_timeline_ops.base)
        return sp_vk_timeline_of(point->waiter)->handle;
    if (point->waiter->ops == &sp_vk_signal_ops)
        return sp_vk_signal_of(point->waiter)->semaphore->handle;
    return VK_NULL_HANDLE;
}
