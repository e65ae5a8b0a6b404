/* SPDX-License-Identifier: MIT
 * The Vulkan section of `syncpoint info` as text. */
#include "info_vulkan.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define MAX_NOTES 16

static const struct {
    const char *cell, *text;
} rows[] = {
    {"host_wait", "wait on the host"},        {"host_signal", "signal from the host"},
    {"queue_wait", "wait on the queue"},      {"queue_signal", "signal from the queue"},
    {"export_opaque_fd", "export opaque fd"}, {"import_opaque_fd", "import opaque fd"},
    {"export_sync_fd", "export sync fd"},     {"import_sync_fd", "import sync fd"},
};
static const char *const kinds[] = {"timeline", "binary"};

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

const char *info_vulkan_result(const json_t *device, const char *kind, const char *cell,
                               const char **why)
{
    const json_t *semaphores = json_object_get(device, "semaphores");
    const json_t *found = json_object_get(json_object_get(semaphores, kind), cell);
    if (why)
        *why = text_of(found, "why");
    return text_of(found, "result");
}

/* Reasons are long and often the same: the table has a number, the text stands below it once. */
typedef struct note_list {
    const char *texts[MAX_NOTES];
    size_t count;
} note_list;

static size_t note_number(note_list *notes, const char *text)
{
    for (size_t i = 0; i < notes->count; i++) {
        if (strcmp(notes->texts[i], text) == 0)
            return i + 1;
    }
    if (notes->count == MAX_NOTES)
        return MAX_NOTES;
    notes->texts[notes->count++] = text;
    return notes->count;
}

/* "no (2)": the result, and the number of its reason. */
static void format_cell(char *text, size_t size, note_list *notes, const json_t *device,
                        const char *kind, const char *cell)
{
    const char *why;
    const char *result = info_vulkan_result(device, kind, cell, &why);
    if (*why) {
        snprintf(text, size, "%s (%zu)", result, note_number(notes, why));
    } else {
        snprintf(text, size, "%s", *result ? result : "-");
    }
}

static void print_table(const json_t *device)
{
    note_list notes = {.count = 0};
    printf("\n    %-22s %-14s %s\n", "", kinds[0], kinds[1]);
    for (size_t row = 0; row < sizeof rows / sizeof *rows; row++) {
        char timeline[32], binary[32];
        format_cell(timeline, sizeof timeline, &notes, device, kinds[0], rows[row].cell);
        format_cell(binary, sizeof binary, &notes, device, kinds[1], rows[row].cell);
        printf("    %-22s %-14s %s\n", rows[row].text, timeline, binary);
    }
    for (size_t i = 0; i < notes.count; i++)
        printf("    (%zu) %s\n", i + 1, notes.texts[i]);
}

static void print_device(const json_t *driver, const json_t *device)
{
    const char *why = text_of(device, "why"), *info = text_of(device, "driver_info");
    printf("\n  %s (%s)\n", text_of(device, "name"), text_of(device, "type"));
    printf("    driver      %s%s%s, version %s; Vulkan %s\n", text_of(device, "driver"),
           *info ? ", " : "", info, text_of(device, "driver_version"),
           text_of(device, "api_version"));
    printf("    from        %s (%s)\n", text_of(driver, "icd"), text_of(driver, "found_by"));
    printf("    device UUID %s\n", text_of(device, "device_uuid"));
    printf("    driver UUID %s\n", text_of(device, "driver_uuid"));
    if (*why) {
        printf("    not tried: %s\n", why);
    } else {
        print_table(device);
    }
}

/* A driver without a device is nothing unusual: distributions install one for each vendor. */
static void print_without_device(const json_t *drivers)
{
    bool any = false;
    for (size_t i = 0; i < json_array_size(drivers); i++) {
        const json_t *driver = json_array_get(drivers, i);
        const char *icd = text_of(driver, "icd"), *slash = strrchr(icd, '/');
        if (json_array_size(json_object_get(driver, "devices")) > 0 ||
            json_is_true(json_object_get(driver, "failed")))
            continue;
        printf("%s%s", any ? ", " : "\n  no device here: ", slash ? slash + 1 : icd);
        any = true;
    }
    if (any)
        putchar('\n');
}

/* Also of drivers whose devices were tried before. */
static void print_failed(const json_t *drivers)
{
    for (size_t i = 0; i < json_array_size(drivers); i++) {
        const json_t *driver = json_array_get(drivers, i);
        if (json_is_true(json_object_get(driver, "failed")))
            printf("\n  failed: %s: %s\n", text_of(driver, "icd"), text_of(driver, "why"));
    }
}

static void print_heading(const json_t *section, const json_t *drivers)
{
    const char *loader = text_of(section, "loader");
    if (json_array_size(drivers) == 0) {
        puts("\nVulkan: no drivers installed");
    } else if (*loader) {
        printf("\nVulkan, loader %s\n", loader);
    } else {
        printf("\nVulkan: %s\n", text_of(json_array_get(drivers, 0), "why"));
    }
}

void info_vulkan_print(const json_t *section)
{
    const json_t *drivers = json_object_get(section, "drivers");
    print_heading(section, drivers);
    for (size_t i = 0; i < json_array_size(drivers); i++) {
        const json_t *driver = json_array_get(drivers, i);
        const json_t *devices = json_object_get(driver, "devices");
        for (size_t d = 0; d < json_array_size(devices); d++)
            print_device(driver, json_array_get(devices, d));
    }
    print_without_device(drivers);
    print_failed(drivers);
}
