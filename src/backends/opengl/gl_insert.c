/* SPDX-License-Identifier: MIT
 *
 * One wait or signal of a semaphore in a context's stream. Setting its value and using it are one
 * step under the semaphore's order lock.
 */
#include "gl_internal.h"

_Static_assert(GL_TIMELINE_SEMAPHORE_VALUE_NV == GL_D3D12_FENCE_VALUE_EXT, "one name for both");

static sp_status set_value(const sp_gl_operation *operation)
{
    const GLuint64 values[] = {operation->value};
    const GLenum what = GL_TIMELINE_SEMAPHORE_VALUE_NV;
    const sp_gl_semaphore *semaphore = operation->semaphore;
    const sp_gl_driver *gl = &semaphore->context->gl;
    if (!sp_gl_has_values(semaphore))
        return SP_OK;
    return SP_GL_CALL(operation->scope, "glSemaphoreParameterui64vEXT",
                      gl->semaphore_parameter_ui64v(semaphore->name, what, values));
}

sp_status sp_gl_insert_wait_ordered(const sp_gl_operation *operation)
{
    static const sp_gl_barriers none = {0};
    const sp_gl_barriers *with = operation->barriers ? operation->barriers : &none;
    const sp_gl_semaphore *semaphore = operation->semaphore;
    const sp_gl_driver *gl = &semaphore->context->gl;
    sp_status status = set_value(operation);
    if (status != SP_OK)
        return status;
    return SP_GL_CALL(operation->scope, "glWaitSemaphoreEXT",
                      gl->wait_semaphore(semaphore->name, with->buffer_count, with->buffers,
                                         with->texture_count, with->textures, with->layouts));
}

sp_status sp_gl_insert_signal_ordered(const sp_gl_operation *operation)
{
    static const sp_gl_barriers none = {0};
    const sp_gl_barriers *with = operation->barriers ? operation->barriers : &none;
    const sp_gl_semaphore *semaphore = operation->semaphore;
    const sp_gl_driver *gl = &semaphore->context->gl;
    sp_status status = set_value(operation);
    if (status != SP_OK)
        return status;
    return SP_GL_CALL(operation->scope, "glSignalSemaphoreEXT",
                      gl->signal_semaphore(semaphore->name, with->buffer_count, with->buffers,
                                           with->texture_count, with->textures, with->layouts));
}

/* A binary has no value that another thread could set between. */
sp_status sp_gl_insert_wait(const sp_gl_operation *operation)
{
    sp_gl_semaphore *semaphore = operation->semaphore;
    if (!sp_gl_has_values(semaphore))
        return sp_gl_insert_wait_ordered(operation);
    sp_os_mutex_lock(&semaphore->order);
    sp_status status = sp_gl_insert_wait_ordered(operation);
    sp_os_mutex_unlock(&semaphore->order);
    return status;
}

/* One driver holds the flush up until the signal comes, and after 12 s goes on as if it had. */
#define GIVEN_UP_NS UINT64_C(8000000000)

sp_status sp_gl_check_not_given_up(uint64_t start_ns)
{
    if (sp_now_ns() - start_ns < GIVEN_UP_NS)
        return SP_OK;
    return sp_fail(SP_ERROR_BACKEND,
                   "the driver held the wait up for %u s: it may have given up, so that nobody "
                   "knows whether the signal came",
                   (unsigned)(GIVEN_UP_NS / 1000000000));
}

static sp_status insert_in_scope(sp_gl_scope *scope, const sp_gl_host_wait *wait,
                                 sp_gl_place *place)
{
    const sp_gl_operation operation = {
        .scope = scope, .semaphore = wait->semaphore, .value = wait->value};
    uint64_t start_ns = sp_now_ns();
    sp_status status = sp_gl_insert_wait(&operation);
    if (status != SP_OK)
        return status;
    *place = (sp_gl_place){.inserted = true, .stream = scope->stream};
    status = sp_gl_sync_insert(wait->fence, scope);
    return status == SP_OK ? sp_gl_check_not_given_up(start_ns) : status;
}

sp_status sp_gl_insert_host_wait(const sp_gl_host_wait *wait, sp_gl_place *place)
{
    sp_gl_context *context = wait->semaphore->context;
    sp_gl_scope scope;
    *place = (sp_gl_place){0};
    if (!sp_gl_begin_call(context))
        return sp_gl_no_call(context);
    sp_status status = sp_gl_scope_enter(context, SP_GL_TO_WAIT, wait->deadline_ns, &scope);
    if (status == SP_OK) {
        status = insert_in_scope(&scope, wait, place);
        sp_gl_scope_leave(&scope);
    }
    sp_gl_end_call(context);
    return status;
}

const char *sp_gl_check_barriers(const sp_gl_barriers *barriers)
{
    if (!barriers)
        return NULL;
    if (barriers->buffer_count > 0 && !barriers->buffers)
        return "barriers->buffers is required with a count";
    if (barriers->texture_count > 0 && (!barriers->textures || !barriers->layouts))
        return "barriers->textures and layouts are required with a count";
    return NULL;
}
