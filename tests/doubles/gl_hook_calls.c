/* SPDX-License-Identifier: MIT
 *
 * A double: see gl_hook.h. The functions, and the fences that are withheld.
 */
#include "gl_hook_private.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* ---- Withheld fences ---- */

/* Kept to the end, so that a test may let go of one that is gone already. */
typedef struct held_sync {
    struct held_sync *next;
    void *real;
    bool open;
} held_sync;

static held_sync *all_held;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t opened;
static bool withholds, at_once;

void gl_hook_calls_reset(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&opened, &attributes);
    pthread_condattr_destroy(&attributes);
    withholds = false;
    at_once = false;
}

void gl_hook_withhold(bool withhold)
{
    withholds = withhold;
}

void gl_hook_waits_end_at_once(bool ends)
{
    at_once = ends;
}

void gl_hook_let_go(void *sync)
{
    held_sync *held = sync;
    pthread_mutex_lock(&mutex);
    held->open = true;
    pthread_cond_broadcast(&opened);
    pthread_mutex_unlock(&mutex);
}

void *gl_hook_driver_sync(void *sync)
{
    return withholds && sync ? ((held_sync *)sync)->real : sync;
}

static void *note_made(void *real)
{
    if (!real)
        return NULL;
    gl_hook_count_syncs(1);
    if (!withholds)
        return real;
    held_sync *held = calloc(1, sizeof(*held));
    assert_non_null(held);
    held->real = real;
    pthread_mutex_lock(&mutex);
    held->next = all_held;
    all_held = held;
    pthread_mutex_unlock(&mutex);
    return held;
}

static void *note_gone(void *sync)
{
    void *real = gl_hook_driver_sync(sync);
    gl_hook_count_syncs(-1);
    return real;
}

/* Waits until the sync is let go. False: the time is up. */
static bool wait_until_open(void *sync, uint64_t timeout_ns)
{
    held_sync *held = sync;
    if (!withholds)
        return true;
    uint64_t end = sp_deadline_ns(timeout_ns);
    end = end < INT64_MAX ? end : INT64_MAX;
    const struct timespec until = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    pthread_mutex_lock(&mutex);
    int result = 0;
    while (!held->open && !gl_hook_is_lost() && timeout_ns && result == 0)
        result = pthread_cond_timedwait(&opened, &mutex, &until);
    bool open = held->open || gl_hook_is_lost();
    pthread_mutex_unlock(&mutex);
    return open;
}

/* ---- EGL ---- */

static EGLContext EGLAPIENTRY on_eglGetCurrentContext(void)
{
    return GL_HOOK_FORWARD(gl_hook_get_current, eglGetCurrentContext);
}

static EGLint EGLAPIENTRY on_eglGetError(void)
{
    gl_hook_count(GL_HOOK_eglGetError);
    EGLint error = gl_hook_take_egl_error();
    return error ? error : gl_hook_real.eglGetError();
}

static EGLSync EGLAPIENTRY on_eglCreateSync(EGLDisplay display, EGLenum type,
                                            const EGLAttrib *attributes)
{
    if (gl_hook_egl_step(GL_HOOK_eglCreateSync))
        return EGL_NO_SYNC;
    return note_made(
        GL_HOOK_FORWARD(PFNEGLCREATESYNCPROC, eglCreateSync, display, type, attributes));
}

static EGLSyncKHR EGLAPIENTRY on_eglCreateSyncKHR(EGLDisplay display, EGLenum type,
                                                  const EGLint *attributes)
{
    if (gl_hook_egl_step(GL_HOOK_eglCreateSyncKHR))
        return EGL_NO_SYNC;
    return note_made(
        GL_HOOK_FORWARD(PFNEGLCREATESYNCKHRPROC, eglCreateSyncKHR, display, type, attributes));
}

static EGLBoolean EGLAPIENTRY on_eglDestroySync(EGLDisplay display, EGLSync sync)
{
    gl_hook_count(GL_HOOK_eglDestroySync);
    return GL_HOOK_FORWARD(PFNEGLDESTROYSYNCPROC, eglDestroySync, display, note_gone(sync));
}

