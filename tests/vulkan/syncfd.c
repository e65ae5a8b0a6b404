/* SPDX-License-Identifier: MIT
 *
 * Sync files, in and out: H3, H4. Run on a double, doubles/sync_fd.h: no driver here has them.
 */
#include "doubles/sync_fd.h"
#include "vk_case.h"

#include <limits.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define SYNC VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT

static void start_with_sync_fds(void)
{
    vk_open(&vk, options);
    sp_vk_device_desc device = vk_device_desc(&vk, hook_install(vk.get_instance_proc_addr));
    sp_vk_queue_desc queue = vk_queue_desc(&vk);
    sync_fd_install(&vk, &device);
    CHECK_STATUS(sp_vk_device_create(&device, &vk.sp_device), SP_OK);
    CHECK_STATUS(sp_vk_queue_create(vk.sp_device, &queue, &vk.sp_queue), SP_OK);
}

static void finish_with_sync_fds(void)
{
    hook_heal();
    vk_finish(&vk);
    vk_close_library(&vk);
    CHECK_EQUAL(hook_live_semaphores(), 0);
    sync_fd_uninstall();
    vk_close(&vk);
}

static sp_vk_semaphore *make_sync_exportable(void)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .export_types = SYNC,
    };
    sp_vk_semaphore *made = NULL;
    CHECK_STATUS(sp_vk_semaphore_create(vk.sp_device, &desc, &made), SP_OK);
    return made;
}

static sp_status try_import(int fd, bool adopt, sp_vk_semaphore **out)
{
    const sp_vk_semaphore_import_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .handle_type = SYNC,
        .fd = fd,
        .temporary = true,
        .adopt = adopt,
    };
    return sp_vk_semaphore_import(vk.sp_device, &desc, out);
}

static sp_vk_semaphore *import_sync(int fd)
{
    sp_vk_semaphore *made = NULL;
    CHECK_STATUS(try_import(fd, false, &made), SP_OK);
    return made;
}

TEST(caps)
{
    start_with_sync_fds();
    sp_vk_semaphore_caps caps = {.size = sizeof(caps)};
    CHECK_STATUS(sp_vk_device_semaphore_caps(vk.sp_device, VK_SEMAPHORE_TYPE_BINARY, SYNC, &caps),
                 SP_OK);
    CHECK(caps.can_export && caps.can_import && caps.why_not == NULL);
    CHECK_EQUAL(caps.compatible, SYNC);
    CHECK_EQUAL(caps.export_from_imported, SYNC);
    CHECK_STATUS(sp_vk_device_semaphore_caps(vk.sp_device, VK_SEMAPHORE_TYPE_TIMELINE, SYNC, &caps),
                 SP_OK);
    CHECK(!caps.can_export && !caps.can_import && caps.why_not != NULL);
    finish_with_sync_fds();
}

/* ---- H3 ---- */

TEST(H3_export_of_what_is_signalled_and_import_of_minus_one)
{
    start_with_sync_fds();
    int fd = 99;
    sp_vk_semaphore *exported = make_sync_exportable();
    sp_point point = queue_signals(exported, 0);
    vk_finish(&vk);
    sync_fd_export_minus_one(true);
    CHECK_STATUS(sp_vk_point_export_sync_fd(&point, &fd), SP_OK);
    CHECK_EQUAL(fd, -1);
    sp_vk_semaphore *imported = import_sync(-1);
    sp_point arrived = binary_point(imported, 0), out = {0};
    CHECK_STATUS(sp_poll(&arrived), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&arrived, 0), SP_OK);
    CHECK_STATUS(sp_wait(&arrived), SP_OK);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &arrived), SP_OK);
    CHECK_ERROR(sp_vk_queue_signal_semaphore(vk.sp_queue, imported, 0, &out),
                SP_ERROR_INVALID_STATE);
    sp_point_unref(&arrived);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(imported);
    sp_vk_semaphore_unref(exported);
    finish_with_sync_fds();
}

/* ---- H4 ---- */

