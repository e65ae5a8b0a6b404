/* SPDX-License-Identifier: MIT
 *
 * syncpoint over OpenCL: events and semaphores as points.
 *
 * Needs no OpenCL header: the API's handles are pointers to structures that it leaves incomplete,
 * and so are they here. The library links no OpenCL: it opens the loader at run time, or uses
 * functions that the user gives.
 *
 * Rules for all of this header:
 *   - Any thread may call any function.
 *   - Whatever a point stands for has been flushed when the point is made.
 *   - An event that fails is noticed, although drivers do not call back then, and no command is
 *     ever enqueued on an event that is known to have failed: that can hang a queue.
 *   - In a child after fork() everything but release is SP_ERROR_FORKED.
 */
#ifndef SYNCPOINT_OPENCL_H
#define SYNCPOINT_OPENCL_H

#include <syncpoint/syncpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* OpenCL's own, under their own names. */
struct _cl_context;
struct _cl_command_queue;
struct _cl_event;
struct _cl_semaphore_khr;

/* ---- Context ------------------------------------------------------------------------------- */

/* The library's view of one cl_context. Thread-safety: any thread, except that destroying it
 * excludes every other call on it and on its points; releasing points and semaphores may go on
 * meanwhile. */
typedef struct sp_cl_context sp_cl_context;

/* Zero it, set `size`, then the required fields. */
typedef struct sp_cl_context_desc {
    size_t size;                 /* sizeof(sp_cl_context_desc)                                  */
    struct _cl_context *context; /* Required; retained                                          */
    /* Optional: where host waits on semaphores are enqueued. Retained. Without it a semaphore can
     * be waited for on queues only. Let nobody else use it: the wait for another side's signal
     * blocks it until that comes, and the host waits behind it, unless the queue is out-of-order.
     * (A signal of our own is waited for before its wait is enqueued.) */
    struct _cl_command_queue *wait_queue;
    /* How the functions are found: `get_function`, e.g. a look-up in the caller's own table; else
     * the library of that name; else the system's loader (libOpenCL.so.1, OpenCL.dll). None is
     * called after sp_cl_context_destroy(). */
    void *(*get_function)(void *user, const char *name); /* Optional */
    void *user;                                          /* Optional, borrowed */
    const char *library;                                 /* Optional, borrowed for the call */
    sp_log log;                                          /* Optional */
} sp_cl_context_desc;

/* Loads the entry points and asks the context's devices what they can do.
 * Returns: SP_OK; INVALID_ARGUMENT (also a wait_queue of another context); NOT_SUPPORTED naming the
 *   missing library, function or version (OpenCL 1.2 is needed); WRONG_CONTEXT (no cl_context, says
 *   the driver); OUT_OF_MEMORY; DEVICE_LOST; BACKEND. On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_cl_context_create(const sp_cl_context_desc *desc, sp_cl_context **out);

/* Ends the library's use of the cl_context. Waits, up to `timeout_ns`, for work of its own that is
 * pending: host waits on semaphores that ran out of time. *Points* stay valid: those reached stay
 * SP_OK, the others fail with INVALID_STATE. User events that were not set fail, as when their
 * last point is released. Markers and waits that are pending in queues are not waited for: their
 * events are released, which one driver (PoCL 3.1) does not survive if they fail later. It works on
 * those that have failed for a moment more, so that they are kept for 100 ms, within the timeout.
 * Blocking: up to the timeout. NULL is SP_OK.
 * Returns: SP_OK; TIMEOUT: nothing was freed, call again; INVALID_STATE: called by an event's
 *   callback that the driver runs inside a call on this context (the end of a user event):
 *   nothing was freed; FORKED: memory was freed. Since: 0.1 */
SP_API sp_status sp_cl_context_destroy(sp_cl_context *context, uint64_t timeout_ns);

typedef struct sp_cl_caps {
    size_t size;             /* sizeof(sp_cl_caps)                                               */
    bool semaphore;          /* cl_khr_semaphore, on every device of the context                 */
    bool import_opaque_fd;   /* cl_khr_external_semaphore_opaque_fd: among the import types      */
    bool has_uuid;           /* the next two are set: cl_khr_device_uuid, first device           */
    uint8_t device_uuid[16]; /* equal to Vulkan's deviceUUID                                    */
    uint8_t driver_uuid[16];
    /* What is missing, for as long as the context lives; NULL: nothing. */
    const char *why_no_semaphore;
    const char *why_no_import;
} sp_cl_caps;

/* What the context can do, asked when it was made.
 * Returns: SP_OK; INVALID_ARGUMENT; FORKED. Since: 0.1 */
