/* SPDX-License-Identifier: MIT
 *
 * Making the context object: arguments, what is missing, what the devices can do.
 */
#include "cl_case.h"

#include <string.h>

static void refuse(const sp_cl_context_desc *desc, sp_status expected, const char *named)
{
    sp_cl_context *unchanged = (sp_cl_context *)16;
    CHECK_ERROR(sp_cl_context_create(desc, &unchanged), expected);
    CHECK(unchanged == (sp_cl_context *)16);
    if (named && !strstr(sp_last_error()->message, named))
        print_error("%s: %s\n", named, sp_last_error()->message);
    CHECK(!named || strstr(sp_last_error()->message, named) != NULL);
    CHECK_EQUAL(cl_hook_live_objects(), 0);
}

static sp_cl_caps caps_now(void)
{
    sp_cl_context_desc desc = cl_desc();
    sp_cl_caps caps = {.size = sizeof(caps)};
    CHECK_STATUS(sp_cl_context_create(&desc, &cl.sp), SP_OK);
    CHECK_STATUS(sp_cl_context_caps(cl.sp, &caps), SP_OK);
    CHECK(caps.semaphore == !caps.why_no_semaphore);
    CHECK(caps.import_opaque_fd == !caps.why_no_import);
    return caps;
}

TEST(arguments)
{
    cl_open_driver(options);
    sp_cl_context_desc desc = cl_desc();
    sp_cl_context *made = (sp_cl_context *)16;
    sp_cl_caps caps = {.size = sizeof(caps)};
    CHECK_ERROR(sp_cl_context_create(NULL, &made), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_context_create(&desc, NULL), SP_ERROR_INVALID_ARGUMENT);
    desc.size--;
    refuse(&desc, SP_ERROR_INVALID_ARGUMENT, "size");
    desc.size++;
    desc.context = NULL;
    refuse(&desc, SP_ERROR_INVALID_ARGUMENT, "context");
    CHECK_EQUAL(cl_hook_all_calls(), 0);
    cl_open_library();
    CHECK_ERROR(sp_cl_context_caps(NULL, &caps), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cl_context_caps(cl.sp, NULL), SP_ERROR_INVALID_ARGUMENT);
    caps.size++;
    CHECK_ERROR(sp_cl_context_caps(cl.sp, &caps), SP_ERROR_INVALID_ARGUMENT);
    CHECK_STATUS(sp_cl_context_destroy(NULL, 0), SP_OK);
    finish();
}

TEST(wait_queue_of_another_context)
{
    cl_open_driver(options);
    cl_context theirs = cl_make_context();
    cl_command_queue queue = cl_make_queue(theirs, false);
    sp_cl_context_desc desc = cl_desc();
    desc.wait_queue = queue;
    refuse(&desc, SP_ERROR_INVALID_ARGUMENT, "wait_queue");
    CHECK_CL(cl.raw.ReleaseCommandQueue(queue));
    CHECK_CL(cl.raw.ReleaseContext(theirs));
    cl_close_driver();
}

/* ---- Where the functions come from ---- */

TEST(each_missing_function_is_named)
{
    static const char *const names[] = {
#define NAME(name) "cl" #name,
        CL_HOOK_CORE_FUNCTIONS(NAME)
#undef NAME
    };
    cl_open_driver(options);
    sp_cl_context_desc desc = cl_desc();
    for (unsigned i = 0; i < COUNT_OF(names); i++) {
        cl_hook_hide(names[i]);
        refuse(&desc, SP_ERROR_NOT_SUPPORTED, names[i]);
    }
    CHECK_EQUAL(cl_hook_all_calls(), 0);
    cl_close_driver();
}

TEST(missing_library_is_named)
{
    cl_open_driver(options);
    sp_cl_context_desc desc = cl_desc();
    desc.get_function = NULL;
    desc.library = "libOpenCL-is-not-here.so.9";
    refuse(&desc, SP_ERROR_NOT_SUPPORTED, "libOpenCL-is-not-here.so.9");
    desc.library = "libm.so.6"; /* there, but without such functions */
    refuse(&desc, SP_ERROR_NOT_SUPPORTED, "clGetPlatformInfo");
    cl_close_driver();
}

TEST(the_system_s_loader)
{
    cl_open_driver(options);
    sp_cl_context_desc desc = cl_desc();
    desc.get_function = NULL;
    for (unsigned i = 0; i < 2; i++) {
        sp_cl_context *made = NULL;
        sp_point point = {0};
        CHECK_STATUS(sp_cl_context_create(&desc, &made), SP_OK);
        CHECK_STATUS(sp_cl_queue_signal(made, cl.queue, &point), SP_OK);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        CHECK_STATUS(sp_cl_context_destroy(made, PATIENCE_NS), SP_OK);
        CHECK_STATUS(sp_poll(&point), SP_OK);
        sp_point_unref(&point);
        desc.library = "libOpenCL.so.1";
    }
    CHECK_EQUAL(cl_hook_all_calls(), 0);
    cl_close_driver();
}

