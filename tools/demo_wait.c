/* SPDX-License-Identifier: MIT */
#include "commands.h"
#include "demo_link.h"

#define SLICE_NS UINT64_C(100000000)

bool demo_wait(const sp_point *point, const char *what, demo_peer_check *peer_is_there, void *self)
{
    const uint64_t deadline = sp_deadline_ns(DEMO_TIMEOUT_NS);
    sp_status status;
    do {
        const bool there = peer_is_there(self);
        status = sp_wait_timeout(point, SLICE_NS);
        /* A peer that has ended in order has signalled all before: the slice has seen it. */
        if (status == SP_TIMEOUT && !there) {
            tool_error("%s: the other side is gone, and its signal will not come", what);
            return false;
        }
    } while (status == SP_TIMEOUT && sp_now_ns() < deadline);
    return demo_sync_ok(status, what);
}
