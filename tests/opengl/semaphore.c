/* SPDX-License-Identifier: MIT
 *
 * OpenGL: semaphores of a Vulkan device on the same driver, in both directions. Copies whose result
 * can be looked at show that a consumer waits, and that it does not go on while the signal is
 * withheld.
 */
#include "gl_case.h"
#include "support/vk_fixture.h"

#include <fcntl.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

static vk_context vk;

static void start_both(bool helped)
{
    const vk_options vulkan = {.driver = gl_vulkan_driver(options)};
    open_gl();
    if (helped)
        with_helper();
    open_library();
    vk_open(&vk, &vulkan);
    vk_open_library(&vk, NULL);
}

/* OpenGL first: NVIDIA's is out of order once Vulkan's instance is gone. */
static void finish_both(void)
{
    vk_finish(&vk);
    close_library();
    close_gl();
    vk_close(&vk);
}

/* ---- One payload, two sides ---- */

typedef struct shared_binary {
    sp_vk_semaphore *vulkan;
    sp_gl_semaphore *opengl;
    int fd;
} shared_binary;

static shared_binary make_shared(vk_context *on)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .export_types = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    shared_binary made = {.fd = -1};
    CHECK_STATUS(sp_vk_semaphore_create(on->sp_device, &desc, &made.vulkan), SP_OK);
    CHECK_STATUS(sp_vk_semaphore_export(made.vulkan,
                                        VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT, &made.fd),
                 SP_OK);
    const sp_gl_semaphore_import_desc import = import_desc(SP_GL_SEMAPHORE_BINARY, made.fd);
    CHECK_STATUS(sp_gl_semaphore_import(context, &import, &made.opengl), SP_OK);
    CHECK(census_is_open(made.fd));
    return made;
}

static void drop_shared(shared_binary *self)
{
    close(self->fd);
    sp_gl_semaphore_unref(self->opengl);
    sp_vk_semaphore_unref(self->vulkan);
}

static void vulkan_signals(vk_context *on, const shared_binary *self)
{
    CHECK_STATUS(sp_vk_queue_signal_semaphore(on->sp_queue, self->vulkan, 0, NULL), SP_OK);
}

static sp_point vulkan_waits(vk_context *on, const shared_binary *self)
{
    sp_point point = {0};
    CHECK_STATUS(sp_vk_binary_point(self->vulkan, 0, &point), SP_OK);
    CHECK_STATUS(sp_vk_queue_wait(on->sp_queue, &point), SP_OK);
    return point;
}

/* ANGLE puts the end of objects off until work that was submitted later is done. */
static void let_driver_clean_up(void)
{
    for (unsigned i = 0; i < 3; i++) {
        gl_copy copy;
        gl_copy_init(&copy, &gl);
        gl_copy_submit(&copy);
        CHECK(gl.call.ClientWaitSync(copy.fence, 0, PATIENCE_NS) != GL_WAIT_FAILED);
        gl_copy_fini(&copy);
        gl.call.Finish();
    }
}

/* ---- What is withheld ---- */

/* Opens the gate, DELAY_MS from now, and on another thread: NVIDIA's driver holds the flush behind a
 * wait up until the signal is there, and after 12 s goes on without: no case may leave it out. */
typedef struct late_open {
    worker worker;
    vk_gate *gate;
    gl_copy *gl;     /* if set: the copy that is withheld until then, */
    vk_copy *vulkan; /* or this one; its source is written then       */
    uint32_t seed;
    flag sent;
} late_open;

static void open_late(void *user)
{
    late_open *self = user;
    if (self->gl) {
        CHECK_GL_UNWRITTEN(self->gl);
        gl_copy_produce(self->gl, self->seed);
    }
    if (self->vulkan) {
        CHECK_UNWRITTEN(self->vulkan);
        vk_copy_produce(self->vulkan, self->seed);
    }
    flag_set(&self->sent);
    vk_gate_open_all(self->gate);
}

static void start_opening(late_open *late)
{
    worker_start(&late->worker, DELAY_MS, open_late, late);
}

/* Not, or not before it was sent. */
static void check_not_early(sp_status status, sp_status not_yet, const flag *sent)
{
    if (status == not_yet)
        return;
    CHECK_STATUS(status, SP_OK);
    CHECK(flag_is_set(sent));
}