static EGLint EGLAPIENTRY on_eglClientWaitSync(EGLDisplay display, EGLSync sync, EGLint flags,
                                               EGLTime timeout)
{
    if (gl_hook_egl_step(GL_HOOK_eglClientWaitSync))
        return EGL_FALSE;
    uint64_t end = sp_deadline_ns(timeout);
    if (!wait_until_open(sync, at_once ? 0 : timeout))
        return EGL_TIMEOUT_EXPIRED;
    if (gl_hook_is_lost()) {
        gl_hook_set_egl_error(EGL_CONTEXT_LOST);
        return EGL_FALSE;
    }
    uint64_t now = sp_now_ns(), left = end > now && !at_once ? end - now : 0;
    return GL_HOOK_FORWARD(PFNEGLCLIENTWAITSYNCPROC, eglClientWaitSync, display,
                           gl_hook_driver_sync(sync), flags, timeout ? left : 0);
}

static EGLBoolean EGLAPIENTRY on_eglWaitSync(EGLDisplay display, EGLSync sync, EGLint flags)
{
    if (gl_hook_egl_step(GL_HOOK_eglWaitSync))
        return EGL_FALSE;
    return GL_HOOK_FORWARD(PFNEGLWAITSYNCPROC, eglWaitSync, display, gl_hook_driver_sync(sync),
                           flags);
}

static EGLint EGLAPIENTRY on_eglDupNativeFenceFDANDROID(EGLDisplay display, EGLSync sync)
{
    if (gl_hook_egl_step(GL_HOOK_eglDupNativeFenceFDANDROID))
        return EGL_NO_NATIVE_FENCE_FD_ANDROID;
    return GL_HOOK_FORWARD(PFNEGLDUPNATIVEFENCEFDANDROIDPROC, eglDupNativeFenceFDANDROID, display,
                           sync);
}

/* ---- GL ---- */

static GLenum APIENTRY on_glGetError(void)
{
    gl_hook_count(GL_HOOK_glGetError);
    GLenum error = gl_hook_take_gl_error();
    return error ? error : gl_hook_real.glGetError();
}

static void APIENTRY on_glFlush(void)
{
    gl_hook_count(GL_HOOK_glFlush);
    GL_HOOK_FORWARD(gl_flush, glFlush);
}

static GLsync APIENTRY on_glFenceSync(GLenum condition, GLbitfield flags)
{
    if (gl_hook_gl_step(GL_HOOK_glFenceSync))
        return NULL;
    return note_made(GL_HOOK_FORWARD(PFNGLFENCESYNCPROC, glFenceSync, condition, flags));
}

static GLboolean APIENTRY on_glIsSync(GLsync sync)
{
    gl_hook_count(GL_HOOK_glIsSync);
    return GL_HOOK_FORWARD(PFNGLISSYNCPROC, glIsSync, sync);
}

static void APIENTRY on_glDeleteSync(GLsync sync)
{
    gl_hook_count(GL_HOOK_glDeleteSync);
    GL_HOOK_FORWARD(PFNGLDELETESYNCPROC, glDeleteSync, note_gone(sync));
}

static GLenum APIENTRY on_glClientWaitSync(GLsync sync, GLbitfield flags, GLuint64 timeout)
{
    if (gl_hook_gl_step(GL_HOOK_glClientWaitSync))
        return GL_WAIT_FAILED;
    uint64_t end = sp_deadline_ns(timeout);
    if (!wait_until_open(sync, at_once ? 0 : timeout))
        return GL_TIMEOUT_EXPIRED;
    if (gl_hook_is_lost()) {
        gl_hook_set_gl_error(0x0507);
        return 0; /* as GL_KHR_robustness lets it be */
    }
    uint64_t now = sp_now_ns(), left = end > now && !at_once ? end - now : 0;
    return GL_HOOK_FORWARD(PFNGLCLIENTWAITSYNCPROC, glClientWaitSync, gl_hook_driver_sync(sync),
                           flags, timeout ? left : 0);
}

static void APIENTRY on_glWaitSync(GLsync sync, GLbitfield flags, GLuint64 timeout)
{
    if (!gl_hook_gl_step(GL_HOOK_glWaitSync))
        GL_HOOK_FORWARD(PFNGLWAITSYNCPROC, glWaitSync, gl_hook_driver_sync(sync), flags, timeout);
}

/* ---- Semaphores ---- */

