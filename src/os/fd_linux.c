/* SPDX-License-Identifier: MIT
 *
 * Telling what a file descriptor is before a driver sees it.
 */
#include "os.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/kcmp.h>
#include <linux/sync_file.h>
#endif

/* "pipe:[6382]" and "/memfd:SwiftShader.Semaphore.7 (deleted)" name a kind, but for the numbers:
 * without them two handles of one maker have one name. */
static void read_kernel_name(int fd, char *name, size_t size)
{
    char path[40];
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    ssize_t length = readlink(path, name, size - 1);
    size_t kept = 0;
    for (ssize_t i = 0; i < length; i++) {
        if (name[i] < '0' || name[i] > '9')
            name[kept++] = name[i];
    }
    name[kept] = '\0';
}

bool sp_os_fd_get_kind(int fd, sp_os_fd_kind *kind)
{
    struct stat info;
    if (fd < 0 || fstat(fd, &info) != 0)
        return false;
    memset(kind, 0, sizeof(*kind));
    kind->mode = (uint32_t)(info.st_mode & S_IFMT);
    kind->rdev = (uint64_t)info.st_rdev;
    kind->size = (uint64_t)info.st_size;
    read_kernel_name(fd, kind->name, sizeof(kind->name));
    return true;
}

bool sp_os_fd_same_kind(const sp_os_fd_kind *a, const sp_os_fd_kind *b)
{
    return a->mode == b->mode && a->rdev == b->rdev && a->size == b->size &&
           strcmp(a->name, b->name) == 0;
}

bool sp_os_fd_is_sync_file(int fd)
{
#ifdef SYNC_IOC_FILE_INFO
    struct sync_file_info info = {0};
    return fd >= 0 && ioctl(fd, SYNC_IOC_FILE_INFO, &info) == 0;
#else
    (void)fd;
    return false;
#endif
}

int sp_os_sync_file_status(int fd)
{
#ifdef SYNC_IOC_FILE_INFO
    struct sync_file_info info = {0};
    return ioctl(fd, SYNC_IOC_FILE_INFO, &info) == 0 ? info.status : -errno;
#else
    (void)fd;
    return -ENOTTY;
#endif
}

/* The kernel's own view: it refuses the others. */
int sp_os_fd_check_pollable(int fd)
{
    struct epoll_event event = {.events = EPOLLIN};
    int epoll = epoll_create1(EPOLL_CLOEXEC);
    if (epoll < 0)
        return errno;
    int error = epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0 ? 0 : errno;
    close(epoll);
    return error;
}

#define NS_PER_S UINT64_C(1000000000)

/* Of a poll() for what is left until then; in nanoseconds, which poll() itself does not know. */
static int poll_until(struct pollfd *wanted, uint64_t deadline_ns)
{
    uint64_t now = deadline_ns == 0 ? 0 : sp_os_now_ns();
    uint64_t left = deadline_ns > now ? deadline_ns - now : 0;
    left = left < INT64_MAX ? left : INT64_MAX;
    const struct timespec timeout = {.tv_sec = (time_t)(left / NS_PER_S),
                                     .tv_nsec = (long)(left % NS_PER_S)};
    return ppoll(wanted, 1, &timeout, NULL);
}

/* The end of a socket or pipe is readable, too; what was written before it counts. */
static bool is_at_its_end(int fd, short events)
{
    int left = 0;
    return (events & (POLLHUP | POLLRDHUP)) && ioctl(fd, FIONREAD, &left) == 0 && left == 0;
}

sp_os_fd_state sp_os_fd_wait(int fd, uint64_t deadline_ns)
{
    struct pollfd wanted = {.fd = fd, .events = POLLIN | POLLRDHUP};
    int count;
    do
        count = poll_until(&wanted, deadline_ns);
    while (count < 0 && errno == EINTR);
    if (count < 0)
        return SP_OS_FD_NOT_ASKED;
    if (count == 0)
        return SP_OS_FD_PENDING;
    if (wanted.revents & POLLIN)
        return is_at_its_end(fd, wanted.revents) ? SP_OS_FD_HUNG_UP : SP_OS_FD_READABLE;
    return (wanted.revents & (POLLHUP | POLLRDHUP)) ? SP_OS_FD_HUNG_UP : SP_OS_FD_BROKEN;
}

bool sp_os_fd_is_no_semaphore(const sp_os_fd_kind *kind)
{
    static const char *const devices[] = {"/dev/null",   "/dev/zero",    "/dev/full",
                                          "/dev/random", "/dev/urandom", "/dev/console",
                                          "/dev/pts/"}; /* a terminal, without its number */
    static const char *const others[] = {"event", "inotify", "timer", "signal", "pid", "userfault"};
    if (S_ISREG(kind->mode) || S_ISDIR(kind->mode) || S_ISFIFO(kind->mode) ||
        S_ISSOCK(kind->mode) || S_ISBLK(kind->mode) || S_ISLNK(kind->mode))
        return true;
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        if (strstr(kind->name, others[i]))
            return true;
    }
    for (size_t i = 0; i < sizeof(devices) / sizeof(devices[0]); i++) {
        if (strcmp(kind->name, devices[i]) == 0)
            return true;
    }
    return strncmp(kind->name, "/dev/tty", 8) == 0;
}

bool sp_os_fd_is_character_device(const sp_os_fd_kind *kind)
{
    return S_ISCHR(kind->mode);
}

int sp_os_fd_same_file(int a, int b)
{
#ifdef F_DUPFD_QUERY
    int same = fcntl(a, F_DUPFD_QUERY, b);
    if (same >= 0)
        return same;
#endif
    struct stat of_a;
    struct stat of_b;
    if (fstat(a, &of_a) != 0 || fstat(b, &of_b) != 0)
        return 0;
    if (of_a.st_dev != of_b.st_dev || of_a.st_ino != of_b.st_ino || of_a.st_rdev != of_b.st_rdev)
        return 0;
#ifdef SYS_kcmp
    long order = syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, (long)a, (long)b);
    if (order >= 0)
        return order == 0;
#endif
    return -1;
}

bool sp_os_fd_reclaim(int original, int duplicate, bool if_not_known)
{
    int same = sp_os_fd_same_file(original, duplicate);
    if (same == 0 || (same < 0 && !if_not_known))
        return false;
    sp_os_fd_close(duplicate);
    return true;
}
