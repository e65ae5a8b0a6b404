/* SPDX-License-Identifier: MIT
 *
 * Pairing heaps of objects of a slab: put in O(1), take any out in O(log n), no memory but the nodes.
 */
#ifndef SP_ASYNC_HEAP_H
#define SP_ASYNC_HEAP_H

#include "async/slab.h"

typedef struct sp_heap_node {
    uint64_t key;
    uint32_t child; /* the first of them                                                        */
    uint32_t next;  /* sibling                                                                  */
    uint32_t prev;  /* sibling, or the parent of a first child                                  */
    uint32_t linked;
} sp_heap_node;

/* A heap is the number of its root, 0 when it is empty. `at` is where in an object the node is. */
typedef struct sp_heap_of {
    const sp_slab *slab;
    size_t at;
} sp_heap_of;

void sp_heap_add(sp_heap_of of, uint32_t *root, uint32_t number); /* its key is set already */
void sp_heap_remove(sp_heap_of of, uint32_t *root, uint32_t number);

#endif
