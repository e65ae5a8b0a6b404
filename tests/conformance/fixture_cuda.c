/* SPDX-License-Identifier: MIT
 *
 * CUDA on the double of libcuda and on the driver.
 *
 * event: each point is recorded behind a gate of its own, all on one stream.
 *
 * timeline: an external semaphore that the fixture signals; without an origin, a wait on the device
 * shows its values, so a poll alone never does. followed: the same with an origin.
 *
 * binary: one external semaphore for each point.
 */
#include "conformance.h"
#include "cuda/cu_peer.h"

#include <stdlib.h>

#define MAX_NUMBER 8192

static unsigned all_calls(void)
{
    return cu_control->calls(NULL);
}

static void open_context(const void *user)
{
    cu_load(user);
    start();
}

static void close_context(void)
{
    finish();
    ctx.handle = NULL;
}

static void break_it(void)
{
    CUcontext popped;
    CHECK_CU(cu.CtxPushCurrent(ctx.handle)); /* the case may do so on another thread */
    CUstream stream = cu_new_stream();       /* not behind a gate */
    cu_break(&ctx, stream);
    (void)cu.StreamSynchronize(stream); /* until the failure is there */
    CHECK_CU(cu.CtxPopCurrent(&popped));
}

/* Not the peers: what the library has made. The context keeps its events and streams. */
static unsigned alive_semaphores(void)
{
    return cu_control->live(CUDA_DOUBLE_SEMAPHORE);
}

static void release_nothing(void) {}

/* ---- event ---- */

static uint64_t last_number;

static sp_point event_point(uint64_t number)
{
    CUcontext popped;
    CHECK_CU(cu.CtxPushCurrent(ctx.handle)); /* the case may run on another thread */
    gate_close(ctx.stream, (uint32_t)number);
    CHECK_CU(cu.CtxPopCurrent(&popped));
    last_number = number > last_number ? number : last_number;
    return stream_point(ctx.stream);
}

static void event_signal(uint64_t number)
{
    if (number > cu_word_get(&gate))
        gate_open((uint32_t)number);
}

/* ---- timeline, followed ---- */

static cu_peer peer;
static sp_cuda_semaphore *timeline;

/* A host wait without an origin takes a stream: more of them than a device has channels for hold up
 * each other. */
static void open_lanes(const void *user)
{
    setenv("CUDA_DEVICE_MAX_CONNECTIONS", "16", 1);
    open_context(user);
}

static void timeline_setup(const void *user)
{
    open_lanes(user);
    peer_init(&peer, true);
    timeline = peer_import(&peer, NULL);
}

static void followed_setup(const void *user)
{
    open_context(user);
    peer_init(&peer, true);
    sp_point origin = peer_origin(&peer);
    timeline = peer_import(&peer, &origin);
    sp_point_unref(&origin);
}

static sp_point value_point(uint64_t number)
{
    return timeline_point(timeline, number);
}

static void value_signal(uint64_t number)
{
    if (number > last_number) {
        last_number = number;
        peer_signal(&peer, number);
    }
}

static void timeline_release(void)
{
    sp_cuda_semaphore_unref(timeline);
    timeline = NULL;
}

/* Waits that nobody ended are the library's to keep: end them. */
static void timeline_teardown(void)
{
    timeline_release();
    value_signal(last_number + 100000);
    close_context();
    peer_fini(&peer);
}

static void poke(void)
{
    test_sleep_ms(5);
    CHECK_STATUS(sp_cuda_context_collect(ctx.sp), SP_OK);
}

/* ---- binary ---- */

static cu_peer peers[MAX_NUMBER];
static uint64_t peer_number[MAX_NUMBER];
static unsigned first_peer, end_peer;

static sp_point one_shot_point(uint64_t number)
{
    assert_true(end_peer < MAX_NUMBER);
    peer_init(&peers[end_peer], false);
    peer_number[end_peer] = number;
    sp_cuda_semaphore *binary = peer_import(&peers[end_peer], NULL);
    peer_exported(&peers[end_peer++]);
    sp_point point = binary_point(binary, 0);
    sp_cuda_semaphore_unref(binary);
    return point;
}

static void one_shot_signal(uint64_t number)
{
    for (; first_peer < end_peer && peer_number[first_peer] <= number; first_peer++)
        peer_signal(&peers[first_peer], 0);
}

