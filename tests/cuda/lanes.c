/* SPDX-License-Identifier: MIT
 *
 * Host waits that go on in streams of the library's, more of them than a device has channels: on a
 * driver no stream can be made while all of those wait.
 */
#include "cu_peer.h"

enum { MOST_STREAMS = 16, COUNT = 40 };

static unsigned streams_before;

static void count_streams(void)
{
    if (cu_control)
        streams_before = cu_control->live(CUDA_DOUBLE_STREAM);
}

static void check_streams(unsigned most)
{
    if (cu_control)
        CHECK(cu_control->live(CUDA_DOUBLE_STREAM) - streams_before <= most);
}

static sp_point points[COUNT];

static void park_all(void)
{
    for (unsigned i = 0; i < COUNT; i++)
        CHECK_STATUS(sp_wait_timeout(&points[i], MS), SP_TIMEOUT);
}

static void check_all_reached(void)
{
    CHECK_STATUS(sp_wait_many(points, COUNT, SP_WAIT_ALL, PATIENCE_NS, NULL), SP_OK);
    for (unsigned i = 0; i < COUNT; i++)
        sp_point_unref(&points[i]);
}

static void check_values(bool growing, unsigned most_streams)
{
    cu_peer peer;
    start();
    peer_init(&peer, true);
    sp_cuda_semaphore *timeline = peer_import(&peer, NULL);
    count_streams();
    for (unsigned i = 0; i < COUNT; i++)
        points[i] = timeline_point(timeline, growing ? i + 1 : COUNT - i);
    park_all();
    check_streams(most_streams);
    /* Others of the program are not held up. */
    CUstream other = cu_new_stream();
    sp_point own = stream_point(other);
    CHECK_STATUS(sp_wait(&own), SP_OK);
    sp_point_unref(&own);
    CHECK_CU(cu.StreamDestroy(other));
    peer_signal(&peer, COUNT);
    check_all_reached();
    sp_cuda_semaphore_unref(timeline);
    finish();
    peer_fini(&peer);
}

/* The smallest must be reached before, so its wait is enough until then. */
TEST(growing_values_take_one_stream)
{
    check_values(true, 1);
}

TEST(falling_values_take_few_streams)
{
    check_values(false, MOST_STREAMS);
}

TEST(binaries_take_few_streams)
{
    static cu_peer peers[COUNT];
    start();
    count_streams();
    for (unsigned i = 0; i < COUNT; i++) {
        peer_init(&peers[i], false);
        sp_cuda_semaphore *binary = peer_import(&peers[i], NULL);
        points[i] = binary_point(binary, 0);
        sp_cuda_semaphore_unref(binary);
    }
    park_all();
    check_streams(MOST_STREAMS);
    for (unsigned i = 0; i < COUNT; i++)
        peer_signal(&peers[COUNT - 1 - i], 0);
    check_all_reached();
    finish();
    for (unsigned i = 0; i < COUNT; i++)
        peer_fini(&peers[i]);
}

/* While there are streams enough, no wait is behind one that does not come. */
TEST(a_value_in_between_is_seen)
{
    cu_peer peers[2];
    start();
    peer_init(&peers[0], true);
    peer_init(&peers[1], true);
    sp_cuda_semaphore *one = peer_import(&peers[0], NULL), *two = peer_import(&peers[1], NULL);
    sp_point waits[] = {timeline_point(one, 10), timeline_point(two, 1), timeline_point(one, 20),
                        timeline_point(one, 5)};
    for (unsigned i = 0; i < COUNT_OF(waits); i++)
        CHECK_STATUS(sp_wait_timeout(&waits[i], MS), SP_TIMEOUT);
    peer_signal(&peers[0], 5);
    CHECK_STATUS(sp_wait(&waits[3]), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&waits[0], MS), SP_TIMEOUT);
    peer_signal(&peers[0], 10);
    CHECK_STATUS(sp_wait(&waits[0]), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&waits[2], MS), SP_TIMEOUT);
    peer_signal(&peers[0], 20);
    CHECK_STATUS(sp_wait(&waits[2]), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&waits[1], MS), SP_TIMEOUT);
    peer_signal(&peers[1], 1);
    CHECK_STATUS(sp_wait(&waits[1]), SP_OK);
    for (unsigned i = 0; i < COUNT_OF(waits); i++)
        sp_point_unref(&waits[i]);
    sp_cuda_semaphore_unref(one);
    sp_cuda_semaphore_unref(two);
    finish();
    peer_fini(&peers[0]);
    peer_fini(&peers[1]);
}

