/* SPDX-License-Identifier: MIT
 *
 * Two processes, one semaphore: the producer signals in one, the consumer's copy in the other must
 * wait. Forked before there is any Vulkan, so that each side has its own.
 */
#include "vk_case.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static int channel;

static void send_fd(int fd)
{
    char byte = 'f', room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = room,
        .msg_controllen = sizeof(room),
    };
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(control), &fd, sizeof(int));
    CHECK(sendmsg(channel, &message, 0) == 1);
}

static int receive_fd(void)
{
    char byte, room[CMSG_SPACE(sizeof(int))];
    int fd = -1;
    struct iovec part = {&byte, 1};
    struct msghdr message = {
        .msg_iov = &part,
        .msg_iovlen = 1,
        .msg_control = room,
        .msg_controllen = sizeof(room),
    };
    CHECK(recvmsg(channel, &message, MSG_CMSG_CLOEXEC) == 1);
    struct cmsghdr *control = CMSG_FIRSTHDR(&message);
    assert_non_null(control);
    memcpy(&fd, CMSG_DATA(control), sizeof(int));
    return fd;
}

static void tell(char what)
{
    CHECK(send(channel, &what, 1, MSG_NOSIGNAL) == 1);
}

static void expect(char what)
{
    char got = '?';
    CHECK(recv(channel, &got, 1, 0) == 1);
    CHECK_EQUAL(got, what);
}

/* The child. */
static void produce(unsigned rounds)
{
    vk_gate gate;
    start();
    vk_gate_init(&gate, &vk);
    sp_vk_semaphore *exported = make_exportable(&vk);
    int fd = export_fd(exported);
    send_fd(fd);
    close(fd);
    for (unsigned i = 0; i < rounds; i++) {
        vk_gate_close(&gate);
        CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, exported, 0, NULL), SP_OK);
        tell('s'); /* submitted */
        expect('g');
        vk_gate_open_all(&gate);
        expect('d'); /* done */
    }
    vk_gate_fini(&gate);
    sp_vk_semaphore_unref(exported);
    finish();
    fflush(NULL);
    _exit(0);
}

static pid_t fork_producer(unsigned rounds)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    pid_t child = fork();
    channel = ends[child == 0];
    close(ends[child != 0]);
    if (child == 0)
        produce(rounds);
    return child;
}

static void join_producer(pid_t child)
{
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
    close(channel);
}

TEST_NEEDING(O3_another_process_gates_a_copy, WITH_OPAQUE_FD)
{
    enum { ROUNDS = 3 };
    pid_t child = fork_producer(ROUNDS);
    start();
    int fd = receive_fd();
    sp_vk_semaphore *imported = import_fd(&vk, fd, false);
    close(fd);
    for (unsigned i = 0; i < ROUNDS; i++) {
        vk_copy copy;
        vk_copy_init(&copy, &vk);
        expect('s');
        sp_point arrived = binary_point(imported, 0);
        CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &arrived), SP_OK);
        vk_copy_submit(&copy);
        CHECK_UNWRITTEN(&copy); /* withheld so far */
        vk_copy_produce(&copy, 1000 + i);
        tell('g');
        CHECK(vk_copy_arrives(&copy, 1000 + i));
        CHECK_STATUS(sp_wait(&arrived), SP_OK);
        tell('d');
        sp_point_unref(&arrived);
        vk_copy_fini(&copy);
    }
    sp_vk_semaphore_unref(imported);
    finish();
    join_producer(child);
}

TEST_NEEDING(host_waits_for_another_process, WITH_OPAQUE_FD)
{
    pid_t child = fork_producer(1);
    start();
    int fd = receive_fd();
    sp_vk_semaphore *imported = import_fd(&vk, fd, true);
    close(fd);
    expect('s');
    sp_point arrived = binary_point(imported, 0);
    CHECK_STATUS(sp_wait_timeout(&arrived, DELAY_MS * MS), SP_TIMEOUT);
    tell('g');
    CHECK_STATUS(sp_wait(&arrived), SP_OK);
    tell('d');
    sp_point_unref(&arrived);
    sp_vk_semaphore_unref(imported);
    finish();
    join_producer(child);
}
