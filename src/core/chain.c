/* SPDX-License-Identifier: MIT
 *
 * Two points, one after the other. A chain of many is a balanced tree whose leaves, from left to
 * right, are the points: joining two chains makes as many new nodes as their heights differ, and
 * no walk goes deeper than about 1.44 log2(points).
 */
#include "core.h"

#include <stdlib.h>

typedef struct chain_node {
    sp_waiter base;
    sp_point first;
    sp_point then;
    uint32_t height;
    uint32_t memo; /* see sp_chain_memo()                                                       */
} chain_node;

static sp_status chain_next(sp_waiter *waiter, const sp_point **member);
static void chain_destroy(sp_waiter *waiter);

static const sp_composite_ops chain_ops = {
    .base =
        {
            .size = sizeof(sp_waiter_ops),
            .features = SP_FEATURE_COMPOSITE,
            .backend = SP_BACKEND_CPU,
            .name = "chain",
            .destroy = chain_destroy,
        },
    .next = chain_next,
};

bool sp_point_is_chain(const sp_point *point)
{
    return point->waiter && point->waiter->ops == &chain_ops.base;
}

static const chain_node *node_of(const sp_point *chain)
{
    return SP_CONTAINER_OF(chain->waiter, chain_node, base);
}

const sp_point *sp_chain_first(const sp_point *chain)
{
    return &node_of(chain)->first;
}
const sp_point *sp_chain_then(const sp_point *chain)
{
    return &node_of(chain)->then;
}

uint32_t *sp_chain_memo(const sp_point *chain)
{
    return &SP_CONTAINER_OF(chain->waiter, chain_node, base)->memo;
}

static uint32_t height_of(const sp_point *point)
{
    return sp_point_is_chain(point) ? node_of(point)->height : 0;
}

/* Remembers on the way which parts are done, so that no leaf is looked at twice. */
static const sp_point *first_pending(const sp_point *point)
{
    if (sp_waiter_known_reached(point->waiter, sp_point_target(point)))
        return NULL;
    if (!sp_point_is_chain(point))
        return point;
    const sp_point *pending = first_pending(sp_chain_first(point));
    if (!pending)
        pending = first_pending(sp_chain_then(point));
    if (!pending)
        sp_waiter_reached(point->waiter, 1);
    return pending;
}

static sp_status chain_next(sp_waiter *waiter, const sp_point **member)
{
    const sp_point self = {.kind = SP_KIND_CHAIN, .waiter = waiter};
    *member = first_pending(&self);
    return *member ? SP_PENDING : SP_OK;
}

static void chain_destroy(sp_waiter *waiter)
{
    chain_node *node = SP_CONTAINER_OF(waiter, chain_node, base);
    sp_point_unref(&node->first);
    sp_point_unref(&node->then);
    free(node);
}

static sp_status make_node(const sp_point *first, const sp_point *then, sp_point *out)
{
    chain_node *node = calloc(1, sizeof(*node));
    if (!node)
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_chain: out of memory");
    sp_waiter_setup(&node->base, &chain_ops.base);
    node->first = sp_point_ref(first);
    node->then = sp_point_ref(then);
    uint32_t left = height_of(first);
    uint32_t right = height_of(then);
    node->height = 1 + (left > right ? left : right);
    *out = (sp_point){.kind = SP_KIND_CHAIN, .waiter = &node->base};
    return SP_OK;
}

/* A node of an outer and an inner part; `mirrored`: the outer part is the later one. */
static sp_status make_pair(bool mirrored, const sp_point *outer, const sp_point *inner,
                           sp_point *out)
{
    return mirrored ? make_node(inner, outer, out) : make_node(outer, inner, out);
}

static const sp_point *outer_of(bool mirrored, const sp_point *chain)
{
    return mirrored ? sp_chain_then(chain) : sp_chain_first(chain);
}

static const sp_point *inner_of(bool mirrored, const sp_point *chain)
{
    return mirrored ? sp_chain_first(chain) : sp_chain_then(chain);
}

/* Joins `outer` to `tall`, which is two higher, by the rotation of AVL trees. */
static sp_status make_rotated(bool mirrored, const sp_point *outer, const sp_point *tall,
                              sp_point *out)
{
    const sp_point *near = outer_of(mirrored, tall);
    const sp_point *far = inner_of(mirrored, tall);
    bool twice = height_of(near) > height_of(far);
    sp_point a = sp_point_noop();
    sp_point b = sp_point_noop();
    sp_status status = make_pair(mirrored, outer, twice ? outer_of(mirrored, near) : near, &a);
    if (status == SP_OK && twice)
        status = make_pair(mirrored, inner_of(mirrored, near), far, &b);
    if (status == SP_OK)
        status = make_pair(mirrored, &a, twice ? &b : far, out);
    sp_point_unref(&a);
    sp_point_unref(&b);
    return status;
}

static sp_status join(bool mirrored, const sp_point *outer, const sp_point *inner, sp_point *out)
{
    if (height_of(inner) > height_of(outer) + 1)
        return join(!mirrored, inner, outer, out);
    if (height_of(outer) <= height_of(inner) + 1)
        return make_pair(mirrored, outer, inner, out);
    const sp_point *keep = outer_of(mirrored, outer);
    sp_point joined;
    sp_status status = join(mirrored, inner_of(mirrored, outer), inner, &joined);
    if (status != SP_OK)
        return status;
    if (height_of(&joined) > height_of(keep) + 1)
        status = make_rotated(mirrored, keep, &joined, out);
    else
        status = make_pair(mirrored, keep, &joined, out);
    sp_point_unref(&joined);
    return status;
}

sp_status sp_chain(const sp_point *first, const sp_point *then, sp_point *out)
{
    SP_CHECK_ARGUMENT(first && then && out, "first, then and out are required");
    sp_waiter *first_waiter;
    sp_waiter *then_waiter;
    sp_status status = sp_point_check(first, &first_waiter);
    if (status == SP_OK)
        status = sp_point_check(then, &then_waiter);
    if (status != SP_OK)
        return status;
    sp_point made;
    if (!first_waiter)
        made = sp_point_ref(then);
    else if (!then_waiter)
        made = sp_point_ref(first);
    else
        status = join(false, first, then, &made);
    if (status == SP_OK)
        *out = made;
    return status;
}
