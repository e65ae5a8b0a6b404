/* SPDX-License-Identifier: MIT
 *
 * A library built without CUDA: its symbols are there, each says what it cannot do, and nothing is
 * written.
 */
#include "support/test.h"

#include <string.h>
#include <syncpoint/cuda.h>

/* It says why, and names itself. */
static void check_says_why(sp_status status, const char *call)
{
    char name[64] = {0};
    strncpy(name, call, strcspn(call, "(") < sizeof(name) ? strcspn(call, "(") : 0);
    CHECK_STATUS(status, SP_ERROR_NOT_SUPPORTED);
    CHECK_STATUS(sp_last_error()->status, SP_ERROR_NOT_SUPPORTED);
    CHECK(strstr(sp_last_error()->message, name) != NULL);
    CHECK(strstr(sp_last_error()->message, "CUDA") != NULL);
}
#define NOT_BUILT(call) check_says_why(call, #call)

TEST(cuda_functions_say_not_supported)
{
    sp_point marked = test_marked_point(), out = marked;
    sp_cuda_context *context = (sp_cuda_context *)16, *made = context;
    sp_cuda_semaphore *semaphore = (sp_cuda_semaphore *)16, *imported = semaphore;
    const sp_cuda_context_desc desc = {.size = sizeof(desc)};
    const sp_cuda_event_wrap_desc wrap = {.size = sizeof(wrap)};
    const sp_cuda_semaphore_import_desc import = {.size = sizeof(import)};
    sp_cuda_caps caps = {.size = sizeof(caps)};
    uint8_t handle[SP_CUDA_IPC_SIZE] = {0};
    NOT_BUILT(sp_cuda_context_create(&desc, &made));
    NOT_BUILT(sp_cuda_context_destroy(context, SP_FOREVER));
    NOT_BUILT(sp_cuda_context_collect(context));
    NOT_BUILT(sp_cuda_context_caps(context, &caps));
    NOT_BUILT(sp_cuda_stream_signal(context, NULL, &out));
    NOT_BUILT(sp_cuda_event_wrap(context, &wrap, &out));
    NOT_BUILT(sp_cuda_stream_signal_ipc(context, NULL, handle, &out));
    NOT_BUILT(sp_cuda_event_open_ipc(context, handle, &out));
    NOT_BUILT(sp_cuda_semaphore_import(context, &import, &imported));
    NOT_BUILT(sp_cuda_timeline_point(semaphore, 1, &out));
    NOT_BUILT(sp_cuda_semaphore_point(semaphore, &out));
    NOT_BUILT(sp_cuda_binary_point(semaphore, 0, 0, &out));
    NOT_BUILT(sp_cuda_stream_signal_semaphore(context, NULL, semaphore, 1, &out));
    NOT_BUILT(sp_cuda_stream_wait(context, NULL, &out));
    CHECK(test_same_point(&out, &marked));
    CHECK(made == context && imported == semaphore);
    CHECK_STATUS(sp_cuda_context_destroy(NULL, 0), SP_OK);
    CHECK(sp_cuda_semaphore_ref(NULL) == NULL);
    sp_cuda_semaphore_unref(NULL);
    CHECK(sp_cuda_semaphore_handle(NULL) == NULL);
    CHECK(sp_cuda_event_from_point(&marked) == NULL);
    CHECK(sp_cuda_semaphore_from_point(&marked) == NULL);
}
