/* SPDX-License-Identifier: MIT */
#include "cu_peer.h"

#include "cu_vulkan.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

static unsigned peers; /* of the driver, alive */

static void init_on_driver(cu_peer *peer)
{
    sp_cuda_caps caps = {.size = sizeof(caps)};
    CHECK_STATUS(sp_cuda_context_caps(ctx.sp, &caps), SP_OK);
    CHECK(caps.has_uuid);
    cu_vulkan_open(caps.device_uuid);
    peer->handle = cu_vulkan_make(peer->timeline);
    peers++;
}

void peer_init(cu_peer *peer, bool timeline)
{
    *peer = (cu_peer){.timeline = timeline, .fd = -1};
    if (!cu_control) {
        init_on_driver(peer);
        return;
    }
    peer->fd = cu_control->make_fd(timeline);
    peer->handle = cu_control->handle_of_fd(peer->fd);
}

void peer_exported(cu_peer *peer)
{
    if (peer->fd >= 0)
        close(peer->fd);
    peer->fd = -1;
}

void peer_fini(cu_peer *peer)
{
    peer_exported(peer);
    if (cu_control)
        return;
    cu_vulkan_destroy(peer->handle);
    if (--peers == 0)
        cu_vulkan_close();
}

int peer_export(cu_peer *peer)
{
    int fd = cu_control ? fcntl(peer->fd, F_DUPFD_CLOEXEC, 0) : cu_vulkan_export(peer->handle);
    CHECK(fd >= 0);
    return fd;
}

void peer_signal(cu_peer *peer, uint64_t value)
{
    if (cu_control)
        cu_control->signal_handle(peer->handle, value);
    else
        cu_vulkan_signal(peer->handle, value);
}

uint64_t peer_value(cu_peer *peer)
{
    return cu_control ? cu_control->value_of_handle(peer->handle) : cu_vulkan_value(peer->handle);
}

/* ---- An origin on the double: a counter that reads the semaphore ---- */

typedef struct reader {
    sp_waiter base;
    cu_peer *peer;
} reader;

static sp_status reader_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    *reached = peer_value(((reader *)waiter)->peer);
    return SP_OK;
}

static void reader_destroy(sp_waiter *waiter)
{
    free(waiter);
}

static const sp_waiter_ops reader_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_COUNTING,
    .backend = SP_BACKEND_CUSTOM,
    .name = "the double's timeline",
    .probe = reader_probe,
    .destroy = reader_destroy,
};

sp_point peer_origin(cu_peer *peer)
{
    if (!cu_control)
        return cu_vulkan_point(peer->handle, 1);
    reader *made = calloc(1, sizeof(*made));
    sp_point point = {0};
    made->peer = peer;
    CHECK_STATUS(sp_waiter_init(&made->base, &reader_ops), SP_OK);
    CHECK_STATUS(sp_point_custom(&made->base, 1, NULL, &point), SP_OK);
    sp_waiter_unref(&made->base);
    return point;
}

/* ---- Points ---- */

sp_cuda_semaphore *peer_import(cu_peer *peer, const sp_point *origin)
{
    const sp_cuda_semaphore_import_desc desc = {
        .size = sizeof(desc),
        .type = peer->timeline ? SP_CUDA_TIMELINE_FD : SP_CUDA_BINARY_FD,
        .fd = peer_export(peer),
        .adopt = true,
        .origin = origin,
    };
    sp_cuda_semaphore *made = NULL;
    CHECK_STATUS(sp_cuda_semaphore_import(ctx.sp, &desc, &made), SP_OK);
    CHECK(!census_is_open(desc.fd));
    return made;
}

static void send(void *user)
{
    late_peer *late = user;
    flag_set(&late->sent);
    peer_signal(late->peer, late->value);
}

void peer_signal_late(late_peer *late, cu_peer *peer, uint64_t value)
{
    *late = (late_peer){.peer = peer, .value = value};
    worker_start(&late->worker, DELAY_MS, send, late);
}

void peer_join_not_early(late_peer *late)
{
    CHECK(flag_is_set(&late->sent));
    worker_join(&late->worker);
}

sp_point timeline_point(sp_cuda_semaphore *timeline, uint64_t value)
{
    sp_point point = {0};
    CHECK_STATUS(sp_cuda_timeline_point(timeline, value, &point), SP_OK);
    return point;
}

sp_point binary_point(sp_cuda_semaphore *binary, uint32_t flags)
{
    sp_point point = {0};
    CHECK_STATUS(sp_cuda_binary_point(binary, 0, flags, &point), SP_OK);
    return point;
}

sp_point stream_signals(CUstream stream, sp_cuda_semaphore *semaphore, uint64_t value)
{
    sp_point point = {0};
    CHECK_STATUS(sp_cuda_stream_signal_semaphore(ctx.sp, stream, semaphore, value, &point), SP_OK);
    return point;
}
