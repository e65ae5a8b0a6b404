/* SPDX-License-Identifier: MIT
 *
 * syncpoint over OpenGL and OpenGL ES: fence syncs and semaphores as points.
 *
 * Needs no GL header: a GLsync, an EGLSync and an EGLDisplay are void pointers here, names of
 * objects are uint32_t. The library links no GL: every entry point comes through the user's
 * get_proc_address, and whether one may be called is read from extension strings, never from the
 * pointer.
 *
 * Rules for all of this header:
 *   - A function that takes a context needs it current on the calling thread, or one that shares
 *     objects with it where that is said; else it returns SP_ERROR_WRONG_CONTEXT and calls nothing.
 *     EGL tells of contexts of the API that eglBindAPI() set on that thread.
 *   - Points that the library makes are EGLSyncs where EGL has fence syncs: any thread may wait for
 *     them, with no context current. A GLsync can be waited for where its context, or one that
 *     shares with it, is current, or through the context's helper: sp_poll() there may say PENDING
 *     while another thread begins a wait for a semaphore in the helper.
 *   - Whatever a point stands for has been flushed when the point is made.
 *   - GL objects released on a thread without the context are deleted by the next call that has it
 *     current.
 *   - glGetError() is read after calls that report no other way: an error of yours that was pending
 *     then is lost, and logged.
 *   - A context that is known to be lost gives SP_ERROR_DEVICE_LOST, without a call into GL.
 *   - In a child after fork() everything but release is SP_ERROR_FORKED.
 */
#ifndef SYNCPOINT_OPENGL_H
#define SYNCPOINT_OPENGL_H

#include <syncpoint/syncpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Context ------------------------------------------------------------------------------- */

/* Who loaded GL: decides how the current context is asked for and which syncs there may be. */
typedef enum sp_gl_loader {
    SP_GL_LOADER_EGL = 1,     /* the system's EGL; desktop GL or GLES                            */
    SP_GL_LOADER_ANGLE = 2,   /* ANGLE's EGL                                                     */
    SP_GL_LOADER_ANDROID = 3, /* Android's EGL                                                  */
    SP_GL_LOADER_GLX = 4,
    SP_GL_LOADER_WGL = 5,
    SP_GL_LOADER_CGL = 6
} sp_gl_loader;

typedef void (*sp_gl_function)(void);

/* The library's view of one GL context. Thread-safety: as each function says; releasing points and
 * semaphores is fine on any thread. */
typedef struct sp_gl_context sp_gl_context;

/* Zero it, set `size`, then the required fields. */
typedef struct sp_gl_context_desc {
    size_t size;         /* sizeof(sp_gl_context_desc)                                          */
    sp_gl_loader loader; /* Required                                                            */
    /* Required. For EGL and ANGLE eglGetProcAddress itself; for the others a function that also finds
     * core GL and the loader's own functions: glXGetCurrentContext, wglGetCurrentContext,
     * CGLGetCurrentContext. It must be of that loader: some find a stub for any name. */
    sp_gl_function (*get_proc_address)(const char *name);
    /* Optional: a context made before, with which this one shares objects. Borrowed for the call. */
    sp_gl_context *share;
    /* Optional, both or none: a further native context that shares objects with this one and that
     * nobody else uses, so that GLsyncs and GL semaphores can be waited for, and sync_files
     * imported, on any thread. enter() makes it current on the calling thread, and says whether it
     * could: if not, the wait or import is WRONG_CONTEXT. leave() restores what was current
     * before. Never called by two threads at once, nor nested; left again after a few GL calls.
     * Neither may call this library. */
    bool (*helper_enter)(void *user);
    void (*helper_leave)(void *user);
    void *helper_user;
    sp_log log; /* Optional */
} sp_gl_context_desc;

