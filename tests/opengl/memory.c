/* SPDX-License-Identifier: MIT
 *
 * OpenGL: what asks for memory, what does not, and what happens when there is none. Only the
 * library's own requests are counted and refused, not the driver's.
 */
#include "gl_case.h"
#include "support/malloc_double.h"

#include <unistd.h>

TEST(fences_need_no_memory)
{
    start();
    malloc_double_init();
    for (unsigned round = 0; round < 4; round++) { /* the first may fill a pool */
        unsigned before = malloc_double_calls();
        sp_point point = signal_point(), copy = sp_point_ref(&point);
        CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&copy);
        sp_point_unref(&point);
        if (round > 0)
            CHECK_EQUAL(malloc_double_calls(), before);
    }
    finish();
}

TEST_NEEDING(semaphore_points_need_no_memory, WITH_DOUBLES)
{
    gl_play_semaphore payloads[2] = {{0}, {.counting = true}};
    start_plays();
    malloc_double_init();
    sp_gl_semaphore *binary = import_played(SP_GL_SEMAPHORE_BINARY, &payloads[0]);
    sp_gl_semaphore *timeline = import_played(SP_GL_SEMAPHORE_TIMELINE, &payloads[1]);
    for (unsigned round = 0; round < 6; round++) {
        unsigned before = malloc_double_calls();
        sp_point value = signal_semaphore(timeline, 0), signal = signal_semaphore(binary, 0);
        sp_point next = value_point(timeline, 2 * round + 2);
        CHECK_STATUS(sp_wait(&value), SP_OK);
        CHECK_STATUS(sp_wait(&signal), SP_OK);
        CHECK_STATUS(sp_wait_timeout(&next, 0), SP_TIMEOUT);
        CHECK_STATUS(sp_wait_timeout(&next, MS), SP_TIMEOUT);
        gl_play_signal(&payloads[1], 2 * round + 2);
        CHECK_STATUS(sp_wait(&next), SP_OK);
        sp_point_unref(&value);
        sp_point_unref(&next);
        sp_point_unref(&signal);
        if (round > 1)
            CHECK_EQUAL(malloc_double_calls(), before);
    }
    sp_gl_semaphore_unref(binary);
    sp_gl_semaphore_unref(timeline);
    finish();
    CHECK_EQUAL(malloc_double_held(), 0);
}

/* ---- None ---- */

static sp_gl_context_desc description;
static sp_gl_context *made;

static sp_status make_context(void)
{
    return sp_gl_context_create(&description, &made);
}

static void destroy_context(void)
{
    CHECK_STATUS(sp_gl_context_destroy(made), SP_OK);
}

TEST(no_memory_for_a_context)
{
    open_gl();
    malloc_double_init();
    description = context_desc();
    malloc_double_refuse_each(make_context, destroy_context);
    close_gl();
}

static sp_point point;
static int good_fd;
static gl_play_semaphore payload;
static sp_gl_semaphore *semaphore;

static sp_status import_semaphore(void)
{
    const sp_gl_semaphore_import_desc desc = import_desc(SP_GL_SEMAPHORE_BINARY, good_fd);
    gl_play_next_import(&payload);
    return sp_gl_semaphore_import(context, &desc, &semaphore);
}

static void drop_semaphore(void)
{
    sp_gl_semaphore_unref(semaphore);
}

TEST_NEEDING(no_memory_for_a_semaphore, WITH_DOUBLES)
{
    start_plays();
    malloc_double_init();
    good_fd = gl_play_fd();
    malloc_double_refuse_each(import_semaphore, drop_semaphore);
    CHECK_EQUAL(gl_hook_live_semaphores(), 0);
    close(good_fd);
    finish();
}

/* Each takes from a pool, which grows: many points are kept, so that it has to. */
#define KEPT 100
static sp_point kept[KEPT];
static unsigned kept_count;

static sp_status make_fence(void)
{
    return sp_gl_context_signal(context, 0, &point);
}

static sp_status wrap_sync(void)
{
    const sp_gl_sync_wrap_desc desc = {.size = sizeof(desc),
                                       .sync = kept[0].raw.opengl_sync.sync,
                                       .display = kept[0].raw.opengl_sync.display};
    return sp_gl_sync_wrap(context, &desc, &point);
}

