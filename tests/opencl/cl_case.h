/* SPDX-License-Identifier: MIT
 *
 * What the OpenCL test programs share: a context of the target's, with the library on it, behind
 * the double of doubles/cl_hook.h.
 */
#ifndef TESTS_OPENCL_CL_CASE_H
#define TESTS_OPENCL_CL_CASE_H

#include "doubles/cl_double.h"
#include "support/census.h"
#include "support/cl_fixture.h"
#include "support/test.h"
#include "support/threads.h"

extern const cl_options *options; /* the target's */

void start(void);  /* opens both */
void finish(void); /* closes both, with all that is checked then */

sp_point queue_signals(cl_command_queue queue);
sp_point wrap_event(cl_event event);
sp_point user_event(void);

/* A binary semaphore that the driver makes, which the caller releases; and one of the library's
 * around it, which holds the only reference. */
cl_semaphore_khr make_raw_semaphore(void);
sp_cl_semaphore *make_semaphore(void);
void release_raw_semaphore(cl_semaphore_khr semaphore);
sp_point binary_point(sp_cl_semaphore *semaphore, uint32_t flags);
sp_point signal_semaphore(cl_command_queue queue, sp_cl_semaphore *semaphore);
/* The other side's signal: on a queue of the test's, behind the gate. */
void signal_raw(sp_cl_semaphore *semaphore, cl_event gate);

/* Opens a gate DELAY_MS from now, on another thread. */
typedef struct late_gate {
    worker worker;
    cl_event gate;
    bool fails;
    flag sent;
} late_gate;
void open_late(late_gate *late, cl_event gate);
void fail_late(late_gate *late, cl_event gate);
void join_not_early(late_gate *late);

/* Fails the case unless the library comes to hold so many objects, once it has looked at the events
 * that it keeps until their commands are over. */
void check_live_objects(int live);

/* Fails the case unless attempt() fails, cleanly, at each driver call that it makes, and then
 * succeeds; release() after each success. Each step `times` times. */
void refuse_each_call(sp_status (*attempt)(void), void (*release)(void), unsigned times);

/* How many waits for semaphores were enqueued. */
unsigned waits(void);

#endif
