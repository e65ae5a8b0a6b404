/* SPDX-License-Identifier: MIT
 *
 * Pollable handles: tickets whose callback raises a handle of the reactor's own, a duplicate of the
 * caller's, who may close theirs at any time.
 */
#include "async/reactor.h"

#include <errno.h>

/* One more than the number, so that NULL is none. */
static void *word_of_handle(int fd)
{
    return (void *)((intptr_t)fd + 1);
}

static sp_status fail_no_handle(void)
{
    return sp_fail_native(SP_ERROR_SYSTEM, SP_BACKEND_CPU, errno, "eventfd",
                          "sp_point_fd: no file descriptor to be had");
}

static sp_status open_ticket(sp_reactor *reactor, const sp_point *point, int theirs,
                             sp_ticket *ticket)
{
    int ours = sp_os_fd_duplicate(theirs);
    if (ours < 0)
        return fail_no_handle();
    const sp_reactor_ticket with = {.user = word_of_handle(ours),
                                    .flags = ticket ? SP_TICKET_KEPT : 0};
    sp_status status = sp_ticket_open(reactor, point, SP_FOREVER, &with, ticket);
    if (status != SP_OK)
        sp_os_fd_close(ours);
    return status;
}

sp_status sp_point_fd(sp_reactor *reactor, const sp_point *point, sp_pollable *fd,
                      sp_ticket *ticket)
{
    SP_CHECK_ARGUMENT(reactor && point && fd, "reactor, point and fd are required");
    sp_status status = sp_reactor_check(reactor);
    if (status != SP_OK)
        return status;
    int theirs = sp_os_signal_fd_create();
    if (theirs < 0)
        return fail_no_handle();
    status = open_ticket(reactor, point, theirs, ticket);
    if (status == SP_OK)
        *fd = theirs;
    else
        sp_os_fd_close(theirs);
    return status;
}

int sp_point_fd_take(sp_reactor_ticket *ticket)
{
    int fd = (int)((intptr_t)ticket->user - 1);
    ticket->user = NULL;
    return fd;
}

void sp_point_fd_raise(int fd)
{
    if (fd < 0)
        return;
    sp_os_signal_fd_raise(fd);
    sp_os_fd_close(fd);
}

void sp_point_fd_forget(sp_reactor_ticket *ticket)
{
    int fd = sp_point_fd_take(ticket);
    if (fd >= 0)
        sp_os_fd_close(fd);
}

/* NULL: not one of sp_point_fd(), or not any more. */
static sp_reactor_ticket *find_locked(sp_reactor *reactor, sp_ticket ticket, uint32_t *number)
{
    sp_reactor_ticket *found = sp_ticket_find(reactor, ticket, number);
    if (!found || sp_ticket_generation(ticket) != sp_ticket_generation_of(found))
        return NULL;
    return found->flags == SP_TICKET_KEPT ? found : NULL;
}

static const char not_a_ticket[] = "not a ticket of sp_point_fd(), or released before";

sp_status sp_point_fd_status(sp_reactor *reactor, sp_ticket ticket)
{
    uint32_t number;
    sp_error failure = {.status = SP_OK};
    SP_CHECK_ARGUMENT(reactor, "reactor is required");
    sp_status status = sp_reactor_check(reactor);
    if (status != SP_OK)
        return status;
    sp_os_mutex_lock(&reactor->inbox.lock);
    const sp_reactor_ticket *found = find_locked(reactor, ticket, &number);
    bool done = found && sp_ticket_state(sp_load64(&found->word)) == SP_TICKET_DONE;
    status = done ? (sp_status)found->status : SP_PENDING;
    if (done && found->u.failure)
        failure = *found->u.failure;
    sp_os_mutex_unlock(&reactor->inbox.lock);
    SP_CHECK_ARGUMENT(found, not_a_ticket);
    return status < 0 ? sp_ticket_fail_again(status, &failure) : status;
}

sp_status sp_point_fd_release(sp_reactor *reactor, sp_ticket ticket)
{
    uint32_t number;
    SP_CHECK_ARGUMENT(reactor, "reactor is required");
    sp_status status = sp_reactor_check(reactor);
    if (status != SP_OK)
        return status;
    sp_os_mutex_lock(&reactor->inbox.lock);
    sp_reactor_ticket *found = find_locked(reactor, ticket, &number);
    bool done = found && sp_ticket_state(sp_load64(&found->word)) == SP_TICKET_DONE;
    if (found)
        found->flags |= SP_TICKET_RELEASED;
    if (done)
        sp_ticket_close_locked(reactor, number);
    sp_os_mutex_unlock(&reactor->inbox.lock);
    SP_CHECK_ARGUMENT(found, not_a_ticket);
    if (!done)
        (void)sp_ticket_cancel(reactor, number, sp_ticket_generation(ticket));
    return SP_OK;
}
