/* SPDX-License-Identifier: MIT
 *
 * Conformance: every primitive through a reactor, with a thread of its own and without.
 */
#include "conformance.h"

#include <syncpoint/async.h>
#include <unistd.h>

#define MOST 500

/* What callbacks report. */
typedef struct outcome {
    unsigned calls; /* atomic */
    sp_status status, cause;
} outcome;

static void note(void *user, sp_status status)
{
    outcome *got = user;
    got->status = status;
    got->cause = status < 0 ? sp_last_error()->cause : SP_OK;
    __atomic_add_fetch(&got->calls, 1, __ATOMIC_RELEASE);
}

static unsigned calls_of(const outcome *got)
{
    return __atomic_load_n(&got->calls, __ATOMIC_ACQUIRE);
}

static sp_reactor *make_reactor(sp_reactor_drive drive)
{
    const sp_reactor_desc desc = {
        .size = sizeof(desc), .drive = drive, .pace = SP_PACE_LATENCY, .name = "conformance"};
    sp_reactor *made = NULL;
    CHECK_STATUS(sp_reactor_create(&desc, &made), SP_OK);
    return made;
}

static void pass_time(sp_reactor *reactor, sp_reactor_drive drive)
{
    if (drive == SP_REACTOR_LOOP)
        sp_reactor_dispatch(reactor, MS);
    else
        usleep(500);
}

static void let_it_run(sp_reactor *reactor, sp_reactor_drive drive, unsigned ms)
{
    uint64_t end = sp_now_ns() + ms * MS;
    while (sp_now_ns() < end)
        pass_time(reactor, drive);
}

/* False: it took longer than PATIENCE_NS. */
static bool wait_for(sp_reactor *reactor, sp_reactor_drive drive, const outcome *got,
                     unsigned count)
{
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    for (unsigned i = 0; i < count; i++) {
        while (calls_of(&got[i]) == 0) {
            if (sp_now_ns() > end)
                return false;
            pass_time(reactor, drive);
        }
    }
    return true;
}

static void check_all(const outcome *got, unsigned count, sp_status status)
{
    for (unsigned i = 0; i < count; i++) {
        CHECK_EQUAL(calls_of(&got[i]), 1);
        CHECK_STATUS(got[i].status, status);
    }
}

static void notify(sp_reactor *reactor, const sp_point *point, outcome *got, sp_ticket *ticket)
{
    CHECK_STATUS(sp_notify(reactor, point, SP_FOREVER, note, got, ticket), SP_OK);
}

TEST(notify_not_before_the_signal)
{
    for (unsigned drive = SP_REACTOR_THREAD; drive <= SP_REACTOR_LOOP; drive++) {
        late_signal late;
        outcome got[2] = {{0}, {0}};
        sp_reactor *reactor = make_reactor((sp_reactor_drive)drive);
        sp_point point = fx->point(drive + 1);
        notify(reactor, &point, &got[0], NULL);
        let_it_run(reactor, (sp_reactor_drive)drive, DELAY_MS);
        CHECK_EQUAL(calls_of(&got[0]), 0);
        signal_late(&late, drive + 1);
        CHECK(wait_for(reactor, (sp_reactor_drive)drive, got, 1));
        JOIN_NOT_EARLY(&late);
        notify(reactor, &point, &got[1], NULL); /* it is reached */
        CHECK(wait_for(reactor, (sp_reactor_drive)drive, got, 2));
        check_all(got, 2, SP_OK);
        CHECK_STATUS(sp_poll(&point), SP_OK);
        sp_point_unref(&point);
        CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    }
}

