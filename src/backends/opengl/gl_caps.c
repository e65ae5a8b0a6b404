/* SPDX-License-Identifier: MIT
 *
 * What version and extension strings say.
 */
#include "gl_internal.h"

#include <stdlib.h>
#include <string.h>

typedef struct name_row {
    const char *name;
    size_t offset;
} name_row;

static const name_row gl_names[] = {
    {"GL_ARB_sync", offsetof(sp_gl_strings, arb_sync)},
    {"GL_APPLE_sync", offsetof(sp_gl_strings, apple_sync)},
    {"GL_EXT_memory_object", offsetof(sp_gl_strings, memory_object)},
    {"GL_EXT_semaphore", offsetof(sp_gl_strings, semaphore)},
    {"GL_EXT_semaphore_fd", offsetof(sp_gl_strings, semaphore_fd)},
    {"GL_EXT_semaphore_win32", offsetof(sp_gl_strings, semaphore_win32)},
    {"GL_NV_timeline_semaphore", offsetof(sp_gl_strings, timeline_semaphore)},
};
static const name_row egl_names[] = {
    {"EGL_KHR_fence_sync", offsetof(sp_gl_strings, egl_fence_sync)},
    {"EGL_KHR_wait_sync", offsetof(sp_gl_strings, egl_wait_sync)},
    {"EGL_ANDROID_native_fence_sync", offsetof(sp_gl_strings, egl_native_fence)},
};

static void note_name(const name_row *rows, size_t count, const char *name, size_t length,
                      sp_gl_strings *strings)
{
    for (size_t i = 0; i < count; i++) {
        if (strlen(rows[i].name) == length && memcmp(rows[i].name, name, length) == 0)
            memcpy((char *)strings + rows[i].offset, &(bool){true}, sizeof(bool));
    }
}

/* Names in one string, with blanks between them. */
static void note_names(const name_row *rows, size_t count, const char *names,
                       sp_gl_strings *strings)
{
    while (names && *names) {
        size_t length = strcspn(names, " ");
        note_name(rows, count, names, length, strings);
        names += length;
        names += strspn(names, " ");
    }
}

/* "4.5 (Core Profile) Mesa", "OpenGL ES 3.1 (ANGLE ...)", "OpenGL ES-CM 1.1" */
static void read_version(const char *text, sp_gl_strings *strings)
{
    static const char es[] = "OpenGL ES";
    strings->es = strncmp(text, es, sizeof(es) - 1) == 0;
    text += strcspn(text, "0123456789");
    char *end;
    long major = strtol(text, &end, 10);
    long minor = *end == '.' ? strtol(end + 1, NULL, 10) : 0;
    if (major > 0 && major < 100 && minor >= 0 && minor < 10)
        strings->version = (int)(10 * major + minor);
}

void sp_gl_strings_read_gl(const sp_gl_driver *driver, sp_gl_strings *strings)
{
    const size_t rows = SP_ARRAY_LENGTH(gl_names);
    const char *version = (const char *)driver->get_string(GL_VERSION);
    if (version)
        read_version(version, strings);
    if (strings->version < 30 || !driver->get_string_i) {
        note_names(gl_names, rows, (const char *)driver->get_string(GL_EXTENSIONS), strings);
        return;
    }
    GLint count = 0;
    driver->get_integerv(GL_NUM_EXTENSIONS, &count);
    for (GLint i = 0; i < count; i++) {
        const char *name = (const char *)driver->get_string_i(GL_EXTENSIONS, (GLuint)i);
        if (name)
            note_name(gl_names, rows, name, strlen(name), strings);
    }
}

void sp_gl_strings_read_egl(const sp_gl_driver *driver, void *display, sp_gl_strings *strings)
{
    const char *version = driver->egl_query_string(display, EGL_VERSION);
    sp_gl_strings parsed = {0};
    if (version)
        read_version(version, &parsed);
    strings->egl_version = parsed.version;
    note_names(egl_names, SP_ARRAY_LENGTH(egl_names),
               driver->egl_query_string(display, EGL_EXTENSIONS), strings);
}

void sp_gl_caps_read_uuid(const sp_gl_driver *driver, sp_gl_caps *caps)
{
    GLint count = 0;
    if (!caps->has_uuid)
        return;
    driver->get_integerv(GL_NUM_DEVICE_UUIDS_EXT, &count);
    caps->has_uuid = sp_gl_drain_errors(driver) == GL_NO_ERROR && count > 0;
    if (!caps->has_uuid)
        return;
    driver->get_unsigned_bytei_v(GL_DEVICE_UUID_EXT, 0, caps->device_uuid);
    driver->get_unsigned_bytev(GL_DRIVER_UUID_EXT, caps->driver_uuid);
    caps->has_uuid = sp_gl_drain_errors(driver) == GL_NO_ERROR;
}

const char *sp_gl_why_no_semaphore(const sp_gl_caps *caps)
{
    if (!caps->semaphore)
        return "the context does not have GL_EXT_semaphore";
    if (!caps->semaphore_fd && !caps->semaphore_win32)
        return "the context has neither GL_EXT_semaphore_fd nor GL_EXT_semaphore_win32";
    return NULL;
}
