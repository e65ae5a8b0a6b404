/* SPDX-License-Identifier: MIT
 *
 * A double of an OpenCL loader, around a real one: a get_function for the library that counts calls
 * and objects, lets calls fail on command, and hides functions, extensions and versions. It can
 * also bring semaphores to a driver that has none: see cl_double.h.
 *
 * What a test shows with an injected result is how the library answers, not that any driver gives
 * that result. The library's calls come through here; the tests' own do not.
 */
#ifndef TESTS_DOUBLES_CL_HOOK_H
#define TESTS_DOUBLES_CL_HOOK_H

#define CL_TARGET_OPENCL_VERSION 300
#define CL_USE_DEPRECATED_OPENCL_1_2_APIS /* clCreateCommandQueue() */
#include <CL/cl.h>
#include <CL/cl_ext.h>
#include <stdbool.h>

/* X(name without "cl") */
#define CL_HOOK_CORE_FUNCTIONS(X)                                                                  \
    X(GetPlatformInfo)                                                                             \
    X(GetDeviceInfo)                                                                               \
    X(GetContextInfo)                                                                              \
    X(RetainContext)                                                                               \
    X(ReleaseContext)                                                                              \
    X(GetCommandQueueInfo)                                                                         \
    X(RetainCommandQueue)                                                                          \
    X(ReleaseCommandQueue)                                                                         \
    X(Flush)                                                                                       \
    X(EnqueueMarkerWithWaitList)                                                                   \
    X(EnqueueBarrierWithWaitList)                                                                  \
    X(GetEventInfo)                                                                                \
    X(RetainEvent)                                                                                 \
    X(ReleaseEvent)                                                                                \
    X(CreateUserEvent)                                                                             \
    X(SetUserEventStatus)                                                                          \
    X(GetExtensionFunctionAddressForPlatform)

#define CL_HOOK_SEMAPHORE_FUNCTIONS(X)                                                             \
    X(CreateSemaphoreWithPropertiesKHR)                                                            \
    X(EnqueueWaitSemaphoresKHR)                                                                    \
    X(EnqueueSignalSemaphoresKHR)                                                                  \
    X(GetSemaphoreInfoKHR)                                                                         \
    X(RetainSemaphoreKHR)                                                                          \
    X(ReleaseSemaphoreKHR)

typedef enum cl_hook_id {
#define CL_HOOK_ENUM(name) CL_HOOK_##name,
    CL_HOOK_CORE_FUNCTIONS(CL_HOOK_ENUM) CL_HOOK_SEMAPHORE_FUNCTIONS(CL_HOOK_ENUM)
#undef CL_HOOK_ENUM
        CL_HOOK_COUNT
} cl_hook_id;

typedef struct cl_hook_functions {
#define CL_HOOK_MEMBER(name) __typeof__(&cl##name) name;
    CL_HOOK_CORE_FUNCTIONS(CL_HOOK_MEMBER)
    CL_HOOK_SEMAPHORE_FUNCTIONS(CL_HOOK_MEMBER)
#undef CL_HOOK_MEMBER
} cl_hook_functions;

/* The driver's own functions; the semaphores' are the double's if it stands in. */
extern cl_hook_functions cl_hook_real;

/* Takes the functions from the open library. `doubled`: the semaphores are the double's. Resets
 * everything below. */
void cl_hook_install(void *library, bool doubled);

/* For the library. */
void *cl_hook_get_function(void *user, const char *name);

/* How often the library has called a function; any function. */
unsigned cl_hook_calls(cl_hook_id id);
unsigned cl_hook_all_calls(void);
/* References that the library holds: of events, and of everything. */
int cl_hook_live_events(void);
int cl_hook_live_objects(void);
/* Commands that the library has enqueued to the queue since it last flushed it. */
unsigned cl_hook_unflushed(cl_command_queue queue);

/* Calls number `skip`, `skip` + 1, ... from now on fail with `result`, `times` of them. */
void cl_hook_fail(cl_hook_id id, cl_int result, unsigned skip, unsigned times);
/* The call that can fail (releases cannot), `skip` calls of that sort from now, fails. Once. */
void cl_hook_fail_step(cl_int result, unsigned skip);
/* The next call of this function runs `fn` when the driver has done its part and before the library
 * goes on: what happens meanwhile, or a callback of the user's that drivers run inside. `event` is
 * what the call made; NULL: none. Once. Only for those that enqueue semaphore commands or set user
 * events. */
void cl_hook_inside(cl_hook_id id, void (*fn)(void *user, cl_event event), void *user);
/* How often since the last time the library has released its last reference to the event of a
 * command of its own that was not over: some drivers do not survive that if it then fails. */
unsigned cl_hook_early_releases(void);

/* No failure is to come. True: one that was asked for did not come. */
bool cl_hook_heal(void);

/* A failing import closes the handle that it was given. */
void cl_hook_close_on_failure(bool close);
/* Look-ups of this function, or this word in the list of extensions, find nothing. NULL: none. */
void cl_hook_hide(const char *name);
/* What devices, or platforms, say that their version is. NULL: the truth. */
void cl_hook_set_versions(const char *device, const char *platform);
/* The context shows its device twice. */
void cl_hook_show_two_devices(bool two);
/* The import handle types are none of ours. */
void cl_hook_no_import_types(bool none);

#endif
