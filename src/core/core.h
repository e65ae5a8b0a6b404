/* SPDX-License-Identifier: MIT
 *
 * What the core offers to the layers above it and to its own files.
 */
#ifndef SP_CORE_CORE_H
#define SP_CORE_CORE_H

#include "os/atomic.h"
#include "os/os.h"

#include <assert.h>
#include <stdarg.h>
#include <syncpoint/syncpoint.h>

#if defined(__GNUC__)
#define SP_PRINTF(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#else
#define SP_PRINTF(format_at, args_at)
#endif

#define SP_COLD __attribute__((noinline, cold)) /* keeps a failing path out of a hot one */
#define SP_LIKELY(x) __builtin_expect(!!(x), 1)
#define SP_ARRAY_LENGTH(a) (sizeof(a) / sizeof((a)[0]))
#define SP_CONTAINER_OF(pointer, type, member)                                                     \
    ((type *)(void *)((char *)(pointer)-offsetof(type, member)))

/* ---- Errors (error.c) ---- */

/* Both set sp_last_error() and return `status`, so that a failing path is one line. */
sp_status sp_fail(sp_status status, const char *format, ...) SP_PRINTF(2, 3);
sp_status sp_fail_native(sp_status status, sp_backend backend, int64_t code, const char *call,
                         const char *format, ...) SP_PRINTF(5, 6);

/* Fills a record without making it the last error. */
void sp_error_format(sp_error *error, sp_status status, const char *format, ...) SP_PRINTF(3, 4);

/* Tells whether the last error was set meanwhile: it then has another number. Never 0. */
uint32_t sp_error_number(void);

/* For an error that a function of a user's table returned: keeps the last error if the function set
 * it for this status, else makes one up. `number` is sp_error_number() from before the call; 0: the
 * table is ours and has set it. */
sp_status sp_fail_as_told(sp_status status, const sp_waiter_ops *ops, uint32_t number);

/* Makes a stored record the last error and returns its status. */
sp_status sp_fail_with(const sp_error *error);
/* The last error again, as INVALID_STATE if a wait would keep it for good: what failed is one wait and
 * not the primitive. */
sp_status sp_fail_this_wait(void);

void sp_log_message(const sp_log *log, sp_log_level level, const char *format, ...) SP_PRINTF(3, 4);

sp_status sp_fail_size(const char *function, const char *object, size_t size, size_t wanted);

/* The version of a struct that the caller filled in. */
#define SP_CHECK_SIZE(object)                                                                      \
    do {                                                                                           \
        if ((object)->size != sizeof(*(object)))                                                   \
            return sp_fail_size(__func__, #object, (object)->size, sizeof(*(object)));             \
    } while (0)

#define SP_CHECK_ARGUMENT(condition, message)                                                      \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return sp_fail(SP_ERROR_INVALID_ARGUMENT, "%s: %s", __func__, message);                \
    } while (0)

/* ---- Waiters (waiter.c) ---- */

/* Internal features, refused from outside. */
enum {
    SP_FEATURE_COMPOSITE = 1 << 16, /* ops is a sp_composite_ops                                */
    SP_FEATURE_ONESHOT = 1 << 17,   /* the waiter is a sp_oneshot                               */
    SP_FEATURE_USER_MADE = 1 << 18, /* the table is the user's                                  */
    SP_FEATURE_TO_BEGIN = 1 << 19,  /* probing may notice nothing unless block() is called      */
    SP_FEATURE_RING = 1 << 20,      /* ops is a sp_group_ops                                    */
    SP_FEATURE_FD = 1 << 21         /* ops is a sp_fd_ops                                       */
};

/* Chains and slots: made of other points. */
typedef struct sp_composite_ops {
    sp_waiter_ops base;
    /* The first member that is not known reached: PENDING and *member (borrowed, lives as long as
     * the composite). SP_OK: all are. NOT_SUBMITTED: there is no member yet. Never recurses. */
    sp_status (*next)(sp_waiter *composite, const sp_point **member);
    /* Blocks until there is a member or the deadline passed. For those that answer NOT_SUBMITTED. */
    sp_status (*block)(sp_waiter *composite, uint64_t deadline_ns);
} sp_composite_ops;

