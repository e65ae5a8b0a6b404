/* SPDX-License-Identifier: MIT
 *
 * OpenCL events and semaphores on each platform.
 *
 * user-event: events of the library's that the fixture sets.
 *
 * marker: the library's markers on a queue, each behind a gate that the fixture opens.
 *
 * semaphore: signalled by the library on such a queue. A poll alone never notices: the wait uses
 * the signal up.
 *
 * late-semaphore: signalled by the fixture's own queue when the fixture signals. Until then the
 * point is not submitted, which is what it says.
 */
#include "conformance.h"
#include "doubles/cl_double.h"
#include "support/cl_fixture.h"

#include <pthread.h>

#define MAX_POINTS 8192

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static uint64_t numbers[MAX_POINTS];
static cl_event gates[MAX_POINTS];   /* of the raw gates */
static cl_event markers[MAX_POINTS]; /* what waits for them in the queue; kept until the end */
static sp_point points[MAX_POINTS];  /* references of the fixture's */
static unsigned made, set, own_objects;

static void open_world(const void *user)
{
    cl_open_driver(user);
    cl_open_library();
    own_objects = (unsigned)cl_hook_live_objects();
}

static void close_world(void)
{
    cl_close_library();
    cl_close_driver();
}

static unsigned next_place(uint64_t number)
{
    assert_true(made < MAX_POINTS);
    numbers[made] = number;
    return made++;
}

static unsigned alive_events(void)
{
    return (unsigned)cl_hook_live_events();
}

static unsigned alive_semaphores(void)
{
    unsigned live = (unsigned)(cl_hook_live_objects() - cl_hook_live_events());
    return cl.sp ? live - own_objects : live;
}

/* What is done for each point up to `number`, once, in order. */
static void each_up_to(uint64_t number, void (*act)(unsigned place))
{
    pthread_mutex_lock(&mutex);
    for (; set < made && numbers[set] <= number; set++)
        act(set);
    pthread_mutex_unlock(&mutex);
}

static void drop_points(void)
{
    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < made; i++)
        sp_point_unref(&points[i]);
    pthread_mutex_unlock(&mutex);
}

/* ---- user-event ---- */

static sp_point user_event_point(uint64_t number)
{
    sp_point point = {0};
    CHECK_STATUS(sp_cl_user_event(cl.sp, &point), SP_OK);
    pthread_mutex_lock(&mutex);
    points[next_place(number)] = sp_point_ref(&point);
    pthread_mutex_unlock(&mutex);
    return point;
}

static void set_event(unsigned place)
{
    CHECK_STATUS(sp_cl_user_event_set(&points[place], SP_OK), SP_OK);
}

static void fail_event(unsigned place)
{
    CHECK_STATUS(sp_cl_user_event_set(&points[place], SP_ERROR_DEVICE_LOST), SP_OK);
}

static void user_event_signal(uint64_t number)
{
    each_up_to(number, set_event);
}

static void user_event_fail(void)
{
    each_up_to(UINT64_MAX, fail_event);
}

static void user_event_teardown(void)
{
    drop_points();
    close_world();
}

/* ---- Gates in a queue ---- */

static void close_gate(uint64_t number)
{
    pthread_mutex_lock(&mutex);
    unsigned place = next_place(number);
    gates[place] = cl_make_gate();
    CHECK_CL(cl.raw.EnqueueMarkerWithWaitList(cl.queue, 1, &gates[place], &markers[place]));
    CHECK_CL(cl.raw.Flush(cl.queue));
    pthread_mutex_unlock(&mutex);
}

static void open_gate(unsigned place)
{
    cl_open_gate(gates[place]);
}

static void fail_gate(unsigned place)
{
    cl_fail_gate(gates[place]);
}

static void gate_signal(uint64_t number)
{
    each_up_to(number, open_gate);
}

static void gate_fail(void)
{
    each_up_to(UINT64_MAX, fail_gate);
}

static void no_owner(void) {}

static void gate_teardown(void)
{
    gate_signal(UINT64_MAX);
    CHECK_CL(cl.raw.Finish(cl.queue));
    for (unsigned i = 0; i < made; i++)
        CHECK_CL(cl.raw.ReleaseEvent(markers[i]));
    close_world();
}

