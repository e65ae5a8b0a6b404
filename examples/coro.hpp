/* SPDX-License-Identifier: MIT
 *
 * Points in C++20 coroutines: one header, to copy.
 *
 *   sp_status status = co_await syncpoint::reached(reactor, point);
 *
 * The status is what the callback of sp_notify() gets, with its cause in sp_last_error(). The
 * coroutine goes on inside that callback: on the reactor's thread, or on the one that dispatches, and
 * the rules of sp_notify_fn hold until it waits again or ends. A wait always ends: by the point, the
 * time-out, sp_cancel() or the end of the reactor.
 *
 * Destroying a coroutine that waits cancels the wait. Do it on the thread on which it would go on: on
 * others it may just do so. sp_cancel() is for any thread.
 */
#ifndef EXAMPLES_CORO_HPP
#define EXAMPLES_CORO_HPP

#include <atomic>
#include <coroutine>
#include <exception>
#include <future>
#include <syncpoint/async.h>

namespace syncpoint
{

/* To be awaited, once. Borrows the point until then. `ticket`, for sp_cancel(), is written when the
 * wait begins, and borrowed until it is over. What follows always runs on the reactor's thread, but
 * for an error of sp_notify(). */
struct [[nodiscard]] reached : std::suspend_always {
    reached(sp_reactor *reactor, const sp_point &point, uint64_t timeout_ns = SP_FOREVER,
            sp_ticket *ticket = nullptr)
        : reactor_(reactor), point_(&point), timeout_ns_(timeout_ns),
          ticket_(ticket ? ticket : &wait_->ticket)
    {
    }
    reached(const reached &) = delete;
    ~reached()
    {
        if (wait_->coroutine.exchange(nullptr))
            sp_cancel(reactor_, *ticket_); /* destroyed while it waits: called_back() deletes */
        else
            delete wait_;
    }

    /* Once sp_notify() was called, the coroutine may run elsewhere, or be gone. Not inlined: clang
     * before 17 would keep variables of this function in the coroutine then. */
    [[gnu::noinline]] bool await_suspend(std::coroutine_handle<> coroutine) noexcept
    {
        wait *self = wait_;
        self->coroutine = coroutine.address();
        sp_status status = sp_notify(reactor_, point_, timeout_ns_, called_back, self, ticket_);
        if (status == SP_OK)
            return true;
        self->status = status;
        self->coroutine = nullptr;
        return false;
    }
    sp_status await_resume() const noexcept
    {
        return wait_->status;
    }

  private:
    /* Not in the coroutine: the callback comes even if that is gone. */
    struct wait {
        std::atomic<void *> coroutine{nullptr}; /* null: called back, or destroyed */
        sp_status status = SP_OK;
        sp_ticket ticket = 0;
    };

    static void called_back(void *user, sp_status status) noexcept
    {
        wait *self = static_cast<wait *>(user);
        self->status = status;
        if (void *coroutine = self->coroutine.exchange(nullptr))
            std::coroutine_handle<>::from_address(coroutine).resume();
        else
            delete self;
    }

    wait *const wait_ = new wait; /* first: ticket_ may point into it */
    sp_reactor *const reactor_;
    const sp_point *const point_;
    const uint64_t timeout_ns_;
    sp_ticket *const ticket_;
};

/* The least that a coroutine can return. It starts at once, on the caller's thread. result.get() is
 * not for the thread on which it goes on: it blocks. */
struct [[nodiscard]] task {
    struct promise_type : std::promise<sp_status> {
        task get_return_object()
        {
            return {get_future()};
        }
        std::suspend_never initial_suspend() noexcept
        {
            return {};
        }
        std::suspend_never final_suspend() noexcept
        {
            return {};
        }
        void return_value(sp_status status)
        {
            set_value(status);
        }
        void unhandled_exception()
        {
            set_exception(std::current_exception());
        }
    };
    std::future<sp_status> result;
};

} // namespace syncpoint

#endif
