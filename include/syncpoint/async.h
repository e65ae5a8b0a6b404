/* SPDX-License-Identifier: MIT
 *
 * The reactor: callbacks and pollable handles for any number of points, of any mix of APIs.
 *
 *   sp_reactor_create(NULL, &reactor);
 *   sp_notify(reactor, &point, SP_TIMEOUT_DEFAULT, frame_is_ready, frame, NULL);
 *
 * Software timelines, slots, file descriptors and primitives that can arm tell the reactor when they
 * are reached; the timelines of one Vulkan device that no other API signals are waited for in one call
 * of the driver for all of them, where that is better than polling; the rest is polled, each primitive
 * once for all its points, as often as the pace allows. A point that is never reached delays no other; a probe of a driver's or user's that takes
 * long delays what is polled besides by as much.
 *
 * Before a device or context object is destroyed, tickets of its points must be resolved: cancel them,
 * and wait for their callbacks. Once the last of these runs, no thread of the reactor is in that device.
 *
 * The words for ownership are those of syncpoint.h, and so is what holds where nothing is said.
 */
#ifndef SYNCPOINT_ASYNC_H
#define SYNCPOINT_ASYNC_H

#include <syncpoint/syncpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct sp_reactor sp_reactor;

/* Names one notification of one reactor. 0 is none; a number is not used again. */
typedef uint64_t sp_ticket;

/* What loops wait for: a file descriptor, on Windows an event handle. */
#if defined(_WIN32)
typedef void *sp_pollable;
#else
typedef int sp_pollable;
#endif

/* ---- The reactor --------------------------------------------------------------------------- */

/* Who runs it. */
typedef enum sp_reactor_drive {
    SP_REACTOR_THREAD = 0, /* a thread of its own                                               */
    SP_REACTOR_LOOP = 1    /* your loop: sp_reactor_fd(), sp_reactor_dispatch()                 */
} sp_reactor_drive;

/* How much of a core polling may take, and so how late what is polled may be noticed. What notifies
 * by itself is not affected. The shares are of idle waiting; up to 64 primitives are looked at often
 * enough even where waking a thread is dear (on virtual machines), and take more there. Figures:
 * docs/bench.md, "Pace". */
typedef enum sp_pace {
    SP_PACE_BALANCED = 0, /* 2 %; 3.3 % for up to 64 primitives, each every 250 us at the latest */
    SP_PACE_LATENCY = 1,  /* 12 %; up to 64 every 60 us at the latest                           */
    SP_PACE_POWER = 2     /* 0.5 %; up to 64 every 4 ms at the latest                           */
} sp_pace;

/* Zero it, set `size`, then what differs. */
typedef struct sp_reactor_desc {
    size_t size; /* sizeof(sp_reactor_desc)                                                     */
    sp_reactor_drive drive;
    sp_pace pace;
    const char *name; /* Optional: what its threads are called, cut to 15 bytes. Duplicated     */
    sp_log log;       /* Optional: a driver whose own wait is not used, and why                 */
} sp_reactor_desc;

/* Makes a reactor. `desc` NULL: a thread of its own, balanced.
 * With SP_REACTOR_THREAD it has that one thread, and one more for each Vulkan device whose timelines
 * are waited for in the driver; with SP_REACTOR_LOOP it has none, and those are polled.
 * Ownership: *out is ended with sp_reactor_destroy().
 * Returns: SP_OK; INVALID_ARGUMENT; OUT_OF_MEMORY; SYSTEM (no thread or no file descriptor to be
 *   had; native_code is errno).
 * On error: *out is unchanged. Since: 0.1 */
SP_API sp_status sp_reactor_create(const sp_reactor_desc *desc, sp_reactor **out);

/* Ends it: each ticket that is not resolved yet gets SP_ERROR_CANCELLED, once, on the reactor's
 * thread or, where it has none, on this one; handles of sp_point_fd() become readable; threads are
 * joined. A sp_notify() in one of those callbacks is INVALID_STATE. In the child of a fork() it only
 * frees memory and closes handles, and calls nothing back. (A child that a callback made: once that
 * returns, a thread of the reactor ends there, and sp_reactor_dispatch() is FORKED.) NULL is allowed.
 * Threads: no other call for this reactor may run meanwhile or follow, but for those that its
 *   callbacks make.
 * Blocking: until the callbacks have returned, and a thread that waits in a driver has left it, where
 *   it stays for a slice of 5 ms. Two reactors that destroy each other in callbacks wait for ever.
 * Returns: SP_OK; INVALID_STATE from one of its own callbacks, or while another thread dispatches:
 *   nothing has changed. Since: 0.1 */
SP_API sp_status sp_reactor_destroy(sp_reactor *reactor);

/* ---- Callbacks ----------------------------------------------------------------------------- */

/* Called once for each sp_notify() that was SP_OK, always, on the thread of the reactor or that
 * which dispatches, with no lock held, never inside sp_notify() or sp_cancel(), and never two at a
 * time for one reactor. No order among tickets is promised. `status`:
 *   SP_OK                the point is reached;
 *   SP_TIMEOUT           the time is up, and it is neither reached nor failed;
 *   SP_ERROR_CANCELLED   sp_cancel(), or sp_reactor_destroy();
 *   another error        what sp_wait() would say, with its cause in sp_last_error(): the point
 *                        failed, or (recoverable: SYSTEM, OUT_OF_MEMORY) could not be asked or
 *                        watched now.
 * It may call anything: wait for the same point (which is over, so that does not block), notify,
 * cancel, release the last reference to the point, destroy another reactor. It must not destroy or
 * dispatch its own reactor: both are INVALID_STATE; a loop that it runs inside must not wait for the
 * handle of this reactor. While it runs, no other callback of this reactor does: keep it short. */
