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
 * Locks, always taken in this order:
 *   1. a semaphore's lock: its values, watches, current signal; held over setting the value and the
 *      wait or signal that uses it;
 *   2. the context's lock: lists of semaphores and of retired objects;
 *   3. spin locks: the group's, the pools', a waiter's.
 * The helper's mutex is taken before 1. No lock is held while a call waits for the device, and none
 * but the helper's while the user's enter() and leave() run.
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
    SP_GL_LOST = 1 << 0, /* the native context is gone or was reset                             */
    SP_GL_DEAD = 1 << 1  /* sp_gl_context_destroy(): never call the driver again                */
};

typedef struct sp_gl_signal sp_gl_signal;

/* ---- Fence syncs ---- */

/* Comes from the context's pool and goes back there. */
typedef struct sp_gl_sync sp_gl_sync;
struct sp_gl_sync {
    sp_waiter base;
    sp_gl_context *context;
    void *native;  /* atomic; NULL: reached from the start, or the context is gone              */
    void *display; /* of an EGLSync; NULL: it is a GLsync                                       */
    bool owned;    /* deleted by us                                                             */
    bool exportable;
    uint32_t users; /* calls that are using `native` right now                                  */

    uint64_t watched; /* in a semaphore's list of watches: the value that it stands for         */
    sp_gl_sync *next; /* there, or in the context's list of retired ones                        */
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

    sp_os_mutex lock;
    /* With values */
    uint64_t minted;     /* the largest value that we have signalled                           */
    void *minted_in;     /* the native context whose stream has that signal                    */
    sp_gl_sync *watches; /* by value, each a reference                                         */
    /* Binary */
    sp_gl_signal *current; /* the last signal that has points; not a reference                  */
    sp_gl_sync *last_gate; /* behind the last wait that we inserted; a reference, or NULL       */
    void *last_gate_in;    /* the native context whose stream has it                            */

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
    sp_gl_context *first;
} sp_gl_group;

struct sp_gl_context {
    sp_gl_driver gl;
    sp_gl_caps caps;
    void *native;
    void *display; /* of the EGL loaders */
    sp_log log;
    uint32_t gone; /* SP_GL_LOST, SP_GL_DEAD */
    uint32_t refs; /* the user's and one for each sync and semaphore */
    uint32_t fork_generation;
    uint32_t waits_return_early; /* the driver's waits end before their time is up */

    sp_gl_group *group;
    sp_gl_context *group_next;

