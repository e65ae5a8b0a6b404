/* SPDX-License-Identifier: MIT */
#include "raw_cl.h"

#include "bench.h"

#include <dlfcn.h>
#include <string.h>

static bool load(raw_cl *cl)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    bool all = library != NULL;
    void *symbol;
#define RAW_CL_LOAD(name)                                                                          \
    symbol = library ? dlsym(library, "cl" #name) : NULL;                                          \
    all = all && symbol;                                                                           \
    memcpy(&cl->name, &symbol, sizeof symbol);
    RAW_CL_FUNCTIONS(RAW_CL_LOAD)
#undef RAW_CL_LOAD
    return all;
}

bool raw_cl_open(raw_cl *cl, unsigned platform)
{
    cl_platform_id platforms[RAW_CL_MAX_PLATFORMS];
    cl_device_id device;
    cl_uint count = 0;
    cl_int result;
    memset(cl, 0, sizeof *cl);
    if (!load(cl) || cl->GetPlatformIDs(RAW_CL_MAX_PLATFORMS, platforms, &count) != CL_SUCCESS ||
        platform >= count || platform >= RAW_CL_MAX_PLATFORMS)
        return false;
    cl->GetPlatformInfo(platforms[platform], CL_PLATFORM_NAME, sizeof cl->platform - 1,
                        cl->platform, NULL);
    if (cl->GetDeviceIDs(platforms[platform], CL_DEVICE_TYPE_ALL, 1, &device, NULL) != CL_SUCCESS)
        return true;
    cl->context = cl->CreateContext(NULL, 1, &device, NULL, NULL, &result);
    bench_check(cl->context, "clCreateContext");
    cl->queue = cl->CreateCommandQueue(cl->context, device, 0, &result);
    bench_check(cl->queue, "clCreateCommandQueue");
    return true;
}

void raw_cl_close(raw_cl *cl)
{
    cl->ReleaseCommandQueue(cl->queue);
    cl->ReleaseContext(cl->context);
}
