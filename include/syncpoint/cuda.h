/* SPDX-License-Identifier: MIT
 *
 * syncpoint over CUDA's driver API: events and external semaphores as points.
 *
 * Needs no CUDA header: the API's handles are pointers to structures that it leaves incomplete, and
 * so are they here; cudaStream_t and cudaEvent_t of the runtime API are the same. The library links
 * no CUDA: it opens libcuda.so.1 (nvcuda.dll) at run time.
 *
 * Rules for all of this header:
 *   - Any thread may call any function, whichever context is current there; it is current again
 *     when the function returns. The special streams (NULL, legacy, per-thread) mean those of the
 *     context that is current: another one than the sp_cuda_context's is SP_ERROR_WRONG_CONTEXT.
 *     NULL always is the legacy stream: a program that is built with per-thread default streams
 *     passes CU_STREAM_PER_THREAD (2) instead.
 *   - A stream capture that goes on, in this thread or another, is neither recorded into nor
 *     invalidated: a stream that is being captured is SP_ERROR_INVALID_STATE.
 *   - The library never synchronizes a context and never calls back from inside the driver.
 *   - A context that a kernel broke (a sticky error) is SP_ERROR_DEVICE_LOST for all its points
 *     that are not known reached.
 *   - Destroy an sp_cuda_context before its CUcontext. If the CUcontext went first, or the process
 *     is exiting, releases and waits still are safe: they find that it is gone.
 *   - In a child after fork() everything but release is SP_ERROR_FORKED.
 *   - Where BACKEND is listed, CUDA_ERROR_INVALID_VALUE is INVALID_ARGUMENT instead, and
 *     CUDA_ERROR_NOT_SUPPORTED and NOT_PERMITTED are NOT_SUPPORTED.
 */
#ifndef SYNCPOINT_CUDA_H
#define SYNCPOINT_CUDA_H

#include <syncpoint/syncpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* CUDA's own, under their own names. */
struct CUctx_st;
struct CUstream_st;
struct CUevent_st;
struct CUextSemaphore_st;

/* ---- Context ------------------------------------------------------------------------------- */

/* The library's view of one CUcontext, primary or not. Thread-safety: any thread, except that
 * destroying it excludes every other call on it and on its semaphores. What may go on meanwhile:
 * waits for its points on the host, polls of them, and releases of points and semaphores. */
typedef struct sp_cuda_context sp_cuda_context;

/* Zero it, set `size`, then what differs. */
typedef struct sp_cuda_context_desc {
    size_t size;              /* sizeof(sp_cuda_context_desc)                                   */
    struct CUctx_st *context; /* Borrowed; NULL: the one that is current on this thread         */
    const char *library;      /* Optional, borrowed for the call: another name for the driver's
                                 library than the system's */
    sp_log log;               /* Optional */
} sp_cuda_context_desc;

/* Opens the driver's library and loads the entry points.
 * Returns: SP_OK; INVALID_ARGUMENT; WRONG_CONTEXT: no context given, and none current;
 *   NOT_SUPPORTED naming the missing library or function, or the driver's version (10.1 is needed);
 *   INVALID_STATE: the CUcontext is destroyed, or the driver not initialized; OUT_OF_MEMORY;
 *   DEVICE_LOST; BACKEND.
 *   On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_cuda_context_create(const sp_cuda_context_desc *desc, sp_cuda_context **out);

/* Ends the library's use of the CUcontext: destroys its events, streams and external semaphores.
 * Waits, up to `timeout_ns`, for what was enqueued through it on external semaphores, which CUDA
 * wants done before they are destroyed: waits and signals on streams, and host waits that ran out
 * of time. *Points* stay valid: those reached stay SP_OK, the others fail with INVALID_STATE, and
 * releasing them calls no driver.
 * Blocking: up to the timeout. Then, if an external semaphore is to be destroyed, without a limit
 * until the CUcontext has nothing to do, as CUDA blocks for that: let the program's own work end
 * before. NULL is SP_OK. Of a context that is lost or gone it waits for nothing.
 * Returns: SP_OK; TIMEOUT: nothing was freed, call again; FORKED: memory was freed. Since: 0.1 */
SP_API sp_status sp_cuda_context_destroy(sp_cuda_context *context, uint64_t timeout_ns);

