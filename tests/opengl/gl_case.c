/* SPDX-License-Identifier: MIT */
#include "gl_case.h"

#include <unistd.h>

const gl_options *options;
gl_context gl, helper;
sp_gl_context *context;

static PFNEGLGETPROCADDRESSPROC hooked;
static bool has_helper;

static void setup(const test_target *target)
{
    options = target->user;
}

int main(int argc, char **argv)
{
    return test_main(
        argc, argv,
        &(test_program){.targets = gl_targets, .target_count = gl_target_count, .setup = setup});
}

/* ---- Beginning and end ---- */

void open_gl(void)
{
    gl_open(&gl, options);
    hooked = gl_hook_install(gl.get_proc_address);
}

void with_helper(void)
{
    gl_open_second(&helper, &gl, true);
    has_helper = true;
}

sp_gl_context_desc context_desc(void)
{
    sp_gl_context_desc desc = gl_context_desc(&gl, hooked);
    if (has_helper) {
        desc.helper_enter = gl_helper_enter;
        desc.helper_leave = gl_helper_leave;
        desc.helper_user = &helper;
    }
    return desc;
}

void open_library(void)
{
    sp_gl_context_desc desc = context_desc();
    CHECK_STATUS(sp_gl_context_create(&desc, &context), SP_OK);
}

sp_gl_context *open_sharing(gl_context *native)
{
    sp_gl_context *made = NULL;
    sp_gl_context_desc desc = context_desc();
    desc.share = context;
    gl_open_second(native, &gl, true);
    gl_make_current(native);
    CHECK_STATUS(sp_gl_context_create(&desc, &made), SP_OK);
    return made;
}

void start(void)
{
    open_gl();
    open_library();
}

void start_plays(void)
{
    open_gl();
    gl_play_install();
    open_library();
}

void start_with_glsyncs(bool helped)
{
    open_gl();
    gl_hook_hide_extensions(" EGL_KHR_fence_sync ");
    gl_hook_set_versions(NULL, "1.4");
    if (helped)
        with_helper();
    open_library();
}

void close_library(void)
{
    gl_hook_heal();
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
    context = NULL;
    CHECK_EQUAL(gl_hook_live_syncs(), 0);
    CHECK_EQUAL(gl_hook_live_semaphores(), 0);
    CHECK_EQUAL(gl_helper_wrong, 0);
    CHECK_EQUAL(gl_play_wrong(), 0);
}

void close_gl(void)
{
    if (has_helper)
        gl_close(&helper);
    if (!gl_is_current(&gl))
        gl_make_current(&gl);
    CHECK_EQUAL(gl.call.GetError(), GL_NO_ERROR);
    gl_close(&gl);
}

void finish(void)
{
    close_library();
    close_gl();
}

/* ---- Short forms ---- */

sp_point signal_point(void)
{
    sp_point point = {0};
    CHECK_STATUS(sp_gl_context_signal(context, 0, &point), SP_OK);
    return point;
}

sp_gl_semaphore_import_desc import_desc(sp_gl_semaphore_type type, int fd)
{
    bool fence = type == SP_GL_SEMAPHORE_D3D12_FENCE;
    return (sp_gl_semaphore_import_desc){
        .size = sizeof(sp_gl_semaphore_import_desc),
        .type = type,
        .handle_type = fence ? SP_GL_HANDLE_D3D12_FENCE : SP_GL_HANDLE_OPAQUE_FD,
        .fd = fence ? 0 : fd,
        .handle = fence ? &gl : NULL,
    };
}

sp_gl_semaphore *import_played(sp_gl_semaphore_type type, gl_play_semaphore *payload)
{
    sp_gl_semaphore *made = NULL;
    int fd = gl_play_fd();
    const sp_gl_semaphore_import_desc desc = import_desc(type, fd);
    gl_play_next_import(payload);
    CHECK_STATUS(sp_gl_semaphore_import(context, &desc, &made), SP_OK);
    close(fd);
    return made;
}

sp_point binary_point(sp_gl_semaphore *binary, uint32_t flags)
{
    sp_point point = {0};
    CHECK_STATUS(sp_gl_binary_point(binary, flags, &point), SP_OK);
    return point;
}

sp_point value_point(sp_gl_semaphore *semaphore, uint64_t value)
{
    sp_point point = {0};
    CHECK_STATUS(sp_gl_timeline_point(semaphore, value, &point), SP_OK);
    return point;
}

sp_point signal_semaphore(sp_gl_semaphore *semaphore, uint64_t value)
{
    sp_point point = {0};
    CHECK_STATUS(sp_gl_context_signal_semaphore(context, semaphore, value, NULL, &point), SP_OK);
    return point;
}

void run_elsewhere(void (*run)(void *user), void *user)
{
    worker other;
    worker_start(&other, 0, run, user);
    worker_join(&other);
}

/* ---- Late signals ---- */

static void send_late(void *user)
{
    late_signal *self = user;
    flag_set(&self->sent);
    gl_play_signal(self->payload, self->value);
}

void signal_late(late_signal *self, gl_play_semaphore *payload, uint64_t value)
{
    *self = (late_signal){.payload = payload, .value = value};
    worker_start(&self->worker, DELAY_MS, send_late, self);
}

void join_not_early(late_signal *self)
{
    CHECK(flag_is_set(&self->sent));
    worker_join(&self->worker);
}
