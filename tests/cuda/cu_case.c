/* SPDX-License-Identifier: MIT */
#include "cu_case.h"

cu_context ctx;
cu_word gate;

void start(void)
{
    cu_load(cu_target);
    cu_open(&ctx, 0);
    cu_word_init(&gate);
}

void finish(void)
{
    gate_open(UINT32_MAX / 4); /* the comparison is of the signed difference */
    if (!ctx.broken)
        CHECK_CU(cu.StreamSynchronize(ctx.stream));
    cu_close(&ctx);
    if (cu_control) {
        cu_word_fini(&gate); /* on the driver it went with the context */
        CHECK_EQUAL(cu_control->live(CUDA_DOUBLE_EVENT), 0);
        CHECK_EQUAL(cu_control->live(CUDA_DOUBLE_STREAM), 0);
        CHECK_EQUAL(cu_control->live(CUDA_DOUBLE_SEMAPHORE), 0);
    }
}

void gate_close(CUstream stream, uint32_t value)
{
    cu_word_await(&gate, stream, value);
}

void gate_open(uint32_t value)
{
    cu_word_set(&gate, value);
}

static void send(void *user)
{
    late_open *late = user;
    flag_set(&late->sent);
    gate_open(late->value);
}

void open_late(late_open *late, uint32_t value)
{
    *late = (late_open){.value = value};
    worker_start(&late->worker, DELAY_MS, send, late);
}

void join_not_early(late_open *late)
{
    CHECK(flag_is_set(&late->sent));
    worker_join(&late->worker);
}

sp_point stream_point(CUstream stream)
{
    sp_point point = {0};
    CHECK_STATUS(sp_cuda_stream_signal(ctx.sp, stream, &point), SP_OK);
    return point;
}

unsigned calls(const char *name)
{
    return cu_control->calls(name);
}
