/* SPDX-License-Identifier: MIT
 *
 * poll() and select().
 */
#include "loop.h"

#include <poll.h>
#include <sys/select.h>

static void nothing(void) {}

static void turn_poll(int timeout_ms)
{
    static struct pollfd handles[WATCH_LIMIT];
    watched_compact();
    size_t count = watched_count;
    for (size_t i = 0; i < count; i++)
        handles[i] = (struct pollfd){.fd = watched[i]->fd, .events = POLLIN};
    if (poll(handles, (nfds_t)count, timeout_ms) <= 0)
        return;
    for (size_t i = 0; i < count; i++) {
        CHECK((handles[i].revents & ~POLLIN) == 0);
        if (handles[i].revents && watched[i])
            watched[i]->ready(watched[i]);
    }
}

static void turn_select(int timeout_ms)
{
    struct timeval timeout = {.tv_sec = timeout_ms / 1000, .tv_usec = timeout_ms % 1000 * 1000};
    fd_set readable;
    int end = 0;
    FD_ZERO(&readable);
    watched_compact();
    size_t count = watched_count;
    for (size_t i = 0; i < count; i++) {
        CHECK(watched[i]->fd < FD_SETSIZE);
        FD_SET(watched[i]->fd, &readable);
        end = watched[i]->fd >= end ? watched[i]->fd + 1 : end;
    }
    if (select(end, &readable, NULL, NULL, &timeout) <= 0)
        return;
    for (size_t i = 0; i < count; i++) {
        if (watched[i] && FD_ISSET(watched[i]->fd, &readable))
            watched[i]->ready(watched[i]);
    }
}

const loop_ops loop_poll = {nothing, nothing, watched_add, watched_remove, turn_poll};
const loop_ops loop_select = {nothing, nothing, watched_add, watched_remove, turn_select};
