/* SPDX-License-Identifier: MIT */
#include "vk_case.h"

const vk_options *options;
vk_context vk;

static void setup(const test_target *target)
{
    options = target->user;
}

int main(int argc, char **argv)
{
    return test_main(argc, argv,
                     &(test_program){.targets = vk_targets,
                                     .target_count = vk_target_count,
                                     .setup = setup,
                                     .teardown = vk_check_validation});
}

void start(void)
{
    vk_open(&vk, options);
    vk_open_library(&vk, hook_install(vk.get_instance_proc_addr));
}

void finish(void)
{
    hook_heal();
    vk_finish(&vk);
    vk_close_library(&vk);
    CHECK_EQUAL(hook_calls(HOOK_QueueWaitIdle), 0);
    CHECK_EQUAL(hook_calls(HOOK_DeviceWaitIdle), 0);
    CHECK_EQUAL(hook_live_semaphores(), 0);
    vk_close(&vk);
}

static sp_vk_semaphore *make(vk_context *on, VkSemaphoreType type, uint64_t initial,
                             VkExternalSemaphoreHandleTypeFlags export_types)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof(desc),
        .type = type,
        .initial_value = initial,
        .export_types = export_types,
    };
    sp_vk_semaphore *made = NULL;
    CHECK_STATUS(sp_vk_semaphore_create(on->sp_device, &desc, &made), SP_OK);
    return made;
}

sp_vk_semaphore *make_timeline(uint64_t initial)
{
    return make(&vk, VK_SEMAPHORE_TYPE_TIMELINE, initial, 0);
}

sp_vk_semaphore *make_binary(void)
{
    return make(&vk, VK_SEMAPHORE_TYPE_BINARY, 0, 0);
}

sp_vk_semaphore *make_exportable(vk_context *on)
{
    return make(on, VK_SEMAPHORE_TYPE_BINARY, 0, VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT);
}

sp_vk_semaphore *wrap(VkSemaphore semaphore, VkSemaphoreType type, bool take)
{
    const sp_vk_semaphore_wrap_desc desc = {
        .size = sizeof(desc),
        .semaphore = semaphore,
        .type = type,
        .take = take,
    };
    sp_vk_semaphore *made = NULL;
    CHECK_STATUS(sp_vk_semaphore_wrap(vk.sp_device, &desc, &made), SP_OK);
    return made;
}

sp_point timeline_point(sp_vk_semaphore *timeline, uint64_t value)
{
    sp_point point = {0};
    CHECK_STATUS(sp_vk_timeline_point(timeline, value, &point), SP_OK);
    return point;
}

sp_point binary_point(sp_vk_semaphore *binary, uint32_t flags)
{
    sp_point point = {0};
    CHECK_STATUS(sp_vk_binary_point(binary, flags, &point), SP_OK);
    return point;
}

sp_point queue_signals(sp_vk_semaphore *semaphore, uint64_t value)
{
    sp_point point = {0};
    CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, semaphore, value, &point), SP_OK);
    return point;
}

uint64_t value_of(sp_vk_semaphore *timeline)
{
    uint64_t value = UINT64_MAX;
    CHECK_STATUS(sp_vk_semaphore_value(timeline, &value), SP_OK);
    return value;
}

int export_fd(sp_vk_semaphore *semaphore)
{
    int fd = -1;
    CHECK_STATUS(
        sp_vk_semaphore_export(semaphore, VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT, &fd),
        SP_OK);
    CHECK(census_is_open(fd));
    return fd;
}

sp_vk_semaphore *import_fd(vk_context *into, int fd, bool temporary)
{
    const sp_vk_semaphore_import_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .handle_type = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
        .fd = fd,
        .temporary = temporary,
    };
    sp_vk_semaphore *made = NULL;
    CHECK_STATUS(sp_vk_semaphore_import(into->sp_device, &desc, &made), SP_OK);
    return made;
}

unsigned submits(void)
{
    return hook_calls(HOOK_QueueSubmit) + hook_calls(HOOK_QueueSubmit2);
}

static void send(void *user)
{
    late_host_signal *late = user;
    flag_set(&late->sent);
    CHECK_STATUS(sp_vk_semaphore_signal(late->timeline, late->value), SP_OK);
}

void signal_late(late_host_signal *late, sp_vk_semaphore *timeline, uint64_t value)
{
    *late = (late_host_signal){.timeline = timeline, .value = value};
    worker_start(&late->worker, DELAY_MS, send, late);
}

void join_not_early(late_host_signal *late)
{
    CHECK(flag_is_set(&late->sent));
    worker_join(&late->worker);
}
