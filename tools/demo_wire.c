/* SPDX-License-Identifier: MIT */
#include "demo_wire.h"

#include "commands.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WIRE_MAGIC 0x73707470u /* "sptp" */
#define WIRE_VERSION 1u

static bool type_has_fd(uint32_t type)
{
    return type == WIRE_IMAGE || type == WIRE_FRAME || type == WIRE_RELEASE;
}

enum wire_status wire_send(int socket, struct wire_message *message, int fd)
{
    message->magic = WIRE_MAGIC;
    message->version = WIRE_VERSION;
    struct iovec part = {message, sizeof *message};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(sizeof fd)];
    } control = {.bytes = {0}};
    struct msghdr header = {.msg_iov = &part, .msg_iovlen = 1};
    if (fd >= 0) {
        header.msg_control = control.bytes;
        header.msg_controllen = sizeof control.bytes;
        struct cmsghdr *rights = CMSG_FIRSTHDR(&header);
        rights->cmsg_level = SOL_SOCKET;
        rights->cmsg_type = SCM_RIGHTS;
        rights->cmsg_len = CMSG_LEN(sizeof fd);
        memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    }
    ssize_t sent;
    do {
        sent = sendmsg(socket, &header, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent == (ssize_t)sizeof *message)
        return WIRE_OK;
    return errno == EPIPE || errno == ECONNRESET ? WIRE_CLOSED : WIRE_BAD;
}

static enum wire_status wait_readable(int socket, uint64_t timeout_ns)
{
    const uint64_t deadline = sp_deadline_ns(timeout_ns);
    struct pollfd waiting = {.fd = socket, .events = POLLIN};
    for (;;) {
        const uint64_t now = sp_now_ns();
        const uint64_t left_ms = now < deadline ? (deadline - now) / 1000000 + 1 : 0;
        const int ready = poll(&waiting, 1, left_ms < 60000 ? (int)left_ms : 60000);
        if (ready > 0)
            return WIRE_OK;
        if (ready < 0 && errno != EINTR)
            return WIRE_BAD;
        if (left_ms == 0)
            return WIRE_TIMEOUT;
    }
}

/* Takes every fd that came: the first one is kept, more than one is not ours. Returns how many. */
static uint32_t take_fds(struct msghdr *header, int *fd)
{
    uint32_t count = 0;
    for (struct cmsghdr *part = CMSG_FIRSTHDR(header); part; part = CMSG_NXTHDR(header, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS)
            continue;
        const size_t fds = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < fds; i++) {
            int received;
            memcpy(&received, CMSG_DATA(part) + i * sizeof(int), sizeof received);
            if (count++ == 0) {
                *fd = received;
            } else {
                close(received);
            }
        }
    }
    return count;
}

static bool is_ours(const struct wire_message *message, ssize_t length, uint32_t fds)
{
    return length == (ssize_t)sizeof *message && message->magic == WIRE_MAGIC &&
           message->version == WIRE_VERSION && message->type > 0 && message->type < WIRE_TYPE_END &&
           message->slot < DEMO_SLOTS && fds == (type_has_fd(message->type) ? 1u : 0u);
}

enum wire_status wire_receive(int socket, uint64_t timeout_ns, struct wire_message *message,
                              int *fd)
{
    *fd = -1;
    const enum wire_status readable = wait_readable(socket, timeout_ns);
    if (readable != WIRE_OK)
        return readable;
    struct iovec part = {message, sizeof *message};
    union {
        struct cmsghdr align;
        char bytes[CMSG_SPACE(4 * sizeof(int))];
    } control;
    struct msghdr header = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = control.bytes,
        .msg_controllen = sizeof control.bytes,
    };
    const ssize_t length = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
    if (length == 0 || (length < 0 && errno == ECONNRESET))
        return WIRE_CLOSED;
    if (length < 0)
        return WIRE_BAD;
    const uint32_t fds = take_fds(&header, fd);
    if (!(header.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) && is_ours(message, length, fds))
        return WIRE_OK;
    if (fds > 0)
        close(*fd);
    *fd = -1;
    return WIRE_BAD;
}

void wire_complain(enum wire_status status)
{
    switch (status) {
    case WIRE_OK:
        break;
    case WIRE_TIMEOUT:
        tool_error("the other process does not answer");
        break;
    case WIRE_CLOSED:
        tool_error("the other process is gone");
        break;
    case WIRE_BAD:
        tool_error("what the other process sends is no message of the demo");
        break;
    }
}

bool wire_say(int socket, struct wire_message *message, int fd)
{
    const enum wire_status status = wire_send(socket, message, fd);
    wire_complain(status);
    return status == WIRE_OK;
}

bool wire_expect(int socket, enum wire_type type, uint64_t timeout_ns, struct wire_message *message,
                 int *fd)
{
    enum wire_status status = wire_receive(socket, timeout_ns, message, fd);
    if (status == WIRE_OK && message->type != type) {
        if (*fd >= 0)
            close(*fd);
        *fd = -1;
        status = WIRE_BAD;
    }
    wire_complain(status);
    return status == WIRE_OK;
}