/* ---- Device to device ---- */

TEST_NEEDING(O3_vulkan_gates_a_copy_of_gl, WITH_GL_SEMAPHORES)
{
    enum { ROUNDS = 4 };
    vk_gate gate;
    start_both(false);
    vk_gate_init(&gate, &vk);
    shared_binary shared = make_shared(&vk);
    for (unsigned i = 0; i < ROUNDS; i++) {
        gl_copy copy;
        gl_copy_init(&copy, &gl);
        vk_gate_close(&gate);
        vulkan_signals(&vk, &shared);
        sp_point point = binary_point(shared.opengl, 0);
        late_open late = {.gate = &gate, .gl = &copy, .seed = 1000 + i};
        start_opening(&late);
        CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
        gl_copy_submit(&copy);
        check_not_early(sp_poll(&point), SP_PENDING, &late.sent);
        CHECK(gl_copy_arrives(&copy, 1000 + i));
        CHECK_STATUS(sp_wait(&point), SP_OK);
        worker_join(&late.worker);
        sp_point_unref(&point);
        gl_copy_fini(&copy);
    }
    drop_shared(&shared);
    vk_gate_fini(&gate);
    finish_both();
}

/* Vulkan holds GL's stream up, GL signals behind that, and another Vulkan device waits for GL. */
TEST_NEEDING(O3_gl_gates_a_copy_of_vulkan, WITH_GL_SEMAPHORES)
{
    enum { ROUNDS = 4 };
    vk_gate gate;
    vk_context consumer;
    start_both(false);
    vk_open_second(&consumer, &vk);
    vk_open_library(&consumer, NULL);
    vk_gate_init(&gate, &vk);
    shared_binary hold = make_shared(&vk), shared = make_shared(&consumer);
    for (unsigned i = 0; i < ROUNDS; i++) {
        vk_copy copy;
        vk_copy_init(&copy, &consumer);
        vk_gate_close(&gate);
        vulkan_signals(&vk, &hold);
        sp_point held = binary_point(hold.opengl, 0);
        late_open late = {.gate = &gate, .vulkan = &copy, .seed = 2000 + i};
        start_opening(&late);
        CHECK_STATUS(sp_gl_context_wait(context, &held, NULL), SP_OK);
        CHECK_STATUS(sp_gl_context_signal_semaphore(context, shared.opengl, 0, NULL, NULL), SP_OK);
        sp_point waited = vulkan_waits(&consumer, &shared);
        vk_copy_submit(&copy);
        CHECK_STATUS(sp_wait(&waited), SP_OK);
        worker_join(&late.worker);
        sp_point_unref(&waited);
        sp_point_unref(&held);
        vk_copy_fini(&copy);
    }
    drop_shared(&hold);
    drop_shared(&shared);
    vk_gate_fini(&gate);
    vk_close(&consumer);
    finish_both();
}

/* ---- The host waits ---- */

static void check_host_wait(shared_binary *shared, vk_gate *gate)
{
    late_open late = {.gate = gate};
    vk_gate_close(gate);
    vulkan_signals(&vk, shared);
    sp_point point = binary_point(shared->opengl, 0);
    CHECK_STATUS(sp_poll(&point), SP_PENDING);
    start_opening(&late);
    check_not_early(sp_wait_timeout(&point, 5 * MS), SP_TIMEOUT, &late.sent);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK(flag_is_set(&late.sent));
    worker_join(&late.worker);
    sp_point_unref(&point);
}

TEST_NEEDING(host_waits_for_vulkan, WITH_GL_SEMAPHORES)
{
    vk_gate gate;
    start_both(false);
    vk_gate_init(&gate, &vk);
    shared_binary shared = make_shared(&vk);
    for (unsigned i = 0; i < 5; i++)
        check_host_wait(&shared, &gate);
    drop_shared(&shared);
    vk_gate_fini(&gate);
    finish_both();
}

static vk_gate other_gate;

static void wait_elsewhere(void *user)
{
    check_host_wait(user, &other_gate);
    CHECK(gl.egl.GetCurrentContext() == EGL_NO_CONTEXT);
}

