/* SPDX-License-Identifier: MIT
 *
 * syncpoint: let any GPU API wait for any other.
 *
 * A *point* is a place in some queue's work that other work can be ordered after. This header is
 * the core: statuses, the point, waits, the software timeline, chains, slots, and the table that
 * a user fills in to bring a primitive of their own. It needs no GPU API; each API has a header
 * beside this one.
 *
 * Words used for ownership, always in this sense:
 *   takes       the callee becomes the owner, on success only;
 *   duplicates  the callee makes its own copy, the caller keeps and releases its own;
 *   borrows     the callee uses it, the caller keeps it alive as long as stated;
 *   returns a new reference     the caller releases it;
 *   returns a borrowed pointer  the caller does not release it.
 *
 * Unless a function says otherwise: it may be called from any thread, it does not block, times
 * are nanoseconds, and a bad argument gives SP_ERROR_INVALID_ARGUMENT with nothing changed.
 */
#ifndef SYNCPOINT_SYNCPOINT_H
#define SYNCPOINT_SYNCPOINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if defined(_WIN32)
#if defined(SYNCPOINT_BUILD)
#define SP_API __declspec(dllexport)
#elif defined(SYNCPOINT_STATIC)
#define SP_API
#else
#define SP_API __declspec(dllimport)
#endif
#elif defined(__GNUC__)
#define SP_API __attribute__((visibility("default")))
#else
#define SP_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define SP_VERSION_MAJOR 0
#define SP_VERSION_MINOR 1
#define SP_VERSION_PATCH 0

/* The version of the library that is running: major << 16 | minor << 8 | patch. Since: 0.1 */
SP_API uint32_t sp_version(void);

/* ---- Status -------------------------------------------------------------------------------- */

/* What a caller can do about a status: see sp_status_class(). */
typedef enum sp_class {
    SP_CLASS_DONE = 0,          /* nothing to do                                                */
    SP_CLASS_RECOVERABLE = 1,   /* not yet, or not now: the same call may succeed later         */
    SP_CLASS_CONFIGURATION = 2, /* the call is wrong as it stands: change it                    */
    SP_CLASS_CANCELLED = 3,     /* somebody asked for it to end                                 */
    SP_CLASS_FATAL = 4          /* the primitive, its device or its peer is gone for good       */
} sp_class;

/* X(name, number, class, text). 0 is done, positive is "not done", negative is an error. */
#define SP_STATUS_MAP(X)                                                                           \
    X(OK, 0, DONE, "done")                                                                         \
    X(TIMEOUT, 1, RECOVERABLE, "the time is up and the point is not reached")                      \
    X(PENDING, 2, RECOVERABLE, "the point is not reached yet")                                     \
    X(NOT_SUBMITTED, 3, RECOVERABLE, "the work that reaches the point is not submitted yet")       \
    X(ERROR_INVALID_ARGUMENT, -1, CONFIGURATION, "an argument is not valid")                       \
    X(ERROR_INVALID_STATE, -2, CONFIGURATION, "the object's state does not allow this")            \
    X(ERROR_NOT_SUPPORTED, -3, CONFIGURATION, "this build, driver or primitive cannot do this")    \
    X(ERROR_OUT_OF_MEMORY, -4, RECOVERABLE, "out of memory")                                       \
    X(ERROR_DEVICE_LOST, -5, FATAL, "the device is lost")                                          \
    X(ERROR_DEVICE_MISMATCH, -6, CONFIGURATION, "the objects belong to different devices")         \
    X(ERROR_BACKEND_MISMATCH, -7, CONFIGURATION, "the objects belong to different APIs")           \
    X(ERROR_INVALID_HANDLE, -8, CONFIGURATION, "the OS handle is not what it should be")           \
    X(ERROR_WRONG_CONTEXT, -9, CONFIGURATION, "the wrong context, or none, is current")            \
    X(ERROR_ABANDONED, -10, FATAL, "the owner went away without signalling")                       \
    X(ERROR_CANCELLED, -11, CANCELLED, "cancelled")                                                \
    X(ERROR_FAILED, -12, FATAL, "the producer failed")                                             \
    X(ERROR_FORKED, -13, FATAL, "made before fork(), used in the child")                           \
    X(ERROR_PEER_CLOSED, -14, FATAL, "the peer process closed the channel")                        \
    X(ERROR_INVALID_FRAME, -15, CONFIGURATION, "the frame is not of the kind this needs")          \
    X(ERROR_UNSUPPORTED_SYNCHRONIZATION, -16, CONFIGURATION,                                       \
      "the synchronizer does not take this mechanism")                                             \
    X(ERROR_SYSTEM, -17, RECOVERABLE, "an operating system call failed")                           \
    X(ERROR_BACKEND, -18, FATAL, "the driver reported an error of its own")

