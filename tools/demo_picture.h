/* SPDX-License-Identifier: MIT
 *
 * What each frame of the demo must look like, as the CPU knows it.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_PICTURE_H
#define SYNCPOINT_TOOLS_DEMO_PICTURE_H

#include <stddef.h>
#include <stdint.h>

#define DEMO_WIDTH 320u
#define DEMO_HEIGHT 180u
#define DEMO_PIXELS ((size_t)DEMO_WIDTH * DEMO_HEIGHT)

/* Compares every one of the DEMO_PIXELS pixels with the frame's. Returns how many differ. */
uint32_t demo_picture_differences(const uint32_t *pixels, uint32_t frame);

#endif
