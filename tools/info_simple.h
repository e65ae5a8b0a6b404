/* SPDX-License-Identifier: MIT
 * Sections of `syncpoint info` that need no more than a list of devices with a cell for each thing
 * that can be done. The drivers are asked in a process of its own, which may crash or hang. */
#ifndef SP_TOOLS_INFO_SIMPLE_H
#define SP_TOOLS_INFO_SIMPLE_H

#include "info.h"

#include <syncpoint/syncpoint.h>

typedef struct info_simple {
    const char *title;
    void (*probe)(json_t *devices); /* in the child: adds a device for each that there is */
} info_simple;

json_t *info_simple_gather(const info_simple *section, bool verbose);
void info_simple_print(const info_simple *section, const json_t *found);

/* For probes. */
json_t *info_device(json_t *devices, const char *name); /* borrowed */
void info_about(json_t *device, const char *key, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* `result` is one of info.c's; `why` may be NULL. */
void info_cell(json_t *device, const char *what, const char *result, const char *why);
/* "proven" for SP_OK, else "failed" with the last error. */
void info_proven(json_t *device, const char *what, sp_status status);
void info_reported(json_t *device, const char *what, bool there, const char *why_not);
void info_uuid(json_t *device, bool known, const uint8_t uuid[16]);

/* Not reached while its signal is withheld, reached once it comes: SP_OK. */
sp_status info_prove_wait(const sp_point *point, void (*let_go)(void *user), void *user);

#endif
