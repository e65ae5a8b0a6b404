/* SPDX-License-Identifier: MIT */
#ifndef SP_TOOLS_INFO_VULKAN_H
#define SP_TOOLS_INFO_VULKAN_H

#include <jansson.h>

void info_vulkan_print(const json_t *section);

/* One result of a device, "" if it has none. `why` is optional. Borrowed strings, never NULL. */
const char *info_vulkan_result(const json_t *device, const char *kind, const char *cell,
                               const char **why);

#endif