/* Groups whose block_many() can be ended by us: by a member that is there for nothing else. */
typedef struct sp_group_ops {
    sp_waiter_ops base;
    /* One more counting member for the group that `member` is of, at 0. NULL: none to be had. */
    sp_waiter *(*make_bell)(sp_waiter *member);
    /* Makes it reach `value`, which is above what it was before. */
    sp_status (*ring_bell)(sp_waiter *bell, uint64_t value);
} sp_group_ops;

/* One-shot primitives that are reached, or have failed, once a file descriptor is readable. */
typedef struct sp_fd_ops {
    sp_waiter_ops base;
    int (*descriptor)(sp_waiter *waiter); /* borrowed from the waiter */
} sp_fd_ops;

/* For waiters of our own: the table is right, so this cannot fail. */
void sp_waiter_setup(sp_waiter *waiter, const sp_waiter_ops *ops);
/* The same for an object of a pool, zeroed or set up before. It keeps the hint of how long waits for
 * it were; that forks are counted its owner has seen to. */
static inline void sp_waiter_setup_again(sp_waiter *waiter, const sp_waiter_ops *ops)
{
    waiter->ops = ops;
    waiter->refs = 1;
    waiter->features = ops->features;
    waiter->fork_generation = sp_fork_generation;
    waiter->reached = 0;
    waiter->failed_from = UINT64_MAX;
    waiter->failure = NULL;
}

/* Does the primitive show itself only to who waits for it: because the wait uses its signal up, or
 * because the wait is what asks for news? Calling block() until now starts that wait. */
static inline bool sp_waiter_shows_only_to_waits(const sp_waiter *waiter)
{
    return (waiter->features & SP_FEATURE_BLOCK) &&
           (waiter->features & (SP_FEATURE_CONSUMING | SP_FEATURE_TO_BEGIN));
}

/* Of a waiter with block(). SP_OK: it is reached. PENDING, or an error; keeps what it learns. */
sp_status sp_waiter_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns);

/* One more reference, unless the last one is already gone. */
bool sp_waiter_try_ref(sp_waiter *waiter);

/* One-shot waiters have the value 1. */
static inline uint64_t sp_point_target(const sp_point *point)
{
    return (point->waiter->features & SP_FEATURE_COUNTING) ? point->value : 1;
}

static inline bool sp_waiter_known_reached(const sp_waiter *waiter, uint64_t value)
{
    return value <= sp_load64(&waiter->reached);
}

static inline bool sp_waiter_is_forked(const sp_waiter *waiter)
{
    return waiter->fork_generation != sp_fork_generation;
}

sp_status sp_fail_forked(void);

/* Makes the stored failure the last error. */
sp_status sp_waiter_fail_as_stored(sp_waiter *waiter);

/* For a device-side wait on what its API does not know: fine if it is reached, else
 * BACKEND_MISMATCH, or the failure. `call` is the public function, `waits` who cannot wait. */
sp_status sp_waiter_require_reached(sp_waiter *waiter, uint64_t value, const char *call,
                                    const char *waits);

/* Fails all that is not known reached because something went wrong that cannot be made good. What
 * says of a call "try again" is no answer of a point for ever: it becomes FAILED's cause. */
void sp_waiter_fail_for_good(sp_waiter *waiter, const sp_error *error);

/* The stored failure of `value` as the last error, or SP_OK if it has not failed. */
static inline sp_status sp_waiter_check_failed(sp_waiter *waiter, uint64_t value)
{
    if (SP_LIKELY(value < sp_load64(&waiter->failed_from)))
        return SP_OK;
    return sp_waiter_fail_as_stored(waiter);
}

/* Keeps what a probe found, unless that was just "pending". */
sp_status sp_waiter_note_probe(sp_waiter *waiter, uint64_t value, sp_status status,
                               uint64_t reached);

/* Probes a waiter that is no composite: SP_OK, PENDING, NOT_SUBMITTED or an error; keeps what it
 * learns. */
static inline sp_status sp_waiter_probe(sp_waiter *waiter, uint64_t value)
{
    if (value >= sp_load64(&waiter->failed_from))
        return sp_waiter_fail_as_stored(waiter);
    uint64_t reached = 0;
    sp_status status = waiter->ops->probe(waiter, value, &reached);
    if (SP_LIKELY(status == SP_OK && reached < value))
        return SP_PENDING;
    return sp_waiter_note_probe(waiter, value, status, reached);
}

