/* SPDX-License-Identifier: MIT
 *
 * The symbols of vulkan.h in a library that was built without Vulkan, so that a program links all
 * the same. There may be no Vulkan headers here: types are spelled by what they are in the ABI.
 */
#include "core/core.h"

/* The parameters are for the callers' sake. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

/* Structs are only passed by pointer; enums, flags and bools as they are; a VkSemaphore, which is a
 * pointer or a uint64_t, as 64 bits. */
typedef void object;
typedef uint64_t semaphore_handle;

static sp_status fail_not_built(const char *function)
{
    return sp_fail(SP_ERROR_NOT_SUPPORTED,
                   "%s: this library was built without the Vulkan backend (-Dvulkan=disabled)",
                   function);
}

/* NOLINTBEGIN(misc-unused-parameters) */
#define STUB(name, parameters)                                                                     \
    SP_API sp_status name parameters;                                                              \
    sp_status name parameters                                                                      \
    {                                                                                              \
        return fail_not_built(#name);                                                              \
    }

/* Ending nothing is fine. */
#define STUB_DESTROY(name)                                                                         \
    SP_API sp_status name(object *self, uint64_t timeout_ns);                                      \
    sp_status name(object *self, uint64_t timeout_ns)                                              \
    {                                                                                              \
        return self ? fail_not_built(#name) : SP_OK;                                               \
    }

STUB(sp_vk_device_create, (const object *desc, object **out))
STUB_DESTROY(sp_vk_device_destroy)
STUB(sp_vk_device_semaphore_caps, (object * device, int type, int handle_type, object *caps))
STUB(sp_vk_queue_create, (object * device, const object *desc, object **out))
STUB_DESTROY(sp_vk_queue_destroy)
STUB(sp_vk_queue_signal, (object * queue, sp_point *out))
STUB(sp_vk_queue_signal_semaphore,
     (object * queue, object *semaphore, uint64_t value, sp_point *out))
STUB(sp_vk_queue_wait, (object * queue, const sp_point *point))
STUB(sp_vk_semaphore_create, (object * device, const object *desc, object **out))
STUB(sp_vk_semaphore_wrap, (object * device, const object *desc, object **out))
STUB(sp_vk_semaphore_import, (object * device, const object *desc, object **out))
STUB(sp_vk_semaphore_export, (object * semaphore, int handle_type, int *fd))
STUB(sp_vk_point_export_sync_fd, (const sp_point *point, int *fd))
STUB(sp_vk_timeline_point, (object * semaphore, uint64_t value, sp_point *out))
STUB(sp_vk_binary_point, (object * semaphore, uint32_t flags, sp_point *out))
STUB(sp_vk_semaphore_signal, (object * semaphore, uint64_t value))
STUB(sp_vk_semaphore_value, (object * semaphore, uint64_t *value))

SP_API object *sp_vk_semaphore_ref(object *semaphore);
object *sp_vk_semaphore_ref(object *semaphore)
{
    return semaphore;
}

SP_API void sp_vk_semaphore_unref(object *semaphore);
void sp_vk_semaphore_unref(object *semaphore) {}

SP_API semaphore_handle sp_vk_semaphore_handle(const object *semaphore);
semaphore_handle sp_vk_semaphore_handle(const object *semaphore)
{
    return 0;
}

SP_API semaphore_handle sp_vk_semaphore_from_point(const sp_point *point);
semaphore_handle sp_vk_semaphore_from_point(const sp_point *point)
{
    return 0;
}
/* NOLINTEND(misc-unused-parameters) */
