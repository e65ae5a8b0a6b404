/* SPDX-License-Identifier: MIT */
#include "vk_probe.h"

#include <jansson.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define OPAQUE_FD VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT
#define SYNC_FD VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT
#define TIMELINE VK_SEMAPHORE_TYPE_TIMELINE
#define BINARY VK_SEMAPHORE_TYPE_BINARY

const vkp_step vkp_steps[] = {
    {NULL, {NULL, NULL}, BINARY, 0, NULL},
    {"timeline", {"host_wait", "host_signal"}, TIMELINE, 0, vkp_run_timeline_host},
    {"timeline", {"queue_wait", "queue_signal"}, TIMELINE, 0, vkp_run_timeline_queue},
    {"timeline", {"export_opaque_fd", "import_opaque_fd"}, TIMELINE, OPAQUE_FD, vkp_run_share},
    {"timeline", {"export_sync_fd", "import_sync_fd"}, TIMELINE, SYNC_FD, vkp_run_share},
    {"binary", {"host_wait", "host_signal"}, BINARY, 0, vkp_run_binary},
    {"binary", {"queue_wait", "queue_signal"}, BINARY, 0, vkp_run_binary},
    {"binary", {"export_opaque_fd", "import_opaque_fd"}, BINARY, OPAQUE_FD, vkp_run_share},
    {"binary", {"export_sync_fd", "import_sync_fd"}, BINARY, SYNC_FD, vkp_run_share},
};
const size_t vkp_step_count = sizeof vkp_steps / sizeof *vkp_steps;

const char *vkp_result_name(vkp_result result)
{
    static const char *const names[] = {"proven", "reported", "no", "failed"};
    return names[result];
}

/* Takes the object. One write a line, so that what is written before a crash is whole. */
static void say(int fd, json_t *object)
{
    char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;
    if (!line || dprintf(fd, "%s\n", line) < 0)
        _exit(3);
    free(line);
    json_decref(object);
}

static json_t *uuid_text(const uint8_t *bytes)
{
    char text[37], *at = text;
    for (unsigned i = 0; i < VK_UUID_SIZE; i++)
        at += sprintf(at, "%s%02x", i == 4 || i == 6 || i == 8 || i == 10 ? "-" : "", bytes[i]);
    return json_string(text);
}

static json_t *version_text(uint32_t version)
{
    return json_sprintf("%u.%u.%u", VK_API_VERSION_MAJOR(version), VK_API_VERSION_MINOR(version),
                        VK_API_VERSION_PATCH(version));
}

/* NVIDIA packs its four numbers in its own way. */
static json_t *driver_version_text(const VkPhysicalDeviceProperties *device)
{
    uint32_t version = device->driverVersion;
    if (device->vendorID != 0x10DE)
        return version_text(version);
    return json_sprintf("%u.%u.%u.%u", version >> 22, (version >> 14) & 0xFF, (version >> 6) & 0xFF,
                        version & 0x3F);
}

static const char *type_name(VkPhysicalDeviceType type)
{
    switch (type) {
    case VK_PHYSICAL_DEVICE_TYPE_INTEGRATED_GPU:
        return "integrated gpu";
    case VK_PHYSICAL_DEVICE_TYPE_DISCRETE_GPU:
        return "discrete gpu";
    case VK_PHYSICAL_DEVICE_TYPE_VIRTUAL_GPU:
        return "virtual gpu";
    case VK_PHYSICAL_DEVICE_TYPE_CPU:
        return "cpu";
    default:
        return "other";
    }
}

