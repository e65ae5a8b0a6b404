// SPDX-License-Identifier: MIT
// Renders one frame of the demo's picture.
#version 450
#extension GL_GOOGLE_include_directive : require

#define PICTURE_FUNCTION
#include "demo_picture.inc"

layout(local_size_x = 16, local_size_y = 4) in;
layout(set = 0, binding = 0, rgba8ui) uniform writeonly uimage2D picture;
layout(push_constant) uniform Push {
    uint frame;
    uint width;
    uint height;
    uint iterations;
} push;

void main()
{
    uvec2 at = gl_GlobalInvocationID.xy;
    if (at.x >= push.width || at.y >= push.height)
        return;
    uint pixel = picture_pixel(push.frame, at.x, at.y, push.width, push.height);
    imageStore(picture, ivec2(at),
               uvec4(pixel & 255u, pixel >> 8 & 255u, pixel >> 16 & 255u, pixel >> 24));
}
