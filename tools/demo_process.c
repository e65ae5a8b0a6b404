/* SPDX-License-Identifier: MIT */
#include "demo_process.h"

#include "commands.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <syncpoint/syncpoint.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define END_TIMEOUT_NS UINT64_C(5000000000)

extern char **environ;

/* "syncpoint", the hidden command, the options as they were. */
static char **producer_argv(char **argv)
{
    size_t count = 0;
    while (argv[count])
        count++;
    char **copy = calloc(count + 2, sizeof *copy);
    if (!copy)
        return NULL;
    copy[0] = "syncpoint";
    copy[1] = DEMO_PRODUCER_COMMAND;
    for (size_t i = 1; i < count; i++)
        copy[i + 1] = argv[i];
    return copy;
}

static int spawn(pid_t *pid, int socket, char **argv)
{
    char **arguments = producer_argv(argv);
    if (!arguments)
        return ENOMEM;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    int error = posix_spawn_file_actions_adddup2(&actions, socket, DEMO_PRODUCER_SOCKET);
    if (!error)
        error = posix_spawn(pid, "/proc/self/exe", &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    free(arguments);
    return error;
}

bool demo_peer_start(struct demo_peer *peer, char **argv)
{
    int ends[2];
    int error = 0;
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
        tool_error("socketpair: %s", strerror(errno));
        return false;
    }
    error = spawn(&peer->pid, ends[1], argv);
    close(ends[1]);
    peer->socket = ends[0];
    if (!error)
        return true;
    tool_error("starting the producer: %s", strerror(error));
    close(peer->socket);
    return false;
}

/* waitpid() has no timeout, so it is asked every few milliseconds. */
static bool reap(pid_t pid, uint64_t timeout_ns, int *status)
{
    const uint64_t deadline = sp_deadline_ns(timeout_ns);
    const struct timespec pause = {0, 5000000};
    for (;;) {
        const pid_t ended = waitpid(pid, status, WNOHANG);
        if (ended == pid)
            return true;
        if ((ended < 0 && errno != EINTR) || sp_now_ns() >= deadline)
            return false;
        nanosleep(&pause, NULL);
    }
}

int demo_peer_end(struct demo_peer *peer)
{
    int status = 0;
    close(peer->socket);
    if (!reap(peer->pid, END_TIMEOUT_NS, &status)) {
        kill(peer->pid, SIGKILL);
        if (!reap(peer->pid, END_TIMEOUT_NS, &status))
            return -1;
    }
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
