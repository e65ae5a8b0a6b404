/* SPDX-License-Identifier: MIT
 *
 * The reactor itself: made, turned, slept, ended.
 */
#include "async/reactor.h"

#include <stdio.h>
#include <stdlib.h>

/* ---- Sleeping and waking ---- */

void sp_reactor_ring(sp_reactor *reactor)
{
    if (sp_load32(&reactor->inbox.sleeping) && sp_cas32(&reactor->inbox.sleeping, 1, 0))
        sp_os_alarm_ring(&reactor->alarm);
}

static bool inbox_is_empty(sp_inbox *inbox)
{
    sp_os_mutex_lock(&inbox->lock);
    bool empty = !inbox->intake.first && !inbox->cancelled && !inbox->woken && !inbox->has_news &&
                 !inbox->ending;
    sp_os_mutex_unlock(&inbox->lock);
    return empty;
}

static uint64_t next_deadline(const sp_reactor *reactor, uint64_t deadline_ns)
{
    if (reactor->poller.ring.count && reactor->poller.next_ns < deadline_ns)
        deadline_ns = reactor->poller.next_ns;
    if (reactor->deadlines) {
        uint64_t first = sp_ticket_at(reactor, reactor->deadlines)->by_deadline.key;
        deadline_ns = first < deadline_ns ? first : deadline_ns;
    }
    return deadline_ns;
}

/* From here on the alarm rings when there is something to do. Whoever puts something into the inbox
 * before `sleeping` is set is seen by the look that follows; who does so later sees it set. */
static bool prepare_sleep(sp_reactor *reactor, uint64_t deadline_ns)
{
    sp_os_alarm_set(&reactor->alarm, next_deadline(reactor, deadline_ns));
    sp_store32(&reactor->inbox.sleeping, 1);
    return inbox_is_empty(&reactor->inbox);
}

static void hear(sp_reactor *reactor, bool block)
{
    reactor->readable_count =
        sp_os_alarm_wait(&reactor->alarm, block, reactor->readable, SP_READABLE_AT_ONCE);
    sp_store32(&reactor->inbox.sleeping, 0);
}

static void sleep_until(sp_reactor *reactor, uint64_t deadline_ns)
{
    bool nothing = prepare_sleep(reactor, deadline_ns);
    hear(reactor, nothing);
}

/* ---- One turn ---- */

typedef struct batch {
    uint32_t intake, cancelled, woken;
    bool has_news;
} batch;

static batch take(sp_inbox *inbox)
{
    sp_os_mutex_lock(&inbox->lock);
    batch taken = {inbox->intake.first, inbox->cancelled, inbox->woken, inbox->has_news};
    inbox->intake = (sp_ticket_list){0};
    inbox->cancelled = inbox->woken = 0;
    inbox->has_news = false;
    sp_os_mutex_unlock(&inbox->lock);
    return taken;
}

static void see_woken(sp_reactor *reactor, uint32_t number)
{
    while (number) {
        uint32_t next = sp_source_at(reactor, number)->next;
        sp_source_woken(reactor, number);
        number = next;
    }
}

/* First of all: the numbers may be another's once something was closed. */
static void see_readable(sp_reactor *reactor)
{
    size_t count = reactor->readable_count;
    reactor->readable_count = 0;
    for (size_t i = 0; i < count; i++)
        sp_source_look(reactor, reactor->readable[i]);
}

static void see_intake(sp_reactor *reactor, uint32_t number)
{
    while (number) {
        uint32_t next = sp_ticket_at(reactor, number)->u.by_value.next;
        sp_ticket_file(reactor, number);
        number = next;
    }
}

static void see_cancelled(sp_reactor *reactor, uint32_t number)
{
    while (number) {
        uint32_t next = sp_ticket_at(reactor, number)->next;
        sp_ticket_take_back(reactor, number);
        number = next;
    }
}

/* Tells how many callbacks ran. */
static size_t turn(sp_reactor *reactor)
{
    batch taken = take(&reactor->inbox);
    see_readable(reactor);
    see_woken(reactor, taken.woken);
    see_intake(reactor, taken.intake);
    see_cancelled(reactor, taken.cancelled);
    if (taken.has_news)
        sp_watchers_see_news(reactor);
    uint64_t now_ns = sp_os_now_ns();
    sp_poller_run(reactor, now_ns);
    sp_tickets_time_out(reactor, now_ns);
    sp_watchers_settle(reactor);
    size_t count = sp_tickets_run_due(reactor);
    if (!sp_reactor_is_forked(reactor))
        sp_watchers_resume(reactor);
    return count;
}

