/* SPDX-License-Identifier: MIT
 *
 * Other processes: the child of a fork, and events between two.
 */
#include "cu_peer.h"

#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

static void join_child(pid_t child)
{
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
}

/* ---- F1 ---- */

static cu_peer peer;
static sp_cuda_semaphore *timeline, *binary;
static sp_point points[4];

#define EXPECT(call, expected) failed |= (call) != (expected)

/* Nothing but release, and no call of the driver. */
static int child_of_fork(void)
{
    int failed = 0;
    unsigned before = cu_control ? calls(NULL) : 0;
    sp_point out = {0};
    uint8_t handle[SP_CUDA_IPC_SIZE] = {0};
    CUevent event = (CUevent)16;
    const sp_cuda_event_wrap_desc wrap = {.size = sizeof(wrap), .event = event};
    const sp_cuda_semaphore_import_desc import = {
        .size = sizeof(import), .type = SP_CUDA_TIMELINE_FD, .fd = 0};
    sp_cuda_semaphore *made = NULL;
    for (unsigned i = 0; i < COUNT_OF(points); i++) {
        EXPECT(sp_poll(&points[i]), SP_ERROR_FORKED);
        EXPECT(sp_wait(&points[i]), SP_ERROR_FORKED);
        EXPECT(sp_cuda_stream_wait(ctx.sp, ctx.stream, &points[i]), SP_ERROR_FORKED);
    }
    EXPECT(sp_cuda_stream_signal(ctx.sp, ctx.stream, &out), SP_ERROR_FORKED);
    EXPECT(sp_cuda_stream_signal_ipc(ctx.sp, ctx.stream, handle, &out), SP_ERROR_FORKED);
    EXPECT(sp_cuda_event_open_ipc(ctx.sp, handle, &out), SP_ERROR_FORKED);
    EXPECT(sp_cuda_event_wrap(ctx.sp, &wrap, &out), SP_ERROR_FORKED);
    EXPECT(sp_cuda_semaphore_import(ctx.sp, &import, &made), SP_ERROR_FORKED);
    EXPECT(sp_cuda_timeline_point(timeline, 1, &out), SP_ERROR_FORKED);
    EXPECT(sp_cuda_semaphore_point(timeline, &out), SP_ERROR_FORKED);
    EXPECT(sp_cuda_binary_point(binary, 0, 0, &out), SP_ERROR_FORKED);
    EXPECT(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, 1, &out), SP_ERROR_FORKED);
    for (unsigned i = 0; i < COUNT_OF(points); i++)
        sp_point_unref(&points[i]);
    sp_cuda_semaphore_unref(timeline);
    sp_cuda_semaphore_unref(binary);
    EXPECT(sp_cuda_context_destroy(ctx.sp, SP_FOREVER), SP_ERROR_FORKED);
    return failed || (cu_control && calls(NULL) != before);
}

TEST(F1_fork_with_points_pending)
{
    cu_peer other;
    start();
    peer_init(&peer, true);
    peer_init(&other, false);
    timeline = peer_import(&peer, NULL);
    binary = peer_import(&other, NULL);
    gate_close(ctx.stream, 1);
    points[0] = stream_point(ctx.stream);
    points[1] = timeline_point(timeline, 1);
    points[2] = binary_point(binary, 0);
    points[3] = timeline_point(timeline, 2);
    CHECK_STATUS(sp_wait_timeout(&points[1], MS), SP_TIMEOUT); /* parked */
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &points[3]), SP_OK);
    fflush(NULL);
    pid_t child = fork();
    if (child == 0)
        _exit(child_of_fork());
    join_child(child);
    gate_open(1);
    CHECK_STATUS(sp_wait(&points[0]), SP_OK);
    peer_signal(&peer, 2);
    peer_signal(&other, 0);
    for (unsigned i = 1; i < COUNT_OF(points); i++)
        CHECK_STATUS(sp_wait(&points[i]), SP_OK);
    for (unsigned i = 0; i < COUNT_OF(points); i++)
        sp_point_unref(&points[i]);
    sp_cuda_semaphore_unref(timeline);
    sp_cuda_semaphore_unref(binary);
    finish();
    peer_fini(&peer);
    peer_fini(&other);
}

/* ---- Events between processes ---- */

static int channel;

static void tell(const void *message, size_t size)
{
    CHECK(send(channel, message, size, MSG_NOSIGNAL) == (ssize_t)size);
}

static void hear(void *message, size_t size)
{
    CHECK(recv(channel, message, size, 0) == (ssize_t)size);
}

static void step(void)
{
    char byte = 's';
    tell(&byte, 1);
}

static void await_step(void)
{
    char byte = 0;
    hear(&byte, 1);
    CHECK_EQUAL(byte, 's');
}

static void produce(void)
{
    uint8_t handle[SP_CUDA_IPC_SIZE];
    sp_point point = {0}, refused = test_marked_point(), marked = test_marked_point();
    start();
    gate_close(ctx.stream, 1);
    CHECK_STATUS(sp_cuda_stream_signal_ipc(ctx.sp, ctx.stream, handle, &point), SP_OK);
    CHECK_ERROR(sp_cuda_event_open_ipc(ctx.sp, handle, &refused), SP_ERROR_INVALID_HANDLE);
    CHECK(test_same_point(&refused, &marked));
    tell(handle, sizeof(handle));
    await_step(); /* it has looked */
    gate_open(1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    await_step(); /* it is done */
    sp_point_unref(&point);
    finish();
}

TEST(ipc_between_two_processes)
{
    int ends[2];
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) == 0);
    fflush(NULL);
    pid_t child = fork();
    channel = ends[child == 0]; /* only now is there any CUDA */
    close(ends[child != 0]);
    if (child == 0) {
        produce();
        fflush(NULL);
        _exit(0);
    }
    uint8_t handle[SP_CUDA_IPC_SIZE], wrong[SP_CUDA_IPC_SIZE] = {1, 2, 3};
    sp_point point = {0};
    cu_word written;
    start();
    cu_word_init(&written);
    CHECK_ERROR(sp_cuda_event_open_ipc(ctx.sp, wrong, &point), SP_ERROR_INVALID_HANDLE);
    hear(handle, sizeof(handle));
    CHECK_STATUS(sp_cuda_event_open_ipc(ctx.sp, handle, &point), SP_OK);
    CHECK_EQUAL(point.kind, SP_KIND_CUDA_EVENT);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    CHECK_STATUS(sp_cuda_stream_wait(ctx.sp, ctx.stream, &point), SP_OK);
    cu_word_write(&written, ctx.stream, 6);
    CHECK_UNWRITTEN(&written);
    step();
    CHECK(cu_word_arrives(&written, 6));
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    step();
    join_child(child);
    cu_word_fini(&written);
    close(channel);
    finish();
}
