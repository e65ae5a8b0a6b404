/* SPDX-License-Identifier: MIT
 * The Vulkan section of `syncpoint info`: each driver is tried in a process of its own, which is
 * started again after a step that it did not survive. */
#include "info_vulkan.h"
#include "info.h"
#include "vk_probe.h"
#include "vk_probe_icd.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

/* The longest time between two lines of a child: more than a step's own time limits add up to. */
#define SILENCE_MS 20000

/* What is known of one driver while its processes run. */
typedef struct probing {
    json_t *driver; /* borrowed: its entry in the report                  */
    json_t *loader; /* the loader's version, when a child has told it     */
    size_t next;    /* the step to go on with                             */
    bool in_step;   /* step `next` has begun                              */
    bool over;      /* there is nothing left to do                        */
} probing;

static json_t *device_entry(probing *p, size_t device)
{
    json_t *devices = json_object_get(p->driver, "devices");
    while (json_array_size(devices) <= device) {
        json_array_append_new(devices, json_pack("{s:s, s:{s:{}, s:{}}}", "why", "", "semaphores",
                                                 "timeline", "binary"));
    }
    return json_array_get(devices, device);
}

static void set_cell(probing *p, size_t step, int cell, const char *result, const char *why)
{
    const vkp_step *s = &vkp_steps[step % vkp_step_count];
    json_t *device = device_entry(p, step / vkp_step_count);
    json_t *kind = json_object_get(json_object_get(device, "semaphores"), s->kind);
    json_object_set_new(kind, s->cells[cell],
                        json_pack("{s:s, s:s}", "result", result, "why", why));
}

static void skip_device(probing *p, const char *why)
{
    size_t device = p->next / vkp_step_count;
    json_object_set_new(device_entry(p, device), "why", json_string(why));
    p->next = (device + 1) * vkp_step_count;
}

static void finish_step(probing *p, const json_t *line)
{
    const char *why = json_string_value(json_object_get(line, "why"));
    const json_t *cells = json_object_get(line, "cells");
    p->in_step = false;
    if (why) {
        skip_device(p, why);
        return;
    }
    for (int i = 0; i < (int)json_array_size(cells); i++) {
        const json_t *cell = json_array_get(cells, (size_t)i);
        set_cell(p, p->next, i, json_string_value(json_object_get(cell, "result")),
                 json_string_value(json_object_get(cell, "why")));
    }
    p->next++;
}

/* See vkp_probe() for what a line can be. */
static void take_line(probing *p, const char *text)
{
    json_t *line = json_loads(text, 0, NULL);
    const json_t *number;
    if ((number = json_object_get(line, "begin"))) {
        p->next = (size_t)json_integer_value(number);
        p->in_step = true;
    } else if (json_object_get(line, "finish")) {
        finish_step(p, line);
    } else if ((number = json_object_get(line, "device"))) {
        json_object_update(device_entry(p, (size_t)json_integer_value(number)),
                           json_object_get(line, "about"));
    } else if (json_object_get(line, "loader")) {
        json_decref(p->loader);
        p->loader = json_incref(json_object_get(line, "loader"));
    } else if (json_object_get(line, "why")) {
        json_object_set(p->driver, "why", json_object_get(line, "why"));
        p->over = true;
    } else if (json_object_get(line, "end")) {
        p->over = true;
    }
    json_decref(line);
}

/* Takes lines until the child closes its end. Returns false if it fell silent. */
static bool listen_to(probing *p, int fd)
{
    char buffer[8192];
    size_t used = 0;
    for (;;) {
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        int ready = poll(&polled, 1, SILENCE_MS);
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready <= 0)
            return false;
        ssize_t got = read(fd, buffer + used, sizeof buffer - 1 - used);
        if (got <= 0)
            return true;
        used += (size_t)got;
        buffer[used] = '\0';
        char *start = buffer;
        for (char *end; (end = strchr(start, '\n')); start = end + 1) {
            *end = '\0';
            take_line(p, start);
        }
        used -= (size_t)(start - buffer);
        memmove(buffer, start, used);
    }
}

/* Never returns. What the driver prints must not get between the lines, and a crash that is
 * expected here should leave no core file. */
