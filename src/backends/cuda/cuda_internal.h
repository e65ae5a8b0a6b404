/* SPDX-License-Identifier: MIT
 *
 * The CUDA backend's own structures.
 *
 * How it fits together. All that the library finds out, it finds out by events. A point of a stream
 * is an sp_cuda_event. After each wait or signal of an external semaphore that it enqueues, it
 * records one more, a *mark*: it says when a host wait is done, when a binary's signal is used up,
 * and when a semaphore may be destroyed.
 *
 * A host wait on a semaphore that cannot be asked needs a stream of its own: a *lane*.
 *
 * Locks, always taken in this order:
 *   1. the context's lock;
 *   2. a semaphore's lock;
 *   3. spin locks: the pools', a waiter's.
 * No call that waits for the device is made with any of them held.
 *
 * Who keeps whom alive: a point holds its waiter, which is an sp_cuda_event, an sp_cuda_semaphore
 * with values, or an sp_cuda_signal of a binary; a signal holds its semaphore and its mark; events
 * and semaphores hold the sp_cuda_context. sp_cuda_context_destroy() ends the use of the CUcontext,
 * the memory stays until the last of them is released.
 */
#ifndef SP_CUDA_CUDA_INTERNAL_H
#define SP_CUDA_CUDA_INTERNAL_H

#include "backends/cuda/cuda_driver.h"
#include "core/core.h"

/* Bits of sp_cuda_context.gone. */
enum {
    SP_CUDA_LOST = 1 << 0,  /* a sticky error: nothing of it will ever run again                */
    SP_CUDA_ENDED = 1 << 1, /* the CUcontext was destroyed, or the process is exiting           */
    SP_CUDA_DEAD = 1 << 2   /* sp_cuda_context_destroy() was successful                         */
};

typedef struct sp_cuda_event sp_cuda_event;
typedef struct sp_cuda_signal sp_cuda_signal;
typedef struct sp_cuda_lane sp_cuda_lane;
typedef struct sp_cuda_use sp_cuda_use;

/* A stream for host waits. Making one blocks while the device's 32 channels hold waits that are
 * pending, whoever's they are: so we never hold more than half of them. */
#define SP_CUDA_MOST_LANE_STREAMS 16
typedef struct sp_cuda_lane_stream {
    CUstream stream;     /* NULL: not made yet                                                  */
    uint32_t entered;    /* a thread makes it, or enqueues on it right now                      */
    bool stuck;          /* a wait on it has no mark: nobody knows when it is idle again        */
    sp_cuda_event *last; /* the mark of the last wait, a reference                              */
} sp_cuda_lane_stream;

/* ---- Context (cuda_context.c) ---- */

#define SP_CUDA_KNOWN_STREAMS 8

struct sp_cuda_context {
    sp_cuda_driver cu;
    CUcontext handle;
    unsigned long long id; /* tells it from a later CUcontext at the same address; 0: not known */
    sp_log log;
    sp_cuda_caps caps;
    uint32_t gone; /* SP_CUDA_* */
    uint32_t refs; /* the user's, and one for each event and semaphore in use */
    uint32_t fork_generation;

    sp_pool events;  /* sp_cuda_event, each with a CUevent that is recorded again and again     */
    sp_pool others;  /* sp_cuda_event of the user, or shared with another process               */
    sp_pool signals; /* sp_cuda_signal */
    sp_pool lanes;   /* sp_cuda_lane */
    sp_pool uses;    /* sp_cuda_use */

    CUstream known_streams[SP_CUDA_KNOWN_STREAMS]; /* seen to be of this context; hints */

    sp_cuda_lane_stream lane_streams[SP_CUDA_MOST_LANE_STREAMS];
    sp_os_mutex lane_streams_lock; /* within a semaphore's */

    uint64_t mark_clock; /* counts beginnings and ends of the recording of marks */
    uint32_t untracked;  /* an operation has no mark: nobody knows when it is done                */