static void one_shot_teardown(void)
{
    one_shot_signal(UINT64_MAX);
    close_context();
    for (unsigned i = 0; i < end_peer; i++)
        peer_fini(&peers[i]);
}

/* ---- All ---- */

static const cu_options on_double = {.library = CUDA_DOUBLE_PATH, .is_double = true};
static const cu_options on_driver = {.library = NULL};

#define COMMON                                                                                     \
    .backend = SP_BACKEND_CUDA, .pending = SP_PENDING, .timed_out = SP_TIMEOUT,                    \
    .fail_status = SP_ERROR_DEVICE_LOST, .fail_cause = SP_ERROR_DEVICE_LOST, .fail_all = break_it

#define EVENTS                                                                                     \
    COMMON, .kind = SP_KIND_CUDA_EVENT, .mark_submitted = SP_ERROR_NOT_SUPPORTED,                  \
            .setup = open_context, .point = event_point, .signal = event_signal,                   \
            .release_owner = release_nothing, .teardown = close_context

#define TIMELINES                                                                                  \
    COMMON, .kind = SP_KIND_CUDA, .flags = SP_POINT_HAS_VALUE,                                     \
            .mark_submitted = SP_ERROR_NOT_SUPPORTED, .point = value_point,                        \
            .signal = value_signal, .release_owner = timeline_release,                             \
            .teardown = timeline_teardown

#define BINARIES                                                                                   \
    COMMON, .most_at_once = 16, .kind = SP_KIND_CUDA, .flags = SP_POINT_BINARY,                    \
            .mark_submitted = SP_OK, .setup = open_lanes, .point = one_shot_point,                 \
            .signal = one_shot_signal, .release_owner = release_nothing,                           \
            .teardown = one_shot_teardown

#define BY_DOUBLE .user = &on_double, .calls = all_calls
#define COUNTED_BY_DOUBLE BY_DOUBLE, .alive = alive_semaphores, .poke = poke
#define BY_DRIVER .user = &on_driver

static const fixture double_events = {EVENTS, BY_DOUBLE};
static const fixture double_timelines = {TIMELINES, COUNTED_BY_DOUBLE, .setup = timeline_setup};
static const fixture double_followed = {TIMELINES, COUNTED_BY_DOUBLE, .setup = followed_setup};
static const fixture double_binaries = {BINARIES, COUNTED_BY_DOUBLE};
static const fixture driver_events = {EVENTS, BY_DRIVER};
static const fixture driver_timelines = {TIMELINES, BY_DRIVER, .setup = timeline_setup};
static const fixture driver_followed = {TIMELINES, BY_DRIVER, .setup = followed_setup};
static const fixture driver_binaries = {BINARIES, BY_DRIVER};

#define EVENT_FEATURES (ONE_SHOT | FAILING | POLLED | INDEPENDENT | UNLAYERED)
#define TIMELINE_FEATURES (COUNTING | FAILING | UNLAYERED)
#define FOLLOWED_FEATURES (COUNTING | POLLED | INDEPENDENT | UNLAYERED)
#define BINARY_FEATURES (ONE_SHOT | FAILING | UNLAYERED)

/* On the driver, streams share a few channels: a wait can keep one behind it from being seen. */
const test_target cuda_targets[] = {
    {"cuda-event-double", EVENT_FEATURES | CALLS, (void *)&double_events},
    {"cuda-timeline-double", TIMELINE_FEATURES | COUNTED | CALLS | INDEPENDENT,
     (void *)&double_timelines},
    {"cuda-followed-double", FOLLOWED_FEATURES | COUNTED | CALLS, (void *)&double_followed},
    {"cuda-binary-double", BINARY_FEATURES | COUNTED | CALLS | INDEPENDENT,
     (void *)&double_binaries},
    {"cuda-event-nvidia", EVENT_FEATURES, (void *)&driver_events},
    {"cuda-timeline-nvidia", TIMELINE_FEATURES, (void *)&driver_timelines},
    {"cuda-followed-nvidia", FOLLOWED_FEATURES, (void *)&driver_followed},
    {"cuda-binary-nvidia", BINARY_FEATURES, (void *)&driver_binaries},
    {NULL, 0, NULL},
};
