/* SPDX-License-Identifier: MIT
 *
 * syncpoint over Vulkan: timeline and binary semaphores as points.
 *
 * Needs Vulkan 1.1 with VK_KHR_timeline_semaphore, or 1.2 or later, with the timelineSemaphore
 * feature enabled. Uses vkQueueSubmit2 where the user enabled synchronization2. The library links
 * no loader: every entry point comes through the user's vkGetInstanceProcAddr.
 *
 * Rules for all of this header:
 *   - Waits gate *all commands* submitted later to the queue, signals cover all submitted earlier.
 *   - The queue's lock callback is called once around each of our queue calls, never nested, with
 *     no library lock held. Do not hold that lock when you call a function that takes a queue.
 *   - The library never calls vkQueueWaitIdle, vkDeviceWaitIdle or vkQueuePresentKHR.
 *   - A semaphore that your own submits use must stay referenced until those submits are done; the
 *     library tracks only its own.
 *   - In a child after fork() everything but release is SP_ERROR_FORKED.
 */
#ifndef SYNCPOINT_VULKAN_H
#define SYNCPOINT_VULKAN_H

#include <syncpoint/syncpoint.h>
#include <vulkan/vulkan_core.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Device -------------------------------------------------------------------------------- */

/* The library's view of one VkDevice. Thread-safety: any thread, except that destroying it
 * excludes every other call on it and on its queues, semaphores and points; releasing points and
 * semaphores may go on meanwhile. */
typedef struct sp_vk_device sp_vk_device;

/* Zero it, set `size`, then the required fields. */
typedef struct sp_vk_device_desc {
    size_t size;                                      /* sizeof(sp_vk_device_desc)               */
    VkInstance instance;                              /* Required, borrowed                      */
    VkPhysicalDevice physical_device;                 /* Required                                */
    VkDevice device;                                  /* Required, borrowed                      */
    PFN_vkGetInstanceProcAddr get_instance_proc_addr; /* Required                               */
    /* The create info that `device` was made with: tells which extensions and features are
     * enabled. Optional, borrowed for the call. Without it: timelineSemaphore is taken as enabled,
     * synchronization2 as not, and the fd functions are used if vkGetDeviceProcAddr has them. */
    const VkDeviceCreateInfo *create_info;
    /* VkApplicationInfo::apiVersion of the instance. The lower of this and the device's version
     * decides between core functions and KHR ones. 0: whichever names the device has. */
    uint32_t api_version;
    sp_log log; /* Optional */
} sp_vk_device_desc;

/* Loads the entry points and asks the device what its semaphores can do.
 * Ownership: borrows instance and device until sp_vk_device_destroy().
 * Returns: SP_OK; INVALID_ARGUMENT; NOT_SUPPORTED naming the missing function, version or feature;
 *   OUT_OF_MEMORY; BACKEND. On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_vk_device_create(const sp_vk_device_desc *desc, sp_vk_device **out);

/* Ends the library's use of the VkDevice, which the user may destroy after SP_OK. Waits, up to
 * `timeout_ns`, until all work that the library submitted is done. Queues of the device end with
 * it: do not destroy them afterwards. Semaphores can only be released then, which is still to be
 * done. *Points* stay valid: those reached stay SP_OK, the others fail with INVALID_STATE, and
 * releasing them calls no driver.
 * Blocking: up to the timeout. NULL is SP_OK.
 * Returns: SP_OK; TIMEOUT: nothing was freed, call again; FORKED: memory and handles were freed.
 *   On a lost device it does not wait. Since: 0.1 */
SP_API sp_status sp_vk_device_destroy(sp_vk_device *device, uint64_t timeout_ns);

/* What the device reports for one type of semaphore and one type of handle. */
typedef struct sp_vk_semaphore_caps {
    size_t size;         /* sizeof(sp_vk_semaphore_caps)                                     */
    bool can_export;     /* EXPORTABLE, and vkGetSemaphoreFdKHR is there                     */
    bool can_import;     /* IMPORTABLE, and vkImportSemaphoreFdKHR is there                  */
    const char *why_not; /* a constant that says what is missing; NULL if both can           */
    VkExternalSemaphoreHandleTypeFlags compatible;           /* as reported                     */
    VkExternalSemaphoreHandleTypeFlags export_from_imported; /* as reported                     */
} sp_vk_semaphore_caps;

