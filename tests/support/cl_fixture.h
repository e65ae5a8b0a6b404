/* SPDX-License-Identifier: MIT
 *
 * An OpenCL context of the test's own, on a platform picked by name, with the raw calls that tests
 * need beside the library's: queues, gates, fills and copies whose result can be looked at.
 *
 * Everything here checks for itself and ends the case when the driver refuses. The tests' calls go
 * to the driver, the library's through doubles/cl_hook.h.
 */
#ifndef TESTS_SUPPORT_CL_FIXTURE_H
#define TESTS_SUPPORT_CL_FIXTURE_H

#include "doubles/cl_hook.h"
#include "test.h"

#include <syncpoint/opencl.h>

/* What a target of an OpenCL test program offers: bits of test_target.features. */
enum {
    ON_ANY_OPENCL = 0,
    WITH_SEMAPHORES = 1 << 0,    /* cl_khr_semaphore and opaque fds                           */
    WITH_DOUBLE = 1 << 1,        /* of the double: handles of "another API" are at hand       */
    WITH_VULKAN = 1 << 2,        /* a Vulkan device of the same GPU                           */
    WITHOUT_SEMAPHORES = 1 << 3, /* the driver says so                                        */
    /* What fails in a queue fails what waits for it. */
    WITH_FAILURES_ALONG_QUEUES = 1 << 4,
    /* Enqueueing a semaphore command does not wait for user events, and a pending wait on one queue
     * does not hold up calls on another. */
    WITH_GATED_SEMAPHORES = 1 << 5
};

typedef struct cl_options {
    const char *platform; /* a part of its name */
    bool doubled;
} cl_options;

/* The targets that OpenCL test programs share; .user is a const cl_options *. */
extern const test_target cl_targets[];
extern const size_t cl_target_count;

/* X(name without "cl"): those of cl_hook.h are in `real`. */
#define CL_RAW_FUNCTIONS(X)                                                                        \
    X(GetPlatformIDs)                                                                              \
    X(GetPlatformInfo)                                                                             \
    X(GetDeviceIDs)                                                                                \
    X(CreateContext)                                                                               \
    X(ReleaseContext)                                                                              \
    X(CreateCommandQueue)                                                                          \
    X(ReleaseCommandQueue)                                                                         \
    X(CreateBuffer)                                                                                \
    X(ReleaseMemObject)                                                                            \
    X(EnqueueFillBuffer)                                                                           \
    X(EnqueueCopyBuffer)                                                                           \
    X(EnqueueReadBuffer)                                                                           \
    X(EnqueueMarkerWithWaitList)                                                                   \
    X(CreateUserEvent)                                                                             \
    X(SetUserEventStatus)                                                                          \
    X(GetEventInfo)                                                                                \
    X(RetainEvent)                                                                                 \
    X(ReleaseEvent)                                                                                \
    X(SetEventCallback)                                                                            \
    X(Flush)                                                                                       \
    X(Finish)

typedef struct cl_raw {
#define CL_RAW_MEMBER(name) __typeof__(&cl##name) name;
    CL_RAW_FUNCTIONS(CL_RAW_MEMBER)
#undef CL_RAW_MEMBER
} cl_raw;

typedef struct cl_world {
    cl_options options;
    void *library;
    cl_raw raw;
    cl_device_id device;
    cl_context context;
    cl_command_queue queue; /* in order, as the others */
    cl_command_queue other;
    cl_command_queue wait_queue; /* for the library */
    cl_command_queue look;       /* for reads of the test's */
    unsigned warnings;           /* in the library's log */
    sp_cl_context *sp;
} cl_world;

extern cl_world cl;

/* The driver, a context and queues; then the library on it. Skips the case if there is none. */
void cl_open_driver(const cl_options *options);
void cl_open_library(void);
sp_cl_context_desc cl_desc(void);
/* Ends the library's context, with all that is checked then, then ours. */
void cl_close_library(void);
void cl_close_driver(void);

/* ---- Raw calls ------------------------------------------------------------------------------ */

void cl_check(cl_int result, const char *text, const char *file, int line);
#define CHECK_CL(call) cl_check((call), #call, __FILE__, __LINE__)

cl_context cl_make_context(void);
cl_command_queue cl_make_queue(cl_context context, bool out_of_order);

/* A user event: what is enqueued behind it waits until it is opened, or failed. */
cl_event cl_make_gate(void);
void cl_open_gate(cl_event gate);
void cl_fail_gate(cl_event gate);
#define CL_TEST_FAILURE (-4321)

/* Everything later on this queue waits for the gate. */
void cl_close_queue(cl_command_queue queue, cl_event gate);
cl_int cl_status_of(cl_event event);

/* Work whose result shows whether it ran, and after what. A new buffer is zero. */
#define CL_WORDS 1024u
cl_mem cl_make_buffer(void);
/* `gate`: waits for it; NULL: none. Returns the command's event, which the caller releases. */
cl_event cl_fill(cl_command_queue queue, cl_mem buffer, cl_uint seed, cl_event gate);
void cl_copy(cl_command_queue queue, cl_mem from, cl_mem to);
/* What is in it now: the same word everywhere, or CL_MIXED. */
#define CL_MIXED 0xFFFFFFFFu
cl_uint cl_content(cl_mem buffer);
/* Fails the case unless the buffer stays zero for a while. */
#define CHECK_STAYS_UNWRITTEN(buffer) CHECK(cl_stays_unwritten(buffer))
bool cl_stays_unwritten(cl_mem buffer);
/* Waits for it. */
bool cl_arrives(cl_mem buffer, cl_uint seed);

#endif
