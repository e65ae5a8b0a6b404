/* SPDX-License-Identifier: MIT
 *
 * The OpenCL backend's own structures.
 *
 * How it fits together. An event is a point as it is: its status tells. A binary semaphore cannot
 * be asked where it is, so one signal of it is known to be reached only through the wait that used
 * it up: the event of that wait is the signal's *gate*. A host wait enqueues such a wait itself, on
 * the context's wait queue, if nobody has.
 *
 * Why no payload query (CL_SEMAPHORE_PAYLOAD_KHR): 1 says that some signal is there. It may be an
 * earlier one that its own waiter left, and whoever believes it has not used it up.
 *
 * Locks: the context's, a semaphore's and the pools' are held for a handful of instructions, or
 * over look-ups of the driver. None is held over an enqueue, a flush or a change of a user event: there
 * drivers run callbacks of the user on the calling thread.
 *
 * Who keeps whom alive: a point holds its waiter, an sp_cl_event or an sp_cl_signal; a signal holds
 * its semaphore; each holds the sp_cl_context. sp_cl_context_destroy() releases every OpenCL
 * object, the memory stays until the last of them is released.
 */
#ifndef SP_OPENCL_CL_INTERNAL_H
#define SP_OPENCL_CL_INTERNAL_H

#include "backends/opencl/cl_driver.h"
#include "core/core.h"

/* ---- Context (cl_context.c, cl_caps.c) ---- */

struct sp_cl_context {
    sp_cl_driver cl;
    cl_context handle;
    cl_command_queue wait_queue; /* NULL: no host waits on semaphores                           */
    cl_device_id import_device;  /* of several: the one that semaphores are imported for        */
    sp_cl_caps caps;
    char why_no_semaphore[96]; /* what caps points to                                           */
    char why_no_import[96];
    sp_log log;
    uint32_t refs; /* the user's and one for each event, signal and semaphore */
    uint32_t fork_generation;

    uint32_t host_waits; /* enqueued to the wait queue so far                   */
    cl_event end_marker; /* while ending: behind the first `end_marker_waits`   */
    uint32_t end_marker_waits;

    uint32_t lock;      /* guards what follows                                             */
    bool dead;          /* sp_cl_context_destroy() was successful: no driver calls         */
    uint32_t releasing; /* threads that release driver objects right now                   */
    sp_cl_semaphore *semaphores;
    struct sp_cl_event *first_parked;
    struct sp_cl_event *last_parked;
    uint32_t parked; /* how many */

    sp_pool events;
    sp_pool signals;
};

static inline bool sp_cl_is_forked(const sp_cl_context *context)
{
    return context->fork_generation != sp_fork_generation;
}

/* SP_OK, FORKED, or INVALID_STATE after sp_cl_context_destroy(). */
sp_status sp_cl_check(const sp_cl_context *context);
/* The same, and the queue is one of the context: else WRONG_CONTEXT. */
sp_status sp_cl_check_queue(sp_cl_context *context, cl_command_queue queue);

sp_status sp_cl_queue_is_out_of_order(const sp_cl_context *context, cl_command_queue queue,
                                      bool *out_of_order);

sp_cl_context *sp_cl_context_ref(sp_cl_context *context);
void sp_cl_context_unref(sp_cl_context *context);

/* Around calls of the driver that release something. False: the context is dead, and what there
 * was is released already. */
bool sp_cl_begin_release(sp_cl_context *context);
void sp_cl_end_release(sp_cl_context *context);

/* Is this thread inside a call that sets a user event of the context? Then a callback of the user's
 * is what asks. */
bool sp_cl_is_setting_event(const sp_cl_context *context);

/* What is not known reached by now never will be: the context ends. */
void sp_cl_end_waiter(sp_waiter *waiter);

/* Reads the devices: version, caps, import_device. NOT_SUPPORTED names the version found. */
sp_status sp_cl_caps_read(sp_cl_context *context);

/* ---- Results (cl_result.c) ---- */

/* The last error for a failed call. */
sp_status sp_cl_fail(cl_int result, const char *call);
/* The last error for an event whose execution status is negative: FAILED. */
sp_status sp_cl_fail_event(cl_int execution_status);
/* Is it the number of an error? */
bool sp_cl_is_cause(sp_status cause);
/* The execution status of a user event that fails with this cause, so that whoever looks at the
 * event learns it. */
cl_int sp_cl_status_of_cause(sp_status cause);

/* ---- Events (cl_event.c, cl_park.c) ---- */

/* What an event is. */
enum {
    SP_CL_WRAPPED = 0,    /* a user event of somebody else's, or one that was over */
    SP_CL_COMMAND = 1,    /* ours, or the user's                                   */
    SP_CL_USER_UNSET = 2, /* a user event of ours                                  */
    SP_CL_USER_SET = 3
};