/* Destroys external semaphores that were released. CUDA does that only once the whole context has
 * nothing to do, and holds the caller up until then, so a release only puts it off: until this
 * call, until 64 of them have gathered, or until sp_cuda_context_destroy(). Programs that import
 * one for each frame call it where they wait anyway. While an operation that the library enqueued
 * on any semaphore is pending none is destroyed: the next call, or release, looks again. (If CUDA
 * took an operation and refused the event behind it, nobody knows when that is: then they go with
 * the CUcontext.)
 * Blocking: until the context is idle.
 * Returns: SP_OK; INVALID_ARGUMENT; INVALID_STATE; FORKED. Since: 0.1 */
SP_API sp_status sp_cuda_context_collect(sp_cuda_context *context);

typedef struct sp_cuda_caps {
    size_t size;             /* sizeof(sp_cuda_caps)                                            */
    int driver_version;      /* as cuDriverGetVersion() tells it: 1000 * major + 10 * minor     */
    int device_ordinal;      /* of the context's device                                         */
    bool has_uuid;           /* device_uuid is set                                              */
    uint8_t device_uuid[16]; /* equal to Vulkan's deviceUUID                                    */
    bool external_semaphore; /* binary: opaque fds, NT handles                                  */
    bool timeline_semaphore; /* timelines as external semaphores: driver 11.2 or later          */
    bool ipc_events;         /* events between processes                                        */
} sp_cuda_caps;

/* What the context can do, asked when it was made. That the driver knows a handle type is not that
 * the other API's driver makes such handles.
 * Returns: SP_OK; INVALID_ARGUMENT; FORKED. Since: 0.1 */
SP_API sp_status sp_cuda_context_caps(const sp_cuda_context *context, sp_cuda_caps *caps);

/* ---- Events: points of kind SP_KIND_CUDA_EVENT --------------------------------------------- */

/* A point for all work launched on the stream so far: records an event. Calls no allocator of ours,
 * and makes no event, once the context has a spare.
 * Ownership: *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT; WRONG_CONTEXT (a stream of another context);
 *   INVALID_STATE (the stream is being captured; or after sp_cuda_context_destroy(), or the CUcontext
 *   is gone); OUT_OF_MEMORY; DEVICE_LOST; BACKEND; FORKED.
 *   On error: *out is unchanged, and nothing is recorded. Since: 0.1 */
SP_API sp_status sp_cuda_stream_signal(sp_cuda_context *context, struct CUstream_st *stream,
                                       sp_point *out);

typedef struct sp_cuda_event_wrap_desc {
    size_t size;              /* sizeof(sp_cuda_event_wrap_desc)                                */
    struct CUevent_st *event; /* Required: of this context                                      */
    bool take;                /* true: takes it and destroys it at the end; false: borrows it,
                                 until the last point is released */
} sp_cuda_event_wrap_desc;

/* An event that the user recorded. Wrapping asserts that it *is* recorded (one that is not reads as
 * complete), not in a capture, and that it is not recorded again while points of it live.
 * Returns: SP_OK; INVALID_ARGUMENT; INVALID_STATE; OUT_OF_MEMORY; FORKED. Since: 0.1 */
SP_API sp_status sp_cuda_event_wrap(sp_cuda_context *context, const sp_cuda_event_wrap_desc *desc,
                                    sp_point *out);

#define SP_CUDA_IPC_SIZE 64

/* As sp_cuda_stream_signal(), with an event that another process can open by the 64 bytes of
 * `handle`. The point must live until the other process has released its own: CUDA leaves
 * undefined what becomes of an opened event once the first is destroyed.
 * Returns: as sp_cuda_stream_signal(); NOT_SUPPORTED. Since: 0.1 */
SP_API sp_status sp_cuda_stream_signal_ipc(sp_cuda_context *context, struct CUstream_st *stream,
                                           uint8_t handle[SP_CUDA_IPC_SIZE], sp_point *out);

/* The other process's point.
 * Returns: SP_OK; INVALID_ARGUMENT; INVALID_HANDLE (the driver knows no such event; also in the
 *   process that made it); NOT_SUPPORTED; INVALID_STATE; OUT_OF_MEMORY; DEVICE_LOST; BACKEND;
 *   FORKED. Since: 0.1 */
SP_API sp_status sp_cuda_event_open_ipc(sp_cuda_context *context,
                                        const uint8_t handle[SP_CUDA_IPC_SIZE], sp_point *out);

/* ---- External semaphores: points of kind SP_KIND_CUDA --------------------------------------- */