/* ---- Versions and extensions ---- */

TEST(old_versions_are_refused)
{
    cl_open_driver(options);
    sp_cl_context_desc desc = cl_desc();
    cl_hook_set_versions("OpenCL 1.1 old", NULL);
    refuse(&desc, SP_ERROR_NOT_SUPPORTED, "OpenCL 1.1 old");
    cl_hook_set_versions(NULL, "OpenCL 1.0 older");
    refuse(&desc, SP_ERROR_NOT_SUPPORTED, "OpenCL 1.0 older");
    cl_hook_set_versions("what is this", NULL);
    refuse(&desc, SP_ERROR_NOT_SUPPORTED, "what is this");
    cl_hook_set_versions("OpenCL 1.2 enough", "OpenCL 2.0 more");
    caps_now();
    finish();
}

TEST_NEEDING(caps_without_semaphores, WITHOUT_SEMAPHORES)
{
    cl_open_driver(options);
    sp_cl_caps caps = caps_now();
    CHECK(!caps.semaphore && !caps.import_opaque_fd && !caps.has_uuid);
    CHECK(strstr(caps.why_no_semaphore, "cl_khr_semaphore") != NULL);
    CHECK(strstr(caps.why_no_import, "cl_khr_semaphore") != NULL);
    finish();
}

TEST_NEEDING(caps_with_semaphores, WITH_SEMAPHORES)
{
    cl_open_driver(options);
    sp_cl_caps caps = caps_now();
    CHECK(caps.semaphore && caps.import_opaque_fd && caps.has_uuid);
    if (options->doubled)
        CHECK(memcmp(caps.device_uuid, caps.driver_uuid, 16) != 0);
    finish();
}

static void check_hidden(const char *what, bool semaphore)
{
    cl_open_driver(options);
    cl_hook_hide(what);
    sp_cl_caps caps = caps_now();
    CHECK(caps.semaphore == semaphore);
    CHECK(!caps.import_opaque_fd);
    CHECK(strstr(semaphore ? caps.why_no_import : caps.why_no_semaphore, what) != NULL);
    const sp_cl_semaphore_import_desc desc = {.size = sizeof(desc), .fd = 0};
    sp_cl_semaphore *made = (sp_cl_semaphore *)16;
    CHECK_ERROR(sp_cl_semaphore_import(cl.sp, &desc, &made), SP_ERROR_NOT_SUPPORTED);
    CHECK(strstr(sp_last_error()->message, what) != NULL);
    CHECK(made == (sp_cl_semaphore *)16);
    sp_point point = queue_signals(cl.queue); /* events go on */
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    finish();
}

TEST_NEEDING(each_missing_part_of_semaphores_is_named, WITH_SEMAPHORES)
{
    check_hidden("cl_khr_semaphore", false);
    check_hidden("cl_khr_external_semaphore_opaque_fd", true);
    check_hidden("clCreateSemaphoreWithPropertiesKHR", false);
    check_hidden("clEnqueueWaitSemaphoresKHR", false);
    check_hidden("clEnqueueSignalSemaphoresKHR", false);
    check_hidden("clGetSemaphoreInfoKHR", false);
    check_hidden("clRetainSemaphoreKHR", false);
    check_hidden("clReleaseSemaphoreKHR", false);
}

TEST_NEEDING(import_types_are_asked_for, WITH_SEMAPHORES)
{
    cl_open_driver(options);
    cl_hook_no_import_types(true);
    sp_cl_caps caps = caps_now();
    CHECK(caps.semaphore && !caps.import_opaque_fd);
    CHECK(strstr(caps.why_no_import, "CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR") != NULL);
    finish();
}

/* ---- Failing calls ---- */

TEST(H1_every_call_of_creation_may_fail)
{
    cl_open_driver(options);
    unsigned handles = census_open_handles(), refused = 0;
    for (unsigned skip = 0;; skip++) {
        sp_cl_context_desc desc = cl_desc();
        sp_cl_context *made = NULL;
        cl_hook_fail_step(CL_OUT_OF_HOST_MEMORY, skip);
        sp_status status = sp_cl_context_create(&desc, &made);
        bool left = cl_hook_heal();
        CHECK((status == SP_OK) == (made != NULL));
        /* What only tells of more abilities is not missed. */
        if (status != SP_OK)
            CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
        refused += status != SP_OK;
        CHECK_STATUS(sp_cl_context_destroy(made, PATIENCE_NS), SP_OK);
        CHECK_EQUAL(cl_hook_live_objects(), 0);
        if (left)
            break;
    }
    CHECK(refused > 5);
    CHECK_HANDLES(handles);
    cl_close_driver();
}
