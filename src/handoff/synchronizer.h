/* SPDX-License-Identifier: MIT
 *
 * What a synchronizer is inside: a table of its hooks, and the struct that embeds the base.
 */
#ifndef SP_HANDOFF_SYNCHRONIZER_H
#define SP_HANDOFF_SYNCHRONIZER_H

#include "core/core.h"

#include <syncpoint/handoff.h>

/* The mechanism was checked against `takes`, frame and texture are not NULL and of known size. */
typedef struct sp_synchronizer_ops {
    const char *name;
    uint32_t takes; /* 1 << sp_mechanism for each one; SP_TAKES_ALL for any                     */
    /* Optional: NULL is a no-op. */
    sp_status (*producer_complete)(sp_synchronizer *, const sp_frame *, sp_mechanism);
    sp_status (*consumer_ready)(sp_synchronizer *, const sp_texture *, sp_mechanism);
    void (*last_gate)(sp_synchronizer *, sp_point *out);
    /* Waits for device work of its own; TIMEOUT: keep everything. */
    sp_status (*finish)(sp_synchronizer *, uint64_t timeout_ns);
    /* Frees what it holds, not the struct. After a fork: no driver call. */
    void (*release)(sp_synchronizer *);
} sp_synchronizer_ops;

#define SP_TAKES_ALL UINT32_MAX
#define SP_TAKES(mechanism) (UINT32_C(1) << (mechanism))

struct sp_synchronizer {
    const sp_synchronizer_ops *ops;
    uint32_t fork_generation;
};

/* `size` bytes, zeroed, whose first member is a sp_synchronizer; NULL: out of memory. */
sp_synchronizer *sp_synchronizer_allocate(size_t size, const sp_synchronizer_ops *ops);

#endif
