/* SPDX-License-Identifier: MIT
 * What `syncpoint info` is made of: each backend that has drivers brings one section. */
#ifndef SP_TOOLS_INFO_H
#define SP_TOOLS_INFO_H

#include <jansson.h>
#include <stdbool.h>

typedef struct info_section {
    const char *backend; /* as sp_backend_name() */

    /* Looks for drivers and tries them. Returns a new reference to an object that has at least
     * "devices", a number, and "results", how many of each result; NULL without memory. What
     * drivers print is let through if `verbose`. */
    json_t *(*gather)(bool verbose);

    /* The same as text, to stdout. */
    void (*print)(const json_t *section);
} info_section;

extern const info_section info_vulkan;
extern const info_section info_opengl; /* each only where its backend is built */
extern const info_section info_opencl;
extern const info_section info_cuda;

#endif