/* ---- The end ---- */

/* What a callback cancels then is cancelled already, and nothing is taken in. */
static void cancel_all(sp_reactor *reactor)
{
    batch taken = take(&reactor->inbox);
    see_cancelled(reactor, taken.cancelled);
    sp_tickets_cancel_all(reactor);
    sp_watchers_end(reactor);
    sp_tickets_run_due(reactor);
}

static bool is_ending(sp_reactor *reactor)
{
    sp_os_mutex_lock(&reactor->inbox.lock);
    bool ending = reactor->inbox.ending;
    sp_os_mutex_unlock(&reactor->inbox.lock);
    return ending;
}

static void *run_thread(void *user)
{
    sp_reactor *reactor = user;
    sp_store64(&reactor->dispatcher, sp_os_thread_self());
    while (!is_ending(reactor)) {
        turn(reactor);
        if (sp_reactor_is_forked(reactor))
            return NULL; /* a callback forked, and this is the child */
        sleep_until(reactor, SP_FOREVER);
    }
    cancel_all(reactor);
    return NULL;
}

static void free_reactor(sp_reactor *reactor)
{
    sp_tickets_fini(reactor);
    sp_sources_fini(&reactor->sources);
    sp_os_alarm_fini(&reactor->alarm);
    free(reactor);
}

static sp_status fail_in_callback(void)
{
    return sp_fail(SP_ERROR_INVALID_STATE, "called from a callback of this very reactor");
}

/* The child of a fork() has neither the thread, nor a lock that is sure to be free. */
static sp_status destroy_forked(sp_reactor *reactor)
{
    if (sp_load64(&reactor->dispatcher) == sp_os_thread_self())
        return fail_in_callback();
    sp_tickets_forget(reactor);
    sp_watchers_forget(reactor);
    sp_sources_forget(reactor);
    free_reactor(reactor);
    return SP_OK;
}

/* Makes this thread the one that dispatches. */
static sp_status claim(sp_reactor *reactor)
{
    uint64_t self = sp_os_thread_self();
    if (sp_load64(&reactor->dispatcher) == self)
        return fail_in_callback();
    if (!sp_cas64(&reactor->dispatcher, 0, self))
        return sp_fail(SP_ERROR_INVALID_STATE, "another thread dispatches this reactor");
    return SP_OK;
}

static void say_ending(sp_reactor *reactor)
{
    sp_os_mutex_lock(&reactor->inbox.lock);
    reactor->inbox.ending = true;
    sp_os_mutex_unlock(&reactor->inbox.lock);
}

static sp_status end_thread(sp_reactor *reactor)
{
    if (sp_load64(&reactor->dispatcher) == sp_os_thread_self())
        return fail_in_callback();
    say_ending(reactor);
    sp_reactor_ring(reactor);
    sp_os_thread_join(&reactor->thread);
    return SP_OK;
}

static sp_status end_here(sp_reactor *reactor)
{
    sp_status status = claim(reactor);
    if (status != SP_OK)
        return status;
    say_ending(reactor);
    cancel_all(reactor);
    return SP_OK;
}

sp_status sp_reactor_destroy(sp_reactor *reactor)
{
    if (!reactor)
        return SP_OK;
    if (sp_reactor_is_forked(reactor))
        return destroy_forked(reactor);
    bool has_thread = reactor->drive == SP_REACTOR_THREAD;
    sp_status status = has_thread ? end_thread(reactor) : end_here(reactor);
    if (status != SP_OK)
        return status;
    sp_os_mutex_fini(&reactor->inbox.lock);
    free_reactor(reactor);
    return SP_OK;
}

/* ---- The beginning ---- */

static sp_status fail_system(int error, const char *what)
{
    return sp_fail_native(SP_ERROR_SYSTEM, SP_BACKEND_CPU, error, what,
                          "sp_reactor_create: the system gave none (%s)", what);
}

static sp_status start(sp_reactor *reactor)
{
    int error = sp_os_alarm_init(&reactor->alarm);
    if (error != 0)
        return fail_system(error, "eventfd, timerfd or epoll");
    if (reactor->drive == SP_REACTOR_LOOP) {
        (void)prepare_sleep(reactor, SP_FOREVER);
        return SP_OK;
    }
    error = sp_os_thread_start(&reactor->thread, reactor->name, run_thread, reactor);
    if (error == 0)
        return SP_OK;
    sp_os_alarm_fini(&reactor->alarm);
    return fail_system(error, "pthread_create");
}

