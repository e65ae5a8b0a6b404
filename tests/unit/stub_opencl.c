/* SPDX-License-Identifier: MIT
 *
 * A library built without OpenCL: its symbols are there, each says what it cannot do, and nothing
 * is written.
 */
#include "support/test.h"

#include <string.h>
#include <syncpoint/opencl.h>

/* It says why, and names itself. */
static void check_says_why(sp_status status, const char *call)
{
    char name[64] = {0};
    strncpy(name, call, strcspn(call, "(") < sizeof(name) ? strcspn(call, "(") : 0);
    CHECK_STATUS(status, SP_ERROR_NOT_SUPPORTED);
    CHECK_STATUS(sp_last_error()->status, SP_ERROR_NOT_SUPPORTED);
    if (!strstr(sp_last_error()->message, name))
        print_error("%s: %s\n", name, sp_last_error()->message);
    CHECK(strstr(sp_last_error()->message, name) != NULL);
    CHECK(strstr(sp_last_error()->message, "OpenCL") != NULL);
}
#define NOT_BUILT(call) check_says_why(call, #call)

TEST(opencl_functions_say_not_supported)
{
    uint64_t object[16];
    sp_point marked = test_marked_point(), out = marked;
    void *any = object;
    sp_cl_context *context = any, *made = any;
    sp_cl_semaphore *semaphore = any, *made_semaphore = any;
    memset(object, 0x5a, sizeof(object));
    NOT_BUILT(sp_cl_context_create(any, &made));
    NOT_BUILT(sp_cl_context_caps(context, any));
    NOT_BUILT(sp_cl_queue_signal(context, any, &out));
    NOT_BUILT(sp_cl_event_wrap(context, any, &out));
    NOT_BUILT(sp_cl_user_event(context, &out));
    NOT_BUILT(sp_cl_user_event_set(&out, SP_OK));
    NOT_BUILT(sp_cl_semaphore_import(context, any, &made_semaphore));
    NOT_BUILT(sp_cl_semaphore_wrap(context, any, &made_semaphore));
    NOT_BUILT(sp_cl_binary_point(semaphore, 0, &out));
    NOT_BUILT(sp_cl_queue_signal_semaphore(context, any, semaphore, &out));
    NOT_BUILT(sp_cl_queue_wait(context, any, &out));
    NOT_BUILT(sp_cl_context_destroy(context, SP_FOREVER));
    CHECK(made == any);
    CHECK(made_semaphore == any);
    CHECK(test_same_point(&out, &marked));
    for (unsigned i = 0; i < COUNT_OF(object); i++)
        CHECK_EQUAL(object[i], UINT64_C(0x5a5a5a5a5a5a5a5a));
}

TEST(opencl_nothing_is_harmless)
{
    CHECK_STATUS(sp_cl_context_destroy(NULL, 0), SP_OK);
    CHECK(sp_cl_semaphore_ref(NULL) == NULL);
    sp_cl_semaphore_unref(NULL);
    CHECK(sp_cl_semaphore_handle(NULL) == NULL);
    CHECK(sp_cl_event_from_point(NULL) == NULL);
    CHECK(sp_cl_event_from_point(&(sp_point){0}) == NULL);
    CHECK(sp_cl_semaphore_from_point(NULL) == NULL);
    CHECK(sp_cl_semaphore_from_point(&(sp_point){0}) == NULL);
}
