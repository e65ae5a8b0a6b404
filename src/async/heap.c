/* SPDX-License-Identifier: MIT */
#include "async/heap.h"

static sp_heap_node *node_of(sp_heap_of of, uint32_t number)
{
    return (sp_heap_node *)(void *)((char *)sp_slab_at(of.slab, number) + of.at);
}

/* Makes the root with the larger key a child of the other, which is returned. */
static uint32_t join(sp_heap_of of, uint32_t a, uint32_t b)
{
    if (!a || !b)
        return a ? a : b;
    if (node_of(of, b)->key < node_of(of, a)->key) {
        uint32_t other = a;
        a = b;
        b = other;
    }
    sp_heap_node *parent = node_of(of, a), *child = node_of(of, b);
    child->next = parent->child;
    child->prev = a;
    if (child->next)
        node_of(of, child->next)->prev = b;
    parent->child = b;
    return a;
}

/* Of a list of siblings, joined two by two, then all from the last pair on. */
static uint32_t join_all(sp_heap_of of, uint32_t first)
{
    uint32_t pairs = 0; /* linked by `next`, the last pair first */
    while (first) {
        uint32_t second = node_of(of, first)->next;
        uint32_t rest = second ? node_of(of, second)->next : 0;
        uint32_t pair = join(of, first, second);
        node_of(of, pair)->next = pairs;
        pairs = pair;
        first = rest;
    }
    uint32_t root = 0;
    while (pairs) {
        uint32_t rest = node_of(of, pairs)->next;
        root = join(of, pairs, root);
        pairs = rest;
    }
    return root;
}

static void set_root(sp_heap_of of, uint32_t *root, uint32_t number)
{
    *root = number;
    if (number) {
        node_of(of, number)->next = 0;
        node_of(of, number)->prev = 0;
    }
}

void sp_heap_add(sp_heap_of of, uint32_t *root, uint32_t number)
{
    sp_heap_node *node = node_of(of, number);
    node->child = 0;
    node->next = 0;
    node->prev = 0;
    node->linked = 1;
    set_root(of, root, join(of, *root, number));
}

static void unlink_child(sp_heap_of of, const sp_heap_node *node, uint32_t number)
{
    sp_heap_node *before = node_of(of, node->prev);
    if (before->child == number)
        before->child = node->next;
    else
        before->next = node->next;
    if (node->next)
        node_of(of, node->next)->prev = node->prev;
}

void sp_heap_remove(sp_heap_of of, uint32_t *root, uint32_t number)
{
    sp_heap_node *node = node_of(of, number);
    if (*root != number)
        unlink_child(of, node, number);
    uint32_t children = join_all(of, node->child);
    set_root(of, root, *root == number ? children : join(of, *root, children));
    node->linked = 0;
}