TEST_NEEDING(host_waits_through_the_helper, WITH_GL_SEMAPHORES)
{
    start_both(true);
    vk_gate_init(&other_gate, &vk);
    shared_binary shared = make_shared(&vk);
    for (unsigned i = 0; i < 5; i++)
        run_elsewhere(wait_elsewhere, &shared);
    CHECK(gl_helper_entered > 0);
    drop_shared(&shared);
    vk_gate_fini(&other_gate);
    finish_both();
}

TEST_NEEDING(host_waits_for_a_signal_of_gl, WITH_GL_SEMAPHORES)
{
    start_both(false);
    shared_binary shared = make_shared(&vk);
    for (unsigned i = 0; i < 20; i++) {
        sp_point point = signal_semaphore(shared.opengl, 0);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
    }
    drop_shared(&shared);
    finish_both();
}

/* Back and forth many times, each side waiting for the other on the device. */
TEST_NEEDING(back_and_forth, WITH_GL_SEMAPHORES)
{
    start_both(false);
    shared_binary there = make_shared(&vk), back = make_shared(&vk);
    for (unsigned i = 0; i < 200; i++) {
        vulkan_signals(&vk, &there);
        sp_point point = binary_point(there.opengl, 0);
        CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
        sp_point_unref(&point);
        CHECK_STATUS(sp_gl_context_signal_semaphore(context, back.opengl, 0, NULL, NULL), SP_OK);
        sp_point waited = vulkan_waits(&vk, &back);
        CHECK_STATUS(sp_wait(&waited), SP_OK);
        sp_point_unref(&waited);
    }
    drop_shared(&there);
    drop_shared(&back);
    finish_both();
}

/* ---- Handles ---- */

static sp_status import_once(int fd, bool adopt)
{
    sp_gl_semaphore *made = NULL;
    sp_gl_semaphore_import_desc desc = import_desc(SP_GL_SEMAPHORE_BINARY, fd);
    desc.adopt = adopt;
    sp_status status = sp_gl_semaphore_import(context, &desc, &made);
    CHECK((made != NULL) == (status == SP_OK));
    sp_gl_semaphore_unref(made);
    return status;
}

