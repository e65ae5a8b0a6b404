/* SPDX-License-Identifier: MIT
 *
 * Between gl_hook.c, gl_hook_calls.c and gl_hook_strings.c.
 */
#ifndef TESTS_DOUBLES_GL_HOOK_PRIVATE_H
#define TESTS_DOUBLES_GL_HOOK_PRIVATE_H

#include "gl_hook.h"

void gl_hook_count(gl_hook_id id);
/* Counts a call that can fail. 0, or the error that is to be injected. */
gl_hook_error gl_hook_step(gl_hook_id id);
/* The same, for EGL and GL: true if it fails, with the error set. */
bool gl_hook_egl_step(gl_hook_id id);
bool gl_hook_gl_step(gl_hook_id id);
bool gl_hook_is_lost(void);
gl_hook_function gl_hook_replacement(gl_hook_id id);
GLenum gl_hook_take_gl_error(void);
EGLint gl_hook_take_egl_error(void);

/* Calls the replacement, or the driver. */
#define GL_HOOK_FORWARD(type, name, ...)                                                           \
    (gl_hook_replacement(GL_HOOK_##name)                                                           \
         ? ((type)gl_hook_replacement(GL_HOOK_##name))(__VA_ARGS__)                                \
         : gl_hook_real.name(__VA_ARGS__))

void gl_hook_strings_reset(void);
void gl_hook_calls_reset(void);
/* The double's function, for look-ups. */
gl_hook_function gl_hook_call(gl_hook_id id);

const GLubyte *APIENTRY gl_hook_on_get_string(GLenum name);
const GLubyte *APIENTRY gl_hook_on_get_string_i(GLenum name, GLuint index);
void APIENTRY gl_hook_on_get_integerv(GLenum name, GLint *value);
const char *EGLAPIENTRY gl_hook_on_query_string(EGLDisplay display, EGLint name);

#endif
