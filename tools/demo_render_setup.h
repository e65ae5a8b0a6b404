/* SPDX-License-Identifier: MIT
 *
 * What the two shaders get, as demo_picture.comp and demo_delay.comp declare it.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_RENDER_SETUP_H
#define SYNCPOINT_TOOLS_DEMO_RENDER_SETUP_H

#include <stdint.h>

struct render_push {
    uint32_t frame;
    uint32_t width;
    uint32_t height;
    uint32_t iterations;
};

enum { RENDER_BINDING_PICTURE = 0, RENDER_BINDING_DELAY_RESULT = 1 };
#define RENDER_DELAY_RESULT_SIZE (32 * sizeof(uint32_t))

#endif
