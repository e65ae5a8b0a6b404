/* SPDX-License-Identifier: MIT
 *
 * A double: see gl_hook.h. Versions and extensions.
 */
#include "gl_hook_private.h"

#include <stdio.h>
#include <string.h>

static char hidden_names[256];
static const char *const *added_gl;
static unsigned added_gl_count;
static char added_egl[256];
static const char *gl_version, *egl_version;
static char egl_names[8192], gl_names[65536];

void gl_hook_strings_reset(void)
{
    hidden_names[0] = '\0';
    added_gl_count = 0;
    added_egl[0] = '\0';
    gl_hook_set_versions(NULL, NULL);
}

void gl_hook_hide_extensions(const char *names)
{
    snprintf(hidden_names, sizeof(hidden_names), "%s", names);
}

void gl_hook_add_gl_extensions(const char *const *names, unsigned count)
{
    added_gl = names;
    added_gl_count = count;
}

void gl_hook_add_egl_extensions(const char *names)
{
    snprintf(added_egl, sizeof(added_egl), "%s", names);
}

void gl_hook_set_versions(const char *gl, const char *egl)
{
    gl_version = gl;
    egl_version = egl;
}

static bool is_hidden(const char *name, size_t length)
{
    char wanted[128];
    snprintf(wanted, sizeof(wanted), " %.*s ", (int)length, name);
    return strstr(hidden_names, wanted) != NULL;
}

/* Leaves hidden names out, and puts more behind. */
static const char *filtered(const char *names, const char *more, char *out, size_t size)
{
    size_t used = 0;
    while (names && *names && used < size) {
        size_t length = strcspn(names, " ");
        if (!is_hidden(names, length))
            used += (size_t)snprintf(out + used, size - used, "%.*s ", (int)length, names);
        names += length;
        names += strspn(names, " ");
    }
    assert_true(used < size);
    snprintf(out + used, size - used, "%s", more);
    return out;
}

const char *EGLAPIENTRY gl_hook_on_query_string(EGLDisplay display, EGLint name)
{
    gl_hook_count(GL_HOOK_eglQueryString);
    if (name == EGL_VERSION && egl_version)
        return egl_version;
    const char *text = gl_hook_real.eglQueryString(display, name);
    return name == EGL_EXTENSIONS ? filtered(text, added_egl, egl_names, sizeof(egl_names)) : text;
}

static GLint driver_count(void)
{
    GLint count = 0;
    gl_hook_real.glGetIntegerv(GL_NUM_EXTENSIONS, &count);
    return count;
}

const GLubyte *APIENTRY gl_hook_on_get_string_i(GLenum name, GLuint index)
{
    gl_hook_count(GL_HOOK_glGetStringi);
    GLuint count = (GLuint)driver_count();
    if (index >= count)
        return (const GLubyte *)(index - count < added_gl_count ? added_gl[index - count] : NULL);
    const GLubyte *text = gl_hook_real.glGetStringi(name, index);
    bool hides = text && is_hidden((const char *)text, strlen((const char *)text));
    return hides ? (const GLubyte *)"GL_hidden" : text;
}

/* One string, as an old context gives it. */
static const char *all_names(void)
{
    size_t used = 0;
    GLuint count = (GLuint)driver_count() + added_gl_count;
    for (GLuint i = 0; i < count && used < sizeof(gl_names); i++)
        used += (size_t)snprintf(gl_names + used, sizeof(gl_names) - used, "%s ",
                                 (const char *)gl_hook_on_get_string_i(GL_EXTENSIONS, i));
    return gl_names;
}

const GLubyte *APIENTRY gl_hook_on_get_string(GLenum name)
{
    gl_hook_count(GL_HOOK_glGetString);
    if (name == GL_VERSION && gl_version)
        return (const GLubyte *)gl_version;
    if (name == GL_EXTENSIONS)
        return (const GLubyte *)all_names();
    return gl_hook_real.glGetString(name);
}

void APIENTRY gl_hook_on_get_integerv(GLenum name, GLint *value)
{
    gl_hook_count(GL_HOOK_glGetIntegerv);
    gl_hook_real.glGetIntegerv(name, value);
    if (name == GL_NUM_EXTENSIONS)
        *value += (GLint)added_gl_count;
}
