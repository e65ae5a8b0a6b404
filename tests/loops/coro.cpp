/* SPDX-License-Identifier: MIT
 *
 * The awaitable of examples/coro.hpp. Most cases drive the reactor themselves, so that each says what
 * happens between two of its turns.
 */
#include "../../examples/coro.hpp"

#include <atomic>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

/* The support library is C. */
#define _Noreturn [[noreturn]]
extern "C" {
#include "support/census.h"
#include "support/test.h"
#include "support/threads.h"
}

using syncpoint::reached;
using syncpoint::task;

static sp_reactor *reactor;
static sp_host_timeline *timeline;
static sp_point point;
static unsigned handles;
static std::atomic<unsigned> alive; /* coroutines */

/* A coroutine's frame, counted. */
struct frame {
    frame()
    {
        alive++;
    }
    ~frame()
    {
        alive--;
    }
    frame(const frame &) = delete;
};

/* What a coroutine has seen. */
struct trace {
    unsigned resumed = 0;
    sp_status status = SP_PENDING;
    sp_error error = {};
    std::thread::id thread;
};

/* Owns its coroutine, as tasks of other libraries do. */
struct owner {
    struct promise_type {
        owner get_return_object()
        {
            return {std::coroutine_handle<promise_type>::from_promise(*this)};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_always final_suspend() noexcept
        {
            return {};
        }
        void return_void() {}
        void unhandled_exception()
        {
            std::terminate();
        }
    };
    std::coroutine_handle<promise_type> coroutine;
};

static void start(sp_reactor_drive drive)
{
    sp_reactor_desc desc = {};
    desc.size = sizeof(desc);
    desc.drive = drive;
    handles = census_open_handles();
    CHECK_STATUS(sp_reactor_create(&desc, &reactor), SP_OK);
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &point), SP_OK);
}

static void finish()
{
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    sp_point_unref(&point);
    sp_host_timeline_destroy(timeline);
    CHECK_EQUAL(alive, 0);
    CHECK_HANDLES(handles);
}

static void note(trace *seen, sp_status status)
{
    seen->status = status;
    seen->thread = std::this_thread::get_id();
    if (status < 0)
        seen->error = *sp_last_error();
    seen->resumed++;
}

static task wait_for(trace *seen, const sp_point *what, uint64_t timeout_ns = SP_FOREVER,
                     sp_ticket *ticket = nullptr)
{
    frame counted;
    note(seen, co_await reached(reactor, *what, timeout_ns, ticket));
    co_return seen->status;
}

static owner owned_wait(trace *seen, const sp_point *what)
{
    frame counted;
    note(seen, co_await reached(reactor, *what));
}

/* Nothing happens by itself. */
static void check_waits(const trace *seen)
{
    CHECK_STATUS(sp_reactor_dispatch(reactor, DELAY_MS * MS), SP_TIMEOUT);
    CHECK_EQUAL(seen->resumed, 0);
}

static void signal_now(void *)
{
    CHECK_STATUS(sp_host_timeline_signal(timeline, 1), SP_OK);
}

static void fail_now(void *)
{
    CHECK_STATUS(sp_host_timeline_fail(timeline, SP_ERROR_PEER_CLOSED, "gone"), SP_OK);
}

TEST(done_late)
{
    worker late;
    trace seen;
    start(SP_REACTOR_LOOP);
    task waiting = wait_for(&seen, &point);
    check_waits(&seen);
    worker_start(&late, DELAY_MS, signal_now, nullptr);
    CHECK_STATUS(sp_reactor_dispatch(reactor, PATIENCE_NS), SP_OK);
    worker_join(&late);
    CHECK_EQUAL(seen.resumed, 1);
    CHECK_STATUS(waiting.result.get(), SP_OK);
    CHECK(seen.thread == std::this_thread::get_id());
    finish();
}

