/* SPDX-License-Identifier: MIT
 *
 * Notifications: reached, failed, refused; of every sort of point.
 */
#include "async_case.h"

#include <string.h>

TEST(reached_already)
{
    for (EACH_SORT(which)) {
        listener one = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        source_signal(&from, 1);
        listen(&one, &point, SP_TIMEOUT_DEFAULT);
        CHECK_HEARD(&one, SP_OK);
        CHECK(one.ticket != 0);
        CHECK_EQUAL(one.seen, one.ticket);
        sp_point_unref(&point);
        source_end(&from);
    }
}

/* And its twin: without the signal, nothing is heard. */
TEST(reached_later)
{
    for (EACH_SORT(which)) {
        late_signal late;
        listener one = {0}, never = {0};
        source from = source_make(which), other = source_make(which);
        sp_point point = source_point(&from, 1), pending = source_point(&other, 1);
        listen(&one, &point, SP_TIMEOUT_DEFAULT);
        listen(&never, &pending, SP_FOREVER);
        signal_late(&late, &from, 1);
        CHECK_HEARD(&one, SP_OK);
        join_not_early(&late);
        CHECK_EQUAL(one.seen, one.ticket);
        go_on_ms(10);
        CHECK_EQUAL(listener_calls(&never), 0);
        source_signal(&other, 1);
        CHECK_HEARD(&never, SP_OK);
        CHECK_EQUAL(listener_calls(&one), 1);
        sp_point_unref(&point);
        sp_point_unref(&pending);
        source_end(&from);
        source_end(&other);
    }
}

static void check_failure(const listener *one, sort which)
{
    CHECK_HEARD(one, sort_failure(which));
    CHECK_STATUS(one->cause, sort_cause(which));
    if (which <= SORT_CHAIN)
        CHECK(strstr(one->message, "it is gone") != NULL);
}

TEST(failed_already)
{
    for (EACH_SORT(which)) {
        listener one = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        source_fail(&from);
        listen(&one, &point, SP_TIMEOUT_DEFAULT);
        check_failure(&one, which);
        sp_point_unref(&point);
        source_end(&from);
    }
}

TEST(failed_later)
{
    for (EACH_SORT(which)) {
        late_signal late;
        listener one = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        listen(&one, &point, SP_TIMEOUT_DEFAULT);
        fail_late(&late, &from);
        check_failure(&one, which);
        join_not_early(&late);
        sp_point_unref(&point);
        source_end(&from);
    }
}

/* What was reached before the failure stays so, for those who ask later, too. */
TEST(failure_of_a_counter_takes_what_is_above)
{
    for (EACH_SORT(which)) {
        listener ones[3] = {0};
        if (!sort_counts(which))
            continue;
        source from = source_make(which);
        sp_point low = source_point(&from, 1), high = source_point(&from, 2);
        listen(&ones[0], &high, SP_FOREVER);
        listen(&ones[1], &low, SP_FOREVER);
        source_signal(&from, 1);
        CHECK_HEARD(&ones[1], SP_OK);
        CHECK_EQUAL(listener_calls(&ones[0]), 0);
        source_fail(&from);
        check_failure(&ones[0], which);
        listen(&ones[2], &low, SP_FOREVER);
        CHECK_HEARD(&ones[2], SP_OK);
        sp_point_unref(&low);
        sp_point_unref(&high);
        source_end(&from);
    }
}

TEST(abandoned)
{
    for (sort which = SORT_HOST; which < SORT_PROBE; which++) {
        listener one = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        listen(&one, &point, SP_FOREVER);
        go_on_ms(10);
        CHECK_EQUAL(listener_calls(&one), 0);
        source_end(&from);
        CHECK_HEARD(&one, SP_ERROR_ABANDONED);
        CHECK_STATUS(one.cause, SP_ERROR_ABANDONED);
        sp_point_unref(&point);
    }
}

TEST(complete_points)
{
    const sp_point points[] = {sp_point_noop(), sp_point_cpu(), {0}};
    for (unsigned i = 0; i < COUNT_OF(points); i++) {
        listener ones[2] = {0};
        listen(&ones[0], &points[i], 0);
        listen(&ones[1], &points[i], SP_FOREVER);
        CHECK_HEARD(&ones[0], SP_OK);
        CHECK_HEARD(&ones[1], SP_OK);
    }
}

/* A probe that says no once ends one notification, not the primitive. */
TEST(probe_that_refuses_for_now)
{
    for (sort which = SORT_PROBE; which < SORT_COUNT; which++) {
        listener refused = {0}, later = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        counter_set_probe_status(from.counter, SP_ERROR_WRONG_CONTEXT);
        listen(&refused, &point, SP_TIMEOUT_DEFAULT);
        CHECK_HEARD(&refused, SP_ERROR_WRONG_CONTEXT);
        counter_set_probe_status(from.counter, SP_OK);
        listen(&later, &point, SP_TIMEOUT_DEFAULT);
        go_on_ms(10);
        CHECK_EQUAL(listener_calls(&later), 0);
        source_signal(&from, 1);
        CHECK_HEARD(&later, SP_OK);
        sp_point_unref(&point);
        source_end(&from);
    }
}

/* Only failures that last are the primitive's: they end all that wait for it. */
TEST(probe_that_fails_for_good)
{
    for (sort which = SORT_PROBE; which < SORT_COUNT; which++) {
        listener ones[2] = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        counter_set_probe_status(from.counter, SP_ERROR_DEVICE_LOST);
        listen(&ones[0], &point, SP_TIMEOUT_DEFAULT);
        CHECK_HEARD(&ones[0], SP_ERROR_DEVICE_LOST);
        counter_set_probe_status(from.counter, SP_OK);
        source_signal(&from, 1);
        listen(&ones[1], &point, SP_TIMEOUT_DEFAULT);
        CHECK_HEARD(&ones[1], SP_ERROR_DEVICE_LOST);
        sp_point_unref(&point);
        source_end(&from);
    }
}

