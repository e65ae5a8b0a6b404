/* SPDX-License-Identifier: MIT
 *
 * A library built without Vulkan: its symbols are there, each says what it cannot do, and nothing
 * is written. There may be no Vulkan headers here, so the functions are declared by their ABI.
 */
#include "support/test.h"

#include <string.h>
#include <syncpoint/handoff.h>

typedef const void *in;
typedef void *inout;

sp_status sp_vk_device_create(in desc, inout out);
sp_status sp_vk_device_destroy(inout device, uint64_t timeout_ns);
sp_status sp_vk_device_semaphore_caps(inout device, int type, int handle_type, inout caps);
sp_status sp_vk_queue_create(inout device, in desc, inout out);
sp_status sp_vk_queue_destroy(inout queue, uint64_t timeout_ns);
sp_status sp_vk_queue_signal(inout queue, sp_point *out);
sp_status sp_vk_queue_signal_semaphore(inout queue, inout semaphore, uint64_t value, sp_point *out);
sp_status sp_vk_queue_wait(inout queue, const sp_point *point);
sp_status sp_vk_semaphore_create(inout device, in desc, inout out);
sp_status sp_vk_semaphore_wrap(inout device, in desc, inout out);
sp_status sp_vk_semaphore_import(inout device, in desc, inout out);
sp_status sp_vk_semaphore_export(inout semaphore, int handle_type, int *fd);
sp_status sp_vk_point_export_sync_fd(const sp_point *point, int *fd);
sp_status sp_vk_timeline_point(inout semaphore, uint64_t value, sp_point *out);
sp_status sp_vk_binary_point(inout semaphore, uint32_t flags, sp_point *out);
sp_status sp_vk_semaphore_signal(inout semaphore, uint64_t value);
sp_status sp_vk_semaphore_value(inout semaphore, uint64_t *value);
inout sp_vk_semaphore_ref(inout semaphore);
void sp_vk_semaphore_unref(inout semaphore);
uint64_t sp_vk_semaphore_handle(in semaphore);
uint64_t sp_vk_semaphore_from_point(const sp_point *point);

/* It says why, and names itself. */
static void check_says_why(sp_status status, const char *call)
{
    char name[64] = {0};
    strncpy(name, call, strcspn(call, "(") < sizeof(name) ? strcspn(call, "(") : 0);
    CHECK_STATUS(status, SP_ERROR_NOT_SUPPORTED);
    CHECK_STATUS(sp_last_error()->status, SP_ERROR_NOT_SUPPORTED);
    if (!strstr(sp_last_error()->message, name))
        print_error("%s: %s\n", name, sp_last_error()->message);
    CHECK(strstr(sp_last_error()->message, name) != NULL);
    CHECK(strstr(sp_last_error()->message, "Vulkan") != NULL);
}
#define NOT_BUILT(call) check_says_why(call, #call)

TEST(vulkan_functions_say_not_supported)
{
    uint64_t object[16];
    sp_point marked = test_marked_point(), out = marked;
    void *made = object;
    int fd = 77;
    uint64_t value = 78;
    memset(object, 0x5a, sizeof(object));
    NOT_BUILT(sp_vk_device_create(object, &made));
    NOT_BUILT(sp_vk_device_destroy(object, SP_FOREVER));
    NOT_BUILT(sp_vk_device_semaphore_caps(object, 0, 1, object));
    NOT_BUILT(sp_vk_queue_create(object, object, &made));
    NOT_BUILT(sp_vk_queue_destroy(object, SP_FOREVER));
    NOT_BUILT(sp_vk_queue_signal(object, &out));
    NOT_BUILT(sp_vk_queue_signal_semaphore(object, object, 1, &out));
    NOT_BUILT(sp_vk_queue_wait(object, &out));
    NOT_BUILT(sp_vk_semaphore_create(object, object, &made));
    NOT_BUILT(sp_vk_semaphore_wrap(object, object, &made));
    NOT_BUILT(sp_vk_semaphore_import(object, object, &made));
    NOT_BUILT(sp_vk_semaphore_export(object, 1, &fd));
    NOT_BUILT(sp_vk_point_export_sync_fd(&out, &fd));
    NOT_BUILT(sp_vk_timeline_point(object, 1, &out));
    NOT_BUILT(sp_vk_binary_point(object, 0, &out));
    NOT_BUILT(sp_vk_semaphore_signal(object, 1));
    NOT_BUILT(sp_vk_semaphore_value(object, &value));
    CHECK(made == object);
    CHECK_EQUAL(fd, 77);
    CHECK_EQUAL(value, 78);
    CHECK(test_same_point(&out, &marked));
    for (unsigned i = 0; i < COUNT_OF(object); i++)
        CHECK_EQUAL(object[i], UINT64_C(0x5a5a5a5a5a5a5a5a));
}

TEST(vulkan_nothing_is_harmless)
{
    sp_point carrier = sp_carrier_vulkan_semaphore(5, NULL, 6);
    CHECK_STATUS(sp_vk_device_destroy(NULL, 0), SP_OK);
    CHECK_STATUS(sp_vk_queue_destroy(NULL, 0), SP_OK);
    CHECK(sp_vk_semaphore_ref(NULL) == NULL);
    sp_vk_semaphore_unref(NULL);
    CHECK_EQUAL(sp_vk_semaphore_handle(NULL), 0);
    CHECK_EQUAL(sp_vk_semaphore_from_point(NULL), 0);
    CHECK_EQUAL(sp_vk_semaphore_from_point(&(sp_point){0}), 0);
    CHECK_EQUAL(sp_point_backend(&carrier), SP_BACKEND_VULKAN);
}

TEST(vulkan_synchronizer_says_not_supported)
{
    sp_synchronizer *out = (sp_synchronizer *)16;
    const sp_host host = {.size = sizeof(host), .backend = SP_BACKEND_VULKAN};
    CHECK_ERROR(sp_synchronizer_create_vulkan(&host, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK(strstr(sp_last_error()->message, "Vulkan") != NULL);
    CHECK(out == (sp_synchronizer *)16);
}
