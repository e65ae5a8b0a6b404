/* SPDX-License-Identifier: MIT
 * CUDA's own entry points, for the raw calls that ours are measured against. */
#ifndef SP_BENCH_RAW_CUDA_H
#define SP_BENCH_RAW_CUDA_H

#include <stdbool.h>
#include <stdint.h>

#include <ffnvcodec/dynlink_cuda.h>

/* X(member, symbol, parameters) */
#define RAW_CUDA_FUNCTIONS(X)                                                                      \
    X(init, "cuInit", (unsigned))                                                                  \
    X(device_get, "cuDeviceGet", (CUdevice *, int))                                                \
    X(context_create, "cuCtxCreate_v2", (CUcontext *, unsigned, CUdevice))                         \
    X(context_destroy, "cuCtxDestroy_v2", (CUcontext))                                             \
    X(stream_create, "cuStreamCreate", (CUstream *, unsigned))                                     \
    X(stream_synchronize, "cuStreamSynchronize", (CUstream))                                       \
    X(event_create, "cuEventCreate", (CUevent *, unsigned))                                        \
    X(event_destroy, "cuEventDestroy_v2", (CUevent))                                               \
    X(event_record, "cuEventRecord", (CUevent, CUstream))                                          \
    X(event_query, "cuEventQuery", (CUevent))                                                      \
    X(event_synchronize, "cuEventSynchronize", (CUevent))                                          \
    X(host_alloc, "cuMemHostAlloc", (void **, size_t, unsigned))                                   \
    X(host_pointer, "cuMemHostGetDevicePointer_v2", (CUdeviceptr *, void *, unsigned))             \
    X(host_free, "cuMemFreeHost", (void *))                                                        \
    X(module_load, "cuModuleLoadData", (CUmodule *, const void *))                                 \
    X(module_function, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))              \
    X(launch, "cuLaunchKernel",                                                                    \
      (CUfunction, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, CUstream, \
       void **, void **))

typedef struct raw_cuda {
    void *library;
#define RAW_CUDA_MEMBER(member, symbol, parameters) CUresult(*member) parameters;
    RAW_CUDA_FUNCTIONS(RAW_CUDA_MEMBER)
#undef RAW_CUDA_MEMBER
    CUcontext context; /* current on the thread that opened it */
    CUstream stream;
    CUmodule module;
    CUfunction work; /* takes so many ns, then writes a word          */
    CUfunction hold; /* runs until a word is not 0                    */
    volatile uint32_t *words;
    CUdeviceptr device_words;
} raw_cuda;

enum { RAW_CUDA_DONE = 0, RAW_CUDA_RELEASE = 16, RAW_CUDA_WORDS = 32 };

/* False: there is no CUDA here. */
bool raw_cuda_open(raw_cuda *cuda);
void raw_cuda_close(raw_cuda *cuda);

/* Work on the stream that takes `ns`, then sets words[RAW_CUDA_DONE] to `round`. */
void raw_cuda_work(const raw_cuda *cuda, uint64_t ns, uint32_t round);
/* Work that goes on until words[RAW_CUDA_RELEASE] is set. */
void raw_cuda_hold(const raw_cuda *cuda);

#endif