typedef enum sp_status {
#define SP_STATUS_ENUM(name, number, class_, text) SP_##name = (number),
    SP_STATUS_MAP(SP_STATUS_ENUM)
#undef SP_STATUS_ENUM
} sp_status;

/* The name of a status, "SP_ERROR_FAILED"; "SP_UNKNOWN" for a number that is none. Never NULL.
 * Returns a borrowed pointer to a constant. Since: 0.1 */
SP_API const char *sp_status_name(sp_status status);

/* One sentence for a status. Never NULL. Returns a borrowed pointer to a constant. Since: 0.1 */
SP_API const char *sp_status_text(sp_status status);

/* What a caller can do about a status; SP_CLASS_FATAL for a number that is none. Since: 0.1 */
SP_API sp_class sp_status_class(sp_status status);

/* The APIs a point can come from. New ones may be added: keep a default: arm. */
typedef enum sp_backend {
    SP_BACKEND_CPU = 0,
    SP_BACKEND_VULKAN = 1,
    SP_BACKEND_D3D12 = 2,
    SP_BACKEND_D3D11 = 3,
    SP_BACKEND_CUDA = 4,
    SP_BACKEND_OPENCL = 5,
    SP_BACKEND_METAL = 6,
    SP_BACKEND_OPENGL = 7,
    SP_BACKEND_WGPU = 8,
    SP_BACKEND_CUSTOM = 9
} sp_backend;

/* The name of a backend, "vulkan"; "unknown" for a number that is none. Since: 0.1 */
SP_API const char *sp_backend_name(sp_backend backend);

/* What went wrong in the last call of this thread that returned a negative status. */
typedef struct sp_error {
    sp_status status;        /* what the call returned                                          */
    sp_status cause;         /* with SP_ERROR_FAILED: what broke the producer; else == status   */
    sp_backend backend;      /* whose native_code it is                                         */
    int32_t reserved;        /* 0                                                               */
    int64_t native_code;     /* VkResult, CUresult, HRESULT, errno...; 0 if there is none       */
    const char *native_call; /* the call that gave it, a constant; NULL if there is none        */
    char message[208];       /* one sentence: what happened and what to do                      */
} sp_error;

/* Details of the last negative status that this thread got from the library. Positive statuses
 * and successes leave it as it is, so it is meaningful only right after a negative one.
 * Ownership: returns a borrowed pointer, valid until the thread's next call into the library.
 * Threads: each thread has its own.
 * Returns: never NULL; before any error, a record with SP_OK and an empty message.
 * Since: 0.1 */
SP_API const sp_error *sp_last_error(void);

/* ---- Log ----------------------------------------------------------------------------------- */

typedef enum sp_log_level { SP_LOG_ERROR = 0, SP_LOG_WARN = 1, SP_LOG_INFO = 2 } sp_log_level;

/* Where an object reports what no status can carry (a driver that misbehaves, a fallback taken).
 * Set in the description of the object that logs; there is no process-wide log.
 * `fn` is called on the thread that noticed, with no library lock held; it must not call back
 * into the object that logs. Zeroed: silent. */
typedef struct sp_log {
    void (*fn)(void *user, sp_log_level level, const char *message); /* Optional */
    void *user;                                                      /* Optional, borrowed */
} sp_log;

/* ---- Time ---------------------------------------------------------------------------------- */

/* Timeouts are relative nanoseconds. 0 probes; SP_FOREVER never runs out; anything that would
 * pass the end of the clock counts as SP_FOREVER. */
#define SP_FOREVER UINT64_MAX
#define SP_TIMEOUT_DEFAULT UINT64_C(10000000000) /* 10 s: what sp_wait() uses */

