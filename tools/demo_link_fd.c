/* SPDX-License-Identifier: MIT
 *
 * The link between two processes: each frame, and each slot that comes back, brings a binary
 * semaphore of its own as an opaque fd.
 */
#include "commands.h"
#include "demo_link.h"
#include "demo_wire.h"

#include <poll.h>
#include <unistd.h>

#define OPAQUE_FD VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT

/* A new exportable binary semaphore and its fd. */
static bool create_exported(sp_vk_device *device, sp_vk_semaphore **semaphore, int *fd)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof desc,
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .export_types = OPAQUE_FD,
    };
    if (!demo_sync_ok(sp_vk_semaphore_create(device, &desc, semaphore), "sp_vk_semaphore_create"))
        return false;
    if (demo_sync_ok(sp_vk_semaphore_export(*semaphore, OPAQUE_FD, fd), "sp_vk_semaphore_export"))
        return true;
    sp_vk_semaphore_unref(*semaphore);
    return false;
}

static bool signal_on(sp_vk_queue *queue, sp_vk_semaphore *semaphore)
{
    return demo_sync_ok(sp_vk_queue_signal_semaphore(queue, semaphore, 0, NULL),
                        "sp_vk_queue_signal_semaphore");
}

static bool socket_is_open(int socket)
{
    struct pollfd state = {.fd = socket, .events = POLLRDHUP};
    return poll(&state, 1, 0) == 0;
}

/* ---- Producer ------------------------------------------------------------------------------ */

/* The consumer sends a release only after it submitted the signal, so the wait may be queued. */
static bool gate_on_fd(struct demo_fd_producer *link, int fd)
{
    const sp_vk_semaphore_import_desc desc = {
        .size = sizeof desc,
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .handle_type = OPAQUE_FD,
        .fd = fd,
        .temporary = true,
        .adopt = true,
    };
    sp_vk_semaphore *semaphore = NULL;
    if (!demo_sync_ok(sp_vk_semaphore_import(link->device, &desc, &semaphore),
                      "sp_vk_semaphore_import")) {
        close(fd);
        return false;
    }
    sp_point released = sp_point_noop();
    const bool ok =
        demo_sync_ok(sp_vk_binary_point(semaphore, 0, &released), "sp_vk_binary_point") &&
        demo_sync_ok(sp_vk_queue_wait(link->queue, &released), "sp_vk_queue_wait");
    sp_point_unref(&released);
    sp_vk_semaphore_unref(semaphore);
    return ok;
}

static bool fd_consumer_is_there(void *self)
{
    return socket_is_open(((struct demo_fd_producer *)self)->socket);
}

static bool fd_await_release(void *self, uint32_t frame)
{
    struct demo_fd_producer *link = self;
    struct wire_message message;
    int fd;
    if (!wire_expect(link->socket, WIRE_RELEASE, DEMO_TIMEOUT_NS, &message, &fd))
        return false;
    if (message.frame == frame && message.slot == frame % DEMO_SLOTS)
        return gate_on_fd(link, fd);
    tool_error("frame %u came back where %u was due", message.frame, frame);
    close(fd);
    return false;
}

static bool fd_publish(void *self, uint32_t frame, bool signal)
{
    struct demo_fd_producer *link = self;
    sp_vk_semaphore *semaphore;
    int fd;
    if (!create_exported(link->device, &semaphore, &fd))
        return false;
    struct wire_message message = {
        .type = WIRE_FRAME,
        .frame = frame,
        .slot = frame % DEMO_SLOTS,
        .time_ns = sp_now_ns(),
    };
    const bool ok =
        (!signal || signal_on(link->queue, semaphore)) && wire_say(link->socket, &message, fd);
    close(fd);
    if (ok && !signal) {
        link->withheld = semaphore;
    } else {
        sp_vk_semaphore_unref(semaphore);
    }
    return ok;
}

/* The next message of that type. Releases that come first are not needed any more. */
static bool skip_to(int socket, enum wire_type type, struct wire_message *message)
{
    for (;;) {
        int fd;
        const enum wire_status status = wire_receive(socket, DEMO_TIMEOUT_NS, message, &fd);
        if (fd >= 0)
            close(fd);
        wire_complain(status);
        if (status != WIRE_OK || message->type == type)
            return status == WIRE_OK;
    }
}