/* Loads the entry points and reads what the context that is current can do.
 * Ownership: borrows the native context until sp_gl_context_destroy().
 * Returns: SP_OK; INVALID_ARGUMENT; WRONG_CONTEXT: none is current; NOT_SUPPORTED naming the
 *   missing function or version (OpenGL 3.2, OpenGL ES 3.0, GL_ARB_sync, GL_APPLE_sync or
 *   EGL_KHR_fence_sync: one is needed); OUT_OF_MEMORY; DEVICE_LOST or FORKED, of `share`.
 *   On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_gl_context_create(const sp_gl_context_desc *desc, sp_gl_context **out);

/* Ends the library's use of the native context: deletes what was left to delete. Points stay valid:
 * those reached stay SP_OK, the others fail with INVALID_STATE, and releasing them calls no driver.
 * Semaphores can only be released then; those of contexts that share with it go on, whoever has
 * signalled or waited for them. Waits not for the GPU, since GL keeps what its commands still need,
 * but for calls into the driver, and of helper_enter() and helper_leave(), that other threads are in
 * by way of points: none is made once this has returned. NULL is SP_OK.
 * Threads: the context, or one it shares with, is current; excludes every other call that takes it
 *   or one of its semaphores. Points may be used, waited for and released by other threads
 *   meanwhile.
 * Blocking: so long as such calls last: 5 ms, or what the driver takes to begin a wait.
 * Returns: SP_OK; WRONG_CONTEXT: nothing was freed, make it current, or see sp_gl_context_lost();
 *   FORKED: memory and handles were freed. Since: 0.1 */
SP_API sp_status sp_gl_context_destroy(sp_gl_context *context);

/* Says that the native context is gone, or was reset (robustness): GL objects are forgotten, points
 * not known reached fail with DEVICE_LOST, and no call goes into GL any more. What is left to do is
 * sp_gl_context_destroy(), which then needs no context. NULL is allowed. Any thread.
 * Since: 0.1 */
SP_API void sp_gl_context_lost(sp_gl_context *context);

/* Deletes what was released on other threads; every other call with the context current does so,
 * too. Threads: the context, or one it shares with, is current.
 * Returns: SP_OK; INVALID_ARGUMENT; WRONG_CONTEXT; DEVICE_LOST; FORKED. Since: 0.1 */
SP_API sp_status sp_gl_context_collect(sp_gl_context *context);

typedef struct sp_gl_caps {
    size_t size;             /* sizeof(sp_gl_caps)                                              */
    bool gl_sync;            /* GLsync: core, GL_ARB_sync, GL_APPLE_sync                        */
    bool egl_sync;           /* EGLSync: core of EGL 1.5, or EGL_KHR_fence_sync                 */
    bool egl_wait_sync;      /* an EGLSync can be waited for on the device                      */
    bool native_fence;       /* EGL_ANDROID_native_fence_sync: sync_file in and out             */
    bool semaphore;          /* GL_EXT_semaphore                                                */
    bool semaphore_fd;       /* GL_EXT_semaphore_fd                                             */
    bool semaphore_win32;    /* GL_EXT_semaphore_win32: D3D12 fences, too                       */
    bool timeline_semaphore; /* GL_NV_timeline_semaphore                                        */
    bool has_uuid;           /* the next two are set                                            */
    uint8_t device_uuid[16]; /* GL_DEVICE_UUID_EXT, equal to Vulkan's deviceUUID                */
    uint8_t driver_uuid[16];
    const char *why_no_semaphore; /* a constant that says what is missing; NULL: nothing        */
} sp_gl_caps;

/* What the context can do, read when it was made. Any thread.
 * Returns: SP_OK; INVALID_ARGUMENT; FORKED. Since: 0.1 */
SP_API sp_status sp_gl_context_caps(const sp_gl_context *context, sp_gl_caps *caps);

/* ---- Fence syncs: points of kind SP_KIND_OPENGL_SYNC --------------------------------------- */

enum {
    SP_GL_EXPORTABLE = 1 << 0 /* the point can be exported as a sync_file */
};

