/* SPDX-License-Identifier: MIT */
#include "cl_fixture.h"

#include "doubles/cl_double.h"

#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

cl_world cl;

static const cl_options pocl = {.platform = "Portable Computing Language"};
static const cl_options doubled = {.platform = "Portable Computing Language", .doubled = true};
static const cl_options nvidia = {.platform = "NVIDIA"};

const test_target cl_targets[] = {
    {"pocl", WITHOUT_SEMAPHORES | WITH_FAILURES_ALONG_QUEUES, (void *)&pocl},
    {"double", WITH_SEMAPHORES | WITH_GATED_SEMAPHORES | WITH_DOUBLE | WITH_FAILURES_ALONG_QUEUES,
     (void *)&doubled},
    {"nvidia", WITH_SEMAPHORES | WITH_VULKAN, (void *)&nvidia},
};
const size_t cl_target_count = COUNT_OF(cl_targets);

void cl_check(cl_int result, const char *text, const char *file, int line)
{
    if (result != CL_SUCCESS)
        print_error("%s gave %d\n", text, (int)result);
    test_check(result == CL_SUCCESS, text, file, line);
}

/* ---- Opening ---- */

static void load(void)
{
    cl.library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cl.library)
        test_skip("no OpenCL loader: %s", dlerror());
#define CL_LOAD(name)                                                                              \
    {                                                                                              \
        void *function = dlsym(cl.library, "cl" #name);                                            \
        assert_non_null(function);                                                                 \
        memcpy(&cl.raw.name, &function, sizeof(function));                                         \
    }
    CL_RAW_FUNCTIONS(CL_LOAD)
#undef CL_LOAD
}

static cl_platform_id find_platform(const char *wanted)
{
    cl_platform_id platforms[16];
    cl_uint count = 0;
    char name[256];
    if (cl.raw.GetPlatformIDs(COUNT_OF(platforms), platforms, &count) != CL_SUCCESS)
        count = 0;
    for (cl_uint i = 0; i < count; i++) {
        CHECK_CL(cl.raw.GetPlatformInfo(platforms[i], CL_PLATFORM_NAME, sizeof(name), name, NULL));
        if (strstr(name, wanted))
            return platforms[i];
    }
    test_skip("no OpenCL platform named %s", wanted);
}

cl_context cl_make_context(void)
{
    cl_int result = CL_SUCCESS;
    cl_context context = cl.raw.CreateContext(NULL, 1, &cl.device, NULL, NULL, &result);
    CHECK_CL(result);
    return context;
}

cl_command_queue cl_make_queue(cl_context context, bool out_of_order)
{
    cl_int result = CL_SUCCESS;
    cl_command_queue queue = cl.raw.CreateCommandQueue(
        context, cl.device, out_of_order ? CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE : 0, &result);
    CHECK_CL(result);
    return queue;
}

void cl_open_driver(const cl_options *options)
{
    cl = (cl_world){.options = *options};
    load();
    cl_platform_id platform = find_platform(options->platform);
    CHECK_CL(cl.raw.GetDeviceIDs(platform, CL_DEVICE_TYPE_ALL, 1, &cl.device, NULL));
    cl.context = cl_make_context();
    cl.queue = cl_make_queue(cl.context, false);
    cl.other = cl_make_queue(cl.context, false);
    cl.wait_queue = cl_make_queue(cl.context, false);
    cl.look = cl_make_queue(cl.context, false);
    cl_hook_install(cl.library, options->doubled);
}

static void count_warning(void *user, sp_log_level level, const char *message)
{
    (void)user;
    printf("log %d: %s\n", (int)level, message);
    cl.warnings++;
}

sp_cl_context_desc cl_desc(void)
{
    return (sp_cl_context_desc){
        .size = sizeof(sp_cl_context_desc),
        .context = cl.context,
        .wait_queue = cl.wait_queue,
        .get_function = cl_hook_get_function,
        .log = {.fn = count_warning},
    };
}

void cl_open_library(void)
{
    sp_cl_context_desc desc = cl_desc();
    CHECK_STATUS(sp_cl_context_create(&desc, &cl.sp), SP_OK);
}