    /* Guards what follows. Held while events are destroyed, so that none is in a driver's hands any
     * more once SP_CUDA_DEAD is set. */
    sp_os_mutex lock;
    sp_cuda_semaphore *semaphores; /* those with a handle, which are not retired */
    sp_cuda_semaphore *retired;
    uint32_t retired_count; /* read without the lock: nothing to do is the usual case */
    uint32_t destroying;    /* threads that destroy retired ones right now                 */
    uint32_t ending;        /* sp_cuda_context_destroy() found nothing pending, and no host wait and
                             * no such thread is to begin; read within a semaphore's lock, too */
};

/* SP_OK; FORKED; INVALID_STATE: destroyed, or the CUcontext is known to be. */
sp_status sp_cuda_check(const sp_cuda_context *context);
/* The same, and DEVICE_LOST once that is known. */
sp_status sp_cuda_check_usable(const sp_cuda_context *context);

sp_cuda_context *sp_cuda_context_ref(sp_cuda_context *context);
void sp_cuda_context_unref(sp_cuda_context *context);

static inline bool sp_cuda_is_forked(const sp_cuda_context *context)
{
    return context->fork_generation != sp_fork_generation;
}

static inline uint32_t sp_cuda_gone(const sp_cuda_context *context)
{
    return sp_load32(&context->gone);
}

void sp_cuda_note_gone(sp_cuda_context *context, uint32_t bit);

/* ---- Results (cuda_result.c) ---- */

/* The last error for a failed call; notes what it says about the context. */
sp_status sp_cuda_fail(sp_cuda_context *context, CUresult result, const char *call);
/* Only notes it. */
void sp_cuda_note_result(sp_cuda_context *context, CUresult result);
/* For calls that have to do with another context, too: which of them the result is about, calls of
 * its own will tell. */
sp_status sp_cuda_fail_unnoted(const sp_cuda_context *context, CUresult result, const char *call);
/* For calls that are given a handle from elsewhere: what drivers say to one that is no good. */
sp_status sp_cuda_fail_handle(sp_cuda_context *context, CUresult result, const char *call);
/* The last error, of a host wait that could not begin, as one that is not kept: that breaks nothing. */
sp_status sp_cuda_fail_wait_only(const sp_cuda_context *context);
/* The last error for what is known to be gone. */
sp_status sp_cuda_fail_gone(const sp_cuda_context *context);
/* Does the result say that the CUcontext, or the driver, is no more? */
bool sp_cuda_result_is_end(CUresult result);
/* Or that it is broken? */
bool sp_cuda_result_is_gone(CUresult result);

/* ---- The calling thread's state (cuda_scope.c) ---- */

/* What was changed on this thread, to be put back. */
typedef struct sp_cuda_scope {
    bool pushed;
} sp_cuda_scope;

/* Makes the context current. A failure needs no leave. */
sp_status sp_cuda_enter(sp_cuda_context *context, sp_cuda_scope *scope);
/* The same for work on a stream: which must be one of the context's and must not be captured. */
sp_status sp_cuda_enter_stream(sp_cuda_context *context, CUstream stream, sp_cuda_scope *scope);
/* Of a call that was made whichever context is current: may the result be about that one? */
bool sp_cuda_may_mean_another(const sp_cuda_context *context, CUresult result);
/* Without making the context current: SP_PENDING if that is needed to tell. */
sp_status sp_cuda_check_stream(sp_cuda_context *context, CUstream stream);
/* The same, in one call for a stream that was seen before. Another context's may have its address by
 * now: an event of ours cannot be recorded on that; forget it then, and look again. */
sp_status sp_cuda_check_stream_to_record(sp_cuda_context *context, CUstream stream);
void sp_cuda_forget_stream(sp_cuda_context *context, CUstream stream);
void sp_cuda_leave(sp_cuda_context *context, sp_cuda_scope scope);

/* Is the CUcontext still there? Notes it if not. */
bool sp_cuda_is_alive(sp_cuda_context *context);

/* Calls that are not stream operations could invalidate a capture that goes on: not between these
 * two. */
static inline int sp_cuda_relax(const sp_cuda_context *context)
{
    int mode = SP_CU_CAPTURE_RELAXED;
    return context->cu.exchange_capture_mode(&mode) == CUDA_SUCCESS ? mode : SP_CU_CAPTURE_RELAXED;
}

