/* SPDX-License-Identifier: MIT
 *
 * The OpenGL backend's own structures.
 *
 * How it fits together. A fence sync is a waiter by itself (sp_gl_sync). Semaphores cannot be asked
 * where they are: what is known of one is known through fences that stand behind a signal or a wait
 * in some context's stream: a timeline's *watches*, a binary signal's *gate*. A host wait inserts
 * such a wait and fence itself, in the helper context if there is one, else in the current one.
 *
 * Where GL may be called: a *scope* (gl_current.c) is either that the thread has the context, or one
 * that shares objects with it, current, or that the helper context was made current.
 *
 * Calls are counted (sp_gl_begin_call): whatever goes into the driver for a context's objects while
 * another thread may be in sp_gl_context_destroy(), which lets no further call begin and waits for
 * the end of those that have begun.
 *
 * Locks, always taken in this order:
 *   1. a semaphore's order lock: held over setting the value and the wait or signal that uses it.
 *      Drivers may block there, so only waits and signals that are inserted take it;
 *   2. a semaphore's lock: its watches, current signal, last gate;
 *   3. the context's lock: lists of semaphores and of retired objects;
 *   4. spin locks: the group's, the pools', a waiter's.
 * The helper is one thread's at a time, which is settled before 1; who only wants to look does not
 * wait for one who inserts. No call of the driver is made under 2, 3 or 4, no flush and no wait for
 * the device under 1, and the user's enter(), leave() and log are called under none.
 *
 * Who keeps whom alive: a point holds its waiter, which is an sp_gl_sync, a semaphore with values,
 * or one signal of a binary (sp_gl_signal). A signal holds its semaphore and its gate, a semaphore
 * its watches, and each of them the sp_gl_context, whose memory stays until the last is released.
 */
#ifndef SP_OPENGL_GL_INTERNAL_H
#define SP_OPENGL_GL_INTERNAL_H

#include "core/core.h"
#include "gl_driver.h"

#include <stdio.h>

/* Bits of sp_gl_context.gone. */
enum {
    SP_GL_LOST = 1 << 0, /* the native context is gone or was reset                           */
    SP_GL_ENDING =
        1 << 1,         /* sp_gl_context_destroy(): no call begins, last answers are looked for */
    SP_GL_DEAD = 1 << 2 /* and they were given                                               */
};

typedef struct sp_gl_signal sp_gl_signal;

/* ---- Fence syncs ---- */

/* Comes from the context's pool and goes back there. */
typedef struct sp_gl_sync sp_gl_sync;
struct sp_gl_sync {
    sp_waiter base;
    sp_gl_context *context;
    void *native;  /* atomic; NULL: not inserted, reached from the start, or the context is gone */
    void *display; /* of an EGLSync; NULL: it is a GLsync                                       */
    bool owned;    /* deleted by us                                                             */
    bool exportable;
    uint32_t looked_at; /* one thread is asking the driver, and has not counted that as a call   */

    uint64_t watched;    /* in a semaphore's list of watches: the value that it stands for      */
    uint64_t watched_in; /* behind a wait: the stream, 0: the helper's                          */
    sp_gl_sync *next;    /* there, or in the context's list of retired ones                     */
};

extern const sp_waiter_ops sp_gl_sync_ops;

static inline sp_gl_sync *sp_gl_sync_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_gl_sync, base);
}

/* ---- Semaphores ---- */

struct sp_gl_semaphore {
    sp_waiter base; /* of one with values the waiter; of a binary only the references count     */
    sp_gl_context *context;
    uint32_t name; /* atomic; 0 once the context is gone                                        */
    sp_gl_semaphore_type type;

    sp_os_mutex order;
    sp_os_mutex lock;
    /* With values */
    uint64_t minted;     /* under `order`: the largest value that we have signalled            */
    uint64_t minted_in;  /* under `order`: the stream that has that signal                     */
    sp_gl_sync *signals; /* watches behind ours, by value, each a reference                    */
    sp_gl_sync *waits;   /* watches behind host waits, the same                                */
    /* Binary */
    sp_gl_signal *current; /* the last signal that has points; not a reference                  */
    sp_gl_sync *last_gate; /* behind the last wait that we inserted; a reference, or NULL       */
    uint64_t last_gate_in; /* the stream that has it                                            */
    bool lost_track;       /* a wait was inserted, and nothing tells when it has run            */

    /* Under the context's lock: its list of semaphores, or of retired ones. */
    sp_gl_semaphore *next;
    sp_gl_semaphore *prev;
};

/* One signal of a binary. Comes from the context's pool and goes back there. */
struct sp_gl_signal {
    sp_oneshot oneshot;
    sp_gl_semaphore *semaphore;
    bool ours;        /* inserted by us                                                         */
    sp_gl_sync *gate; /* atomic; reached once the wait that used the signal up has run          */
};

