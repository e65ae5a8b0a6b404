/* SPDX-License-Identifier: MIT
 *
 * Synchronizers without memory: nothing lost, and the same frame again works.
 */
#include "frames.h"
#include "support/malloc_double.h"

static sp_synchronizer *made;
static sp_host host;

static sp_status make_noop(void)
{
    return sp_synchronizer_create_noop(&made);
}

static sp_status make_implicit(void)
{
    return sp_synchronizer_create_implicit(&made);
}

static sp_status make_vulkan(void)
{
    return sp_synchronizer_create_vulkan(&host, &made);
}

static void destroy(void)
{
    CHECK_STATUS(sp_synchronizer_destroy(made, PATIENCE_NS), SP_OK);
}

TEST_NEEDING(no_memory_for_a_synchronizer, WITH_OPAQUE_FD)
{
    open_frames();
    malloc_double_init();
    host = (sp_host){.size = sizeof(host), .backend = SP_BACKEND_VULKAN, .queue = vk.sp_queue};
    malloc_double_refuse_each(make_noop, destroy);
    malloc_double_refuse_each(make_implicit, destroy);
    malloc_double_refuse_each(make_vulkan, destroy);
    close_frames();
}

TEST_NEEDING(no_memory_for_a_frame, WITH_OPAQUE_FD)
{
    open_frames();
    malloc_double_init();
    bool more = true;
    for (unsigned n = 0; more; n++) {
        sp_frame frame = make_frame();
        frame.adopt_fd = true;
        malloc_double_fail(n);
        sp_status status = complete(&frame);
        more = malloc_double_failed();
        if (status != SP_OK) {
            CHECK(more);
            CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
            CHECK(census_is_open(frame.semaphore_fd));
            CHECK_STATUS(complete(&frame), SP_OK);
        }
        CHECK(!census_is_open(frame.semaphore_fd));
    }
    close_frames();
    CHECK_EQUAL(malloc_double_held(), 0);
}
