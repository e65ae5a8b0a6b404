/* SPDX-License-Identifier: MIT
 *
 * Bad arguments of the core's functions: the status, and nothing changed.
 */
#include "support/test.h"

#define REFUSED(call) CHECK_ERROR(call, SP_ERROR_INVALID_ARGUMENT)

TEST(waits)
{
    sp_point noop = sp_point_noop();
    sp_wait_options options = {.size = sizeof(options)};
    size_t index = 5;
    REFUSED(sp_poll(NULL));
    REFUSED(sp_wait(NULL));
    REFUSED(sp_wait_timeout(NULL, 0));
    REFUSED(sp_wait_timeout(NULL, SP_FOREVER));
    REFUSED(sp_wait_with(NULL, &options));
    REFUSED(sp_wait_with(&noop, NULL));
    CHECK_STATUS(sp_wait_with(&noop, &options), SP_OK);
    const size_t sizes[] = {0, 1, sizeof(options) - 1, sizeof(options) + 1, SIZE_MAX};
    for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
        options.size = sizes[i];
        REFUSED(sp_wait_with(&noop, &options));
    }
    REFUSED(sp_wait_many(NULL, 1, SP_WAIT_ALL, 0, &index));
    REFUSED(sp_wait_many(NULL, 1, SP_WAIT_ANY, 0, &index));
    REFUSED(sp_wait_many(&noop, 1, (sp_wait_mode)2, 0, &index));
    REFUSED(sp_wait_many(&noop, 1, (sp_wait_mode)-1, 0, &index));
    REFUSED(sp_wait_many(NULL, 0, SP_WAIT_ANY, 0, &index));
    REFUSED(sp_wait_many(&noop, 0, SP_WAIT_ANY, 0, &index));
    const sp_wait_options good = {.size = sizeof(good)}, unsized = {0};
    REFUSED(sp_wait_many_with(&noop, 1, SP_WAIT_ALL, NULL, &index));
    REFUSED(sp_wait_many_with(&noop, 1, SP_WAIT_ALL, &unsized, &index));
    REFUSED(sp_wait_many_with(NULL, 1, SP_WAIT_ALL, &good, &index));
    CHECK_STATUS(sp_wait_many_with(&noop, 1, SP_WAIT_ALL, &good, &index), SP_OK);
    REFUSED(sp_interrupt_create(NULL));
    sp_interrupt_destroy(NULL);
    sp_interrupt_raise(NULL);
    sp_interrupt_reset(NULL);
    CHECK_STATUS(sp_wait_many(NULL, 0, SP_WAIT_ALL, SP_FOREVER, &index), SP_OK);
    CHECK_STATUS(sp_wait_many(&noop, 0, SP_WAIT_ALL, SP_FOREVER, &index), SP_OK);
    CHECK_EQUAL(index, 5);
}

TEST(points)
{
    sp_point noop = sp_point_noop(), marked = test_marked_point(), out = marked;
    REFUSED(sp_point_at(NULL, 1, &out));
    REFUSED(sp_point_at(&noop, 1, NULL));
    REFUSED(sp_point_mark_submitted(NULL));
    REFUSED(sp_chain(NULL, &noop, &out));
    REFUSED(sp_chain(&noop, NULL, &out));
    REFUSED(sp_chain(&noop, &noop, NULL));
    CHECK(test_same_point(&out, &marked));
}

TEST(timelines)
{
    sp_host_timeline *timeline = NULL;
    sp_point marked = test_marked_point(), out = marked;
    REFUSED(sp_host_timeline_create(0, NULL));
    REFUSED(sp_host_timeline_create(UINT64_MAX, &timeline));
    CHECK(timeline == NULL);
    CHECK_STATUS(sp_host_timeline_create(3, &timeline), SP_OK);
    REFUSED(sp_host_timeline_point(NULL, 1, &out));
    REFUSED(sp_host_timeline_point(timeline, 1, NULL));
    REFUSED(sp_host_timeline_point(timeline, UINT64_MAX, &out));
    REFUSED(sp_host_timeline_signal(NULL, 1));
    REFUSED(sp_host_timeline_signal(timeline, UINT64_MAX));
    REFUSED(sp_host_timeline_signal(timeline, 3));
    REFUSED(sp_host_timeline_fail(NULL, SP_ERROR_SYSTEM, ""));
    REFUSED(sp_host_timeline_fail(timeline, SP_PENDING, ""));
    CHECK_EQUAL(sp_host_timeline_value(timeline), 3);
    CHECK_EQUAL(sp_host_timeline_value(NULL), 0);
    CHECK(test_same_point(&out, &marked));
    sp_host_timeline_destroy(timeline);
    sp_host_timeline_destroy(NULL);
}

TEST(slots)
{
    sp_slot *slot = NULL;
    sp_point marked = test_marked_point(), out = marked, noop = sp_point_noop();
    sp_point forged = {.kind = SP_KIND_HOST}, promise = {0};
    REFUSED(sp_slot_create(NULL));
    CHECK_STATUS(sp_slot_create(&slot), SP_OK);
    CHECK_STATUS(sp_slot_point(slot, &promise), SP_OK);
    REFUSED(sp_slot_point(NULL, &out));
    REFUSED(sp_slot_point(slot, NULL));
    REFUSED(sp_slot_set(NULL, &noop));
    REFUSED(sp_slot_set(slot, NULL));
    REFUSED(sp_slot_set(slot, &forged));
    REFUSED(sp_slot_fail(NULL, SP_ERROR_SYSTEM, NULL));
    REFUSED(sp_slot_fail(slot, SP_OK, NULL));
    REFUSED(sp_slot_fail(slot, SP_PENDING, NULL));
    CHECK(test_same_point(&out, &marked));
    CHECK_STATUS(sp_poll(&promise), SP_NOT_SUBMITTED);
    sp_point_unref(&promise);
    sp_slot_destroy(slot);
    sp_slot_destroy(NULL);
}
