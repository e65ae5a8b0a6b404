/* SPDX-License-Identifier: MIT
 *
 * OpenGL's fences and semaphores on each driver.
 *
 * egl-sync, gl-sync: fences of the driver's. No software driver lets a test withhold one, so the
 * double of doubles/gl_hook.h withholds each until the fixture signals, then hands over to the
 * driver. Threads without the context reach a GLsync through the helper.
 *
 * gl-binary: signalled by Vulkan, on a queue that the fixture opens bit by bit. A wait uses the
 * signal up in the helper's stream, so it notices only once all that was waited for before is done,
 * and a poll alone never does.
 *
 * gl-timeline: as gl-binary, with values; where no driver has them, played by doubles/gl_play.h.
 */
#include "conformance.h"
#include "doubles/gl_play.h"
#include "support/vk_fixture.h"

#include <unistd.h>

#define MAX_NUMBER 8192

typedef struct gl_fixture_options {
    gl_options gl;
    bool glsyncs;
    bool played;
} gl_fixture_options;

static const gl_fixture_options *with;
static gl_context gl, helper;
static sp_gl_context *context;
static bool lost;

static void open_context(void)
{
    sp_gl_context_desc desc;
    PFNEGLGETPROCADDRESSPROC hooked = gl_hook_install(gl.get_proc_address);
    if (with->glsyncs) {
        gl_hook_hide_extensions(" EGL_KHR_fence_sync ");
        gl_hook_set_versions(NULL, "1.4");
    }
    if (with->played)
        gl_play_install();
    desc = gl_context_desc(&gl, hooked);
    desc.helper_enter = gl_helper_enter;
    desc.helper_leave = gl_helper_leave;
    desc.helper_user = &helper;
    CHECK_STATUS(sp_gl_context_create(&desc, &context), SP_OK);
}

static void open_gl(const void *user)
{
    with = user;
    lost = false;
    gl_open(&gl, &with->gl);
    gl_open_second(&helper, &gl, true);
    open_context();
}

static void close_gl(void)
{
    CHECK_STATUS(sp_gl_context_destroy(context), SP_OK);
    CHECK_EQUAL(gl_helper_wrong, 0);
    gl_close(&helper);
    gl_close(&gl);
}

/* GL objects of a lost context are forgotten, not deleted. */
static void lose_context(void)
{
    lost = true;
    sp_gl_context_lost(context);
}

static void collect(void)
{
    if (!lost)
        CHECK_STATUS(sp_gl_context_collect(context), SP_OK);
}

/* ---- Fences ---- */

static void *fences[MAX_NUMBER];
static uint64_t fence_number[MAX_NUMBER];
static unsigned first_fence, end_fence;

/* For threads that do not have the context. */
#define SPARES 3
static sp_point spares[SPARES];
static unsigned spare_count;

static void sync_setup(const void *user)
{
    open_gl(user);
    gl_hook_withhold(true);
    for (; spare_count < SPARES; spare_count++)
        CHECK_STATUS(sp_gl_context_signal(context, 0, &spares[spare_count]), SP_OK);
}

static void sync_teardown(void)
{
    while (spare_count > 0)
        sp_point_unref(&spares[--spare_count]);
    close_gl();
}

static sp_point sync_point(uint64_t number)
{
    sp_point point = {0};
    assert_true(end_fence < MAX_NUMBER);
    if (gl_is_current(&gl)) {
        CHECK_STATUS(sp_gl_context_signal(context, 0, &point), SP_OK);
    } else {
        assert_true(spare_count > 0);
        point = spares[--spare_count];
    }
    fences[end_fence] = sp_gl_sync_from_point(&point);
    fence_number[end_fence++] = number;
    return point;
}

static void sync_signal(uint64_t number)
{
    for (; first_fence < end_fence && fence_number[first_fence] <= number; first_fence++)
        gl_hook_let_go(fences[first_fence]);
}

static void release_nothing(void) {}

static unsigned live_syncs(void)
{
    return lost ? 0 : gl_hook_live_syncs() - spare_count;
}

/* ---- Binary semaphores ---- */

static vk_context vk;
static vk_gate gate;
static uint64_t gate_value[MAX_NUMBER]; /* what opens the gate of number k */
static uint64_t opened;

static void open_vulkan(void)
{
    const vk_options vulkan = {.driver = gl_vulkan_driver(&with->gl)};
    vk_open(&vk, &vulkan);
    vk_open_library(&vk, NULL);
    vk_gate_init(&gate, &vk);
}

