/* SPDX-License-Identifier: MIT */
#include "info_simple.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_MS 20000
#define WITHHELD_NS UINT64_C(20000000)
#define PATIENCE_NS UINT64_C(5000000000)

/* ---- What a probe writes ---- */

json_t *info_device(json_t *devices, const char *name)
{
    json_t *device = json_pack("{s:s, s:{}, s:{}}", "name", name, "about", "cells");
    json_array_append_new(devices, device);
    return device;
}

void info_about(json_t *device, const char *key, const char *format, ...)
{
    char text[256];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    json_object_set_new(json_object_get(device, "about"), key, json_string(text));
}

void info_cell(json_t *device, const char *what, const char *result, const char *why)
{
    json_object_set_new(json_object_get(device, "cells"), what,
                        json_pack("{s:s, s:s}", "result", result, "why", why ? why : ""));
}

void info_proven(json_t *device, const char *what, sp_status status)
{
    const char *why = status < 0 ? sp_last_error()->message : sp_status_text(status);
    info_cell(device, what, status == SP_OK ? "proven" : "failed", status == SP_OK ? NULL : why);
}

void info_reported(json_t *device, const char *what, bool there, const char *why_not)
{
    info_cell(device, what, there ? "reported" : "no", there ? NULL : why_not);
}

void info_uuid(json_t *device, bool known, const uint8_t uuid[16])
{
    char text[40] = "";
    for (int i = 0; known && i < 16; i++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%02x%s", uuid[i],
                 i == 3 || i == 5 || i == 7 || i == 9 ? "-" : "");
    info_about(device, "device UUID", "%s", known ? text : "not told");
}

sp_status info_prove_wait(const sp_point *point, void (*let_go)(void *user), void *user)
{
    sp_status early = sp_wait_timeout(point, WITHHELD_NS);
    let_go(user);
    sp_status status = sp_wait_timeout(point, PATIENCE_NS);
    return early == SP_TIMEOUT ? status : early == SP_OK ? SP_ERROR_INVALID_STATE : early;
}

/* ---- The process ---- */

/* Never returns. */
static void run_child(const info_simple *section, int fd, bool verbose)
{
    int quiet = verbose ? STDERR_FILENO : open("/dev/null", O_WRONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    dup2(quiet, STDOUT_FILENO);
    dup2(quiet, STDERR_FILENO);
    json_t *devices = json_array();
    section->probe(devices);
    json_dumpfd(devices, fd, JSON_COMPACT);
    _exit(0);
}

/* All that the child writes, or NULL if it takes too long or writes nothing. */
static json_t *read_all(int fd)
{
    char buffer[65536];
    size_t used = 0;
    for (;;) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        int ready = poll(&polled, 1, LIMIT_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0 || used == sizeof buffer)
            return NULL;
        ssize_t got = read(fd, buffer + used, sizeof buffer - used);
        if (got <= 0)
            return json_loadb(buffer, used, 0, NULL);
        used += (size_t)got;
    }
}

static json_t *ask_drivers(const info_simple *section, bool verbose)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return NULL;
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(section, ends[1], verbose);
    }
    close(ends[1]);
    json_t *devices = child > 0 ? read_all(ends[0]) : NULL;
    close(ends[0]);
    if (child > 0) {
        if (!devices)
            kill(child, SIGKILL);
        while (waitpid(child, NULL, 0) < 0 && errno == EINTR) {
        }
    }
    return devices;
}

/* ---- The section ---- */

static json_t *count_results(const json_t *devices)
{
    json_t *results =
        json_pack("{s:i, s:i, s:i, s:i}", "proven", 0, "reported", 0, "no", 0, "failed", 0);
    size_t i;
    json_t *device;
    json_array_foreach(devices, i, device)
    {
        const char *what;
        json_t *cell;
        json_object_foreach(json_object_get(device, "cells"), what, cell)
        {
            const char *result = json_string_value(json_object_get(cell, "result"));
            json_int_t count = json_integer_value(json_object_get(results, result));
            json_object_set_new(results, result, json_integer(count + 1));
        }
    }
    return results;
}

json_t *info_simple_gather(const info_simple *section, bool verbose)
{
    json_t *devices = ask_drivers(section, verbose);
    const char *why = devices ? "" : "a driver crashed or did not answer";
    if (!devices)
        devices = json_array();
    return json_pack("{s:i, s:o, s:s, s:o}", "devices", (int)json_array_size(devices), "results",
                     count_results(devices), "why", why, "list", devices);
}

static void print_device(json_t *device)
{
    const char *key;
    json_t *value;
    printf("\n  %s\n", json_string_value(json_object_get(device, "name")));
    json_object_foreach(json_object_get(device, "about"), key, value)
        printf("    %-24s %s\n", key, json_string_value(value));
    json_object_foreach(json_object_get(device, "cells"), key, value)
    {
        const char *why = json_string_value(json_object_get(value, "why"));
        printf("    %-24s %s%s%s\n", key, json_string_value(json_object_get(value, "result")),
               *why ? ": " : "", why);
    }
}

void info_simple_print(const info_simple *section, const json_t *found)
{
    const char *why = json_string_value(json_object_get(found, "why"));
    size_t i;
    json_t *device;
    if (json_integer_value(json_object_get(found, "devices")) == 0 && !*why)
        return;
    printf("\n%s%s%s\n", section->title, *why ? ": " : "", why);
    json_array_foreach(json_object_get(found, "list"), i, device) print_device(device);
}
