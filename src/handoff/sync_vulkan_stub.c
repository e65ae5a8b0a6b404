/* SPDX-License-Identifier: MIT */
#include "synchronizer.h"

sp_status sp_synchronizer_create_vulkan(const sp_host *host, sp_synchronizer **out)
{
    SP_CHECK_ARGUMENT(host && out, "host and out are required");
    return sp_fail(SP_ERROR_NOT_SUPPORTED, "this library was built without the Vulkan backend");
}
