/* SPDX-License-Identifier: MIT
 *
 * A handle for one point: when it is readable, and whose it is.
 */
#include "handle.h"

#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- When it is readable ---- */

TEST(reached_later)
{
    for (EACH_SORT(which)) {
        late_signal late;
        source from = source_make(which), other = source_make(which);
        handle one = handle_of(&from, 1), never = handle_of(&other, 1);
        go_on_ms(2);
        check_pending(&one);
        signal_late(&late, &from, 1);
        check_over(&one, SP_OK, SP_OK);
        join_not_early(&late);
        check_pending(&never);
        drop_handle(&one);
        drop_handle(&never);
        source_end(&from);
        source_end(&other);
    }
}

TEST(reached_already)
{
    const sp_point done = sp_point_cpu();
    handle first = handle_for(&done);
    check_over(&first, SP_OK, SP_OK);
    drop_handle(&first);
    for (EACH_SORT(which)) {
        source from = source_make(which);
        source_signal(&from, 1);
        handle one = handle_of(&from, 1);
        check_over(&one, SP_OK, SP_OK);
        drop_handle(&one);
        source_end(&from);
    }
}

TEST(failed)
{
    for (EACH_SORT(which)) {
        source from = source_make(which);
        handle early = handle_of(&from, 1);
        go_on_ms(2);
        source_fail(&from);
        handle late = handle_of(&from, 1);
        check_over(&early, sort_failure(which), sort_cause(which));
        check_over(&late, sort_failure(which), sort_cause(which));
        if (which <= SORT_CHAIN)
            CHECK(strstr(sp_last_error()->message, "it is gone") != NULL);
        drop_handle(&early);
        drop_handle(&late);
        source_end(&from);
    }
}

TEST(cancelled)
{
    for (EACH_SORT(which)) {
        source from = source_make(which);
        handle one = handle_of(&from, 1), other = handle_of(&from, 1);
        CHECK_STATUS(sp_cancel(reactor, one.ticket), SP_OK);
        check_over(&one, SP_ERROR_CANCELLED, SP_ERROR_CANCELLED);
        check_pending(&other);
        source_signal(&from, 1);
        check_over(&other, SP_OK, SP_OK);
        CHECK_STATUS(sp_cancel(reactor, other.ticket), SP_PENDING);
        CHECK_STATUS(status_of(&one), SP_ERROR_CANCELLED);
        drop_handle(&one);
        drop_handle(&other);
        source_end(&from);
    }
}

/* The handles are the caller's: they are there afterwards, and readable. */
TEST(reactor_destroyed)
{
    source from[SORT_COUNT];
    handle ones[SORT_COUNT];
    for (EACH_SORT(which)) {
        from[which] = source_make(which);
        ones[which] = handle_of(&from[which], 1);
    }
    go_on_ms(2);
    destroy_reactor(&reactor);
    for (EACH_SORT(which)) {
        CHECK(is_readable(ones[which].fd));
        CHECK(close(ones[which].fd) == 0);
        source_end(&from[which]);
    }
}

static void wait_on_handle(void *user)
{
    struct pollfd wait = {.fd = ((handle *)user)->fd, .events = POLLIN};
    CHECK(poll(&wait, 1, (int)(PATIENCE_NS / MS)) == 1);
}

static bool is_done(const void *what)
{
    return worker_is_done(what);
}

TEST(another_thread_waits_on_it)
{
    for (EACH_SORT(which)) {
        worker waiting;
        late_signal late;
        source from = source_make(which);
        handle one = handle_of(&from, 1);
        worker_start(&waiting, 0, wait_on_handle, &one);
        signal_late(&late, &from, 1);
        CHECK(go_on_until(reactor, is_done, &waiting));
        join_not_early(&late);
        worker_join(&waiting);
        drop_handle(&one);
        source_end(&from);
    }
}

/* Who sees it readable is told the outcome at once. */
TEST_NEEDING(the_status_is_there_when_it_is_readable, ON_THREAD)
{
    source from = source_make(SORT_HOST);
    for (unsigned value = 1; value <= 3000; value++) {
        handle one = handle_of(&from, value);
        if (value % 2)
            source_signal(&from, value);
        else
            CHECK_STATUS(sp_cancel(reactor, one.ticket), SP_OK);
        wait_on_handle(&one);
        CHECK_STATUS(status_of(&one), value % 2 ? SP_OK : SP_ERROR_CANCELLED);
        drop_handle(&one);
    }
    source_end(&from);
}

TEST(each_at_its_own_value)
{
    enum { COUNT = 100 };
    static handle ones[COUNT];
    source from = source_make(SORT_HOST);
    for (unsigned i = 0; i < COUNT; i++)
        ones[i] = handle_of(&from, COUNT - i);
    for (unsigned value = 1; value <= COUNT; value++) {
        source_signal(&from, value);
        check_over(&ones[COUNT - value], SP_OK, SP_OK);
        if (value < COUNT)
            check_pending(&ones[COUNT - value - 1]);
    }
    for (unsigned i = 0; i < COUNT; i++)
        drop_handle(&ones[i]);
    source_end(&from);
}

/* ---- Whose it is ---- */

/* The caller closes it and the number becomes another file's, which nothing may be written to. */
static void close_and_reuse(source *from, handle *one, bool fails)
{
    int file = memfd_create("other", MFD_CLOEXEC), event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    struct stat about;
    CHECK(close(one[0].fd) == 0 && close(one[1].fd) == 0);
    CHECK(dup2(file, one[0].fd) == one[0].fd && dup2(event, one[1].fd) == one[1].fd);
    if (fails)
        source_fail(from);
    else
        source_signal(from, 1);
    while (status_of(&one[0]) == SP_PENDING || status_of(&one[1]) == SP_PENDING)
        go_on_ms(1);
    CHECK_STATUS(status_of(&one[0]), fails ? sort_failure(from->sort) : SP_OK);
    go_on_ms(2);
    CHECK(fstat(file, &about) == 0 && about.st_size == 0);
    CHECK(!is_readable(event));
    close(file);
    close(event);
    drop_handle(&one[0]);
    drop_handle(&one[1]);
}

TEST(closed_numbers_are_not_written_to)
{
    unsigned open = census_open_handles();
    for (EACH_SORT(which)) {
        for (unsigned fails = 0; fails < 2; fails++) {
            source from = source_make(which);
            handle ones[2] = {handle_of(&from, 1), handle_of(&from, 1)};
            close_and_reuse(&from, ones, fails);
            source_end(&from);
        }
    }
    check_handle_count(open);
}

TEST(closed_before_the_reactor_ends)
{
    int event = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    source from = source_make(SORT_HOST);
    handle one = handle_of(&from, 1);
    CHECK(close(one.fd) == 0);
    CHECK(dup2(event, one.fd) == one.fd);
    destroy_reactor(&reactor);
    CHECK(!is_readable(event));
    close(event);
    close(one.fd);
    source_end(&from);
}
