/* SPDX-License-Identifier: MIT
 *
 * The options of `syncpoint demo`, which both of its processes read.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_OPTIONS_H
#define SYNCPOINT_TOOLS_DEMO_OPTIONS_H

#include "demo.h"

/* False: nothing is to be run, *exit_status is what to exit with (after --help, or bad usage,
 * which is printed). */
bool demo_parse_options(int argc, char **argv, struct demo_options *options, int *exit_status);

#endif
