/* SPDX-License-Identifier: MIT
 *
 * What our calls cost beside the driver's own, on the driver. Prints medians; fails only far above
 * what is meant to be (design.md: records 50 ns, probes 80 ns above the raw call).
 */
#include "cu_peer.h"

#include <stdlib.h>

#define BATCHES 200
#define OPS 200

typedef void (*batch)(void);

static CUevent raw_event;
static sp_point point;
static sp_cuda_semaphore *timeline;

static int compare(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;
    return (a > b) - (a < b);
}

static double time_of(batch run)
{
    uint64_t begin = sp_now_ns();
    run();
    double took = (double)(sp_now_ns() - begin) / OPS;
    CHECK_CU(cu.StreamSynchronize(ctx.stream));
    return took;
}

/* Ns that ours takes longer; raw may be NULL. */
static double measure(const char *name, batch ours, batch raw)
{
    static double a[BATCHES], b[BATCHES];
    ours();
    for (unsigned i = 0; i < BATCHES; i++) {
        a[i] = time_of(ours);
        b[i] = raw ? time_of(raw) : 0;
    }
    qsort(a, BATCHES, sizeof(a[0]), compare);
    qsort(b, BATCHES, sizeof(b[0]), compare);
    double difference = a[BATCHES / 2] - b[BATCHES / 2];
    print_message("%-28s %7.0f ns, raw %7.0f ns: %+.0f ns\n", name, a[BATCHES / 2], b[BATCHES / 2],
                  difference);
    return difference;
}

static void record(void)
{
    for (unsigned i = 0; i < OPS; i++) {
        sp_point made;
        sp_cuda_stream_signal(ctx.sp, ctx.stream, &made);
        sp_point_unref(&made);
    }
}
static void record_raw(void)
{
    for (unsigned i = 0; i < OPS; i++)
        cu.EventRecord(raw_event, ctx.stream);
}

static void probe(void)
{
    for (unsigned i = 0; i < OPS; i++)
        sp_poll(&point);
}
static void probe_raw(void)
{
    for (unsigned i = 0; i < OPS; i++)
        cu.EventQuery(raw_event);
}

static void wait_for_event(void)
{
    for (unsigned i = 0; i < OPS; i++)
        sp_cuda_stream_wait(ctx.sp, ctx.stream, &point);
}
static void wait_for_event_raw(void)
{
    for (unsigned i = 0; i < OPS; i++)
        cu.StreamWaitEvent(ctx.stream, raw_event, 0);
}

static void wait_for_value(void)
{
    for (unsigned i = 0; i < OPS; i++)
        sp_cuda_stream_wait(ctx.sp, ctx.stream, &point);
}
static void signal_value(void)
{
    for (unsigned i = 0; i < OPS; i++)
        sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, 0, NULL);
}

TEST_NEEDING(costs_of_events, ON_GPU)
{
    start();
    CHECK_CU(cu.EventCreate(&raw_event, CU_EVENT_DISABLE_TIMING));
    CHECK(measure("record + point + release", record, record_raw) < 500);

    CUstream gated = cu_new_stream();
    gate_close(gated, 1);
    CHECK_CU(cu.EventRecord(raw_event, gated));
    point = stream_point(gated);
    CHECK(measure("probe, pending", probe, probe_raw) < 500);
    gate_open(1);
    CHECK_CU(cu.StreamSynchronize(gated));
    CHECK(measure("stream waits for an event", wait_for_event, wait_for_event_raw) < 500);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    CHECK(measure("probe, reached", probe, NULL) < 50);
    sp_point_unref(&point);
    CHECK_CU(cu.StreamDestroy(gated));
    CHECK_CU(cu.EventDestroy(raw_event));
    finish();
}

TEST_NEEDING(costs_of_semaphores, ON_GPU)
{
    cu_peer peer;
    start();
    peer_init(&peer, true);
    peer_signal(&peer, 1);
    timeline = peer_import(&peer, NULL);
    point = timeline_point(timeline, 1);
    CHECK(measure("stream waits for a value", wait_for_value, NULL) < 10000);
    CHECK_STATUS(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, 2, NULL), SP_OK);
    CHECK(measure("stream signals a value", signal_value, NULL) < 10000);
    sp_point_unref(&point);
    sp_cuda_semaphore_unref(timeline);
    finish();
    peer_fini(&peer);
}
