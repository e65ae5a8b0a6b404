/* SPDX-License-Identifier: MIT
 *
 * No memory, wherever the reactor asks for some: a clear answer, and no notification lost.
 */
#include "handle.h"
#include "support/malloc_double.h"

#include <unistd.h>

/* ---- A reactor ---- */

static sp_reactor *made;

static sp_status make(void)
{
    const sp_reactor_desc desc = {.size = sizeof(desc), .drive = drive};
    made = (sp_reactor *)(uintptr_t)16;
    sp_status status = sp_reactor_create(&desc, &made);
    if (status != SP_OK)
        CHECK(made == (sp_reactor *)(uintptr_t)16);
    return status;
}

static void destroy(void)
{
    destroy_reactor(&made);
}

TEST(no_memory_for_a_reactor)
{
    malloc_double_init();
    malloc_double_refuse_each(make, destroy);
}

/* ---- Notifications ---- */

#define MOST 600

/* So many are pending before the one that may get no memory. */
static const unsigned numbers[] = {0, 1, 31, 63, 64, 127, 255, 256, 511, 512};

static source sources[MOST];
static listener before[MOST];

/* The dispatcher has seen to all of them: what it is asked later fails alone. */
static void begin(unsigned count, sort which)
{
    const sp_point done = sp_point_cpu();
    listener seen = {0};
    reactor = make_reactor();
    for (unsigned i = 0; i < count; i++) {
        sources[i] = source_make(i % 2 ? SORT_HOST : which);
        before[i] = (listener){0};
        listen_to(&before[i], &sources[i], 1);
    }
    if (count > 0) {
        listen(&seen, &done, SP_FOREVER);
        CHECK_HEARD(&seen, SP_OK);
    }
}

static void finish(unsigned count)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK_EQUAL(listener_calls(&before[i]), 0);
        source_signal(&sources[i], 1);
        CHECK_HEARD(&before[i], SP_OK);
        source_end(&sources[i]);
    }
    destroy_reactor(&reactor);
    CHECK_EQUAL(malloc_double_held(), 0);
}

/* Tells whether a request was refused. */
static bool notify_without(unsigned request, sort which, bool fails)
{
    listener one = {.reactor = reactor, .ticket = 99};
    source from = source_make(which);
    sp_point point = source_point(&from, 1);
    malloc_double_fail(request);
    sp_status status = try_to_listen(&one, &point, SP_TIMEOUT_DEFAULT);
    if (status == SP_OK)
        go_on_ms(3); /* it asks for memory when it sees to it */
    bool refused = malloc_double_failed();
    if (status != SP_OK) {
        CHECK(refused);
        CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
        CHECK_EQUAL(one.ticket, 99);
        CHECK_EQUAL(listener_calls(&one), 0);
    }
    if (fails)
        source_fail(&from);
    else
        source_signal(&from, 1);
    if (status == SP_OK) {
        CHECK(listener_wait(&one, 1));
        CHECK(one.status == (fails ? sort_failure(which) : SP_OK) ||
              (refused && one.status == SP_ERROR_OUT_OF_MEMORY));
    }
    sp_point_unref(&point);
    source_end(&from);
    return refused;
}

static void refuse_each(sort which, bool fails)
{
    unsigned refusals = 0;
    malloc_double_init();
    destroy_reactor(&reactor);
    for (unsigned i = 0; i < COUNT_OF(numbers); i++) {
        bool refused = true;
        for (unsigned request = 0; refused; request++) {
            begin(numbers[i], which);
            refused = notify_without(request, which, fails);
            refusals += refused;
            finish(numbers[i]);
        }
    }
    CHECK(refusals > 0); /* it does ask for memory */
}

TEST(no_memory_for_a_notification)
{
    refuse_each(SORT_HOST, false);
}

TEST(no_memory_for_what_is_polled)
{
    refuse_each(SORT_PROBE, false);
}

TEST(no_memory_for_a_chain)
{
    refuse_each(SORT_CHAIN, false);
}

/* ---- A failure ---- */

/* Nowhere to keep the details: the status is told all the same. */
TEST(no_memory_for_a_failure)
{
    malloc_double_init();
    destroy_reactor(&reactor);
    bool refused = true;
    for (unsigned request = 0; refused; request++) {
        listener one = {0};
        source from = source_make(SORT_HOST);
        reactor = make_reactor();
        listen_to(&one, &from, 1);
        go_on_ms(3);
        malloc_double_fail(request);
        source_fail(&from);
        CHECK_HEARD(&one, SP_ERROR_FAILED);
        refused = malloc_double_failed();
        if (!refused)
            CHECK_STATUS(one.cause, SP_ERROR_PEER_CLOSED);
        source_end(&from);
        destroy_reactor(&reactor);
        CHECK_EQUAL(malloc_double_held(), 0);
    }
}

