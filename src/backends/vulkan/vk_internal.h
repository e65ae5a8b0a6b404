/* SPDX-License-Identifier: MIT
 *
 * The Vulkan backend's own structures.
 *
 * How it fits together. Each VkQueue has a timeline of the library's, its *progress*, and every
 * submit that the library makes on that queue also signals the next progress value. So one counter
 * per queue tells which of our submits are done: when a semaphore may be destroyed, when a device
 * may go, and when a wait has used up a binary's signal.
 *
 * Locks, always taken in this order:
 *   1. the user's queue lock (their callback): no lock of ours is held then;
 *   2. the locks of all semaphores that a submit names, by address;
 *   3. the device's lock;
 *   4. spin locks: the pool's, a waiter's.
 * No call that waits for the device is made with 2, 3 or 4 held, and no callback is called.
 *
 * Who keeps whom alive: a point holds its waiter, which is a timeline's sp_vk_semaphore or a
 * binary's sp_vk_signal; a signal holds its semaphore and the progress timelines that it looks at;
 * a semaphore holds the sp_vk_device. sp_vk_device_destroy() ends the use of the VkDevice, the
 * memory stays until the last of them is released.
 */
#ifndef SP_VULKAN_VK_INTERNAL_H
#define SP_VULKAN_VK_INTERNAL_H

#include "backends/vulkan/vk_driver.h"
#include "core/core.h"

#define SP_VK_NO_SLOT SP_VK_MAX_QUEUES

/* Bits of sp_vk_device.gone. */
enum {
    SP_VK_LOST = 1 << 0, /* the driver said DEVICE_LOST                                         */
    SP_VK_DEAD = 1 << 1  /* sp_vk_device_destroy() was successful: never call the driver again  */
};

typedef struct sp_vk_signal sp_vk_signal;

/* ---- Semaphores ---- */

struct sp_vk_semaphore {
    sp_waiter base; /* a timeline's waiter; of a binary only the reference count is used        */
    sp_vk_device *device;
    VkSemaphore handle; /* VK_NULL_HANDLE once the device is destroyed                          */
    VkSemaphoreType type;
    VkExternalSemaphoreHandleTypeFlags export_types;
    bool owned;     /* destroyed by us                                                          */
    bool imported;  /* its payload came from a handle                                           */
    bool temporary; /* for one wait                                                             */
    bool signalled; /* imported as "already signalled"                                          */

    /* Guards what follows. Held while a submit names the semaphore: minting a value and submitting
     * its signal are one step, and Vulkan wants the handle externally synchronized. */
    sp_os_mutex lock;
    bool shared;                         /* others may signal it: our guard is best effort      */
    uint64_t last_use[SP_VK_MAX_QUEUES]; /* progress values of the last submits that name it    */

    /* Timeline. Written under the lock, read without. */
    uint64_t minted;      /* the largest value whose signal we submitted                        */
    uint64_t settled;     /* the same, of those that depend on nothing that is not submitted    */
    uint32_t signal_slot; /* the queue that will signal `minted`                                */

    /* Binary */
    sp_vk_signal *current; /* the last signal that has points; not a reference                  */
    bool spent;            /* a temporary payload has had its point                             */
    uint32_t wait_slot;    /* the last wait that we submitted: its queue,                       */
    uint64_t wait_value;   /* and the progress value that says that it has run; 0: none         */

    /* Under the device's lock: its list of semaphores, or of retired ones. */
    sp_vk_semaphore *next;
    sp_vk_semaphore *prev;
};

/* One signal of a binary semaphore. Comes from the device's pool and goes back there. */
struct sp_vk_signal {
    sp_oneshot oneshot;
    sp_vk_semaphore *semaphore;
    bool ours; /* submitted by us, so that nobody else knows when it is pending                 */

    /* Ours: the progress of the queue that it was submitted to, and the value there that must be
     * reached before everything that the signal depends on is submitted (0: it is already). */
    sp_vk_semaphore *home;
    uint64_t depends;
    uint64_t submit; /* the value there of the signal's own submit */

