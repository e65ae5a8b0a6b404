/* SPDX-License-Identifier: MIT
 *
 * `syncpoint demo`: chooses the driver and the way to run, and reports.
 */
#include "demo.h"

#include "commands.h"
#include "demo_options.h"
#include "demo_report.h"
#include "demo_sheet.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

uint32_t demo_count_handles(void)
{
    DIR *folder = opendir("/proc/self/fd");
    if (!folder)
        return 0;
    uint32_t count = 0;
    const struct dirent *entry;
    while ((entry = readdir(folder)))
        count += entry->d_name[0] != '.';
    closedir(folder);
    return count - 1; /* without the folder's own */
}

bool demo_gpu_ok(const struct gpu *gpu, bool ok)
{
    if (!ok)
        tool_error("%s", gpu->problem);
    return ok;
}

bool demo_sync_ok(sp_status status, const char *call)
{
    if (status == SP_OK)
        return true;
    tool_error("%s: %s: %s", call, sp_status_name(status),
               status < 0 ? sp_last_error()->message : sp_status_text(status));
    return false;
}

/* ---- Which driver -------------------------------------------------------------------------- */

/* The loader's two names for the same thing: newer ones prefer the second. NULL: all drivers. */
static void restrict_drivers(const char *icd)
{
    static const char *const names[] = {"VK_ICD_FILENAMES", "VK_DRIVER_FILES"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (icd) {
            setenv(names[i], icd, 1);
        } else {
            unsetenv(names[i]);
        }
    }
}

static bool icd_beside_program(char *path, size_t size)
{
    static const char name[] = "vk_swiftshader_icd.json";
    const ssize_t length = readlink("/proc/self/exe", path, size - 1);
    if (length < 0)
        return false;
    path[length] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash + 1 - path) + sizeof name > size)
        return false;
    memcpy(slash + 1, name, sizeof name);
    return true;
}

/* SwiftShader's manifest; false: there is none, *why says so. */
static bool find_swiftshader(const struct demo_options *options, char *path, size_t size,
                             const char **why)
{
    const char *named = options->swiftshader_icd;
    if (!named)
        named = getenv("SP_TEST_SWIFTSHADER_ICD");
    if (named && *named) {
        snprintf(path, size, "%s", named);
    } else if (!icd_beside_program(path, size)) {
        path[0] = '\0';
    }
    *why = "there is no SwiftShader here";
    return path[0] && access(path, R_OK) == 0;
}

/* ---- Running ------------------------------------------------------------------------------- */

/* Why the first way to run was not taken, for the report. */
struct fallback {
    bool taken;
    char because[640];
};

static bool run_fallback(const struct demo_options *options, struct gpu *gpu, const char *because,
                         struct fallback *fallback, struct demo_result *result)
{
    fallback->taken = true;
    snprintf(fallback->because, sizeof fallback->because, "%s", because);
    fprintf(stderr, "one process instead of two: %s\n", fallback->because);
    if (options->broken) {
        tool_error("--break needs two processes: on one queue, work is in order anyway");
        return false;
    }
    struct gpu_choice choice = {.name_part = options->device, .validate = options->validate};
    if (!options->device) {
        choice.name_part = "llvmpipe";
        restrict_drivers(getenv("SP_TEST_LAVAPIPE_ICD"));
    }
    return demo_run_threads(options, &choice, gpu, result);
}

static bool run_best(const struct demo_options *options, char **argv, struct gpu *gpu,
                     struct fallback *fallback, struct demo_result *result)
{
    char icd[PATH_MAX];
    const char *why = NULL;
    const char *named = options->swiftshader_icd;
    if (named && access(named, R_OK) != 0) {
        tool_error("--swiftshader-icd %s: %s", named, strerror(errno));
        return false;
    }
    struct gpu_choice choice = {.name_part = options->device, .validate = options->validate};
    if (!options->device) {
        if (!find_swiftshader(options, icd, sizeof icd, &why))
            return run_fallback(options, gpu, why, fallback, result);
        restrict_drivers(icd);
        choice.name_part = "SwiftShader";
    }
    bool unsupported = false;
    if (demo_run_processes(options, &choice, argv, gpu, &unsupported, result))
        return true;
    if (!unsupported)
        return false;
    /* The device that was asked for does not open at all: there is nothing to fall back to. */
    if (options->device && !gpu->device)
        return demo_gpu_ok(gpu, false);
    char because[sizeof gpu->problem];
    memcpy(because, gpu->problem, sizeof because);
    return demo_gpu_ok(gpu, gpu_close(gpu)) &&
           run_fallback(options, gpu, because, fallback, result);
}

static bool create_result(const struct demo_options *options, struct demo_result *result)
{
    result->latencies_ns = calloc(options->frames, sizeof *result->latencies_ns);
    if (result->latencies_ns && demo_sheet_create(&result->sheet))
        return true;
    tool_error("out of memory");
    return false;
}

int sp_cmd_demo(int argc, char **argv)
{
    struct demo_options options;
    int exit_status;
    if (!demo_parse_options(argc, argv, &options, &exit_status))
        return exit_status;
    if (access(options.out, W_OK | X_OK) != 0) {
        tool_error("%s: %s", options.out, strerror(errno));
        return TOOL_EXIT_FAILED;
    }
    struct gpu gpu;
    struct fallback fallback = {.taken = false};
    struct demo_result result = {0};
    if (!create_result(&options, &result))
        return TOOL_EXIT_FAILED;
    if (!run_best(&options, argv, &gpu, &fallback, &result)) {
        /* No destructor of a driver that may be stuck. */
        fflush(NULL);
        _exit(TOOL_EXIT_FAILED);
    }
    const struct demo_report report = {
        .options = &options,
        .gpu = &gpu,
        .result = &result,
        .one_process_because = fallback.taken ? fallback.because : NULL,
    };
    exit_status = demo_report(&report);
    demo_sheet_destroy(&result.sheet);
    free(result.latencies_ns);
    return exit_status;
}
