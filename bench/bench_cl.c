/* SPDX-License-Identifier: MIT
 * OpenCL: markers and user events as points. */
#include "bench.h"
#include "raw_cl.h"

#include <stdio.h>
#include <string.h>
#include <syncpoint/opencl.h>

#define FEWER 20 /* batches of what is enqueued: they take long */

typedef struct cl_bench {
    const bench *b;
    raw_cl raw;
    sp_cl_context *context;
    cl_event event; /* what the point stands for, too */
    sp_point point;
    sp_status expected; /* of a poll */
} cl_bench;

static void check(sp_status status, const char *what)
{
    bench_check(status == SP_OK, what);
}

static void check_raw(cl_int result, const char *what)
{
    bench_check(result == CL_SUCCESS, what);
}

/* ---- Making a point ---- */

/* The commands are done at the end of each batch, on both sides. */
static void signal_ours(void *argument, size_t ops)
{
    const cl_bench *c = argument;
    sp_status wrong = SP_OK;
    for (size_t i = 0; i < ops; i++) {
        sp_point point = {0};
        wrong |= sp_cl_queue_signal(c->context, c->raw.queue, &point);
        sp_point_unref(&point);
    }
    check(wrong, "sp_cl_queue_signal");
    check_raw(c->raw.Finish(c->raw.queue), "clFinish");
}

static void signal_raw(void *argument, size_t ops)
{
    const cl_bench *c = argument;
    cl_int wrong = CL_SUCCESS;
    for (size_t i = 0; i < ops; i++) {
        cl_event event = NULL;
        wrong |= c->raw.EnqueueMarkerWithWaitList(c->raw.queue, 0, NULL, &event);
        wrong |= c->raw.Flush(c->raw.queue);
        wrong |= c->raw.ReleaseEvent(event);
    }
    check_raw(wrong, "clEnqueueMarkerWithWaitList");
    check_raw(c->raw.Finish(c->raw.queue), "clFinish");
}

static void copy_release(void *argument, size_t ops)
{
    const cl_bench *c = argument;
    bench_copies(&c->point, ops);
}

/* ---- Probes ---- */

static void probe_ours(void *argument, size_t ops)
{
    const cl_bench *c = argument;
    bench_check(bench_polls(&c->point, c->expected, ops), "sp_poll does not say what it should");
}

static void probe_raw(void *argument, size_t ops)
{
    const cl_bench *c = argument;
    bool done = c->expected == SP_OK, ok = true;
    for (size_t i = 0; i < ops; i++) {
        cl_int status = CL_QUEUED;
        cl_int result = c->raw.GetEventInfo(c->event, CL_EVENT_COMMAND_EXECUTION_STATUS,
                                            sizeof status, &status, NULL);
        ok = ok && result == CL_SUCCESS && (status == CL_COMPLETE) == done;
    }
    bench_check(ok, "clGetEventInfo");
}

/* A marker behind `gate`, or behind nothing. */
static void make_marker(cl_bench *c, cl_event gate)
{
    check_raw(c->raw.EnqueueMarkerWithWaitList(c->raw.queue, gate != NULL, gate ? &gate : NULL,
                                               &c->event),
              "clEnqueueMarkerWithWaitList");
    check(sp_cl_event_wrap(c->context, c->event, &c->point), "sp_cl_event_wrap");
}

static void release_marker(cl_bench *c)
{
    check_raw(c->raw.Finish(c->raw.queue), "clFinish");
    sp_point_unref(&c->point);
    check_raw(c->raw.ReleaseEvent(c->event), "clReleaseEvent");
}

static void measure_reached(cl_bench *c)
{
    make_marker(c, NULL);
    check(sp_wait(&c->point), "sp_wait");
    c->expected = SP_OK;
    if (bench_wants(c->b, "opencl.copy_release"))
        bench_batches(c->b, "opencl.copy_release", copy_release, NULL, c);
    if (bench_wants(c->b, "opencl.probe_reached"))
        bench_batches(c->b, "opencl.probe_reached", probe_ours, probe_raw, c);
    release_marker(c);
}

static void measure_pending(cl_bench *c)
{
    cl_int result;
    cl_event gate = c->raw.CreateUserEvent(c->raw.context, &result);
    bench_check(gate, "clCreateUserEvent");
    make_marker(c, gate);
    c->expected = SP_PENDING;
    if (bench_wants(c->b, "opencl.probe_pending"))
        bench_batches(c->b, "opencl.probe_pending", probe_ours, probe_raw, c);
    check_raw(c->raw.SetUserEventStatus(gate, CL_COMPLETE), "clSetUserEventStatus");
    release_marker(c);
    check_raw(c->raw.ReleaseEvent(gate), "clReleaseEvent");
}

/* ---- Waits for user events ---- */

static void begin_wait(void *user, bool raw)
{
    cl_bench *c = user;
    cl_int result = CL_SUCCESS;
    if (raw)
        c->event = c->raw.CreateUserEvent(c->raw.context, &result);
    else
        check(sp_cl_user_event(c->context, &c->point), "sp_cl_user_event");
    check_raw(result, "clCreateUserEvent");
}

static void wait_for_event(void *user, bool raw)
{
    const cl_bench *c = user;
    if (raw)
        check_raw(c->raw.WaitForEvents(1, &c->event), "clWaitForEvents");
    else
        check(sp_wait(&c->point), "sp_wait");
}

static void set_event(void *user, bool raw)
{
    const cl_bench *c = user;
    if (raw)
        check_raw(c->raw.SetUserEventStatus(c->event, CL_COMPLETE), "clSetUserEventStatus");
    else
        check(sp_cl_user_event_set(&c->point, SP_OK), "sp_cl_user_event_set");
}

static void end_wait(void *user, bool raw)
{
    cl_bench *c = user;
    if (raw)
        check_raw(c->raw.ReleaseEvent(c->event), "clReleaseEvent");
    else
        sp_point_unref(&c->point);
}

static void measure_waits(cl_bench *c)
{
    const bench_wake what = {
        .spin_row = "opencl.wake_spin",
        .block_row = "opencl.wake_block",
        .has_raw = true,
        .user = c,
        .begin = begin_wait,
        .wait = wait_for_event,
        .signal = set_event,
        .end = end_wait,
    };
    bench_wakes(c->b, &what);
}

/* ---- Together ---- */

/* Short, for the rows: "Portable Computing Language" is PoCL, others are named by a first word. */
static const char *name_of(raw_cl *cl)
{
    if (strncmp(cl->platform, "Portable", 8) == 0)
        return "PoCL";
    cl->platform[strcspn(cl->platform, " ")] = '\0';
    return cl->platform;
}

bool bench_cl(bench *b, unsigned platform)
{
    cl_bench c = {.b = b};
    if (!raw_cl_open(&c.raw, platform))
        return false;
    b->driver = name_of(&c.raw);
    if (!c.raw.context) {
        fprintf(stderr, "syncpoint-bench: OpenCL: %s has no device here\n", b->driver);
        return true;
    }
    const sp_cl_context_desc desc = {.size = sizeof desc, .context = c.raw.context};
    check(sp_cl_context_create(&desc, &c.context), "sp_cl_context_create");
    if (bench_wants(b, "opencl.signal")) {
        bench fewer = *b;
        fewer.scale.batches /= FEWER;
        bench_batches(&fewer, "opencl.signal", signal_ours, signal_raw, &c);
    }
    measure_reached(&c);
    measure_pending(&c);
    measure_waits(&c);
    check(sp_cl_context_destroy(c.context, SP_FOREVER), "sp_cl_context_destroy");
    raw_cl_close(&c.raw);
    return true;
}
