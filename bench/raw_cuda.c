/* SPDX-License-Identifier: MIT */
#include "raw_cuda.h"

#include "bench.h"

#include <dlfcn.h>
#include <string.h>

#define CU_STREAM_IS_NON_BLOCKING 1
#define CU_HOST_ALLOC_MAPPED 2

/* `membar.sys` makes the word visible to the host before the kernel counts as finished. */
static const char kernels[] = ".version 6.0\n"
                              ".target sm_52\n"
                              ".address_size 64\n"
                              ".visible .entry work(.param .u64 ns, .param .u64 word,\n"
                              "                     .param .u32 value)\n"
                              "{\n"
                              "  .reg .u64 %t<5>;\n"
                              "  .reg .u32 %v;\n"
                              "  .reg .pred %p;\n"
                              "  ld.param.u64 %t0, [ns];\n"
                              "  ld.param.u64 %t4, [word];\n"
                              "  ld.param.u32 %v, [value];\n"
                              "  mov.u64 %t1, %globaltimer;\n"
                              "again:\n"
                              "  mov.u64 %t2, %globaltimer;\n"
                              "  sub.u64 %t3, %t2, %t1;\n"
                              "  setp.lt.u64 %p, %t3, %t0;\n"
                              "  @%p bra again;\n"
                              "  st.volatile.u32 [%t4], %v;\n"
                              "  membar.sys;\n"
                              "  ret;\n"
                              "}\n"
                              ".visible .entry hold(.param .u64 word)\n"
                              "{\n"
                              "  .reg .u64 %w;\n"
                              "  .reg .u32 %v;\n"
                              "  .reg .pred %p;\n"
                              "  ld.param.u64 %w, [word];\n"
                              "again:\n"
                              "  ld.volatile.u32 %v, [%w];\n"
                              "  setp.eq.u32 %p, %v, 0;\n"
                              "  @%p bra again;\n"
                              "  ret;\n"
                              "}\n";

static void check(CUresult result, const char *what)
{
    bench_check(result == CUDA_SUCCESS, what);
}

static bool load(raw_cuda *cuda)
{
    cuda->library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!cuda->library)
        return false;
    bool all = true;
    void *symbol;
#define RAW_CUDA_LOAD(member, name, parameters)                                                    \
    symbol = dlsym(cuda->library, name);                                                           \
    all = all && symbol;                                                                           \
    memcpy(&cuda->member, &symbol, sizeof symbol);
    RAW_CUDA_FUNCTIONS(RAW_CUDA_LOAD)
#undef RAW_CUDA_LOAD
    return all;
}

bool raw_cuda_open(raw_cuda *cuda)
{
    CUdevice device;
    void *words = NULL;
    if (!load(cuda) || cuda->init(0) != CUDA_SUCCESS ||
        cuda->device_get(&device, 0) != CUDA_SUCCESS)
        return false;
    check(cuda->context_create(&cuda->context, 0, device), "cuCtxCreate");
    check(cuda->stream_create(&cuda->stream, CU_STREAM_IS_NON_BLOCKING), "cuStreamCreate");
    check(cuda->module_load(&cuda->module, kernels), "cuModuleLoadData");
    check(cuda->module_function(&cuda->work, cuda->module, "work"), "cuModuleGetFunction");
    check(cuda->module_function(&cuda->hold, cuda->module, "hold"), "cuModuleGetFunction");
    check(cuda->host_alloc(&words, RAW_CUDA_WORDS * sizeof(uint32_t), CU_HOST_ALLOC_MAPPED),
          "cuMemHostAlloc");
    memset(words, 0, RAW_CUDA_WORDS * sizeof(uint32_t));
    cuda->words = words;
    check(cuda->host_pointer(&cuda->device_words, words, 0), "cuMemHostGetDevicePointer");
    return true;
}

void raw_cuda_close(raw_cuda *cuda)
{
    cuda->stream_synchronize(cuda->stream);
    cuda->host_free((void *)(uintptr_t)cuda->words);
    cuda->context_destroy(cuda->context);
}

void raw_cuda_work(const raw_cuda *cuda, uint64_t ns, uint32_t round)
{
    CUdeviceptr word = cuda->device_words + RAW_CUDA_DONE * sizeof(uint32_t);
    void *parameters[] = {&ns, &word, &round};
    check(cuda->launch(cuda->work, 1, 1, 1, 1, 1, 1, 0, cuda->stream, parameters, NULL),
          "cuLaunchKernel");
}

void raw_cuda_hold(const raw_cuda *cuda)
{
    CUdeviceptr word = cuda->device_words + RAW_CUDA_RELEASE * sizeof(uint32_t);
    void *parameters[] = {&word};
    cuda->words[RAW_CUDA_RELEASE] = 0;
    check(cuda->launch(cuda->hold, 1, 1, 1, 1, 1, 1, 0, cuda->stream, parameters, NULL),
          "cuLaunchKernel");
}