static unsigned refuse_while_growing(sp_status (*attempt)(void))
{
    unsigned refused = 0;
    for (unsigned i = 0; i < 50; i++) {
        unsigned live = gl_hook_live_syncs();
        malloc_double_fail(0);
        sp_status status = attempt();
        bool failed = malloc_double_failed();
        CHECK_STATUS(status, failed ? SP_ERROR_OUT_OF_MEMORY : SP_OK);
        if (failed)
            CHECK_EQUAL(gl_hook_live_syncs(), live);
        refused += failed;
        if (failed)
            CHECK_STATUS(attempt(), SP_OK);
        kept[kept_count++] = point;
    }
    return refused;
}

TEST(no_memory_for_a_fence)
{
    start();
    malloc_double_init();
    CHECK(refuse_while_growing(make_fence) > 0);
    CHECK(refuse_while_growing(wrap_sync) > 0);
    while (kept_count > 0)
        sp_point_unref(&kept[--kept_count]);
    finish();
    CHECK_EQUAL(malloc_double_held(), 0);
}

static sp_status make_signal(void)
{
    return sp_gl_binary_point(semaphore, 0, &point);
}

/* In any call of a row: nothing is inserted, nothing used up. */
TEST_NEEDING(no_memory_for_waits, WITH_DOUBLES)
{
    enum { COUNT = 40 };
    static gl_play_semaphore payloads[COUNT];
    static sp_gl_semaphore *binaries[COUNT];
    sp_point chain = {0}, points[COUNT];
    start_plays();
    malloc_double_init();
    for (unsigned i = 0; i < COUNT; i++) {
        sp_point longer = {0};
        binaries[i] = import_played(SP_GL_SEMAPHORE_BINARY, &payloads[i]);
        points[i] = binary_point(binaries[i], 0);
        CHECK_STATUS(sp_chain(&chain, &points[i], &longer), SP_OK);
        sp_point_unref(&chain);
        chain = longer;
    }
    unsigned refused = 0;
    for (;; refused++) {
        malloc_double_fail(refused);
        sp_status status = sp_gl_context_wait(context, &chain, NULL);
        if (!malloc_double_failed()) {
            CHECK_STATUS(status, SP_OK);
            break;
        }
        CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
        CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 0);
    }
    CHECK(refused > 0);
    for (unsigned i = 0; i < COUNT; i++) {
        gl_play_signal(&payloads[i], 0);
        sp_point_unref(&points[i]);
        sp_gl_semaphore_unref(binaries[i]);
    }
    CHECK_STATUS(sp_wait(&chain), SP_OK);
    sp_point_unref(&chain);
    finish();
    CHECK_EQUAL(malloc_double_held(), 0);
}

TEST_NEEDING(no_memory_for_a_signal, WITH_DOUBLES)
{
    start_plays();
    malloc_double_init();
    good_fd = gl_play_fd();
    CHECK_STATUS(import_semaphore(), SP_OK);
    malloc_double_fail(0);
    CHECK_STATUS(make_signal(), SP_ERROR_OUT_OF_MEMORY);
    CHECK(malloc_double_failed());
    sp_point out = test_marked_point(), marked = out;
    malloc_double_fail(0);
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, semaphore, 0, NULL, &out),
                 SP_ERROR_OUT_OF_MEMORY);
    CHECK(malloc_double_failed());
    CHECK(test_same_point(&out, &marked));
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glSignalSemaphoreEXT), 0);
    point = binary_point(semaphore, 0);
    malloc_double_fail(0);
    CHECK_STATUS(sp_wait(&point), SP_ERROR_OUT_OF_MEMORY);
    CHECK(malloc_double_failed());
    CHECK_EQUAL(gl_hook_calls(GL_HOOK_glWaitSemaphoreEXT), 0);
    gl_play_signal(&payload, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_gl_semaphore_unref(semaphore);
    close(good_fd);
    finish();
    CHECK_EQUAL(malloc_double_held(), 0);
}
