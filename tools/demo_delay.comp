// SPDX-License-Identifier: MIT
// Keeps the queue busy: what --slow runs before each frame. It writes its result, so that no
// compiler may leave the loop out.
#version 450

layout(local_size_x = 32) in;
layout(set = 0, binding = 1) buffer Result {
    uint values[32];
} result;
layout(push_constant) uniform Push {
    uint frame;
    uint width;
    uint height;
    uint iterations;
} push;

void main()
{
    uint value = gl_LocalInvocationIndex + push.frame + 1u;
    for (uint i = 0u; i < push.iterations; i++) {
        value ^= value << 13;
        value ^= value >> 17;
        value ^= value << 5;
    }
    result.values[gl_LocalInvocationIndex] = value;
}