/* What the handle is. Drivers take only the fd types on Linux, only the others on Windows. */
typedef enum sp_cuda_handle_type {
    SP_CUDA_BINARY_FD = 1,    /* a binary semaphore's opaque fd                              */
    SP_CUDA_TIMELINE_FD = 2,  /* a timeline's opaque fd                                      */
    SP_CUDA_BINARY_WIN32 = 3, /* the same as NT handles                                      */
    SP_CUDA_BINARY_KMT = 4,   /* and as a global share handle                                */
    SP_CUDA_TIMELINE_WIN32 = 5,
    SP_CUDA_D3D12_FENCE = 6, /* NT handle; has values                                       */
    SP_CUDA_D3D11_FENCE = 7, /* NT handle; has values                                       */
    SP_CUDA_KEYED_MUTEX = 8, /* NT handle; a signal releases a key, a wait acquires it      */
    SP_CUDA_KEYED_MUTEX_KMT = 9
} sp_cuda_handle_type;

typedef struct sp_cuda_semaphore_import_desc {
    size_t size; /* sizeof(sp_cuda_semaphore_import_desc)                                       */
    sp_cuda_handle_type type;
    int fd;       /* the fd types: duplicated                                                   */
    bool adopt;   /* the fd types: takes the fd: it is closed on success                        */
    void *handle; /* the others: borrowed for the call                                          */
    /* Optional, for types with values: a point of the primitive that the handle was exported from,
     * at any value. Its reference is kept, and host waits and probes ask it instead of CUDA, which
     * cannot tell the value: no stream is used up by them. */
    const sp_point *origin;
} sp_cuda_semaphore_import_desc;

typedef struct sp_cuda_semaphore sp_cuda_semaphore;

/* A semaphore of another API, device or process. The handle is screened before the driver sees it;
 * whether it is a binary's or a timeline's is what the caller says: the driver does not check.
 * Ownership: *out is a new reference: sp_cuda_semaphore_unref().
 * Returns: SP_OK; INVALID_ARGUMENT (also an origin that does not count, or is of CUDA);
 *   INVALID_HANDLE; NOT_SUPPORTED (a type of another system, or the driver is too old); SYSTEM (no
 *   free fd); INVALID_STATE; OUT_OF_MEMORY; DEVICE_LOST; BACKEND; FORKED.
 *   On error the fd is still the caller's, and open. Since: 0.1 */
SP_API sp_status sp_cuda_semaphore_import(sp_cuda_context *context,
                                          const sp_cuda_semaphore_import_desc *desc,
                                          sp_cuda_semaphore **out);

/* The semaphore lives until its last point, too, is released and the library's own waits on it are
 * done. NULL is allowed. Since: 0.1 */
SP_API sp_cuda_semaphore *sp_cuda_semaphore_ref(sp_cuda_semaphore *semaphore);
SP_API void sp_cuda_semaphore_unref(sp_cuda_semaphore *semaphore);

/* The native handle. Returns a borrowed handle; NULL for NULL, and once the context is gone.
 * Since: 0.1 */
SP_API struct CUextSemaphore_st *sp_cuda_semaphore_handle(const sp_cuda_semaphore *semaphore);

/* A point of a semaphore with values, whoever signals it. Calls no allocator.
 * A host wait without an origin enqueues a wait on a stream of the library's; when its time runs
 * out, that stays in the context, and a later wait for the same value goes on with it. A poll begins
 * none: before any wait it says PENDING, unless a stream of this sp_cuda_context has signalled the
 * value or a larger one; a wait for a larger value than one that is outstanding begins once that is
 * reached. The library makes up to 16 such streams, and further waits begin when one is idle. Each takes
 * one of the few channels that a device has (8, or what CUDA_DEVICE_MAX_CONNECTIONS said when the
 * process began), and what shares one is held up. An origin has none of this. That a wait cannot begin,
 * because CUDA refuses something, is INVALID_STATE for that wait alone.
 * Ownership: *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, UINT64_MAX, a binary or keyed mutex); FORKED.
 *   Since: 0.1 */
SP_API sp_status sp_cuda_timeline_point(sp_cuda_semaphore *semaphore, uint64_t value,
                                        sp_point *out);

/* A point of a semaphore with values that has none yet: neither HAS_VALUE nor BINARY. It can be
 * passed on and given a value with sp_point_at(); waiting on it is INVALID_STATE.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, a binary or keyed mutex); FORKED. Since: 0.1 */
SP_API sp_status sp_cuda_semaphore_point(sp_cuda_semaphore *semaphore, sp_point *out);

