/* SPDX-License-Identifier: MIT */
#include "async/slab.h"

#include <stdlib.h>

#define CHUNK (1u << SP_SLAB_OBJECT_BITS)
#define SHELF (1u << (SP_SLAB_OBJECT_BITS + SP_SLAB_CHUNK_BITS))

/* The place of the chunk that holds the object after the first `count`. NULL: no memory, or full. */
static char **chunk_place(sp_slab *slab, uint32_t count)
{
    if (count / SHELF >= SP_SLAB_SHELVES)
        return NULL;
    sp_slab_shelf **shelf = &slab->shelves[count / SHELF];
    if (!*shelf)
        *shelf = calloc(1, sizeof(**shelf));
    return *shelf ? &(*shelf)->chunks[count % SHELF / CHUNK] : NULL;
}

/* Numbers are told to others only after this: see sp_slab_has(). */
static uint32_t make(sp_slab *slab)
{
    uint32_t count = slab->made;
    if (count % CHUNK == 0) {
        char **place = chunk_place(slab, count);
        if (place && !*place)
            *place = calloc(CHUNK, slab->object_size);
        if (!place || !*place)
            return 0;
    }
    sp_store32(&slab->made, count + 1);
    return count + 1;
}

uint32_t sp_slab_get(sp_slab *slab)
{
    uint32_t number = slab->free;
    if (!number)
        return make(slab);
    uint32_t *link = sp_slab_at(slab, number);
    slab->free = *link;
    *link = 0;
    return number;
}

void sp_slab_put(sp_slab *slab, uint32_t number)
{
    uint32_t *link = sp_slab_at(slab, number);
    *link = slab->free;
    slab->free = number;
}

void sp_slab_fini(sp_slab *slab)
{
    for (uint32_t s = 0; s < SP_SLAB_SHELVES && slab->shelves[s]; s++) {
        for (uint32_t c = 0; c < SHELF / CHUNK; c++)
            free(slab->shelves[s]->chunks[c]);
        free(slab->shelves[s]);
    }
}
