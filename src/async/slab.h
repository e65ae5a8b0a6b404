/* SPDX-License-Identifier: MIT
 *
 * Objects of one size that never move and are known by a number from 1 on. A link between two of them
 * takes 4 bytes so, and a number that is handed out can be looked up without a lock.
 */
#ifndef SP_ASYNC_SLAB_H
#define SP_ASYNC_SLAB_H

#include "os/atomic.h"

#include <stddef.h>

#define SP_SLAB_OBJECT_BITS 8 /* objects in a chunk                                             */
#define SP_SLAB_CHUNK_BITS 10 /* chunks in a shelf                                              */
#define SP_SLAB_SHELVES 256
#define SP_SLAB_NUMBER_BITS 27 /* that a number fits in                                         */

typedef struct sp_slab_shelf {
    char *chunks[1 << SP_SLAB_CHUNK_BITS];
} sp_slab_shelf;

/* Objects begin with a uint32_t, which is the slab's while they are free. */
typedef struct sp_slab {
    size_t object_size;
    sp_slab_shelf *shelves[SP_SLAB_SHELVES];
    uint32_t made; /* numbers up to this one exist; atomic */
    uint32_t free; /* the first of a list                  */
} sp_slab;

/* These two by one thread at a time. What is got the first time is zeroed, later it is as it was put,
 * but for its first field. */
uint32_t sp_slab_get(sp_slab *slab); /* 0: out of memory */
void sp_slab_put(sp_slab *slab, uint32_t number);
void sp_slab_fini(sp_slab *slab);

/* Any thread, any number that sp_slab_get() gave. */
static inline void *sp_slab_at(const sp_slab *slab, uint32_t number)
{
    uint32_t at = number - 1;
    sp_slab_shelf *const *shelf = &slab->shelves[at >> (SP_SLAB_OBJECT_BITS + SP_SLAB_CHUNK_BITS)];
    uint32_t chunk = (at >> SP_SLAB_OBJECT_BITS) & ((1u << SP_SLAB_CHUNK_BITS) - 1);
    uint32_t object = at & ((1u << SP_SLAB_OBJECT_BITS) - 1);
    return (*shelf)->chunks[chunk] + object * slab->object_size;
}

/* Has the number been given out? Then sp_slab_at() may be called. */
static inline bool sp_slab_has(const sp_slab *slab, uint32_t number)
{
    return number != 0 && number <= sp_load32(&slab->made);
}

#endif