TEST(H4_export_before_the_submit)
{
    start_with_sync_fds();
    int fd = 99;
    sp_vk_semaphore *exported = make_sync_exportable();
    sp_point point = binary_point(exported, SP_POINT_UNSUBMITTED);
    unsigned before = hook_calls(HOOK_GetSemaphoreFdKHR);
    for (unsigned i = 0; i < 3; i++)
        CHECK_STATUS(sp_vk_point_export_sync_fd(&point, &fd), SP_NOT_SUBMITTED);
    CHECK_EQUAL(hook_calls(HOOK_GetSemaphoreFdKHR), before);
    CHECK_EQUAL(fd, 99);
    vk_submit(&vk, &(vk_submit_info){.signal = sp_vk_semaphore_handle(exported)});
    CHECK_STATUS(sp_point_mark_submitted(&point), SP_OK);
    CHECK_STATUS(sp_vk_point_export_sync_fd(&point, &fd), SP_OK);
    CHECK(census_is_open(fd));
    close(fd);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(exported);
    finish_with_sync_fds();
}

/* What the signal depends on must be submitted, too. */
TEST(H4_export_behind_an_open_gate)
{
    start_with_sync_fds();
    int fd = 99;
    sp_vk_semaphore *exported = make_sync_exportable(), *timeline = make_timeline(0);
    sp_point gate = timeline_point(timeline, 1);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &gate), SP_OK);
    sp_point point = queue_signals(exported, 0);
    CHECK_STATUS(sp_vk_point_export_sync_fd(&point, &fd), SP_NOT_SUBMITTED);
    CHECK_EQUAL(fd, 99);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    vk_finish(&vk);
    CHECK_STATUS(sp_vk_point_export_sync_fd(&point, &fd), SP_OK);
    close(fd);
    sp_point_unref(&gate);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(exported);
    sp_vk_semaphore_unref(timeline);
    finish_with_sync_fds();
}

TEST(export_uses_the_signal_up)
{
    start_with_sync_fds();
    int fd = 99, again = 98;
    sp_vk_semaphore *exported = make_sync_exportable();
    sp_point point = queue_signals(exported, 0);
    CHECK_STATUS(sp_vk_point_export_sync_fd(&point, &fd), SP_OK);
    CHECK_ERROR(sp_vk_point_export_sync_fd(&point, &again), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_vk_queue_wait(vk.sp_queue, &point), SP_ERROR_INVALID_STATE);
    CHECK_EQUAL(again, 98);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_INVALID_STATE);
    sp_point next = queue_signals(exported, 0);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &next), SP_OK);
    CHECK_ERROR(sp_vk_point_export_sync_fd(&next, &again), SP_ERROR_INVALID_STATE);
    close(fd);
    sp_point_unref(&next);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(exported);
    finish_with_sync_fds();
}

