/* SPDX-License-Identifier: MIT
 *
 * The example of the README, as it stands there.
 */
#include "vk_case.h"

static unsigned complaints;

/* What the example calls by name is the fixture's, and what it prints is counted. */
VKAPI_ATTR PFN_vkVoidFunction VKAPI_CALL vkGetInstanceProcAddr(VkInstance instance,
                                                               const char *name)
{
    return vk.get_instance_proc_addr(instance, name);
}

#include <stdio.h>
#define fprintf(...) (complaints++)
void hand_over(VkInstance instance, VkPhysicalDevice gpu, VkDevice vk_device, VkQueue render,
               VkQueue present);
#include "readme_example.h"
#undef fprintf

static void run_example(uint32_t version)
{
    vk_options with = *options;
    with.api_version = version;
    vk_open(&vk, &with);
    hand_over(vk.instance, vk.physical_device, vk.device, vk.queue, vk.queue);
    CHECK_EQUAL(complaints, 0);
    vk_close(&vk);
}

TEST(example_on_vulkan_1_1)
{
    run_example(VK_API_VERSION_1_1);
}

TEST(example_on_vulkan_1_2)
{
    run_example(VK_API_VERSION_1_2);
}

TEST(example_on_vulkan_1_3)
{
    run_example(VK_API_VERSION_1_3);
}
