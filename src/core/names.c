/* SPDX-License-Identifier: MIT
 *
 * The library's version, the names of its enums, and its clock.
 */
#include "core.h"

uint32_t sp_version(void)
{
    return (uint32_t)SP_VERSION_MAJOR << 16 | (uint32_t)SP_VERSION_MINOR << 8 | SP_VERSION_PATCH;
}

static const char *pick(const char *const *names, size_t count, int at)
{
    return at >= 0 && (size_t)at < count ? names[at] : "unknown";
}

const char *sp_backend_name(sp_backend backend)
{
    static const char *const names[] = {
        [SP_BACKEND_CPU] = "cpu",     [SP_BACKEND_VULKAN] = "vulkan",
        [SP_BACKEND_D3D12] = "d3d12", [SP_BACKEND_D3D11] = "d3d11",
        [SP_BACKEND_CUDA] = "cuda",   [SP_BACKEND_OPENCL] = "opencl",
        [SP_BACKEND_METAL] = "metal", [SP_BACKEND_OPENGL] = "opengl",
        [SP_BACKEND_WGPU] = "webgpu", [SP_BACKEND_CUSTOM] = "custom",
    };
    return pick(names, SP_ARRAY_LENGTH(names), (int)backend);
}

const char *sp_kind_name(sp_kind kind)
{
    static const char *const names[] = {
        [SP_KIND_NOOP] = "noop",         [SP_KIND_CPU] = "cpu",
        [SP_KIND_HOST] = "host",         [SP_KIND_VULKAN] = "vulkan",
        [SP_KIND_D3D12] = "d3d12",       [SP_KIND_D3D11] = "d3d11",
        [SP_KIND_CUDA] = "cuda",         [SP_KIND_CUDA_EVENT] = "cuda-event",
        [SP_KIND_OPENCL] = "opencl",     [SP_KIND_METAL] = "metal",
        [SP_KIND_OPENGL] = "opengl",     [SP_KIND_OPENGL_SYNC] = "opengl-sync",
        [SP_KIND_WGPU] = "webgpu",       [SP_KIND_DEFERRED_WGPU] = "deferred-webgpu",
        [SP_KIND_CHAIN] = "chain",       [SP_KIND_CUSTOM] = "custom",
        [SP_KIND_DEFERRED] = "deferred", [SP_KIND_FD] = "fd",
    };
    return pick(names, SP_ARRAY_LENGTH(names), (int)kind);
}

uint64_t sp_now_ns(void)
{
    return sp_os_now_ns();
}

uint64_t sp_deadline_ns(uint64_t timeout_ns)
{
    uint64_t now = sp_os_now_ns();
    return timeout_ns > SP_FOREVER - now ? SP_FOREVER : now + timeout_ns;
}
