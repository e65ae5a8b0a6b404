/* SPDX-License-Identifier: MIT
 *
 * Between hook.c and hook_submit.c.
 */
#ifndef TESTS_DOUBLES_HOOK_PRIVATE_H
#define TESTS_DOUBLES_HOOK_PRIVATE_H

#include "hook.h"

void hook_count(hook_id id);
/* Counts a call that can fail. What is to be injected, or VK_SUCCESS. */
VkResult hook_step(hook_id id);
PFN_vkVoidFunction hook_replacement(hook_id id);

VKAPI_ATTR VkResult VKAPI_CALL hook_on_QueueSubmit(VkQueue queue, uint32_t count,
                                                   const VkSubmitInfo *submits, VkFence fence);
VKAPI_ATTR VkResult VKAPI_CALL hook_on_QueueSubmit2(VkQueue queue, uint32_t count,
                                                    const VkSubmitInfo2 *submits, VkFence fence);

#endif
