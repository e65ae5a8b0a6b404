/* SPDX-License-Identifier: MIT
 *
 * The producer as a process of its own.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_PROCESS_H
#define SYNCPOINT_TOOLS_DEMO_PROCESS_H

#include <stdbool.h>
#include <sys/types.h>

struct demo_peer {
    pid_t pid;
    int socket;
};

/* Starts this program again as the producer, with the same options (argv as the command got it).
 * It inherits one end of a socket and nothing else. Prints what went wrong. */
bool demo_peer_start(struct demo_peer *peer, char **argv);

/* Closes the socket, which ends a producer that waits for us, and reaps it; one that does not end
 * within some seconds is killed. Returns its exit status; -1 if it has none. */
int demo_peer_end(struct demo_peer *peer);

#endif