/* A point for all work of the context so far: a fence, then a flush. The flush is what lets other
 * contexts and threads wait.
 * Threads: the context is current. Calls no allocator of ours once the context has a spare.
 * Returns: SP_OK; INVALID_ARGUMENT; WRONG_CONTEXT; NOT_SUPPORTED (SP_GL_EXPORTABLE without native
 *   fences); OUT_OF_MEMORY; DEVICE_LOST; BACKEND; FORKED. On error: *out is unchanged.
 * Since: 0.1 */
SP_API sp_status sp_gl_context_signal(sp_gl_context *context, uint32_t flags, sp_point *out);

typedef struct sp_gl_sync_wrap_desc {
    size_t size;   /* sizeof(sp_gl_sync_wrap_desc)                                              */
    void *sync;    /* Required: a GLsync, or an EGLSync if `display` is set                     */
    void *display; /* the EGLDisplay of an EGLSync; NULL: `sync` is a GLsync                    */
    bool take;     /* true: takes it, and deletes it at the end; false: borrows it, until the last
                      point is released */
} sp_gl_sync_wrap_desc;

/* A sync that the user made, in this context or in one that shares with it. Flushes, so that a
 * fence of this context will be reached; a fence of another context is the caller's to flush there.
 * Threads: the context is current.
 * Returns: SP_OK; INVALID_ARGUMENT (also: it is no sync of this context); WRONG_CONTEXT;
 *   NOT_SUPPORTED (no such syncs here); OUT_OF_MEMORY; DEVICE_LOST; FORKED. On error: *out is
 *   unchanged, and the sync is still the caller's. Since: 0.1 */
SP_API sp_status sp_gl_sync_wrap(sp_gl_context *context, const sp_gl_sync_wrap_desc *desc,
                                 sp_point *out);

/* A point from a sync_file (EGL_ANDROID_native_fence_sync). -1 is "already signalled": a point
 * that is reached. The fd is duplicated, or, if `adopt`, taken: closed on success.
 * Threads: the context, or one that shares with it, is current; any with a helper, and for -1. The
 * display must have sync_files for -1, too.
 * Returns: SP_OK; INVALID_ARGUMENT; INVALID_HANDLE: not an open sync_file, and not -1;
 *   WRONG_CONTEXT; NOT_SUPPORTED; SYSTEM (no free fd); OUT_OF_MEMORY; BACKEND; DEVICE_LOST; FORKED.
 *   TIMEOUT: it needs the helper, which another thread's wait held for 100 ms (a driver may block
 *   there until the signal comes); try again, or make the context current. Unless it is SP_OK, *out
 *   is unchanged, and the fd is still the caller's, and open. Since: 0.1 */
SP_API sp_status sp_gl_sync_import_fd(sp_gl_context *context, int fd, bool adopt, sp_point *out);

/* A point made with SP_GL_EXPORTABLE, or imported from a sync_file, as a sync_file. It uses nothing
 * up: a fence sync serves any number of waits. Threads: any.
 * Ownership: *fd is a new handle, which the caller closes, or -1: already signalled.
 * Returns: SP_OK; INVALID_ARGUMENT; NOT_SUPPORTED (another kind of point, or not exportable);
 *   SYSTEM (no free fd); OUT_OF_MEMORY; BACKEND; DEVICE_LOST; INVALID_STATE: its context was
 *   destroyed; another failure of the point; FORKED. On error: *fd is unchanged. Since: 0.1 */
SP_API sp_status sp_gl_point_export_sync_fd(const sp_point *point, int *fd);

/* ---- Semaphores: points of kind SP_KIND_OPENGL ---------------------------------------------
 *
 * GL cannot be asked where a semaphore is. A host wait (sp_wait()) inserts a wait and a fence into
 * the helper's stream, or, without a helper, into that of the context that is current: which then
 * stands still until the signal, so do not wait there for what the same context signals later. With
 * a helper that cannot be entered the wait is WRONG_CONTEXT, whatever is current. A wait whose time
 * runs out stays inserted; the next one goes on with it. Such waits run one after the other: one
 * for value 7 that was begun after one for 9 is noticed at 9. Sixteen of one semaphore are begun; a
 * further one for a higher value is once the lowest of them is reached. sp_poll() inserts nothing:
 * it is PENDING until such a wait has begun, but for values that this library signalled.
 *
 * A semaphore depends on the context that it was imported with, and on none of those that share
 * with it. A wait for a value whose fence the driver refuses or lets fail ends with INVALID_STATE,
 * and the semaphore has not failed; one signal of a binary has. Where the fence was refused, nobody
 * knows when the wait has run, so that sp_gl_context_signal_semaphore() refuses the binary from then
 * on: import another one. The same goes for a wait that the driver held up for more than 8 s, since
 * some give up and go on.
 */