extern const sp_waiter_ops sp_gl_timeline_ops;
extern const sp_waiter_ops sp_gl_binary_ops;
extern const sp_waiter_ops sp_gl_signal_ops;

static inline sp_gl_semaphore *sp_gl_semaphore_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_gl_semaphore, base);
}

static inline sp_gl_signal *sp_gl_signal_of(sp_waiter *waiter)
{
    return SP_CONTAINER_OF(waiter, sp_gl_signal, oneshot.base);
}

static inline bool sp_gl_has_values(const sp_gl_semaphore *semaphore)
{
    return semaphore->type != SP_GL_SEMAPHORE_BINARY;
}

/* ---- Contexts ---- */

/* Contexts that share objects. */
typedef struct sp_gl_group {
    uint32_t refs;
    uint32_t lock;
    uint64_t streams; /* how many there were */
    sp_gl_context *first;
} sp_gl_group;

struct sp_gl_context {
    sp_gl_driver gl;
    sp_gl_caps caps;
    void *native;
    void *display; /* of the EGL loaders */
    sp_log log;
    uint32_t gone;  /* SP_GL_LOST, ... */
    uint32_t calls; /* in progress */
    uint32_t refs;  /* the user's and one for each sync and semaphore */
    uint32_t fork_generation;
    uint32_t waits_return_early; /* the driver's waits end before their time is up */

    sp_gl_group *group;
    sp_gl_context *group_next;
    uint64_t stream; /* its number in the group: native contexts are made at the same place again */

    bool (*helper_enter)(void *user);
    void (*helper_leave)(void *user);
    void *helper_user;
    uint32_t helper_use; /* who has it entered: sp_gl_purpose, or 0 */

    sp_os_mutex lock;
    sp_gl_semaphore *semaphores;
    sp_gl_sync *retired_syncs;
    sp_gl_semaphore *retired_semaphores;
    uint32_t retired_count; /* read without the lock: nothing to do is the usual case */

    sp_pool syncs;
    sp_pool signals;
};

static inline bool sp_gl_is_forked(const sp_gl_context *context)
{
    return context->fork_generation != sp_fork_generation;
}

static inline bool sp_gl_is_gone(const sp_gl_context *context)
{
    return sp_load32(&context->gone) != 0;
}

static inline bool sp_gl_is_lost(const sp_gl_context *context)
{
    return (sp_load32(&context->gone) & SP_GL_LOST) != 0;
}

/* SP_OK, FORKED, DEVICE_LOST, or INVALID_STATE after sp_gl_context_destroy(). */
sp_status sp_gl_check(const sp_gl_context *context);
/* The same, and WRONG_CONTEXT. Drains the retire list: GL may be called then. */
sp_status sp_gl_check_current(sp_gl_context *context, const char *function);
sp_status sp_gl_check_shared(sp_gl_context *context, const char *function);

sp_gl_context *sp_gl_context_ref(sp_gl_context *context);
void sp_gl_context_unref(sp_gl_context *context);
void sp_gl_note_gone(sp_gl_context *context, uint32_t bit);

/* Counts a call into the driver. False: none may be made, and none is to be ended. */
static inline bool sp_gl_begin_call(sp_gl_context *context)
{
    __atomic_fetch_add(&context->calls, 1, __ATOMIC_SEQ_CST);
    if (SP_LIKELY(__atomic_load_n(&context->gone, __ATOMIC_SEQ_CST) == 0))
        return true;
    __atomic_fetch_sub(&context->calls, 1, __ATOMIC_SEQ_CST);
    return false;
}

static inline void sp_gl_end_call(sp_gl_context *context)
{
    __atomic_fetch_sub(&context->calls, 1, __ATOMIC_SEQ_CST);
}

/* ---- Who is current (gl_current.c) ---- */

sp_status sp_gl_group_join(sp_gl_context *context, sp_gl_context *share);
/* It is not looked for any more; its group stays. */
void sp_gl_group_leave(sp_gl_context *context);
void sp_gl_group_unref(sp_gl_group *group);

bool sp_gl_is_current(const sp_gl_context *context);
/* The stream that is current if it is this context's, or that of one that shares with it; else 0. */
uint64_t sp_gl_shared_current(const sp_gl_context *context);

typedef struct sp_gl_scope {
    sp_gl_context *context; /* whose objects may be used                             */
    uint64_t stream;        /* that is current now; 0: a helper's, which may be any  */
    bool helped;            /* the helper was entered; else it was current anyway    */
    GLenum forgotten;       /* an error of the user's, to be logged at the end       */
} sp_gl_scope;

