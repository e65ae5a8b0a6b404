/* SPDX-License-Identifier: MIT
 *
 * Coroutines that wait for points: late ones, one that fails, one that is cancelled, many at once.
 *
 * Prints, in any order:
 *     render: SP_OK
 *     upload: SP_OK
 *     decode: SP_ERROR_FAILED, the file is cut off
 *     never: SP_ERROR_CANCELLED
 *     in time: SP_TIMEOUT
 *     100 at once: SP_OK
 *     one after the other: SP_ERROR_FAILED, the file is cut off
 */
#include "coro.hpp"

#include <cstdio>
#include <vector>

#include "work.h"

using syncpoint::reached;
using syncpoint::task;

static void print(const char *name, sp_status status)
{
    const bool told = status < 0 && status != SP_ERROR_CANCELLED;
    std::printf("%s: %s%s%s\n", name, sp_status_name(status), told ? ", " : "",
                told ? sp_last_error()->message : "");
}

static task show(sp_reactor *reactor, const char *name, sp_point point,
                 uint64_t timeout_ns = SP_FOREVER, sp_ticket *ticket = nullptr)
{
    sp_status status = co_await reached(reactor, point, timeout_ns, ticket);
    print(name, status);
    co_return status;
}

static task quiet(sp_reactor *reactor, sp_point point)
{
    co_return co_await reached(reactor, point);
}

/* Each goes on where the one before it ended: no thread waits. */
static task one_after_the_other(sp_reactor *reactor, const work *jobs)
{
    sp_status status = SP_OK;
    for (int i = 0; i < WORK_COUNT && status == SP_OK; i++)
        status = co_await reached(reactor, jobs->points[i]);
    print("one after the other", status);
    co_return status;
}

static void hundred_at_once(sp_reactor *reactor, sp_point point)
{
    std::vector<task> tasks;
    sp_status status = SP_OK;
    tasks.reserve(100);
    for (int i = 0; i < 100; i++)
        tasks.push_back(quiet(reactor, point));
    for (task &each : tasks) {
        sp_status ended = each.result.get();
        status = status == SP_OK ? ended : status;
    }
    print("100 at once", status);
}

int main()
{
    sp_reactor *reactor = nullptr;
    sp_host_timeline *idle = nullptr;
    sp_ticket ticket = 0;
    sp_point never = {};
    work jobs;

    work_start(&jobs);
    must(sp_reactor_create(nullptr, &reactor));
    must(sp_host_timeline_create(0, &idle));
    must(sp_host_timeline_point(idle, 1, &never));
    {
        std::vector<task> tasks;
        tasks.reserve(WORK_COUNT + 3);
        for (int i = 0; i < WORK_COUNT; i++)
            tasks.push_back(show(reactor, jobs.names[i], jobs.points[i]));
        tasks.push_back(one_after_the_other(reactor, &jobs));
        tasks.push_back(show(reactor, "in time", never, 20000000));
        tasks.push_back(show(reactor, "never", never, SP_FOREVER, &ticket));
        hundred_at_once(reactor, jobs.points[RENDER]);
        must(sp_cancel(reactor, ticket));
        for (task &each : tasks)
            each.result.wait();
    }
    must(sp_reactor_destroy(reactor));
    sp_point_unref(&never);
    sp_host_timeline_destroy(idle);
    work_finish(&jobs);
    return 0;
}
