/* SPDX-License-Identifier: MIT
 *
 * An epoll over an eventfd and a timer: its own number can be waited for by any loop. Timers are exact,
 * where the timeouts of poll() and epoll_wait() come some 50 us late, or in whole milliseconds.
 */
#include "os.h"

#include <errno.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#define NS_PER_S UINT64_C(1000000000)
#define LAST_DEADLINE ((uint64_t)INT64_MAX)
#define RANG 0 /* no deadline that is asked for: the next one is set in any case */

/* What an event of the epoll is about: one of ours, or the number of one that was added. */
#define THE_EVENT (UINT64_C(1) << 32)
#define THE_TIMER (UINT64_C(2) << 32)

#define AT_ONCE 16 /* events that are taken in one call */

static bool add(int epoll, int fd, uint64_t about)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = about};
    return epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) == 0;
}

bool sp_os_alarm_add(sp_os_alarm *alarm, int fd, uint32_t number)
{
    return add(alarm->fd, fd, number);
}

void sp_os_alarm_remove(sp_os_alarm *alarm, int fd)
{
    epoll_ctl(alarm->fd, EPOLL_CTL_DEL, fd, NULL);
}

static void close_open(int fd)
{
    if (fd >= 0)
        close(fd);
}

int sp_os_alarm_init(sp_os_alarm *alarm)
{
    alarm->fd = epoll_create1(EPOLL_CLOEXEC);
    alarm->event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    alarm->timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    alarm->deadline_ns = UINT64_MAX;
    if (alarm->fd >= 0 && alarm->event >= 0 && alarm->timer >= 0 &&
        add(alarm->fd, alarm->event, THE_EVENT) && add(alarm->fd, alarm->timer, THE_TIMER))
        return 0;
    int error = errno;
    sp_os_alarm_fini(alarm);
    return error;
}

void sp_os_alarm_fini(sp_os_alarm *alarm)
{
    close_open(alarm->timer);
    close_open(alarm->event);
    close_open(alarm->fd);
}

bool sp_os_alarm_rings(const sp_os_alarm *alarm)
{
    struct pollfd wanted = {.fd = alarm->fd, .events = POLLIN};
    return poll(&wanted, 1, 0) > 0;
}

static void add_one(int fd)
{
    const uint64_t one = 1;
    while (write(fd, &one, sizeof(one)) < 0 && errno == EINTR)
        ;
}

void sp_os_alarm_ring(sp_os_alarm *alarm)
{
    add_one(alarm->event);
}

void sp_os_alarm_set(sp_os_alarm *alarm, uint64_t deadline_ns)
{
    struct itimerspec when = {{0}, {0}}; /* zero: never */
    deadline_ns = deadline_ns != RANG ? deadline_ns : RANG + 1;
    if (deadline_ns == alarm->deadline_ns)
        return;
    if (deadline_ns != UINT64_MAX) {
        uint64_t at = deadline_ns < LAST_DEADLINE ? deadline_ns : LAST_DEADLINE;
        when.it_value.tv_sec = (time_t)(at / NS_PER_S);
        when.it_value.tv_nsec = (long)(at % NS_PER_S);
    }
    /* Also takes back that it has rung. */
    timerfd_settime(alarm->timer, TFD_TIMER_ABSTIME, &when, NULL);
    alarm->deadline_ns = deadline_ns;
}

static void take(int fd)
{
    uint64_t count;
    while (read(fd, &count, sizeof(count)) < 0 && errno == EINTR)
        ;
}

size_t sp_os_alarm_wait(sp_os_alarm *alarm, bool block, uint32_t *readable, size_t room)
{
    struct epoll_event events[AT_ONCE];
    size_t found = 0;
    int most = room + 2 < AT_ONCE ? (int)room + 2 : AT_ONCE; /* ours are two */
    int count;
    do
        count = epoll_wait(alarm->fd, events, most, block ? -1 : 0);
    while (count < 0 && errno == EINTR && block);
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 == THE_EVENT)
            take(alarm->event);
        else if (events[i].data.u64 == THE_TIMER)
            alarm->deadline_ns = RANG; /* setting it takes that back */
        else if (found < room)
            readable[found++] = (uint32_t)events[i].data.u64;
    }
    return found;
}

int sp_os_signal_fd_create(void)
{
    return eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
}

void sp_os_signal_fd_raise(int fd)
{
    add_one(fd);
}
