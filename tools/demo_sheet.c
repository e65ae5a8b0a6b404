/* SPDX-License-Identifier: MIT */
#include "demo_sheet.h"

#include "commands.h"

#include <png.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS 4u
#define ROWS (DEMO_TILES / COLUMNS)
#define BORDER 3u
#define CELL_WIDTH (DEMO_WIDTH + 2 * BORDER)
#define CELL_HEIGHT (DEMO_HEIGHT + 2 * BORDER)
#define SHEET_WIDTH ((size_t)COLUMNS * CELL_WIDTH)
#define SHEET_HEIGHT ((size_t)ROWS * CELL_HEIGHT)
#define SHEET_PIXELS (SHEET_WIDTH * SHEET_HEIGHT)
#define COLOUR_EMPTY 0xff202020u
#define COLOUR_TORN 0xff2020ffu

bool demo_sheet_create(struct demo_sheet *sheet)
{
    sheet->pixels = malloc(SHEET_PIXELS * sizeof(uint32_t));
    if (!sheet->pixels)
        return false;
    for (size_t i = 0; i < SHEET_PIXELS; i++)
        sheet->pixels[i] = COLOUR_EMPTY;
    return true;
}

void demo_sheet_destroy(struct demo_sheet *sheet)
{
    free(sheet->pixels);
    sheet->pixels = NULL;
}

/* Which of `frames` the tile shows: they are spread evenly. */
static uint32_t frame_of_tile(uint32_t frames, uint32_t tile)
{
    if (frames <= DEMO_TILES)
        return tile;
    return (uint32_t)((uint64_t)tile * (frames - 1) / (DEMO_TILES - 1));
}

static void fill_tile(uint32_t *cell, const uint32_t *pixels, bool torn)
{
    for (uint32_t y = 0; torn && y < CELL_HEIGHT; y++) {
        for (uint32_t x = 0; x < CELL_WIDTH; x++)
            cell[y * SHEET_WIDTH + x] = COLOUR_TORN;
    }
    for (uint32_t y = 0; y < DEMO_HEIGHT; y++) {
        memcpy(cell + (y + BORDER) * SHEET_WIDTH + BORDER, pixels + (size_t)y * DEMO_WIDTH,
               DEMO_WIDTH * sizeof *pixels);
    }
}

void demo_sheet_add(struct demo_sheet *sheet, uint32_t frames, uint32_t frame,
                    const uint32_t *pixels, bool torn)
{
    for (uint32_t tile = 0; tile < DEMO_TILES; tile++) {
        if (frame_of_tile(frames, tile) != frame)
            continue;
        const uint32_t x = tile % COLUMNS * CELL_WIDTH;
        const uint32_t y = tile / COLUMNS * CELL_HEIGHT;
        fill_tile(sheet->pixels + y * SHEET_WIDTH + x, pixels, torn);
        return;
    }
}

/* Stale memory may have any alpha: the file has none. */
static void drop_alpha(const struct demo_sheet *sheet, uint8_t *rgb)
{
    for (size_t i = 0; i < SHEET_PIXELS; i++) {
        for (size_t channel = 0; channel < 3; channel++)
            rgb[3 * i + channel] = (uint8_t)(sheet->pixels[i] >> (8 * channel));
    }
}

bool demo_sheet_write(const struct demo_sheet *sheet, const char *path)
{
    uint8_t *rgb = malloc(SHEET_PIXELS * 3);
    if (!rgb) {
        tool_error("%s: out of memory", path);
        return false;
    }
    drop_alpha(sheet, rgb);
    png_image image = {
        .version = PNG_IMAGE_VERSION,
        .width = SHEET_WIDTH,
        .height = SHEET_HEIGHT,
        .format = PNG_FORMAT_RGB,
    };
    const bool ok = png_image_write_to_file(&image, path, 0, rgb, 0, NULL) != 0;
    if (!ok)
        tool_error("%s: %s", path, image.message);
    free(rgb);
    return ok;
}