    /* The wait that used it up has run when `gate` reaches `gate_value`. The value is set last: 0
     * means that the wait is still being submitted. */
    sp_vk_semaphore *gate;
    uint64_t gate_value;
};

extern const sp_group_ops sp_vk_timeline_ops;
extern const sp_waiter_ops sp_vk_binary_ops;
extern const sp_waiter_ops sp_vk_signal_ops;

static inline sp_vk_semaphore *sp_vk_timeline_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_vk_semaphore, base);
}

static inline sp_vk_signal *sp_vk_signal_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_vk_signal, oneshot.base);
}

/* ---- Device ---- */

/* One VkQueue: what all sp_vk_queue objects over it share, since their submits run in one order. */
typedef struct sp_vk_lane {
    VkQueue handle;
    uint32_t slot;
    sp_vk_semaphore *progress;
    sp_vk_queue *queues; /* the objects, under the device's lock; never none */
    /* Under the progress timeline's lock: the last wait whose signal was not known to be submitted,
     * as a progress value. What is submitted behind it may not run for now. */
    uint64_t open_gate;
} sp_vk_lane;

/* Where a lane sits. A free slot's submits are all done, and the next lane's progress goes on from
 * `base`: so a (slot, value) pair stays true after its lane is gone. */
typedef struct sp_vk_slot {
    sp_vk_lane *lane; /* NULL: nothing of ours is pending here */
    bool taken;       /* `lane` is there, or is being made     */
    uint64_t base;
} sp_vk_slot;

/* What a driver's own handle looks like. */
typedef struct sp_vk_fingerprint {
    bool known;
    sp_os_fd_kind kind;
} sp_vk_fingerprint;

struct sp_vk_device {
    sp_vk_driver vk;
    VkDevice handle;
    VkPhysicalDevice physical_device;
    sp_log log;
    uint32_t gone; /* SP_VK_LOST, SP_VK_DEAD */
    uint32_t
        any_is_dear; /* its wait for any of several takes more of a core than polling; atomic */
    uint32_t refs;   /* the user's and one for each semaphore */
    uint32_t fork_generation;
    sp_vk_semaphore_caps caps[2][2]; /* by semaphore type, then OPAQUE_FD, SYNC_FD */

    sp_os_mutex lock;
    sp_vk_slot slots[SP_VK_MAX_QUEUES];
    sp_vk_semaphore *semaphores;
    sp_vk_semaphore *retired;
    uint32_t retired_count;            /* read without the lock: nothing to do is the usual case */
    sp_vk_fingerprint fingerprints[2]; /* by semaphore type */

    sp_pool signals;
};

/* SP_OK, FORKED, or INVALID_STATE after sp_vk_device_destroy(). */
sp_status sp_vk_check(const sp_vk_device *device);
/* The same, and DEVICE_LOST once the loss is known: nothing may be submitted. */
sp_status sp_vk_check_usable(const sp_vk_device *device);

sp_vk_device *sp_vk_device_ref(sp_vk_device *device);
void sp_vk_device_unref(sp_vk_device *device);

static inline bool sp_vk_is_forked(const sp_vk_device *device)
{
    return device->fork_generation != sp_fork_generation;
}

static inline bool sp_vk_is_lost(const sp_vk_device *device)
{
    return (sp_load32(&device->gone) & SP_VK_LOST) != 0;
}

void sp_vk_note_gone(sp_vk_device *device, uint32_t bit);

/* ---- Results (vk_result.c) ---- */

/* The last error for a failed call; notes the loss of the device. */
sp_status sp_vk_fail(sp_vk_device *device, VkResult result, const char *call);
sp_status sp_vk_fail_lost(void);

/* ---- Capabilities (vk_caps.c) ---- */

void sp_vk_caps_query(sp_vk_device *device);
/* The stored answer; NULL for a handle type that the library does not know. */
const sp_vk_semaphore_caps *sp_vk_caps_of(const sp_vk_device *device, VkSemaphoreType type,
                                          VkExternalSemaphoreHandleTypeFlags handle_type);

/* ---- Lists of the device (vk_retire.c) ---- */

