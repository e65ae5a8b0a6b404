/* SPDX-License-Identifier: MIT
 * Finds the Vulkan drivers of this machine, without loading any. */
#ifndef SP_TOOLS_VK_PROBE_ICD_H
#define SP_TOOLS_VK_PROBE_ICD_H

#include <stdbool.h>
#include <stddef.h>

typedef struct vkp_icd {
    char *path;         /* the driver's JSON file, made absolute */
    const char *origin; /* a constant: what named it            */
} vkp_icd;

typedef struct vkp_icd_list {
    vkp_icd *items;
    size_t count;
} vkp_icd_list;

/* The files that the loader would look at: VK_DRIVER_FILES or VK_ICD_FILENAMES if set, else the
 * standard folders; then VK_ADD_DRIVER_FILES, and every SP_TEST_<NAME>_ICD. Each file once.
 * Returns false without memory; the list is to be freed in any case. */
bool vkp_find_icds(vkp_icd_list *list);
void vkp_free_icds(vkp_icd_list *list);

/* Makes this driver the only one that the loader will see in this process. Call it before the
 * loader is opened. */
void vkp_use_icd(const char *path);

#endif