TEST(failed_late)
{
    worker late;
    trace seen;
    start(SP_REACTOR_LOOP);
    task waiting = wait_for(&seen, &point);
    check_waits(&seen);
    worker_start(&late, DELAY_MS, fail_now, nullptr);
    CHECK_STATUS(sp_reactor_dispatch(reactor, PATIENCE_NS), SP_OK);
    worker_join(&late);
    CHECK_STATUS(waiting.result.get(), SP_ERROR_FAILED);
    CHECK_STATUS(seen.error.cause, SP_ERROR_PEER_CLOSED);
    finish();
}

/* Even then it goes on in a turn of the reactor, not at once. */
TEST(reached_before)
{
    trace seen;
    start(SP_REACTOR_LOOP);
    signal_now(nullptr);
    task waiting = wait_for(&seen, &point);
    CHECK_EQUAL(seen.resumed, 0);
    CHECK_STATUS(sp_reactor_dispatch(reactor, 0), SP_OK);
    CHECK_STATUS(waiting.result.get(), SP_OK);
    finish();
}

TEST(time_is_up)
{
    trace seen;
    start(SP_REACTOR_LOOP);
    uint64_t begun = sp_now_ns();
    task waiting = wait_for(&seen, &point, DELAY_MS * MS);
    CHECK_STATUS(sp_reactor_dispatch(reactor, PATIENCE_NS), SP_OK);
    CHECK(sp_now_ns() - begun >= DELAY_MS * MS);
    CHECK_STATUS(waiting.result.get(), SP_TIMEOUT);
    finish();
}

/* What sp_notify() refuses is the result, at once. */
TEST(refused)
{
    trace seen;
    const sp_point carrier = sp_carrier_d3d12_fence(&seen, 1);
    start(SP_REACTOR_LOOP);
    task waiting = wait_for(&seen, &carrier);
    CHECK_EQUAL(seen.resumed, 1);
    CHECK_STATUS(waiting.result.get(), SP_ERROR_NOT_SUPPORTED);
    finish();
}

static void cancel_now(void *ticket)
{
    CHECK_STATUS(sp_cancel(reactor, *static_cast<sp_ticket *>(ticket)), SP_OK);
}

TEST(cancelled_late)
{
    worker late;
    trace seen;
    sp_ticket ticket = 0;
    start(SP_REACTOR_LOOP);
    task waiting = wait_for(&seen, &point, SP_FOREVER, &ticket);
    check_waits(&seen);
    worker_start(&late, DELAY_MS, cancel_now, &ticket);
    CHECK_STATUS(sp_reactor_dispatch(reactor, PATIENCE_NS), SP_OK);
    worker_join(&late);
    CHECK_STATUS(waiting.result.get(), SP_ERROR_CANCELLED);
    CHECK_STATUS(sp_cancel(reactor, ticket), SP_PENDING);
    finish();
}

/* Destroyed while it waits, and its callback still to come, with each result that it can have. */
TEST(destroyed_while_it_waits)
{
    for (unsigned round = 0; round < 4; round++) {
        trace seen;
        start(SP_REACTOR_LOOP);
        owner waiting = owned_wait(&seen, &point);
        check_waits(&seen);
        if (round == 1)
            signal_now(nullptr);
        else if (round == 2)
            fail_now(nullptr);
        waiting.coroutine.destroy();
        CHECK_EQUAL(alive, 0);
        if (round == 0)
            CHECK_STATUS(sp_reactor_dispatch(reactor, PATIENCE_NS), SP_OK);
        finish(); /* round 3: not before the reactor goes */
        CHECK_EQUAL(seen.resumed, 0);
    }
}

TEST(destroyed_after_its_end)
{
    trace seen;
    start(SP_REACTOR_LOOP);
    signal_now(nullptr);
    owner waiting = owned_wait(&seen, &point);
    CHECK_STATUS(sp_reactor_dispatch(reactor, 0), SP_OK);
    CHECK(waiting.coroutine.done());
    waiting.coroutine.destroy();
    CHECK_EQUAL(seen.resumed, 1);
    finish();
}

/* One coroutine destroys another, whose callback is due in the same turn. */
static task destroy_other(owner *other)
{
    frame counted;
    sp_status status = co_await reached(reactor, point);
    other->coroutine.destroy();
    co_return status;
}