static bool fd_signal_late(void *self, uint32_t frame)
{
    struct demo_fd_producer *link = self;
    struct wire_message message;
    const bool ok = skip_to(link->socket, WIRE_STUCK, &message) && message.frame == frame &&
                    signal_on(link->queue, link->withheld);
    sp_vk_semaphore_unref(link->withheld);
    link->withheld = NULL;
    return ok;
}

struct demo_producer_link demo_fd_producer_link(struct demo_fd_producer *self)
{
    return (struct demo_producer_link){
        .self = self,
        .queue = self->queue,
        .peer_is_there = fd_consumer_is_there,
        .await_release = fd_await_release,
        .publish = fd_publish,
        .signal_late = fd_signal_late,
    };
}

/* ---- Consumer ------------------------------------------------------------------------------ */

/* The two hooks, as a host renderer calls them around the import of a frame's image. */
static bool pass_hooks(struct demo_fd_consumer *link, int fd)
{
    const sp_mechanism mechanism = SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE;
    const sp_frame frame = {
        .size = sizeof frame,
        .kind = SP_FRAME_VULKAN_OPAQUE_FD,
        .semaphore_fd = fd,
        .adopt_fd = true,
    };
    const sp_texture texture = {.size = sizeof texture, .kind = SP_FRAME_VULKAN_OPAQUE_FD};
    if (!demo_sync_ok(sp_synchronizer_producer_complete(link->synchronizer, &frame, mechanism),
                      "sp_synchronizer_producer_complete")) {
        close(fd);
        return false;
    }
    return demo_sync_ok(sp_synchronizer_consumer_ready(link->synchronizer, &texture, mechanism),
                        "sp_synchronizer_consumer_ready");
}

static bool fd_producer_is_there(void *self)
{
    return socket_is_open(((struct demo_fd_consumer *)self)->socket);
}

static bool fd_await_frame(void *self, uint32_t frame, struct demo_arrival *arrival)
{
    struct demo_fd_consumer *link = self;
    struct wire_message message;
    int fd;
    if (!wire_expect(link->socket, WIRE_FRAME, DEMO_TIMEOUT_NS, &message, &fd))
        return false;
    if (message.frame != frame || message.slot != frame % DEMO_SLOTS) {
        tool_error("frame %u came where %u was due", message.frame, frame);
        close(fd);
        return false;
    }
    arrival->submitted_ns = message.time_ns;
    if (link->skip_wait) {
        close(fd);
        arrival->gate = sp_point_noop();
        return true;
    }
    return pass_hooks(link, fd) &&
           demo_sync_ok(sp_synchronizer_last_gate(link->synchronizer, &arrival->gate),
                        "sp_synchronizer_last_gate");
}

static bool fd_release(void *self, uint32_t frame)
{
    struct demo_fd_consumer *link = self;
    sp_vk_semaphore *semaphore;
    int fd;
    if (!create_exported(link->device, &semaphore, &fd))
        return false;
    struct wire_message message = {
        .type = WIRE_RELEASE,
        .frame = frame,
        .slot = frame % DEMO_SLOTS,
    };
    const bool ok = signal_on(link->queue, semaphore) && wire_say(link->socket, &message, fd);
    close(fd);
    sp_vk_semaphore_unref(semaphore);
    return ok;
}

static bool fd_report_stuck(void *self, uint32_t frame)
{
    struct demo_fd_consumer *link = self;
    struct wire_message message = {.type = WIRE_STUCK, .frame = frame};
    return wire_say(link->socket, &message, -1);
}

struct demo_consumer_link demo_fd_consumer_link(struct demo_fd_consumer *self)
{
    return (struct demo_consumer_link){
        .self = self,
        .queue = self->queue,
        .peer_is_there = fd_producer_is_there,
        .await_frame = fd_await_frame,
        .release = fd_release,
        .report_stuck = fd_report_stuck,
    };
}
