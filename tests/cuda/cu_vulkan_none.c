/* SPDX-License-Identifier: MIT
 *
 * In a build without Vulkan: the driver has no peer.
 */
#include "cu_vulkan.h"

#include "support/test.h"

void cu_vulkan_open(const uint8_t uuid[16])
{
    (void)uuid;
    test_skip("built without Vulkan, which makes the driver's semaphores");
}

void cu_vulkan_close(void) {}

void *cu_vulkan_make(bool timeline)
{
    (void)timeline;
    return NULL;
}

void cu_vulkan_destroy(void *semaphore)
{
    (void)semaphore;
}

int cu_vulkan_export(void *semaphore)
{
    (void)semaphore;
    return -1;
}

void cu_vulkan_signal(void *semaphore, uint64_t value)
{
    (void)semaphore;
    (void)value;
}

uint64_t cu_vulkan_value(void *semaphore)
{
    (void)semaphore;
    return 0;
}

sp_point cu_vulkan_point(void *timeline, uint64_t value)
{
    (void)timeline;
    (void)value;
    return sp_point_noop();
}