typedef enum sp_gl_purpose {
    SP_GL_TO_LOOK = 1, /* where the context is current, else in the helper                      */
    SP_GL_TO_MAKE = 2, /* the same                                                              */
    SP_GL_TO_WAIT = 3  /* in the helper, if there is one: its stream may stand still            */
} sp_gl_purpose;

/* SP_OK: GL may be called for objects of the context, until the scope is left. WRONG_CONTEXT. Where
 * the helper is in use by a wait, which may block: to look PENDING at once, else TIMEOUT. */
sp_status sp_gl_scope_enter(sp_gl_context *context, sp_gl_purpose purpose, uint64_t deadline_ns,
                            sp_gl_scope *scope);
/* Where that was checked already. */
sp_gl_scope sp_gl_scope_here(sp_gl_context *context);
/* May call the user's log: hold no lock. */
void sp_gl_scope_leave(const sp_gl_scope *scope);

/* ---- Errors (gl_error.c) ---- */

sp_status sp_gl_fail_egl(sp_gl_context *context, const char *call);
sp_status sp_gl_fail_gone(const sp_gl_context *context);
/* What a waiter says then: what is known, PENDING while the last answers are looked for, or that. */
sp_status sp_gl_answer_gone(const sp_gl_context *context, const sp_waiter *waiter, uint64_t value);
/* Where no call may begin: DEVICE_LOST, or PENDING: look again, the waiter knows more. */
sp_status sp_gl_no_call(const sp_gl_context *context);
/* Empties GL's own error queue. Returns the first one, or the loss of the context. */
GLenum sp_gl_drain_errors(const sp_gl_driver *driver);
void sp_gl_log_forgotten(const sp_log *log, GLenum error);

/* GL tells only through glGetError() what failed, and there an error of the user's may be pending:
 * so this is how a call is made whose error matters. SP_GL_CALL: one that tells nothing itself;
 * SP_GL_CALL_TELLING: one that tells that it failed, but not why. */
#define SP_GL_CALL(scope, name, call)                                                              \
    (sp_gl_forget_errors(scope), (void)(call), sp_gl_take_error(scope, name, GL_NO_ERROR))
#define SP_GL_CALL_TELLING(scope, name, call, failed)                                              \
    (sp_gl_forget_errors(scope), (void)(call),                                                     \
     (failed) ? sp_gl_take_error(scope, name, GL_CONTEXT_LOST) : SP_OK)
void sp_gl_forget_errors(sp_gl_scope *scope);
/* `unknown`: what it was if GL does not say. */
sp_status sp_gl_take_error(const sp_gl_scope *scope, const char *call, GLenum unknown);

/* ---- Released objects (gl_retire.c) ---- */

void sp_gl_list_add(sp_gl_context *context, sp_gl_semaphore *semaphore);
/* The last reference went. */
void sp_gl_retire_sync(sp_gl_sync *sync);
void sp_gl_retire_semaphore(sp_gl_semaphore *semaphore);
/* Deletes what was retired. The context, or one that shares with it, is current. */
void sp_gl_drain(sp_gl_context *context);
/* Ends everything: the last answers, then the objects. The same is current, unless it is lost. */
void sp_gl_end_objects(sp_gl_context *context);

/* ---- Fence syncs (gl_sync.c, gl_fence.c, gl_native_fence.c) ---- */

/* One without a native object, with one reference. OUT_OF_MEMORY; sp_gl_no_call(). */
sp_status sp_gl_sync_make(sp_gl_context *context, sp_gl_sync **out);
/* Inserts a fence in the stream that is current, and flushes in any case. */
sp_status sp_gl_sync_insert(sp_gl_sync *sync, sp_gl_scope *scope);
sp_point sp_gl_sync_point(sp_gl_sync *sync); /* takes the reference */
/* SP_OK: reached; PENDING; or an error. */
sp_status sp_gl_sync_look(sp_gl_sync *sync);
sp_status sp_gl_sync_block(sp_gl_sync *sync, uint64_t deadline_ns);
/* For sp_gl_context_destroy(), while no call begins: the last answer; hold a reference. */
void sp_gl_sync_ask_last(sp_gl_sync *sync);
/* Deletes the native object, if there is one and it is ours; nobody uses it. `calls`: GL, or for
 * an EGLSync EGL, may be called. */
void sp_gl_sync_drop_native(sp_gl_sync *sync, bool calls);

static inline void *sp_gl_sync_native(const sp_gl_sync *sync)
{
    return __atomic_load_n(&sync->native, __ATOMIC_SEQ_CST);
}

static inline bool sp_gl_sync_has_failed(const sp_gl_sync *sync)
{
    return sp_load64(&sync->base.failed_from) != UINT64_MAX;
}

static inline void sp_gl_sync_unref(sp_gl_sync *sync)
{
    if (sync)
        sp_waiter_unref(&sync->base);
}

