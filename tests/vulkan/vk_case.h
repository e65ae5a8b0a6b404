/* SPDX-License-Identifier: MIT
 *
 * What the Vulkan test programs share: a device of the target's, with the library on it, behind
 * the double of doubles/hook.h.
 */
#ifndef TESTS_VULKAN_VK_CASE_H
#define TESTS_VULKAN_VK_CASE_H

#include "doubles/hook.h"
#include "support/census.h"
#include "support/test.h"
#include "support/threads.h"
#include "support/vk_fixture.h"

extern const vk_options *options; /* the target's */
extern vk_context vk;

void start(void);  /* opens both */
void finish(void); /* closes both, with all that is checked then */

sp_vk_semaphore *make_timeline(uint64_t initial);
sp_vk_semaphore *make_binary(void);
sp_vk_semaphore *make_exportable(vk_context *on);
sp_vk_semaphore *wrap(VkSemaphore semaphore, VkSemaphoreType type, bool take);
sp_point timeline_point(sp_vk_semaphore *timeline, uint64_t value);
sp_point binary_point(sp_vk_semaphore *binary, uint32_t flags);
/* Signals on the library's queue, NULL for no point. */
sp_point queue_signals(sp_vk_semaphore *semaphore, uint64_t value);
uint64_t value_of(sp_vk_semaphore *timeline);
/* An fd for the binary's payload. */
int export_fd(sp_vk_semaphore *semaphore);
sp_vk_semaphore *import_fd(vk_context *into, int fd, bool temporary);

/* How many submits the library has made. */
unsigned submits(void);

/* Signals a timeline from the host, DELAY_MS from now. */
typedef struct late_host_signal {
    worker worker;
    sp_vk_semaphore *timeline;
    uint64_t value;
    flag sent;
} late_host_signal;
void signal_late(late_host_signal *late, sp_vk_semaphore *timeline, uint64_t value);
void join_not_early(late_host_signal *late);

#endif
