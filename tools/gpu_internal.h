/* SPDX-License-Identifier: MIT
 *
 * The two steps of gpu_open(); each sets gpu->problem on failure.
 */
#ifndef SYNCPOINT_TOOLS_GPU_INTERNAL_H
#define SYNCPOINT_TOOLS_GPU_INTERNAL_H

#include "gpu.h"

/* Loader, instance, and the physical device that was chosen. */
bool gpu_open_instance(struct gpu *gpu, const struct gpu_choice *choice);
void gpu_close_instance(struct gpu *gpu);

/* Device, queue, and the library's view. */
bool gpu_open_device(struct gpu *gpu);

#endif
