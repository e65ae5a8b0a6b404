/* SPDX-License-Identifier: MIT
 *
 * What takes as long as it says.
 */
#include "support/test.h"

TEST(default_timeout_is_ten_seconds)
{
    sp_host_timeline *timeline = NULL;
    sp_point point = {0};
    CHECK_STATUS(sp_host_timeline_create(0, &timeline), SP_OK);
    CHECK_STATUS(sp_host_timeline_point(timeline, 1, &point), SP_OK);
    uint64_t start = sp_now_ns();
    CHECK_STATUS(sp_wait(&point), SP_TIMEOUT);
    uint64_t took = sp_now_ns() - start;
    CHECK(took >= SP_TIMEOUT_DEFAULT);
    CHECK(took < SP_TIMEOUT_DEFAULT + PATIENCE_NS);
    sp_point_unref(&point);
    sp_host_timeline_destroy(timeline);
}
