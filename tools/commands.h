/* SPDX-License-Identifier: MIT
 *
 * The subcommands of `syncpoint`: each gets argv from its own name on and returns the exit status.
 */
#ifndef SYNCPOINT_TOOLS_COMMANDS_H
#define SYNCPOINT_TOOLS_COMMANDS_H

/* What `syncpoint` exits with. */
enum {
    TOOL_EXIT_GOOD = 0,
    TOOL_EXIT_BAD = 1,   /* it ran, and what it found is bad: torn frames, validation messages... */
    TOOL_EXIT_FAILED = 2 /* it could not run: bad usage, no device, a peer that died              */
};

int sp_cmd_demo(int argc, char **argv);
int sp_cmd_info(int argc, char **argv);

/* The other process of the demo. Not for users: it finds its peer on fd DEMO_PRODUCER_SOCKET. */
int sp_cmd_demo_producer(int argc, char **argv);
#define DEMO_PRODUCER_COMMAND "demo-producer"
#define DEMO_PRODUCER_SOCKET 3

/* Prints "syncpoint: ..." and a newline to stderr. */
void tool_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Who speaks in tool_error(), a constant: "syncpoint" until changed. */
void tool_set_name(const char *name);

#endif
