/* SPDX-License-Identifier: MIT */
#include "demo_loops.h"

/* One run of the producer's loop. */
struct producer {
    const struct demo_options *options;
    const struct demo_producer_link *link;
    struct demo_renderer *renderer;
    sp_point rendered[DEMO_SLOTS]; /* the last work that used the slot's command buffer */
};

static bool is_withheld(const struct demo_options *options, uint32_t frame)
{
    return options->broken == DEMO_BREAK_NO_SIGNAL && frame == DEMO_WITHHELD_FRAME;
}

static bool mark_rendered(struct producer *producer, uint32_t slot)
{
    sp_point_unref(&producer->rendered[slot]);
    return demo_sync_ok(sp_vk_queue_signal(producer->link->queue, &producer->rendered[slot]),
                        "sp_vk_queue_signal");
}

static bool produce_frame(struct producer *producer, uint32_t frame)
{
    const struct demo_producer_link *link = producer->link;
    const uint32_t slot = frame % DEMO_SLOTS;
    /* Two different waits: the queue waits for the consumer to be done with the image, the host
     * for the device to be done with the command buffer that it is about to record anew. */
    if (frame >= DEMO_SLOTS && !link->await_release(link->self, frame - DEMO_SLOTS))
        return false;
    if (!demo_wait(&producer->rendered[slot], "waiting for the slot's last rendering",
                   link->peer_is_there, link->self))
        return false;
    return demo_gpu_ok(producer->renderer->gpu, demo_renderer_submit(producer->renderer, frame)) &&
           link->publish(link->self, frame, !is_withheld(producer->options, frame)) &&
           mark_rendered(producer, slot);
}

/* Every slot back, and every submit done. */
static bool finish(struct producer *producer)
{
    const struct demo_producer_link *link = producer->link;
    const uint32_t frames = producer->options->frames;
    if (is_withheld(producer->options, frames - 1)) {
        if (!link->signal_late(link->self, frames - 1))
            return false;
    } else {
        for (uint32_t f = frames < DEMO_SLOTS ? 0 : frames - DEMO_SLOTS; f < frames; f++) {
            if (!link->await_release(link->self, f))
                return false;
        }
    }
    return mark_rendered(producer, 0) &&
           demo_wait(&producer->rendered[0], "waiting for the last slot", link->peer_is_there,
                     link->self);
}

static bool run(struct producer *producer)
{
    for (uint32_t frame = 0; frame < producer->options->frames; frame++) {
        if (!produce_frame(producer, frame))
            return false;
    }
    return finish(producer);
}

bool demo_produce(const struct demo_options *options, struct demo_renderer *renderer,
                  const struct demo_producer_link *link)
{
    struct producer producer = {.options = options, .link = link, .renderer = renderer};
    if (options->slow &&
        !demo_gpu_ok(renderer->gpu, demo_renderer_slow_down(renderer, link->queue)))
        return false;
    const bool ok = run(&producer);
    for (uint32_t slot = 0; slot < DEMO_SLOTS; slot++)
        sp_point_unref(&producer.rendered[slot]);
    return ok;
}
