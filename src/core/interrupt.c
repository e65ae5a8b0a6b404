/* SPDX-License-Identifier: MIT
 *
 * Ending waits from another thread. Waits block in slices of 5 ms, and look here between them.
 */
#include "core.h"

#include <stdlib.h>

struct sp_interrupt {
    uint32_t raised;
};

sp_status sp_interrupt_create(sp_interrupt **out)
{
    SP_CHECK_ARGUMENT(out, "out is required");
    sp_interrupt *made = calloc(1, sizeof(*made));
    if (!made)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_interrupt_create: out of memory");
    *out = made;
    return SP_OK;
}

void sp_interrupt_destroy(sp_interrupt *interrupt)
{
    free(interrupt);
}

void sp_interrupt_raise(sp_interrupt *interrupt)
{
    if (interrupt)
        sp_store32(&interrupt->raised, 1);
}

void sp_interrupt_reset(sp_interrupt *interrupt)
{
    if (interrupt)
        sp_store32(&interrupt->raised, 0);
}

sp_status sp_interrupt_check(const sp_interrupt *interrupt)
{
    if (SP_LIKELY(!interrupt || !sp_load32(&interrupt->raised)))
        return SP_OK;
    return sp_fail(SP_ERROR_CANCELLED, "the wait was interrupted");
}