    bool (*helper_enter)(void *user);
    void (*helper_leave)(void *user);
    void *helper_user;
    sp_os_mutex helper_lock;

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

/* SP_OK, FORKED, DEVICE_LOST, or INVALID_STATE after sp_gl_context_destroy(). */
sp_status sp_gl_check(const sp_gl_context *context);
/* The same, and WRONG_CONTEXT. Drains the retire list: GL may be called then. */
sp_status sp_gl_check_current(sp_gl_context *context, const char *function);
sp_status sp_gl_check_shared(sp_gl_context *context, const char *function);

sp_gl_context *sp_gl_context_ref(sp_gl_context *context);
void sp_gl_context_unref(sp_gl_context *context);
void sp_gl_note_gone(sp_gl_context *context, uint32_t bit);

/* ---- Errors (gl_error.c) ---- */

sp_status sp_gl_fail(sp_gl_context *context, GLenum error, const char *call);
sp_status sp_gl_fail_egl(sp_gl_context *context, const char *call);
sp_status sp_gl_fail_gone(const sp_gl_context *context);
/* Empties GL's own error queue. Returns the first one. */
GLenum sp_gl_drain_errors(const sp_gl_driver *driver);
/* Before a call that reports only there. Logs what is lost: hold no lock. */
void sp_gl_forget_errors(const sp_gl_driver *driver, const sp_log *log);
/* After it. */
sp_status sp_gl_check_error(sp_gl_context *context, const char *call);

/* ---- Who is current (gl_current.c) ---- */

sp_status sp_gl_group_join(sp_gl_context *context, sp_gl_context *share);
/* It is not looked for any more; its group stays. */
void sp_gl_group_leave(sp_gl_context *context);
void sp_gl_group_unref(sp_gl_group *group);

bool sp_gl_is_current(const sp_gl_context *context);
/* The native context that is current if it is this one, or one that shares with it; else NULL. */
void *sp_gl_shared_current(const sp_gl_context *context);

typedef struct sp_gl_scope {
    sp_gl_context *helper; /* whose helper was entered; NULL: it was current anyway */
    void *native;          /* what is current now                                   */
} sp_gl_scope;

typedef enum sp_gl_preference { SP_GL_PREFER_CURRENT, SP_GL_PREFER_HELPER } sp_gl_preference;

/* SP_OK: GL may be called for objects of the context, until the scope is left. Only what does not
 * block. */
sp_status sp_gl_scope_enter(sp_gl_context *context, sp_gl_preference preference,
                            sp_gl_scope *scope);
void sp_gl_scope_leave(sp_gl_scope *scope);

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

/* One without a native object, with one reference; NULL: out of memory. */
sp_gl_sync *sp_gl_sync_make(sp_gl_context *context);
/* Inserts a fence in the stream that is current, and flushes. */
sp_status sp_gl_sync_insert(sp_gl_sync *sync);
sp_point sp_gl_sync_point(sp_gl_sync *sync); /* takes the reference */
/* SP_OK: reached; PENDING; or an error. */
sp_status sp_gl_sync_look(sp_gl_sync *sync);
sp_status sp_gl_sync_block(sp_gl_sync *sync, uint64_t deadline_ns);
/* The native object for a call, or NULL: then it is gone, or never was. */
void *sp_gl_sync_use(sp_gl_sync *sync);
void sp_gl_sync_unuse(sp_gl_sync *sync);
/* Takes the native object away from everybody; waits until no call uses it. */
void *sp_gl_sync_take_native(sp_gl_sync *sync);
void sp_gl_sync_delete_native(const sp_gl_sync *sync, void *native);

static inline void sp_gl_sync_unref(sp_gl_sync *sync)
{
    if (sync)
        sp_waiter_unref(&sync->base);
}

/* Replaces the fence of a sync that is to be exportable. */
sp_status sp_gl_native_fence_insert(sp_gl_sync *sync);

/* ---- Semaphores (gl_semaphore.c, gl_insert.c, gl_timeline.c, gl_binary.c) ---- */

void sp_gl_semaphore_release(sp_waiter *waiter);
void sp_gl_semaphore_free(sp_gl_semaphore *semaphore);
/* Lets go of all watches, and of the gate. */
void sp_gl_semaphore_drop_fences(sp_gl_semaphore *semaphore);
static inline sp_gl_semaphore *sp_gl_semaphore_hold(sp_gl_semaphore *semaphore)
{
    sp_waiter_ref(&semaphore->base);
    return semaphore;
}

/* One wait or signal with what belongs to it. In a scope, errors forgotten before. */
typedef struct sp_gl_operation {
    sp_gl_semaphore *semaphore;
    uint64_t value;                 /* with values                                             */
    const sp_gl_barriers *barriers; /* optional                                                */
} sp_gl_operation;
sp_status sp_gl_insert_wait(const sp_gl_operation *operation);
sp_status sp_gl_insert_wait_locked(const sp_gl_operation *operation);
sp_status sp_gl_insert_signal_locked(const sp_gl_operation *operation);

/* Why they cannot be used, or NULL. */
const char *sp_gl_check_barriers(const sp_gl_barriers *barriers);

/* Inserts a wait, and the fence behind it, where a host wait may. *native: the context whose stream
 * has the wait; NULL: none has, and nothing was changed. */
sp_status sp_gl_insert_host_wait(sp_gl_semaphore *semaphore, uint64_t value, sp_gl_sync *fence,
                                 void **native);

/* From now on `fence` tells of `value`. Takes a reference. */
void sp_gl_timeline_watch(sp_gl_semaphore *timeline, uint64_t value, sp_gl_sync *fence);
/* Asks all watches. */
void sp_gl_timeline_settle(sp_gl_semaphore *timeline);
sp_point sp_gl_timeline_make_point(sp_gl_semaphore *timeline, uint64_t value);

sp_gl_signal *sp_gl_signal_make(sp_gl_semaphore *semaphore, uint32_t state);
sp_point sp_gl_signal_point(sp_gl_signal *signal, uint32_t flags); /* takes the reference */
/* The wait that used the signal up stands before `gate` in the stream of `native`. */
void sp_gl_signal_set_gate(sp_gl_signal *signal, sp_gl_sync *gate, void *native);
/* That wait was inserted and nothing tells when it has run. */
void sp_gl_signal_fail(sp_gl_signal *signal, const sp_error *error);
/* Finds out whether the last wait has run, before the lock is taken: asking may enter the helper. */
void sp_gl_binary_ask_last_gate(sp_gl_semaphore *binary);
/* May a signal be inserted into the stream of `native`? */
sp_status sp_gl_binary_check_free_locked(sp_gl_semaphore *binary, const void *native);
/* The current signal gives way: sp_oneshot_supersede(). */
sp_oneshot *sp_gl_binary_supersede_locked(sp_gl_semaphore *binary);

#endif
