/* SPDX-License-Identifier: MIT
 *
 * The demo as one process: two threads share one device and its queue.
 */
#include "commands.h"
#include "demo_loops.h"
#include "demo_ring.h"

#include <stdio.h>

#define DESTROY_TIMEOUT_NS UINT64_C(3000000000)

struct producer_thread {
    const struct demo_options *options;
    struct demo_renderer *renderer;
    struct demo_thread_end end;
    bool ok;
};

static void *run_producer(void *user)
{
    struct producer_thread *thread = user;
    const struct demo_producer_link link = demo_thread_producer_link(&thread->end);
    thread->ok = demo_produce(thread->options, thread->renderer, &link);
    if (!thread->ok)
        demo_mailbox_close(thread->end.mailbox);
    return NULL;
}

static bool run_both(struct producer_thread *producer, struct demo_thread_end *consumer,
                     struct demo_result *result)
{
    const struct demo_consumer_link link = demo_thread_consumer_link(consumer);
    pthread_t thread;
    if (pthread_create(&thread, NULL, run_producer, producer) != 0) {
        tool_error("cannot start a thread");
        return false;
    }
    struct demo_renderer *renderer = producer->renderer;
    const bool ok =
        demo_consume(producer->options, renderer->gpu, renderer->images, false, &link, result);
    if (!ok)
        demo_mailbox_close(consumer->mailbox);
    pthread_join(thread, NULL);
    return ok && producer->ok;
}

/* Two sp_vk_queue over one VkQueue, one for each thread. */
static bool run_queues(const struct demo_options *options, struct demo_renderer *renderer,
                       struct demo_result *result)
{
    struct gpu *gpu = renderer->gpu;
    struct demo_mailbox mailbox;
    demo_mailbox_init(&mailbox);
    struct demo_thread_end consumer = {&mailbox, gpu_sync_queue(gpu)};
    struct producer_thread producer = {
        .options = options,
        .renderer = renderer,
        .end = {&mailbox, gpu_sync_queue(gpu)},
    };
    const bool ok = demo_gpu_ok(gpu, consumer.queue && producer.end.queue) &&
                    run_both(&producer, &consumer, result);
    demo_mailbox_destroy(&mailbox);
    return ok &&
           demo_sync_ok(sp_vk_queue_destroy(consumer.queue, DESTROY_TIMEOUT_NS),
                        "sp_vk_queue_destroy") &&
           demo_sync_ok(sp_vk_queue_destroy(producer.end.queue, DESTROY_TIMEOUT_NS),
                        "sp_vk_queue_destroy");
}

/* As in demo_two.c, the renderer comes before the first count. */
static bool run_ring(const struct demo_options *options, struct gpu *gpu,
                     const struct demo_ring *ring, struct demo_result *result)
{
    struct demo_renderer renderer;
    struct demo_handles handles;
    if (!demo_gpu_ok(gpu, demo_renderer_create(&renderer, gpu, ring->images, false)))
        return false;
    handles.before = demo_count_handles();
    if (!run_queues(options, &renderer, result))
        return false;
    handles.after = demo_count_handles();
    result->consumer_handles = handles;
    result->producer_handles = handles;
    demo_renderer_destroy(&renderer);
    return true;
}

bool demo_run_threads(const struct demo_options *options, const struct gpu_choice *choice,
                      struct gpu *gpu, struct demo_result *result)
{
    struct demo_ring ring = {0};
    if (!demo_gpu_ok(gpu, gpu_open(gpu, choice)) || !demo_ring_create(&ring, gpu, GPU_NOT_SHARED) ||
        !run_ring(options, gpu, &ring, result))
        return false;
    demo_ring_destroy(&ring, gpu);
    if (!demo_gpu_ok(gpu, gpu_close(gpu)))
        return false;
    result->validation_messages = atomic_load(&gpu->validation_messages);
    return true;
}