/* Comes from the context's pool and goes back there. */
typedef struct sp_cl_event {
    sp_waiter base;
    sp_cl_context *context;
    cl_event handle; /* one reference; NULL in the pool, and once the context is destroyed */
    uint32_t kind;
    struct sp_cl_event *next_parked;
    uint64_t failed_ns; /* parked, or at the end: when it was first seen failed; 0: it was not */
} sp_cl_event;

extern const sp_waiter_ops sp_cl_event_ops;

static inline sp_cl_event *sp_cl_event_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_cl_event, base);
}

/* Its execution status, without a word on the last error; CL_QUEUED if the driver cannot say. */
cl_int sp_cl_event_status(const sp_cl_context *context, cl_event event);
/* Is it complete? FAILED if it failed. */
sp_status sp_cl_event_is_done(const sp_cl_context *context, cl_event event, bool *done);
/* Keeps the event of a command until it is over: a driver crashes if one fails whose event nobody
 * holds. */
void sp_cl_event_park(sp_cl_context *context, sp_cl_event *event);
/* The same for one that has no point; takes the reference. */
void sp_cl_let_go(sp_cl_context *context, cl_event handle);
/* The same for one that is likely to be over: then it is released at once. */
void sp_cl_release_event(sp_cl_context *context, cl_event handle);
/* Lets go of some that are over. */
void sp_cl_events_tidy(sp_cl_context *context);
/* Gives those that have failed the time that a driver needs after that, up to the deadline. At the
 * end of the context, when no other thread calls the driver. */
void sp_cl_events_rest(sp_cl_context *context, uint64_t deadline_ns);
/* For sp_pool_each(): the end of the context, first and last step. */
void sp_cl_event_end(void *unused, void *object);
void sp_cl_event_drop(void *context, void *object);

/* ---- Semaphores (cl_semaphore.c) ---- */

typedef struct sp_cl_signal sp_cl_signal;

struct sp_cl_semaphore {
    sp_cl_context *context;
    cl_semaphore_khr handle; /* one reference; NULL once the context is destroyed */
    uint32_t refs;

    sp_os_mutex lock;
    sp_cl_signal *current; /* the last signal that has points; not a reference                  */
    bool submitting;       /* a signal of ours is being enqueued                                */
    bool stray;            /* a signal of ours may come that the caller was told has failed     */
    bool untold;           /* a wait is enqueued, and nothing tells when it has run             */
    cl_event last_wait;    /* of the last wait that we enqueued; NULL: none                     */

    /* Under the context's lock: its list of semaphores. */
    sp_cl_semaphore *next;
    sp_cl_semaphore *prev;
};

/* One signal of a semaphore. Comes from the context's pool and goes back there. */
struct sp_cl_signal {
    sp_oneshot oneshot;
    sp_cl_semaphore *semaphore;
    cl_event signalled; /* of our own signal command; NULL: somebody else signals               */
    cl_event gate;      /* of the wait that used it up; NULL: none, or it is being enqueued     */
};

extern const sp_waiter_ops sp_cl_signal_ops;

static inline sp_cl_signal *sp_cl_signal_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_cl_signal, oneshot.base);
}

/* Takes the reference to `handle`, on success only. */
sp_status sp_cl_semaphore_make(sp_cl_context *context, cl_semaphore_khr handle,
                               sp_cl_semaphore **out);
/* NOT_SUPPORTED with the reason, or SP_OK. */
sp_status sp_cl_check_semaphores(const sp_cl_context *context);
/* Releases what the driver has of all in the list: the end of the context. */
void sp_cl_semaphores_drop_locked(sp_cl_context *context);

/* ---- Signals (cl_signal.c, cl_binary.c) ---- */

static inline uint32_t sp_cl_signal_state(const sp_cl_signal *signal)
{
    return sp_load32(&signal->oneshot.state);
}

static inline cl_event sp_cl_signal_gate(const sp_cl_signal *signal)
{
    return __atomic_load_n(&signal->gate, __ATOMIC_ACQUIRE);
}

/* Signalled by us, and no wait uses it up: there is none, or it has failed. One whose command
 * failed is not. */
bool sp_cl_signal_is_pending(const sp_cl_signal *signal, uint32_t state);
/* A wait for the claimed signal was enqueued, with this event: keeps references of its own. False:
 * the driver gives none, and the signal has failed. Without one for the semaphore, too, that takes
 * no other signal. */
bool sp_cl_signal_set_gate(sp_cl_signal *signal, cl_event gate);
void sp_cl_signal_end(void *unused, void *object);
void sp_cl_signal_drop(void *context, void *object);

#endif