void sp_vk_list_add(sp_vk_device *device, sp_vk_semaphore *semaphore);
/* The last reference went: destroys it now, or once the submits that name it are done. */
void sp_vk_retire(sp_vk_semaphore *semaphore);
/* Destroys what has become free of submits. Cheap if nothing is retired. */
void sp_vk_drain(sp_vk_device *device);
/* Destroys every VkSemaphore of ours and marks the device dead. Our submits are done. */
void sp_vk_destroy_handles(sp_vk_device *device);
/* Has the submit with this progress value run? */
bool sp_vk_progress_reached(sp_vk_device *device, uint32_t slot, uint64_t value);

/* ---- Semaphores (vk_semaphore.c) ---- */

typedef struct sp_vk_semaphore_setup {
    VkSemaphoreType type;
    VkSemaphore wrapped; /* VK_NULL_HANDLE: make one */
    bool owned;
    bool to_import; /* a payload of somebody else's will be put in */
    uint64_t initial_value;
    VkExternalSemaphoreHandleTypeFlags export_types;
} sp_vk_semaphore_setup;

sp_status sp_vk_semaphore_make(sp_vk_device *device, const sp_vk_semaphore_setup *setup,
                               sp_vk_semaphore **out);
void sp_vk_semaphore_free(sp_vk_semaphore *semaphore);

static inline bool sp_vk_is_semaphore_type(VkSemaphoreType type)
{
    return type == VK_SEMAPHORE_TYPE_BINARY || type == VK_SEMAPHORE_TYPE_TIMELINE;
}

static inline VkSemaphore sp_vk_handle_of_word(uint64_t word)
{
#if defined(VK_USE_64_BIT_PTR_DEFINES) && VK_USE_64_BIT_PTR_DEFINES
    return (VkSemaphore)(uintptr_t)word;
#else
    return (VkSemaphore)word;
#endif
}

static inline uint64_t sp_vk_word_of_handle(VkSemaphore handle)
{
#if defined(VK_USE_64_BIT_PTR_DEFINES) && VK_USE_64_BIT_PTR_DEFINES
    return (uint64_t)(uintptr_t)handle;
#else
    return (uint64_t)handle;
#endif
}

/* ---- Timelines (vk_timeline.c) ---- */

/* A point at a value: a new reference. */
sp_point sp_vk_timeline_point_of(sp_vk_semaphore *timeline, uint64_t value);
/* Where the counter is now: for a timeline that nobody else sees yet. */
void sp_vk_timeline_start(sp_vk_semaphore *timeline, uint64_t value);
/* The counter, checked: one that went back, or the "removed" sentinel, is an error. */
sp_status sp_vk_timeline_read(sp_vk_semaphore *timeline, uint64_t *counter);
/* Asks the driver only if need be. Logs nothing, so it may be called with locks held. */
bool sp_vk_timeline_reached(sp_vk_semaphore *timeline, uint64_t value);
/* Chooses the next value, or checks the caller's: 0 asks for the next one. */
sp_status sp_vk_timeline_mint_locked(sp_vk_semaphore *timeline, uint64_t wanted, uint64_t *value);
/* INVALID_ARGUMENT if a queue may neither signal nor wait for a value so far above the counter. */
sp_status sp_vk_timeline_check_distance(sp_vk_semaphore *timeline, uint64_t value);
/* One blocking driver call of at most a slice: SP_OK, TIMEOUT or an error. */
sp_status sp_vk_timeline_block(sp_vk_semaphore *timeline, uint64_t value, uint64_t deadline_ns);
/* As many as the deadline allows. A lost device counts as done. */
sp_status sp_vk_timeline_wait_done(sp_vk_semaphore *timeline, uint64_t value, uint64_t deadline_ns);

/* The waiter's operations. */
sp_status sp_vk_timeline_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached);
sp_status sp_vk_timeline_block_op(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns);
const void *sp_vk_timeline_group(sp_waiter *waiter);
sp_status sp_vk_timeline_block_many(sp_waiter *const *waiters, const uint64_t *values, size_t count,
                                    sp_wait_mode mode, uint64_t deadline_ns);