/* Objects whose memory the semaphore hands over. The other API's side needs the same list. */
typedef struct sp_gl_barriers {
    size_t size;             /* sizeof(sp_gl_barriers)                                         */
    const uint32_t *buffers; /* Optional: names                                                */
    uint32_t buffer_count;
    uint32_t texture_count;
    const uint32_t *textures; /* Optional: names                                                */
    const uint32_t *layouts;  /* with textures: GL_LAYOUT_..._EXT, one each                     */
} sp_gl_barriers;

typedef enum sp_gl_semaphore_type {
    SP_GL_SEMAPHORE_BINARY = 1,
    SP_GL_SEMAPHORE_TIMELINE = 2,   /* GL_NV_timeline_semaphore                                 */
    SP_GL_SEMAPHORE_D3D12_FENCE = 3 /* has values, too                                          */
} sp_gl_semaphore_type;

typedef enum sp_gl_handle_type {
    SP_GL_HANDLE_OPAQUE_FD = 1,
    SP_GL_HANDLE_OPAQUE_WIN32 = 2,
    SP_GL_HANDLE_OPAQUE_WIN32_KMT = 3,
    SP_GL_HANDLE_D3D12_FENCE = 4
} sp_gl_handle_type;

typedef struct sp_gl_semaphore_import_desc {
    size_t size; /* sizeof(sp_gl_semaphore_import_desc)                                         */
    sp_gl_semaphore_type type;
    sp_gl_handle_type handle_type;
    int fd;       /* OPAQUE_FD: duplicated                                                      */
    bool adopt;   /* OPAQUE_FD: takes the fd: it is closed on success                           */
    void *handle; /* the Win32 types: borrowed for the call                                     */
} sp_gl_semaphore_import_desc;

typedef struct sp_gl_semaphore sp_gl_semaphore;

/* A semaphore of another API, device or process. The handle is screened before the driver sees it;
 * that it is of `type` is what the caller says: drivers do not check, and a timeline that is
 * imported as a binary hangs every wait.
 * Threads: the context, or one that shares with it, is current.
 * Ownership: *out is a new reference: sp_gl_semaphore_unref().
 * Returns: SP_OK; INVALID_ARGUMENT (also a type that goes with no such handle); WRONG_CONTEXT;
 *   INVALID_HANDLE; NOT_SUPPORTED naming the missing extension; SYSTEM; OUT_OF_MEMORY; BACKEND;
 *   DEVICE_LOST; FORKED. On error the fd is still the caller's, and open. Since: 0.1 */
SP_API sp_status sp_gl_semaphore_import(sp_gl_context *context,
                                        const sp_gl_semaphore_import_desc *desc,
                                        sp_gl_semaphore **out);

/* The semaphore lives until its last point, too, is released. NULL is allowed. Since: 0.1 */
SP_API sp_gl_semaphore *sp_gl_semaphore_ref(sp_gl_semaphore *semaphore);
SP_API void sp_gl_semaphore_unref(sp_gl_semaphore *semaphore);

/* The GL name; 0 for NULL, and once the context is gone. Since: 0.1 */
SP_API uint32_t sp_gl_semaphore_name(const sp_gl_semaphore *semaphore);

/* A point of a semaphore with values (timeline, D3D12 fence), whoever signals it. Calls no
 * allocator. Any thread. Ownership: *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, UINT64_MAX, a binary); FORKED. Since: 0.1 */
SP_API sp_status sp_gl_timeline_point(sp_gl_semaphore *semaphore, uint64_t value, sp_point *out);