/* Replaces the fence of a sync that is to be exportable. */
sp_status sp_gl_native_fence_insert(sp_gl_sync *sync);

/* ---- Semaphores (gl_semaphore.c, gl_insert.c, gl_timeline.c, gl_watch.c, gl_binary.c) ---- */

void sp_gl_semaphore_release(sp_waiter *waiter);
void sp_gl_semaphore_free(sp_gl_semaphore *semaphore);
/* Lets go of all watches, and of the gate. */
void sp_gl_semaphore_drop_fences(sp_gl_semaphore *semaphore);
static inline sp_gl_semaphore *sp_gl_semaphore_hold(sp_gl_semaphore *semaphore)
{
    sp_waiter_ref(&semaphore->base);
    return semaphore;
}

/* One wait or signal with what belongs to it. */
typedef struct sp_gl_operation {
    sp_gl_scope *scope;
    sp_gl_semaphore *semaphore;
    uint64_t value;                 /* with values                                             */
    const sp_gl_barriers *barriers; /* optional                                                */
} sp_gl_operation;
sp_status sp_gl_insert_wait(const sp_gl_operation *operation);
sp_status sp_gl_insert_wait_ordered(const sp_gl_operation *operation);
sp_status sp_gl_insert_signal_ordered(const sp_gl_operation *operation);

/* Called once a wait that was begun then is flushed. BACKEND: the driver may have given it up. */
sp_status sp_gl_check_not_given_up(uint64_t start_ns);

/* Why they cannot be used, or NULL. */
const char *sp_gl_check_barriers(const sp_gl_barriers *barriers);

typedef struct sp_gl_host_wait {
    sp_gl_semaphore *semaphore;
    uint64_t value; /* with values                       */
    sp_gl_sync *fence;
    uint64_t deadline_ns; /* until then it waits for the helper */
} sp_gl_host_wait;

/* Where a wait was inserted. */
typedef struct sp_gl_place {
    bool inserted;   /* false: nowhere, and nothing was changed */
    uint64_t stream; /* 0: the helper's                         */
} sp_gl_place;

/* Inserts a wait, and the fence behind it, where a host wait may. An error, sp_gl_no_call(), or
 * TIMEOUT: the helper was in use. */
sp_status sp_gl_insert_host_wait(const sp_gl_host_wait *wait, sp_gl_place *place);

/* From now on `fence` tells of `value`: behind a signal of ours; behind a host wait in the stream.
 * They take a reference. */
void sp_gl_watch_signal(sp_gl_semaphore *timeline, uint64_t value, sp_gl_sync *fence);
void sp_gl_watch_wait(sp_gl_semaphore *timeline, uint64_t value, sp_gl_sync *fence,
                      uint64_t stream);
/* What to wait for instead of inserting a wait for the value into the stream, as a reference: a
 * watch of that value, or of a higher one in that stream; one of a lower value, and then look again,
 * where too many are parked there. NULL: none. */
sp_gl_sync *sp_gl_watch_find(sp_gl_semaphore *timeline, uint64_t value, uint64_t stream);
void sp_gl_watch_drop(sp_gl_semaphore *timeline, sp_gl_sync *watch);
/* SP_OK: *reached, 0: none of at least `value` is. Or an error. */
sp_status sp_gl_watches_ask(sp_gl_semaphore *timeline, uint64_t value, uint64_t *reached);
/* Takes over what is known of the watches. */
void sp_gl_timeline_settle(sp_gl_semaphore *timeline);
sp_point sp_gl_timeline_make_point(sp_gl_semaphore *timeline, uint64_t value);

sp_gl_signal *sp_gl_signal_make(sp_gl_semaphore *semaphore, uint32_t state); /* NULL: no memory */
sp_point sp_gl_signal_point(sp_gl_signal *signal, uint32_t flags); /* takes the reference */
/* The wait that used the signal up stands before `gate` in the stream. */
void sp_gl_signal_set_gate(sp_gl_signal *signal, sp_gl_sync *gate, uint64_t stream);
/* That wait was inserted and nothing tells when it has run. */
void sp_gl_signal_fail(sp_gl_signal *signal, const sp_error *error);
/* Finds out whether the last wait has run, before the lock is taken: asking may enter the helper. */
void sp_gl_binary_ask_last_gate(sp_gl_semaphore *binary);
/* May a signal be inserted into the stream? */
sp_status sp_gl_binary_check_free(sp_gl_semaphore *binary, uint64_t stream);
/* One of ours was inserted, NULL: without a point. The current one gives way:
 * sp_oneshot_supersede(). */
sp_oneshot *sp_gl_binary_set_current(sp_gl_semaphore *binary, sp_gl_signal *signal);

#endif