TEST_NEEDING(H2_the_same_fd_twice, WITH_GL_SEMAPHORES)
{
    start_both(false);
    shared_binary shared = make_shared(&vk);
    unsigned open = census_open_handles();
    for (unsigned i = 0; i < 200; i++) /* NVIDIA refuses the 254th of one payload */
        CHECK_STATUS(import_once(shared.fd, false), SP_OK);
    let_driver_clean_up();
    CHECK_HANDLES(open);
    int copy = dup(shared.fd);
    CHECK_STATUS(import_once(copy, true), SP_OK);
    CHECK(!census_is_open(copy));
    let_driver_clean_up();
    CHECK_HANDLES(open);
    vulkan_signals(&vk, &shared);
    sp_point point = binary_point(shared.opengl, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    drop_shared(&shared);
    finish_both();
}

TEST_NEEDING(H5_what_is_no_semaphore, WITH_GL_SEMAPHORES)
{
    start_both(false);
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    const int fds[] = {eventfd(0, EFD_CLOEXEC),
                       memfd_create("something", MFD_CLOEXEC),
                       pipes[0],
                       open("/dev/null", O_RDONLY | O_CLOEXEC),
                       open("/", O_RDONLY | O_CLOEXEC),
                       0,
                       -1,
                       -2,
                       INT32_MAX,
                       census_free_number()};
    unsigned open = census_open_handles();
    for (unsigned round = 0; round < 100; round++) {
        unsigned before = gl_hook_calls(GL_HOOK_glImportSemaphoreFdEXT);
        for (unsigned i = 0; i < COUNT_OF(fds); i++)
            CHECK_ERROR(import_once(fds[i], true), SP_ERROR_INVALID_HANDLE);
        CHECK_EQUAL(gl_hook_calls(GL_HOOK_glImportSemaphoreFdEXT), before);
    }
    CHECK_HANDLES(open);
    for (unsigned i = 0; i < 5; i++)
        CHECK(close(fds[i]) == 0); /* still ours */
    close(pipes[1]);
    shared_binary shared = make_shared(&vk); /* the context is unharmed */
    vulkan_signals(&vk, &shared);
    sp_point point = binary_point(shared.opengl, 0);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    sp_point_unref(&point);
    drop_shared(&shared);
    finish_both();
}

TEST_NEEDING(H1_each_step_of_an_import_fails_on_a_driver, WITH_GL_SEMAPHORES)
{
    start_both(false);
    shared_binary shared = make_shared(&vk);
    unsigned steps = gl_hook_steps();
    CHECK_STATUS(import_once(shared.fd, false), SP_OK);
    steps = gl_hook_steps() - steps;
    CHECK(steps >= 2);
    let_driver_clean_up();
    unsigned open = census_open_handles(), live = gl_hook_live_semaphores();
    for (unsigned step = 0; step < steps; step++) {
        for (unsigned i = 0; i < 1000; i++) {
            gl_hook_fail_step(i % 2 ? GL_HOOK_NO_MEMORY : GL_HOOK_INVALID, step);
            CHECK(import_once(shared.fd, true) < 0);
            gl_hook_heal();
        }
        let_driver_clean_up();
        CHECK_HANDLES(open);
        CHECK_EQUAL(gl_hook_live_semaphores(), live);
        CHECK(census_is_open(shared.fd));
    }
    CHECK_STATUS(import_once(shared.fd, false), SP_OK);
    let_driver_clean_up();
    CHECK_HANDLES(open);
    drop_shared(&shared);
    finish_both();
}

TEST_NEEDING(H1_no_free_number, WITH_GL_SEMAPHORES)
{
    struct rlimit limit, tight;
    start_both(false);
    shared_binary shared = make_shared(&vk);
    let_driver_clean_up();
    unsigned open = census_open_handles();
    getrlimit(RLIMIT_NOFILE, &limit);
    tight = limit;
    tight.rlim_cur = (rlim_t)census_free_number();
    setrlimit(RLIMIT_NOFILE, &tight);
    for (unsigned i = 0; i < 1000; i++)
        CHECK_ERROR(import_once(shared.fd, false), SP_ERROR_SYSTEM);
    setrlimit(RLIMIT_NOFILE, &limit);
    let_driver_clean_up();
    CHECK_HANDLES(open);
    CHECK_STATUS(import_once(shared.fd, false), SP_OK);
    drop_shared(&shared);
    finish_both();
}

/* ---- Released elsewhere ---- */

static void drop_elsewhere(void *user)
{
    sp_gl_semaphore_unref(user);
}

TEST_NEEDING(released_on_a_thread_without_the_context, WITH_GL_SEMAPHORES)
{
    start_both(false);
    shared_binary shared = make_shared(&vk);
    sp_gl_semaphore_ref(shared.opengl);
    run_elsewhere(drop_elsewhere, shared.opengl);
    CHECK_EQUAL(gl_hook_live_semaphores(), 1);
    run_elsewhere(drop_elsewhere, shared.opengl);
    shared.opengl = NULL;
    CHECK_EQUAL(gl_hook_live_semaphores(), 1); /* retired */
    CHECK_STATUS(sp_gl_context_collect(context), SP_OK);
    CHECK_EQUAL(gl_hook_live_semaphores(), 0);
    drop_shared(&shared);
    finish_both();
}

/* A wait of ours may still be in the stream when the last point goes. */
TEST_NEEDING(released_while_a_wait_is_pending, WITH_GL_SEMAPHORES)
{
    vk_gate gate;
    start_both(false);
    vk_gate_init(&gate, &vk);
    for (unsigned i = 0; i < 5; i++) {
        shared_binary shared = make_shared(&vk);
        vk_gate_close(&gate);
        vulkan_signals(&vk, &shared);
        sp_point point = binary_point(shared.opengl, 0);
        late_open late = {.gate = &gate};
        start_opening(&late);
        CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
        sp_point_unref(&point);
        drop_shared(&shared);
        CHECK_EQUAL(gl_hook_live_semaphores(), 0);
        sp_point fence = signal_point();
        check_not_early(sp_wait_timeout(&fence, 5 * MS), SP_TIMEOUT, &late.sent);
        CHECK_STATUS(sp_wait(&fence), SP_OK);
        worker_join(&late.worker);
        sp_point_unref(&fence);
    }
    vk_gate_fini(&gate);
    finish_both();
}

/* ---- Timelines ---- */

typedef struct shared_timeline {
    sp_vk_semaphore *vulkan;
    sp_gl_semaphore *opengl;
} shared_timeline;

static shared_timeline make_timelines(void)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_TIMELINE,
        .export_types = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    shared_timeline made = {0};
    int fd = -1;
    CHECK_STATUS(sp_vk_semaphore_create(vk.sp_device, &desc, &made.vulkan), SP_OK);
    CHECK_STATUS(
        sp_vk_semaphore_export(made.vulkan, VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT, &fd),
        SP_OK);
    sp_gl_semaphore_import_desc import = import_desc(SP_GL_SEMAPHORE_TIMELINE, fd);
    import.adopt = true;
    CHECK_STATUS(sp_gl_semaphore_import(context, &import, &made.opengl), SP_OK);
    return made;
}

