/* SPDX-License-Identifier: MIT
 *
 * A double of a GL driver, around a real one: an eglGetProcAddress for the library that counts
 * calls, lets each of them fail on command, hides and adds extensions, withholds fences, and lets a
 * test replace functions.
 *
 * What a test shows with it is how the library answers, not that any driver behaves that way. The
 * library's calls come through here; the tests' own do not.
 */
#ifndef TESTS_DOUBLES_GL_HOOK_H
#define TESTS_DOUBLES_GL_HOOK_H

#include "support/gl_fixture.h"

typedef EGLContext(EGLAPIENTRYP gl_hook_get_current)(void);
typedef void(APIENTRYP gl_hook_get_integerv)(GLenum name, GLint *value);

/* X(type, name, another name that means the same or NULL) */
#define GL_HOOK_FUNCTIONS(X)                                                                       \
    X(gl_get_error, glGetError, NULL)                                                              \
    X(gl_get_string, glGetString, NULL)                                                            \
    X(PFNGLGETSTRINGIPROC, glGetStringi, NULL)                                                     \
    X(gl_hook_get_integerv, glGetIntegerv, NULL)                                                   \
    X(gl_flush, glFlush, NULL)                                                                     \
    X(PFNGLFENCESYNCPROC, glFenceSync, "glFenceSyncAPPLE")                                         \
    X(PFNGLISSYNCPROC, glIsSync, "glIsSyncAPPLE")                                                  \
    X(PFNGLDELETESYNCPROC, glDeleteSync, "glDeleteSyncAPPLE")                                      \
    X(PFNGLCLIENTWAITSYNCPROC, glClientWaitSync, "glClientWaitSyncAPPLE")                          \
    X(PFNGLWAITSYNCPROC, glWaitSync, "glWaitSyncAPPLE")                                            \
    X(PFNGLGENSEMAPHORESEXTPROC, glGenSemaphoresEXT, NULL)                                         \
    X(PFNGLDELETESEMAPHORESEXTPROC, glDeleteSemaphoresEXT, NULL)                                   \
    X(PFNGLSEMAPHOREPARAMETERUI64VEXTPROC, glSemaphoreParameterui64vEXT, NULL)                     \
    X(PFNGLWAITSEMAPHOREEXTPROC, glWaitSemaphoreEXT, NULL)                                         \
    X(PFNGLSIGNALSEMAPHOREEXTPROC, glSignalSemaphoreEXT, NULL)                                     \
    X(PFNGLIMPORTSEMAPHOREFDEXTPROC, glImportSemaphoreFdEXT, NULL)                                 \
    X(PFNGLIMPORTSEMAPHOREWIN32HANDLEEXTPROC, glImportSemaphoreWin32HandleEXT, NULL)               \
    X(PFNGLCREATESEMAPHORESNVPROC, glCreateSemaphoresNV, NULL)                                     \
    X(PFNGLSEMAPHOREPARAMETERIVNVPROC, glSemaphoreParameterivNV, NULL)                             \
    X(gl_hook_get_current, eglGetCurrentContext, "glXGetCurrentContext")                           \
    X(PFNEGLQUERYSTRINGPROC, eglQueryString, NULL)                                                 \
    X(PFNEGLGETERRORPROC, eglGetError, NULL)                                                       \
    X(PFNEGLCREATESYNCPROC, eglCreateSync, NULL)                                                   \
    X(PFNEGLCREATESYNCKHRPROC, eglCreateSyncKHR, NULL)                                             \
    X(PFNEGLDESTROYSYNCPROC, eglDestroySync, "eglDestroySyncKHR")                                  \
    X(PFNEGLCLIENTWAITSYNCPROC, eglClientWaitSync, "eglClientWaitSyncKHR")                         \
    X(PFNEGLWAITSYNCPROC, eglWaitSync, "eglWaitSyncKHR")                                           \
    X(PFNEGLDUPNATIVEFENCEFDANDROIDPROC, eglDupNativeFenceFDANDROID, NULL)

