/* SPDX-License-Identifier: MIT
 *
 * The symbols of opengl.h in a library that was built without OpenGL, so that a program links all
 * the same.
 */
#include "core/core.h"

#include <syncpoint/opengl.h>

/* The parameters are for the callers' sake. */
#if defined(__GNUC__)
#pragma GCC diagnostic ignored "-Wunused-parameter"
#endif

static sp_status fail_not_built(const char *function)
{
    return sp_fail(SP_ERROR_NOT_SUPPORTED,
                   "%s: this library was built without the OpenGL backend (-Dopengl=disabled)",
                   function);
}

/* NOLINTBEGIN(misc-unused-parameters) */
#define STUB(name, parameters)                                                                     \
    sp_status name parameters                                                                      \
    {                                                                                              \
        return fail_not_built(#name);                                                              \
    }

STUB(sp_gl_context_create, (const sp_gl_context_desc *desc, sp_gl_context **out))
STUB(sp_gl_context_collect, (sp_gl_context * context))
STUB(sp_gl_context_caps, (const sp_gl_context *context, sp_gl_caps *caps))
STUB(sp_gl_context_signal, (sp_gl_context * context, uint32_t flags, sp_point *out))
STUB(sp_gl_sync_wrap, (sp_gl_context * context, const sp_gl_sync_wrap_desc *desc, sp_point *out))
STUB(sp_gl_sync_import_fd, (sp_gl_context * context, int fd, bool adopt, sp_point *out))
STUB(sp_gl_point_export_sync_fd, (const sp_point *point, int *fd))
STUB(sp_gl_semaphore_import,
     (sp_gl_context * context, const sp_gl_semaphore_import_desc *desc, sp_gl_semaphore **out))
STUB(sp_gl_timeline_point, (sp_gl_semaphore * semaphore, uint64_t value, sp_point *out))
STUB(sp_gl_binary_point, (sp_gl_semaphore * semaphore, uint32_t flags, sp_point *out))
STUB(sp_gl_context_signal_semaphore,
     (sp_gl_context * context, sp_gl_semaphore *semaphore, uint64_t value,
      const sp_gl_barriers *barriers, sp_point *out))
STUB(sp_gl_context_wait,
     (sp_gl_context * context, const sp_point *point, const sp_gl_barriers *barriers))

/* Ending nothing is fine. */
sp_status sp_gl_context_destroy(sp_gl_context *context)
{
    return context ? fail_not_built("sp_gl_context_destroy") : SP_OK;
}

void sp_gl_context_lost(sp_gl_context *context) {}

sp_gl_semaphore *sp_gl_semaphore_ref(sp_gl_semaphore *semaphore)
{
    return semaphore;
}

void sp_gl_semaphore_unref(sp_gl_semaphore *semaphore) {}

uint32_t sp_gl_semaphore_name(const sp_gl_semaphore *semaphore)
{
    return 0;
}

void *sp_gl_sync_from_point(const sp_point *point)
{
    return NULL;
}

uint32_t sp_gl_semaphore_name_from_point(const sp_point *point)
{
    return 0;
}
/* NOLINTEND(misc-unused-parameters) */
