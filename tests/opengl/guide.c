/* SPDX-License-Identifier: MIT
 *
 * The examples of docs/guide.md, as they stand there: Vulkan gates OpenGL, and a primitive of one's
 * own.
 */
#include "gl_case.h"
#include "support/vk_fixture.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "guide_example.h"

static vk_context vk;

TEST_NEEDING(vulkan_gates_opengl, WITH_GL_SEMAPHORES)
{
    const vk_options vulkan = {.driver = gl_vulkan_driver(options)};
    sp_vk_semaphore *there = NULL;
    sp_gl_semaphore *here = NULL;
    start();
    vk_open(&vk, &vulkan);
    vk_open_library(&vk, NULL);
    share(vk.sp_device, context, &there, &here);
    CHECK(there && here);
    for (unsigned i = 0; i < 3; i++) {
        hand_over(vk.sp_queue, there, context, here);
        sp_point behind = signal_point();
        CHECK_STATUS(sp_wait(&behind), SP_OK);
        sp_point_unref(&behind);
    }
    sp_gl_semaphore_unref(here);
    sp_vk_semaphore_unref(there);
    vk_finish(&vk);
    finish();
    vk_close(&vk);
}

TEST(a_gate_of_ones_own)
{
    struct gate *gate = calloc(1, sizeof *gate);
    sp_point point = {0};
    assert_non_null(gate);
    gate->fd = eventfd(0, EFD_CLOEXEC);
    CHECK_STATUS(sp_waiter_init(&gate->base, &gate_ops), SP_OK);
    CHECK_STATUS(sp_point_custom(&gate->base, 1, NULL, &point), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    CHECK(eventfd_write(gate->fd, 1) == 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_waiter_unref(&gate->base);
    sp_point_unref(&point);
}