/* The library lets go of events that nobody looked at when it is called next. */
static void poke(void)
{
    sp_point point = {0};
    CHECK_STATUS(sp_cl_queue_signal(cl.sp, cl.look, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
}

static sp_point marker_point(uint64_t number)
{
    sp_point point = {0};
    close_gate(number);
    CHECK_STATUS(sp_cl_queue_signal(cl.sp, cl.queue, &point), SP_OK);
    return point;
}

/* ---- semaphore ---- */

static sp_cl_semaphore *make_semaphore(void)
{
    const cl_semaphore_properties_khr properties[] = {CL_SEMAPHORE_TYPE_KHR,
                                                      CL_SEMAPHORE_TYPE_BINARY_KHR, 0};
    cl_int result = CL_SUCCESS;
    cl_semaphore_khr raw =
        cl_hook_real.CreateSemaphoreWithPropertiesKHR(cl.context, properties, &result);
    sp_cl_semaphore *semaphore = NULL;
    CHECK_CL(result);
    CHECK_STATUS(sp_cl_semaphore_wrap(cl.sp, raw, &semaphore), SP_OK);
    CHECK_CL(cl_hook_real.ReleaseSemaphoreKHR(raw));
    return semaphore;
}

static sp_point semaphore_point(uint64_t number)
{
    sp_cl_semaphore *semaphore = make_semaphore();
    sp_point point = {0};
    close_gate(number);
    CHECK_STATUS(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, semaphore, &point), SP_OK);
    sp_cl_semaphore_unref(semaphore);
    return point;
}

/* ---- late-semaphore ---- */

static sp_point late_point(uint64_t number)
{
    sp_cl_semaphore *semaphore = make_semaphore();
    sp_point point = {0};
    CHECK_STATUS(sp_cl_binary_point(semaphore, SP_POINT_UNSUBMITTED, &point), SP_OK);
    sp_cl_semaphore_unref(semaphore);
    pthread_mutex_lock(&mutex);
    points[next_place(number)] = sp_point_ref(&point);
    pthread_mutex_unlock(&mutex);
    return point;
}

static void submit_signal(unsigned place)
{
    cl_semaphore_khr semaphore = sp_cl_semaphore_from_point(&points[place]);
    CHECK_CL(cl_hook_real.EnqueueSignalSemaphoresKHR(cl.queue, 1, &semaphore, NULL, 0, NULL, NULL));
    CHECK_CL(cl.raw.Flush(cl.queue));
    CHECK_STATUS(sp_point_mark_submitted(&points[place]), SP_OK);
    sp_point_unref(&points[place]);
}

static void late_signal_all(uint64_t number)
{
    each_up_to(number, submit_signal);
}

/* ---- All ---- */

#define COMMON(options_)                                                                           \
    .kind = SP_KIND_OPENCL, .backend = SP_BACKEND_OPENCL, .fail_status = SP_ERROR_FAILED,          \
    .user = &(options_), .setup = open_world, .calls = cl_hook_all_calls

#define EVENT                                                                                      \
    .pending = SP_PENDING, .timed_out = SP_TIMEOUT, .mark_submitted = SP_ERROR_NOT_SUPPORTED,      \
    .alive = alive_events

#define SEMAPHORE .mark_submitted = SP_OK, .fail_cause = SP_ERROR_FAILED, .alive = alive_semaphores

#define USER_EVENT(options_)                                                                       \
    {                                                                                              \
        COMMON(options_), EVENT, .fail_cause = SP_ERROR_DEVICE_LOST, .point = user_event_point,    \
                                 .signal = user_event_signal, .fail_all = user_event_fail,         \
                                 .release_owner = drop_points, .teardown = user_event_teardown     \
    }

#define MARKER(options_)                                                                           \
    {                                                                                              \
        COMMON(options_), EVENT, .fail_cause = SP_ERROR_BACKEND, .point = marker_point,            \
                                 .signal = gate_signal, .fail_all = gate_fail,                     \
                                 .release_owner = no_owner, .poke = poke,                          \
                                 .teardown = gate_teardown                                         \
    }

#define GATED_SEMAPHORE(options_)                                                                  \
    {                                                                                              \
        COMMON(options_), SEMAPHORE,                                                               \
            .flags = SP_POINT_BINARY, .pending = SP_PENDING, .timed_out = SP_TIMEOUT,              \
            .point = semaphore_point, .signal = gate_signal, .fail_all = gate_fail,                \
            .release_owner = no_owner, .poke = poke, .teardown = gate_teardown                     \
    }

#define LATE_SEMAPHORE(options_)                                                                   \
    {                                                                                              \
        COMMON(options_), SEMAPHORE, .flags = SP_POINT_BINARY | SP_POINT_UNSUBMITTED,              \
                                     .pending = SP_NOT_SUBMITTED, .timed_out = SP_NOT_SUBMITTED,   \
                                     .point = late_point, .signal = late_signal_all,               \
                                     .release_owner = drop_points, .teardown = user_event_teardown \
    }

static const cl_options pocl = {.platform = "Portable Computing Language"};
static const cl_options doubled = {.platform = "Portable Computing Language", .doubled = true};
static const cl_options nvidia = {.platform = "NVIDIA"};

static const fixture user_events[] = {USER_EVENT(pocl), USER_EVENT(nvidia)};
static const fixture marks[] = {MARKER(pocl), MARKER(nvidia)};
static const fixture semaphores[] = {GATED_SEMAPHORE(doubled)};
static const fixture late_semaphores[] = {LATE_SEMAPHORE(doubled), LATE_SEMAPHORE(nvidia)};

#define EVENT_FEATURES (ONE_SHOT | COUNTED | CALLS | POLLED | INDEPENDENT | UNLAYERED)
#define SEMAPHORE_FEATURES (ONE_SHOT | COUNTED | CALLS | INDEPENDENT | UNLAYERED)

const test_target opencl_targets[] = {
    {"cl-user-event-pocl", EVENT_FEATURES | FAILING, (void *)&user_events[0]},
    {"cl-marker-pocl", EVENT_FEATURES | FAILING, (void *)&marks[0]},
    {"cl-semaphore-double", SEMAPHORE_FEATURES | FAILING, (void *)&semaphores[0]},
    {"cl-late-semaphore-double", SEMAPHORE_FEATURES, (void *)&late_semaphores[0]},
    {"cl-user-event-nvidia", EVENT_FEATURES | FAILING, (void *)&user_events[1]},
    {"cl-marker-nvidia", EVENT_FEATURES, (void *)&marks[1]},
    {"cl-late-semaphore-nvidia", SEMAPHORE_FEATURES & ~INDEPENDENT, (void *)&late_semaphores[1]},
    {NULL, 0, NULL},
};