/* The monotonic clock that deadlines are measured on, in ns. Since: 0.1 */
SP_API uint64_t sp_now_ns(void);

/* The absolute deadline of a relative timeout: saturates to SP_FOREVER. Since: 0.1 */
SP_API uint64_t sp_deadline_ns(uint64_t timeout_ns);

/* ---- The point ----------------------------------------------------------------------------- */

/* Kinds of point. New ones may be added: keep a default: arm. */
typedef enum sp_kind {
    SP_KIND_NOOP = 0, /* complete; what a zeroed point is                                       */
    SP_KIND_CPU = 1,  /* CPU work that is already done: complete                                */
    SP_KIND_HOST = 2, /* a value of a software timeline                                         */
    SP_KIND_VULKAN = 3,
    SP_KIND_D3D12 = 4,
    SP_KIND_D3D11 = 5,
    SP_KIND_CUDA = 6,
    SP_KIND_CUDA_EVENT = 7,
    SP_KIND_OPENCL = 8,
    SP_KIND_METAL = 9,
    SP_KIND_OPENGL = 10,
    SP_KIND_OPENGL_SYNC = 11,
    SP_KIND_WGPU = 12,
    SP_KIND_DEFERRED_WGPU = 13,
    SP_KIND_CHAIN = 14,    /* two points, one after the other                                    */
    SP_KIND_CUSTOM = 15,   /* a primitive that the user brought                                  */
    SP_KIND_DEFERRED = 16, /* a slot: which point it is comes later                             */
    SP_KIND_FD = 17        /* a file descriptor that becomes readable: linux.h                  */
} sp_kind;

/* The name of a kind, "host"; "unknown" for a number that is none. Since: 0.1 */
SP_API const char *sp_kind_name(sp_kind kind);

/* Bits of sp_point.flags. */
enum {
    SP_POINT_HAS_VALUE = 1 << 0,   /* `value` is a value of a counting primitive                */
    SP_POINT_BINARY = 1 << 1,      /* one signal of a binary primitive                          */
    SP_POINT_CARRIER = 1 << 2,     /* raw handles only, for an import: cannot be waited on      */
    SP_POINT_UNSUBMITTED = 1 << 3, /* made before its signal was submitted                      */
    SP_POINT_TEMPORARY = 1 << 4    /* of a temporarily imported payload                         */
};

typedef struct sp_waiter sp_waiter;

/* A point: a plain value, its fields readable. Make one with a function of this library, copy it
 * with sp_point_ref(), release it with sp_point_unref(). A bitwise copy is a *borrowed* point: it
 * holds no reference of its own and is never to be released.
 * Thread-safety: immutable; any number of threads may use one point. Releasing it while another
 * thread uses the same variable is a race like any other. */
typedef struct sp_point {
    uint32_t kind;  /* sp_kind                                                                  */
    uint32_t flags; /* SP_POINT_*                                                               */
    uint64_t value; /* timeline value, key, submission index; 0 if the kind has none            */
    union {         /* the native handles, by kind; borrowed from the waiter                    */
        struct {
            uint64_t semaphore; /* VkSemaphore */
            void *device;       /* VkDevice    */
        } vulkan;
        struct {
            void *fence; /* ID3D12Fence * */
        } d3d12;
        struct {
            void *shared_event; /* id<MTLSharedEvent> */
        } metal;
        struct {
            void *sync;      /* GLsync or EGLSync                        */
            void *display;   /* EGLDisplay of an EGLSync; NULL: a GLsync */
            uint64_t loader; /* sp_gl_loader: whose functions to call    */
        } opengl_sync;
        struct {
            uint64_t semaphore; /* GLuint */
            void *context;      /* the native context it was made in */
        } opengl;
        struct {
            void *event;     /* cl_event; NULL: it is a semaphore  */
            void *semaphore; /* cl_semaphore_khr; NULL: an event   */
        } opencl;
        struct {
            void *event;      /* CUevent          */
            void *context;    /* CUcontext        */
            uint64_t ordinal; /* of its CUdevice  */
        } cuda_event;
        struct {
            void *semaphore; /* CUexternalSemaphore */
            void *context;   /* CUcontext           */
        } cuda;
        struct {
            uint64_t number; /* of the library's own descriptor */
        } fd;
        uint64_t words[3];
    } raw;
    sp_waiter *waiter; /* one reference; NULL for NOOP, CPU and carriers                        */
} sp_point;