typedef enum gl_hook_id {
#define GL_HOOK_ENUM(type, name, alias) GL_HOOK_##name,
    GL_HOOK_FUNCTIONS(GL_HOOK_ENUM)
#undef GL_HOOK_ENUM
        GL_HOOK_COUNT
} gl_hook_id;

/* The driver's own functions. */
typedef struct gl_hook_functions {
#define GL_HOOK_MEMBER(type, name, alias) type name;
    GL_HOOK_FUNCTIONS(GL_HOOK_MEMBER)
#undef GL_HOOK_MEMBER
} gl_hook_functions;

extern gl_hook_functions gl_hook_real;

/* Wraps the loader's function; what comes back is for the library. Resets everything below. */
PFNEGLGETPROCADDRESSPROC gl_hook_install(PFNEGLGETPROCADDRESSPROC real);

/* How often the library has called a function; any function; any function that can fail. */
unsigned gl_hook_calls(gl_hook_id id);
unsigned gl_hook_all_calls(void);
unsigned gl_hook_steps(void);

typedef enum gl_hook_error {
    GL_HOOK_NO_MEMORY = 1, /* GL_OUT_OF_MEMORY, EGL_BAD_ALLOC           */
    GL_HOOK_INVALID = 2,   /* GL_INVALID_OPERATION, EGL_BAD_PARAMETER   */
    GL_HOOK_LOST = 3       /* GL_CONTEXT_LOST, EGL_CONTEXT_LOST         */
} gl_hook_error;

/* Calls number `skip`, `skip` + 1, ... from now on fail, `times` of them. */
void gl_hook_fail(gl_hook_id id, gl_hook_error error, unsigned skip, unsigned times);
/* The call that can fail, `skip` calls of that sort from now, fails. Once. */
void gl_hook_fail_step(gl_hook_error error, unsigned skip);
/* Every wait for a sync says that the context is lost. */
void gl_hook_lose_context(bool lost);
/* No failure is to come any more. */
void gl_hook_heal(void);
/* For replacements, and for errors of the user's: what glGetError() says after those that are
 * pending already, and what eglGetError() says next. */
void gl_hook_set_gl_error(GLenum error);
void gl_hook_set_egl_error(EGLint error);

/* Look-ups of this name give NULL. NULL: hide nothing. */
void gl_hook_hide(const char *name);
/* The strings do not have it. Several names: with blanks between and around them. */
void gl_hook_hide_extensions(const char *names);
/* The strings have these, too: constants. */
void gl_hook_add_gl_extensions(const char *const *names, unsigned count);
void gl_hook_add_egl_extensions(const char *names);
/* NULL: the driver's own. */
void gl_hook_set_versions(const char *gl, const char *egl);

/* Calls of this function go to `replacement`, which may call gl_hook_real. NULL: to the driver. */
typedef void (*gl_hook_function)(void);
void gl_hook_replace(gl_hook_id id, gl_hook_function replacement);
#define GL_HOOK_REPLACE(type, name, function)                                                      \
    do {                                                                                           \
        type typed = (function);                                                                   \
        gl_hook_replace(GL_HOOK_##name, (gl_hook_function)typed);                                  \
    } while (0)

/* No driver wait for a sync lasts, whatever time it is given. */
void gl_hook_waits_end_at_once(bool at_once);

/* From now on each sync that is made is withheld: not reached before it is let go, by what the
 * library knows as its native object. Such syncs are the double's, around the driver's. */
void gl_hook_withhold(bool withhold);
void gl_hook_let_go(void *sync);
void *gl_hook_driver_sync(void *sync);

/* What the library made, or took, and did not delete. */
unsigned gl_hook_live_syncs(void);
unsigned gl_hook_live_semaphores(void);
/* Adds to the above: for replacements. */
void gl_hook_count_syncs(int change);
void gl_hook_count_semaphores(int change);

#endif
