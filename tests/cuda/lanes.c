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

/* Each behind the one before it. */
TEST(growing_values_share_a_stream)
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