/* A complete point. Needs no release. Since: 0.1 */
SP_API sp_point sp_point_noop(void);
SP_API sp_point sp_point_cpu(void);

/* Copies a point. Calls no allocator.
 * Ownership: returns a new reference; release it with sp_point_unref().
 * Returns: the copy; a NOOP point for NULL.
 * Since: 0.1 */
SP_API sp_point sp_point_ref(const sp_point *point);

/* Releases a point and zeroes it, so that a second release is harmless. The last reference to a
 * primitive destroys it on this thread, or hands it to its device's retire list where the API
 * forbids that now. NULL is allowed. Calls no allocator. Since: 0.1 */
SP_API void sp_point_unref(sp_point *point);

/* The same primitive at another value.
 * Ownership: *out is a new reference. `out` may be `point` itself: it then keeps its reference.
 * Returns: SP_OK; INVALID_ARGUMENT for NULL, or for UINT64_MAX, which no timeline reaches;
 *   NOT_SUPPORTED if the primitive does not count (binary, one-shot, chain, slot, NOOP, CPU).
 * On error: *out is unchanged.
 * Since: 0.1 */
SP_API sp_status sp_point_at(const sp_point *point, uint64_t value, sp_point *out);

/* The API that the point belongs to; a chain's is its first point's; SP_BACKEND_CPU for NOOP, CPU,
 * HOST, an unset slot and NULL. Since: 0.1 */
SP_API sp_backend sp_point_backend(const sp_point *point);

/* The point's waiter. Ownership: returns a borrowed pointer, NULL if the point has none.
 * Since: 0.1 */
SP_API sp_waiter *sp_point_waiter(const sp_point *point);

/* Says that the signal of a point made with SP_POINT_UNSUBMITTED has now been submitted, with
 * everything it depends on.
 * Returns: SP_OK, also when it already was; NOT_SUPPORTED if the point is not of a primitive that
 *   tracks submission; INVALID_STATE if it has failed; FORKED.
 * Since: 0.1 */
SP_API sp_status sp_point_mark_submitted(const sp_point *point);

/* Writes one line that describes the point ("vulkan timeline 0x55.. value 7, reached"), always
 * terminated when size > 0. Asks no driver: it tells what is known.
 * Returns: the length the whole text needs, without the terminator, as snprintf does.
 * Since: 0.1 */
SP_API size_t sp_point_describe(const sp_point *point, char *text, size_t size);

/* ---- Carriers ------------------------------------------------------------------------------ */

/* A point that only carries raw handles that crossed an API or process boundary: its fields feed
 * an import. Waiting on one or probing it gives NOT_SUPPORTED until it was imported.
 * Ownership: borrows the handles; nothing to release. Since: 0.1 */
SP_API sp_point sp_carrier_d3d12_fence(void *fence, uint64_t value);
SP_API sp_point sp_carrier_vulkan_semaphore(uint64_t semaphore, void *device, uint64_t value);
SP_API sp_point sp_carrier_metal_event(void *shared_event, uint64_t value);

/* ---- Waiting ------------------------------------------------------------------------------- */

/* Is the point reached? Never blocks, consumes nothing. A point once known reached is answered
 * without a driver call.
 * Returns: SP_OK reached; PENDING; NOT_SUBMITTED (see sp_slot, SP_POINT_UNSUBMITTED);
 *   INVALID_ARGUMENT for NULL or a point that nothing made; NOT_SUPPORTED for a carrier;
 *   FORKED; FAILED, DEVICE_LOST, INVALID_STATE, ABANDONED or another sticky failure of the
 *   primitive; or the driver's error.
 * Since: 0.1 */
SP_API sp_status sp_poll(const sp_point *point);

/* Waits until the point is reached or failed, SP_TIMEOUT_DEFAULT at the longest.
 * Blocking: the calling thread; no library lock is held meanwhile.
 * Returns: as sp_wait_timeout(). Since: 0.1 */
SP_API sp_status sp_wait(const sp_point *point);