static sp_status make(const sp_reactor_desc *desc, sp_reactor **out)
{
    sp_reactor *made = calloc(1, sizeof(*made));
    if (!made || !sp_sources_init(&made->sources))
        goto no_memory;
    if (!sp_os_mutex_init(&made->inbox.lock))
        goto no_memory;
    made->drive = desc->drive;
    made->pace = desc->pace;
    made->log = desc->log;
    made->fork_generation = sp_fork_generation;
    made->tickets.object_size = sizeof(sp_reactor_ticket);
    snprintf(made->name, sizeof(made->name), "%s", desc->name ? desc->name : "syncpoint");
    sp_status status = start(made);
    if (status == SP_OK) {
        *out = made;
        return SP_OK;
    }
    sp_os_mutex_fini(&made->inbox.lock);
    sp_sources_fini(&made->sources);
    free(made);
    return status;
no_memory:
    if (made)
        sp_sources_fini(&made->sources);
    free(made);
    return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_reactor_create: out of memory");
}

sp_status sp_reactor_create(const sp_reactor_desc *desc, sp_reactor **out)
{
    const sp_reactor_desc defaults = {.size = sizeof(defaults)};
    SP_CHECK_ARGUMENT(out, "out is required");
    desc = desc ? desc : &defaults;
    SP_CHECK_SIZE(desc);
    SP_CHECK_ARGUMENT(desc->drive == SP_REACTOR_THREAD || desc->drive == SP_REACTOR_LOOP,
                      "drive is neither THREAD nor LOOP");
    SP_CHECK_ARGUMENT(desc->pace == SP_PACE_BALANCED || desc->pace == SP_PACE_LATENCY ||
                          desc->pace == SP_PACE_POWER,
                      "pace is neither BALANCED, LATENCY nor POWER");
    sp_os_watch_forks();
    return make(desc, out);
}

/* ---- Your own loop ---- */

static sp_status check_loop(const sp_reactor *reactor, const char *function)
{
    sp_status status = sp_reactor_check(reactor);
    if (status != SP_OK || reactor->drive == SP_REACTOR_LOOP)
        return status;
    return sp_fail(SP_ERROR_INVALID_STATE,
                   "%s: this reactor has a thread of its own; make it with SP_REACTOR_LOOP",
                   function);
}

sp_status sp_reactor_fd(sp_reactor *reactor, sp_pollable *fd)
{
    SP_CHECK_ARGUMENT(reactor && fd, "reactor and fd are required");
    sp_status status = check_loop(reactor, "sp_reactor_fd");
    if (status == SP_OK)
        *fd = reactor->alarm.fd;
    return status;
}

/* While callbacks run the handle is not readable for the time alone: another loop inside one of them,
 * or another thread's, would be woken for nothing. */
static sp_status dispatch_until(sp_reactor *reactor, uint64_t deadline_ns)
{
    hear(reactor, false);
    sp_os_alarm_set(&reactor->alarm, SP_FOREVER);
    while (turn(reactor) == 0) {
        if (sp_os_now_ns() >= deadline_ns)
            return SP_TIMEOUT;
        sleep_until(reactor, deadline_ns);
    }
    return SP_OK;
}

/* Edge-triggered loops see a change only: what is left, and what came while another thread was told
 * that this one dispatches, must be one. */
static void leave(sp_reactor *reactor)
{
    bool nothing = prepare_sleep(reactor, SP_FOREVER);
    sp_store64(&reactor->dispatcher, 0);
    if (!nothing || !inbox_is_empty(&reactor->inbox) || sp_os_alarm_rings(&reactor->alarm))
        sp_os_alarm_ring(&reactor->alarm);
}

sp_status sp_reactor_dispatch(sp_reactor *reactor, uint64_t timeout_ns)
{
    SP_CHECK_ARGUMENT(reactor, "reactor is required");
    sp_status status = check_loop(reactor, "sp_reactor_dispatch");
    if (status == SP_OK)
        status = claim(reactor);
    if (status != SP_OK)
        return status;
    status = dispatch_until(reactor, sp_deadline_ns(timeout_ns));
    if (sp_reactor_is_forked(reactor)) {
        sp_store64(&reactor->dispatcher, 0);
        return sp_fail_forked();
    }
    leave(reactor);
    return status;
}