/* Is the signal of `value` known to be submitted, with all that it depends on? */
static inline bool sp_vk_timeline_submitted(const sp_vk_semaphore *timeline, uint64_t value)
{
    return value <= sp_load64(&timeline->settled) ||
           sp_waiter_known_reached(&timeline->base, value);
}

/* ---- Binaries (vk_binary.c) ---- */

/* Makes a signal of the pool a waiter with one reference, which holds the semaphore. */
void sp_vk_signal_setup(sp_vk_signal *signal, sp_vk_semaphore *semaphore, uint32_t state);
sp_point sp_vk_signal_point(sp_vk_signal *signal, uint32_t flags); /* takes the reference */

/* May the semaphore be signalled on the queue in `slot`? INVALID_STATE says why not. */
sp_status sp_vk_binary_check_free_locked(sp_vk_semaphore *binary, uint32_t slot);
/* Is everything that the signal depends on submitted? SP_OK, NOT_SUBMITTED or an error. */
sp_status sp_vk_signal_check_depends(sp_vk_signal *signal);

/* ---- Queues and submits (vk_queue.c, vk_submit.c) ---- */

struct sp_vk_queue {
    sp_vk_device *device; /* borrowed: the queue ends with it */
    void (*lock)(void *user);
    void (*unlock)(void *user);
    void *user;
    sp_vk_lane *lane;
    /* Under the device's lock: */
    sp_vk_queue *next; /* of the lane's objects */
    uint32_t pins;     /* host waits that are using it */
};

/* A queue with that progress timeline, else the device's first one; NULL: there is none. It
 * stays until it is unpinned. */
sp_vk_queue *sp_vk_queue_pin(sp_vk_device *device, const sp_vk_semaphore *progress);
void sp_vk_queue_unpin(sp_vk_queue *queue);
void sp_vk_lane_free(sp_vk_lane *lane); /* with its objects */

#define SP_VK_FEW_WAITS 16 /* so many need no allocator */

typedef struct sp_vk_wait {
    sp_vk_semaphore *semaphore;
    uint64_t value;       /* timeline                         */
    sp_vk_signal *signal; /* binary: claimed for this wait    */
} sp_vk_wait;

/* One submit without commands: waits, then signals the queue's progress and perhaps one more. */
typedef struct sp_vk_batch {
    sp_vk_queue *queue;
    const sp_vk_wait *waits; /* borrowed; a batch with a signal has none of its caller's      */
    size_t wait_count;
    sp_vk_semaphore *signal; /* optional                                                      */
    uint64_t value;          /* timeline: wanted, 0: the next; then the minted one            */
    sp_vk_signal *signal_op; /* binary: who stands for the signal; optional                   */
    uint64_t progress;       /* set by the submit                                             */
    sp_vk_wait order;        /* the submit's own wait, that keeps a timeline's values growing */
} sp_vk_batch;

/* Locks, mints, submits and records. On error nothing has changed. Calls an allocator only for more
 * than SP_VK_FEW_WAITS waits. */
sp_status sp_vk_batch_submit(sp_vk_batch *batch);

/* ---- Handles (vk_fd.c, vk_screen.c) ---- */

/* Asks the driver, which must be known to be able to. *fd is a new handle. */
sp_status sp_vk_export_fd(sp_vk_semaphore *semaphore,
                          VkExternalSemaphoreHandleTypeFlagBits handle_type, int *fd);

/* SP_OK, or INVALID_HANDLE if the driver must not see the fd. */
sp_status sp_vk_screen_opaque_fd(sp_vk_device *device, VkSemaphoreType type, int fd);
sp_status sp_vk_screen_sync_fd(int fd);

/* ---- For other layers of the library ---- */

/* Returns a borrowed pointer. */
sp_vk_device *sp_vk_queue_device(const sp_vk_queue *queue);

/* Gives a binary that has no pending wait a payload for its next wait; `fd` is duplicated. Nobody
 * else may use the semaphore meanwhile. */
sp_status sp_vk_semaphore_import_payload(sp_vk_semaphore *semaphore,
                                         VkExternalSemaphoreHandleTypeFlagBits handle_type, int fd);

#endif
