/* SPDX-License-Identifier: MIT
 *
 * OpenGL: handles of semaphores of every sort, played by the double of doubles/gl_play.h.
 */
#include "gl_case.h"

#include <string.h>
#include <unistd.h>

static gl_play_semaphore payload;

/* ---- H1, with every sort of handle ---- */

static sp_gl_semaphore_import_desc attempt_desc;

static sp_status attempt(void)
{
    sp_gl_semaphore *made = NULL;
    gl_play_next_import(&payload);
    sp_status status = sp_gl_semaphore_import(context, &attempt_desc, &made);
    CHECK((made != NULL) == (status == SP_OK));
    sp_gl_semaphore_unref(made);
    return status;
}

TEST_NEEDING(H1_each_step_of_an_import_fails, WITH_DOUBLES)
{
    start_plays();
    int fd = gl_play_fd();
    static const sp_gl_semaphore_type types[] = {SP_GL_SEMAPHORE_BINARY, SP_GL_SEMAPHORE_TIMELINE,
                                                 SP_GL_SEMAPHORE_D3D12_FENCE};
    for (unsigned t = 0; t < COUNT_OF(types); t++) {
        attempt_desc = import_desc(types[t], fd);
        unsigned steps = gl_hook_steps();
        CHECK_STATUS(attempt(), SP_OK);
        steps = gl_hook_steps() - steps;
        CHECK(steps >= 2);
        unsigned open = census_open_handles(), live = gl_hook_live_semaphores();
        for (unsigned step = 0; step < steps; step++) {
            for (unsigned i = 0; i < 1000; i++) {
                gl_hook_fail_step(i % 2 ? GL_HOOK_NO_MEMORY : GL_HOOK_INVALID, step);
                CHECK(attempt() < 0);
                gl_hook_heal();
            }
            CHECK_HANDLES(open);
            CHECK_EQUAL(gl_hook_live_semaphores(), live);
            CHECK(census_is_open(fd));
        }
        CHECK_STATUS(attempt(), SP_OK);
    }
    close(fd);
    finish();
}

/* A double: a driver that closes the number although the import failed. */
static void APIENTRY close_and_fail(GLuint name, GLenum type, GLint fd)
{
    (void)name;
    (void)type;
    close(fd);
    gl_hook_set_gl_error(GL_INVALID_VALUE);
}

TEST_NEEDING(H1_a_failing_import_that_closes, WITH_DOUBLES)
{
    start_plays();
    int fd = gl_play_fd();
    attempt_desc = import_desc(SP_GL_SEMAPHORE_BINARY, fd);
    unsigned open = census_open_handles();
    GL_HOOK_REPLACE(PFNGLIMPORTSEMAPHOREFDEXTPROC, glImportSemaphoreFdEXT, close_and_fail);
    for (unsigned i = 0; i < 1000; i++)
        CHECK_ERROR(attempt(), SP_ERROR_INVALID_HANDLE);
    CHECK_HANDLES(open);
    CHECK(census_is_open(fd));
    close(fd);
    finish();
}

TEST_NEEDING(adopted_fds_are_closed_on_success_only, WITH_DOUBLES)
{
    start_plays();
    int fd = gl_play_fd();
    attempt_desc = import_desc(SP_GL_SEMAPHORE_BINARY, fd);
    attempt_desc.adopt = true;
    gl_hook_fail(GL_HOOK_glImportSemaphoreFdEXT, GL_HOOK_INVALID, 0, 1);
    CHECK_ERROR(attempt(), SP_ERROR_INVALID_HANDLE);
    CHECK(census_is_open(fd));
    CHECK_STATUS(attempt(), SP_OK);
    CHECK(!census_is_open(fd));
    finish();
}

/* ---- Win32 handles ---- */

TEST_NEEDING(win32_handles, WITH_DOUBLES)
{
    static const struct {
        sp_gl_handle_type type;
        GLenum expected;
    } table[] = {
        {SP_GL_HANDLE_OPAQUE_WIN32, GL_HANDLE_TYPE_OPAQUE_WIN32_EXT},
        {SP_GL_HANDLE_OPAQUE_WIN32_KMT, GL_HANDLE_TYPE_OPAQUE_WIN32_KMT_EXT},
    };
    start_plays();
    for (unsigned i = 0; i < COUNT_OF(table); i++) {
        sp_gl_semaphore *made = NULL;
        sp_gl_semaphore_import_desc desc = {
            .size = sizeof(desc),
            .type = SP_GL_SEMAPHORE_BINARY,
            .handle_type = table[i].type,
            .handle = NULL,
        };
        CHECK_ERROR(sp_gl_semaphore_import(context, &desc, &made), SP_ERROR_INVALID_HANDLE);
        memset(&desc.handle, 0xff, sizeof(desc.handle)); /* INVALID_HANDLE_VALUE */
        CHECK_ERROR(sp_gl_semaphore_import(context, &desc, &made), SP_ERROR_INVALID_HANDLE);
        CHECK(made == NULL);
        desc.handle = &payload;
        gl_play_next_import(&payload);
        CHECK_STATUS(sp_gl_semaphore_import(context, &desc, &made), SP_OK);
        CHECK_EQUAL(gl_play_last_type, table[i].expected);
        CHECK(gl_play_last_handle == &payload);
        sp_point point = binary_point(made, 0);
        gl_play_signal(&payload, 0);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
        sp_gl_semaphore_unref(made);
    }
    finish();
}