/* Keeps an error that will not go away as the waiter's failure; `number` is as for
 * sp_fail_as_told(). Returns what the caller shall say: the error, or SP_OK if the value turns out
 * to be reached. */
sp_status sp_waiter_keep_error(sp_waiter *waiter, uint64_t value, sp_status status,
                               uint32_t number);

/* ---- One-shot signals (oneshot.c) ---- */

/* The life of one signal operation:
 *
 *   UNSUBMITTED -> SUBMITTED -> CLAIMED -> REACHED
 *                      |           '-> SUBMITTED (the claiming submit failed)
 *                      '-> CONSUMED (used up by somebody whom we cannot watch)
 *
 * A failure is the waiter's own (sp_waiter_fail), not a state here. */
enum {
    SP_ONESHOT_UNSUBMITTED = 0,
    SP_ONESHOT_SUBMITTED = 1,
    SP_ONESHOT_CLAIMED = 2, /* one wait owns the signal; it says when that wait is done         */
    SP_ONESHOT_CONSUMED = 3
};

typedef struct sp_oneshot {
    sp_waiter base;
    uint32_t state;
} sp_oneshot;

void sp_oneshot_setup(sp_oneshot *oneshot, const sp_waiter_ops *ops, uint32_t state);

/* SP_OK: the caller owns the signal. NOT_SUBMITTED, or INVALID_STATE if another has it. */
sp_status sp_oneshot_claim(sp_oneshot *oneshot);
void sp_oneshot_unclaim(sp_oneshot *oneshot);

/* For a host wait on a submitted signal, which goes on with another's. SP_OK: the caller owns the
 * signal. PENDING: another wait does, or just gave it up: look again. Else an error. */
sp_status sp_oneshot_claim_or_join(sp_oneshot *oneshot);

/* Blocks until an unsubmitted signal is said to be submitted, has failed, or the deadline passed.
 * TIMEOUT: look again. */
sp_status sp_oneshot_wait_for_mark(const sp_oneshot *oneshot, uint64_t deadline_ns);

/* A later signal of the primitive takes the place of this one. If nobody had claimed it, nobody can
 * now, and a reference is returned: once no lock is held, sp_oneshot_fail_superseded() fails it and
 * releases that. Both take NULL. */
sp_oneshot *sp_oneshot_supersede(sp_oneshot *oneshot);
void sp_oneshot_fail_superseded(sp_oneshot *oneshot);

/* INVALID_STATE: no second signal of a primitive while the first has a point that nobody waited for.
 */
sp_status sp_fail_signal_pending(void);

/* ---- Arrays (array.c) ---- */

/* Doubles an array that began as `few`, on the stack. NULL: no memory, and nothing changed. */
void *sp_array_grow(void *items, const void *few, size_t *capacity, size_t item_size);
void sp_array_free(void *items, const void *few);

/* ---- Pools (pool.c) ---- */

/* Any thread may get and put. What was got the first time is zeroed, later it is as it was put. */
typedef struct sp_pool {
    uint32_t lock;
    size_t object_size;
    struct sp_pool_node *free_nodes;
    struct sp_pool_node *made_nodes;
    size_t in_use;
    bool closed;
} sp_pool;

void *sp_pool_get(sp_pool *pool); /* NULL: out of memory */
void sp_pool_put(sp_pool *pool, void *object);

/* For an owner that is kept alive by the pool as a whole, not by each object: after sp_pool_close()
 * the pool is let go of by whoever is told true, once, because no object is in use any more.
 * `alone`: in the child of a fork() no other thread is there, and the lock may be held for good. */
bool sp_pool_close(sp_pool *pool, bool alone);
bool sp_pool_leave(sp_pool *pool, void *object, bool alone); /* as sp_pool_put() */
/* Over all objects that it ever made, in use or not. Nobody else may get one meanwhile. */
void sp_pool_each(sp_pool *pool, void (*visit)(void *user, void *object), void *user);
void sp_pool_empty(sp_pool *pool); /* frees them all */

/* ---- Points (point.c) ---- */