/* ---- References ---- */

TEST(keeps_a_reference_until_it_called)
{
    for (EACH_SORT(which)) {
        late_signal late;
        listener one = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        listen(&one, &point, SP_TIMEOUT_DEFAULT);
        sp_point_unref(&point);
        signal_late(&late, &from, 1);
        CHECK_HEARD(&one, SP_OK);
        join_not_early(&late);
        source_end(&from);
    }
}

static bool none_is_alive(const void *what)
{
    (void)what;
    return counter_alive() == 0;
}

/* The reactor's reference is the last one. */
TEST(lets_go_of_it_then)
{
    for (sort which = SORT_PROBE; which < SORT_COUNT; which++) {
        listener one = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        listen(&one, &point, SP_FOREVER);
        sp_point_unref(&point);
        source_end(&from);
        go_on_ms(5);
        CHECK_EQUAL(counter_alive(), 1);
        CHECK_STATUS(cancel(&one), SP_OK);
        CHECK_HEARD(&one, SP_ERROR_CANCELLED);
        CHECK(go_on_until(reactor, none_is_alive, NULL));
    }
}

/* ---- One point, many notifications ---- */

TEST(one_point_many_times)
{
    for (EACH_SORT(which)) {
        listener ones[20] = {0};
        source from = source_make(which);
        sp_point point = source_point(&from, 1);
        for (unsigned i = 0; i < COUNT_OF(ones); i++)
            listen(&ones[i], &point, SP_FOREVER);
        CHECK_STATUS(cancel(&ones[7]), SP_OK);
        CHECK_HEARD(&ones[7], SP_ERROR_CANCELLED);
        go_on_ms(5);
        source_signal(&from, 1);
        for (unsigned i = 0; i < COUNT_OF(ones); i++) {
            CHECK_HEARD(&ones[i], i == 7 ? SP_ERROR_CANCELLED : SP_OK);
            for (unsigned j = 0; j < i; j++)
                CHECK(ones[i].ticket != ones[j].ticket);
        }
        sp_point_unref(&point);
        source_end(&from);
    }
}

static void note_call(void *user, sp_status status)
{
    CHECK_STATUS(status, SP_OK);
    flag_set(user);
}

static bool is_set(const void *what)
{
    return flag_is_set(what);
}

TEST(ticket_is_optional)
{
    flag heard = {0};
    const sp_point done = sp_point_cpu();
    CHECK_STATUS(sp_notify(reactor, &done, 0, note_call, &heard, NULL), SP_OK);
    CHECK(go_on_until(reactor, is_set, &heard));
}

/* ---- From many threads ---- */

#define THREADS 4
#define EACH 200

typedef struct notifier {
    worker worker;
    source *from;
    listener ones[EACH];
} notifier;

static void notify_each(void *user)
{
    notifier *self = user;
    for (unsigned i = 0; i < EACH; i++) {
        sp_point point = source_point(self->from, i + 1);
        listen(&self->ones[i], &point, SP_FOREVER);
        sp_point_unref(&point);
    }
}

TEST(from_many_threads)
{
    static notifier notifiers[THREADS];
    for (EACH_SORT(which)) {
        if (!sort_counts(which))
            continue;
        source from = source_make(which);
        for (unsigned i = 0; i < THREADS; i++) {
            notifiers[i] = (notifier){.from = &from};
            worker_start(&notifiers[i].worker, 0, notify_each, &notifiers[i]);
        }
        for (unsigned value = 1; value <= EACH; value++) {
            source_signal(&from, value);
            if (value % 20 == 0)
                go_on_ms(1);
        }
        for (unsigned i = 0; i < THREADS; i++) {
            worker_join(&notifiers[i].worker);
            for (unsigned n = 0; n < EACH; n++)
                CHECK_HEARD(&notifiers[i].ones[n], SP_OK);
        }
        source_end(&from);
    }
}

/* ---- Refused ---- */

static void refuse(const sp_point *point, sp_status expected)
{
    listener one = {.reactor = reactor, .ticket = 99};
    CHECK_ERROR(try_to_listen(&one, point, 0), expected);
    CHECK_EQUAL(one.ticket, 99);
    go_on_ms(5);
    CHECK_EQUAL(listener_calls(&one), 0);
}

TEST(refused_points)
{
    const sp_point carriers[] = {sp_carrier_d3d12_fence(&drive, 1),
                                 sp_carrier_vulkan_semaphore(1, &drive, 1),
                                 sp_carrier_metal_event(&drive, 1)};
    const sp_point forged[] = {test_marked_point(), {.kind = SP_KIND_HOST, .value = 1}};
    for (unsigned i = 0; i < COUNT_OF(carriers); i++)
        refuse(&carriers[i], SP_ERROR_NOT_SUPPORTED);
    for (unsigned i = 0; i < COUNT_OF(forged); i++)
        refuse(&forged[i], SP_ERROR_INVALID_ARGUMENT);
    refuse(NULL, SP_ERROR_INVALID_ARGUMENT);
}

TEST(refused_arguments)
{
    flag heard = {0};
    sp_ticket ticket = 99;
    const sp_point done = sp_point_cpu();
    CHECK_ERROR(sp_notify(NULL, &done, 0, note_call, &heard, &ticket), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_notify(reactor, &done, 0, NULL, &heard, &ticket), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_cancel(NULL, 1), SP_ERROR_INVALID_ARGUMENT);
    CHECK_EQUAL(ticket, 99);
    go_on_ms(5);
    CHECK(!flag_is_set(&heard));
}
