/* SPDX-License-Identifier: MIT
 *
 * A file descriptor as a primitive of one signal: reached once it is readable.
 */
#include "core/core.h"

#include <errno.h>
#include <stdlib.h>
#include <syncpoint/linux.h>

typedef struct fd_waiter {
    sp_waiter base;
    int fd;
    bool is_sync_file;
} fd_waiter;

static fd_waiter *fd_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, fd_waiter, base);
}

static sp_status check_fence(const fd_waiter *self)
{
    int status = self->is_sync_file ? sp_os_sync_file_status(self->fd) : 1;
    if (status >= 0)
        return SP_OK;
    return sp_fail_native(SP_ERROR_FAILED, SP_BACKEND_CPU, -status, "SYNC_IOC_FILE_INFO",
                          "the fence of the sync_file failed");
}

/* SP_OK: it is readable. */
static sp_status wait_until(const fd_waiter *self, uint64_t deadline_ns)
{
    switch (sp_os_fd_wait(self->fd, deadline_ns)) {
    case SP_OS_FD_PENDING:
        return SP_TIMEOUT;
    case SP_OS_FD_READABLE:
        return check_fence(self);
    case SP_OS_FD_HUNG_UP:
        return sp_fail(SP_ERROR_ABANDONED,
                       "the other end of the file descriptor was closed: nobody can signal it");
    case SP_OS_FD_NOT_ASKED:
        return sp_fail_native(SP_ERROR_SYSTEM, SP_BACKEND_CPU, errno, "ppoll",
                              "the kernel did not say whether the file descriptor is readable");
    default:
        return sp_fail_native(SP_ERROR_FAILED, SP_BACKEND_CPU, 0, "poll",
                              "poll() says that the file descriptor is broken");
    }
}

static sp_status fd_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    sp_status status = wait_until(fd_of(waiter), 0);
    *reached = status == SP_OK;
    return status == SP_TIMEOUT ? SP_OK : status;
}

static sp_status fd_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    (void)value;
    return wait_until(fd_of(waiter), deadline_ns);
}

static int fd_descriptor(sp_waiter *waiter)
{
    return fd_of(waiter)->fd;
}

static void fd_destroy(sp_waiter *waiter)
{
    sp_os_fd_close(fd_of(waiter)->fd);
    free(fd_of(waiter));
}

static const sp_fd_ops fd_ops = {
    .base =
        {
            .size = sizeof(sp_waiter_ops),
            .features = SP_FEATURE_BLOCK | SP_FEATURE_FD,
            .backend = SP_BACKEND_CPU,
            .name = "file descriptor",
            .probe = fd_probe,
            .block = fd_block,
            .destroy = fd_destroy,
        },
    .descriptor = fd_descriptor,
};

static sp_status fail_system(int error, const char *call)
{
    return sp_fail_native(SP_ERROR_SYSTEM, SP_BACKEND_CPU, error, call,
                          "sp_fd_point: no file descriptor to be had");
}

static sp_status check_descriptor(int fd, uint32_t flags)
{
    int error = sp_os_fd_check_pollable(fd);
    if (error == EMFILE || error == ENFILE || error == ENOMEM)
        return fail_system(error, "epoll_create1");
    if (error != 0)
        return sp_fail(SP_ERROR_INVALID_HANDLE,
                       "sp_fd_point: %d is closed, or of a file that is always readable", fd);
    if ((flags & SP_FD_SYNC_FILE) && !sp_os_fd_is_sync_file(fd))
        return sp_fail(SP_ERROR_INVALID_HANDLE, "sp_fd_point: %d is no sync_file", fd);
    return SP_OK;
}

static sp_status make(int fd, uint32_t flags, sp_point *out)
{
    fd_waiter *made = calloc(1, sizeof(*made));
    if (!made)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_fd_point: out of memory");
    made->fd = (flags & SP_FD_ADOPT) ? fd : sp_os_fd_duplicate(fd);
    if (made->fd < 0) {
        int error = errno;
        free(made);
        return fail_system(error, "fcntl");
    }
    made->is_sync_file = flags & SP_FD_SYNC_FILE;
    sp_waiter_setup(&made->base, &fd_ops.base);
    *out = (sp_point){
        .kind = SP_KIND_FD,
        .raw.fd = {.number = (uint64_t)made->fd},
        .waiter = &made->base,
    };
    return SP_OK;
}

sp_status sp_fd_point(int fd, uint32_t flags, sp_point *out)
{
    SP_CHECK_ARGUMENT(out, "out is required");
    SP_CHECK_ARGUMENT((flags & ~(uint32_t)(SP_FD_SYNC_FILE | SP_FD_ADOPT)) == 0, "unknown flags");
    if (fd == -1 && (flags & SP_FD_SYNC_FILE)) {
        *out = sp_point_cpu();
        return SP_OK;
    }
    sp_status status = check_descriptor(fd, flags);
    return status == SP_OK ? make(fd, flags, out) : status;
}
