/* SPDX-License-Identifier: MIT
 *
 * Opaque fds: what is let in, who owns which number, what is left after a failure. H1, H2, H5, H7.
 */
#include "vk_case.h"

#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define OPAQUE VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT
#define SYNC VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT

static sp_vk_semaphore_import_desc import_desc(int fd)
{
    return (sp_vk_semaphore_import_desc){
        .size = sizeof(sp_vk_semaphore_import_desc),
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .handle_type = OPAQUE,
        .fd = fd,
    };
}

static void refuse_import(const sp_vk_semaphore_import_desc *desc, sp_status expected)
{
    sp_vk_semaphore *unchanged = (sp_vk_semaphore *)16;
    unsigned before = census_open_handles();
    CHECK_ERROR(sp_vk_semaphore_import(vk.sp_device, desc, &unchanged), expected);
    CHECK(unchanged == (sp_vk_semaphore *)16);
    CHECK_HANDLES(before);
}

/* ---- Capabilities ---- */

static sp_vk_semaphore_caps caps_of(VkSemaphoreType type,
                                    VkExternalSemaphoreHandleTypeFlagBits handle_type)
{
    sp_vk_semaphore_caps caps = {.size = sizeof(caps)};
    CHECK_STATUS(sp_vk_device_semaphore_caps(vk.sp_device, type, handle_type, &caps), SP_OK);
    CHECK((caps.why_not == NULL) == (caps.can_export && caps.can_import));
    return caps;
}

TEST(caps_are_the_drivers)
{
    start();
    bool opaque = strcmp(options->driver, "lavapipe") != 0;
    sp_vk_semaphore_caps binary = caps_of(VK_SEMAPHORE_TYPE_BINARY, OPAQUE);
    sp_vk_semaphore_caps timeline = caps_of(VK_SEMAPHORE_TYPE_TIMELINE, OPAQUE);
    CHECK(binary.can_export == opaque && binary.can_import == opaque);
    /* The timeline's answer is a timeline's: SwiftShader has exportable binaries only. */
    CHECK(timeline.can_export == vk_has_timeline_export(&vk));
    CHECK(!caps_of(VK_SEMAPHORE_TYPE_TIMELINE, SYNC).can_import);
    caps_of(VK_SEMAPHORE_TYPE_BINARY, SYNC);
    sp_vk_semaphore_caps caps = {.size = sizeof(caps)};
    CHECK_ERROR(sp_vk_device_semaphore_caps(NULL, VK_SEMAPHORE_TYPE_BINARY, OPAQUE, &caps),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_device_semaphore_caps(vk.sp_device, VK_SEMAPHORE_TYPE_BINARY, OPAQUE, NULL),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_device_semaphore_caps(vk.sp_device, (VkSemaphoreType)7, OPAQUE, &caps),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_device_semaphore_caps(vk.sp_device, VK_SEMAPHORE_TYPE_BINARY,
                                            VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE_BIT,
                                            &caps),
                SP_ERROR_INVALID_ARGUMENT);
    caps.size--;
    CHECK_ERROR(sp_vk_device_semaphore_caps(vk.sp_device, VK_SEMAPHORE_TYPE_BINARY, OPAQUE, &caps),
                SP_ERROR_INVALID_ARGUMENT);
    finish();
}

