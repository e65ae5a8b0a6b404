/* SPDX-License-Identifier: MIT
 *
 * Points of file descriptors: what is taken, who owns it, what fails.
 */
#include "support/census.h"
#include "support/test.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sync_file.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <syncpoint/async.h>
#include <syncpoint/linux.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* ---- A double of sync_files: no kernel without a GPU makes one. An eventfd, and this program's
 * ioctl() says what its fence's status is. ---- */

static int fence_fd = -1, fence_status;

int ioctl(int fd, unsigned long request, ...)
{
    va_list args;
    va_start(args, request);
    void *argument = va_arg(args, void *);
    va_end(args);
    if (fd != fence_fd && fd != fence_fd + 1)
        return (int)syscall(SYS_ioctl, fd, request, argument);
    ((struct sync_file_info *)argument)->status = fence_status;
    return 0;
}

/* And of a kernel that refuses to poll, as under a limit of no descriptors. */
static bool ppoll_refuses;

int ppoll(struct pollfd *fds, nfds_t count, const struct timespec *timeout, const sigset_t *mask)
{
    struct timespec left = timeout ? *timeout : (struct timespec){0};
    if (ppoll_refuses) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_ppoll, fds, count, timeout ? &left : NULL, mask, sizeof(uint64_t));
}

static sp_point point_of(int fd, uint32_t flags)
{
    sp_point point = {0};
    CHECK_STATUS(sp_fd_point(fd, flags, &point), SP_OK);
    return point;
}

static int open_eventfd(void)
{
    int fd = eventfd(0, EFD_CLOEXEC);
    CHECK(fd >= 0);
    return fd;
}

static void raise_fd(int fd)
{
    const uint64_t one = 1;
    CHECK(write(fd, &one, sizeof(one)) == sizeof(one));
}

TEST(readable_once_is_reached_for_good)
{
    uint64_t count;
    int fd = open_eventfd();
    sp_point point = point_of(fd, 0);
    CHECK_EQUAL(point.kind, SP_KIND_FD);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
    raise_fd(fd);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK(read(fd, &count, sizeof(count)) == sizeof(count));
    CHECK_STATUS(sp_poll(&point), SP_OK);
    close(fd);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
}

TEST(the_descriptor_is_duplicated_or_adopted)
{
    unsigned before = census_open_handles();
    int kept = open_eventfd(), given = open_eventfd();
    sp_point first = point_of(kept, 0), second = point_of(given, SP_FD_ADOPT);
    CHECK(first.raw.fd.number != (uint64_t)kept);
    CHECK_EQUAL(second.raw.fd.number, given);
    sp_point_unref(&first);
    sp_point_unref(&second);
    CHECK(fcntl(kept, F_GETFD) >= 0);
    CHECK(fcntl(given, F_GETFD) < 0);
    close(kept);
    CHECK_HANDLES(before);
}

TEST(H5_what_is_no_such_descriptor)
{
    sp_point point = test_marked_point();
    int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
        folder = open("/", O_RDONLY | O_CLOEXEC), null = open("/dev/null", O_RDONLY | O_CLOEXEC),
        path = open("/dev/zero", O_PATH | O_CLOEXEC), event = open_eventfd();
    unsigned before = census_open_handles();
    const int wrong[] = {-1, -2, 1 << 20, file, folder, null, path};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        CHECK_ERROR(sp_fd_point(wrong[i], 0, &point), SP_ERROR_INVALID_HANDLE);
        CHECK_ERROR(sp_fd_point(wrong[i], SP_FD_ADOPT, &point), SP_ERROR_INVALID_HANDLE);
    }
    CHECK_ERROR(sp_fd_point(event, SP_FD_SYNC_FILE, &point), SP_ERROR_INVALID_HANDLE);
    CHECK_ERROR(sp_fd_point(event, 1u << 7, &point), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_fd_point(event, 0, NULL), SP_ERROR_INVALID_ARGUMENT);
    sp_point marked = test_marked_point();
    CHECK(test_same_point(&point, &marked));
    CHECK_HANDLES(before);
    close(file);
    close(folder);
    close(null);
    close(path);
    close(event);
}

TEST(H1_no_free_descriptor)
{
    struct rlimit limit, few;
    sp_point point = test_marked_point();
    int fd = open_eventfd();
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    few = limit;
    few.rlim_cur = (rlim_t)fd + 1;
    CHECK(setrlimit(RLIMIT_NOFILE, &few) == 0);
    CHECK_ERROR(sp_fd_point(fd, 0, &point), SP_ERROR_SYSTEM);
    CHECK(sp_last_error()->native_code != 0);
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    close(fd);
}

/* Nobody can write any more: the point fails, in waits that have begun, too. */
TEST(the_other_end_is_closed)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    sp_point point = point_of(ends[0], 0);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    close(ends[1]);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_ABANDONED);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_ABANDONED);
    sp_point_unref(&point);
    close(ends[0]);
}

/* The end of a socket is readable, and no signal all the same. */
TEST(the_other_end_of_a_socket_is_closed)
{
    for (unsigned written = 0; written < 2; written++) {
        int ends[2];
        CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
        sp_point point = point_of(ends[0], SP_FD_ADOPT);
        CHECK_STATUS(sp_poll(&point), SP_PENDING);
        CHECK(write(ends[1], "x", written) == (ssize_t)written);
        close(ends[1]);
        CHECK_STATUS(sp_wait(&point), written ? SP_OK : SP_ERROR_ABANDONED);
        sp_point_unref(&point);
    }
}

/* What does not answer is no failure of the point. */
TEST(the_kernel_does_not_say)
{
    int fd = open_eventfd();
    sp_point point = point_of(fd, 0);
    ppoll_refuses = true;
    CHECK_ERROR(sp_poll(&point), SP_ERROR_SYSTEM);
    CHECK_EQUAL(sp_last_error()->native_code, EINVAL);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_SYSTEM);
    ppoll_refuses = false;
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    raise_fd(fd);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    close(fd);
}

TEST(what_was_written_before_the_end_counts)
{
    int ends[2];
    CHECK(pipe(ends) == 0);
    CHECK(write(ends[1], "x", 1) == 1);
    close(ends[1]);
    sp_point point = point_of(ends[0], SP_FD_ADOPT);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
}

TEST(H3_sync_files)
{
    sp_point point = point_of(-1, SP_FD_SYNC_FILE);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
    fence_fd = open_eventfd();
    point = point_of(fence_fd, SP_FD_SYNC_FILE | SP_FD_ADOPT);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    fence_status = 1;
    raise_fd(fence_fd);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
}

TEST(a_fence_that_failed)
{
    fence_fd = open_eventfd();
    sp_point point = point_of(fence_fd, SP_FD_SYNC_FILE | SP_FD_ADOPT);
    fence_status = -5; /* EIO, as drivers say after a reset */
    raise_fd(fence_fd);
    CHECK_ERROR(sp_wait(&point), SP_ERROR_FAILED);
    CHECK_EQUAL(sp_last_error()->native_code, 5);
    sp_point_unref(&point);
}

TEST(F1_forked)
{
    int status = -1, fd = open_eventfd();
    sp_point point = point_of(fd, 0);
    pid_t child = fork();
    if (child == 0) {
        bool good = sp_poll(&point) == SP_ERROR_FORKED;
        sp_point_unref(&point);
        _exit(good ? 0 : 1);
    }
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    raise_fd(fd);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    close(fd);
}