/* In either order: which of the two callbacks comes first is not promised. */
TEST(destroyed_by_another_one)
{
    for (unsigned round = 0; round < 2; round++) {
        trace seen;
        owner other = {};
        start(SP_REACTOR_LOOP);
        if (round == 0)
            other = owned_wait(&seen, &point);
        task destroyer = destroy_other(&other);
        if (round == 1)
            other = owned_wait(&seen, &point);
        check_waits(&seen);
        signal_now(nullptr);
        while (alive > 0)
            CHECK_STATUS(sp_reactor_dispatch(reactor, PATIENCE_NS), SP_OK);
        CHECK_STATUS(destroyer.result.get(), SP_OK);
        CHECK(seen.resumed <= 1);
        finish();
    }
}

TEST(reactor_destroyed)
{
    trace seen;
    start(SP_REACTOR_LOOP);
    task waiting = wait_for(&seen, &point);
    check_waits(&seen);
    finish();
    CHECK_EQUAL(seen.resumed, 1);
    CHECK_STATUS(waiting.result.get(), SP_ERROR_CANCELLED);
}

/* ---- On the reactor's own thread ---- */

static task count_up(unsigned count)
{
    frame counted;
    std::thread::id thread;
    sp_point next = {};
    for (unsigned value = 1; value <= count; value++) {
        CHECK_STATUS(sp_point_at(&point, value, &next), SP_OK);
        sp_status status = co_await reached(reactor, next);
        sp_point_unref(&next);
        CHECK(value == 1 || thread == std::this_thread::get_id());
        thread = std::this_thread::get_id();
        if (status != SP_OK)
            co_return status;
    }
    co_return SP_OK;
}

TEST(many_at_once)
{
    const unsigned values = 50;
    std::vector<task> tasks;
    start(SP_REACTOR_THREAD);
    for (unsigned i = 0; i < 200; i++)
        tasks.push_back(count_up(i % values + 1));
    for (unsigned value = 1; value <= values; value++) {
        CHECK_STATUS(sp_host_timeline_signal(timeline, value), SP_OK);
        if (value % 10 == 0)
            test_sleep_ms(1);
    }
    for (task &each : tasks)
        CHECK_STATUS(each.result.get(), SP_OK);
    finish();
}

TEST(many_cancelled_from_elsewhere)
{
    const unsigned count = 200;
    std::vector<sp_ticket> tickets(count);
    std::vector<trace> traces(count);
    std::vector<task> tasks;
    unsigned cancelled = 0, done = 0;
    start(SP_REACTOR_THREAD);
    for (unsigned i = 0; i < count; i++)
        tasks.push_back(wait_for(&traces[i], &point, SP_FOREVER, &tickets[i]));
    for (unsigned i = 0; i < count; i++) {
        if (i == count / 2)
            signal_now(nullptr);
        sp_status status = sp_cancel(reactor, tickets[i]);
        CHECK(status == SP_OK || status == SP_PENDING);
        cancelled += status == SP_OK;
    }
    for (task &each : tasks) {
        sp_status status = each.result.get();
        CHECK(status == SP_OK || status == SP_ERROR_CANCELLED);
        done += status == SP_OK;
    }
    CHECK_EQUAL(cancelled + done, count);
    CHECK(cancelled >= count / 2);
    finish();
}

static task throw_late()
{
    frame counted;
    (void)co_await reached(reactor, point);
    throw std::runtime_error("thrown");
}

TEST(what_it_throws_is_the_result)
{
    std::string message;
    start(SP_REACTOR_LOOP);
    task throwing = throw_late();
    signal_now(nullptr);
    CHECK_STATUS(sp_reactor_dispatch(reactor, PATIENCE_NS), SP_OK);
    try {
        throwing.result.get();
    } catch (const std::runtime_error &error) {
        message = error.what();
    }
    CHECK(message == "thrown");
    finish();
}

int main(int argc, char **argv)
{
    const test_program program = {};
    return test_main(argc, argv, &program);
}