/* Asked before a semaphore is made, since a driver may crash later on one that it cannot export. */
TEST(not_exportable)
{
    start();
    sp_vk_semaphore_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_TIMELINE,
        .export_types = OPAQUE,
    };
    sp_vk_semaphore *made = NULL;
    unsigned before = hook_calls(HOOK_CreateSemaphore);
    if (!vk_has_timeline_export(&vk)) {
        CHECK_ERROR(sp_vk_semaphore_create(vk.sp_device, &desc, &made), SP_ERROR_NOT_SUPPORTED);
        CHECK_EQUAL(hook_calls(HOOK_CreateSemaphore), before);
        CHECK(made == NULL);
    }
    int fd = 12345;
    sp_vk_semaphore *binary = make_binary(), *timeline = make_timeline(0);
    CHECK_ERROR(sp_vk_semaphore_export(binary, OPAQUE, &fd), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_vk_semaphore_export(timeline, OPAQUE, &fd), SP_ERROR_NOT_SUPPORTED);
    CHECK_ERROR(sp_vk_semaphore_export(binary, SYNC, &fd), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_semaphore_export(NULL, OPAQUE, &fd), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_semaphore_export(binary, OPAQUE, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(hook_calls(HOOK_GetSemaphoreFdKHR), 0);
    CHECK_EQUAL(fd, 12345);
    sp_vk_semaphore_unref(binary);
    sp_vk_semaphore_unref(timeline);
    finish();
}

/* ---- Export and import ---- */

TEST_NEEDING(each_side_owns_its_numbers, WITH_OPAQUE_FD)
{
    start();
    sp_vk_semaphore *exported = make_exportable(&vk);
    int warm = export_fd(exported);
    close(warm);
    unsigned before = census_open_handles();
    int a = export_fd(exported), b = export_fd(exported);
    CHECK(a != b);
    CHECK_EQUAL(census_open_handles(), before + 2);
    CHECK(fcntl(a, F_GETFD) & FD_CLOEXEC);
    sp_vk_semaphore *imported = import_fd(&vk, a, false);
    CHECK(census_is_open(a)); /* duplicated: still ours */
    close(a);
    close(b);
    sp_vk_semaphore_unref(imported);
    CHECK_HANDLES(before);
    sp_vk_semaphore_unref(exported);
    finish();
}

TEST_NEEDING(adopt_takes_on_success_only, WITH_OPAQUE_FD)
{
    start();
    sp_vk_semaphore *exported = make_exportable(&vk), *imported = NULL;
    int fd = export_fd(exported), bad = eventfd(0, EFD_CLOEXEC);
    sp_vk_semaphore_import_desc desc = import_desc(bad);
    desc.adopt = true;
    CHECK_ERROR(sp_vk_semaphore_import(vk.sp_device, &desc, &imported), SP_ERROR_INVALID_HANDLE);
    CHECK(census_is_open(bad));
    close(bad);
    desc.fd = fd;
    CHECK_STATUS(sp_vk_semaphore_import(vk.sp_device, &desc, &imported), SP_OK);
    CHECK(!census_is_open(fd));
    sp_vk_semaphore_unref(imported);
    sp_vk_semaphore_unref(exported);
    finish();
}

/* H2 */
TEST_NEEDING(H2_import_the_same_fd_twice, WITH_OPAQUE_FD)
{
    start();
    sp_vk_semaphore *exported = make_exportable(&vk);
    int fd = export_fd(exported);
    sp_vk_semaphore *a = import_fd(&vk, fd, false), *b = import_fd(&vk, fd, false);
    CHECK(sp_vk_semaphore_handle(a) != sp_vk_semaphore_handle(b));
    CHECK(census_is_open(fd));
    close(fd);
    /* One payload: a signal through the one serves a wait through the other. */
    sp_vk_semaphore *both[2] = {a, b};
    for (unsigned i = 0; i < 2; i++) {
        CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, exported, 0, NULL), SP_OK);
        sp_point point = binary_point(both[i], 0);
        CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
    }
    sp_vk_semaphore_unref(a);
    sp_vk_semaphore_unref(b);
    sp_vk_semaphore_unref(exported);
    finish();
}

/* ---- H5 ---- */

static void check_device_unharmed(void)
{
    sp_vk_semaphore *exported = make_exportable(&vk);
    int fd = export_fd(exported);
    sp_vk_semaphore *imported = import_fd(&vk, fd, false);
    close(fd);
    sp_vk_semaphore_unref(imported);
    sp_vk_semaphore_unref(exported);
    const sp_vk_semaphore_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_TIMELINE,
        .export_types = OPAQUE,
    };
    if (vk_has_timeline_export(&vk)) {
        CHECK_STATUS(sp_vk_semaphore_create(vk.sp_device, &desc, &exported), SP_OK);
        sp_vk_semaphore_unref(exported);
    }
}

static void refuse_fd(int fd)
{
    bool open = fd >= 0 && census_is_open(fd);
    unsigned before = hook_calls(HOOK_ImportSemaphoreFdKHR);
    sp_vk_semaphore_import_desc desc = import_desc(fd);
    refuse_import(&desc, SP_ERROR_INVALID_HANDLE);
    desc.temporary = true;
    refuse_import(&desc, SP_ERROR_INVALID_HANDLE);
    desc.adopt = true;
    refuse_import(&desc, SP_ERROR_INVALID_HANDLE);
    CHECK((fd >= 0 && census_is_open(fd)) == open);
    /* The driver has not seen it. */
    CHECK_EQUAL(hook_calls(HOOK_ImportSemaphoreFdKHR), before);
}

