/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "demo_loops.h"
#include "demo_readback.h"
#include "demo_sheet.h"

#include <stdio.h>
#include <unistd.h>

/* One run of the consumer's loop. */
struct consumer {
    const struct demo_options *options;
    const struct demo_consumer_link *link;
    const struct gpu_image *images;
    struct gpu *gpu;
    struct demo_readback readback;
    struct demo_result *result;
    bool show_progress;
};

/* Behind the gate, if there is one, as all that is submitted now. */
static bool submit_copy(struct consumer *consumer, uint32_t frame, sp_point *copied)
{
    const struct demo_consumer_link *link = consumer->link;
    const struct gpu_image *image = &consumer->images[frame % DEMO_SLOTS];
    return demo_gpu_ok(consumer->gpu, demo_readback_submit(&consumer->readback, image)) &&
           link->release(link->self, frame) &&
           demo_sync_ok(sp_vk_queue_signal(link->queue, copied), "sp_vk_queue_signal");
}

static void note_latency(struct demo_result *result, const struct demo_arrival *arrival)
{
    if (arrival->gate.kind != SP_KIND_NOOP)
        result->latencies_ns[result->latency_count++] = sp_now_ns() - arrival->submitted_ns;
}

static void check_pixels(struct consumer *consumer, uint32_t frame)
{
    struct demo_result *result = consumer->result;
    const uint32_t *pixels = demo_readback_pixels(&consumer->readback);
    const uint32_t torn = demo_picture_differences(pixels, frame);
    result->frames++;
    result->torn_frames += torn > 0;
    result->torn_pixels += torn;
    demo_sheet_add(&result->sheet, consumer->options->frames, frame, pixels, torn > 0);
}

/* The frame's signal does not come. The queue must stand still: the wait runs out, and the copy's
 * target still holds the frame before. Then the producer is asked for the signal, so that the
 * queue can be let go of in order. */
static bool sit_out(struct consumer *consumer, uint32_t frame, const struct demo_arrival *arrival)
{
    const struct demo_consumer_link *link = consumer->link;
    struct demo_result *result = consumer->result;
    const sp_status status = sp_wait_timeout(&arrival->gate, DEMO_WITHHELD_WAIT_NS);
    if (status != SP_OK && status != SP_TIMEOUT)
        return demo_sync_ok(status, "waiting for a gate that must not open");
    const uint32_t *pixels = demo_readback_pixels(&consumer->readback);
    result->withheld_timed_out =
        status == SP_TIMEOUT && demo_picture_differences(pixels, frame - 1) == 0;
    return link->report_stuck(link->self, frame);
}

static bool consume_arrival(struct consumer *consumer, uint32_t frame,
                            const struct demo_arrival *arrival, sp_point *copied)
{
    const struct demo_consumer_link *link = consumer->link;
    const bool withheld =
        consumer->options->broken == DEMO_BREAK_NO_SIGNAL && frame == DEMO_WITHHELD_FRAME;
    if (!submit_copy(consumer, frame, copied))
        return false;
    if (withheld && !sit_out(consumer, frame, arrival))
        return false;
    if (!demo_wait(&arrival->gate, "waiting for the producer's frame", link->peer_is_there,
                   link->self))
        return false;
    if (!withheld)
        note_latency(consumer->result, arrival);
    if (!demo_wait(copied, "waiting for the copy", link->peer_is_there, link->self))
        return false;
    consumer->result->withheld_resolved = withheld;
    check_pixels(consumer, frame);
    return true;
}

static bool consume_frame(struct consumer *consumer, uint32_t frame)
{
    const struct demo_consumer_link *link = consumer->link;
    struct demo_arrival arrival = {.gate = sp_point_noop()};
    sp_point copied = sp_point_noop();
    const bool ok = link->await_frame(link->self, frame, &arrival) &&
                    consume_arrival(consumer, frame, &arrival, &copied);
    sp_point_unref(&copied);
    sp_point_unref(&arrival.gate);
    return ok;
}

static void show_progress(const struct consumer *consumer, uint32_t done)
{
    const uint32_t all = consumer->options->frames;
    if (consumer->show_progress && (done % 10 == 0 || done == all))
        fprintf(stderr, "\rframe %u of %u%s", done, all, done == all ? "\r\033[K" : "");
}

static bool run(struct consumer *consumer)
{
    struct demo_result *result = consumer->result;
    consumer->show_progress = isatty(STDERR_FILENO);
    uint64_t start = 0;
    for (uint32_t frame = 0; frame < consumer->options->frames; frame++) {
        if (!consume_frame(consumer, frame))
            return false;
        /* The first one waits for the producer to start its driver. */
        if (frame == 0)
            start = sp_now_ns();
        show_progress(consumer, frame + 1);
    }
    result->elapsed_ns = sp_now_ns() - start;
    return true;
}

bool demo_consume(const struct demo_options *options, struct gpu *gpu,
                  const struct gpu_image *images, bool from_other_process,
                  const struct demo_consumer_link *link, struct demo_result *result)
{
    struct consumer consumer = {
        .options = options,
        .link = link,
        .images = images,
        .gpu = gpu,
        .result = result,
    };
    if (!demo_gpu_ok(gpu, demo_readback_create(&consumer.readback, gpu, from_other_process)) ||
        !run(&consumer))
        return false;
    demo_readback_destroy(&consumer.readback);
    return true;
}
