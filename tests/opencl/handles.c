/* SPDX-License-Identifier: MIT
 *
 * Opaque fds: what is let in, who owns which number, what is left after a failure. H1, H2, H5.
 */
#include "cl_case.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static sp_cl_semaphore_import_desc import_desc(int fd)
{
    return (sp_cl_semaphore_import_desc){.size = sizeof(sp_cl_semaphore_import_desc), .fd = fd};
}

static sp_cl_semaphore *import_fd(int fd)
{
    const sp_cl_semaphore_import_desc desc = import_desc(fd);
    sp_cl_semaphore *made = NULL;
    CHECK_STATUS(sp_cl_semaphore_import(cl.sp, &desc, &made), SP_OK);
    return made;
}

static void refuse_import(const sp_cl_semaphore_import_desc *desc, sp_status expected)
{
    sp_cl_semaphore *unchanged = (sp_cl_semaphore *)16;
    unsigned before = census_open_handles();
    CHECK_ERROR(sp_cl_semaphore_import(cl.sp, desc, &unchanged), expected);
    CHECK(unchanged == (sp_cl_semaphore *)16);
    CHECK_HANDLES(before);
}

static unsigned imports(void)
{
    return cl_hook_calls(CL_HOOK_CreateSemaphoreWithPropertiesKHR);
}

/* ---- What crosses ---- */

TEST_NEEDING(O3_another_api_gates_a_copy, WITH_DOUBLE)
{
    start();
    int fd = cl_double_export();
    sp_cl_semaphore *semaphore = import_fd(fd);
    cl_mem buffer = cl_make_buffer();
    for (cl_uint round = 1; round <= 3; round++) {
        sp_point ready = binary_point(semaphore, 0);
        CHECK_STATUS(sp_cl_queue_wait(cl.sp, cl.other, &ready), SP_OK);
        cl_event fill = cl_fill(cl.other, buffer, round, NULL);
        CHECK_CL(cl.raw.Flush(cl.other));
        test_sleep_ms(DELAY_MS);
        CHECK_EQUAL(cl_content(buffer), round - 1);
        cl_double_signal(fd);
        CHECK(cl_arrives(buffer, round));
        CHECK_STATUS(sp_wait(&ready), SP_OK);
        sp_point_unref(&ready);
        CHECK_CL(cl.raw.ReleaseEvent(fill));
    }
    CHECK(!cl_double_take(fd)); /* each was used up */
    close(fd);
    CHECK_CL(cl.raw.ReleaseMemObject(buffer));
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(another_api_waits_for_us, WITH_DOUBLE)
{
    start();
    cl_event gate = cl_make_gate();
    int fd = cl_double_export();
    sp_cl_semaphore *semaphore = import_fd(fd);
    cl_close_queue(cl.queue, gate);
    CHECK_STATUS(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, NULL), SP_OK);
    test_sleep_ms(DELAY_MS);
    CHECK(!cl_double_take(fd));
    cl_open_gate(gate);
    CHECK_CL(cl.raw.Finish(cl.queue));
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    bool arrived = false;
    while (!arrived && sp_now_ns() < end)
        arrived = cl_double_take(fd);
    CHECK(arrived);
    close(fd);
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(H2_the_same_fd_twice, WITH_DOUBLE)
{
    start();
    int fd = cl_double_export();
    unsigned before = census_open_handles();
    sp_cl_semaphore *first = import_fd(fd), *second = import_fd(fd);
    CHECK_HANDLES(before); /* the driver took the duplicates */
    CHECK(census_is_open(fd));
    cl_double_signal(fd);
    sp_point point = binary_point(second, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(first);
    sp_cl_semaphore_unref(second);
    close(fd);
    finish();
}

TEST_NEEDING(adopt_takes_on_success_only, WITH_DOUBLE)
{
    start();
    int fd = cl_double_export(), bad = eventfd(0, EFD_CLOEXEC);
    sp_cl_semaphore_import_desc desc = import_desc(bad);
    sp_cl_semaphore *made = NULL;
    desc.adopt = true;
    refuse_import(&desc, SP_ERROR_INVALID_HANDLE);
    CHECK(census_is_open(bad));
    close(bad);
    desc.fd = fd;
    cl_hook_fail(CL_HOOK_CreateSemaphoreWithPropertiesKHR, CL_INVALID_VALUE, 0, 1);
    refuse_import(&desc, SP_ERROR_INVALID_HANDLE);
    CHECK(census_is_open(fd));
    CHECK_STATUS(sp_cl_semaphore_import(cl.sp, &desc, &made), SP_OK);
    CHECK(!census_is_open(fd));
    sp_cl_semaphore_unref(made);
    finish();
}

/* ---- H5 ---- */

TEST_NEEDING(H5_what_is_no_semaphore_never_reaches_the_driver, WITH_SEMAPHORES)
{
    start();
    int pipe_ends[2], sockets[2];
    CHECK(pipe(pipe_ends) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, sockets) == 0);
    int closed = census_free_number();
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC), null = open("/dev/null", O_RDWR);
    int event = eventfd(0, EFD_CLOEXEC), memory = memfd_create("not a semaphore", MFD_CLOEXEC);
    const int bad[] = {closed, file,         null,       event, memory,  pipe_ends[0],
                       -1,     pipe_ends[1], sockets[0], -2,    INT_MAX, INT_MIN};
    for (unsigned i = 0; i < COUNT_OF(bad); i++) {
        const sp_cl_semaphore_import_desc desc = import_desc(bad[i]);
        refuse_import(&desc, SP_ERROR_INVALID_HANDLE);
    }
    CHECK_EQUAL(imports(), 0);
    const int ours[] = {file,         null,         event,      memory,
                        pipe_ends[0], pipe_ends[1], sockets[0], sockets[1]};
    for (unsigned i = 0; i < COUNT_OF(ours); i++)
        close(ours[i]);
    finish();
}