SP_API sp_status sp_cl_context_caps(const sp_cl_context *context, sp_cl_caps *caps);

/* ---- Events -------------------------------------------------------------------------------- */

/* A point for all work enqueued to the queue so far, in order or not: a marker, then a flush.
 * Work that fails while the marker waits for it fails the point, as far as the driver tells; work
 * that had failed before does not: no driver lets a marker see that.
 * Calls no allocator of ours once the context has a spare.
 * Ownership: *out is a new reference, a point of kind SP_KIND_OPENCL.
 * Returns: SP_OK; INVALID_ARGUMENT; WRONG_CONTEXT (a queue of another cl_context); OUT_OF_MEMORY;
 *   DEVICE_LOST; BACKEND; INVALID_STATE after sp_cl_context_destroy(); FORKED.
 *   On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_cl_queue_signal(sp_cl_context *context, struct _cl_command_queue *queue,
                                    sp_point *out);

/* An event that the user has. Flushes its queue, so that it will be reached; a user event has none.
 * Ownership: retained; the caller keeps and releases its own.
 * Returns: SP_OK, also for an event that has failed: the point then has, too; INVALID_ARGUMENT;
 *   WRONG_CONTEXT (an event of another cl_context); OUT_OF_MEMORY; DEVICE_LOST; BACKEND;
 *   INVALID_STATE; FORKED. Since: 0.1 */
SP_API sp_status sp_cl_event_wrap(sp_cl_context *context, struct _cl_event *event, sp_point *out);

/* A user event, which commands can wait for and the host signals. If its last point is released
 * and it was not set, it fails with ABANDONED as the cause, so that no queue waits for ever.
 * Returns: SP_OK; INVALID_ARGUMENT; OUT_OF_MEMORY; DEVICE_LOST; BACKEND; INVALID_STATE; FORKED.
 *   Since: 0.1 */
SP_API sp_status sp_cl_user_event(sp_cl_context *context, sp_point *out);

/* Completes a point of sp_cl_user_event(): SP_OK reaches it; an SP_ERROR_ status fails it, and
 * waits give FAILED with that cause. Commands that wait for a failed event end with errors of their own.
 * Drivers run event callbacks of the user's on this thread meanwhile; they may call the library.
 * Returns: SP_OK; INVALID_ARGUMENT (a number that is neither SP_OK nor one of the SP_ERROR_
 *   statuses, or not such a point): nothing is set; NOT_SUPPORTED (a carrier); INVALID_STATE if it
 *   was set before, or after sp_cl_context_destroy(); OUT_OF_MEMORY; DEVICE_LOST; BACKEND; FORKED.
 *   Since: 0.1 */
SP_API sp_status sp_cl_user_event_set(const sp_point *point, sp_status status);

/* ---- Semaphores (cl_khr_semaphore) --------------------------------------------------------- */

typedef struct sp_cl_semaphore_import_desc {
    size_t size; /* sizeof(sp_cl_semaphore_import_desc)                                         */
    int fd;      /* an opaque fd of a *binary* semaphore: duplicated                            */
    bool adopt;  /* takes the fd: it is closed on success                                       */
} sp_cl_semaphore_import_desc;

typedef struct sp_cl_semaphore sp_cl_semaphore;

/* A binary semaphore of another API, device or process. The handle is screened before the driver
 * sees it; that it is a binary's is what the caller says: drivers do not check.
 * Ownership: *out is a new reference: sp_cl_semaphore_unref().
 * Returns: SP_OK; INVALID_ARGUMENT; INVALID_HANDLE; NOT_SUPPORTED naming the missing extension;
 *   SYSTEM; OUT_OF_MEMORY; DEVICE_LOST; BACKEND; INVALID_STATE; FORKED. On error the fd is still the
 *   caller's, and open. Since: 0.1 */
SP_API sp_status sp_cl_semaphore_import(sp_cl_context *context,
                                        const sp_cl_semaphore_import_desc *desc,
                                        sp_cl_semaphore **out);

/* A cl_semaphore_khr that the user has: binary. Retained.
 * Returns: SP_OK; INVALID_ARGUMENT; NOT_SUPPORTED; WRONG_CONTEXT (a semaphore of another
 *   cl_context); OUT_OF_MEMORY; DEVICE_LOST; BACKEND; INVALID_STATE; FORKED. Since: 0.1 */
SP_API sp_status sp_cl_semaphore_wrap(sp_cl_context *context, struct _cl_semaphore_khr *semaphore,
                                      sp_cl_semaphore **out);