/* Devices of 1.1 do not fill what 1.2 added; it then stays empty. */
static json_t *about_device(const vkp_driver *driver, VkPhysicalDevice physical)
{
    VkPhysicalDeviceDriverProperties made_by = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceTimelineSemaphoreProperties timeline = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_TIMELINE_SEMAPHORE_PROPERTIES,
        .pNext = &made_by};
    VkPhysicalDeviceIDProperties id = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_ID_PROPERTIES,
                                       .pNext = &timeline};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &id};
    driver->get_properties2(physical, &all);
    return json_pack(
        "{s:s, s:s, s:s, s:s, s:o, s:o, s:o, s:o, s:I}", "name", all.properties.deviceName, "type",
        type_name(all.properties.deviceType), "driver", made_by.driverName, "driver_info",
        made_by.driverInfo, "driver_version", driver_version_text(&all.properties), "api_version",
        version_text(all.properties.apiVersion), "device_uuid", uuid_text(id.deviceUUID),
        "driver_uuid", uuid_text(id.driverUUID), "reported_max_timeline_difference",
        (json_int_t)(timeline.maxTimelineSemaphoreValueDifference & INT64_MAX));
}

static bool open_pair(const vkp_driver *driver, uint32_t device, vkp_pair *pair, vkp_why *why)
{
    return vkp_device_open(driver, driver->devices[device], &pair->a, why) &&
           vkp_device_open(driver, driver->devices[device], &pair->b, why);
}

static void close_pair(vkp_pair *pair)
{
    vkp_why why;
    if (!vkp_device_close(&pair->b, &why) || !vkp_device_close(&pair->a, &why))
        fprintf(stderr, "%s\n", why.text);
}

/* Returns whether every cell is as it should be. */
static bool run_step(vkp_pair *pair, size_t number, int fd)
{
    const vkp_step *step = &vkp_steps[number % vkp_step_count];
    vkp_cell cells[2];
    memset(cells, 0, sizeof cells);
    step->run(pair, step, cells);
    json_t *list = json_array();
    bool ok = true;
    for (int i = 0; i < 2; i++) {
        json_array_append_new(list,
                              json_pack("{s:s, s:s}", "result", vkp_result_name(cells[i].result),
                                        "why", cells[i].why.text));
        ok = ok && cells[i].result != VKP_FAILED;
    }
    say(fd, json_pack("{s:I, s:o}", "finish", (json_int_t)number, "cells", list));
    return ok;
}

/* One device's steps from `number` on. Returns false after one that failed. */
static bool probe_device(const vkp_driver *driver, size_t number, int fd)
{
    uint32_t device = (uint32_t)(number / vkp_step_count);
    vkp_pair pair;
    vkp_why why;
    memset(&pair, 0, sizeof pair);
    say(fd, json_pack("{s:I}", "begin", (json_int_t)number));
    say(fd, json_pack("{s:i, s:o}", "device", (int)device, "about",
                      about_device(driver, driver->devices[device])));
    if (!open_pair(driver, device, &pair, &why)) {
        close_pair(&pair);
        say(fd, json_pack("{s:I, s:s}", "finish", (json_int_t)number, "why", why.text));
        return true;
    }
    if (number % vkp_step_count == 0)
        say(fd, json_pack("{s:I}", "finish", (json_int_t)number++));
    for (; number / vkp_step_count == device; number++) {
        say(fd, json_pack("{s:I}", "begin", (json_int_t)number));
        if (!run_step(&pair, number, fd))
            return false;
    }
    close_pair(&pair);
    return true;
}

void vkp_probe(size_t first, int fd)
{
    vkp_driver driver;
    vkp_why why;
    bool ok = vkp_loader_open(&driver, &why);
    if (ok)
        say(fd, json_pack("{s:o}", "loader", version_text(driver.loader_version)));
    if (!ok || !vkp_driver_open(&driver, &why)) {
        say(fd, json_pack("{s:s}", "why", why.text));
        return;
    }
    for (size_t number = first; number / vkp_step_count < driver.device_count;
         number += vkp_step_count - number % vkp_step_count) {
        if (!probe_device(&driver, number, fd))
            return;
    }
    vkp_driver_close(&driver);
    say(fd, json_pack("{s:b}", "end", 1));
}
