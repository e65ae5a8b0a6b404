/* SPDX-License-Identifier: MIT
 *
 * A Vulkan device on the GPU of the CUDA context, whose semaphores go to CUDA as opaque fds.
 */
#ifndef TESTS_CUDA_CU_VULKAN_H
#define TESTS_CUDA_CU_VULKAN_H

#include <stdbool.h>
#include <syncpoint/syncpoint.h>

/* Opens the device of that UUID once. Skips the case if there is none. */
void cu_vulkan_open(const uint8_t uuid[16]);
/* Once nothing uses it any more. */
void cu_vulkan_close(void);

void *cu_vulkan_make(bool timeline); /* exportable */
void cu_vulkan_destroy(void *semaphore);
int cu_vulkan_export(void *semaphore);
void cu_vulkan_signal(void *semaphore, uint64_t value); /* 0: a binary, by a submit */
uint64_t cu_vulkan_value(void *semaphore);
/* A point of the library's Vulkan backend. */
sp_point cu_vulkan_point(void *timeline, uint64_t value);

#endif
