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
    cu_break(&ctx, ctx.stream);
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

static void timeline_setup(const void *user)
{
    open_context(user);
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

/* What put off its end does so at a later call. */
static void poke(void)
{
    cu_peer other;
    test_sleep_ms(5);
    peer_init(&other, true);
    sp_cuda_semaphore_unref(peer_import(&other, NULL));
    peer_fini(&other);
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

#define COMMON(options_)                                                                           \
    .user = &(options_), .backend = SP_BACKEND_CUDA, .pending = SP_PENDING,                        \
    .timed_out = SP_TIMEOUT, .fail_status = SP_ERROR_DEVICE_LOST,                                  \
    .fail_cause = SP_ERROR_DEVICE_LOST, .fail_all = break_it, .calls = all_calls

#define EVENTS(options_)                                                                           \
    {                                                                                              \
        COMMON(options_), .kind = SP_KIND_CUDA_EVENT, .mark_submitted = SP_ERROR_NOT_SUPPORTED,    \
                          .setup = open_context, .point = event_point, .signal = event_signal,     \
                          .release_owner = release_nothing, .teardown = close_context              \
    }

#define TIMELINES(options_, setup_)                                                                \
    {                                                                                              \
        COMMON(options_), .kind = SP_KIND_CUDA, .flags = SP_POINT_HAS_VALUE,                       \
                          .mark_submitted = SP_ERROR_NOT_SUPPORTED, .setup = setup_,               \
                          .point = value_point, .signal = value_signal,                            \
                          .release_owner = timeline_release, .alive = alive_semaphores,            \
                          .poke = poke, .teardown = timeline_teardown                              \
    }

#define BINARIES(options_)                                                                         \
    {                                                                                              \
        COMMON(options_), .kind = SP_KIND_CUDA, .flags = SP_POINT_BINARY, .mark_submitted = SP_OK, \
                          .setup = open_context, .point = one_shot_point,                          \
                          .signal = one_shot_signal, .release_owner = release_nothing,             \
                          .alive = alive_semaphores, .poke = poke, .teardown = one_shot_teardown   \
    }

static const cu_options on_double = {.library = CUDA_DOUBLE_PATH, .is_double = true};

static const fixture events_double = EVENTS(on_double);
static const fixture timelines_double = TIMELINES(on_double, timeline_setup);
static const fixture followed_double = TIMELINES(on_double, followed_setup);
static const fixture binaries_double = BINARIES(on_double);

const test_target cuda_targets[] = {
    {"cuda-event-double", ONE_SHOT | FAILING | CALLS | POLLED | INDEPENDENT | UNLAYERED,
     (void *)&events_double},
    {"cuda-timeline-double", COUNTING | FAILING | COUNTED | CALLS | INDEPENDENT | UNLAYERED,
     (void *)&timelines_double},
    {"cuda-followed-double", COUNTING | COUNTED | CALLS | POLLED | INDEPENDENT | UNLAYERED,
     (void *)&followed_double},
    {"cuda-binary-double", ONE_SHOT | FAILING | COUNTED | CALLS | INDEPENDENT | UNLAYERED,
     (void *)&binaries_double},
    {NULL, 0, NULL},
};
