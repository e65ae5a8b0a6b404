/* SPDX-License-Identifier: MIT
 *
 * The ring of images that both processes see.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_RING_H
#define SYNCPOINT_TOOLS_DEMO_RING_H

#include "demo.h"
#include "gpu_image.h"

struct demo_ring {
    struct gpu_image images[DEMO_SLOTS];
};

/* Can this device do it: share images and binary semaphores as opaque fds? If not, gpu->problem
 * says why. */
bool demo_can_share(struct gpu *gpu);

/* Makes the images; sends their memory; gets and imports it. Each prints what went wrong. */
bool demo_ring_create(struct demo_ring *ring, struct gpu *gpu, enum gpu_sharing sharing);
bool demo_ring_send(const struct demo_ring *ring, struct gpu *gpu, int socket);
bool demo_ring_receive(struct demo_ring *ring, struct gpu *gpu, int socket);
void demo_ring_destroy(struct demo_ring *ring, struct gpu *gpu);

#endif