/* The semaphore lives until its last point, too, is released. NULL is allowed. Since: 0.1 */
SP_API sp_cl_semaphore *sp_cl_semaphore_ref(sp_cl_semaphore *semaphore);
SP_API void sp_cl_semaphore_unref(sp_cl_semaphore *semaphore);

/* The native handle. Returns a borrowed handle; NULL for NULL, and once the context is destroyed.
 * Since: 0.1 */
SP_API struct _cl_semaphore_khr *sp_cl_semaphore_handle(const sp_cl_semaphore *semaphore);

/* One signal that the other side submits. A poll says PENDING until a wait has begun, on the host
 * or on a queue, since only that wait can tell: it uses the signal up. Without flags this asserts
 * that the signal is submitted already; SP_POINT_UNSUBMITTED: not yet, sp_point_mark_submitted()
 * will say. An earlier point of the semaphore that nobody has waited for becomes INVALID_STATE.
 * Ownership: *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT; INVALID_STATE if a signal of our own, or a wait, is pending, if
 *   nothing tells when a wait has run (see sp_cl_queue_wait()), or after sp_cl_context_destroy();
 *   OUT_OF_MEMORY; DEVICE_LOST; BACKEND; FORKED. Since: 0.1 */
SP_API sp_status sp_cl_binary_point(sp_cl_semaphore *semaphore, uint32_t flags, sp_point *out);

/* ---- Waits and signals on the device ------------------------------------------------------- */

/* Signals the semaphore after all work enqueued to the queue so far, then flushes. `out` is
 * optional; without it the signal is the other side's to wait for. So it is once the point is
 * released and nobody has waited for it: the library then takes the next signal, and what the other
 * side does is the caller's to know. If the work fails, so does the point, and whatever queue waits
 * for it through the library.
 * Returns: SP_OK; INVALID_ARGUMENT; WRONG_CONTEXT; INVALID_STATE (a point of the signal before
 *   lives, and nobody has waited for it, or that wait has failed; a wait on another queue has not
 *   run; nothing tells when a wait has run: see sp_cl_queue_wait(); or after
 *   sp_cl_context_destroy()); FAILED (work on an out-of-order queue has failed);
 *   OUT_OF_MEMORY; DEVICE_LOST; BACKEND; FORKED. On error: *out is unchanged. If the flush failed,
 *   the signal may still come, and the semaphore takes no other. Since: 0.1 */
SP_API sp_status sp_cl_queue_signal_semaphore(sp_cl_context *context,
                                              struct _cl_command_queue *queue,
                                              sp_cl_semaphore *semaphore, sp_point *out);

/* Makes all work enqueued to the queue later wait, on the device, for the point: an OpenCL point of
 * this cl_context, a chain of such, or one that needs no wait (NOOP, CPU, or known reached: SP_OK
 * without a command). A semaphore's signal is claimed: used up by this wait, which is flushed. A
 * wait for events only is not: the user's own flush brings it with what is behind it.
 * Returns: SP_OK; NOT_SUBMITTED (a semaphore whose signal is not known to be submitted; a slot that
 *   is not set); INVALID_STATE (claimed by another wait; or after sp_cl_context_destroy());
 *   WRONG_CONTEXT (a point, or a queue, of another cl_context); BACKEND_MISMATCH (a point of
 *   another API); NOT_SUPPORTED (a carrier); INVALID_ARGUMENT; FAILED or another failure of the
 *   point; OUT_OF_MEMORY; DEVICE_LOST; BACKEND; FORKED.
 *   On error nothing is enqueued, and no signal used up, unless it is what comes after the wait on
 *   a semaphore that fails (a flush, the barrier of an out-of-order queue), or that wait itself, at
 *   once: it stays in the queue.
 *   So it does if the driver gives no reference to that wait's event: FAILED, mostly with
 *   OUT_OF_MEMORY as the cause, and the point has failed for good. Nothing tells then when the wait
 *   has run, so the semaphore takes no other signal and no other point (INVALID_STATE; also after a
 *   host wait that fared so): import it anew, or make another. Since: 0.1 */
SP_API sp_status sp_cl_queue_wait(sp_cl_context *context, struct _cl_command_queue *queue,
                                  const sp_point *point);

/* ---- From points to native objects --------------------------------------------------------- */

/* Borrowed; NULL if the point is not one, and once the context is destroyed. Since: 0.1 */
SP_API struct _cl_event *sp_cl_event_from_point(const sp_point *point);
SP_API struct _cl_semaphore_khr *sp_cl_semaphore_from_point(const sp_point *point);

#ifdef __cplusplus
}
#endif

#endif
