/* SPDX-License-Identifier: MIT
 *
 * One wait or signal of a semaphore in a context's stream. Setting its value and using it are one
 * step under the semaphore's lock.
 */
#include "gl_internal.h"

_Static_assert(GL_TIMELINE_SEMAPHORE_VALUE_NV == GL_D3D12_FENCE_VALUE_EXT, "one name for both");

static sp_status set_value_locked(const sp_gl_semaphore *semaphore, uint64_t value)
{
    const GLuint64 values[] = {value};
    const GLenum name = GL_TIMELINE_SEMAPHORE_VALUE_NV;
    sp_gl_context *context = semaphore->context;
    if (!sp_gl_has_values(semaphore))
        return SP_OK;
    context->gl.semaphore_parameter_ui64v(semaphore->name, name, values);
    return sp_gl_check_error(context, "glSemaphoreParameterui64vEXT");
}

sp_status sp_gl_insert_wait_locked(const sp_gl_operation *operation)
{
    static const sp_gl_barriers none = {0};
    const sp_gl_barriers *with = operation->barriers ? operation->barriers : &none;
    sp_gl_context *context = operation->semaphore->context;
    sp_status status = set_value_locked(operation->semaphore, operation->value);
    if (status != SP_OK)
        return status;
    context->gl.wait_semaphore(operation->semaphore->name, with->buffer_count, with->buffers,
                               with->texture_count, with->textures, with->layouts);
    return sp_gl_check_error(context, "glWaitSemaphoreEXT");
}

sp_status sp_gl_insert_signal_locked(const sp_gl_operation *operation)
{
    static const sp_gl_barriers none = {0};
    const sp_gl_barriers *with = operation->barriers ? operation->barriers : &none;
    sp_gl_context *context = operation->semaphore->context;
    sp_status status = set_value_locked(operation->semaphore, operation->value);
    if (status != SP_OK)
        return status;
    context->gl.signal_semaphore(operation->semaphore->name, with->buffer_count, with->buffers,
                                 with->texture_count, with->textures, with->layouts);
    return sp_gl_check_error(context, "glSignalSemaphoreEXT");
}

sp_status sp_gl_insert_wait(const sp_gl_operation *operation)
{
    sp_os_mutex_lock(&operation->semaphore->lock);
    sp_status status = sp_gl_insert_wait_locked(operation);
    sp_os_mutex_unlock(&operation->semaphore->lock);
    return status;
}

/* One driver holds the flush up until the signal comes, and after 12 s goes on as if it had. */
#define GIVEN_UP_NS UINT64_C(8000000000)

static sp_status check_not_given_up(uint64_t start_ns)
{
    if (sp_now_ns() - start_ns < GIVEN_UP_NS)
        return SP_OK;
    return sp_fail(SP_ERROR_BACKEND,
                   "the driver held the wait up for %u s: it may have given up, so that nobody "
                   "knows whether the signal came",
                   (unsigned)(GIVEN_UP_NS / 1000000000));
}

sp_status sp_gl_insert_host_wait(sp_gl_semaphore *semaphore, uint64_t value, sp_gl_sync *fence,
                                 void **native)
{
    const sp_gl_operation wait = {.semaphore = semaphore, .value = value};
    sp_gl_context *context = semaphore->context;
    sp_gl_scope scope;
    *native = NULL;
    sp_status status = sp_gl_scope_enter(context, SP_GL_PREFER_HELPER, &scope);
    if (status != SP_OK)
        return status;
    if (scope.helper) /* with its lock held, and nobody else's errors in it */
        sp_gl_drain_errors(&context->gl);
    else
        sp_gl_forget_errors(&context->gl, &context->log);
    uint64_t start_ns = sp_now_ns();
    status = sp_gl_insert_wait(&wait);
    if (status == SP_OK) {
        *native = scope.native;
        status = sp_gl_sync_insert(fence);
    }
    if (status == SP_OK)
        status = check_not_given_up(start_ns);
    sp_gl_scope_leave(&scope);
    return status;
}

const char *sp_gl_check_barriers(const sp_gl_barriers *barriers)
{
    if (!barriers)
        return NULL;
    if (barriers->size != sizeof(*barriers))
        return "barriers->size is not its size";
    if (barriers->buffer_count > 0 && !barriers->buffers)
        return "barriers->buffers is required with a count";
    if (barriers->texture_count > 0 && (!barriers->textures || !barriers->layouts))
        return "barriers->textures and layouts are required with a count";
    return NULL;
}
