/* SPDX-License-Identifier: MIT
 * The OpenCL section of `syncpoint info`. */
#include "info_simple.h"

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>
#include <dlfcn.h>
#include <syncpoint/opencl.h>

/* X(name without "cl") */
#define FUNCTIONS(X)                                                                               \
    X(GetPlatformIDs)                                                                              \
    X(GetDeviceIDs)                                                                                \
    X(GetDeviceInfo)                                                                               \
    X(CreateContext)                                                                               \
    X(CreateCommandQueue)

static struct {
#define MEMBER(name) __typeof__(&cl##name) name;
    FUNCTIONS(MEMBER)
#undef MEMBER
} cl;

static bool load(void)
{
    void *library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    bool all = library != NULL;
#define LOAD(name) all = all && (*(void **)(void *)&cl.name = dlsym(library, "cl" #name));
    FUNCTIONS(LOAD)
#undef LOAD
    return all;
}

static void open_gate(void *gate)
{
    sp_cl_user_event_set(gate, SP_OK);
}

/* A gate that a queue waits for, and a point behind it. */
static void prove_events(json_t *device, sp_cl_context *context, cl_command_queue queue)
{
    sp_point gate = {0}, point = {0};
    sp_status status = sp_cl_user_event(context, &gate);
    info_proven(device, "signal from the host", status);
    if (status == SP_OK)
        status = sp_cl_queue_wait(context, queue, &gate);
    if (status == SP_OK)
        status = sp_cl_queue_signal(context, queue, &point);
    if (status == SP_OK)
        status = info_prove_wait(&point, open_gate, &gate);
    info_proven(device, "wait on a queue", status);
    info_proven(device, "signal from a queue", status);
    info_proven(device, "wait on the host", status);
    sp_point_unref(&point);
    sp_point_unref(&gate);
}

static void ask_context(json_t *device, sp_cl_context *context)
{
    sp_cl_caps caps = {.size = sizeof caps};
    if (sp_cl_context_caps(context, &caps) != SP_OK)
        return;
    info_uuid(device, caps.has_uuid, caps.device_uuid);
    info_reported(device, "semaphores", caps.semaphore, caps.why_no_semaphore);
    info_reported(device, "import opaque fd", caps.import_opaque_fd, caps.why_no_import);
}

static void probe_device(json_t *devices, cl_device_id id)
{
    char name[128] = "?", version[128] = "?";
    cl_int result = CL_SUCCESS;
    cl.GetDeviceInfo(id, CL_DEVICE_NAME, sizeof name - 1, name, NULL);
    cl.GetDeviceInfo(id, CL_DRIVER_VERSION, sizeof version - 1, version, NULL);
    json_t *device = info_device(devices, name);
    info_about(device, "driver", "%s", version);
    cl_context native = cl.CreateContext(NULL, 1, &id, NULL, NULL, &result);
    cl_command_queue queue = native ? cl.CreateCommandQueue(native, id, 0, &result) : NULL;
    sp_cl_context *context = NULL;
    sp_cl_context_desc desc = {.size = sizeof desc, .context = native};
    sp_status status = queue ? sp_cl_context_create(&desc, &context) : SP_ERROR_BACKEND;
    if (status != SP_OK) {
        info_about(device, "not usable", "%s",
                   queue ? sp_last_error()->message : "the driver makes no context or queue");
        return;
    }
    ask_context(device, context);
    prove_events(device, context, queue);
}

static void probe(json_t *devices)
{
    cl_platform_id platforms[16];
    cl_uint platform_count = 0;
    if (!load() || cl.GetPlatformIDs(16, platforms, &platform_count) != CL_SUCCESS)
        return;
    for (cl_uint p = 0; p < platform_count && p < 16; p++) {
        cl_device_id ids[16];
        cl_uint count = 0;
        if (cl.GetDeviceIDs(platforms[p], CL_DEVICE_TYPE_ALL, 16, ids, &count) != CL_SUCCESS)
            continue;
        for (cl_uint i = 0; i < count && i < 16; i++)
            probe_device(devices, ids[i]);
    }
}

static const info_simple simple = {.title = "OpenCL", .probe = probe};

static json_t *gather(bool verbose)
{
    return info_simple_gather(&simple, verbose);
}

static void print(const json_t *section)
{
    info_simple_print(&simple, section);
}

const info_section info_opencl = {.backend = "opencl", .gather = gather, .print = print};
