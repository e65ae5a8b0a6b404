/* SPDX-License-Identifier: MIT
 *
 * A library built without OpenGL: its symbols are there, each says what it cannot do, and nothing
 * is written.
 */
#include "support/test.h"

#include <string.h>
#include <syncpoint/opengl.h>

/* It says why, and names itself. */
static void check_says_why(sp_status status, const char *call)
{
    char name[64] = {0};
    strncpy(name, call, strcspn(call, "(") < sizeof(name) ? strcspn(call, "(") : 0);
    CHECK_STATUS(status, SP_ERROR_NOT_SUPPORTED);
    CHECK_STATUS(sp_last_error()->status, SP_ERROR_NOT_SUPPORTED);
    CHECK(strstr(sp_last_error()->message, name) != NULL);
    CHECK(strstr(sp_last_error()->message, "OpenGL") != NULL);
}
#define NOT_BUILT(call) check_says_why(call, #call)

TEST(opengl_functions_say_not_supported)
{
    uint64_t object[32];
    sp_point marked = test_marked_point(), out = marked;
    sp_gl_context *context = (sp_gl_context *)(void *)object, *made = context;
    sp_gl_semaphore *semaphore = (sp_gl_semaphore *)(void *)object, *imported = semaphore;
    sp_gl_caps caps;
    int fd = 77;
    memset(object, 0x5a, sizeof(object));
    memset(&caps, 0x5a, sizeof(caps));
    NOT_BUILT(sp_gl_context_create((const sp_gl_context_desc *)(void *)object, &made));
    NOT_BUILT(sp_gl_context_destroy(context));
    NOT_BUILT(sp_gl_context_collect(context));
    NOT_BUILT(sp_gl_context_caps(context, &caps));
    NOT_BUILT(sp_gl_context_signal(context, 0, &out));
    NOT_BUILT(sp_gl_sync_wrap(context, (const sp_gl_sync_wrap_desc *)(void *)object, &out));
    NOT_BUILT(sp_gl_sync_import_fd(context, -1, false, &out));
    NOT_BUILT(sp_gl_point_export_sync_fd(&out, &fd));
    NOT_BUILT(sp_gl_semaphore_import(context, (const sp_gl_semaphore_import_desc *)(void *)object,
                                     &imported));
    NOT_BUILT(sp_gl_timeline_point(semaphore, 1, &out));
    NOT_BUILT(sp_gl_binary_point(semaphore, 0, &out));
    NOT_BUILT(sp_gl_context_signal_semaphore(context, semaphore, 1, NULL, &out));
    NOT_BUILT(sp_gl_context_wait(context, &out, NULL));
    CHECK(made == context);
    CHECK(imported == semaphore);
    CHECK_EQUAL(fd, 77);
    CHECK_EQUAL(caps.size, UINT64_C(0x5a5a5a5a5a5a5a5a));
    CHECK(test_same_point(&out, &marked));
    for (unsigned i = 0; i < COUNT_OF(object); i++)
        CHECK_EQUAL(object[i], UINT64_C(0x5a5a5a5a5a5a5a5a));
}

TEST(opengl_nothing_is_harmless)
{
    CHECK_STATUS(sp_gl_context_destroy(NULL), SP_OK);
    sp_gl_context_lost(NULL);
    CHECK(sp_gl_semaphore_ref(NULL) == NULL);
    sp_gl_semaphore_unref(NULL);
    CHECK_EQUAL(sp_gl_semaphore_name(NULL), 0);
    CHECK(sp_gl_sync_from_point(NULL) == NULL);
    CHECK_EQUAL(sp_gl_semaphore_name_from_point(NULL), 0);
}