/* One signal of a binary that the other side submits. Without flags this asserts that it is
 * submitted already; SP_POINT_UNSUBMITTED: not yet, sp_point_mark_submitted() will say. An earlier
 * point of the semaphore that nobody has waited for becomes INVALID_STATE. Any thread.
 * Ownership: *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, one with values, other flags); INVALID_STATE if a signal
 *   of our own is pending and nobody waits for it yet, if another thread is just inserting a wait
 *   for the earlier point, or if the context was destroyed; OUT_OF_MEMORY; DEVICE_LOST; FORKED.
 *   On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_gl_binary_point(sp_gl_semaphore *semaphore, uint32_t flags, sp_point *out);

/* ---- Waits and signals on the device ------------------------------------------------------- */

/* Signals the semaphore after all work of the context so far, then flushes. With values: `value`,
 * which must be above those that we signalled before, or the next one if it is 0; setting it and
 * signalling are one step under the semaphore's lock, and the signal waits for an earlier one from
 * another context, so that the value never goes back. Binary: `value` is 0.
 * Threads: the context is current. `barriers` is optional, and borrowed for the call.
 * `out` is optional; without it a binary's signal is the other side's to wait for. Releasing its
 * last point without a wait leaves it to the other side, too: a later signal is accepted then.
 * Returns: SP_OK; INVALID_ARGUMENT (also a value that does not increase); WRONG_CONTEXT (also: the
 *   semaphore is of a context that shares nothing with this one); INVALID_STATE (binary: a signal
 *   has a point and nobody waits for it yet, or its wait is just being inserted, or, in another
 *   context's stream, has not run; or a wait got no fence, and another semaphore must be imported;
 *   no value is left; the semaphore's context was destroyed);
 *   OUT_OF_MEMORY; BACKEND; DEVICE_LOST; FORKED. On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_gl_context_signal_semaphore(sp_gl_context *context, sp_gl_semaphore *semaphore,
                                                uint64_t value, const sp_gl_barriers *barriers,
                                                sp_point *out);

/* Makes all later work of the context wait, on the device, for the point: a GL point, a chain of
 * such, or one that needs no wait (NOOP, CPU, or known reached: SP_OK without a call). A binary's
 * signal is claimed: used up by this wait.
 * `barriers` is optional, borrowed for the call, and goes with the last semaphore that is waited
 * for. With it, semaphores with values are waited for even where they are known reached, and there
 * must be one to wait for. Without a buffer or texture in it, it counts as NULL.
 * Threads: the context is current.
 * Returns: SP_OK; NOT_SUBMITTED (a binary whose signal is not known to be submitted; a slot that
 *   is not set): nothing was called; INVALID_STATE (binary: claimed by another wait; the point's
 *   context was destroyed);
 *   WRONG_CONTEXT (also: the point is of a context that shares nothing with this one);
 *   BACKEND_MISMATCH (a point of another API); DEVICE_MISMATCH (an EGLSync of another display);
 *   NOT_SUPPORTED (an EGLSync, and the display cannot wait for one on the device; barriers, and no
 *   semaphore to wait for; a carrier);
 *   INVALID_ARGUMENT; OUT_OF_MEMORY; FAILED or another failure of the point; BACKEND; DEVICE_LOST;
 *   FORKED. On BACKEND, OUT_OF_MEMORY or DEVICE_LOST some of a chain's waits may be inserted: the
 *   binaries' points among them have failed if nothing tells when they have run.
 * Since: 0.1 */
SP_API sp_status sp_gl_context_wait(sp_gl_context *context, const sp_point *point,
                                    const sp_gl_barriers *barriers);

/* ---- From points to native objects --------------------------------------------------------- */

/* Borrowed; NULL, or 0, if the point is not one, and once the context is gone. Since: 0.1 */
SP_API void *sp_gl_sync_from_point(const sp_point *point);
SP_API uint32_t sp_gl_semaphore_name_from_point(const sp_point *point);

#ifdef __cplusplus
}
#endif

#endif