TEST_NEEDING(H5_a_handle_of_another_maker, WITH_DOUBLE)
{
    start();
    int fd = open("/dev/ptmx",
                  O_RDWR | O_NOCTTY | O_CLOEXEC); /* looks right, but is not one of its own */
    const sp_cl_semaphore_import_desc desc = import_desc(fd);
    refuse_import(&desc, SP_ERROR_INVALID_HANDLE);
    CHECK_EQUAL(imports(), 1);
    CHECK_EQUAL(sp_last_error()->native_code, (uint64_t)CL_INVALID_VALUE);
    close(fd);
    finish();
}

TEST_NEEDING(import_arguments, WITH_SEMAPHORES)
{
    start();
    sp_cl_semaphore *made = (sp_cl_semaphore *)16;
    sp_cl_semaphore_import_desc desc = import_desc(0);
    unsigned calls = cl_hook_all_calls();
    CHECK_ERROR(sp_cl_semaphore_import(NULL, &desc, &made), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_semaphore_import(cl.sp, NULL, &made), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_semaphore_import(cl.sp, &desc, NULL), SP_ERROR_INVALID_ARGUMENT);
    desc.size--;
    CHECK_ERROR(sp_cl_semaphore_import(cl.sp, &desc, &made), SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(cl_hook_all_calls(), calls);
    CHECK(made == (sp_cl_semaphore *)16);
    finish();
}

TEST_NEEDING(a_context_of_two_devices_imports_for_one, WITH_DOUBLE)
{
    for (unsigned round = 0; round < 2; round++) {
        start();
        cl_close_library();
        cl_hook_show_two_devices(true);
        sp_cl_context_desc desc = cl_desc();
        if (round)
            desc.wait_queue = NULL;
        CHECK_STATUS(sp_cl_context_create(&desc, &cl.sp), SP_OK);
        int fd = cl_double_export();
        sp_cl_semaphore *semaphore = import_fd(fd);
        CHECK(cl_double_is_for_one_device(sp_cl_semaphore_handle(semaphore)));
        sp_cl_semaphore_unref(semaphore);
        close(fd);
        finish();
    }
}

/* ---- H1 ---- */

static int good_fd;
static sp_cl_semaphore *imported;

static sp_status import_good(void)
{
    const sp_cl_semaphore_import_desc desc = import_desc(good_fd);
    return sp_cl_semaphore_import(cl.sp, &desc, &imported);
}

static void unref_imported(void)
{
    sp_cl_semaphore_unref(imported);
}

TEST_NEEDING(H1_import_fails_a_thousand_times, WITH_DOUBLE)
{
    for (unsigned closes = 0; closes < 2; closes++) {
        start();
        good_fd = cl_double_export();
        cl_hook_close_on_failure(closes);
        refuse_each_call(import_good, unref_imported, 1000);
        CHECK(census_is_open(good_fd));
        CHECK_EQUAL(cl.warnings, closes ? 1000 : 0);
        CHECK_STATUS(import_good(), SP_OK);
        unref_imported();
        close(good_fd);
        finish();
    }
}

TEST_NEEDING(H1_no_number_left, WITH_DOUBLE)
{
    start();
    good_fd = cl_double_export();
    struct rlimit limit, low;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    unsigned before = census_open_handles();
    low = limit;
    low.rlim_cur = (rlim_t)census_free_number();
    CHECK(setrlimit(RLIMIT_NOFILE, &low) == 0);
    for (unsigned i = 0; i < 1000; i++) {
        CHECK_STATUS(import_good(), SP_ERROR_SYSTEM);
        CHECK_EQUAL(sp_last_error()->native_code, EMFILE);
    }
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    CHECK_HANDLES(before);
    CHECK_STATUS(import_good(), SP_OK);
    unref_imported();
    close(good_fd);
    finish();
}
