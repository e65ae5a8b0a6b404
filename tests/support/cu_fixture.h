/* SPDX-License-Identifier: MIT
 *
 * A CUDA context of the test's own, on the double or on the driver, with the raw calls that tests
 * need beside the library's: gates, work that takes time, words that streams write.
 */
#ifndef TESTS_SUPPORT_CU_FIXTURE_H
#define TESTS_SUPPORT_CU_FIXTURE_H

#include "doubles/cuda/cuda_double.h"
#include "test.h"

#include <syncpoint/cuda.h>

/* What a target of a CUDA test program offers: bits of test_target.features. */
enum {
    ON_ANY_CUDA = 0,
    ON_DOUBLE = 1 << 0, /* failures on command, counted calls */
    ON_GPU = 1 << 1,    /* a real driver                      */
    WITH_IDS = 1 << 2,  /* contexts and streams have unique numbers: CUDA 12.0 */
};

typedef struct cu_options {
    const char *library; /* for the library; NULL: the system's */
    bool is_double;
} cu_options;

extern const test_target cu_targets[];
extern const size_t cu_target_count;

typedef struct cu_ipc_handle {
    char bytes[64];
} cu_ipc_handle;

/* X(name, symbol, parameters) */
#define CU_FUNCTIONS(X)                                                                            \
    X(Init, "cuInit", (unsigned int))                                                              \
    X(GetErrorName, "cuGetErrorName", (CUresult, const char **))                                   \
    X(DeviceGet, "cuDeviceGet", (CUdevice *, int))                                                 \
    X(DeviceGetCount, "cuDeviceGetCount", (int *))                                                 \
    X(CtxCreate, "cuCtxCreate_v2", (CUcontext *, unsigned int, CUdevice))                          \
    X(CtxDestroy, "cuCtxDestroy_v2", (CUcontext))                                                  \
    X(CtxSetCurrent, "cuCtxSetCurrent", (CUcontext))                                               \
    X(CtxGetCurrent, "cuCtxGetCurrent", (CUcontext *))                                             \
    X(CtxPopCurrent, "cuCtxPopCurrent_v2", (CUcontext *))                                          \
    X(CtxPushCurrent, "cuCtxPushCurrent_v2", (CUcontext))                                          \
    X(PrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (CUcontext *, CUdevice))                       \
    X(PrimaryCtxRelease, "cuDevicePrimaryCtxRelease_v2", (CUdevice))                               \
    X(StreamCreate, "cuStreamCreate", (CUstream *, unsigned int))                                  \
    X(StreamDestroy, "cuStreamDestroy_v2", (CUstream))                                             \
    X(StreamSynchronize, "cuStreamSynchronize", (CUstream))                                        \
    X(StreamQuery, "cuStreamQuery", (CUstream))                                                    \
    X(StreamWaitEvent, "cuStreamWaitEvent", (CUstream, CUevent, unsigned int))                     \
    X(StreamWaitValue32, "cuStreamWaitValue32_v2",                                                 \
      (CUstream, CUdeviceptr, uint32_t, unsigned int))                                             \
    X(StreamBeginCapture, "cuStreamBeginCapture_v2", (CUstream, int))                              \
    X(StreamEndCapture, "cuStreamEndCapture", (CUstream, void **))                                 \
    X(StreamIsCapturing, "cuStreamIsCapturing", (CUstream, int *))                                 \
    X(GraphDestroy, "cuGraphDestroy", (void *))                                                    \
    X(EventCreate, "cuEventCreate", (CUevent *, unsigned int))                                     \
    X(EventDestroy, "cuEventDestroy_v2", (CUevent))                                                \
    X(EventQuery, "cuEventQuery", (CUevent))                                                       \
    X(EventRecord, "cuEventRecord", (CUevent, CUstream))                                           \
    X(MemHostAlloc, "cuMemHostAlloc", (void **, size_t, unsigned int))                             \
    X(MemHostGetDevicePointer, "cuMemHostGetDevicePointer_v2",                                     \
      (CUdeviceptr *, void *, unsigned int))                                                       \
    X(MemFreeHost, "cuMemFreeHost", (void *))                                                      \
    X(MemsetD32Async, "cuMemsetD32Async", (CUdeviceptr, unsigned int, size_t, CUstream))

/* Of the driver only. */
#define CU_KERNEL_FUNCTIONS(X)                                                                     \
    X(ModuleLoadData, "cuModuleLoadData", (CUmodule *, const void *))                              \
    X(ModuleGetFunction, "cuModuleGetFunction", (CUfunction *, CUmodule, const char *))            \
    X(LaunchKernel, "cuLaunchKernel",                                                              \
      (CUfunction, unsigned int, unsigned int, unsigned int, unsigned int, unsigned int,           \
       unsigned int, unsigned int, CUstream, void **, void **))

typedef struct cu_functions {
#define CU_MEMBER(name, symbol, parameters) CUresult(CUDAAPI *name) parameters;
    CU_FUNCTIONS(CU_MEMBER)
    CU_KERNEL_FUNCTIONS(CU_MEMBER)
#undef CU_MEMBER
} cu_functions;

extern const cu_options *cu_target;   /* the target's                                           */
extern cu_functions cu;               /* the raw calls                                          */
extern const cuda_double *cu_control; /* NULL on the driver                                     */

/* Opens the driver, or the double, once. Skips the case if there is no GPU. */
void cu_load(const cu_options *options);

/* Another context with the library on it. It is current when this returns. */
typedef struct cu_context {
    CUcontext handle;
    CUstream stream; /* non-blocking */
    sp_cuda_context *sp;
    CUmodule module; /* with the kernels, on the driver              */
    bool broken;     /* by cu_break()                                */
} cu_context;

void cu_open(cu_context *context, int device);
sp_cuda_context_desc cu_context_desc(CUcontext handle);
/* Ends the library's object, checks what it has left behind, then ends ours. */
void cu_close(cu_context *context);
CUstream cu_new_stream(void);

void cu_check(CUresult result, const char *text, const char *file, int line);
#define CHECK_CU(call) cu_check((call), #call, __FILE__, __LINE__)

/* Work on the stream that takes so long. The context must be current. */
void cu_delay(cu_context *context, CUstream stream, uint64_t ns);
/* A kernel that breaks the context; on the double, it is broken at once. */
void cu_break(cu_context *context, CUstream stream);

/* A word that streams wait for and write, and the host too. */
typedef struct cu_word {
    volatile uint32_t *host;
    CUdeviceptr device;
} cu_word;
void cu_word_init(cu_word *word);
void cu_word_fini(cu_word *word);
void cu_word_set(cu_word *word, uint32_t value); /* by the host */
uint32_t cu_word_get(const cu_word *word);
void cu_word_await(cu_word *word, CUstream stream,
                   uint32_t value); /* the stream stops until then */
void cu_word_write(cu_word *word, CUstream stream, uint32_t value); /* by the stream */
/* Fails the case unless the word stays 0 for a while. */
#define CHECK_UNWRITTEN(word) CHECK(cu_word_stays_zero(word))
bool cu_word_stays_zero(const cu_word *word);
/* Waits until the word has that value. */
bool cu_word_arrives(const cu_word *word, uint32_t value);

#endif