/* Asks with VkSemaphoreTypeCreateInfo chained, so that a timeline's answer is a timeline's.
 * `handle_type` is VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT or _SYNC_FD_BIT.
 * Returns: SP_OK, also if it can do neither; INVALID_ARGUMENT; FORKED. Since: 0.1 */
SP_API sp_status sp_vk_device_semaphore_caps(sp_vk_device *device, VkSemaphoreType type,
                                             VkExternalSemaphoreHandleTypeFlagBits handle_type,
                                             sp_vk_semaphore_caps *caps);

/* ---- Queue --------------------------------------------------------------------------------- */

/* The library's view of one VkQueue. Thread-safety: any thread. */
typedef struct sp_vk_queue sp_vk_queue;

#define SP_VK_MAX_QUEUES 16 /* VkQueues that one sp_vk_device serves at a time */

typedef struct sp_vk_queue_desc {
    size_t size;   /* sizeof(sp_vk_queue_desc)                                                  */
    VkQueue queue; /* Required, borrowed                                                        */
    /* Both or neither. Without them nobody else may use the VkQueue while we do. */
    void (*lock)(void *user);
    void (*unlock)(void *user);
    void *user; /* Optional, borrowed */
} sp_vk_queue_desc;

/* Several sp_vk_queue over one VkQueue are fine if they share the lock: their work is in one order.
 * Ownership: borrows the VkQueue until sp_vk_queue_destroy(). The first queue of a device is also
 * the one that host waits on imported or wrapped binary semaphores are submitted to.
 * Returns: SP_OK; INVALID_ARGUMENT; INVALID_STATE if SP_VK_MAX_QUEUES are in use; OUT_OF_MEMORY;
 *   DEVICE_LOST; BACKEND; FORKED. Since: 0.1 */
SP_API sp_status sp_vk_queue_create(sp_vk_device *device, const sp_vk_queue_desc *desc,
                                    sp_vk_queue **out);

/* Waits until the library's own submits to this VkQueue are done, then frees it and whatever was
 * released while they ran. Its points stay.
 * Blocking: up to the timeout. NULL is SP_OK.
 * Returns: SP_OK; TIMEOUT: nothing was freed, call again; FORKED: memory was freed. Since: 0.1 */
SP_API sp_status sp_vk_queue_destroy(sp_vk_queue *queue, uint64_t timeout_ns);

/* A point for all work submitted to the queue so far: one submit that signals the queue's own
 * timeline. Calls no allocator of ours.
 * Ownership: *out is a new reference, a VULKAN point with a value.
 * Returns: SP_OK; INVALID_ARGUMENT; DEVICE_LOST; OUT_OF_MEMORY or BACKEND from the submit: no
 *   value is used up; FORKED. On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_vk_queue_signal(sp_vk_queue *queue, sp_point *out);

typedef struct sp_vk_semaphore sp_vk_semaphore;

/* As sp_vk_queue_signal(), on a semaphore of the caller's choice. Timeline: `value`, or the next
 * one if it is 0; minting and submitting are one step under the timeline's value lock. If another
 * queue's signal of the timeline is still pending, this queue first waits for it, so that values
 * grow in the order in which they run. Binary: `value` must be 0; the point is this one signal.
 * Whoever asks for a binary's signal asserts that nothing submitted to the queue before, by others
 * than this library, waits for a signal that is not submitted yet: Vulkan forbids to wait on the
 * binary then, and some drivers hang.
 * `out` is optional. Without it, or once its last point is released, a binary's signal is left to the
 * caller or to the other side to wait for. The library cannot see that wait: who signals again asserts
 * that it is submitted, and the other side's has run. A fresh semaphore for each signal needs none of
 * that.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, a value that does not increase or jumps too far, a value
 *   for a binary); DEVICE_MISMATCH; INVALID_STATE (binary: its point lives and nobody waits for it,
 *   or its wait is on another queue and has not run yet; a temporary import); DEVICE_LOST,
 *   OUT_OF_MEMORY, BACKEND from the submit: the value is given back; FORKED.
 *   On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_vk_queue_signal_semaphore(sp_vk_queue *queue, sp_vk_semaphore *semaphore,
                                              uint64_t value, sp_point *out);

/* Makes all work submitted to the queue later wait, on the device, for the point: a Vulkan point
 * of this device, a chain of such or a slot that is set to one, or any point that needs no wait
 * (NOOP, CPU, or known reached and not a binary: SP_OK without a submit). For a point of another
 * API wait on the host first.
 * A binary's signal is claimed: used up by this wait, or given back if the submit fails.
 * A timeline may be waited on before its signal is submitted.
 * Returns: SP_OK; NOT_SUBMITTED (binary: its signal, or something that it depends on, is not known to
 *   be submitted; a slot that is not set): nothing was submitted; INVALID_STATE (binary: claimed
 *   by another wait; a value of this queue's own timeline that only a later submit could signal);
 *   BACKEND_MISMATCH (a point of another API); DEVICE_MISMATCH; INVALID_ARGUMENT (NULL, or a value
 *   further above the timeline's than the device allows);
 *   FAILED or another failure of the point; DEVICE_LOST, OUT_OF_MEMORY, BACKEND; FORKED.
 * Since: 0.1 */
