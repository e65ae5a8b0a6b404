/* SPDX-License-Identifier: MIT
 *
 * Statuses, their texts, and the last error of each thread.
 */
#include "core.h"

#include <stdio.h>
#include <string.h>

static _Thread_local sp_error last_error;

typedef struct status_row {
    sp_status status;
    sp_class class_;
    const char *name;
    const char *text;
} status_row;

static const status_row status_rows[] = {
#define STATUS_ROW(name, number, class_, text) {SP_##name, SP_CLASS_##class_, "SP_" #name, text},
    SP_STATUS_MAP(STATUS_ROW)
#undef STATUS_ROW
};

static const status_row *find_status(sp_status status)
{
    static const status_row unknown = {SP_OK, SP_CLASS_FATAL, "SP_UNKNOWN", "not a known status"};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(status_rows); i++) {
        if (status_rows[i].status == status)
            return &status_rows[i];
    }
    return &unknown;
}

const char *sp_status_name(sp_status status)
{
    return find_status(status)->name;
}
const char *sp_status_text(sp_status status)
{
    return find_status(status)->text;
}
sp_class sp_status_class(sp_status status)
{
    return find_status(status)->class_;
}

const sp_error *sp_last_error(void)
{
    return &last_error;
}

static void fill_error(sp_error *error, sp_status status, const char *format, va_list args)
{
    memset(error, 0, sizeof(*error));
    error->status = status;
    error->cause = status;
    error->backend = SP_BACKEND_CPU;
    vsnprintf(error->message, sizeof(error->message), format, args);
}

void sp_error_format(sp_error *error, sp_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill_error(error, status, format, args);
    va_end(args);
}

sp_status sp_fail(sp_status status, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill_error(&last_error, status, format, args);
    va_end(args);
    return status;
}

sp_status sp_fail_native(sp_status status, sp_backend backend, int64_t code, const char *call,
                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill_error(&last_error, status, format, args);
    va_end(args);
    last_error.backend = backend;
    last_error.native_code = code;
    last_error.native_call = call;
    return status;
}

sp_status sp_fail_as_told(sp_status status, const char *who)
{
    if (last_error.status != status)
        sp_fail(status, "%s: %s", who, sp_status_text(status));
    return status;
}

sp_status sp_fail_with(const sp_error *error)
{
    if (error != &last_error)
        last_error = *error;
    return error->status;
}

void sp_log_message(const sp_log *log, sp_log_level level, const char *format, ...)
{
    if (!log->fn)
        return;
    char message[256];
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof(message), format, args);
    va_end(args);
    log->fn(log->user, level, message);
}