static void run_child(const char *icd, size_t first, int fd, bool verbose)
{
    int quiet = verbose ? STDERR_FILENO : open("/dev/null", O_WRONLY);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setrlimit(RLIMIT_CORE, &(struct rlimit){0, 0});
    dup2(quiet, STDOUT_FILENO);
    dup2(quiet, STDERR_FILENO);
    vkp_use_icd(icd);
    vkp_probe(first, fd);
    _exit(0);
}

static void describe_end(bool silent, int status, vkp_why *why)
{
    if (silent) {
        vkp_fail(why, "the driver did not answer for %d s", SILENCE_MS / 1000);
    } else if (WIFSIGNALED(status)) {
        vkp_fail(why, "the driver crashed: %s", strsignal(WTERMSIG(status)));
    } else {
        vkp_fail(why, "the driver ended the process with status %d", WEXITSTATUS(status));
    }
}

/* One process, from step p->next on. `why` tells how it ended. */
static bool run_process(probing *p, const char *icd, bool verbose, vkp_why *why)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return vkp_fail(why, "no pipe: %s", strerror(errno));
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(icd, p->next, ends[1], verbose);
    }
    close(ends[1]);
    if (child < 0) {
        close(ends[0]);
        return vkp_fail(why, "no process: %s", strerror(errno));
    }
    int status = 0;
    bool silent = !listen_to(p, ends[0]);
    close(ends[0]);
    if (silent)
        kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    describe_end(silent, status, why);
    return true;
}

/* The child did not live to finish the step. */
static void lose_step(probing *p, const char *why)
{
    const vkp_step *step = &vkp_steps[p->next % vkp_step_count];
    p->in_step = false;
    if (!step->run) {
        skip_device(p, why);
        return;
    }
    for (int i = 0; i < 2; i++)
        set_cell(p, p->next, i, "failed", why);
    p->next++;
}

static void probe_driver(probing *p, const char *icd, bool verbose)
{
    while (!p->over) {
        vkp_why why;
        size_t before = p->next;
        bool ran = run_process(p, icd, verbose, &why);
        if (p->in_step) {
            lose_step(p, why.text);
        } else if (!ran || (!p->over && p->next == before)) {
            json_object_set_new(p->driver, "why", json_string(why.text));
            json_object_set_new(p->driver, "failed", json_true());
            p->over = true;
        }
    }
}

static void count_cells(const json_t *device, json_t *results)
{
    for (size_t i = 0; i < vkp_step_count; i++) {
        for (int c = 0; vkp_steps[i].kind && c < 2; c++) {
            const char *result =
                info_vulkan_result(device, vkp_steps[i].kind, vkp_steps[i].cells[c], NULL);
            json_int_t count = json_integer_value(json_object_get(results, result));
            if (*result)
                json_object_set_new(results, result, json_integer(count + 1));
        }
    }
}

static json_t *gather(bool verbose)
{
    vkp_icd_list icds;
    json_t *drivers = json_array(), *results = json_object(), *loader = json_null();
    json_int_t devices = 0;
    vkp_find_icds(&icds);
    for (size_t i = 0; i < icds.count; i++) {
        json_t *driver =
            json_pack("{s:s, s:s, s:b, s:s, s:[]}", "icd", icds.items[i].path, "found_by",
                      icds.items[i].origin, "failed", 0, "why", "", "devices");
        probing p = {.driver = driver};
        json_array_append_new(drivers, driver);
        probe_driver(&p, icds.items[i].path, verbose);
        const json_t *found = json_object_get(driver, "devices");
        devices += (json_int_t)json_array_size(found);
        for (size_t d = 0; d < json_array_size(found); d++)
            count_cells(json_array_get(found, d), results);
        if (p.loader) {
            json_decref(loader);
            loader = p.loader;
        }
    }
    vkp_free_icds(&icds);
    return json_pack("{s:o, s:I, s:o, s:o}", "loader", loader, "devices", devices, "drivers",
                     drivers, "results", results);
}

const info_section info_vulkan = {
    .backend = "vulkan",
    .gather = gather,
    .print = info_vulkan_print,
};
