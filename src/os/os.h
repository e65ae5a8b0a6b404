/* SPDX-License-Identifier: MIT
 *
 * The operating system, as far as the library needs it. One file per system implements it.
 */
#ifndef SP_OS_OS_H
#define SP_OS_OS_H

#include <pthread.h>
#include <stdbool.h>
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