/* Waits until the point is reached or failed, `timeout_ns` at the longest. A point that is already
 * reached is SP_OK even if the time is 0. It spins for a short while, then blocks.
 * Returns: SP_OK; TIMEOUT; NOT_SUBMITTED if the time ran out and the signal is still not
 *   submitted; else an error as of sp_poll().
 * Since: 0.1 */
SP_API sp_status sp_wait_timeout(const sp_point *point, uint64_t timeout_ns);

/* Ends waits from another thread: every wait that carries it returns CANCELLED, those that block now
 * and those that begin later, until it is reset. */
typedef struct sp_interrupt sp_interrupt;

/* Ownership: *out is the caller's, until sp_interrupt_destroy(). It is not raised.
 * Returns: SP_OK; INVALID_ARGUMENT; OUT_OF_MEMORY. On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_interrupt_create(sp_interrupt **out);

/* No wait may carry it any more. NULL is allowed. Since: 0.1 */
SP_API void sp_interrupt_destroy(sp_interrupt *interrupt);

/* Raises it, and takes that back. Any thread may, and a signal handler, too. NULL is allowed. A wait
 * that blocks notices within 10 ms, unless its driver does not come back; one that has not noticed
 * before the reset goes on. Since: 0.1 */
SP_API void sp_interrupt_raise(sp_interrupt *interrupt);
SP_API void sp_interrupt_reset(sp_interrupt *interrupt);

#define SP_SPIN_DEFAULT UINT64_C(20000) /* 20 us */

/* How to wait. Zero it, set `size`, then what differs. */
typedef struct sp_wait_options {
    size_t size;             /* sizeof(sp_wait_options)                                         */
    uint64_t timeout_ns;     /* as of sp_wait_timeout()                                         */
    uint64_t spin_ns;        /* how long to spin before blocking; 0 = do not spin               */
    sp_interrupt *interrupt; /* Optional: what ends the wait. Borrowed for the call             */
} sp_wait_options;

/* As sp_wait_timeout(), as the options say. A point already reached is SP_OK, raised or not.
 * Returns: as sp_wait_timeout(); CANCELLED: interrupted; INVALID_ARGUMENT for a wrong `size`.
 * Since: 0.1 */
SP_API sp_status sp_wait_with(const sp_point *point, const sp_wait_options *options);

typedef enum sp_wait_mode { SP_WAIT_ALL = 0, SP_WAIT_ANY = 1 } sp_wait_mode;

/* Waits for all or any of `count` points, of any mix of backends; duplicates are fine and there is
 * no limit on their number. ALL of nothing is SP_OK, ANY of nothing is INVALID_ARGUMENT.
 * The first failure that is seen ends the wait, in either mode. (ANY: a point that is reached
 * when the call starts wins over one that failed, whatever their order.)
 * Signals that a wait uses up (binary semaphores) show themselves only to who waits for them: ANY
 * begins the wait on every such point, which claims its signal, as sp_wait() would; the point
 * remembers the outcome.
 * `index` (optional): ANY: which point ended the wait; ALL: which point failed, or the first one
 * still pending on a time-out. Unchanged on SP_OK of ALL and on TIMEOUT of ANY.
 * Blocking: the calling thread; whatever was armed is disarmed before it returns.
 * Returns: SP_OK; TIMEOUT; NOT_SUBMITTED (the time ran out, and every point still pending is not
 *   submitted); INVALID_ARGUMENT; OUT_OF_MEMORY; else the error of the point at *index.
 * Since: 0.1 */
SP_API sp_status sp_wait_many(const sp_point *points, size_t count, sp_wait_mode mode,
                              uint64_t timeout_ns, size_t *index);

/* The same, as the options say.
 * Returns: as sp_wait_many(); CANCELLED: interrupted, *index is unchanged; INVALID_ARGUMENT for a
 *   wrong `size`. Since: 0.1 */
SP_API sp_status sp_wait_many_with(const sp_point *points, size_t count, sp_wait_mode mode,
                                   const sp_wait_options *options, size_t *index);

/* ---- Chains -------------------------------------------------------------------------------- */

