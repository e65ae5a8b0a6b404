/* SPDX-License-Identifier: MIT
 *
 * The operating system, as far as the library needs it. One file per system implements it.
 */
#ifndef SP_OS_OS_H
#define SP_OS_OS_H

#include <pthread.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "os/atomic.h"

/* ---- Time ---- */

uint64_t sp_os_now_ns(void); /* monotonic */
void sp_os_sleep_until(uint64_t deadline_ns);
void sp_os_yield(void);

/* ---- Threads ---- */

typedef struct sp_os_mutex {
    pthread_mutex_t native;
} sp_os_mutex;

typedef struct sp_os_cond {
    pthread_cond_t native;
} sp_os_cond;

bool sp_os_mutex_init(sp_os_mutex *mutex); /* false: out of memory */
void sp_os_mutex_fini(sp_os_mutex *mutex);
void sp_os_mutex_lock(sp_os_mutex *mutex);
void sp_os_mutex_unlock(sp_os_mutex *mutex);

bool sp_os_cond_init(sp_os_cond *cond); /* false: out of memory */
void sp_os_cond_fini(sp_os_cond *cond);
void sp_os_cond_broadcast(sp_os_cond *cond);
/* Waits until woken or until the deadline (SP_FOREVER: none). False: the deadline passed. */
bool sp_os_cond_wait_until(sp_os_cond *cond, sp_os_mutex *mutex, uint64_t deadline_ns);

/* A thread of the library's own: no signal is handled on it. */
typedef struct sp_os_thread {
    pthread_t native;
} sp_os_thread;

/* `name` is cut to what the system takes. 0, or errno. */
int sp_os_thread_start(sp_os_thread *thread, const char *name, void *(*run)(void *user),
                       void *user);
void sp_os_thread_join(sp_os_thread *thread);
uint64_t sp_os_thread_self(void);   /* a number of the calling thread; never 0 */
uint64_t sp_os_thread_cpu_ns(void); /* what it has used of a core so far       */

/* A lock for a handful of instructions: spins, then yields. */
void sp_os_spin_wait(uint32_t *lock); /* the slow way of the next */

static inline void sp_os_spin_lock(uint32_t *lock)
{
    if (!sp_cas32(lock, 0, 1))
        sp_os_spin_wait(lock);
}

static inline void sp_os_spin_unlock(uint32_t *lock)
{
    sp_store32(lock, 0);
}

/* ---- Sleeping until told, or until a time, in a way that others can wait for too ---- */

typedef struct sp_os_alarm {
    int fd; /* readable while it was rung, the time has come, or one of the added is readable; borrowed */
    int event;
    int timer;
    uint64_t deadline_ns;
} sp_os_alarm;

int sp_os_alarm_init(sp_os_alarm *alarm); /* 0, or errno */
void sp_os_alarm_fini(sp_os_alarm *alarm);
void sp_os_alarm_ring(sp_os_alarm *alarm); /* any thread */
/* When it rings by itself; SP_FOREVER: never. */
void sp_os_alarm_set(sp_os_alarm *alarm, uint64_t deadline_ns);
/* It rings, too, while the descriptor is readable, from adding it until it is removed. */
bool sp_os_alarm_add(sp_os_alarm *alarm, int fd, uint32_t number);
void sp_os_alarm_remove(sp_os_alarm *alarm, int fd);
bool sp_os_alarm_rings(const sp_os_alarm *alarm); /* now */
/* Sleeps until it rings, if `block`; then it is quiet again until it is rung, or set, anew. Tells how
 * many of the added are readable, with their numbers; what has no room is told the next time. */
size_t sp_os_alarm_wait(sp_os_alarm *alarm, bool block, uint32_t *readable, size_t room);

/* A handle that stays readable once it was raised. -1: errno says why. */
int sp_os_signal_fd_create(void);
void sp_os_signal_fd_raise(int fd);

/* ---- Fork ---- */

/* Makes sure that sp_fork_generation (syncpoint.h) counts forks from now on. */
void sp_os_watch_forks(void);

/* ---- Libraries ---- */

void *sp_os_library_open(const char *name);                  /* NULL: not there */
void *sp_os_library_symbol(void *library, const char *name); /* NULL: not in it */
void sp_os_library_close(void *library);

/* ---- Handles ---- */

/* What a handle looks like from outside, to tell handles of one maker from others. */
typedef struct sp_os_fd_kind {
    uint32_t mode; /* file type bits */
    uint64_t rdev; /* device, for device nodes */
    uint64_t size; /* for memory files: all semaphores of a driver have one size */
    char name[64]; /* what the kernel calls it, without numbers; "" if not known */
} sp_os_fd_kind;

bool sp_os_fd_get_kind(int fd, sp_os_fd_kind *kind); /* false: not an open handle */
bool sp_os_fd_same_kind(const sp_os_fd_kind *a, const sp_os_fd_kind *b);
bool sp_os_fd_is_sync_file(int fd);
int sp_os_sync_file_status(int fd); /* 1: signalled, 0: not yet, else the fence's error, negative */

typedef enum sp_os_fd_state {
    SP_OS_FD_PENDING,
    SP_OS_FD_READABLE,
    SP_OS_FD_HUNG_UP, /* nobody is left who could make it readable */
    SP_OS_FD_BROKEN,
    SP_OS_FD_NOT_ASKED /* errno says why */
} sp_os_fd_state;

/* Waits until the descriptor is no longer pending, or until the deadline; 0: only asks. */
sp_os_fd_state sp_os_fd_wait(int fd, uint64_t deadline_ns);
/* 0 if it can be readable at times, and not at others; else errno: EPERM or EBADF if it cannot. */
int sp_os_fd_check_pollable(int fd);
bool sp_os_fd_is_no_semaphore(const sp_os_fd_kind *kind); /* of a kind that no driver exports */
bool sp_os_fd_is_character_device(const sp_os_fd_kind *kind);
int sp_os_fd_duplicate(int fd); /* close-on-exec; -1: errno says why */
void sp_os_fd_close(int fd);
bool sp_os_fd_exhausted(void); /* the process can have no further one */

/* Do both numbers name the same open file? 1 yes, 0 no (or `b` is closed), -1 not known. */
int sp_os_fd_same_file(int a, int b);

/* After a failed import of `duplicate`, a duplicate of `original`. Some drivers have closed it by
 * then, and the number may already be somebody else's: closes it only if it still is ours.
 * `if_not_known` decides where the system cannot tell. False: the driver had closed it. */
bool sp_os_fd_reclaim(int original, int duplicate, bool if_not_known);

#endif
