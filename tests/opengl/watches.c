/* SPDX-License-Identifier: MIT
 *
 * OpenGL: how many fences stand behind the waits and signals of a timeline, and which of them are
 * asked, when the helper's stream stands still behind another semaphore.
 */
#include "gl_case.h"

static gl_play_semaphore stuck, values;
static sp_gl_semaphore *blocks, *timeline;
static sp_point blocked;

static void wait_for_a_moment(void *user)
{
    CHECK_STATUS(sp_wait_timeout(user, 5 * MS), SP_TIMEOUT);
}

static void wait_for(void *user)
{
    CHECK_STATUS(sp_wait(user), SP_OK);
}

static void start_stuck(void)
{
    values = (gl_play_semaphore){.counting = true};
    open_gl();
    gl_play_install();
    with_helper();
    open_library();
    blocks = import_played(SP_GL_SEMAPHORE_BINARY, &stuck);
    timeline = import_played(SP_GL_SEMAPHORE_TIMELINE, &values);
    blocked = binary_point(blocks, 0);
    run_elsewhere(wait_for_a_moment, &blocked);
}

static void let_go(void)
{
    gl_play_signal(&stuck, 0);
    run_elsewhere(wait_for, &blocked);
}

static void end(void)
{
    sp_point_unref(&blocked);
    sp_gl_semaphore_unref(blocks);
    sp_gl_semaphore_unref(timeline);
    finish();
}

/* The context's own stream signals more than all of them wait for. */
static void check_own_signal(unsigned count, bool downwards)
{
    sp_point points[8];
    start_stuck();
    for (unsigned i = 0; i < count; i++) {
        points[i] = value_point(timeline, downwards ? count - i : i + 1);
        run_elsewhere(wait_for_a_moment, &points[i]);
    }
    CHECK_EQUAL(gl_hook_live_syncs(), downwards ? 2 : count + 1); /* one is `blocked`'s */
    sp_point own = signal_semaphore(timeline, count + 1);
    for (unsigned i = 0; i < count; i++) {
        CHECK_STATUS(sp_poll(&points[i]), SP_OK);
        sp_point_unref(&points[i]);
    }
    CHECK_STATUS(sp_poll(&own), SP_OK);
    sp_point_unref(&own);
    let_go();
    end();
}

TEST_NEEDING(a_signal_of_ours_is_seen_before_parked_waits, WITH_DOUBLES)
{
    check_own_signal(8, false);
}

TEST_NEEDING(a_signal_of_ours_is_seen_before_waits_parked_downwards, WITH_DOUBLES)
{
    check_own_signal(8, true);
}

TEST_NEEDING(parked_waits_are_bounded_and_all_end, WITH_DOUBLES)
{
    enum { COUNT = 40, PARKED = 16 };
    late_signal late;
    sp_point points[COUNT];
    start_stuck();
    for (unsigned i = 0; i < COUNT; i++) {
        points[i] = value_point(timeline, i + 1);
        run_elsewhere(wait_for_a_moment, &points[i]);
    }
    CHECK_EQUAL(gl_hook_live_syncs(), PARKED + 1);
    let_go();
    for (unsigned i = 0; i < COUNT; i++) {
        signal_late(&late, &values, i + 1);
        run_elsewhere(wait_for, &points[i]);
        join_not_early(&late);
        sp_point_unref(&points[i]);
    }
    end();
}

/* The one for 7 was begun before that for 9: it must not be noticed at 9. */
TEST_NEEDING(parked_waits_keep_their_order, WITH_DOUBLES)
{
    late_signal late;
    start_stuck();
    sp_point low = value_point(timeline, 3), middle = value_point(timeline, 7);
    sp_point high = value_point(timeline, 9);
    run_elsewhere(wait_for_a_moment, &low);
    run_elsewhere(wait_for_a_moment, &middle);
    run_elsewhere(wait_for_a_moment, &high);
    let_go();
    gl_play_signal(&values, 3);
    run_elsewhere(wait_for_a_moment, &high);
    signal_late(&late, &values, 7);
    run_elsewhere(wait_for, &middle);
    join_not_early(&late);
    CHECK_STATUS(sp_poll(&low), SP_OK);
    CHECK_STATUS(sp_poll(&high), SP_PENDING);
    gl_play_signal(&values, 9);
    CHECK_STATUS(sp_poll(&high), SP_OK);
    sp_point_unref(&low);
    sp_point_unref(&middle);
    sp_point_unref(&high);
    end();
}

TEST_NEEDING(signals_that_have_run_leave_no_fences_behind_a_parked_wait, WITH_DOUBLES)
{
    start_stuck();
    sp_point first = value_point(timeline, 1);
    run_elsewhere(wait_for_a_moment, &first);
    for (unsigned i = 0; i < 500; i++) {
        CHECK_STATUS(sp_gl_context_signal_semaphore(context, timeline, i + 2, NULL, NULL), SP_OK);
        CHECK(gl_hook_live_syncs() <= 4);
    }
    CHECK_STATUS(sp_poll(&first), SP_OK);
    sp_point_unref(&first);
    let_go();
    end();
}

/* Many are pending at once; then they have run, and each new signal makes the list shorter. */
TEST_NEEDING(fences_of_many_signals_go_with_the_next_ones, WITH_DOUBLES)
{
    enum { COUNT = 200 };
    start_stuck();
    gl_play_hold(true);
    for (unsigned i = 0; i < COUNT; i++)
        CHECK_STATUS(sp_gl_context_signal_semaphore(context, timeline, 0, NULL, NULL), SP_OK);
    CHECK(gl_hook_live_syncs() >= COUNT);
    gl_play_hold(false);
    for (unsigned i = 0; i < COUNT; i++)
        CHECK_STATUS(sp_gl_context_signal_semaphore(context, timeline, 0, NULL, NULL), SP_OK);
    CHECK(gl_hook_live_syncs() <= 4);
    let_go();
    end();
}
