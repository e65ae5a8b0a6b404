/* SPDX-License-Identifier: MIT
 *
 * Binary semaphores as objects: their lives, their arguments, and calls that fail. H1.
 */
#include "cl_case.h"

/* ---- Objects ---- */

TEST_NEEDING(semaphore_lives_until_its_last_point, WITH_SEMAPHORES)
{
    start();
    int live = cl_hook_live_objects();
    sp_cl_semaphore *semaphore = make_semaphore();
    CHECK_EQUAL(cl_hook_live_objects(), live + 1);
    CHECK(sp_cl_semaphore_ref(semaphore) == semaphore);
    sp_cl_semaphore_unref(semaphore);
    signal_raw(semaphore, NULL);
    sp_point point = binary_point(semaphore, 0);
    sp_cl_semaphore_unref(semaphore);
    CHECK_EQUAL(cl_hook_live_objects(), live + 1);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    CHECK_EQUAL(cl_hook_live_objects(), live);
    CHECK(sp_cl_semaphore_ref(NULL) == NULL);
    sp_cl_semaphore_unref(NULL);
    CHECK(sp_cl_semaphore_handle(NULL) == NULL);
    finish();
}

TEST_NEEDING(semaphore_arguments, WITH_SEMAPHORES)
{
    start();
    sp_cl_semaphore *semaphore = make_semaphore(), *made = (sp_cl_semaphore *)16;
    cl_semaphore_khr raw = sp_cl_semaphore_handle(semaphore);
    sp_point out = test_marked_point(), marked = out;
    unsigned calls = cl_hook_all_calls();
    CHECK_ERROR(sp_cl_semaphore_wrap(NULL, raw, &made), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_semaphore_wrap(cl.sp, NULL, &made), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_semaphore_wrap(cl.sp, raw, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_binary_point(NULL, 0, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_binary_point(semaphore, 0, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_binary_point(semaphore, SP_POINT_HAS_VALUE, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(NULL, cl.queue, semaphore, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, NULL, semaphore, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, cl.queue, NULL, &out),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(cl_hook_all_calls(), calls);
    CHECK(made == (sp_cl_semaphore *)16);
    CHECK(test_same_point(&out, &marked));
    sp_cl_semaphore_unref(semaphore);
    finish();
}

TEST_NEEDING(only_binary_semaphores_are_wrapped, WITH_DOUBLE)
{
    start();
    cl_semaphore_khr raw = make_raw_semaphore();
    sp_cl_semaphore *made = (sp_cl_semaphore *)16;
    cl_double_set_type(raw, 2);
    CHECK_ERROR(sp_cl_semaphore_wrap(cl.sp, raw, &made), SP_ERROR_NOT_SUPPORTED);
    CHECK(made == (sp_cl_semaphore *)16);
    release_raw_semaphore(raw);
    finish();
}

TEST_NEEDING(semaphores_of_another_context, WITH_SEMAPHORES)
{
    start();
    cl_context ours = cl.context, theirs = cl_make_context();
    cl_command_queue queue = cl_make_queue(theirs, false);
    sp_cl_semaphore *semaphore = make_semaphore(), *made = (sp_cl_semaphore *)16;
    sp_cl_context *another = NULL;
    sp_point out = test_marked_point(), marked = out, point = binary_point(semaphore, 0);
    sp_cl_context_desc desc = cl_desc();
    desc.context = theirs;
    desc.wait_queue = queue;
    CHECK_STATUS(sp_cl_context_create(&desc, &another), SP_OK);
    CHECK_ERROR(sp_cl_semaphore_wrap(another, sp_cl_semaphore_handle(semaphore), &made),
                SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(another, queue, semaphore, &out),
                SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_cl_queue_signal_semaphore(cl.sp, queue, semaphore, &out),
                SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_cl_queue_wait(another, queue, &point), SP_ERROR_WRONG_CONTEXT);
    CHECK_ERROR(sp_cl_queue_wait(cl.sp, queue, &point), SP_ERROR_WRONG_CONTEXT);
    CHECK(made == (sp_cl_semaphore *)16);
    CHECK(test_same_point(&out, &marked));
    CHECK_EQUAL(waits(), 0);
    sp_point_unref(&point);
    sp_cl_semaphore_unref(semaphore);
    CHECK_STATUS(sp_cl_context_destroy(another, PATIENCE_NS), SP_OK);
    CHECK(cl.context == ours);
    CHECK_CL(cl.raw.ReleaseCommandQueue(queue));
    CHECK_CL(cl.raw.ReleaseContext(theirs));
    finish();
}

TEST_NEEDING(no_semaphores, WITHOUT_SEMAPHORES)
{
    start();
    sp_cl_semaphore *made = (sp_cl_semaphore *)16;
    const sp_cl_semaphore_import_desc desc = {.size = sizeof(desc), .fd = 0};
    int fake;
    CHECK_ERROR(sp_cl_semaphore_wrap(cl.sp, (cl_semaphore_khr)(void *)&fake, &made),
                SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_cl_semaphore_import(cl.sp, &desc, &made), SP_ERROR_NOT_SUPPORTED);
    CHECK(made == (sp_cl_semaphore *)16);
    finish();
}

/* ---- H1 ---- */

static sp_cl_semaphore *used, *new_one;
static cl_semaphore_khr raw_one;
static cl_command_queue used_queue;
static sp_point made_point;

static sp_status wrap(void)
{
    return sp_cl_semaphore_wrap(cl.sp, raw_one, &new_one);
}
static void unref(void)
{
    sp_cl_semaphore_unref(new_one);
}
static sp_status signal_it(void)
{
    return sp_cl_queue_signal_semaphore(cl.sp, used_queue, used, &made_point);
}
static void wait_for_it(void)
{
    CHECK_STATUS(sp_wait(&made_point), SP_OK);
    sp_point_unref(&made_point);
}

TEST_NEEDING(H1_every_call_for_a_semaphore_may_fail, WITH_DOUBLE)
{
    start();
    raw_one = make_raw_semaphore();
    refuse_each_call(wrap, unref, 3);
    release_raw_semaphore(raw_one);
    finish();
}

/* But for the flush, which is the last: see a_signal_whose_flush_failed. */
static void fail_each_step_of_a_signal(unsigned steps)
{
    used = make_semaphore();
    CHECK_STATUS(signal_it(), SP_OK);
    wait_for_it();
    for (unsigned step = 0; step < steps; step++) {
        int live = cl_hook_live_objects();
        cl_hook_fail_step(CL_OUT_OF_HOST_MEMORY, step);
        sp_status status = signal_it();
        CHECK(!cl_hook_heal());
        CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
        CHECK(cl_hook_live_objects() <= live + 1); /* a marker, parked */
    }
    CHECK_EQUAL(cl_hook_calls(CL_HOOK_EnqueueSignalSemaphoresKHR), 2);
    CHECK_STATUS(signal_it(), SP_OK);
    wait_for_it();
    sp_cl_semaphore_unref(used);
}

TEST_NEEDING(H1_every_call_of_a_signal_may_fail, WITH_DOUBLE)
{
    start();
    used_queue = cl.queue;
    fail_each_step_of_a_signal(4);
    finish();
}

TEST_NEEDING(H1_every_call_of_a_signal_out_of_order_may_fail, WITH_DOUBLE)
{
    start();
    used_queue = cl_make_queue(cl.context, true);
    fail_each_step_of_a_signal(6);
    CHECK_CL(cl.raw.ReleaseCommandQueue(used_queue));
    finish();
}
