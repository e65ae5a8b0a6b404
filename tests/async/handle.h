/* SPDX-License-Identifier: MIT
 *
 * Handles of sp_point_fd(), with their tickets.
 */
#ifndef TESTS_ASYNC_HANDLE_H
#define TESTS_ASYNC_HANDLE_H

#include "async_case.h"

typedef struct handle {
    int fd;
    sp_ticket ticket;
} handle;

handle handle_for(const sp_point *point);
handle handle_of(source *from, uint64_t value);
sp_status status_of(const handle *self);
/* Releases the ticket and closes the handle. */
void drop_handle(handle *self);

bool is_readable(int fd);
bool wait_readable(int fd); /* goes on until it is */

/* It is readable now or soon, and stays so, and its ticket says why, each time. */
void check_over(const handle *self, sp_status expected, sp_status cause);
void check_pending(const handle *self);
/* Nobody knows the ticket. */
void check_no_ticket(sp_ticket ticket);

#endif
