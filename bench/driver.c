/* SPDX-License-Identifier: MIT */
#include "driver.h"

#include "../tools/vk_probe_icd.h"
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_S 150 /* for one driver's process */
#define EXIT_NOT_HERE 77

static const bench_scale full = {.batches = 1000, .wakes = 4000, .blocks = 400, .handoffs = 4000};
static const bench_scale quick_scale = {
    .batches = 100, .wakes = 500, .blocks = 80, .handoffs = 500};

bool bench_wants(const bench *b, const char *name)
{
    return strstr(name, b->filter);
}

static json_t *number_or_null(bool known, double number)
{
    return known ? json_real(number) : json_null();
}

void bench_emit(const bench *b, const bench_row *row)
{
    bool has_raw = row->raw >= 0;
    json_t *object = json_pack(
        "{s:s, s:s, s:s, s:f, s:o, s:o, s:I}", "name", row->name, "driver", b->driver, "unit",
        row->unit, "ours", row->ours, "raw", number_or_null(has_raw, row->raw), "ratio",
        number_or_null(row->raw > 0, row->ours / row->raw), "n", (json_int_t)row->n);
    char *line = object ? json_dumps(object, JSON_COMPACT) : NULL;
    bench_check(line && dprintf(b->fd, "%s\n", line) > 0, "cannot write a row");
    free(line);
    json_decref(object);
}

/* Short and stable, for the rows. */
static const char *driver_name(const vkp_driver *driver)
{
    static char name[VK_MAX_DRIVER_NAME_SIZE];
    VkPhysicalDeviceDriverProperties made_by = {
        .sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_DRIVER_PROPERTIES};
    VkPhysicalDeviceProperties2 all = {.sType = VK_STRUCTURE_TYPE_PHYSICAL_DEVICE_PROPERTIES_2,
                                       .pNext = &made_by};
    driver->get_properties2(driver->devices[0], &all);
    if (made_by.driverID == VK_DRIVER_ID_MESA_LLVMPIPE)
        return "lavapipe";
    if (made_by.driverID == VK_DRIVER_ID_GOOGLE_SWIFTSHADER)
        return "swiftshader";
    snprintf(name, sizeof name, "%s", *made_by.driverName ? made_by.driverName : "vulkan");
    return name;
}

static bool can_share(const bench *b)
{
    sp_vk_semaphore_caps caps = {.size = sizeof caps};
    sp_status status =
        sp_vk_device_semaphore_caps(b->a.sp_device, VK_SEMAPHORE_TYPE_BINARY,
                                    VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD_BIT, &caps);
    return status == SP_OK && caps.can_export && caps.can_import;
}

static bool open_devices(bench *b, const vkp_driver *driver, vkp_why *why)
{
    VkPhysicalDevice physical = driver->devices[0];
    if (!vkp_device_open(driver, physical, &b->a, why) ||
        !vkp_device_open(driver, physical, &b->b, why))
        return false;
    b->driver = driver_name(driver);
    b->has_driver = true;
    b->can_share = can_share(b);
    return (raw_vk_load(&b->raw_a, b->a.device, b->a.queue, b->a.get_proc_addr) &&
            raw_vk_load(&b->raw_b, b->b.device, b->b.queue, b->b.get_proc_addr)) ||
           vkp_fail(why, "the driver lacks a function");
}

static void measure_all(const bench *b)
{
    bench_points(b);
    bench_probes(b);
    bench_waits(b);
    bench_wait_any(b);
    bench_reactor(b);
    bench_handoffs(b);
#ifdef SP_BENCH_CUDA
    bench_cuda(b);
#endif
}

bool bench_measure_core(bench *b, const bench_driver *self)
{
    (void)self;
    b->driver = "core";
    measure_all(b);
    return true;
}

bool bench_measure_vulkan(bench *b, const bench_driver *self)
{
    vkp_driver driver;
    vkp_why why = {""};
    vkp_use_icd(self->icd);
    if (!vkp_loader_open(&driver, &why) || !vkp_driver_open(&driver, &why) ||
        driver.device_count == 0)
        return false;
    bench_check(open_devices(b, &driver, &why), why.text);
    measure_all(b);
    bench_check(vkp_device_close(&b->b, &why) && vkp_device_close(&b->a, &why), why.text);
    vkp_driver_close(&driver);
    return true;
}

/* Never returns. A driver that hangs is ended by the alarm. */
static void run_child(const bench_driver *driver, bool quick, const char *filter, int fd)
{
    bench b = {.scale = quick ? quick_scale : full, .filter = filter, .fd = fd};
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    alarm(LIMIT_S);
    _exit(driver->measure(&b, driver) ? 0 : EXIT_NOT_HERE);
}

static void read_rows(int fd, json_t *rows)
{
    FILE *file = fdopen(fd, "r");
    char *line = NULL;
    size_t size = 0;
    while (file && getline(&line, &size, file) > 0)
        json_array_append_new(rows, json_loads(line, 0, NULL));
    free(line);
    if (file) {
        fclose(file);
    } else {
        close(fd);
    }
}

bench_outcome bench_run_driver(const bench_driver *driver, bool quick, const char *filter,
                               json_t *rows)
{
    int ends[2], status = 0;
    if (pipe(ends) != 0)
        return BENCH_BROKEN;
    pid_t child = fork();
    if (child == 0) {
        close(ends[0]);
        run_child(driver, quick, filter, ends[1]);
    }
    close(ends[1]);
    read_rows(ends[0], rows);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return BENCH_DONE;
    if (child > 0 && WIFEXITED(status) && WEXITSTATUS(status) == EXIT_NOT_HERE)
        return BENCH_NOT_HERE;
    fprintf(stderr, "syncpoint-bench: %s: %s\n", driver->name,
            child < 0             ? "no process"
            : WIFSIGNALED(status) ? strsignal(WTERMSIG(status))
                                  : "failed");
    return BENCH_BROKEN;
}