/* NULL, forged and forked points are errors, carriers are NOT_SUPPORTED; SP_OK: the point can be
 * waited on. `waiter` is NULL for a point that is complete. */
sp_status sp_point_check(const sp_point *point, sp_waiter **waiter);

/* (leaves.c) Chains and slots in order: calls back for each leaf that is not known reached. Stops at
 * the first status that is not SP_OK and returns it. NOT_SUBMITTED for an unset slot. */
sp_status sp_point_visit_leaves(const sp_point *point,
                                sp_status (*visit)(void *user, const sp_point *leaf), void *user);
/* The same, also for those that are known reached. */
sp_status sp_point_visit_all_leaves(const sp_point *point,
                                    sp_status (*visit)(void *user, const sp_point *leaf),
                                    void *user);

/* ---- Chains and slots (chain.c, slot.c) ---- */

/* Chains are kept balanced and slots nest a bounded number of levels, so walking down either may
 * recurse. */
#define SP_SLOT_MAX_LEVELS 16

bool sp_point_is_chain(const sp_point *point);
const sp_point *sp_chain_first(const sp_point *chain); /* borrowed from the chain */
const sp_point *sp_chain_then(const sp_point *chain);

/* Where a walk over a chain keeps what it found out for good about this node, so that parts which
 * chains share are walked once. Starts as 0; atomic. */
uint32_t *sp_chain_memo(const sp_point *chain);

bool sp_point_is_slot(const sp_point *point);
/* What the slot was set to, borrowed from it; NULL while it is not set. */
const sp_point *sp_slot_target(const sp_point *slot);

/* ---- Wait engine (wait.c, wait_many.c) ---- */

#define SP_WAIT_SLICE UINT64_C(5000000) /* 5 ms: the longest time in one blocking driver call */

/* Sleeps a little longer each time while polling: 20 to 100 us, as measured to be a good trade. */
typedef struct sp_backoff {
    uint64_t sleep_ns;
} sp_backoff;

uint64_t sp_backoff_next(sp_backoff *backoff); /* how long to sleep this time */
void sp_backoff_sleep(sp_backoff *backoff, uint64_t deadline_ns);

/* (interrupt.c) SP_OK, or CANCELLED as the last error. NULL: SP_OK. */
sp_status sp_interrupt_check(const sp_interrupt *interrupt);

/* While spinning: leaves the primitive alone for a moment. */
void sp_pause_between_probes(void);

/* Gives way to a thread that needs a lock which the driver, or a layer above it, holds while it
 * waits: call it after each driver wait that timed out. */
void sp_pause_between_slices(uint64_t deadline_ns);

/* Blocks on a leaf, not known reached, for one slice. Only an error is told: look again. */
sp_status sp_point_block_slice(const sp_point *leaf, uint64_t deadline_ns, sp_backoff *backoff);

/* The member that a wait on `point` waits for now, found through chains and slots, probed. SP_OK:
 * all reached. PENDING or NOT_SUBMITTED: *leaf is it, borrowed from the point. Else an error. */
sp_status sp_point_front(const sp_point *point, const sp_point **leaf);

/* ---- Watches (watch.c) ---- */

/* For primitives of the CPU: the threads that block on one and the wakers that were left with it,
 * under one lock, which the primitive's own state is changed under, too. */
typedef struct sp_watch {
    sp_os_mutex mutex;
    sp_os_cond changed;
    sp_waker *first;
    bool (*settled)(sp_waiter *waiter, uint64_t value); /* reached or failed; called locked */
} sp_watch;

bool sp_watch_init(sp_watch *watch, bool (*settled)(sp_waiter *waiter, uint64_t value));
void sp_watch_fini(sp_watch *watch);

/* What block(), arm() and disarm() of the primitive are made of. */
sp_status sp_watch_block(sp_watch *watch, sp_waiter *waiter, uint64_t value, uint64_t deadline_ns);
void sp_watch_arm(sp_watch *watch, sp_waiter *waiter, uint64_t value, sp_waker *waker);
void sp_watch_disarm(sp_watch *watch, sp_waker *waker);

/* After a change: wakes the threads, and the wakers with a value of at most `reached`. */
void sp_watch_wake_locked(sp_watch *watch, uint64_t reached);

#endif