/* ---- Which stream ---- */

/* On a device with fewer channels than streams, one that is idle may share its channel with a wait
 * that does not come: the double has no channels. */

enum { OTHERS = MOST_STREAMS };
static cu_peer one_of[OTHERS + 1];
static sp_point first_of[OTHERS + 1];

static void open_timelines(void)
{
    start();
    for (unsigned i = 0; i <= OTHERS; i++) {
        peer_init(&one_of[i], true);
        sp_cuda_semaphore *timeline = peer_import(&one_of[i], NULL);
        first_of[i] = timeline_point(timeline, 1);
        sp_cuda_semaphore_unref(timeline);
    }
}

static void close_timelines(void)
{
    for (unsigned i = 0; i <= OTHERS; i++) {
        CHECK_STATUS(sp_wait(&first_of[i]), SP_OK);
        sp_point_unref(&first_of[i]);
    }
    finish();
    for (unsigned i = 0; i <= OTHERS; i++)
        peer_fini(&one_of[i]);
}

/* All streams have had a wait; nobody looked at those that are over. */
TEST_NEEDING(a_wait_takes_a_stream_that_is_idle, ON_DOUBLE)
{
    open_timelines();
    for (unsigned i = 0; i < OTHERS; i++)
        CHECK_STATUS(sp_wait_timeout(&first_of[i], MS), SP_TIMEOUT);
    for (unsigned i = 1; i <= OTHERS; i++)
        peer_signal(&one_of[i], 1);
    CHECK_STATUS(sp_wait(&first_of[OTHERS]), SP_OK);
    CHECK_STATUS(sp_wait_timeout(&first_of[0], MS), SP_TIMEOUT);
    peer_signal(&one_of[0], 1);
    close_timelines();
}

TEST_NEEDING(a_wait_takes_a_stream_of_a_semaphore_that_is_gone, ON_DOUBLE)
{
    open_timelines();
    for (unsigned i = 0; i < OTHERS; i++)
        CHECK_STATUS(sp_wait_timeout(&first_of[i], MS), SP_TIMEOUT);
    for (unsigned i = 1; i <= OTHERS; i++)
        peer_signal(&one_of[i], 1);
    for (unsigned i = 1; i < OTHERS; i++)
        sp_point_unref(&first_of[i]);
    CHECK_STATUS(sp_wait(&first_of[OTHERS]), SP_OK);
    peer_signal(&one_of[0], 1);
    close_timelines();
}

/* More than there are streams; then all but one of them come. */
TEST_NEEDING(a_later_value_is_not_behind_a_stranger, ON_DOUBLE)
{
    sp_point next = {0};
    open_timelines();
    for (unsigned i = 0; i <= OTHERS; i++)
        CHECK_STATUS(sp_wait_timeout(&first_of[i], MS), SP_TIMEOUT);
    CHECK_STATUS(sp_point_at(&first_of[OTHERS], 2, &next), SP_OK);
    for (unsigned i = 1; i < OTHERS; i++) {
        peer_signal(&one_of[i], 1);
        CHECK_STATUS(sp_wait(&first_of[i]), SP_OK);
    }
    peer_signal(&one_of[0], 1);
    peer_signal(&one_of[OTHERS], 2);
    CHECK_STATUS(sp_wait(&next), SP_OK);
    sp_point_unref(&next);
    close_timelines();
}

