/* SPDX-License-Identifier: MIT
 *
 * The Vulkan synchronizer: each frame's semaphore is imported for one wait, and the host's queue
 * waits for it in a submit of its own, so that everything the host submits later is behind it.
 */
#include "synchronizer.h"

#include "backends/vulkan/vk_internal.h"

#include <stdlib.h>

/* A semaphore for temporary imports. It may take the next one when its wait has run. */
typedef struct sync_gate {
    struct sync_gate *next;
    sp_vk_semaphore *semaphore;
    sp_point point; /* the wait it serves; NOOP before the first                                */
} sync_gate;

typedef struct vulkan_synchronizer {
    sp_synchronizer base;
    sp_vk_queue *queue;
    sync_gate
        *gates;      /* oldest wait first: waits of one queue end in order                        */
    sync_gate **end; /* where the next one is appended                                            */
    sp_point last;   /* the newest wait                                                           */
} vulkan_synchronizer;

static vulkan_synchronizer *vulkan_of(sp_synchronizer *synchronizer)
{
    return SP_CONTAINER_OF(synchronizer, vulkan_synchronizer, base);
}

static void free_gate(sync_gate *gate)
{
    sp_point_unref(&gate->point);
    sp_vk_semaphore_unref(gate->semaphore);
    free(gate);
}

static sp_status make_gate(vulkan_synchronizer *vulkan, sync_gate **out)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_BINARY,
    };
    sync_gate *made = calloc(1, sizeof(*made));
    if (!made)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "vulkan synchronizer: out of memory");
    sp_vk_device *device = sp_vk_queue_device(vulkan->queue);
    sp_status status = sp_vk_semaphore_create(device, &desc, &made->semaphore);
    if (status != SP_OK) {
        free(made);
        return status;
    }
    *out = made;
    return SP_OK;
}

/* A gate without a pending wait: the oldest one if its wait has run, else a new one. It is in no
 * list until append_gate(). */
static sp_status take_gate(vulkan_synchronizer *vulkan, sync_gate **out)
{
    sync_gate *oldest = vulkan->gates;
    if (!oldest || sp_poll(&oldest->point) != SP_OK)
        return make_gate(vulkan, out);
    vulkan->gates = oldest->next;
    if (!vulkan->gates)
        vulkan->end = &vulkan->gates;
    sp_point_unref(&oldest->point);
    *out = oldest;
    return SP_OK;
}

static void append_gate(vulkan_synchronizer *vulkan, sync_gate *gate)
{
    gate->next = NULL;
    *vulkan->end = gate;
    vulkan->end = &gate->next;
    sp_point_unref(&vulkan->last);
    vulkan->last = sp_point_ref(&gate->point);
}

/* The producer sends a frame after it has submitted the signal, so the point may say so. */
static sp_status pass_through(vulkan_synchronizer *vulkan, sync_gate *gate, int fd)
{
    sp_status status = sp_vk_semaphore_import_payload(
        gate->semaphore, VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT, fd);
    if (status == SP_OK)
        status = sp_vk_binary_point(gate->semaphore, 0, &gate->point);
    if (status == SP_OK)
        status = sp_vk_queue_wait(vulkan->queue, &gate->point);
    return status;
}

static sp_status vulkan_producer_complete(sp_synchronizer *synchronizer, const sp_frame *frame,
                                          sp_mechanism mechanism)
{
    vulkan_synchronizer *vulkan = vulkan_of(synchronizer);
    if (mechanism != SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE)
        return SP_OK;
    if (frame->kind != SP_FRAME_VULKAN_OPAQUE_FD)
        return sp_fail(SP_ERROR_INVALID_FRAME,
                       "the vulkan synchronizer takes vulkan-opaque-fd frames, this one is %s",
                       sp_frame_kind_name(frame->kind));
    if (frame->semaphore_fd < 0)
        return sp_fail(SP_ERROR_INVALID_HANDLE,
                       "the frame says explicit-external-semaphore and brings no semaphore_fd");
    sync_gate *gate = NULL;
    sp_status status = take_gate(vulkan, &gate);
    if (status != SP_OK)
        return status;
    status = pass_through(vulkan, gate, frame->semaphore_fd);
    if (status != SP_OK) {
        /* Whatever was imported goes with the semaphore; the caller's fd still holds the signal,
         * so the same frame can be given again. */
        free_gate(gate);
        return status;
    }
    append_gate(vulkan, gate);
    return SP_OK;
}

