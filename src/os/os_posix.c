/* SPDX-License-Identifier: MIT */
#include "os.h"

#include "atomic.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <syncpoint/syncpoint.h>
#include <time.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)

/* Any sane deadline is far below this; the kernel wants a signed number of seconds. */
#define LAST_DEADLINE ((uint64_t)INT64_MAX)

static struct timespec timespec_of(uint64_t ns)
{
    if (ns > LAST_DEADLINE)
        ns = LAST_DEADLINE;
    return (struct timespec){.tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S)};
}

uint64_t sp_os_now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

void sp_os_sleep_until(uint64_t deadline_ns)
{
    struct timespec until = timespec_of(deadline_ns);
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL) == EINTR)
        ;
}

void sp_os_yield(void)
{
    sched_yield();
}

bool sp_os_mutex_init(sp_os_mutex *mutex)
{
    return pthread_mutex_init(&mutex->native, NULL) == 0;
}
void sp_os_mutex_fini(sp_os_mutex *mutex)
{
    pthread_mutex_destroy(&mutex->native);
}
void sp_os_mutex_lock(sp_os_mutex *mutex)
{
    pthread_mutex_lock(&mutex->native);
}
void sp_os_mutex_unlock(sp_os_mutex *mutex)
{
    pthread_mutex_unlock(&mutex->native);
}

bool sp_os_cond_init(sp_os_cond *cond)
{
    pthread_condattr_t attr;
    if (pthread_condattr_init(&attr) != 0)
        return false;
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    bool ok = pthread_cond_init(&cond->native, &attr) == 0;
    pthread_condattr_destroy(&attr);
    return ok;
}

void sp_os_cond_fini(sp_os_cond *cond)
{
    pthread_cond_destroy(&cond->native);
}
void sp_os_cond_broadcast(sp_os_cond *cond)
{
    pthread_cond_broadcast(&cond->native);
}

bool sp_os_cond_wait_until(sp_os_cond *cond, sp_os_mutex *mutex, uint64_t deadline_ns)
{
    if (deadline_ns == UINT64_MAX)
        return pthread_cond_wait(&cond->native, &mutex->native) == 0;
    struct timespec until = timespec_of(deadline_ns);
    return pthread_cond_timedwait(&cond->native, &mutex->native, &until) != ETIMEDOUT;
}

static int start_quietly(sp_os_thread *thread, void *(*run)(void *user), void *user)
{
    sigset_t all, before;
    sigfillset(&all);
    int error = pthread_sigmask(SIG_SETMASK, &all, &before);
    if (error != 0)
        return error;
    error = pthread_create(&thread->native, NULL, run, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

int sp_os_thread_start(sp_os_thread *thread, const char *name, void *(*run)(void *user), void *user)
{
    char cut[16];
    int error = start_quietly(thread, run, user);
    if (error != 0)
        return error;
    snprintf(cut, sizeof(cut), "%s", name);
    pthread_setname_np(thread->native, cut);
    return 0;
}

void sp_os_thread_join(sp_os_thread *thread)
{
    pthread_join(thread->native, NULL);
}

uint64_t sp_os_thread_self(void)
{
    static _Thread_local char own;
    return (uint64_t)(uintptr_t)&own;
}

uint64_t sp_os_thread_cpu_ns(void)
{
    struct timespec used;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * NS_PER_S + (uint64_t)used.tv_nsec;
}

void sp_os_spin_wait(uint32_t *lock)
{
    for (unsigned tries = 0; !sp_cas32(lock, 0, 1); tries++) {
        if (tries < 64)
            sp_cpu_relax();
        else
            sched_yield();
    }
}

uint32_t sp_fork_generation = 1;

static void count_fork(void)
{
    sp_fork_generation++;
}

static void install_fork_handler(void)
{
    pthread_atfork(NULL, NULL, count_fork);
}

void sp_os_watch_forks(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install_fork_handler);
}

void *sp_os_library_open(const char *name)
{
    return dlopen(name, RTLD_NOW | RTLD_LOCAL);
}

void *sp_os_library_symbol(void *library, const char *name)
{
    return dlsym(library, name);
}

void sp_os_library_close(void *library)
{
    dlclose(library);
}

int sp_os_fd_duplicate(int fd)
{
    return fcntl(fd, F_DUPFD_CLOEXEC, 0);
}

bool sp_os_fd_exhausted(void)
{
    int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        return errno == EMFILE || errno == ENFILE;
    close(fd);
    return false;
}

void sp_os_fd_close(int fd)
{
    /* Linux closes the number even when it reports EINTR: never close twice. */
    (void)close(fd);
}
