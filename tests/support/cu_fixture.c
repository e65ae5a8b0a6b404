/* SPDX-License-Identifier: MIT */
#include "cu_fixture.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

static const cu_options on_double = {.library = CUDA_DOUBLE_PATH, .is_double = true};
static const cu_options on_old = {.library = CUDA_OLD_DOUBLE_PATH, .is_double = true};
static const cu_options on_driver = {.library = NULL};

const test_target cu_targets[] = {
    {"double", ON_DOUBLE | WITH_IDS, (void *)&on_double},
    {"old-double", ON_DOUBLE, (void *)&on_old},
    {"nvidia", ON_GPU | WITH_IDS, (void *)&on_driver},
};
const size_t cu_target_count = COUNT_OF(cu_targets);

const cu_options *cu_target;
cu_functions cu;
const cuda_double *cu_control;

void cu_check(CUresult result, const char *text, const char *file, int line)
{
    const char *name = NULL;
    if (result == CUDA_SUCCESS)
        return;
    cu.GetErrorName(result, &name);
    print_error("%s gave %s (%d)\n", text, name ? name : "?", (int)result);
    _fail(file, line);
}

/* ---- Loading ---- */

static void load_functions(void *library)
{
#define LOAD(name, symbol, parameters) *(void **)&cu.name = dlsym(library, symbol);
#define LOAD_REQUIRED(name, symbol, parameters)                                                    \
    LOAD(name, symbol, parameters)                                                                 \
    if (!cu.name)                                                                                  \
        test_skip("the driver has no " symbol);
    CU_FUNCTIONS(LOAD_REQUIRED)
    CU_KERNEL_FUNCTIONS(LOAD)
#undef LOAD_REQUIRED
#undef LOAD
}

void cu_load(const cu_options *options)
{
    const char *name = options->library ? options->library : "libcuda.so.1";
    cu_target = options;
    if (cu.Init)
        return;
    void *library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        test_skip("no %s here: %s", name, dlerror());
    load_functions(library);
    if (options->is_double) {
        cu_control = dlsym(library, CUDA_DOUBLE_SYMBOL);
        assert_non_null(cu_control);
    }
    /* Loading a kernel at its first launch waits for the context, and the cases' gates are shut. */
    setenv("CUDA_MODULE_LOADING", "EAGER", 1);
    CUresult result = cu.Init(0);
    if (result != CUDA_SUCCESS)
        test_skip("cuInit() gave %d: no GPU here", (int)result);
}

sp_cuda_context_desc cu_context_desc(CUcontext handle)
{
    return (sp_cuda_context_desc){
        .size = sizeof(sp_cuda_context_desc),
        .context = handle,
        .library = cu_target->library,
    };
}