SP_API sp_status sp_vk_queue_wait(sp_vk_queue *queue, const sp_point *point);

/* ---- Semaphores ---------------------------------------------------------------------------- */

typedef struct sp_vk_semaphore_desc {
    size_t size; /* sizeof(sp_vk_semaphore_desc)                                                */
    VkSemaphoreType type;
    uint64_t initial_value; /* timeline                                                         */
    VkExternalSemaphoreHandleTypeFlags export_types; /* 0: not exportable                       */
} sp_vk_semaphore_desc;

/* Makes a semaphore that only this library signals, so that its order is guarded in full.
 * Ownership: *out is a new reference: sp_vk_semaphore_unref().
 * Returns: SP_OK; INVALID_ARGUMENT; NOT_SUPPORTED if it cannot be exported as asked (the driver is
 *   asked first, since one that cannot may crash later); OUT_OF_MEMORY; DEVICE_LOST; BACKEND;
 *   FORKED. Since: 0.1 */
SP_API sp_status sp_vk_semaphore_create(sp_vk_device *device, const sp_vk_semaphore_desc *desc,
                                        sp_vk_semaphore **out);

typedef struct sp_vk_semaphore_wrap_desc {
    size_t size; /* sizeof(sp_vk_semaphore_wrap_desc)                                           */
    VkSemaphore semaphore; /* Required                                                          */
    VkSemaphoreType type;
    bool take; /* true: takes it and destroys it at the end; false: borrows it, until the last
                  point is released */
    VkExternalSemaphoreHandleTypeFlags export_types; /* as it was created with; 0: none         */
} sp_vk_semaphore_wrap_desc;

/* The user's own semaphore. Others may signal it, so the guard on values is best effort.
 * Returns: SP_OK; INVALID_ARGUMENT; OUT_OF_MEMORY; DEVICE_LOST; BACKEND; FORKED. Since: 0.1 */
SP_API sp_status sp_vk_semaphore_wrap(sp_vk_device *device, const sp_vk_semaphore_wrap_desc *desc,
                                      sp_vk_semaphore **out);

typedef struct sp_vk_semaphore_import_desc {
    size_t size; /* sizeof(sp_vk_semaphore_import_desc)                                         */
    VkSemaphoreType type;
    VkExternalSemaphoreHandleTypeFlagBits handle_type; /* OPAQUE_FD or SYNC_FD                  */
    int fd;         /* duplicated; SYNC_FD: -1 = already signalled                              */
    bool temporary; /* the payload serves one wait; required for SYNC_FD, not for a timeline    */
    bool adopt;     /* takes the fd: it is closed on success                                    */
} sp_vk_semaphore_import_desc;

/* A semaphore from a handle of another API, device or process. The handle is screened before the
 * driver sees it. Its type is what the caller says: drivers do not check. A binary's sender signals
 * first and sends then, see sp_vk_binary_point().
 * Returns: SP_OK; INVALID_ARGUMENT (a combination Vulkan has not: a SYNC_FD that is permanent or a
 *   timeline, a timeline that is temporary); INVALID_HANDLE: not an open handle of that type;
 *   NOT_SUPPORTED: the device cannot import that; OUT_OF_MEMORY; SYSTEM (no free fd); DEVICE_LOST;
 *   BACKEND; FORKED. On error the fd is still the caller's, and open. Since: 0.1 */
SP_API sp_status sp_vk_semaphore_import(sp_vk_device *device,
                                        const sp_vk_semaphore_import_desc *desc,
                                        sp_vk_semaphore **out);

