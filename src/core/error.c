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

static const status_row unknown = {SP_OK, SP_CLASS_FATAL, "SP_UNKNOWN", "not a known status"};

static const status_row *find_status(sp_status status)
{
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

/* Grows whenever the last error is set; never 0. */
static _Thread_local uint32_t last_error_number = 1;

uint32_t sp_error_number(void)
{
    return last_error_number;
}

static sp_error *new_last_error(void)
{
    last_error_number += last_error_number == UINT32_MAX ? 2 : 1;
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
    fill_error(new_last_error(), status, format, args);
    va_end(args);
    return status;
}

sp_status sp_fail_size(const char *function, const char *object, size_t size, size_t wanted)
{
    return sp_fail(SP_ERROR_INVALID_ARGUMENT,
                   "%s: %s->size is %zu and must be %zu: zero the struct, then set size to its "
                   "sizeof",
                   function, object, size, wanted);
}

sp_status sp_fail_native(sp_status status, sp_backend backend, int64_t code, const char *call,
                         const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fill_error(new_last_error(), status, format, args);
    va_end(args);
    last_error.backend = backend;
    last_error.native_code = code;
    last_error.native_call = call;
    return status;
}

sp_status sp_fail_as_told(sp_status status, const sp_waiter_ops *ops, uint32_t number)
{
    if (status >= 0 || find_status(status) == &unknown) {
        return sp_fail_native(SP_ERROR_BACKEND, ops->backend, status, NULL,
                              "%s: a function of its table returned %d, which is no status for it",
                              ops->name, (int)status);
    }
    if (number == last_error_number || last_error.status != status) {
        sp_fail_native(status, ops->backend, 0, NULL, "%s: %s", ops->name, sp_status_text(status));
    }
    return status;
}

sp_status sp_fail_with(const sp_error *error)
{
    if (error != &last_error)
        *new_last_error() = *error;
    return error->status;
}

sp_status sp_fail_this_wait(void)
{
    sp_error error = *sp_last_error();
    if (sp_status_class(error.status) != SP_CLASS_FATAL)
        return error.status;
    error.status = SP_ERROR_INVALID_STATE;
    error.cause = SP_ERROR_INVALID_STATE;
    return sp_fail_with(&error);
}

sp_status sp_error_set(const sp_error *error)
{
    SP_CHECK_ARGUMENT(error, "error is required");
    SP_CHECK_ARGUMENT(error->status < 0, "an error has a negative status");
    sp_error told = *error;
    if (told.cause == SP_OK)
        told.cause = told.status;
    told.message[sizeof(told.message) - 1] = '\0';
    return sp_fail_with(&told);
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
