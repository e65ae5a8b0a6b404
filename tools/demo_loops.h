/* SPDX-License-Identifier: MIT
 *
 * The two loops of the demo. Each prints what went wrong and returns false.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_LOOPS_H
#define SYNCPOINT_TOOLS_DEMO_LOOPS_H

#include "demo_link.h"
#include "demo_render.h"
#include "gpu_image.h"

/* Renders all frames and gives them away; returns when the last slot has come back. */
bool demo_produce(const struct demo_options *options, struct demo_renderer *renderer,
                  const struct demo_producer_link *link);

/* Takes all frames, copies each and checks it, gives the slots back; returns when all is done. */
bool demo_consume(const struct demo_options *options, struct gpu *gpu,
                  const struct gpu_image *images, bool from_other_process,
                  const struct demo_consumer_link *link, struct demo_result *result);

#endif