static gl_copy small_work;

static void binary_setup(const void *user)
{
    open_gl(user);
    open_vulkan();
    gl_copy_init(&small_work, &gl);
}

/* ANGLE puts the end of objects off until work that was submitted later is done. */
static void let_driver_clean_up(void)
{
    if (small_work.fence)
        gl.call.DeleteSync(small_work.fence);
    gl_copy_submit(&small_work);
}

static sp_vk_semaphore *make_exportable(VkSemaphoreType type, int *fd)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof(desc),
        .type = type,
        .export_types = VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT,
    };
    sp_vk_semaphore *made = NULL;
    CHECK_STATUS(sp_vk_semaphore_create(vk.sp_device, &desc, &made), SP_OK);
    CHECK_STATUS(sp_vk_semaphore_export(made, VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT, fd),
                 SP_OK);
    return made;
}

static sp_gl_semaphore *import_fd(sp_gl_semaphore_type type, int fd)
{
    sp_gl_semaphore *made = NULL;
    const sp_gl_semaphore_import_desc desc = {
        .size = sizeof(desc),
        .type = type,
        .handle_type = SP_GL_HANDLE_OPAQUE_FD,
        .fd = fd,
        .adopt = true,
    };
    CHECK_STATUS(sp_gl_semaphore_import(context, &desc, &made), SP_OK);
    return made;
}

static sp_point binary_point(uint64_t number)
{
    int fd = -1;
    sp_point point = {0};
    assert_true(number < MAX_NUMBER);
    let_driver_clean_up();
    sp_vk_semaphore *there = make_exportable(VK_SEMAPHORE_TYPE_BINARY, &fd);
    sp_gl_semaphore *here = import_fd(SP_GL_SEMAPHORE_BINARY, fd);
    gate_value[number] = vk_gate_close(&gate);
    CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, there, 0, NULL), SP_OK);
    CHECK_STATUS(sp_gl_binary_point(here, 0, &point), SP_OK);
    sp_gl_semaphore_unref(here);
    sp_vk_semaphore_unref(there);
    return point;
}

static void binary_signal(uint64_t number)
{
    while (number > 0 && gate_value[number] == 0)
        number--;
    if (gate_value[number] <= opened)
        return;
    opened = gate_value[number];
    vk_gate_open(&gate, opened);
}

static void binary_poke(void)
{
    collect();
    let_driver_clean_up();
    if (opened == gate.next) /* nothing can hold GL's streams up */
        gl.call.Finish();
}

static unsigned live_semaphores(void)
{
    return lost ? 0 : gl_hook_live_semaphores();
}

/* What was waited for and never signalled is still in GL's streams: they end before GL does. */
static void binary_teardown(void)
{
    vk_gate_open_all(&gate);
    vk_gate_fini(&gate);
    gl.call.Finish();
    if (small_work.gl)
        gl_copy_fini(&small_work);
    close_gl();
    vk_close(&vk);
}

/* ---- Timelines ---- */

static sp_gl_semaphore *timeline;
static sp_vk_semaphore *other_side;
static gl_play_semaphore payload;
static uint64_t signalled, highest;

static void import_played(void)
{
    payload = (gl_play_semaphore){.counting = true};
    gl_play_next_import(&payload);
    timeline = import_fd(SP_GL_SEMAPHORE_TIMELINE, gl_play_fd());
}

static void timeline_setup(const void *user)
{
    int fd = -1;
    open_gl(user);
    if (with->played) {
        import_played();
        return;
    }
    open_vulkan();
    other_side = make_exportable(VK_SEMAPHORE_TYPE_TIMELINE, &fd);
    timeline = import_fd(SP_GL_SEMAPHORE_TIMELINE, fd);
}

static sp_point timeline_point(uint64_t number)
{
    sp_point point = {0};
    CHECK_STATUS(sp_gl_timeline_point(timeline, number, &point), SP_OK);
    highest = number > highest ? number : highest;
    return point;
}

static void timeline_signal(uint64_t number)
{
    if (number <= signalled)
        return;
    signalled = number;
    if (with->played)
        gl_play_signal(&payload, number);
    else
        CHECK_STATUS(sp_vk_semaphore_signal(other_side, number), SP_OK);
}

static void timeline_release(void)
{
    sp_gl_semaphore_unref(timeline);
    timeline = NULL;
}

