/* SPDX-License-Identifier: MIT
 *
 * The symbols of opencl.h in a library that was built without OpenCL, so that a program links all
 * the same. The header needs none of OpenCL's own.
 */
#include "core/core.h"

#include <syncpoint/opencl.h>

/* The parameters are for the callers' sake. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

static sp_status fail_not_built(const char *function)
{
    return sp_fail(SP_ERROR_NOT_SUPPORTED,
                   "%s: this library was built without the OpenCL backend (-Dopencl=disabled)",
                   function);
}

/* NOLINTBEGIN(misc-unused-parameters) */
#define STUB(name, parameters)                                                                     \
    sp_status name parameters                                                                      \
    {                                                                                              \
        return fail_not_built(#name);                                                              \
    }

STUB(sp_cl_context_create, (const sp_cl_context_desc *desc, sp_cl_context **out))
STUB(sp_cl_context_caps, (const sp_cl_context *context, sp_cl_caps *caps))
STUB(sp_cl_queue_signal, (sp_cl_context * context, struct _cl_command_queue *queue, sp_point *out))
STUB(sp_cl_event_wrap, (sp_cl_context * context, struct _cl_event *event, sp_point *out))
STUB(sp_cl_user_event, (sp_cl_context * context, sp_point *out))
STUB(sp_cl_user_event_set, (const sp_point *point, sp_status status))
STUB(sp_cl_semaphore_import,
     (sp_cl_context * context, const sp_cl_semaphore_import_desc *desc, sp_cl_semaphore **out))
STUB(sp_cl_semaphore_wrap,
     (sp_cl_context * context, struct _cl_semaphore_khr *semaphore, sp_cl_semaphore **out))
STUB(sp_cl_binary_point, (sp_cl_semaphore * semaphore, uint32_t flags, sp_point *out))
STUB(sp_cl_queue_signal_semaphore, (sp_cl_context * context, struct _cl_command_queue *queue,
                                    sp_cl_semaphore *semaphore, sp_point *out))
STUB(sp_cl_queue_wait,
     (sp_cl_context * context, struct _cl_command_queue *queue, const sp_point *point))

/* Ending nothing is fine. */
sp_status sp_cl_context_destroy(sp_cl_context *context, uint64_t timeout_ns)
{
    return context ? fail_not_built("sp_cl_context_destroy") : SP_OK;
}

sp_cl_semaphore *sp_cl_semaphore_ref(sp_cl_semaphore *semaphore)
{
    return semaphore;
}

void sp_cl_semaphore_unref(sp_cl_semaphore *semaphore) {}

struct _cl_semaphore_khr *sp_cl_semaphore_handle(const sp_cl_semaphore *semaphore)
{
    return NULL;
}

struct _cl_event *sp_cl_event_from_point(const sp_point *point)
{
    return NULL;
}

struct _cl_semaphore_khr *sp_cl_semaphore_from_point(const sp_point *point)
{
    return NULL;
}
/* NOLINTEND(misc-unused-parameters) */
