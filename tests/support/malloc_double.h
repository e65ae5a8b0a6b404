/* SPDX-License-Identifier: MIT
 *
 * A double of the allocator: counts what the library asks for, and says no on command. Calls that
 * come from elsewhere (drivers, the C library, the test) pass by.
 *
 * Linked into a program, it takes the place of malloc() there. Not with sanitizers, which do that
 * themselves.
 */
#ifndef TESTS_SUPPORT_MALLOC_DOUBLE_H
#define TESTS_SUPPORT_MALLOC_DOUBLE_H

#include <stdbool.h>
#include <syncpoint/syncpoint.h>

/* Finds out where the library is. Call first. */
void malloc_double_init(void);

/* How often the library has asked for memory, and how much of what it got it still holds. */
unsigned malloc_double_calls(void);
long malloc_double_held(void);

/* The library's request number `skip` from now on is refused, once. */
void malloc_double_fail(unsigned skip);
/* Was a request refused since then? Stops refusing. */
bool malloc_double_failed(void);

/* Calls attempt() with the n-th request refused, for each n until none is, and release() after
 * each success. A refusal must give OUT_OF_MEMORY and leave no memory, and no handle, behind. */
void malloc_double_refuse_each(sp_status (*attempt)(void), void (*release)(void));

#endif
