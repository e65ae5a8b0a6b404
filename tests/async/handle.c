/* SPDX-License-Identifier: MIT */
#include "handle.h"

#include <fcntl.h>
#include <poll.h>
#include <unistd.h>

handle handle_for(const sp_point *point)
{
    handle made = {.fd = -1};
    CHECK_STATUS(sp_point_fd(reactor, point, &made.fd, &made.ticket), SP_OK);
    CHECK(census_is_open(made.fd));
    CHECK(fcntl(made.fd, F_GETFD) & FD_CLOEXEC);
    CHECK(made.ticket != 0);
    return made;
}

handle handle_of(source *from, uint64_t value)
{
    sp_point point = source_point(from, value);
    handle made = handle_for(&point);
    sp_point_unref(&point);
    return made;
}

sp_status status_of(const handle *self)
{
    return sp_point_fd_status(reactor, self->ticket);
}

void drop_handle(handle *self)
{
    CHECK_STATUS(sp_point_fd_release(reactor, self->ticket), SP_OK);
    CHECK(close(self->fd) == 0);
}

bool is_readable(int fd)
{
    struct pollfd wait = {.fd = fd, .events = POLLIN};
    return poll(&wait, 1, 0) == 1 && (wait.revents & POLLIN);
}

static bool has_become_readable(const void *fd)
{
    return is_readable(*(const int *)fd);
}

bool wait_readable(int fd)
{
    return go_on_until(reactor, has_become_readable, &fd);
}

void check_over(const handle *self, sp_status expected, sp_status cause)
{
    CHECK(wait_readable(self->fd));
    for (unsigned i = 0; i < 3; i++) {
        CHECK(is_readable(self->fd));
        CHECK_STATUS(status_of(self), expected);
        if (expected < 0)
            CHECK_STATUS(sp_last_error()->status, expected);
        if (expected < 0)
            CHECK_STATUS(sp_last_error()->cause, cause);
    }
}

void check_pending(const handle *self)
{
    CHECK(!is_readable(self->fd));
    CHECK_STATUS(status_of(self), SP_PENDING);
}

void check_no_ticket(sp_ticket ticket)
{
    CHECK_ERROR(sp_point_fd_status(reactor, ticket), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_point_fd_release(reactor, ticket), SP_ERROR_INVALID_ARGUMENT);
}
