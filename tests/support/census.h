/* SPDX-License-Identifier: MIT
 *
 * Open handles, counted: no path may leak one or close one too many.
 */
#ifndef TESTS_SUPPORT_CENSUS_H
#define TESTS_SUPPORT_CENSUS_H

#include <stdbool.h>

/* How many handles this process has open. */
unsigned census_open_handles(void);

/* Fails the case if that differs from `before`, and lists what is open. */
#define CHECK_HANDLES(before) census_check((before), __FILE__, __LINE__)
void census_check(unsigned before, const char *file, int line);

/* Is the number an open handle? */
bool census_is_open(int fd);

/* The number that a new handle would get, by opening one and closing it. */
int census_free_number(void);

#endif
