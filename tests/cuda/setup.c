/* SPDX-License-Identifier: MIT
 *
 * Making and ending the context object, its capabilities, and bad arguments of every function.
 */
#include "cu_peer.h"

#include <string.h>

static sp_cuda_context *const untouched = (sp_cuda_context *)16;

static void check_refused(const sp_cuda_context_desc *desc, sp_status expected, const char *word)
{
    sp_cuda_context *out = untouched;
    CHECK_ERROR(sp_cuda_context_create(desc, &out), expected);
    CHECK(out == untouched);
    if (word && !strstr(sp_last_error()->message, word))
        print_error("not there: '%s' in '%s'\n", word, sp_last_error()->message);
    CHECK(!word || strstr(sp_last_error()->message, word));
}

TEST(context_and_caps)
{
    start();
    sp_cuda_caps caps = {.size = sizeof(caps)};
    CHECK_STATUS(sp_cuda_context_caps(ctx.sp, &caps), SP_OK);
    CHECK(caps.driver_version >= 10010);
    CHECK_EQUAL(caps.device_ordinal, 0);
    CHECK(caps.has_uuid);
    CHECK(caps.external_semaphore && caps.timeline_semaphore && caps.ipc_events);
    caps.size = 1;
    CHECK_ERROR(sp_cuda_context_caps(ctx.sp, &caps), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cuda_context_caps(ctx.sp, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cuda_context_caps(NULL, &caps), SP_ERROR_INVALID_ARGUMENT);
    CHECK_STATUS(sp_cuda_context_destroy(NULL, 0), SP_OK);
    finish();
}

TEST(the_current_context_is_the_default)
{
    start();
    sp_cuda_context_desc desc = cu_context_desc(NULL);
    sp_cuda_context *made = NULL;
    sp_point point = {0};
    CHECK_STATUS(sp_cuda_context_create(&desc, &made), SP_OK);
    CHECK_STATUS(sp_cuda_stream_signal(made, ctx.stream, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    CHECK_STATUS(sp_cuda_context_destroy(made, 0), SP_OK);
    CUcontext before;
    CHECK_CU(cu.CtxPopCurrent(&before));
    check_refused(&desc, SP_ERROR_WRONG_CONTEXT, "current");
    CHECK_CU(cu.CtxPushCurrent(before));
    finish();
}

TEST(a_primary_context)
{
    CUcontext primary = NULL;
    CUdevice device = 0;
    sp_cuda_context *made = NULL;
    sp_point point = {0};
    cu_load(cu_target);
    CHECK_CU(cu.DeviceGet(&device, 0));
    CHECK_CU(cu.PrimaryCtxRetain(&primary, device));
    sp_cuda_context_desc desc = cu_context_desc(primary);
    CHECK_STATUS(sp_cuda_context_create(&desc, &made), SP_OK);
    CHECK_CU(cu.CtxPushCurrent(primary));
    CUstream stream = cu_new_stream();
    CHECK_CU(cu.CtxPopCurrent(&primary));
    CHECK_STATUS(sp_cuda_stream_signal(made, stream, &point), SP_OK); /* none is current */
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_CU(cu.CtxPushCurrent(primary));
    CHECK_CU(cu.StreamDestroy(stream));
    CHECK_CU(cu.CtxPopCurrent(&primary));
    CHECK_CU(cu.PrimaryCtxRelease(device)); /* ends it: before ours */
    CHECK_STATUS(sp_poll(&point), SP_OK);
    sp_point_unref(&point);
    CHECK_STATUS(sp_cuda_context_destroy(made, PATIENCE_NS), SP_OK);
    if (cu_control)
        CHECK_EQUAL(cu_control->misuse(), 0);
}

TEST(what_cannot_be_opened)
{
    start();
    sp_cuda_context_desc desc = cu_context_desc(ctx.handle);
    check_refused(NULL, SP_ERROR_INVALID_ARGUMENT, NULL);
    CHECK_ERROR(sp_cuda_context_create(&desc, NULL), SP_ERROR_INVALID_ARGUMENT);
    desc.size--;
    check_refused(&desc, SP_ERROR_INVALID_ARGUMENT, "size");
    desc = cu_context_desc(ctx.handle);
    desc.library = "libsyncpoint-no-such-driver.so.7";
    check_refused(&desc, SP_ERROR_NOT_SUPPORTED, "libsyncpoint-no-such-driver.so.7");
    desc.library = CUDA_INCOMPLETE_PATH;
    check_refused(&desc, SP_ERROR_NOT_SUPPORTED, "cuEventRecord");
    finish();
}

TEST_NEEDING(old_drivers, ON_DOUBLE)
{
    start();
    sp_cuda_context_desc desc = cu_context_desc(ctx.handle);
    cu_control->set_version(10000);
    check_refused(&desc, SP_ERROR_NOT_SUPPORTED, "10.0");
    cu_control->inject("cuDriverGetVersion", 0, 1, 999);
    check_refused(&desc, SP_ERROR_NOT_SUPPORTED, "version");
    cu_control->heal();

    sp_cuda_context *made = NULL;
    sp_cuda_caps caps = {.size = sizeof(caps)};
    uint8_t handle[SP_CUDA_IPC_SIZE] = {0};
    sp_point unchanged = test_marked_point(), marked = test_marked_point();
    cu_control->set_version(11010);
    cu_control->set_attribute(41, 0); /* unified addressing */
    CHECK_STATUS(sp_cuda_context_create(&desc, &made), SP_OK);
    CHECK_STATUS(sp_cuda_context_caps(made, &caps), SP_OK);
    CHECK(caps.external_semaphore && !caps.timeline_semaphore && !caps.ipc_events);
    CHECK_ERROR(sp_cuda_stream_signal_ipc(made, ctx.stream, handle, &unchanged),
                SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_cuda_event_open_ipc(made, handle, &unchanged), SP_ERROR_NOT_SUPPORTED);
    CHECK(test_same_point(&unchanged, &marked));
    cu_peer peer;
    peer_init(&peer, true);
    const sp_cuda_semaphore_import_desc import = {
        .size = sizeof(import), .type = SP_CUDA_TIMELINE_FD, .fd = peer.fd};
    sp_cuda_semaphore *semaphore = NULL;
    CHECK_ERROR(sp_cuda_semaphore_import(made, &import, &semaphore), SP_ERROR_NOT_SUPPORTED);
    CHECK(!semaphore);
    peer_fini(&peer);
    CHECK_STATUS(sp_cuda_context_destroy(made, 0), SP_OK);
    finish();
}

TEST_NEEDING(every_step_of_creating_fails, ON_DOUBLE)
{
    static const struct {
        const char *name;
        int result;
        sp_status status;
    } steps[] = {
        {"cuCtxGetDevice", 999, SP_ERROR_BACKEND},
        {"cuCtxGetDevice", 700, SP_ERROR_DEVICE_LOST},
        {"cuCtxGetDevice", 2, SP_ERROR_OUT_OF_MEMORY},
    };
    start();
    sp_cuda_context_desc desc = cu_context_desc(ctx.handle);
    unsigned handles = census_open_handles();
    for (unsigned i = 0; i < COUNT_OF(steps); i++) {
        for (unsigned round = 0; round < 1000; round++) {
            cu_control->inject(steps[i].name, 0, 1, steps[i].result);
            check_refused(&desc, steps[i].status, steps[i].name);
            CHECK_EQUAL(cu_control->failed(), 1);
            CHECK_EQUAL(sp_last_error()->native_code, steps[i].result);
        }
    }
    CHECK_HANDLES(handles);
    CHECK_EQUAL(cu_control->capture_mode(), 0);
    finish();
}

/* ---- Arguments ---- */

#define REFUSED(call) CHECK_ERROR(call, SP_ERROR_INVALID_ARGUMENT)

TEST(bad_arguments_of_events)
{
    start();
    sp_point out = test_marked_point(), marked = test_marked_point();
    uint8_t handle[SP_CUDA_IPC_SIZE] = {0};
    sp_cuda_event_wrap_desc wrap = {.size = sizeof(wrap)};
    REFUSED(sp_cuda_stream_signal(NULL, ctx.stream, &out));
    REFUSED(sp_cuda_stream_signal(ctx.sp, ctx.stream, NULL));
    REFUSED(sp_cuda_stream_signal_ipc(NULL, ctx.stream, handle, &out));
    REFUSED(sp_cuda_stream_signal_ipc(ctx.sp, ctx.stream, NULL, &out));
    REFUSED(sp_cuda_stream_signal_ipc(ctx.sp, ctx.stream, handle, NULL));
    REFUSED(sp_cuda_event_open_ipc(NULL, handle, &out));
    REFUSED(sp_cuda_event_open_ipc(ctx.sp, NULL, &out));
    REFUSED(sp_cuda_event_open_ipc(ctx.sp, handle, NULL));
    REFUSED(sp_cuda_event_wrap(NULL, &wrap, &out));
    REFUSED(sp_cuda_event_wrap(ctx.sp, NULL, &out));
    REFUSED(sp_cuda_event_wrap(ctx.sp, &wrap, NULL));
    REFUSED(sp_cuda_event_wrap(ctx.sp, &wrap, &out)); /* no event */
    wrap.size++;
    REFUSED(sp_cuda_event_wrap(ctx.sp, &wrap, &out));
    REFUSED(sp_cuda_stream_wait(NULL, ctx.stream, &out));
    REFUSED(sp_cuda_stream_wait(ctx.sp, ctx.stream, NULL));
    REFUSED(sp_cuda_stream_wait(ctx.sp, ctx.stream, &out)); /* nothing made it */
    CHECK(test_same_point(&out, &marked));
    finish();
}

TEST(bad_arguments_of_semaphores)
{
    cu_peer peers[2];
    start();
    sp_point out = test_marked_point(), marked = test_marked_point();
    peer_init(&peers[0], true);
    peer_init(&peers[1], false);
    sp_cuda_semaphore *timeline = peer_import(&peers[0], NULL);
    sp_cuda_semaphore *binary = peer_import(&peers[1], NULL);
    REFUSED(sp_cuda_timeline_point(NULL, 1, &out));
    REFUSED(sp_cuda_timeline_point(timeline, 1, NULL));
    REFUSED(sp_cuda_timeline_point(timeline, UINT64_MAX, &out));
    REFUSED(sp_cuda_timeline_point(binary, 1, &out));
    REFUSED(sp_cuda_semaphore_point(NULL, &out));
    REFUSED(sp_cuda_semaphore_point(timeline, NULL));
    REFUSED(sp_cuda_semaphore_point(binary, &out));
    REFUSED(sp_cuda_binary_point(NULL, 0, 0, &out));
    REFUSED(sp_cuda_binary_point(binary, 0, 0, NULL));
    REFUSED(sp_cuda_binary_point(binary, 1, 0, &out));
    REFUSED(sp_cuda_binary_point(binary, 0, SP_POINT_BINARY, &out));
    REFUSED(sp_cuda_binary_point(timeline, 0, 0, &out));
    REFUSED(sp_cuda_stream_signal_semaphore(NULL, ctx.stream, timeline, 1, &out));
    REFUSED(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, NULL, 1, &out));
    REFUSED(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, timeline, UINT64_MAX, &out));
    REFUSED(sp_cuda_stream_signal_semaphore(ctx.sp, ctx.stream, binary, 1, &out));
    CHECK(test_same_point(&out, &marked));
    CHECK(sp_cuda_semaphore_ref(NULL) == NULL);
    sp_cuda_semaphore_unref(NULL);
    CHECK(sp_cuda_semaphore_handle(NULL) == NULL);
    CHECK(sp_cuda_semaphore_from_point(NULL) == NULL);
    sp_cuda_semaphore_unref(sp_cuda_semaphore_ref(binary));
    sp_cuda_semaphore_unref(timeline);
    sp_cuda_semaphore_unref(binary);
    finish();
    peer_fini(&peers[0]);
    peer_fini(&peers[1]);
}
