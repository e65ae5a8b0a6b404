/* SPDX-License-Identifier: MIT
 * The CUDA section of `syncpoint info`. */
#include "info_simple.h"

#include <dlfcn.h>
#include <ffnvcodec/dynlink_cuda.h>
#include <syncpoint/cuda.h>

#define HOST_ALLOC_MAPPED 2
#define STREAM_IS_NON_BLOCKING 1
#define AT_LEAST 0

/* X(name, symbol, parameters) */
#define FUNCTIONS(X)                                                                               \
    X(init, "cuInit", (unsigned))                                                                  \
    X(device_count, "cuDeviceGetCount", (int *))                                                   \
    X(device_get, "cuDeviceGet", (CUdevice *, int))                                                \
    X(device_name, "cuDeviceGetName", (char *, int, CUdevice))                                     \
    X(context_create, "cuCtxCreate_v2", (CUcontext *, unsigned, CUdevice))                         \
    X(stream_create, "cuStreamCreate", (CUstream *, unsigned))                                     \
    X(stream_wait_value, "cuStreamWaitValue32_v2", (CUstream, CUdeviceptr, uint32_t, unsigned))    \
    X(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                   \
    X(host_pointer, "cuMemHostGetDevicePointer_v2", (CUdeviceptr *, void *, unsigned))

static struct {
#define MEMBER(name, symbol, parameters) CUresult(*name) parameters;
    FUNCTIONS(MEMBER)
#undef MEMBER
} cu;

static bool load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    bool all = library != NULL;
#define LOAD(name, symbol, parameters)                                                             \
    all = all && (*(void **)(void *)&cu.name = dlsym(library, symbol));
    FUNCTIONS(LOAD)
#undef LOAD
    return all && cu.init(0) == CUDA_SUCCESS;
}

static void open_gate(void *word)
{
    *(volatile uint32_t *)word = 1;
}

/* One stream behind a word of memory, another behind a point of the first. */
static sp_status prove_events(sp_cuda_context *context, void *word, CUdeviceptr address)
{
    CUstream first = NULL, second = NULL;
    sp_point produced = {0}, consumed = {0};
    if (cu.stream_create(&first, STREAM_IS_NON_BLOCKING) != CUDA_SUCCESS ||
        cu.stream_create(&second, STREAM_IS_NON_BLOCKING) != CUDA_SUCCESS ||
        cu.stream_wait_value(first, address, 1, AT_LEAST) != CUDA_SUCCESS)
        return SP_ERROR_BACKEND;
    sp_status status = sp_cuda_stream_signal(context, first, &produced);
    if (status == SP_OK)
        status = sp_cuda_stream_wait(context, second, &produced);
    if (status == SP_OK)
        status = sp_cuda_stream_signal(context, second, &consumed);
    if (status == SP_OK)
        status = info_prove_wait(&consumed, open_gate, word);
    sp_point_unref(&produced);
    sp_point_unref(&consumed);
    return status;
}

static void ask_context(json_t *device, sp_cuda_context *context)
{
    sp_cuda_caps caps = {.size = sizeof caps};
    if (sp_cuda_context_caps(context, &caps) != SP_OK)
        return;
    info_about(device, "driver", "CUDA %d.%d", caps.driver_version / 1000,
               caps.driver_version % 1000 / 10);
    info_uuid(device, caps.has_uuid, caps.device_uuid);
    info_reported(device, "external semaphores", caps.external_semaphore, "the driver is too old");
    info_reported(device, "external timelines", caps.timeline_semaphore,
                  "the driver or the device has none");
    info_reported(device, "IPC events", caps.ipc_events, "the device has none");
}

static void probe_device(json_t *devices, int ordinal)
{
    char name[128] = "?";
    CUdevice native = 0;
    CUcontext current = NULL;
    void *word = NULL;
    CUdeviceptr address = 0;
    sp_cuda_context *context = NULL;
    sp_cuda_context_desc desc = {.size = sizeof desc};
    cu.device_get(&native, ordinal);
    cu.device_name(name, sizeof name - 1, native);
    json_t *device = info_device(devices, name);
    if (cu.context_create(&current, 0, native) != CUDA_SUCCESS ||
        cu.host_alloc(&word, sizeof(uint32_t), HOST_ALLOC_MAPPED) != CUDA_SUCCESS ||
        cu.host_pointer(&address, word, 0) != CUDA_SUCCESS ||
        sp_cuda_context_create(&desc, &context) != SP_OK) {
        info_about(device, "not usable", "%s", sp_last_error()->message);
        return;
    }
    *(volatile uint32_t *)word = 0;
    ask_context(device, context);
    sp_status status = prove_events(context, word, address);
    info_proven(device, "signal from a stream", status);
    info_proven(device, "wait on a stream", status);
    info_proven(device, "wait on the host", status);
}

static void probe(json_t *devices)
{
    int count = 0;
    if (!load() || cu.device_count(&count) != CUDA_SUCCESS)
        return;
    for (int i = 0; i < count; i++)
        probe_device(devices, i);
}

static const info_simple simple = {.title = "CUDA", .probe = probe};

static json_t *gather(bool verbose)
{
    return info_simple_gather(&simple, verbose);
}

static void print(const json_t *section)
{
    info_simple_print(&simple, section);
}

const info_section info_cuda = {.backend = "cuda", .gather = gather, .print = print};
