/* SPDX-License-Identifier: MIT */
#include "cl_case.h"

const cl_options *options;

static void setup(const test_target *target)
{
    options = target->user;
}

int main(int argc, char **argv)
{
    return test_main(
        argc, argv,
        &(test_program){.targets = cl_targets, .target_count = cl_target_count, .setup = setup});
}

void start(void)
{
    cl_open_driver(options);
    cl_open_library();
}

void finish(void)
{
    cl_close_library();
    cl_close_driver();
}

sp_point queue_signals(cl_command_queue queue)
{
    sp_point point = {0};
    CHECK_STATUS(sp_cl_queue_signal(cl.sp, queue, &point), SP_OK);
    return point;
}

sp_point wrap_event(cl_event event)
{
    sp_point point = {0};
    CHECK_STATUS(sp_cl_event_wrap(cl.sp, event, &point), SP_OK);
    return point;
}

sp_point user_event(void)
{
    sp_point point = {0};
    CHECK_STATUS(sp_cl_user_event(cl.sp, &point), SP_OK);
    return point;
}

/* ---- Semaphores ---- */

cl_semaphore_khr make_raw_semaphore(void)
{
    const cl_semaphore_properties_khr properties[] = {CL_SEMAPHORE_TYPE_KHR,
                                                      CL_SEMAPHORE_TYPE_BINARY_KHR, 0};
    cl_int result = CL_SUCCESS;
    cl_semaphore_khr made =
        cl_hook_real.CreateSemaphoreWithPropertiesKHR(cl.context, properties, &result);
    CHECK_CL(result);
    return made;
}

void release_raw_semaphore(cl_semaphore_khr semaphore)
{
    CHECK_CL(cl_hook_real.ReleaseSemaphoreKHR(semaphore));
}

sp_cl_semaphore *make_semaphore(void)
{
    cl_semaphore_khr raw = make_raw_semaphore();
    sp_cl_semaphore *made = NULL;
    CHECK_STATUS(sp_cl_semaphore_wrap(cl.sp, raw, &made), SP_OK);
    release_raw_semaphore(raw);
    return made;
}

sp_point binary_point(sp_cl_semaphore *semaphore, uint32_t flags)
{
    sp_point point = {0};
    CHECK_STATUS(sp_cl_binary_point(semaphore, flags, &point), SP_OK);
    return point;
}

sp_point signal_semaphore(cl_command_queue queue, sp_cl_semaphore *semaphore)
{
    sp_point point = {0};
    CHECK_STATUS(sp_cl_queue_signal_semaphore(cl.sp, queue, semaphore, &point), SP_OK);
    return point;
}

void signal_raw(sp_cl_semaphore *semaphore, cl_event gate)
{
    cl_semaphore_khr raw = sp_cl_semaphore_handle(semaphore);
    CHECK_CL(cl_hook_real.EnqueueSignalSemaphoresKHR(cl.look, 1, &raw, NULL, gate != NULL,
                                                     gate ? &gate : NULL, NULL));
    CHECK_CL(cl.raw.Flush(cl.look));
}

/* ---- Late ---- */

static void send(void *user)
{
    late_gate *late = user;
    flag_set(&late->sent);
    if (late->fails)
        cl_fail_gate(late->gate);
    else
        cl_open_gate(late->gate);
}

void open_late(late_gate *late, cl_event gate)
{
    *late = (late_gate){.gate = gate};
    worker_start(&late->worker, DELAY_MS, send, late);
}

void fail_late(late_gate *late, cl_event gate)
{
    *late = (late_gate){.gate = gate, .fails = true};
    worker_start(&late->worker, DELAY_MS, send, late);
}

void join_not_early(late_gate *late)
{
    CHECK(flag_is_set(&late->sent));
    worker_join(&late->worker);
}

/* ---- Steps ---- */

void check_live_objects(int live)
{
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (cl_hook_live_objects() != live && sp_now_ns() < end) {
        sp_point look = queue_signals(cl.look);
        CHECK_STATUS(sp_wait(&look), SP_OK);
        sp_point_unref(&look);
    }
    CHECK_EQUAL(cl_hook_live_objects(), live);
}

void refuse_each_call(sp_status (*attempt)(void), void (*release)(void), unsigned times)
{
    unsigned handles = census_open_handles(), steps = 0;
    int live = cl_hook_live_objects();
    for (;; steps++) {
        unsigned refused = 0;
        for (; refused < times; refused++) {
            cl_hook_fail_step(CL_OUT_OF_HOST_MEMORY, steps);
            sp_status status = attempt();
            if (cl_hook_heal()) {
                CHECK_STATUS(status, SP_OK);
                release();
                break;
            }
            CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
            CHECK_EQUAL(sp_last_error()->native_code, CL_OUT_OF_HOST_MEMORY);
            CHECK(sp_last_error()->native_call != NULL);
            check_live_objects(live);
        }
        CHECK_HANDLES(handles);
        check_live_objects(live);
        if (refused < times)
            break;
    }
    CHECK(steps > 0);
}

unsigned waits(void)
{
    return cl_hook_calls(CL_HOOK_EnqueueWaitSemaphoresKHR);
}
