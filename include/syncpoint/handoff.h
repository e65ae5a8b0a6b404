/* SPDX-License-Identifier: MIT
 *
 * The per-frame contract of texture sharing: a producer renders a frame, a host renderer imports
 * and samples it. A synchronizer has two hooks, called by the host for each frame:
 *
 *   sp_synchronizer_producer_complete()  before the frame's image is imported: from here on the
 *                                        host's queue does not run ahead of the producer;
 *   sp_synchronizer_consumer_ready()     after the import, before the texture is sampled.
 *
 * Only what synchronisation needs of a frame and a texture is here.
 */
#ifndef SYNCPOINT_HANDOFF_H
#define SYNCPOINT_HANDOFF_H

#include <syncpoint/syncpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* How the producer says that the frame is complete. New ones may be added. */
typedef enum sp_mechanism {
    SP_MECHANISM_NONE = 0,                        /* it is complete already                       */
    SP_MECHANISM_IMPLICIT_GL_FLUSH = 1,           /* the producer flushed GL; the driver orders   */
    SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE = 2, /* the frame brings a semaphore                */
    SP_MECHANISM_EXPLICIT_FENCE = 3               /* the frame brings a fence and a value         */
} sp_mechanism;

/* The name of a mechanism, "explicit-external-semaphore"; "unknown" if it is none. Since: 0.1 */
SP_API const char *sp_mechanism_name(sp_mechanism mechanism);

/* What the frame's image, and with it its sync handle, is. New ones may be added. */
typedef enum sp_frame_kind {
    SP_FRAME_UNKNOWN = 0,
    SP_FRAME_VULKAN_OPAQUE_FD = 1,
    SP_FRAME_DMA_BUF = 2,
    SP_FRAME_D3D12_SHARED = 3,
    SP_FRAME_D3D11_SHARED = 4,
    SP_FRAME_METAL_IOSURFACE = 5,
    SP_FRAME_GL_TEXTURE = 6
} sp_frame_kind;

/* The name of a frame's kind, "dma-buf"; "unknown" if it is none. Since: 0.1 */
SP_API const char *sp_frame_kind_name(sp_frame_kind kind);

/* The producer's side of one frame. Start from SP_FRAME_INIT, which has no fd, and set what the
 * mechanism needs. (A zeroed one names fd 0.) */
typedef struct sp_frame {
    size_t size;          /* sizeof(sp_frame)                                                    */
    sp_frame_kind kind;   /* Required                                                            */
    int semaphore_fd;     /* EXPLICIT_*, on fd platforms; else -1                                */
    bool adopt_fd;        /* EXPLICIT_*: the synchronizer takes the fd: closed on success only   */
    void *shared_handle;  /* EXPLICIT_*: NT handle, or native event; borrowed                    */
    uint64_t fence_value; /* EXPLICIT_FENCE                                                      */
} sp_frame;

/* sp_frame frame = SP_FRAME_INIT; */
#define SP_FRAME_INIT                                                                              \
    {                                                                                              \
        sizeof(sp_frame), SP_FRAME_UNKNOWN, -1, false, NULL, 0                                     \
    }

/* The consumer's side: the imported texture. Zero it, set `size`. */
typedef struct sp_texture {
    size_t size;        /* sizeof(sp_texture)                                                    */
    sp_frame_kind kind; /* Required                                                              */
    void *native;       /* Optional, borrowed: the API's image; not used by the built-in ones    */
} sp_texture;

/* The renderer that consumes. Zero it, set `size`. */
typedef struct sp_host {
    size_t size;        /* sizeof(sp_host)                                                       */
    sp_backend backend; /* what the host renders with                                            */
    void *queue;        /* SP_BACKEND_VULKAN: its sp_vk_queue *, borrowed                        */
} sp_host;

/* Thread-safety: any thread; the hooks of one synchronizer are ordered by the caller. */
typedef struct sp_synchronizer sp_synchronizer;

/* A synchronizer that accepts every mechanism and waits for nothing: for producers that are known
 * to be complete. Ownership: *out ends with sp_synchronizer_destroy().
 * Returns: SP_OK; INVALID_ARGUMENT; OUT_OF_MEMORY. Since: 0.1 */
SP_API sp_status sp_synchronizer_create_noop(sp_synchronizer **out);

/* The default: takes NONE and IMPLICIT_GL_FLUSH, refuses the explicit mechanisms with
 * UNSUPPORTED_SYNCHRONIZATION, so that no explicit wait is ever dropped in silence.
 * Ownership: *out ends with sp_synchronizer_destroy().
 * Returns: SP_OK; INVALID_ARGUMENT; OUT_OF_MEMORY. Since: 0.1 */
SP_API sp_status sp_synchronizer_create_implicit(sp_synchronizer **out);

/* Takes EXPLICIT_EXTERNAL_SEMAPHORE on SP_FRAME_VULKAN_OPAQUE_FD frames: imports the frame's
 * semaphore for one wait and gates the host's queue on it, all commands, so that work which the
 * host submits later cannot run before the producer is complete. Takes NONE and
 * IMPLICIT_GL_FLUSH as no-ops. The frame must be sent only after its signal was submitted.
 * Semaphores are pooled; one with a pending wait is never imported to again.
 * Ownership: borrows host->queue until the synchronizer is destroyed.
 * Returns: SP_OK; BACKEND_MISMATCH if the host is not Vulkan; NOT_SUPPORTED if its device cannot
 *   import opaque fds, or without the Vulkan backend; INVALID_ARGUMENT; OUT_OF_MEMORY; FORKED.
 * Since: 0.1 */
SP_API sp_status sp_synchronizer_create_vulkan(const sp_host *host, sp_synchronizer **out);

/* Frees the synchronizer once its own device work is done. NULL is SP_OK.
 * Blocking: up to the timeout.
 * Returns: SP_OK; TIMEOUT: nothing was freed, call again; FORKED: memory was freed. Since: 0.1 */
SP_API sp_status sp_synchronizer_destroy(sp_synchronizer *synchronizer, uint64_t timeout_ns);

/* Before the frame's image is imported. Does not block on the producer.
 * Returns: SP_OK; UNSUPPORTED_SYNCHRONIZATION; INVALID_FRAME: the frame is of a kind that this
 *   synchronizer does not handle; INVALID_HANDLE: an explicit mechanism and no (usable) handle;
 *   INVALID_ARGUMENT; SYSTEM, OUT_OF_MEMORY: call again with the same frame; DEVICE_LOST; BACKEND;
 *   FORKED. On error: the fd is still the caller's, nothing was queued, and the same frame may be
 *   given again. After SP_OK it may not: its one signal is used up, and a second wait for it would
 *   block the host's queue for good. Since: 0.1 */
SP_API sp_status sp_synchronizer_producer_complete(sp_synchronizer *synchronizer,
                                                   const sp_frame *frame, sp_mechanism mechanism);

/* After the image was imported, before it is sampled.
 * Returns: SP_OK; UNSUPPORTED_SYNCHRONIZATION; INVALID_FRAME; INVALID_ARGUMENT; FORKED.
 * Since: 0.1 */
SP_API sp_status sp_synchronizer_consumer_ready(sp_synchronizer *synchronizer,
                                                const sp_texture *texture, sp_mechanism mechanism);

/* A point that is reached when the host's queue has passed the last gate; NOOP before the first.
 * Ownership: *out is a new reference. Returns: SP_OK; INVALID_ARGUMENT; FORKED. Since: 0.1 */
SP_API sp_status sp_synchronizer_last_gate(sp_synchronizer *synchronizer, sp_point *out);

#ifdef __cplusplus
}
#endif

#endif