static void APIENTRY on_glGenSemaphoresEXT(GLsizei count, GLuint *names)
{
    if (gl_hook_gl_step(GL_HOOK_glGenSemaphoresEXT))
        return;
    GL_HOOK_FORWARD(PFNGLGENSEMAPHORESEXTPROC, glGenSemaphoresEXT, count, names);
    gl_hook_count_semaphores(count);
}

static void APIENTRY on_glCreateSemaphoresNV(GLsizei count, GLuint *names)
{
    if (gl_hook_gl_step(GL_HOOK_glCreateSemaphoresNV))
        return;
    GL_HOOK_FORWARD(PFNGLCREATESEMAPHORESNVPROC, glCreateSemaphoresNV, count, names);
    gl_hook_count_semaphores(count);
}

static void APIENTRY on_glDeleteSemaphoresEXT(GLsizei count, const GLuint *names)
{
    gl_hook_count(GL_HOOK_glDeleteSemaphoresEXT);
    GL_HOOK_FORWARD(PFNGLDELETESEMAPHORESEXTPROC, glDeleteSemaphoresEXT, count, names);
    gl_hook_count_semaphores(-count);
}

static void APIENTRY on_glSemaphoreParameterui64vEXT(GLuint name, GLenum what,
                                                     const GLuint64 *values)
{
    if (!gl_hook_gl_step(GL_HOOK_glSemaphoreParameterui64vEXT))
        GL_HOOK_FORWARD(PFNGLSEMAPHOREPARAMETERUI64VEXTPROC, glSemaphoreParameterui64vEXT, name,
                        what, values);
}

static void APIENTRY on_glSemaphoreParameterivNV(GLuint name, GLenum what, const GLint *values)
{
    if (!gl_hook_gl_step(GL_HOOK_glSemaphoreParameterivNV))
        GL_HOOK_FORWARD(PFNGLSEMAPHOREPARAMETERIVNVPROC, glSemaphoreParameterivNV, name, what,
                        values);
}

static void APIENTRY on_glWaitSemaphoreEXT(GLuint name, GLuint buffer_count, const GLuint *buffers,
                                           GLuint texture_count, const GLuint *textures,
                                           const GLenum *layouts)
{
    if (!gl_hook_gl_step(GL_HOOK_glWaitSemaphoreEXT))
        GL_HOOK_FORWARD(PFNGLWAITSEMAPHOREEXTPROC, glWaitSemaphoreEXT, name, buffer_count, buffers,
                        texture_count, textures, layouts);
}

static void APIENTRY on_glSignalSemaphoreEXT(GLuint name, GLuint buffer_count,
                                             const GLuint *buffers, GLuint texture_count,
                                             const GLuint *textures, const GLenum *layouts)
{
    if (!gl_hook_gl_step(GL_HOOK_glSignalSemaphoreEXT))
        GL_HOOK_FORWARD(PFNGLSIGNALSEMAPHOREEXTPROC, glSignalSemaphoreEXT, name, buffer_count,
                        buffers, texture_count, textures, layouts);
}

static void APIENTRY on_glImportSemaphoreFdEXT(GLuint name, GLenum type, GLint fd)
{
    if (!gl_hook_gl_step(GL_HOOK_glImportSemaphoreFdEXT))
        GL_HOOK_FORWARD(PFNGLIMPORTSEMAPHOREFDEXTPROC, glImportSemaphoreFdEXT, name, type, fd);
}

static void APIENTRY on_glImportSemaphoreWin32HandleEXT(GLuint name, GLenum type, void *handle)
{
    if (!gl_hook_gl_step(GL_HOOK_glImportSemaphoreWin32HandleEXT))
        GL_HOOK_FORWARD(PFNGLIMPORTSEMAPHOREWIN32HANDLEEXTPROC, glImportSemaphoreWin32HandleEXT,
                        name, type, handle);
}

#define on_glGetString gl_hook_on_get_string
#define on_glGetStringi gl_hook_on_get_string_i
#define on_glGetIntegerv gl_hook_on_get_integerv
#define on_eglQueryString gl_hook_on_query_string

gl_hook_function gl_hook_call(gl_hook_id id)
{
    static const gl_hook_function functions[] = {
#define GL_HOOK_ENTRY(type, name, alias) (gl_hook_function) on_##name,
        GL_HOOK_FUNCTIONS(GL_HOOK_ENTRY)
#undef GL_HOOK_ENTRY
    };
    return functions[id];
}
