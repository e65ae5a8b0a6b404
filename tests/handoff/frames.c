/* SPDX-License-Identifier: MIT */
#include "frames.h"

#include <unistd.h>

vk_context producer;
sp_synchronizer *synchronizer;

void open_frames(void)
{
    start();
    vk_open_second(&producer, &vk);
    vk_open_library(&producer, NULL);
    const sp_host host = {
        .size = sizeof(host),
        .backend = SP_BACKEND_VULKAN,
        .queue = vk.sp_queue,
    };
    CHECK_STATUS(sp_synchronizer_create_vulkan(&host, &synchronizer), SP_OK);
}

void close_frames(void)
{
    hook_heal();
    vk_finish(&producer);
    vk_finish(&vk);
    CHECK_STATUS(sp_synchronizer_destroy(synchronizer, PATIENCE_NS), SP_OK);
    synchronizer = NULL;
    vk_close_library(&vk);
    CHECK_EQUAL(hook_calls(HOOK_QueueWaitIdle), 0);
    CHECK_EQUAL(hook_calls(HOOK_DeviceWaitIdle), 0);
    CHECK_EQUAL(hook_live_semaphores(), 0);
    vk_close(&producer);
    vk_close(&vk);
}

sp_frame make_frame(void)
{
    sp_vk_semaphore *semaphore = make_exportable(&producer);
    sp_frame frame = {
        .size = sizeof(frame),
        .kind = SP_FRAME_VULKAN_OPAQUE_FD,
        .semaphore_fd = export_fd(semaphore),
    };
    CHECK_STATUS(sp_vk_queue_signal_semaphore(producer.sp_queue, semaphore, 0, NULL), SP_OK);
    sp_vk_semaphore_unref(semaphore);
    return frame;
}

void drop_frame(sp_frame *frame)
{
    CHECK(census_is_open(frame->semaphore_fd));
    close(frame->semaphore_fd);
    frame->semaphore_fd = -1;
}

sp_status complete(const sp_frame *frame)
{
    return sp_synchronizer_producer_complete(synchronizer, frame,
                                             SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE);
}

sp_point last_gate(void)
{
    sp_point gate = {0};
    CHECK_STATUS(sp_synchronizer_last_gate(synchronizer, &gate), SP_OK);
    return gate;
}