TEST_NEEDING(waits_for_values_that_do_not_come_cost_no_more_and_more, ON_DOUBLE)
{
    enum { TIMES = 300 };
    cu_peer peer;
    start();
    peer_init(&peer, true);
    sp_cuda_semaphore *timeline = peer_import(&peer, NULL);
    unsigned before = calls("cuWaitExternalSemaphoresAsync");
    for (unsigned i = 1; i <= TIMES; i++) {
        sp_point point = timeline_point(timeline, i);
        CHECK_STATUS(sp_wait_timeout(&point, 0), SP_TIMEOUT);
        CHECK_STATUS(sp_wait_timeout(&point, MS / 10), SP_TIMEOUT);
        sp_point_unref(&point);
    }
    CHECK_EQUAL(calls("cuWaitExternalSemaphoresAsync") - before, 1);
    peer_signal(&peer, TIMES);
    sp_point last = timeline_point(timeline, TIMES);
    CHECK_STATUS(sp_wait(&last), SP_OK);
    sp_point_unref(&last);
    sp_cuda_semaphore_unref(timeline);
    finish();
    peer_fini(&peer);
}

/* ---- What fails once ---- */

TEST_NEEDING(a_wait_that_cannot_begin_breaks_nothing, ON_DOUBLE)
{
    static const char *const names[] = {"cuStreamCreate", "cuWaitExternalSemaphoresAsync",
                                        "cuEventRecord", "cuEventCreate"};
    for (unsigned i = 0; i < COUNT_OF(names); i++) {
        cu_peer peer;
        start();
        peer_init(&peer, true);
        sp_cuda_semaphore *timeline = peer_import(&peer, NULL);
        sp_point point = timeline_point(timeline, 1);
        cu_control->inject(names[i], 0, 1, 304);
        CHECK_ERROR(sp_wait_timeout(&point, MS), SP_ERROR_INVALID_STATE);
        CHECK_EQUAL(cu_control->failed(), 1);
        CHECK_STATUS(sp_wait_timeout(&point, MS), SP_TIMEOUT);
        peer_signal(&peer, 1);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
        sp_cuda_semaphore_unref(timeline);
        finish();
        peer_fini(&peer);
    }
}

/* The wait is there, and takes a signal; when it has, nobody can tell. */
TEST_NEEDING(no_signal_follows_a_wait_without_a_mark, ON_DOUBLE)
{
    cu_peer peer;
    start();
    peer_init(&peer, false);
    sp_cuda_semaphore *binary = peer_import(&peer, NULL);
    sp_point point = binary_point(binary, 0), refused = {0};
    CUstream other = cu_new_stream();
    gate_close(ctx.stream, 1);
    cu_control->inject("cuEventRecord", 0, 1, 2);
    CHECK_ERROR(sp_cuda_stream_wait(ctx.sp, ctx.stream, &point), SP_ERROR_OUT_OF_MEMORY);
    CHECK_ERROR(sp_poll(&point), SP_ERROR_FAILED); /* for good, so it is no call to try again */
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_OUT_OF_MEMORY);
    CHECK_ERROR(sp_cuda_stream_signal_semaphore(ctx.sp, other, binary, 0, &refused),
                SP_ERROR_INVALID_STATE);
    sp_point_unref(&point);
    CHECK_ERROR(sp_cuda_stream_signal_semaphore(ctx.sp, other, binary, 0, &refused),
                SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_cuda_binary_point(binary, 0, 0, &refused), SP_ERROR_INVALID_STATE);
    peer_signal(&peer, 0);
    gate_open(1);
    CHECK_CU(cu.StreamSynchronize(ctx.stream));
    CHECK_CU(cu.StreamDestroy(other));
    sp_cuda_semaphore_unref(binary);
    finish();
    peer_fini(&peer);
}