/* The second of two is withheld: its ticket is cancelled, then one is left to the reactor's end. */
TEST_NEEDING(notify_each_at_its_own, INDEPENDENT)
{
    for (unsigned drive = SP_REACTOR_THREAD; drive <= SP_REACTOR_LOOP; drive++) {
        outcome got[3] = {{0}, {0}, {0}};
        sp_ticket ticket;
        sp_reactor *reactor = make_reactor((sp_reactor_drive)drive);
        sp_point first = fx->point(2 * drive + 1), second = fx->point(2 * drive + 2);
        notify(reactor, &second, &got[1], &ticket);
        notify(reactor, &second, &got[2], NULL);
        notify(reactor, &first, &got[0], NULL);
        let_it_run(reactor, (sp_reactor_drive)drive, DELAY_MS / 4);
        fx->signal(2 * drive + 1);
        CHECK(wait_for(reactor, (sp_reactor_drive)drive, got, 1));
        check_all(got, 1, SP_OK);
        let_it_run(reactor, (sp_reactor_drive)drive, DELAY_MS / 4);
        CHECK_EQUAL(calls_of(&got[1]) + calls_of(&got[2]), 0);
        CHECK_STATUS(sp_cancel(reactor, ticket), SP_OK);
        CHECK(wait_for(reactor, (sp_reactor_drive)drive, &got[1], 1));
        CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
        check_all(&got[1], 2, SP_ERROR_CANCELLED);
        fx->signal(2 * drive + 2);
        CHECK_STATUS(sp_wait(&second), SP_OK);
        sp_point_unref(&first);
        sp_point_unref(&second);
    }
}

TEST(notify_of_many)
{
    static sp_point points[MOST];
    unsigned number = 1;
    for (unsigned drive = SP_REACTOR_THREAD; drive <= SP_REACTOR_LOOP; drive++) {
        static outcome got[MOST];
        unsigned count = fx->most_at_once && fx->most_at_once < MOST ? fx->most_at_once : MOST;
        sp_reactor *reactor = make_reactor((sp_reactor_drive)drive);
        for (unsigned i = 0; i < count; i++) {
            got[i] = (outcome){0};
            points[i] = fx->point(number + i);
            notify(reactor, &points[i], &got[i], NULL);
            sp_point_unref(&points[i]);
        }
        let_it_run(reactor, (sp_reactor_drive)drive, 2);
        for (unsigned i = 0; i < count; i++)
            CHECK_EQUAL(calls_of(&got[i]), 0);
        number += count;
        fx->signal(number - 1 - count / 2);
        fx->signal(number - 1);
        CHECK(wait_for(reactor, (sp_reactor_drive)drive, got, count));
        CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
        check_all(got, count, SP_OK);
    }
}

TEST_NEEDING(notify_of_failure, FAILING)
{
    outcome got[4] = {{0}, {0}, {0}, {0}};
    sp_reactor *reactors[] = {make_reactor(SP_REACTOR_THREAD), make_reactor(SP_REACTOR_LOOP)};
    sp_point points[] = {fx->point(1), fx->point(2)};
    for (unsigned i = 0; i < 4; i++)
        notify(reactors[i / 2], &points[i % 2], &got[i], NULL);
    let_it_run(reactors[1], SP_REACTOR_LOOP, 2);
    for (unsigned i = 0; i < 4; i++)
        CHECK_EQUAL(calls_of(&got[i]), 0);
    fx->fail_all();
    CHECK(wait_for(reactors[0], SP_REACTOR_THREAD, got, 2));
    CHECK(wait_for(reactors[1], SP_REACTOR_LOOP, got + 2, 2));
    check_all(got, 4, fx->fail_status);
    CHECK_STATUS(got[0].cause, fx->fail_cause);
    release_points(points, 2);
    CHECK_STATUS(sp_reactor_destroy(reactors[0]), SP_OK);
    CHECK_STATUS(sp_reactor_destroy(reactors[1]), SP_OK);
}

TEST(notify_times_out)
{
    for (unsigned drive = SP_REACTOR_THREAD; drive <= SP_REACTOR_LOOP; drive++) {
        outcome got[2] = {{0}, {0}};
        sp_reactor *reactor = make_reactor((sp_reactor_drive)drive);
        sp_point point = fx->point(drive + 1);
        uint64_t start = sp_now_ns();
        CHECK_STATUS(sp_notify(reactor, &point, 10 * MS, note, &got[0], NULL), SP_OK);
        CHECK_STATUS(sp_notify(reactor, &point, 0, note, &got[1], NULL), SP_OK);
        CHECK(wait_for(reactor, (sp_reactor_drive)drive, got, 2));
        CHECK(sp_now_ns() - start >= 10 * MS);
        check_all(got, 2, SP_TIMEOUT);
        fx->signal(drive + 1);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
        CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    }
}