void cl_close_library(void)
{
    cl_hook_heal();
    CHECK_EQUAL(cl_hook_early_releases(), 0);
    CHECK_STATUS(sp_cl_context_destroy(cl.sp, PATIENCE_NS), SP_OK);
    cl.sp = NULL;
    CHECK_EQUAL(cl_hook_live_events(), 0);
    CHECK_EQUAL(cl_hook_live_objects(), 0);
}

void cl_close_driver(void)
{
    if (cl.options.doubled) {
        CHECK_EQUAL(cl_double_mistakes(), 0);
        cl_double_finish();
    }
    const cl_command_queue queues[] = {cl.queue, cl.other, cl.wait_queue, cl.look};
    for (unsigned i = 0; i < COUNT_OF(queues); i++) {
        /* NVIDIA's tells here of commands that failed before. */
        cl_int finished = cl.raw.Finish(queues[i]);
        if (strcmp(cl.options.platform, nvidia.platform) != 0)
            CHECK_CL(finished);
        CHECK_CL(cl.raw.ReleaseCommandQueue(queues[i]));
    }
    CHECK_CL(cl.raw.ReleaseContext(cl.context));
}

/* ---- Gates ---- */

cl_event cl_make_gate(void)
{
    cl_int result = CL_SUCCESS;
    cl_event gate = cl.raw.CreateUserEvent(cl.context, &result);
    CHECK_CL(result);
    return gate;
}

void cl_open_gate(cl_event gate)
{
    CHECK_CL(cl.raw.SetUserEventStatus(gate, CL_COMPLETE));
    CHECK_CL(cl.raw.ReleaseEvent(gate));
}

void cl_fail_gate(cl_event gate)
{
    CHECK_CL(cl.raw.SetUserEventStatus(gate, CL_TEST_FAILURE));
    CHECK_CL(cl.raw.ReleaseEvent(gate));
}

void cl_close_queue(cl_command_queue queue, cl_event gate)
{
    CHECK_CL(cl.raw.EnqueueMarkerWithWaitList(queue, 1, &gate, NULL));
    CHECK_CL(cl.raw.Flush(queue));
}

cl_int cl_status_of(cl_event event)
{
    cl_int status = CL_QUEUED;
    CHECK_CL(cl.raw.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                                 NULL));
    return status;
}

/* ---- Buffers ---- */

cl_mem cl_make_buffer(void)
{
    static cl_uint zeros[CL_WORDS];
    cl_int result = CL_SUCCESS;
    cl_mem buffer = cl.raw.CreateBuffer(cl.context, CL_MEM_READ_WRITE | CL_MEM_COPY_HOST_PTR,
                                        sizeof(zeros), zeros, &result);
    CHECK_CL(result);
    return buffer;
}

cl_event cl_fill(cl_command_queue queue, cl_mem buffer, cl_uint seed, cl_event gate)
{
    cl_event event = NULL;
    CHECK_CL(cl.raw.EnqueueFillBuffer(queue, buffer, &seed, sizeof(seed), 0,
                                      CL_WORDS * sizeof(seed), gate != NULL, gate ? &gate : NULL,
                                      &event));
    return event;
}

void cl_copy(cl_command_queue queue, cl_mem from, cl_mem to)
{
    CHECK_CL(
        cl.raw.EnqueueCopyBuffer(queue, from, to, 0, 0, CL_WORDS * sizeof(cl_uint), 0, NULL, NULL));
    CHECK_CL(cl.raw.Flush(queue));
}

cl_uint cl_content(cl_mem buffer)
{
    cl_uint words[CL_WORDS];
    CHECK_CL(
        cl.raw.EnqueueReadBuffer(cl.look, buffer, CL_TRUE, 0, sizeof(words), words, 0, NULL, NULL));
    for (unsigned i = 1; i < CL_WORDS; i++) {
        if (words[i] != words[0])
            return CL_MIXED;
    }
    return words[0];
}

bool cl_stays_unwritten(cl_mem buffer)
{
    test_sleep_ms(DELAY_MS);
    return cl_content(buffer) == 0;
}

bool cl_arrives(cl_mem buffer, cl_uint seed)
{
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (cl_content(buffer) != seed) {
        if (sp_now_ns() >= end)
            return false;
        test_sleep_ms(1);
    }
    return true;
}