static inline void sp_cuda_unrelax(const sp_cuda_context *context, int mode)
{
    if (mode != SP_CU_CAPTURE_RELAXED)
        context->cu.exchange_capture_mode(&mode);
}

/* ---- Events (cuda_event.c) ---- */

struct sp_cuda_event {
    sp_waiter base;
    sp_cuda_context *context; /* a reference, as long as the waiter has one                     */
    CUevent handle;           /* NULL: none yet, or its context is destroyed                    */
    uint32_t users;           /* threads that may have the handle in a driver call              */
    uint64_t began, ended;    /* of a mark: its record, by the context's mark_clock             */
    bool pooled;              /* of context->events, else of context->others                    */
    bool owned;               /* destroyed by us                                                */
};

extern const sp_waiter_ops sp_cuda_event_ops;

static inline sp_cuda_event *sp_cuda_event_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_cuda_event, base);
}

/* A spare event, to be recorded. Within sp_cuda_enter(). *out is a reference. */
sp_status sp_cuda_event_take(sp_cuda_context *context, sp_cuda_event **out);
/* One of context->others, around a handle. *out is a reference. */
sp_status sp_cuda_event_around(sp_cuda_context *context, CUevent handle, bool owned,
                               sp_cuda_event **out);
/* The handle for driver calls until sp_cuda_event_release(), or why there is none. */
sp_status sp_cuda_event_hold(sp_cuda_event *event, CUevent *handle);
void sp_cuda_event_release(sp_cuda_event *event);
sp_status sp_cuda_event_record(sp_cuda_event *event, CUstream stream);
/* Takes the reference. Field by field: a local that is copied as a whole costs two stalled loads. */
static inline void sp_cuda_event_point(sp_cuda_event *event, sp_point *out)
{
    const sp_cuda_context *context = event->context;
    out->kind = SP_KIND_CUDA_EVENT;
    out->flags = 0;
    out->value = 0;
    out->raw.cuda_event.event = event->handle;
    out->raw.cuda_event.context = context->handle;
    out->raw.cuda_event.ordinal = (uint64_t)context->caps.device_ordinal;
    out->waiter = &event->base;
}

static inline void sp_cuda_event_unref(sp_cuda_event *event)
{
    if (event)
        sp_waiter_unref(&event->base);
}

/* SP_OK, PENDING or an error. */
static inline sp_status sp_cuda_event_probe(sp_cuda_event *event)
{
    if (sp_waiter_known_reached(&event->base, 1))
        return SP_OK;
    return sp_waiter_probe(&event->base, 1);
}

/* For sp_cuda_context_destroy(): asks each event a last time, and fails those that are pending. */
void sp_cuda_events_end(sp_cuda_context *context);
void sp_cuda_events_destroy_locked(sp_cuda_context *context);

/* What is not known reached by now never will be. */
void sp_cuda_end_waiter(sp_waiter *waiter);

/* ---- Semaphores (cuda_semaphore.c) ---- */

/* An operation of a semaphore on one of the user's streams. */
struct sp_cuda_use {
    sp_cuda_use *next;
    unsigned long long stream_id;
    uint64_t value;      /* of a signal of a semaphore with values */
    sp_cuda_event *mark; /* a reference */
};

struct sp_cuda_semaphore {
    sp_waiter base; /* with values: the waiter; else only the reference count is used           */
    sp_cuda_context *context;
    CUexternalSemaphore handle; /* NULL once the context is destroyed                           */
    bool counting;
    bool keyed;      /* a keyed mutex: a wait acquires it                                       */
    sp_point origin; /* NOOP: none */

    /* Guards what follows. Held while an operation on the semaphore is enqueued and marked. */
    sp_os_mutex lock;
    sp_cuda_use *uses;   /* the last on each stream; of threads that use one at once, one each */
    sp_cuda_lane *lanes; /* host waits that go on */

    /* With values: the largest that we signalled, and our signals that are not known to be over, in
     * their order, which is also that on the device. They are not among `uses`. */
    uint64_t minted;
    sp_cuda_use *signals;
    sp_cuda_use *last_signal;
    uint32_t signal_count;
    uint32_t look_at_count; /* how many may gather before they are looked at */
    bool unmarked;          /* the last signal has no mark */

