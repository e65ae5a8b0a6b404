/* SPDX-License-Identifier: MIT */
#include "census.h"

#include "test.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static unsigned walk(void (*each)(const char *name))
{
    DIR *folder = opendir("/proc/self/fd");
    unsigned count = 0;
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        if (each)
            each(entry->d_name);
    }
    closedir(folder);
    return count - 1; /* the folder's own */
}

static void print_handle(const char *name)
{
    char path[64], what[256];
    snprintf(path, sizeof(path), "/proc/self/fd/%s", name);
    ssize_t length = readlink(path, what, sizeof(what) - 1);
    print_error("  %s -> %.*s\n", name, length > 0 ? (int)length : 0, what);
}

unsigned census_open_handles(void)
{
    return walk(NULL);
}

/* The thread sanitizer starts a helper, with handles in this process, when it first has a driver's
 * race to look at. */
#if defined(__SANITIZE_THREAD__)
#define HANDLES_ARE_OURS 0
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define HANDLES_ARE_OURS 0
#endif
#endif
#ifndef HANDLES_ARE_OURS
#define HANDLES_ARE_OURS 1
#endif

void census_check(unsigned before, const char *file, int line)
{
    if (!HANDLES_ARE_OURS)
        return;
    unsigned now = census_open_handles();
    if (now != before) {
        print_error("%u handles are open, %u were\n", now, before);
        walk(print_handle);
        test_check(false, "the number of open handles does not move", file, line);
    }
}

bool census_is_open(int fd)
{
    return fcntl(fd, F_GETFD) >= 0;
}

int census_free_number(void)
{
    int fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    close(fd);
    return fd;
}
