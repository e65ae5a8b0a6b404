/* SPDX-License-Identifier: MIT
 *
 * The entry points of OpenCL for one cl_context, and what its devices can do. Each context object
 * has its own table, so that two loaders and a test's double can live side by side.
 */
#ifndef SP_OPENCL_CL_DRIVER_H
#define SP_OPENCL_CL_DRIVER_H

/* The declarations of all versions; only functions of 1.2 and of extensions are called. */
#define CL_TARGET_OPENCL_VERSION 300
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <syncpoint/opencl.h>

/* X(member, function): of OpenCL 1.2, required. */
#define SP_CL_CORE_FUNCTIONS(X)                                                                    \
    X(get_platform_info, clGetPlatformInfo)                                                        \
    X(get_device_info, clGetDeviceInfo)                                                            \
    X(get_context_info, clGetContextInfo)                                                          \
    X(retain_context, clRetainContext)                                                             \
    X(release_context, clReleaseContext)                                                           \
    X(get_queue_info, clGetCommandQueueInfo)                                                       \
    X(retain_queue, clRetainCommandQueue)                                                          \
    X(release_queue, clReleaseCommandQueue)                                                        \
    X(flush, clFlush)                                                                              \
    X(enqueue_marker, clEnqueueMarkerWithWaitList)                                                 \
    X(enqueue_barrier, clEnqueueBarrierWithWaitList)                                               \
    X(get_event_info, clGetEventInfo)                                                              \
    X(retain_event, clRetainEvent)                                                                 \
    X(release_event, clReleaseEvent)                                                               \
    X(create_user_event, clCreateUserEvent)                                                        \
    X(set_user_event_status, clSetUserEventStatus)                                                 \
    X(get_extension_function, clGetExtensionFunctionAddressForPlatform)

/* Of cl_khr_semaphore: NULL without it. */
#define SP_CL_SEMAPHORE_FUNCTIONS(X)                                                               \
    X(create_semaphore, clCreateSemaphoreWithPropertiesKHR)                                        \
    X(enqueue_wait_semaphores, clEnqueueWaitSemaphoresKHR)                                         \
    X(enqueue_signal_semaphores, clEnqueueSignalSemaphoresKHR)                                     \
    X(get_semaphore_info, clGetSemaphoreInfoKHR)                                                   \
    X(retain_semaphore, clRetainSemaphoreKHR)                                                      \
    X(release_semaphore, clReleaseSemaphoreKHR)

typedef struct sp_cl_driver {
#define SP_CL_MEMBER(member, function) __typeof__(&(function)) member;
    SP_CL_CORE_FUNCTIONS(SP_CL_MEMBER)
    SP_CL_SEMAPHORE_FUNCTIONS(SP_CL_MEMBER)
#undef SP_CL_MEMBER
    void *library; /* NULL: the functions are the user's                                       */
} sp_cl_driver;

/* Fills the table with the core functions, then with those of cl_khr_semaphore, as the platform
 * has them. On error nothing stays open; NOT_SUPPORTED names what is missing. */
sp_status sp_cl_driver_load(sp_cl_driver *driver, const sp_cl_context_desc *desc);
/* The name of a function that the platform does not have, or NULL. */
const char *sp_cl_driver_load_semaphores(sp_cl_driver *driver, cl_platform_id platform);
void sp_cl_driver_unload(sp_cl_driver *driver);

#endif
