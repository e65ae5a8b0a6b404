/* SPDX-License-Identifier: MIT */
#include "conformance.h"

#define MAX_TARGETS 64

const fixture *fx;

static test_target targets[MAX_TARGETS];

static size_t append(size_t count, const test_target *list)
{
    for (; list->name; list++)
        targets[count++] = *list;
    return count;
}

static void setup(const test_target *target)
{
    fx = target->user;
    fx->setup(fx->user);
}

static void teardown(void)
{
    fx->teardown();
    if (fx->alive)
        CHECK_EQUAL(fx->alive(), 0);
}

int main(int argc, char **argv)
{
    size_t count = append(0, host_targets);
    count = append(count, custom_targets);
    count = append(count, fd_targets);
#ifdef SP_TEST_VULKAN
    count = append(count, vulkan_targets);
#endif
#ifdef SP_TEST_OPENCL
    count = append(count, opencl_targets);
#endif
#ifdef SP_TEST_CUDA
    count = append(count, cuda_targets);
#endif
#ifdef SP_TEST_OPENGL
    count = append(count, opengl_targets);
#endif
    return test_main(
        argc, argv,
        &(test_program){
            .targets = targets, .target_count = count, .setup = setup, .teardown = teardown});
}

void release_points(sp_point *points, size_t count)
{
    for (size_t i = 0; i < count; i++)
        sp_point_unref(&points[i]);
}

static void send(void *user)
{
    late_signal *late = user;
    flag_set(&late->sent);
    fx->signal(late->number);
}

void signal_late(late_signal *late, uint64_t number)
{
    late->number = number;
    late->sent.set = 0;
    worker_start(&late->worker, DELAY_MS, send, late);
}
