/* SPDX-License-Identifier: MIT
 *
 * Handles: what is taken, what is refused before the driver sees it, and that none leaks.
 */
#include "cu_peer.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

static cu_peer peer;

static sp_cuda_semaphore_import_desc fd_desc(sp_cuda_handle_type type, int fd)
{
    return (sp_cuda_semaphore_import_desc){
        .size = sizeof(sp_cuda_semaphore_import_desc), .type = type, .fd = fd};
}

static void check_refused(const sp_cuda_semaphore_import_desc *desc, sp_status expected)
{
    sp_cuda_semaphore *out = (sp_cuda_semaphore *)16;
    CHECK_ERROR(sp_cuda_semaphore_import(ctx.sp, desc, &out), expected);
    CHECK(out == (sp_cuda_semaphore *)16);
}

static sp_cuda_semaphore *import(const sp_cuda_semaphore_import_desc *desc)
{
    sp_cuda_semaphore *made = NULL;
    CHECK_STATUS(sp_cuda_semaphore_import(ctx.sp, desc, &made), SP_OK);
    return made;
}

/* ---- H2 ---- */

TEST(H2_one_fd_twice)
{
    start();
    peer_init(&peer, true);
    int fd = peer_export(&peer);
    sp_cuda_semaphore_import_desc desc = fd_desc(SP_CUDA_TIMELINE_FD, fd);
    sp_cuda_semaphore *first = import(&desc);
    CHECK(census_is_open(fd));
    sp_cuda_semaphore *second = import(&desc);
    CHECK(census_is_open(fd));
    desc.adopt = true;
    sp_cuda_semaphore *third = import(&desc);
    CHECK(!census_is_open(fd));
    sp_cuda_semaphore *const all[] = {first, second, third};
    for (unsigned i = 0; i < COUNT_OF(all); i++) {
        sp_point point = stream_signals(ctx.stream, all[i], i + 1);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        CHECK_EQUAL(peer_value(&peer), i + 1);
        sp_point_unref(&point);
        sp_cuda_semaphore_unref(all[i]);
    }
    finish();
    peer_fini(&peer);
}

/* ---- H5 ---- */

/* Refused without the driver's knowing, and still the caller's. */
static void check_bad_fd(int fd)
{
    unsigned imports = cu_control ? calls("cuImportExternalSemaphore") : 0;
    bool was_open = census_is_open(fd);
    for (unsigned adopt = 0; adopt < 2; adopt++) {
        sp_cuda_semaphore_import_desc desc = fd_desc(SP_CUDA_TIMELINE_FD, fd);
        desc.adopt = adopt != 0;
        check_refused(&desc, SP_ERROR_INVALID_HANDLE);
        desc.type = SP_CUDA_BINARY_FD;
        check_refused(&desc, SP_ERROR_INVALID_HANDLE);
    }
    CHECK(census_is_open(fd) == was_open);
    if (cu_control)
        CHECK_EQUAL(calls("cuImportExternalSemaphore"), imports);
}

TEST(H5_what_is_no_semaphore)
{
    int pair[2], pipes[2];
    start();
    int closed = census_free_number();
    const int numbers[] = {-1, -2, INT_MAX, INT_MIN, closed};
    for (unsigned i = 0; i < COUNT_OF(numbers); i++)
        check_bad_fd(numbers[i]);
    CHECK(pipe2(pipes, O_CLOEXEC) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) == 0);
    const int opened[] = {
        memfd_create("semaphore", MFD_CLOEXEC),
        eventfd(0, EFD_CLOEXEC),
        open("/dev/null", O_RDWR | O_CLOEXEC),
        open("/dev/zero", O_RDWR | O_CLOEXEC),
        open("/dev/urandom", O_RDONLY | O_CLOEXEC),
        open("/", O_RDONLY | O_CLOEXEC),
        open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
        pipes[0],
        pipes[1],
        pair[0],
        pair[1],
    };
    for (unsigned i = 0; i < COUNT_OF(opened); i++) {
        CHECK(opened[i] >= 0);
        check_bad_fd(opened[i]);
        close(opened[i]);
    }
    /* A terminal's own end; number 0 in a shell is one. */
    int master = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC), lock = 0, number = 0;
    char path[40];
    if (master >= 0 && ioctl(master, TIOCSPTLCK, &lock) == 0 &&
        ioctl(master, TIOCGPTN, &number) == 0) {
        snprintf(path, sizeof(path), "/dev/pts/%d", number);
        int terminal = open(path, O_RDWR | O_NOCTTY | O_CLOEXEC);
        if (terminal >= 0) {
            check_bad_fd(terminal);
            close(terminal);
        }
    }
    close(master);
    /* The device is unharmed. */
    peer_init(&peer, true);
    sp_cuda_semaphore *timeline = peer_import(&peer, NULL);
    sp_point point = stream_signals(ctx.stream, timeline, 1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    sp_cuda_semaphore_unref(timeline);
    finish();
    peer_fini(&peer);
}

/* ---- H7 ---- */