TEST_NEEDING(H5_numbers_that_are_no_semaphores, WITH_OPAQUE_FD)
{
    start();
    check_device_unharmed(); /* warm */
    int pipes[2], sockets[2];
    CHECK(pipe2(pipes, O_CLOEXEC) == 0);
    CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sockets) == 0);
    const int open_ones[] = {
        eventfd(0, EFD_CLOEXEC),
        memfd_create("test", MFD_CLOEXEC),
        pipes[0],
        pipes[1],
        sockets[0],
        open("/dev/null", O_RDWR | O_CLOEXEC),
        open("/proc/self/exe", O_RDONLY | O_CLOEXEC),
        open("/", O_RDONLY | O_CLOEXEC),
        0,
    };
    for (unsigned i = 0; i < COUNT_OF(open_ones); i++) {
        refuse_fd(open_ones[i]);
        check_device_unharmed();
    }
    const int others[] = {census_free_number(), -1, -2, INT_MIN, INT_MAX};
    for (unsigned i = 0; i < COUNT_OF(others); i++)
        refuse_fd(others[i]);
    check_device_unharmed();
    close(sockets[1]);
    for (unsigned i = 0; i + 1 < COUNT_OF(open_ones); i++)
        close(open_ones[i]);
    finish();
}

/* A memory file of the size of a real one is hard to tell; if it gets in, nothing may break. */
TEST_NEEDING(H5_a_good_imitation, WITH_OPAQUE_FD)
{
    start();
    check_device_unharmed();
    int fake = memfd_create("SwiftShader.Semaphore", MFD_CLOEXEC);
    CHECK(ftruncate(fake, 4096) == 0);
    unsigned before = census_open_handles();
    sp_vk_semaphore_import_desc desc = import_desc(fake);
    sp_vk_semaphore *imported = NULL;
    sp_status status = sp_vk_semaphore_import(vk.sp_device, &desc, &imported);
    CHECK(status == SP_OK || status == SP_ERROR_INVALID_HANDLE);
    CHECK(census_is_open(fake));
    sp_vk_semaphore_unref(imported);
    CHECK_HANDLES(before);
    close(fake);
    check_device_unharmed();
    finish();
}

/* ---- H7 ---- */

TEST_NEEDING(H7_wrong_type_of_handle, WITH_OPAQUE_FD)
{
    start();
    sp_vk_semaphore *exported = make_exportable(&vk);
    int fd = export_fd(exported);
    sp_vk_semaphore_import_desc desc = import_desc(fd);
    desc.type = VK_SEMAPHORE_TYPE_TIMELINE; /* a binary's */
    sp_vk_semaphore *made = NULL;
    sp_status status = sp_vk_semaphore_import(vk.sp_device, &desc, &made);
    /* Where both types are one kind of file, nobody can tell. */
    bool no_telling = vk_has_timeline_export(&vk) && status == SP_OK;
    CHECK(no_telling || status == SP_ERROR_INVALID_HANDLE || status == SP_ERROR_NOT_SUPPORTED);
    sp_vk_semaphore_unref(made);
    CHECK(census_is_open(fd));
    unsigned imports = hook_calls(HOOK_ImportSemaphoreFdKHR);
    CHECK_EQUAL(imports, no_telling);
    const VkExternalSemaphoreHandleTypeFlagBits wrong[] = {
        VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_D3D12_FENCE_BIT,
        VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_BIT,
        VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT_BIT,
        (VkExternalSemaphoreHandleTypeFlagBits)0,
        (VkExternalSemaphoreHandleTypeFlagBits)(OPAQUE | SYNC),
    };
    for (unsigned i = 0; i < COUNT_OF(wrong); i++) {
        int out = 99;
        desc = import_desc(fd);
        desc.handle_type = wrong[i];
        refuse_import(&desc, SP_ERROR_INVALID_ARGUMENT);
        CHECK_ERROR(sp_vk_semaphore_export(exported, wrong[i], &out), SP_ERROR_INVALID_ARGUMENT);
        CHECK_EQUAL(out, 99);
    }
    CHECK_EQUAL(hook_calls(HOOK_ImportSemaphoreFdKHR), imports);
    close(fd);
    sp_vk_semaphore_unref(exported);
    finish();
}