static sp_status vulkan_consumer_ready(sp_synchronizer *synchronizer, const sp_texture *texture,
                                       sp_mechanism mechanism)
{
    (void)synchronizer;
    if (mechanism != SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE ||
        texture->kind == SP_FRAME_VULKAN_OPAQUE_FD)
        return SP_OK;
    return sp_fail(SP_ERROR_INVALID_FRAME,
                   "the vulkan synchronizer takes vulkan-opaque-fd textures, this one is %s",
                   sp_frame_kind_name(texture->kind));
}

static void vulkan_last_gate(sp_synchronizer *synchronizer, sp_point *out)
{
    *out = sp_point_ref(&vulkan_of(synchronizer)->last);
}

/* Waits of one queue end in order: the newest speaks for all. A failure means that the device is
 * lost or gone, and nothing is pending on it. */
static sp_status vulkan_finish(sp_synchronizer *synchronizer, uint64_t timeout_ns)
{
    sp_status status = sp_wait_timeout(&vulkan_of(synchronizer)->last, timeout_ns);
    return status > 0 ? SP_TIMEOUT : SP_OK;
}

static void vulkan_release(sp_synchronizer *synchronizer)
{
    vulkan_synchronizer *vulkan = vulkan_of(synchronizer);
    while (vulkan->gates) {
        sync_gate *gate = vulkan->gates;
        vulkan->gates = gate->next;
        free_gate(gate);
    }
    sp_point_unref(&vulkan->last);
}

static const sp_synchronizer_ops vulkan_ops = {
    .name = "vulkan",
    .takes = SP_TAKES(SP_MECHANISM_NONE) | SP_TAKES(SP_MECHANISM_IMPLICIT_GL_FLUSH) |
             SP_TAKES(SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE),
    .producer_complete = vulkan_producer_complete,
    .consumer_ready = vulkan_consumer_ready,
    .last_gate = vulkan_last_gate,
    .finish = vulkan_finish,
    .release = vulkan_release,
};

sp_status sp_synchronizer_create_vulkan(const sp_host *host, sp_synchronizer **out)
{
    SP_CHECK_ARGUMENT(host && out, "host and out are required");
    SP_CHECK_SIZE(host);
    if (host->backend != SP_BACKEND_VULKAN)
        return sp_fail(SP_ERROR_BACKEND_MISMATCH,
                       "the vulkan synchronizer serves a Vulkan host, this one renders with %s",
                       sp_backend_name(host->backend));
    SP_CHECK_ARGUMENT(host->queue, "host->queue is required: the host's sp_vk_queue");
    sp_vk_semaphore_caps caps = {.size = sizeof(caps)};
    sp_status status =
        sp_vk_device_semaphore_caps(sp_vk_queue_device(host->queue), VK_SEMAPHORE_TYPE_BINARY,
                                    VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT, &caps);
    if (status != SP_OK)
        return status;
    if (!caps.can_import)
        return sp_fail(SP_ERROR_NOT_SUPPORTED, "the host's device cannot import opaque fds: %s",
                       caps.why_not ? caps.why_not : "no reason known");
    sp_synchronizer *made = sp_synchronizer_allocate(sizeof(vulkan_synchronizer), &vulkan_ops);
    if (!made)
        return SP_ERROR_OUT_OF_MEMORY;
    vulkan_synchronizer *vulkan = vulkan_of(made);
    vulkan->queue = host->queue;
    vulkan->end = &vulkan->gates;
    *out = made;
    return SP_OK;
}
