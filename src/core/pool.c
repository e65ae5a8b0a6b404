/* SPDX-License-Identifier: MIT
 *
 * Spare objects of one size, so that making a point of a one-shot primitive calls no allocator once
 * there is one. What a pool made it keeps until it is emptied.
 */
#include "core.h"

#include <stdlib.h>

/* Goes before each object: the lists that it is in. */
typedef struct sp_pool_node {
    struct sp_pool_node *next_free;
    struct sp_pool_node *next_made;
} sp_pool_node;

_Static_assert(sizeof(sp_pool_node) % _Alignof(max_align_t) == 0, "objects after it are aligned");

static void *object_of(sp_pool_node *node)
{
    return node + 1;
}

static sp_pool_node *node_of(void *object)
{
    return (sp_pool_node *)object - 1;
}

void *sp_pool_get(sp_pool *pool)
{
    sp_os_spin_lock(&pool->lock);
    sp_pool_node *spare = pool->free_nodes;
    if (spare) {
        pool->free_nodes = spare->next_free;
        pool->in_use++;
    }
    sp_os_spin_unlock(&pool->lock);
    if (spare)
        return object_of(spare);
    sp_pool_node *made = calloc(1, sizeof(*made) + pool->object_size);
    if (!made) {
        sp_fail(SP_ERROR_OUT_OF_MEMORY, "one signal: out of memory");
        return NULL;
    }
    sp_os_spin_lock(&pool->lock);
    made->next_made = pool->made_nodes;
    pool->made_nodes = made;
    pool->in_use++;
    sp_os_spin_unlock(&pool->lock);
    return object_of(made);
}

bool sp_pool_leave(sp_pool *pool, void *object, bool alone)
{
    sp_pool_node *node = node_of(object);
    if (!alone)
        sp_os_spin_lock(&pool->lock);
    node->next_free = pool->free_nodes;
    pool->free_nodes = node;
    pool->in_use--;
    bool last = pool->closed && pool->in_use == 0;
    if (!alone)
        sp_os_spin_unlock(&pool->lock);
    return last;
}

void sp_pool_put(sp_pool *pool, void *object)
{
    (void)sp_pool_leave(pool, object, false);
}

bool sp_pool_close(sp_pool *pool, bool alone)
{
    if (!alone)
        sp_os_spin_lock(&pool->lock);
    pool->closed = true;
    bool unused = pool->in_use == 0;
    if (!alone)
        sp_os_spin_unlock(&pool->lock);
    return unused;
}

void sp_pool_each(sp_pool *pool, void (*visit)(void *user, void *object), void *user)
{
    for (sp_pool_node *at = pool->made_nodes; at; at = at->next_made)
        visit(user, object_of(at));
}

void sp_pool_empty(sp_pool *pool)
{
    sp_pool_node *at = pool->made_nodes;
    while (at) {
        sp_pool_node *next = at->next_made;
        free(at);
        at = next;
    }
    pool->free_nodes = NULL;
    pool->made_nodes = NULL;
}