/* ---- A handle ---- */

static bool handle_without(unsigned request)
{
    const unsigned open = census_open_handles();
    source from = source_make(SORT_HOST);
    sp_point point = source_point(&from, 1);
    sp_ticket ticket = 99;
    int fd = 99;
    malloc_double_fail(request);
    sp_status status = sp_point_fd(reactor, &point, &fd, &ticket);
    if (status == SP_OK)
        go_on_ms(3);
    bool refused = malloc_double_failed();
    source_signal(&from, 1);
    if (status == SP_OK) {
        CHECK(wait_readable(fd));
        status = sp_point_fd_status(reactor, ticket);
        CHECK(status == SP_OK || (refused && status == SP_ERROR_OUT_OF_MEMORY));
        CHECK_STATUS(sp_point_fd_release(reactor, ticket), SP_OK);
        close(fd);
    } else {
        CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
        CHECK(fd == 99 && ticket == 99);
    }
    check_handle_count(open);
    sp_point_unref(&point);
    source_end(&from);
    return refused;
}

TEST(no_memory_for_a_handle)
{
    malloc_double_init();
    destroy_reactor(&reactor);
    for (unsigned i = 0; i < COUNT_OF(numbers); i++) {
        bool refused = true;
        for (unsigned request = 0; refused; request++) {
            begin(numbers[i], SORT_ARM);
            refused = handle_without(request);
            finish(numbers[i]);
        }
    }
}

/* Cancelling and ending ask for nothing. */
TEST(no_memory_needed_to_end)
{
    enum { COUNT = 300 };
    malloc_double_init();
    destroy_reactor(&reactor);
    begin(COUNT, SORT_PROBE);
    malloc_double_fail(0);
    for (unsigned i = 0; i < COUNT; i += 2)
        CHECK_STATUS(cancel(&before[i]), SP_OK);
    destroy_reactor(&reactor);
    CHECK(!malloc_double_failed());
    for (unsigned i = 0; i < COUNT; i++) {
        CHECK_HEARD(&before[i], SP_ERROR_CANCELLED);
        source_end(&sources[i]);
    }
    CHECK_EQUAL(malloc_double_held(), 0);
}

/* ---- What is used again ---- */

/* Each way that a ticket can go. */
static void use_tickets(source *from, source *failed)
{
    listener ones[3] = {0};
    handle handles[3] = {handle_of(from, 1), handle_of(from, 1), handle_of(failed, 1)};
    int unheard = -1;
    sp_point point = source_point(failed, 1);
    CHECK_STATUS(sp_point_fd(reactor, &point, &unheard, NULL), SP_OK);
    sp_point_unref(&point);
    listen_to(&ones[0], from, 1);
    listen_to(&ones[1], failed, 1);
    listen_to_for(&ones[2], from, 1, 0);
    CHECK_STATUS(cancel(&ones[0]), SP_OK);
    CHECK_STATUS(sp_cancel(reactor, handles[1].ticket), SP_OK);
    for (unsigned i = 0; i < COUNT_OF(ones); i++)
        CHECK(listener_wait(&ones[i], 1));
    check_over(&handles[2], SP_ERROR_FAILED, SP_ERROR_PEER_CLOSED);
    for (unsigned i = 0; i < COUNT_OF(handles); i++)
        drop_handle(&handles[i]);
    CHECK(wait_readable(unheard));
    close(unheard);
    flush();
}

/* However many there were one after the other, they need no more than the first ones. */
TEST(tickets_are_used_again)
{
    malloc_double_init();
    destroy_reactor(&reactor);
    source from = source_make(SORT_HOST), failed = source_make(SORT_HOST);
    source_fail(&failed);
    reactor = make_reactor();
    use_tickets(&from, &failed);
    long held = malloc_double_held();
    for (unsigned i = 0; i < 1000; i++)
        use_tickets(&from, &failed);
    CHECK_EQUAL(malloc_double_held(), held);
    destroy_reactor(&reactor);
    source_end(&from);
    source_end(&failed);
    CHECK_EQUAL(malloc_double_held(), 0);
}