static void timeline_teardown(void)
{
    timeline_signal(highest + 1000); /* ends what still waits in GL's streams */
    timeline_release();
    if (with->played) {
        close_gl();
        return;
    }
    sp_vk_semaphore_unref(other_side);
    binary_teardown();
}

/* ---- All ---- */

#define COMMON                                                                                     \
    .backend = SP_BACKEND_OPENGL, .pending = SP_PENDING, .timed_out = SP_TIMEOUT,                  \
    .fail_status = SP_ERROR_DEVICE_LOST, .fail_cause = SP_ERROR_DEVICE_LOST,                       \
    .fail_all = lose_context, .calls = gl_hook_all_calls

#define SYNC(options_)                                                                             \
    {                                                                                              \
        COMMON, .kind = SP_KIND_OPENGL_SYNC, .mark_submitted = SP_ERROR_NOT_SUPPORTED,             \
                .poke = collect, .user = &(options_), .setup = sync_setup, .point = sync_point,    \
                .signal = sync_signal, .release_owner = release_nothing, .alive = live_syncs,      \
                .teardown = sync_teardown                                                          \
    }

#define BINARY(options_)                                                                           \
    {                                                                                              \
        COMMON, .most_at_once = 16, .kind = SP_KIND_OPENGL, .flags = SP_POINT_BINARY,              \
                .mark_submitted = SP_OK, .poke = binary_poke, .user = &(options_),                 \
                .setup = binary_setup, .point = binary_point, .signal = binary_signal,             \
                .release_owner = release_nothing, .alive = live_semaphores,                        \
                .teardown = binary_teardown                                                        \
    }

#define TIMELINE(options_)                                                                         \
    {                                                                                              \
        COMMON, .kind = SP_KIND_OPENGL, .flags = SP_POINT_HAS_VALUE,                               \
                .mark_submitted = SP_ERROR_NOT_SUPPORTED, .poke = collect, .user = &(options_),    \
                .setup = timeline_setup, .point = timeline_point, .signal = timeline_signal,       \
                .release_owner = timeline_release, .alive = live_semaphores,                       \
                .teardown = timeline_teardown                                                      \
    }

static const gl_fixture_options llvmpipe = {.gl = {"llvmpipe"}};
static const gl_fixture_options llvmpipe_glsyncs = {.gl = {"llvmpipe"}, .glsyncs = true};
static const gl_fixture_options llvmpipe_played = {.gl = {"llvmpipe"}, .played = true};
static const gl_fixture_options angle = {.gl = {"angle"}};
static const gl_fixture_options angle_glsyncs = {.gl = {"angle"}, .glsyncs = true};
static const gl_fixture_options nvidia = {.gl = {"nvidia"}};
static const gl_fixture_options nvidia_glsyncs = {.gl = {"nvidia"}, .glsyncs = true};

static const fixture syncs[] = {SYNC(llvmpipe), SYNC(angle), SYNC(nvidia)};
static const fixture glsyncs[] = {SYNC(llvmpipe_glsyncs), SYNC(angle_glsyncs),
                                  SYNC(nvidia_glsyncs)};
static const fixture binaries[] = {BINARY(angle)};
static const fixture timelines[] = {TIMELINE(llvmpipe_played)};

#define SYNC_FEATURES (ONE_SHOT | FAILING | COUNTED | CALLS | POLLED | INDEPENDENT | UNLAYERED)
#define BINARY_FEATURES (ONE_SHOT | FAILING | COUNTED | CALLS | UNLAYERED)
#define TIMELINE_FEATURES (COUNTING | FAILING | COUNTED | CALLS | UNLAYERED)

const test_target opengl_targets[] = {
    {"egl-sync-llvmpipe", SYNC_FEATURES, (void *)&syncs[0]},
    {"egl-sync-angle", SYNC_FEATURES, (void *)&syncs[1]},
    {"egl-sync-nvidia", SYNC_FEATURES, (void *)&syncs[2]},
    {"gl-sync-llvmpipe", SYNC_FEATURES, (void *)&glsyncs[0]},
    {"gl-sync-angle", SYNC_FEATURES, (void *)&glsyncs[1]},
    {"gl-sync-nvidia", SYNC_FEATURES, (void *)&glsyncs[2]},
    {"gl-binary-angle", BINARY_FEATURES, (void *)&binaries[0]},
    {"gl-timeline-llvmpipe", TIMELINE_FEATURES, (void *)&timelines[0]},
    {NULL, 0, NULL},
};