/* A point that is reached when both are. Waiting on it waits for the first, then for the second,
 * on one time budget; the first's error ends it. Chains of chains may be of any length: waiting on
 * them neither recurses deeply nor allocates.
 * A NOOP or CPU side is dropped, and the other side comes back as it is.
 * Ownership: keeps references of its own to both; *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT; NOT_SUPPORTED for a carrier; OUT_OF_MEMORY; FORKED.
 * On error: *out is unchanged.
 * Since: 0.1 */
SP_API sp_status sp_chain(const sp_point *first, const sp_point *then, sp_point *out);

/* ---- The software timeline ----------------------------------------------------------------- */

/* A counter that the CPU advances: any thread signals, any thread waits. */
typedef struct sp_host_timeline sp_host_timeline;

/* Makes a timeline whose value is `initial_value`.
 * Ownership: *out is released with sp_host_timeline_destroy().
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, or UINT64_MAX); OUT_OF_MEMORY. Since: 0.1 */
SP_API sp_status sp_host_timeline_create(uint64_t initial_value, sp_host_timeline **out);

/* Ends the timeline: points not reached fail with SP_ERROR_ABANDONED, since nobody can signal them
 * any more; points stay valid. NULL is allowed. Since: 0.1 */
SP_API void sp_host_timeline_destroy(sp_host_timeline *timeline);

/* A point at `value`. Calls no allocator. Ownership: *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, UINT64_MAX); FORKED. Since: 0.1 */
SP_API sp_status sp_host_timeline_point(sp_host_timeline *timeline, uint64_t value, sp_point *out);

/* Sets the value, which must grow, and wakes whoever waits for it or less.
 * Returns: SP_OK; INVALID_ARGUMENT if the value is not above the current one, or is UINT64_MAX:
 *   the timeline is unchanged; INVALID_STATE after sp_host_timeline_fail(); FORKED. Since: 0.1 */
SP_API sp_status sp_host_timeline_signal(sp_host_timeline *timeline, uint64_t value);

/* Marks every point above the current value as failed, for good: waits on them give
 * SP_ERROR_FAILED, with `message` and `cause` in sp_last_error(). The first failure is kept.
 * `cause` is a negative status; `message` is duplicated, NULL is allowed.
 * Returns: SP_OK; INVALID_ARGUMENT; INVALID_STATE if it has failed before; FORKED. Since: 0.1 */
SP_API sp_status sp_host_timeline_fail(sp_host_timeline *timeline, sp_status cause,
                                       const char *message);

/* The current value; 0 for NULL. Since: 0.1 */
SP_API uint64_t sp_host_timeline_value(const sp_host_timeline *timeline);

/* ---- Slots --------------------------------------------------------------------------------- */

/* A promise of a point: hand its point out now, say later which point it is. Until then a probe is
 * NOT_SUBMITTED and a wait waits for the slot to be set, then for what it was set to, on one
 * budget. */
typedef struct sp_slot sp_slot;

/* Makes an unset slot. Ownership: *out is released with sp_slot_destroy().
 * Returns: SP_OK; INVALID_ARGUMENT; OUT_OF_MEMORY. Since: 0.1 */
SP_API sp_status sp_slot_create(sp_slot **out);

/* Lets go of the slot. If it was never set, its points fail with SP_ERROR_ABANDONED. Since: 0.1 */
SP_API void sp_slot_destroy(sp_slot *slot);

/* A point of kind SP_KIND_DEFERRED. Calls no allocator. Ownership: *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT; FORKED. Since: 0.1 */
SP_API sp_status sp_slot_point(sp_slot *slot, sp_point *out);

/* Says which point it is, once, and wakes whoever waits. Ownership: keeps a reference of its own.
 * Returns: SP_OK; INVALID_STATE if it was set or failed before (the first one is kept), if `point`
 *   holds a slot that is not set yet: set that one first (so no slot ever waits for itself), or if
 *   slots would lie inside each other more than 16 levels deep; NOT_SUPPORTED for a carrier; INVALID_ARGUMENT; FORKED. Since: 0.1 */
SP_API sp_status sp_slot_set(sp_slot *slot, const sp_point *point);

/* Resolves the slot with a failure: its points give SP_ERROR_FAILED. As sp_host_timeline_fail().
 * Returns: SP_OK; INVALID_ARGUMENT; INVALID_STATE if it was set or failed before; FORKED.
 * Since: 0.1 */
