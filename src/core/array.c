/* SPDX-License-Identifier: MIT
 *
 * Arrays that begin on the stack.
 */
#include "core.h"

#include <stdlib.h>
#include <string.h>

void *sp_array_grow(void *items, const void *few, size_t *capacity, size_t item_size)
{
    size_t wanted = *capacity * 2;
    assert(wanted > *capacity);
    bool is_few = items == few;
    void *grown = realloc(is_few ? NULL : items, wanted * item_size);
    if (!grown)
        return NULL;
    if (is_few)
        memcpy(grown, few, *capacity * item_size);
    *capacity = wanted;
    return grown;
}

void sp_array_free(void *items, const void *few)
{
    if (items != few)
        free(items);
}
