/* SPDX-License-Identifier: MIT */
#include "demo_ring.h"

#include "commands.h"
#include "demo_wire.h"

#include <stdio.h>
#include <unistd.h>

static bool can_share_semaphores(struct gpu *gpu)
{
    sp_vk_semaphore_caps caps = {.size = sizeof caps};
    if (!gpu_check_sync(gpu,
                        sp_vk_device_semaphore_caps(gpu->sync, VK_SEMAPHORE_TYPE_BINARY,
                                                    VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
                                                    &caps),
                        "sp_vk_device_semaphore_caps"))
        return false;
    if (caps.can_export && caps.can_import)
        return true;
    snprintf(gpu->problem, sizeof gpu->problem, "%s cannot share semaphores as opaque fds: %s",
             gpu->device_name, caps.why_not);
    return false;
}

bool demo_can_share(struct gpu *gpu)
{
    return can_share_semaphores(gpu) && gpu_can_share_images(gpu);
}

bool demo_ring_create(struct demo_ring *ring, struct gpu *gpu, enum gpu_sharing sharing)
{
    for (uint32_t slot = 0; slot < DEMO_SLOTS; slot++) {
        if (!demo_gpu_ok(gpu, gpu_image_create(gpu, sharing, -1, &ring->images[slot])))
            return false;
    }
    return true;
}

bool demo_ring_send(const struct demo_ring *ring, struct gpu *gpu, int socket)
{
    for (uint32_t slot = 0; slot < DEMO_SLOTS; slot++) {
        const struct gpu_image *image = &ring->images[slot];
        const int fd = gpu_image_export(gpu, image);
        if (!demo_gpu_ok(gpu, fd >= 0))
            return false;
        struct wire_message message = {
            .type = WIRE_IMAGE,
            .slot = slot,
            .body.image = {image->memory_size, image->memory_type, DEMO_WIDTH, DEMO_HEIGHT,
                           GPU_IMAGE_FORMAT},
        };
        const bool sent = wire_say(socket, &message, fd);
        close(fd);
        if (!sent)
            return false;
    }
    return true;
}

static bool import_image(struct demo_ring *ring, struct gpu *gpu,
                         const struct wire_message *message, int fd)
{
    struct gpu_image *image = &ring->images[message->slot];
    image->memory_size = message->body.image.memory_size;
    image->memory_type = message->body.image.memory_type;
    return demo_gpu_ok(gpu, gpu_image_create(gpu, GPU_IMPORT, fd, image));
}

bool demo_ring_receive(struct demo_ring *ring, struct gpu *gpu, int socket)
{
    for (uint32_t slot = 0; slot < DEMO_SLOTS; slot++) {
        struct wire_message message;
        int fd;
        if (!wire_expect(socket, WIRE_IMAGE, DEMO_SETUP_TIMEOUT_NS, &message, &fd))
            return false;
        if (message.slot != slot || message.body.image.width != DEMO_WIDTH ||
            message.body.image.height != DEMO_HEIGHT ||
            message.body.image.format != GPU_IMAGE_FORMAT) {
            tool_error("the other process has another ring");
            close(fd);
            return false;
        }
        if (!import_image(ring, gpu, &message, fd))
            return false;
    }
    return true;
}

void demo_ring_destroy(struct demo_ring *ring, struct gpu *gpu)
{
    for (uint32_t slot = 0; slot < DEMO_SLOTS; slot++)
        gpu_image_destroy(gpu, &ring->images[slot]);
}