typedef void (*sp_notify_fn)(void *user, sp_status status);

/* Has `fn` called when the point is reached or failed, or the time is up; a point that is so already
 * is no different. Signals that a wait uses up (binary semaphores) are claimed, as by sp_wait().
 * OpenGL points that only their own context can ask fail with WRONG_CONTEXT.
 * Ownership: keeps a reference of its own to the point until `fn` was called. Borrows `user` until
 *   `fn` returns.
 * `timeout_ns`: as of sp_wait_timeout(). `ticket` (optional) is written before `fn` can run.
 * Returns: SP_OK; INVALID_ARGUMENT; NOT_SUPPORTED for a carrier; OUT_OF_MEMORY; INVALID_STATE while
 *   the reactor is being destroyed, or for a point without a value; FORKED.
 * On error: `fn` is not called, *ticket is unchanged. Since: 0.1 */
SP_API sp_status sp_notify(sp_reactor *reactor, const sp_point *point, uint64_t timeout_ns,
                           sp_notify_fn fn, void *user, sp_ticket *ticket);

/* Ends a notification early: its `fn` runs soon, with CANCELLED, as said above. Never blocks, calls
 * nothing back.
 * Returns: SP_OK: `fn` will run with CANCELLED, or does so now; PENDING: too late, `fn` runs or ran
 *   with a result of its own, or it ran with CANCELLED before; INVALID_ARGUMENT: not a ticket of
 *   this reactor; FORKED. Since: 0.1 */
SP_API sp_status sp_cancel(sp_reactor *reactor, sp_ticket ticket);

/* ---- Your own loop ------------------------------------------------------------------------- */

/* The handle that is readable while there is something to dispatch; for epoll, poll, select, libuv,
 * GLib and the like. Only wait for it: do not read from it.
 * Ownership: returns a borrowed handle, valid until sp_reactor_destroy().
 * Returns: SP_OK; INVALID_ARGUMENT; INVALID_STATE for a reactor with a thread of its own; FORKED.
 * Since: 0.1 */
SP_API sp_status sp_reactor_fd(sp_reactor *reactor, sp_pollable *fd);

/* Runs the callbacks that are due when it begins, on this thread; a handle of sp_point_fd() that becomes
 * readable counts as one. For what became due meanwhile sp_reactor_fd() is readable again, with a new
 * edge. `timeout_ns`: how long to wait for the first if none is; 0 in a loop that waits for
 * sp_reactor_fd().
 * Blocking: up to `timeout_ns`.
 * Returns: SP_OK: at least one ran; TIMEOUT: none was due in time; INVALID_STATE for a reactor with
 *   a thread of its own, from one of its callbacks, or while another thread dispatches;
 *   INVALID_ARGUMENT; FORKED. Since: 0.1 */
SP_API sp_status sp_reactor_dispatch(sp_reactor *reactor, uint64_t timeout_ns);

/* ---- A handle for one point ---------------------------------------------------------------- */

/* A handle that becomes and stays readable once the point is reached, has failed, is cancelled or
 * its reactor is destroyed. Only wait for it: do not read from it. sp_point_fd_status() tells which,
 * as long as there is the reactor: who waits for handles while another thread destroys it must know by
 * other means. sp_cancel() takes its ticket, too.
 * Of a reactor that your own loop drives it becomes readable in sp_reactor_dispatch().
 * Ownership: *fd is the caller's, who may close it at any time; out of a loop it goes before, since
 *   the reactor has a duplicate and epoll would go on with that. *ticket is the caller's, until
 *   sp_point_fd_release(); `ticket` NULL: nobody asks for the status, and nothing is to be released.
 *   Keeps a reference of its own to the point until it is resolved.
 * Returns: as sp_notify(); SYSTEM: no file descriptor to be had; native_code is errno.
 * On error: *fd and *ticket are unchanged. Since: 0.1 */
SP_API sp_status sp_point_fd(sp_reactor *reactor, const sp_point *point, sp_pollable *fd,
                             sp_ticket *ticket);

/* What became of the point: PENDING until the handle is readable; then SP_OK, CANCELLED or the
 * point's error, with its cause in sp_last_error(), as often as it is asked.
 * Returns: that; INVALID_ARGUMENT: not a ticket of sp_point_fd(), or released; FORKED. Since: 0.1 */
SP_API sp_status sp_point_fd_status(sp_reactor *reactor, sp_ticket ticket);

/* Lets go of a ticket of sp_point_fd(); if it is pending, cancels it first. The handle stays open.
 * Returns: SP_OK; INVALID_ARGUMENT: not such a ticket, or released before; FORKED. Since: 0.1 */
SP_API sp_status sp_point_fd_release(sp_reactor *reactor, sp_ticket ticket);

#ifdef __cplusplus
}
#endif

#endif