/* As late_open, by the host. */
typedef struct late_value {
    worker worker;
    sp_vk_semaphore *semaphore;
    uint64_t value;
    gl_copy *copy; /* if set: withheld until then */
    uint32_t seed;
    flag sent;
} late_value;

static void send_value(void *user)
{
    late_value *self = user;
    if (self->copy) {
        CHECK_STATUS(sp_vk_semaphore_signal(self->semaphore, self->value - 1), SP_OK);
        CHECK_GL_UNWRITTEN(self->copy); /* that was not enough */
        gl_copy_produce(self->copy, self->seed);
    }
    flag_set(&self->sent);
    CHECK_STATUS(sp_vk_semaphore_signal(self->semaphore, self->value), SP_OK);
}

static void start_sending(late_value *late)
{
    worker_start(&late->worker, DELAY_MS, send_value, late);
}

TEST_NEEDING(timeline_vulkan_gates_gl, WITH_GL_TIMELINES)
{
    start_both(false);
    shared_timeline shared = make_timelines();
    for (unsigned i = 1; i <= 4; i++) {
        gl_copy copy;
        gl_copy_init(&copy, &gl);
        sp_point point = value_point(shared.opengl, 2 * i);
        late_value late = {
            .semaphore = shared.vulkan, .value = 2 * i, .copy = &copy, .seed = 3000 + i};
        start_sending(&late);
        CHECK_STATUS(sp_gl_context_wait(context, &point, NULL), SP_OK);
        gl_copy_submit(&copy);
        CHECK(gl_copy_arrives(&copy, 3000 + i));
        CHECK_STATUS(sp_wait(&point), SP_OK);
        worker_join(&late.worker);
        sp_point_unref(&point);
        gl_copy_fini(&copy);
    }
    sp_gl_semaphore_unref(shared.opengl);
    sp_vk_semaphore_unref(shared.vulkan);
    finish_both();
}

TEST_NEEDING(timeline_gl_signals_vulkan, WITH_GL_TIMELINES)
{
    start_both(false);
    shared_timeline shared = make_timelines();
    for (unsigned i = 1; i <= 50; i++) {
        sp_point there = {0}, here = signal_semaphore(shared.opengl, 3 * i);
        CHECK_STATUS(sp_vk_timeline_point(shared.vulkan, 3 * i, &there), SP_OK);
        CHECK_STATUS(sp_wait(&there), SP_OK);
        CHECK_STATUS(sp_wait(&here), SP_OK);
        sp_point_unref(&there);
        sp_point_unref(&here);
    }
    sp_gl_semaphore_unref(shared.opengl);
    sp_vk_semaphore_unref(shared.vulkan);
    finish_both();
}

TEST_NEEDING(timeline_host_waits_through_the_helper, WITH_GL_TIMELINES)
{
    start_both(true);
    shared_timeline shared = make_timelines();
    for (unsigned i = 1; i <= 5; i++) {
        late_value late = {.semaphore = shared.vulkan, .value = i};
        sp_point point = value_point(shared.opengl, i);
        start_sending(&late);
        check_not_early(sp_wait_timeout(&point, 2 * MS), SP_TIMEOUT, &late.sent);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        CHECK(flag_is_set(&late.sent));
        worker_join(&late.worker);
        sp_point_unref(&point);
    }
    sp_gl_semaphore_unref(shared.opengl);
    sp_vk_semaphore_unref(shared.vulkan);
    finish_both();
}