    /* Binaries and keyed mutexes */
    sp_cuda_signal *current; /* the last signal that has points; not a reference                */
    sp_cuda_event *waited;   /* the mark of the last wait, and its stream                       */
    unsigned long long wait_stream;
    bool stray_wait; /* a wait is enqueued that has no mark: no signal may follow it    */

    /* Under the context's lock: its list of semaphores, or of retired ones. */
    sp_cuda_semaphore *next;
    sp_cuda_semaphore *prev;
};

static inline sp_cuda_semaphore *sp_cuda_semaphore_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_cuda_semaphore, base);
}

/* Without a handle yet; NULL: out of memory. */
sp_cuda_semaphore *sp_cuda_semaphore_make(sp_cuda_context *context, bool counting, bool keyed,
                                          const sp_point *origin);
void sp_cuda_semaphore_list(sp_cuda_semaphore *semaphore); /* from now on the context knows it */
void sp_cuda_semaphore_free(sp_cuda_semaphore *semaphore); /* it has no handle (any more)      */

/* Destroys what was released while operations on it were pending, and no longer is. Cheap if there
 * is nothing. */
#define SP_CUDA_MOST_RETIRED 64
/* Destroys retired semaphores that are free of operations, if there are more than `most`. Blocks as
 * long as the driver does, without a lock of ours. */
void sp_cuda_drain(sp_cuda_context *context, uint32_t most);

/* For sp_cuda_context_destroy(): TIMEOUT if operations are still pending then, else none begins any
 * more; the last probes; the end of all handles, which leaves those that nobody holds to be freed.
 * That blocks as long as the driver does, without a lock of ours. */
sp_status sp_cuda_semaphores_wait(sp_cuda_context *context, uint64_t deadline_ns);
void sp_cuda_semaphores_end(sp_cuda_context *context);
sp_cuda_semaphore *sp_cuda_semaphores_destroy(sp_cuda_context *context);
void sp_cuda_semaphores_free(sp_cuda_semaphore *semaphore);

/* ---- What was enqueued (cuda_use.c) ---- */

/* 0 if the driver has no ids. Within sp_cuda_enter_stream(). */
unsigned long long sp_cuda_stream_id(const sp_cuda_context *context, CUstream stream);

/* Behind an operation on one of the user's streams. */
CUresult sp_cuda_mark_record(sp_cuda_event *mark, CUstream stream);
/* Remembers an operation, with a reference of its own to the mark; takes the node `use`. */
void sp_cuda_use_add_locked(sp_cuda_semaphore *semaphore, sp_cuda_use *use,
                            unsigned long long stream_id, sp_cuda_event *mark);
/* Makes the stream wait for the mark (NULL: none), if that is pending on another stream. */
sp_status sp_cuda_order_behind(sp_cuda_context *context, CUstream stream,
                               unsigned long long stream_id, sp_cuda_event *mark,
                               unsigned long long mark_stream);
/* Replaces a reference to a mark by one to another. */
void sp_cuda_mark_set(sp_cuda_event **at, sp_cuda_event *mark);
/* Is an operation pending? Forgets those that are done. */
bool sp_cuda_uses_pending_locked(sp_cuda_semaphore *semaphore);
/* The same of our signals of a semaphore with values. */
void sp_cuda_signal_add_locked(sp_cuda_semaphore *timeline, sp_cuda_use *use,
                               unsigned long long stream_id, uint64_t value, sp_cuda_event *mark);
bool sp_cuda_signals_pending_locked(sp_cuda_semaphore *timeline);
/* Looks at the signal that reaches `value`, and forgets it and those before it if it is over.
 * SP_OK; PENDING, also if there is none; or an error. *exact: there is one of just this value. */
sp_status sp_cuda_signals_poll_locked(sp_cuda_semaphore *timeline, uint64_t value, bool *exact);
/* Forgets them all. */
void sp_cuda_uses_drop_locked(sp_cuda_semaphore *semaphore);

/* ---- Host waits (cuda_parked.c) ---- */

