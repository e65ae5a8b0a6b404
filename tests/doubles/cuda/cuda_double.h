/* SPDX-License-Identifier: MIT
 *
 * A double of libcuda: contexts, streams, events and external semaphores, run by one thread. It
 * behaves as CUDA's documentation says, also where that is awkward: an event that was never
 * recorded is complete, a query can invalidate another thread's capture, a stream of another
 * context is an invalid handle; and as NVIDIA's driver does: a semaphore is destroyed only once its
 * context has nothing to do.
 *
 * It is a shared object that is opened like the driver. Tests control it through one symbol.
 */
#ifndef TESTS_DOUBLES_CUDA_CUDA_DOUBLE_H
#define TESTS_DOUBLES_CUDA_CUDA_DOUBLE_H

#include <stdbool.h>
#include <stdint.h>

#include <ffnvcodec/dynlink_cuda.h>

#define CUDA_DOUBLE_SYMBOL "cuda_double"

typedef enum cuda_double_kind {
    CUDA_DOUBLE_EVENT,
    CUDA_DOUBLE_STREAM,
    CUDA_DOUBLE_SEMAPHORE
} cuda_double_kind;

typedef struct cuda_double {
    /* How often a function was called, by its versioned name; NULL: all of them. */
    unsigned (*calls)(const char *name);
    /* Calls of that function (NULL: any), but the first `skip`, give `result`; `count` of them. */
    void (*inject)(const char *name, unsigned skip, unsigned count, int result);
    unsigned (*failed)(void); /* how many have done so */
    void (*heal)(void);
    /* After the next call of that function, on its thread, before it returns: run(user), once. */
    void (*call_after)(const char *name, void (*run)(void *user), void *user);
    /* A failed import closes the fd all the same. */
    void (*close_on_failed_import)(bool on);

    void (*set_version)(int version);            /* what cuDriverGetVersion() says                */
    void (*set_attribute)(int which, int value); /* of the device                                */
    void (*break_context)(CUcontext context, int result); /* a sticky error                      */
    void (*end)(bool ended); /* as at the end of the process: everything is DEINITIALIZED        */

    unsigned (*live)(cuda_double_kind kind); /* made and not destroyed, of living contexts       */
    unsigned (*misuse)(void); /* calls with handles that are destroyed, or on a wrong context    */
    unsigned (*context_depth)(void); /* of this thread's stack                                   */
    int (*capture_mode)(void);       /* of this thread                                           */
    unsigned (*pending)(void);       /* operations that have not run                             */

    void (*delay)(CUstream stream, uint64_t ns); /* work that takes so long                      */
    /* As if it were destroyed, and the next stream of `to` made at its address. */
    void (*move_stream)(CUstream stream, CUcontext to);

    /* The other API's side of semaphores. */
    int (*make_fd)(bool timeline); /* a handle for an import; the caller closes it               */
    void *(*make_handle)(bool counting, bool keyed);
    void *(*handle_of_fd)(int fd); /* the same semaphore, also when no fd names it any more     */
    void (*signal_handle)(void *handle, uint64_t value);
    /* Of a binary: 1 if it is signalled; of a keyed mutex: the key that it is released with. */
    uint64_t (*value_of_handle)(void *handle);
} cuda_double;

#endif
