/* SPDX-License-Identifier: MIT
 *
 * demo.png: some of the frames that the consumer got, as it got them.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_SHEET_H
#define SYNCPOINT_TOOLS_DEMO_SHEET_H

#include "demo.h"

bool demo_sheet_create(struct demo_sheet *sheet);
void demo_sheet_destroy(struct demo_sheet *sheet);

/* Takes the frame's pixels if it is one of those shown of `frames`. A torn one gets a red frame. */
void demo_sheet_add(struct demo_sheet *sheet, uint32_t frames, uint32_t frame,
                    const uint32_t *pixels, bool torn);

/* Writes the PNG file. Prints what went wrong. */
bool demo_sheet_write(const struct demo_sheet *sheet, const char *path);

#endif