/* A handle for another API, device or process.
 * Ownership: *fd is a new handle, which the caller closes.
 * Returns: SP_OK; INVALID_ARGUMENT (also SYNC_FD: that is sp_vk_point_export_sync_fd());
 *   NOT_SUPPORTED if it was not made exportable; INVALID_STATE for a temporary import;
 *   OUT_OF_MEMORY; SYSTEM; DEVICE_LOST; BACKEND; FORKED. On error: *fd is unchanged. Since: 0.1 */
SP_API sp_status sp_vk_semaphore_export(sp_vk_semaphore *semaphore,
                                        VkExternalSemaphoreHandleTypeFlagBits handle_type, int *fd);

/* One signal of a binary semaphore as a sync_file, which uses the signal up.
 * Ownership: *fd is a new handle, which the caller closes, or -1: already signalled.
 * Returns: SP_OK; NOT_SUBMITTED: try again after the submit; INVALID_STATE if it was claimed;
 *   NOT_SUPPORTED (not a binary Vulkan point, or not exportable as sync_fd); INVALID_ARGUMENT;
 *   the point's failure; OUT_OF_MEMORY; SYSTEM; DEVICE_LOST; BACKEND; FORKED.
 *   On error: *fd is unchanged and the signal is not used up. Since: 0.1 */
SP_API sp_status sp_vk_point_export_sync_fd(const sp_point *point, int *fd);

/* The semaphore lives until its last point, too, is released and our submits that use it are done.
 * NULL is allowed. Since: 0.1 */
SP_API sp_vk_semaphore *sp_vk_semaphore_ref(sp_vk_semaphore *semaphore);
SP_API void sp_vk_semaphore_unref(sp_vk_semaphore *semaphore);

/* The native handle. Returns a borrowed handle; VK_NULL_HANDLE for NULL. Since: 0.1 */
SP_API VkSemaphore sp_vk_semaphore_handle(const sp_vk_semaphore *semaphore);

/* A timeline's point at `value`. Calls no allocator. Ownership: *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, UINT64_MAX, a binary); FORKED. Since: 0.1 */
SP_API sp_status sp_vk_timeline_point(sp_vk_semaphore *semaphore, uint64_t value, sp_point *out);

/* One signal of a binary that somebody else submits (your own submit, or the other side of an
 * import). Without flags this asserts that it is submitted already, with everything it depends
 * on; SP_POINT_UNSUBMITTED: not yet, sp_point_mark_submitted() will say. An earlier point of the
 * semaphore that is still pending then never completes: it becomes INVALID_STATE. A poll says PENDING
 * until a wait for the point has run, since only that can tell; a host wait is such a wait, and uses the
 * signal up.
 * Calls no allocator once the device has a spare. Ownership: *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, a timeline, other flags); INVALID_STATE if a signal that
 *   the library submitted is pending, or a wait on the semaphore has not run yet, or a temporary
 *   import has had its signal; OUT_OF_MEMORY; FORKED. Since: 0.1 */
SP_API sp_status sp_vk_binary_point(sp_vk_semaphore *semaphore, uint32_t flags, sp_point *out);

/* Signals a timeline from the host.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, a binary, UINT64_MAX, a value that is not above the
 *   current one or is too far above it); INVALID_STATE while a signal that we submitted is pending:
 *   wait for it, or signal through the queue. In both the driver was not called;
 *   OUT_OF_MEMORY; DEVICE_LOST; BACKEND; FORKED. Since: 0.1 */
SP_API sp_status sp_vk_semaphore_signal(sp_vk_semaphore *semaphore, uint64_t value);

/* A timeline's value now, from the driver.
 * Returns: SP_OK; INVALID_ARGUMENT; DEVICE_LOST (also a counter of UINT64_MAX); BACKEND; FORKED.
 * Since: 0.1 */
SP_API sp_status sp_vk_semaphore_value(sp_vk_semaphore *semaphore, uint64_t *value);

/* The VkSemaphore of a Vulkan point, a carrier's too. Returns a borrowed handle; VK_NULL_HANDLE if
 * the point is not one, and once the device is destroyed. Since: 0.1 */
SP_API VkSemaphore sp_vk_semaphore_from_point(const sp_point *point);

#ifdef __cplusplus
}
#endif

#endif
