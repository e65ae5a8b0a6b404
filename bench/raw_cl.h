/* SPDX-License-Identifier: MIT
 * OpenCL's own entry points, with a context and a queue, for the raw calls that ours are measured
 * against. */
#ifndef SP_BENCH_RAW_CL_H
#define SP_BENCH_RAW_CL_H

#include <stdbool.h>

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue() */
#include <CL/cl.h>

#define RAW_CL_MAX_PLATFORMS 16

/* X(name without "cl") */
#define RAW_CL_FUNCTIONS(X)                                                                        \
    X(GetPlatformIDs)                                                                              \
    X(GetPlatformInfo)                                                                             \
    X(GetDeviceIDs)                                                                                \
    X(CreateContext)                                                                               \
    X(ReleaseContext)                                                                              \
    X(CreateCommandQueue)                                                                          \
    X(ReleaseCommandQueue)                                                                         \
    X(EnqueueMarkerWithWaitList)                                                                   \
    X(CreateUserEvent)                                                                             \
    X(SetUserEventStatus)                                                                          \
    X(GetEventInfo)                                                                                \
    X(ReleaseEvent)                                                                                \
    X(WaitForEvents)                                                                               \
    X(Flush)                                                                                       \
    X(Finish)

typedef struct raw_cl {
#define RAW_CL_MEMBER(name) __typeof__(&cl##name) name;
    RAW_CL_FUNCTIONS(RAW_CL_MEMBER)
#undef RAW_CL_MEMBER
    char platform[128];
    cl_context context;
    cl_command_queue queue;
} raw_cl;

/* The first device of the platform with this number. False: there is no such platform. One without
 * a device has no context. */
bool raw_cl_open(raw_cl *cl, unsigned platform);
void raw_cl_close(raw_cl *cl);

#endif
