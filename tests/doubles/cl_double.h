/* SPDX-License-Identifier: MIT
 *
 * A double of cl_khr_semaphore and cl_khr_external_semaphore_opaque_fd for a driver that has
 * neither, as its specification words them, made of markers, barriers and user events. A thread
 * moves the signals.
 *
 *   - On an in-order queue a wait holds back what is enqueued later, on an out-of-order one only
 *     what waits for its event; there a signal without a wait list waits for nothing.
 *   - Two signals without a wait between, and two waits for one signal, are mistakes of the caller,
 *     which are counted.
 *   - A handle is an open character device that the double knows; a successful import closes it.
 */
#ifndef TESTS_DOUBLES_CL_DOUBLE_H
#define TESTS_DOUBLES_CL_DOUBLE_H

#include "cl_hook.h"

/* Puts its functions in. */
void cl_double_install(cl_hook_functions *functions);

/* The queue of a command of the double's; NULL: the event is no such command's. */
cl_command_queue cl_double_queue_of(cl_event event);

/* A semaphore of "another API": an fd of it, which the caller closes. */
int cl_double_export(void);
/* Signals it from there. Waits for it from there: false if it is not signalled. */
void cl_double_signal(int fd);
bool cl_double_take(int fd);

/* Was it made for one device by name? */
bool cl_double_is_for_one_device(cl_semaphore_khr semaphore);

/* It says that it is of this type. */
void cl_double_set_type(cl_semaphore_khr semaphore, cl_semaphore_type_khr type);

/* Mistakes so far. */
unsigned cl_double_mistakes(void);
/* What is still pending fails. Ends the thread. */
void cl_double_finish(void);

#endif