SP_API sp_status sp_slot_fail(sp_slot *slot, sp_status cause, const char *message);

/* ---- Waiters: primitives of your own ------------------------------------------------------- */

/* What a waiter can do. BLOCK, ARM and GROUP must agree with the table's pointers. */
enum {
    SP_FEATURE_COUNTING = 1 << 0,  /* has values: sp_point_at() works. Without it: one-shot     */
    SP_FEATURE_CONSUMING = 1 << 1, /* one-shot, and a device-side wait uses the signal up       */
    SP_FEATURE_BLOCK = 1 << 2,     /* has block()                                               */
    SP_FEATURE_ARM = 1 << 3,       /* has arm() and disarm()                                    */
    SP_FEATURE_GROUP = 1 << 4,     /* has group() and block_many()                              */
    SP_FEATURE_POLL = 1 << 5       /* probing notices sooner than block(): poll instead         */
};

/* A wake-up that a wait, or a reactor, leaves with a waiter, and takes back. `next`, `prev` and
 * `value` are the waiter's to use from arm() until disarm(); the rest is not. */
typedef struct sp_waker {
    struct sp_waker *next;
    struct sp_waker *prev;
    uint64_t value;
    void (*wake)(struct sp_waker *waker); /* private: what sp_waker_wake() calls */
} sp_waker;

/* Tells who left `waker` to look again. A wake-up too many is harmless. May be called
 * with locks held and from any thread between arm() and the return of disarm(). Since: 0.1 */
SP_API void sp_waker_wake(sp_waker *waker);

/* The operations of a primitive. `value` is 1 for one-shot waiters. All may be called from any
 * thread, several at a time; the library calls them with no lock of its own held. */
typedef struct sp_waiter_ops {
    uint32_t size;      /* sizeof(sp_waiter_ops)                                                */
    uint32_t features;  /* SP_FEATURE_*                                                         */
    sp_backend backend; /* SP_BACKEND_CUSTOM, or the API it belongs to                          */
    const char *name;   /* Required: for messages; constant                                     */

    /* Required. Where is the primitive now? Counting: *reached = its value (UINT64_MAX: the device
     * behind it is gone); one-shot: 1 once it is reached, else 0. Never blocks. SP_OK,
     * NOT_SUBMITTED, PENDING, or an error; one of SP_CLASS_FATAL is kept as the waiter's failure,
     * and so is a number that is no status. After an error it is asked once more. */
    sp_status (*probe)(sp_waiter *waiter, uint64_t value, uint64_t *reached);

    /* Optional. Blocks until `value` is reached (SP_OK) or failed, or the deadline passed
     * (TIMEOUT). Waking early with TIMEOUT is allowed. */
    sp_status (*block)(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns);

    /* Optional, both or none. Waits for any of several and reactors use it, and poll what has none
     * or refused once. From arm() on, wake `waker` when `value` is reached or failed; SP_OK
     * also if it already is, then wake at once. After disarm() returns, do not touch it. */
    sp_status (*arm)(sp_waiter *waiter, uint64_t value, sp_waker *waker);
    void (*disarm)(sp_waiter *waiter, sp_waker *waker);

    /* Optional, both or none. Waiters of this table with the same non-NULL group can be waited on
     * in one call: block_many() blocks until all or any of the values are reached; SP_OK, TIMEOUT
     * or an error. It need not say which: the library probes. */
    const void *(*group)(sp_waiter *waiter);
    sp_status (*block_many)(sp_waiter *const *waiters, const uint64_t *values, size_t count,
                            sp_wait_mode mode, uint64_t deadline_ns);

    /* Required. The last reference went. If sp_waiter_forked(), free memory and close handles
     * only: the driver's state is not this process's. */
    void (*destroy)(sp_waiter *waiter);
} sp_waiter_ops;

/* The base of every waiter: embed it first in a struct of your own. All fields are private. */
struct sp_waiter {
    const sp_waiter_ops *ops;
    uint32_t refs;
    uint32_t features;
    uint32_t fork_generation;
    uint32_t lock;
    uint64_t reached;     /* the highest value known reached                                    */
    uint64_t failed_from; /* values from here on have failed; UINT64_MAX: none                  */
    sp_error *failure;
    uint32_t vain_spins; /* waits in a row that ended long after their spin                     */
    uint32_t reserved;
};