CUstream cu_new_stream(void)
{
    CUstream stream = NULL;
    CHECK_CU(cu.StreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    return stream;
}

static const char kernels[] = ".version 6.3\n"
                              ".target sm_70\n"
                              ".address_size 64\n"
                              ".visible .entry spin(.param .u64 ns)\n"
                              "{\n"
                              "  .reg .pred %p;\n"
                              "  .reg .u64 %rd<5>;\n"
                              "  ld.param.u64 %rd1, [ns];\n"
                              "  mov.u64 %rd2, %globaltimer;\n"
                              "again:\n"
                              "  mov.u64 %rd3, %globaltimer;\n"
                              "  sub.u64 %rd4, %rd3, %rd2;\n"
                              "  setp.lt.u64 %p, %rd4, %rd1;\n"
                              "  @%p bra again;\n"
                              "  ret;\n"
                              "}\n"
                              ".visible .entry store(.param .u64 address)\n"
                              "{\n"
                              "  .reg .u32 %r;\n"
                              "  .reg .u64 %rd;\n"
                              "  ld.param.u64 %rd, [address];\n"
                              "  mov.u32 %r, 1;\n"
                              "  st.volatile.global.u32 [%rd], %r;\n"
                              "  ret;\n"
                              "}\n";

static void launch(cu_context *context, CUstream stream, const char *name, uint64_t argument)
{
    CUfunction kernel;
    void *arguments[] = {&argument};
    if (!context->module)
        CHECK_CU(cu.ModuleLoadData(&context->module, kernels));
    CHECK_CU(cu.ModuleGetFunction(&kernel, context->module, name));
    CHECK_CU(cu.LaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

/* Loading a kernel may wait for all that is pending, and so for a gate: do it before there is one. */
static void load_kernels(cu_context *context)
{
    cu_word word;
    cu_word_init(&word);
    launch(context, context->stream, "spin", 0);
    launch(context, context->stream, "store", word.device);
    CHECK_CU(cu.StreamSynchronize(context->stream));
    cu_word_fini(&word);
}

void cu_open(cu_context *context, int device)
{
    CUdevice native;
    *context = (cu_context){0};
    CHECK_CU(cu.DeviceGet(&native, device));
    CHECK_CU(cu.CtxCreate(&context->handle, 0, native));
    context->stream = cu_new_stream();
    if (!cu_control)
        load_kernels(context);
    sp_cuda_context_desc desc = cu_context_desc(context->handle);
    CHECK_STATUS(sp_cuda_context_create(&desc, &context->sp), SP_OK);
}

void cu_close(cu_context *context)
{
    if (cu_control)
        cu_control->heal();
    CHECK_STATUS(sp_cuda_context_destroy(context->sp, PATIENCE_NS), SP_OK);
    if (cu_control) {
        CHECK_EQUAL(cu_control->misuse(), 0);
        CHECK_EQUAL(cu_control->capture_mode(), 0);
    }
    CUresult destroyed = cu.StreamDestroy(context->stream);
    if (!context->broken)
        CHECK_CU(destroyed);
    destroyed = cu.CtxDestroy(context->handle);
    if (!context->broken)
        CHECK_CU(destroyed);
    *context = (cu_context){0};
}

/* ---- Work ---- */

void cu_delay(cu_context *context, CUstream stream, uint64_t ns)
{
    if (cu_control)
        cu_control->delay(stream, ns);
    else
        launch(context, stream, "spin", ns);
}

void cu_break(cu_context *context, CUstream stream)
{
    context->broken = true;
    if (cu_control)
        cu_control->break_context(context->handle, 700);
    else
        launch(context, stream, "store", 16);
}

/* ---- Words ---- */

#define HOST_ALLOC_DEVICEMAP 2

void cu_word_init(cu_word *word)
{
    void *memory = NULL;
    CHECK_CU(cu.MemHostAlloc(&memory, sizeof(uint32_t), HOST_ALLOC_DEVICEMAP));
    CHECK_CU(cu.MemHostGetDevicePointer(&word->device, memory, 0));
    word->host = memory;
    cu_word_set(word, 0);
}

void cu_word_fini(cu_word *word)
{
    CHECK_CU(cu.MemFreeHost((void *)(uintptr_t)word->host));
    word->host = NULL;
}

void cu_word_set(cu_word *word, uint32_t value)
{
    __atomic_store_n(word->host, value, __ATOMIC_SEQ_CST);
}

uint32_t cu_word_get(const cu_word *word)
{
    return __atomic_load_n(word->host, __ATOMIC_SEQ_CST);
}

void cu_word_await(cu_word *word, CUstream stream, uint32_t value)
{
    CHECK_CU(cu.StreamWaitValue32(stream, word->device, value, 0));
}

void cu_word_write(cu_word *word, CUstream stream, uint32_t value)
{
    CHECK_CU(cu.MemsetD32Async(word->device, value, 1, stream));
}

bool cu_word_stays_zero(const cu_word *word)
{
    test_sleep_ms(DELAY_MS);
    return cu_word_get(word) == 0;
}

bool cu_word_arrives(const cu_word *word, uint32_t value)
{
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (cu_word_get(word) != value && sp_now_ns() < end)
        test_sleep_ms(1);
    return cu_word_get(word) == value;
}