/* A wait on a stream, in a semaphore's list. */
struct sp_cuda_lane {
    sp_cuda_lane *next;
    uint64_t value;      /* or key */
    sp_cuda_event *mark; /* a reference; NULL: none could be recorded, the lane is lost         */
};

/* A wait on the device for the value, or the key, without more. */
sp_status sp_cuda_enqueue_wait(const sp_cuda_semaphore *semaphore, uint64_t value, CUstream stream);
/* Enqueues a wait for the value, or the key. The mark is borrowed from the lane. *enqueued: it may
 * be so although the status is an error, and then nothing tells when it is over. TIMEOUT: not now,
 * the context is being destroyed. */
sp_status sp_cuda_lane_start_locked(sp_cuda_semaphore *semaphore, uint64_t value,
                                    sp_cuda_event **mark, bool *enqueued);
/* Looks at the waits, notes what is reached, and ends those that are done. PENDING or an error.
 * *waiting: is there one for this value, or for a smaller one, which must be reached before? */
sp_status sp_cuda_lanes_poll_locked(sp_cuda_semaphore *semaphore, uint64_t value, bool *waiting);
bool sp_cuda_lanes_pending_locked(sp_cuda_semaphore *semaphore);
void sp_cuda_lanes_drop_locked(sp_cuda_semaphore *semaphore);
/* The end of the context: of the streams, and of what else they have. */
void sp_cuda_lane_streams_destroy(sp_cuda_context *context);
void sp_cuda_lane_streams_forget(sp_cuda_context *context);

/* ---- Semaphores with values (cuda_timeline.c) ---- */

extern const sp_waiter_ops sp_cuda_followed_ops; /* with an origin */
extern const sp_waiter_ops sp_cuda_timeline_ops; /* without        */

static inline bool sp_cuda_is_timeline(const sp_waiter *waiter)
{
    return waiter->ops == &sp_cuda_timeline_ops || waiter->ops == &sp_cuda_followed_ops;
}

/* The waiter's operations. */
sp_status sp_cuda_followed_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached);
sp_status sp_cuda_followed_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns);
sp_status sp_cuda_followed_arm(sp_waiter *waiter, uint64_t value, sp_waker *waker);
void sp_cuda_followed_disarm(sp_waiter *waiter, sp_waker *waker);
sp_status sp_cuda_timeline_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached);
sp_status sp_cuda_timeline_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns);

/* Notes what can be known without a wait. */
void sp_cuda_timeline_look(sp_cuda_semaphore *timeline);

/* Chooses the next value, or checks the caller's: 0 asks for the next one. */
sp_status sp_cuda_mint_locked(sp_cuda_semaphore *timeline, uint64_t wanted, uint64_t *value);

/* ---- Binaries and keyed mutexes (cuda_binary.c) ---- */

/* One signal. Comes from the context's pool and goes back there. */
struct sp_cuda_signal {
    sp_oneshot oneshot;
    sp_cuda_semaphore *semaphore; /* a reference */
    uint64_t key;
    bool ours;           /* enqueued by us                                                      */
    uint32_t gated;      /* `gate` is set                                                       */
    sp_cuda_event *gate; /* the mark of the wait that used it up; a reference                   */
};

extern const sp_waiter_ops sp_cuda_binary_ops; /* of the semaphore */
extern const sp_waiter_ops sp_cuda_signal_ops;

static inline sp_cuda_signal *sp_cuda_signal_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_cuda_signal, oneshot.base);
}

/* A waiter with one reference, which holds the semaphore; NULL: out of memory. */
sp_cuda_signal *sp_cuda_signal_make(sp_cuda_semaphore *semaphore, uint64_t key, uint32_t state);
sp_point sp_cuda_signal_point(sp_cuda_signal *signal, uint32_t flags); /* takes the reference */
/* INVALID_STATE if a signal is pending that nobody waits for: ours, or also one that the other side
 * has announced. */
sp_status sp_cuda_binary_check_free_locked(const sp_cuda_semaphore *binary, bool announced_too);
/* The claimed signal's wait is enqueued. */
void sp_cuda_signal_gate_locked(sp_cuda_signal *signal, sp_cuda_event *mark,
                                unsigned long long stream_id);
void sp_cuda_signals_end(sp_cuda_context *context);

#endif