TEST(H7_combinations_that_vulkan_has_not)
{
    start();
    sp_vk_semaphore_import_desc desc = import_desc(0);
    desc.type = VK_SEMAPHORE_TYPE_TIMELINE;
    desc.temporary = true;
    refuse_import(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc = import_desc(-1);
    desc.handle_type = SYNC; /* permanent */
    refuse_import(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc.type = VK_SEMAPHORE_TYPE_TIMELINE;
    desc.temporary = true;
    refuse_import(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc = import_desc(0);
    desc.type = (VkSemaphoreType)5;
    refuse_import(&desc, SP_ERROR_INVALID_ARGUMENT);
    desc = import_desc(0);
    desc.size++;
    refuse_import(&desc, SP_ERROR_INVALID_ARGUMENT);
    refuse_import(NULL, SP_ERROR_INVALID_ARGUMENT);
    sp_vk_semaphore *out = NULL;
    desc = import_desc(0);
    CHECK_ERROR(sp_vk_semaphore_import(NULL, &desc, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_vk_semaphore_import(vk.sp_device, &desc, NULL), SP_ERROR_INVALID_ARGUMENT);
    finish();
}

TEST(not_importable)
{
    vk_options with = *options;
    with.no_semaphore_fd = true;
    vk_open(&vk, &with);
    vk_open_library(&vk, hook_install(vk.get_instance_proc_addr));
    int fd = eventfd(0, EFD_CLOEXEC);
    sp_vk_semaphore_import_desc desc = import_desc(fd);
    sp_vk_semaphore *made = NULL;
    CHECK_ERROR(sp_vk_semaphore_import(vk.sp_device, &desc, &made), SP_ERROR_NOT_SUPPORTED);
    CHECK(census_is_open(fd));
    close(fd);
    CHECK(caps_of(VK_SEMAPHORE_TYPE_BINARY, OPAQUE).why_not != NULL);
    finish();
}

/* ---- Temporary imports ---- */

TEST_NEEDING(a_temporary_payload_serves_one_wait, WITH_OPAQUE_FD)
{
    start();
    int out = 55;
    sp_point marked = test_marked_point(), unchanged = marked;
    sp_vk_semaphore *exported = make_exportable(&vk);
    int fd = export_fd(exported);
    sp_vk_semaphore *imported = import_fd(&vk, fd, true);
    close(fd);
    CHECK_STATUS(sp_vk_queue_signal_semaphore(vk.sp_queue, exported, 0, NULL), SP_OK);
    sp_point point = binary_point(imported, 0);
    CHECK(point.flags & SP_POINT_TEMPORARY);
    CHECK_ERROR(sp_vk_semaphore_export(imported, OPAQUE, &out), SP_ERROR_INVALID_STATE);
    CHECK_EQUAL(out, 55);
    CHECK_STATUS(sp_vk_queue_wait(vk.sp_queue, &point), SP_OK);
    CHECK_STATUS(sp_wait(&point), SP_OK);
    CHECK_ERROR(sp_vk_binary_point(imported, 0, &unchanged), SP_ERROR_INVALID_STATE);
    CHECK(test_same_point(&unchanged, &marked));
    sp_point_unref(&point);
    sp_vk_semaphore_unref(imported);
    sp_vk_semaphore_unref(exported);
    finish();
}

/* ---- H1: every step fails, and nothing is left behind ---- */

static int good_fd;

static sp_status import_once(void)
{
    sp_vk_semaphore_import_desc desc = import_desc(good_fd);
    sp_vk_semaphore *made = NULL;
    sp_status status = sp_vk_semaphore_import(vk.sp_device, &desc, &made);
    CHECK((made != NULL) == (status == SP_OK));
    sp_vk_semaphore_unref(made);
    return status;
}

static sp_status create_once(void)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof(desc),
        .type = VK_SEMAPHORE_TYPE_BINARY,
        .export_types = OPAQUE,
    };
    sp_vk_semaphore *made = NULL;
    sp_status status = sp_vk_semaphore_create(vk.sp_device, &desc, &made);
    CHECK((made != NULL) == (status == SP_OK));
    sp_vk_semaphore_unref(made);
    return status;
}

static sp_vk_semaphore *shared;

static sp_status export_once(void)
{
    int fd = -77;
    sp_status status = sp_vk_semaphore_export(shared, OPAQUE, &fd);
    CHECK((fd != -77) == (status == SP_OK));
    if (status == SP_OK)
        close(fd);
    return status;
}

/* How many driver calls that can fail an attempt makes. */
static unsigned steps_of(sp_status (*attempt)(void))
{
    unsigned before = hook_steps();
    CHECK_STATUS(attempt(), SP_OK);
    return hook_steps() - before;
}

static void fail_each_step(sp_status (*attempt)(void))
{
    const VkResult results[] = {VK_ERROR_OUT_OF_HOST_MEMORY, VK_ERROR_INVALID_EXTERNAL_HANDLE,
                                VK_ERROR_INITIALIZATION_FAILED, VK_ERROR_TOO_MANY_OBJECTS};
    unsigned steps = steps_of(attempt);
    CHECK(steps > 0);
    unsigned before = census_open_handles(), live = hook_live_semaphores();
    for (unsigned step = 0; step < steps; step++) {
        for (unsigned i = 0; i < 1000; i++) {
            hook_fail_step(results[i % COUNT_OF(results)], step);
            CHECK(attempt() < 0);
            hook_heal();
        }
        CHECK_HANDLES(before);
        CHECK_EQUAL(hook_live_semaphores(), live);
    }
    CHECK_STATUS(attempt(), SP_OK);
    CHECK_HANDLES(before);
}

static void prepare(void)
{
    start();
    shared = make_exportable(&vk);
    good_fd = export_fd(shared);
    CHECK_STATUS(import_once(), SP_OK);
    CHECK_STATUS(create_once(), SP_OK);
}

static void clean_up(void)
{
    CHECK(census_is_open(good_fd));
    close(good_fd);
    sp_vk_semaphore_unref(shared);
    finish();
}

TEST_NEEDING(H1_each_step_of_an_import_fails, WITH_OPAQUE_FD)
{
    prepare();
    fail_each_step(import_once);
    clean_up();
}

TEST_NEEDING(H1_each_step_of_an_export_fails, WITH_OPAQUE_FD)
{
    prepare();
    fail_each_step(export_once);
    clean_up();
}

TEST_NEEDING(H1_each_step_of_a_create_fails, WITH_OPAQUE_FD)
{
    prepare();
    fail_each_step(create_once);
    clean_up();
}

/* A double: a driver that closes the number it was given although the import failed, as SwiftShader
 * does, and one that leaves it open, as the rules say. */
static bool closes;

static VKAPI_ATTR VkResult VKAPI_CALL fail_import(VkDevice device,
                                                  const VkImportSemaphoreFdInfoKHR *info)
{
    (void)device;
    if (closes)
        close(info->fd);
    return VK_ERROR_INVALID_EXTERNAL_HANDLE;
}

static void check_failing_imports(bool driver_closes)
{
    prepare();
    unsigned before = census_open_handles(), live = hook_live_semaphores();
    closes = driver_closes;
    HOOK_REPLACE(ImportSemaphoreFdKHR, fail_import);
    for (unsigned i = 0; i < 1000; i++) {
        CHECK_ERROR(import_once(), SP_ERROR_INVALID_HANDLE);
        CHECK(census_is_open(good_fd));
    }
    CHECK_HANDLES(before);
    CHECK_EQUAL(hook_live_semaphores(), live);
    hook_replace(HOOK_ImportSemaphoreFdKHR, NULL);
    CHECK_STATUS(import_once(), SP_OK);
    clean_up();
}

TEST_NEEDING(H1_a_failing_import_that_closes, WITH_OPAQUE_FD)
{
    check_failing_imports(true);
}
TEST_NEEDING(H1_a_failing_import_that_keeps, WITH_OPAQUE_FD)
{
    check_failing_imports(false);
}

/* The number that a careless driver closed may be somebody else's by now. */
static flag churn_stop;

static void churn(void *unused)
{
    (void)unused;
    while (!flag_is_set(&churn_stop)) {
        int fds[4];
        for (unsigned i = 0; i < 4; i++)
            fds[i] = eventfd(0, EFD_CLOEXEC);
        for (unsigned i = 0; i < 4; i++)
            CHECK(close(fds[i]) == 0); /* nobody else closed it */
    }
}

TEST_NEEDING(H1_closed_numbers_are_reused_meanwhile, WITH_OPAQUE_FD)
{
    prepare();
    worker other;
    closes = true;
    HOOK_REPLACE(ImportSemaphoreFdKHR, fail_import);
    worker_start(&other, 0, churn, NULL);
    for (unsigned i = 0; i < 2000; i++)
        CHECK_ERROR(import_once(), SP_ERROR_INVALID_HANDLE);
    flag_set(&churn_stop);
    worker_join(&other);
    clean_up();
}

/* One driver makes no semaphores on that device any more, once it had no free number. */
TEST_NEEDING(H1_no_free_number, OUTLIVES_NO_FDS)
{
    prepare();
    struct rlimit limit, tight;
    unsigned before = census_open_handles();
    getrlimit(RLIMIT_NOFILE, &limit);
    tight = limit;
    tight.rlim_cur = (rlim_t)census_free_number();
    setrlimit(RLIMIT_NOFILE, &tight);
    CHECK_EQUAL(sp_status_class(SP_ERROR_SYSTEM), SP_CLASS_RECOVERABLE);
    for (unsigned i = 0; i < 1000; i++) {
        CHECK_ERROR(import_once(), SP_ERROR_SYSTEM);
        CHECK_ERROR(export_once(), SP_ERROR_SYSTEM);
    }
    setrlimit(RLIMIT_NOFILE, &limit);
    CHECK_HANDLES(before);
    CHECK_STATUS(import_once(), SP_OK);
    CHECK_STATUS(export_once(), SP_OK);
    CHECK_HANDLES(before);
    clean_up();
}

/* A device that has not imported yet also needs numbers to learn what its handles look like. */
TEST_NEEDING(H1_few_free_numbers, OUTLIVES_NO_FDS)
{
    start();
    struct rlimit limit, tight;
    getrlimit(RLIMIT_NOFILE, &limit);
    shared = make_exportable(&vk);
    good_fd = export_fd(shared);
    unsigned before = census_open_handles();
    for (rlim_t few = 0; few < 4; few++) {
        tight = limit;
        tight.rlim_cur = (rlim_t)census_free_number() + few;
        setrlimit(RLIMIT_NOFILE, &tight);
        sp_status imported = import_once();
        CHECK(imported == SP_OK || (imported == SP_ERROR_SYSTEM && few < 3));
        setrlimit(RLIMIT_NOFILE, &limit);
        CHECK_HANDLES(before);
    }
    clean_up();
}

/* ---- Names of failures ---- */

TEST_NEEDING(results_have_their_status, WITH_OPAQUE_FD)
{
    prepare();
    const struct {
        VkResult result;
        sp_status expected;
    } table[] = {
        {VK_ERROR_OUT_OF_HOST_MEMORY, SP_ERROR_OUT_OF_MEMORY},
        {VK_ERROR_OUT_OF_DEVICE_MEMORY, SP_ERROR_OUT_OF_MEMORY},
        {VK_ERROR_INVALID_EXTERNAL_HANDLE, SP_ERROR_INVALID_HANDLE},
        {VK_ERROR_UNKNOWN, SP_ERROR_BACKEND},
        {VK_ERROR_INITIALIZATION_FAILED, SP_ERROR_INVALID_HANDLE},
    };
    for (unsigned i = 0; i < COUNT_OF(table); i++) {
        hook_fail(HOOK_ImportSemaphoreFdKHR, table[i].result, 0, 1);
        sp_status status = import_once();
        if (table[i].result ==
            VK_ERROR_INITIALIZATION_FAILED) /* what SwiftShader says of a bad fd */
            CHECK(status == SP_ERROR_INVALID_HANDLE || status == SP_ERROR_BACKEND);
        else
            CHECK_STATUS(status, table[i].expected);
        CHECK_EQUAL(sp_last_error()->native_code, (uint64_t)(int64_t)table[i].result);
        CHECK_EQUAL(sp_last_error()->backend, SP_BACKEND_VULKAN);
        assert_non_null(sp_last_error()->native_call);
        CHECK(strstr(sp_last_error()->native_call, "vkImportSemaphoreFd") != NULL);
    }
    clean_up();
}