/* The driver does not check a handle's kind: we go by what we are told, and that is all one can. */
TEST(H7_types_and_arguments_that_disagree)
{
    sp_host_timeline *host = NULL;
    sp_point counting = {0};
    start();
    peer_init(&peer, true);
    CHECK_STATUS(sp_host_timeline_create(0, &host), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(host, 1, &counting), SP_OK);
    int fd = peer_export(&peer);
    sp_cuda_semaphore_import_desc desc = fd_desc(SP_CUDA_D3D12_FENCE, fd);
    check_refused(&desc, SP_ERROR_INVALID_ARGUMENT); /* no handle */
    desc.handle = &desc;                             /* nothing the driver knows */
    check_refused(&desc, SP_ERROR_NOT_SUPPORTED);
    desc.adopt = true;
    check_refused(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc = fd_desc((sp_cuda_handle_type)0, fd);
    check_refused(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc.type = (sp_cuda_handle_type)10;
    check_refused(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc = fd_desc(SP_CUDA_TIMELINE_FD, fd);
    desc.size--;
    check_refused(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc = fd_desc(SP_CUDA_BINARY_FD, fd);
    desc.origin = &counting;
    check_refused(&desc, SP_ERROR_INVALID_ARGUMENT);
    sp_point noop = sp_point_noop(), carrier = sp_carrier_d3d12_fence(&host, 1);
    sp_point event = stream_point(ctx.stream);
    const sp_point *const bad[] = {&noop, &carrier, &event};
    desc = fd_desc(SP_CUDA_TIMELINE_FD, fd);
    for (unsigned i = 0; i < COUNT_OF(bad); i++) {
        desc.origin = bad[i];
        check_refused(&desc, SP_ERROR_INVALID_ARGUMENT);
    }
    desc.origin = NULL;
    sp_cuda_semaphore *timeline = import(&desc);
    sp_point own = timeline_point(timeline, 1);
    desc.origin = &own;
    check_refused(&desc, SP_ERROR_INVALID_ARGUMENT); /* of CUDA itself */
    CHECK_ERROR(sp_cuda_semaphore_import(NULL, &desc, &timeline), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cuda_semaphore_import(ctx.sp, NULL, &timeline), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cuda_semaphore_import(ctx.sp, &desc, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK(census_is_open(fd));
    close(fd);
    sp_point_unref(&own);
    sp_point_unref(&event);
    sp_cuda_semaphore_unref(timeline);
    sp_point_unref(&counting);
    sp_host_timeline_destroy(host);
    finish();
    peer_fini(&peer);
}

/* ---- H1 ---- */

TEST_NEEDING(H1_every_step_of_an_import_fails, ON_DOUBLE)
{
    static const struct {
        int result;
        sp_status status;
    } results[] = {
        {1, SP_ERROR_INVALID_HANDLE},   {304, SP_ERROR_INVALID_HANDLE},
        {400, SP_ERROR_INVALID_HANDLE}, {999, SP_ERROR_INVALID_HANDLE},
        {2, SP_ERROR_OUT_OF_MEMORY},    {801, SP_ERROR_NOT_SUPPORTED},
    };
    start();
    peer_init(&peer, false);
    int fd = peer_export(&peer);
    const sp_cuda_semaphore_import_desc desc = fd_desc(SP_CUDA_BINARY_FD, fd);
    unsigned handles = census_open_handles();
    for (unsigned closes = 0; closes < 2; closes++) {
        cu_control->close_on_failed_import(closes != 0);
        for (unsigned i = 0; i < COUNT_OF(results); i++) {
            for (unsigned round = 0; round < 1000; round++) {
                cu_control->inject("cuImportExternalSemaphore", 0, 1, results[i].result);
                check_refused(&desc, results[i].status);
            }
            CHECK_HANDLES(handles);
        }
    }
    cu_control->close_on_failed_import(false);
    CUcontext before;
    CHECK_CU(cu.CtxPopCurrent(&before));
    for (unsigned round = 0; round < 1000; round++) {
        cu_control->inject("cuCtxPushCurrent_v2", 0, 1, 999);
        check_refused(&desc, SP_ERROR_BACKEND);
        CHECK_EQUAL(cu_control->context_depth(), 0);
    }
    CHECK_CU(cu.CtxPushCurrent(before));
    CHECK_STATUS(sp_cuda_context_collect(ctx.sp), SP_OK);
    CHECK_HANDLES(handles);
    CHECK_EQUAL(cu_control->live(CUDA_DOUBLE_SEMAPHORE), 0);
    for (unsigned round = 0; round < 1000; round++)
        sp_cuda_semaphore_unref(import(&desc));
    CHECK_STATUS(sp_cuda_context_collect(ctx.sp), SP_OK);
    CHECK_HANDLES(handles);
    CHECK_EQUAL(cu_control->live(CUDA_DOUBLE_SEMAPHORE), 0);
    close(fd);
    finish();
    peer_fini(&peer);
}

TEST(H1_imports_and_releases_keep_nothing)
{
    start();
    peer_init(&peer, true);
    int fd = peer_export(&peer);
    const sp_cuda_semaphore_import_desc desc = fd_desc(SP_CUDA_TIMELINE_FD, fd);
    sp_cuda_semaphore_unref(import(&desc)); /* what a driver opens once */
    unsigned handles = census_open_handles();
    for (unsigned round = 0; round < 100; round++)
        sp_cuda_semaphore_unref(import(&desc));
    CHECK_HANDLES(handles);
    close(fd);
    finish();
    peer_fini(&peer);
}

TEST(no_fd_for_the_duplicate)
{
    struct rlimit before, none;
    start();
    peer_init(&peer, true);
    int fd = peer_export(&peer);
    const sp_cuda_semaphore_import_desc desc = fd_desc(SP_CUDA_TIMELINE_FD, fd);
    CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
    none = before;
    none.rlim_cur = (rlim_t)census_free_number();
    CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    check_refused(&desc, SP_ERROR_SYSTEM);
    CHECK_EQUAL(sp_last_error()->native_code, EMFILE);
    CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
    CHECK(census_is_open(fd));
    sp_cuda_semaphore_unref(import(&desc));
    close(fd);
    finish();
    peer_fini(&peer);
}
