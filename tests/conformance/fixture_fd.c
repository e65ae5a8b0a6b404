/* SPDX-License-Identifier: MIT
 *
 * File descriptors: an eventfd for each point, opened beforehand, since cases count handles.
 */
#include "conformance.h"

#include <pthread.h>
#include <syncpoint/linux.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <unistd.h>

#define MOST 2500

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
    uint64_t number;
    int fd;
    bool raised;
} made[MOST];
static size_t made_count;

static void setup(const void *user)
{
    struct rlimit limit;
    (void)user;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    limit.rlim_cur = limit.rlim_max;
    CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
    for (size_t i = 0; i < MOST; i++)
        made[i].fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

static sp_point fd_point(uint64_t number)
{
    sp_point point = {0};
    pthread_mutex_lock(&lock);
    CHECK(made_count < MOST);
    made[made_count].number = number;
    CHECK_STATUS(sp_fd_point(made[made_count++].fd, 0, &point), SP_OK);
    pthread_mutex_unlock(&lock);
    return point;
}

static void signal(uint64_t number)
{
    const uint64_t one = 1;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < made_count; i++) {
        if (made[i].number > number || made[i].raised)
            continue;
        made[i].raised = true;
        CHECK(write(made[i].fd, &one, sizeof(one)) == sizeof(one));
    }
    pthread_mutex_unlock(&lock);
}

static void release_owner(void) {}

static void teardown(void)
{
    for (size_t i = 0; i < MOST; i++)
        close(made[i].fd);
}

static const fixture fd = {
    .kind = SP_KIND_FD,
    .backend = SP_BACKEND_CPU,
    .pending = SP_PENDING,
    .timed_out = SP_TIMEOUT,
    .mark_submitted = SP_ERROR_NOT_SUPPORTED,
    .setup = setup,
    .point = fd_point,
    .signal = signal,
    .release_owner = release_owner,
    .teardown = teardown,
};

const test_target fd_targets[] = {
    {"fd", ONE_SHOT | POLLED | INDEPENDENT | UNLAYERED, (void *)&fd},
    {NULL, 0, NULL},
};
