/* SPDX-License-Identifier: MIT
 *
 * The demo as two processes. This one is the consumer, `syncpoint demo-producer` the other. After
 * a failure neither says another word to its driver, whose queue may be stuck behind a signal that
 * will never come: the process just ends.
 */
#include "commands.h"
#include "demo_loops.h"
#include "demo_options.h"
#include "demo_process.h"
#include "demo_ring.h"
#include "demo_wire.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#define DESTROY_TIMEOUT_NS UINT64_C(3000000000)

/* ---- Consumer ------------------------------------------------------------------------------ */

static bool greet(const struct gpu *gpu, int socket)
{
    struct wire_message message = {.type = WIRE_HELLO};
    memcpy(message.body.id, gpu->id, sizeof message.body.id);
    return wire_say(socket, &message, -1);
}

static bool create_synchronizer(sp_vk_queue *queue, sp_synchronizer **synchronizer)
{
    const sp_host host = {.size = sizeof host, .backend = SP_BACKEND_VULKAN, .queue = queue};
    return demo_sync_ok(sp_synchronizer_create_vulkan(&host, synchronizer),
                        "sp_synchronizer_create_vulkan");
}

static bool consume_ring(const struct demo_options *options, struct gpu *gpu,
                         const struct demo_ring *ring, int socket, struct demo_result *result)
{
    struct demo_fd_consumer end = {
        .socket = socket,
        .device = gpu->sync,
        .queue = gpu_sync_queue(gpu),
        .skip_wait = options->broken == DEMO_BREAK_NO_WAIT,
    };
    if (!demo_gpu_ok(gpu, end.queue != NULL) || !create_synchronizer(end.queue, &end.synchronizer))
        return false;
    const struct demo_consumer_link link = demo_fd_consumer_link(&end);
    return demo_consume(options, gpu, ring->images, true, &link, result) &&
           demo_sync_ok(sp_synchronizer_destroy(end.synchronizer, DESTROY_TIMEOUT_NS),
                        "sp_synchronizer_destroy") &&
           demo_sync_ok(sp_vk_queue_destroy(end.queue, DESTROY_TIMEOUT_NS), "sp_vk_queue_destroy");
}

static bool run_consumer(const struct demo_options *options, struct gpu *gpu, int socket,
                         struct demo_result *result)
{
    struct demo_ring ring = {0};
    struct wire_message done;
    int no_fd;
    if (!greet(gpu, socket) || !demo_ring_receive(&ring, gpu, socket))
        return false;
    result->consumer_handles.before = demo_count_handles();
    if (!consume_ring(options, gpu, &ring, socket, result))
        return false;
    result->consumer_handles.after = demo_count_handles();
    if (!wire_expect(socket, WIRE_DONE, DEMO_SETUP_TIMEOUT_NS, &done, &no_fd))
        return false;
    result->producer_handles = done.body.done.handles;
    result->validation_messages = done.body.done.validation_messages;
    demo_ring_destroy(&ring, gpu);
    if (!demo_gpu_ok(gpu, gpu_close(gpu)))
        return false;
    result->validation_messages += atomic_load(&gpu->validation_messages);
    return true;
}

bool demo_run_processes(const struct demo_options *options, const struct gpu_choice *choice,
                        char **argv, struct gpu *gpu, bool *unsupported, struct demo_result *result)
{
    struct demo_peer peer;
    /* Started first: so it inherits nothing of a driver. */
    if (!demo_peer_start(&peer, argv))
        return false;
    if (!gpu_open(gpu, choice) || !demo_can_share(gpu)) {
        *unsupported = true;
        demo_peer_end(&peer);
        return false;
    }
    const bool ok = run_consumer(options, gpu, peer.socket, result);
    const int status = demo_peer_end(&peer);
    if (ok && status != TOOL_EXIT_GOOD)
        tool_error("the producer did not end well");
    return ok && status == TOOL_EXIT_GOOD;
}

/* ---- Producer ------------------------------------------------------------------------------ */

static bool produce_all(const struct demo_options *options, struct demo_renderer *renderer,
                        int socket)
{
    struct gpu *gpu = renderer->gpu;
    struct demo_fd_producer end = {
        .socket = socket,
        .device = gpu->sync,
        .queue = gpu_sync_queue(gpu),
    };
    const struct demo_producer_link link = demo_fd_producer_link(&end);
    return demo_gpu_ok(gpu, end.queue != NULL) && demo_produce(options, renderer, &link) &&
           demo_sync_ok(sp_vk_queue_destroy(end.queue, DESTROY_TIMEOUT_NS), "sp_vk_queue_destroy");
}

/* The renderer comes before the first count of handles: a driver keeps some for its compiler. */
static bool produce_ring(const struct demo_options *options, struct gpu *gpu,
                         const struct demo_ring *ring, int socket, struct demo_handles *handles)
{
    struct demo_renderer renderer;
    if (!demo_gpu_ok(gpu, demo_renderer_create(&renderer, gpu, ring->images, true)))
        return false;
    handles->before = demo_count_handles();
    if (!produce_all(options, &renderer, socket))
        return false;
    handles->after = demo_count_handles();
    demo_renderer_destroy(&renderer);
    return true;
}

static bool run_producer(const struct demo_options *options, const uint8_t *id, int socket)
{
    struct gpu gpu;
    struct demo_ring ring = {0};
    struct demo_handles handles;
    const struct gpu_choice choice = {.id = id, .validate = options->validate};
    if (!demo_gpu_ok(&gpu, gpu_open(&gpu, &choice) && demo_can_share(&gpu)) ||
        !demo_ring_create(&ring, &gpu, GPU_EXPORT) || !demo_ring_send(&ring, &gpu, socket) ||
        !produce_ring(options, &gpu, &ring, socket, &handles))
        return false;
    demo_ring_destroy(&ring, &gpu);
    if (!demo_gpu_ok(&gpu, gpu_close(&gpu)))
        return false;
    struct wire_message message = {
        .type = WIRE_DONE,
        .body.done = {handles, atomic_load(&gpu.validation_messages)},
    };
    return wire_say(socket, &message, -1);
}

int sp_cmd_demo_producer(int argc, char **argv)
{
    struct demo_options options;
    int exit_status;
    tool_set_name("syncpoint (producer)");
    if (!demo_parse_options(argc, argv, &options, &exit_status))
        return TOOL_EXIT_FAILED;
    /* The consumer ends us by closing the socket; should a driver hold us, the kernel does. */
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    struct wire_message hello;
    int no_fd;
    const enum wire_status status =
        wire_receive(DEMO_PRODUCER_SOCKET, DEMO_SETUP_TIMEOUT_NS, &hello, &no_fd);
    if (status == WIRE_CLOSED)
        return TOOL_EXIT_GOOD; /* the consumer's device cannot do it, or it failed: it says so */
    if (status != WIRE_OK || hello.type != WIRE_HELLO) {
        tool_error("is started by `syncpoint demo`, not by hand");
        return TOOL_EXIT_FAILED;
    }
    if (run_producer(&options, hello.body.id, DEMO_PRODUCER_SOCKET))
        return TOOL_EXIT_GOOD;
    fflush(NULL);
    _exit(TOOL_EXIT_FAILED);
}
