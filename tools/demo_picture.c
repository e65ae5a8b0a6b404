/* SPDX-License-Identifier: MIT */
#include "demo_picture.h"

#include <sys/types.h> /* uint: the name that GLSL has for it, too */

#define PICTURE_FUNCTION static
#include "demo_picture.inc"

uint32_t demo_picture_differences(const uint32_t *pixels, uint32_t frame)
{
    uint32_t differences = 0;
    for (uint32_t y = 0; y < DEMO_HEIGHT; y++) {
        for (uint32_t x = 0; x < DEMO_WIDTH; x++) {
            const uint32_t expected = picture_pixel(frame, x, y, DEMO_WIDTH, DEMO_HEIGHT);
            differences += pixels[y * DEMO_WIDTH + x] != expected;
        }
    }
    return differences;
}