/* For a function of the table that is about to return an error: what sp_last_error() shall say.
 * Without it the library makes a sentence up. A `cause` of SP_OK stands for `status`.
 * Ownership: duplicates the record; native_call must be a constant.
 * Returns: error->status; INVALID_ARGUMENT (NULL, or a status that is not negative). Since: 0.1 */
SP_API sp_status sp_error_set(const sp_error *error);

/* Prepares a waiter with one reference, nothing reached, no failure. `ops` is borrowed for good.
 * Returns: SP_OK; INVALID_ARGUMENT if a feature and its pointers disagree, a required pointer is
 *   missing or the size is unknown: sp_last_error() says which. Since: 0.1 */
SP_API sp_status sp_waiter_init(sp_waiter *waiter, const sp_waiter_ops *ops);

/* One more, one less reference. The last one calls destroy(). NULL is allowed. Since: 0.1 */
SP_API sp_waiter *sp_waiter_ref(sp_waiter *waiter);
SP_API void sp_waiter_unref(sp_waiter *waiter);

/* Notes that `value` is reached (1 for one-shot), so that later probes need no driver call. Values
 * that failed before stay failed. Wakes nobody: that is the primitive's part. Since: 0.1 */
SP_API void sp_waiter_reached(sp_waiter *waiter, uint64_t value);

/* Marks values >= `from` (0: all that are not known reached) as failed, for good. The status that
 * waits return is error->status; a `cause` of SP_OK stands for it. The first cause is kept. Wakes
 * nobody. `error` is duplicated.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, error->status not negative, `from` UINT64_MAX).
 * Since: 0.1 */
SP_API sp_status sp_waiter_fail(sp_waiter *waiter, uint64_t from, const sp_error *error);

/* Was the waiter made before a fork() that this process is the child of? Since: 0.1 */
SP_API bool sp_waiter_forked(const sp_waiter *waiter);

/* A point of kind SP_KIND_CUSTOM. `value` is ignored for one-shot waiters; `words` (optional) is
 * copied to raw.words. Calls no allocator. Ownership: *out is a new reference, the caller keeps
 * its own.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, UINT64_MAX); FORKED. Since: 0.1 */
SP_API sp_status sp_point_custom(sp_waiter *waiter, uint64_t value, const uint64_t words[3],
                                 sp_point *out);

/* ---- The two hottest calls, inlined where the compiler can ---------------------------------- */

/* Private: grows in each child of a fork(). The library's only process-wide variable. */
SP_API extern uint32_t sp_fork_generation;

/* Private: the rest of sp_poll(), for what is neither known reached nor plainly pending. */
SP_API sp_status sp_poll_rest(const sp_point *point, sp_status status, uint64_t reached);

#if defined(__GNUC__) && !defined(SYNCPOINT_BUILD)
#define SP_INLINE extern inline __attribute__((gnu_inline))

SP_INLINE sp_point sp_point_ref(const sp_point *point)
{
    if (!point)
        return sp_point_noop();
    if (point->waiter)
        __atomic_fetch_add(&point->waiter->refs, 1, __ATOMIC_RELAXED);
    return *point;
}

/* Known reached: two loads. Pending: one call of the primitive's probe. */
SP_INLINE sp_status sp_poll(const sp_point *point)
{
    if (point && point->waiter && point->waiter->fork_generation == sp_fork_generation) {
        sp_waiter *waiter = point->waiter;
        uint64_t target = (waiter->features & SP_FEATURE_COUNTING) ? point->value : 1;
        if (target <= __atomic_load_n(&waiter->reached, __ATOMIC_ACQUIRE))
            return SP_OK;
        if (waiter->ops->probe &&
            target < __atomic_load_n(&waiter->failed_from, __ATOMIC_ACQUIRE)) {
            uint64_t reached = 0;
            sp_status status = waiter->ops->probe(waiter, target, &reached);
            if (status == SP_OK && reached < target)
                return SP_PENDING;
            return sp_poll_rest(point, status, reached);
        }
    }
    return sp_poll_rest(point, SP_PENDING, 0);
}
#endif

#ifdef __cplusplus
}
#endif

#endif
