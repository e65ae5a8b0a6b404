/* SPDX-License-Identifier: MIT
 *
 * The tickets of handles for points: released, refused, none to be had.
 */
#include "handle.h"

#include <errno.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- Tickets ---- */

/* Letting go of a pending one cancels it; the handle stays open and tells so. */
TEST(released_while_pending)
{
    for (EACH_SORT(which)) {
        source from = source_make(which);
        handle one = handle_of(&from, 1);
        go_on_ms(1);
        CHECK_STATUS(sp_point_fd_release(reactor, one.ticket), SP_OK);
        check_no_ticket(one.ticket);
        CHECK(wait_readable(one.fd));
        check_no_ticket(one.ticket);
        CHECK(close(one.fd) == 0);
        source_end(&from);
    }
}

TEST(released_when_over)
{
    source from = source_make(SORT_HOST);
    handle one = handle_of(&from, 1);
    source_signal(&from, 1);
    check_over(&one, SP_OK, SP_OK);
    CHECK_STATUS(sp_point_fd_release(reactor, one.ticket), SP_OK);
    check_no_ticket(one.ticket);
    CHECK(is_readable(one.fd));
    CHECK(close(one.fd) == 0);
    source_end(&from);
}

/* Without a ticket nothing is to be released, and nothing is left. */
TEST(nobody_asks)
{
    unsigned open = census_open_handles();
    for (EACH_SORT(which)) {
        int fd = -1;
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        CHECK_STATUS(sp_point_fd(reactor, &point, &fd, NULL), SP_OK);
        sp_point_unref(&point);
        source_signal(&from, 1);
        CHECK(wait_readable(fd));
        CHECK(close(fd) == 0);
        source_end(&from);
    }
    check_handle_count(open);
}

TEST(tickets_of_another_sort)
{
    listener one = {0};
    source from = source_make(SORT_HOST);
    handle other = handle_of(&from, 1);
    sp_point point = source_point(&from, 1);
    listen(&one, &point, SP_FOREVER);
    check_no_ticket(one.ticket);
    check_no_ticket(0);
    check_no_ticket(UINT64_MAX);
    check_no_ticket(one.ticket + other.ticket + 1000);
    check_pending(&other);
    CHECK_EQUAL(listener_calls(&one), 0);
    source_signal(&from, 1);
    CHECK_HEARD(&one, SP_OK);
    check_no_ticket(one.ticket);
    check_over(&other, SP_OK, SP_OK);
    drop_handle(&other);
    sp_point_unref(&point);
    source_end(&from);
}

/* ---- Refused ---- */

static void refuse(const sp_point *point, sp_status expected)
{
    unsigned open = census_open_handles();
    int fd = 99;
    sp_ticket ticket = 99;
    CHECK_ERROR(sp_point_fd(reactor, point, &fd, &ticket), expected);
    CHECK_EQUAL(fd, 99);
    CHECK_EQUAL(ticket, 99);
    CHECK_HANDLES(open);
}

TEST(refused)
{
    const sp_point done = sp_point_cpu(), carrier = sp_carrier_d3d12_fence(&drive, 1);
    const sp_point forged = test_marked_point();
    int fd = 99;
    refuse(&carrier, SP_ERROR_NOT_SUPPORTED);
    refuse(&forged, SP_ERROR_INVALID_ARGUMENT);
    refuse(NULL, SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_point_fd(NULL, &done, &fd, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_point_fd(reactor, &done, NULL, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_point_fd_status(NULL, 1), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_point_fd_release(NULL, 1), SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(fd, 99);
}

/* With 0, 1, ... handles left, until it works: nothing is lost on the way. */
TEST(no_handle_to_be_had)
{
    struct rlimit limit;
    source from = source_make(SORT_ARM);
    handle before = handle_of(&from, 1);
    const unsigned open = census_open_handles();
    const rlim_t lowest = (rlim_t)census_free_number();
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlim_t usual = limit.rlim_cur;
    for (unsigned left = 0;; left++) {
        handle made = {.fd = 99, .ticket = 99};
        sp_point point = source_point(&from, 2);
        limit.rlim_cur = lowest + left;
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        sp_status status = sp_point_fd(reactor, &point, &made.fd, &made.ticket);
        const sp_error error = *sp_last_error();
        limit.rlim_cur = usual;
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        sp_point_unref(&point);
        if (status == SP_OK) {
            CHECK(left > 0);
            drop_handle(&made);
            break;
        }
        CHECK_STATUS(status, SP_ERROR_SYSTEM);
        CHECK_EQUAL(error.native_code, EMFILE);
        CHECK(made.fd == 99 && made.ticket == 99);
        CHECK_HANDLES(open);
    }
    source_signal(&from, 1);
    check_over(&before, SP_OK, SP_OK);
    drop_handle(&before);
    source_end(&from);
}

TEST(handles_stay_flat)
{
    source from[SORT_COUNT];
    for (EACH_SORT(which))
        from[which] = source_make(which);
    const unsigned open = census_open_handles();
    for (unsigned i = 0; i < 500; i++) {
        sort which = (sort)(i % SORT_COUNT);
        handle one = handle_of(&from[which], i + 1);
        bool over = i % 3 == 0 || (sort_counts(which) && i % 2 == 0);
        if (i % 3 == 0)
            CHECK_STATUS(sp_cancel(reactor, one.ticket), SP_OK);
        else if (over)
            source_signal(&from[which], i + 1);
        if (over && i % 5 == 0) /* else it goes while it may be pending still */
            CHECK(wait_readable(one.fd));
        drop_handle(&one);
    }
    check_handle_count(open);
    for (EACH_SORT(which))
        source_end(&from[which]);
}