/* One signal of a binary, or one release of a keyed mutex with `key` (binary: 0), that the other
 * side submits. Without flags this asserts that it is submitted already; SP_POINT_UNSUBMITTED: not
 * yet, sp_point_mark_submitted() will say. An earlier point of the semaphore that nobody has waited
 * for becomes INVALID_STATE. A host wait uses the signal up; of a keyed mutex it also releases the
 * key again.
 * Ownership: *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT; INVALID_STATE (a signal of our own has points, and nobody waits
 *   for it yet; a wait failed whose end nobody can tell, see sp_cuda_stream_wait(); or after
 *   sp_cuda_context_destroy(), or the CUcontext is gone); OUT_OF_MEMORY; FORKED.
 *   On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_cuda_binary_point(sp_cuda_semaphore *semaphore, uint64_t key, uint32_t flags,
                                      sp_point *out);

/* ---- Waits and signals on the device ------------------------------------------------------- */

/* Signals the semaphore after all work launched on the stream so far. With values: `value`, which
 * must be above those that we signalled before and those that are known reached, or the next one if
 * it is 0; minting and submitting are one step under the semaphore's lock. Binary: 0; keyed mutex:
 * the key.
 * `out` is optional. A binary's signal without it is the other side's to wait for, and so is one
 * whose last point is released without a wait; a later signal is the caller's to order behind that
 * wait.
 * Returns: SP_OK; INVALID_ARGUMENT (also a value that does not increase); WRONG_CONTEXT (a stream
 *   of another context); DEVICE_MISMATCH (a semaphore of another sp_cuda_context); INVALID_STATE
 *   (the stream is being captured; binary: a signal has points, and nobody waits for it yet, or a
 *   wait failed whose end nobody can tell; a timeline has no values left; after
 *   sp_cuda_context_destroy(), or the CUcontext is gone); FAILED or another failure of the origin,
 *   which is asked for its value; OUT_OF_MEMORY; DEVICE_LOST; BACKEND; FORKED.
 *   On error: nothing is signalled, the value is given back, *out is unchanged. That CUDA refuses
 *   the event which the library records behind a signal is no error: polls see the value by a later
 *   signal then, host waits as if it were the other side's. Since: 0.1 */
SP_API sp_status sp_cuda_stream_signal_semaphore(sp_cuda_context *context,
                                                 struct CUstream_st *stream,
                                                 sp_cuda_semaphore *semaphore, uint64_t value,
                                                 sp_point *out);

/* Makes all work launched on the stream later wait, on the device, for the point: an event of any
 * context and device, a semaphore of this context, a chain of such, or one that needs no wait
 * (NOOP, CPU, or known reached and not a binary: SP_OK without a call). A binary's signal is
 * claimed: used up by this wait. A timeline may be waited on before its signal is submitted.
 * Returns: SP_OK; NOT_SUBMITTED (a binary whose signal is not known to be submitted; a slot that is
 *   not set): nothing was enqueued; INVALID_ARGUMENT; INVALID_STATE (binary: claimed by another
 *   wait; the stream is being captured; a point without a value; after sp_cuda_context_destroy(),
 *   or a CUcontext is gone, this one or the event's); WRONG_CONTEXT (a stream of another context);
 *   DEVICE_MISMATCH (a semaphore of another sp_cuda_context); BACKEND_MISMATCH (a point of another
 *   API that is not reached); NOT_SUPPORTED (a carrier); FAILED or another failure of the point;
 *   OUT_OF_MEMORY; DEVICE_LOST; BACKEND; FORKED.
 *   On error: a part of a chain may be enqueued. Of a binary, a wait that is enqueued without an
 *   event of the library's behind it, because CUDA refused that, has used the signal up, and the
 *   point fails: nobody can tell when that wait is over, so the semaphore takes no further signal, and
 *   its primitive is to be imported anew. Since: 0.1 */
SP_API sp_status sp_cuda_stream_wait(sp_cuda_context *context, struct CUstream_st *stream,
                                     const sp_point *point);

/* ---- From points to native objects --------------------------------------------------------- */

/* Borrowed; NULL if the point is not one, and once the context is gone. Since: 0.1 */
SP_API struct CUevent_st *sp_cuda_event_from_point(const sp_point *point);
SP_API struct CUextSemaphore_st *sp_cuda_semaphore_from_point(const sp_point *point);

#ifdef __cplusplus
}
#endif

#endif