TEST(failed_export_uses_nothing_up)
{
    start_with_sync_fds();
    int fd = 99;
    sp_vk_semaphore *exported = make_sync_exportable();
    sp_point point = queue_signals(exported, 0);
    unsigned before = census_open_handles();
    for (unsigned i = 0; i < 1000; i++) {
        hook_fail(HOOK_GetSemaphoreFdKHR,
                  i % 2 ? VK_ERROR_TOO_MANY_OBJECTS : VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
        sp_status status = sp_vk_point_export_sync_fd(&point, &fd);
        CHECK(status == SP_ERROR_OUT_OF_MEMORY || status == SP_ERROR_SYSTEM);
        CHECK_EQUAL(fd, 99);
    }
    CHECK_HANDLES(before);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(exported);
    finish_with_sync_fds();
}

TEST(what_cannot_be_exported)
{
    start_with_sync_fds();
    int fd = 99;
    sp_vk_semaphore *binary = make_binary(), *timeline = make_timeline(0);
    sp_point a = queue_signals(binary, 0), b = timeline_point(timeline, 1);
    sp_point noop = sp_point_noop();
    CHECK_ERROR(sp_vk_point_export_sync_fd(&a, &fd), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_vk_point_export_sync_fd(&b, &fd), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_vk_point_export_sync_fd(&noop, &fd), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_vk_point_export_sync_fd(NULL, &fd), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_point_export_sync_fd(&a, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(fd, 99);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &a), SP_OK);
    sp_point_unref(&a);
    sp_point_unref(&b);
    sp_vk_semaphore_unref(binary);
    sp_vk_semaphore_unref(timeline);
    finish_with_sync_fds();
}

/* ---- In ---- */

TEST(imported_file_gates_a_copy)
{
    start_with_sync_fds();
    vk_copy copy;
    vk_copy_init(&copy, &vk);
    int fd = sync_fd_make();
    sp_vk_semaphore *imported = import_sync(fd);
    CHECK(census_is_open(fd));
    sp_point arrived = binary_point(imported, 0);
    CHECK(arrived.flags & SP_POINT_TEMPORARY);
    CHECK_STATUS(sp_poll(&arrived), SP_PENDING);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &arrived), SP_OK);
    vk_copy_submit(&copy);
    CHECK_UNWRITTEN(&copy); /* withheld */
    vk_copy_produce(&copy, 900);
    sync_fd_signal(fd);
    CHECK(vk_copy_arrives(&copy, 900));
    CHECK_STATUS(sp_wait(&arrived), SP_OK);
    close(fd);
    sp_point_unref(&arrived);
    sp_vk_semaphore_unref(imported);
    vk_copy_fini(&copy);
    finish_with_sync_fds();
}

TEST_NEEDING(exported_file_follows_the_work, WITH_ASYNC_SUBMIT)
{
    start_with_sync_fds();
    vk_slow slow;
    int fd = -1;
    vk_slow_init(&slow, &vk);
    vk_slow_submit(&slow);
    sp_vk_semaphore *exported = make_sync_exportable();
    sp_point point = queue_signals(exported, 0);
    CHECK_STATUS(sp_vk_point_export_sync_fd(&point, &fd), SP_OK);
    CHECK(!sync_fd_is_signalled(fd));
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (!sync_fd_is_signalled(fd) && sp_now_ns() < end)
        test_sleep_ms(1);
    CHECK(sync_fd_is_signalled(fd));
    close(fd);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(exported);
    vk_slow_fini(&slow);
    finish_with_sync_fds();
}

TEST(what_is_no_sync_file)
{
    start_with_sync_fds();
    const int fds[] = {eventfd(0, EFD_CLOEXEC), census_free_number() + 1, 0, -2, INT_MIN, INT_MAX};
    unsigned before = census_open_handles();
    for (unsigned i = 0; i < COUNT_OF(fds); i++) {
        sp_vk_semaphore *made = NULL;
        CHECK_ERROR(try_import(fds[i], false, &made), SP_ERROR_INVALID_HANDLE);
        CHECK_ERROR(try_import(fds[i], true, &made), SP_ERROR_INVALID_HANDLE);
        CHECK(made == NULL);
    }
    CHECK_EQUAL(hook_calls(HOOK_ImportSemaphoreFdKHR), 0);
    CHECK_HANDLES(before);
    close(fds[0]);
    finish_with_sync_fds();
}

TEST(adopt)
{
    start_with_sync_fds();
    sp_vk_semaphore *made = NULL;
    int fd = sync_fd_make();
    hook_fail(HOOK_ImportSemaphoreFdKHR, VK_ERROR_OUT_OF_HOST_MEMORY, 0, 1);
    CHECK_ERROR(try_import(fd, true, &made), SP_ERROR_OUT_OF_MEMORY);
    CHECK(census_is_open(fd));
    CHECK_STATUS(try_import(fd, true, &made), SP_OK);
    CHECK(!census_is_open(fd));
    sp_vk_semaphore_unref(made);
    CHECK_STATUS(try_import(-1, true, &made), SP_OK);
    sp_vk_semaphore_unref(made);
    finish_with_sync_fds();
}
