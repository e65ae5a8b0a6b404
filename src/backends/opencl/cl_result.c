/* SPDX-License-Identifier: MIT
 *
 * What an OpenCL error code means to a caller of this library.
 */
#include "cl_internal.h"

typedef struct result_row {
    cl_int result;
    sp_status status;
    const char *name;
    const char *advice;
} result_row;

#define RESULT(name, status, advice)                                                               \
    {                                                                                              \
        CL_##name, SP_ERROR_##status, "CL_" #name, advice                                          \
    }

static const result_row result_rows[] = {
    RESULT(DEVICE_NOT_AVAILABLE, DEVICE_LOST, ""),
    RESULT(MEM_OBJECT_ALLOCATION_FAILURE, OUT_OF_MEMORY, ""),
    RESULT(OUT_OF_RESOURCES, OUT_OF_MEMORY, "; some drivers say so after a kernel that faulted"),
    RESULT(OUT_OF_HOST_MEMORY, OUT_OF_MEMORY, ""),
    RESULT(EXEC_STATUS_ERROR_FOR_EVENTS_IN_WAIT_LIST, FAILED, "; an event it waits for has failed"),
    RESULT(INVALID_CONTEXT, WRONG_CONTEXT, ""),
    RESULT(INVALID_COMMAND_QUEUE, INVALID_ARGUMENT, "; also a queue of another device"),
    RESULT(INVALID_EVENT, INVALID_ARGUMENT, ""),
    RESULT(INVALID_SEMAPHORE_KHR, INVALID_ARGUMENT, ""),
    RESULT(INVALID_VALUE, BACKEND, ""),
    RESULT(INVALID_OPERATION, BACKEND, ""),
    RESULT(INVALID_PROPERTY, BACKEND, ""),
    RESULT(INVALID_DEVICE, BACKEND, ""),
};

static const result_row *find_result(cl_int result)
{
    static const result_row other = {CL_SUCCESS, SP_ERROR_BACKEND, "unknown to this library", ""};
    for (size_t i = 0; i < SP_ARRAY_LENGTH(result_rows); i++) {
        if (result_rows[i].result == result)
            return &result_rows[i];
    }
    return &other;
}

sp_status sp_cl_fail(cl_int result, const char *call)
{
    const result_row *row = find_result(result);
    return sp_fail_native(row->status, SP_BACKEND_OPENCL, result, call, "%s: %s (%d)%s", call,
                          row->name, (int)result, row->advice);
}

/* ---- Events that failed ---- */

/* Statuses of ours, moved to where no driver has codes. */
#define CAUSE_BASE (-1400000000)

bool sp_cl_is_cause(sp_status cause)
{
    switch ((int)cause) {
#define CASE(name, number, class, text) case number:
        SP_STATUS_MAP(CASE)
#undef CASE
        return cause < 0;
    default:
        return false;
    }
}

cl_int sp_cl_status_of_cause(sp_status cause)
{
    return CAUSE_BASE + (cl_int)cause;
}

sp_status sp_cl_fail_event(cl_int execution_status)
{
    sp_error error;
    sp_status cause = (sp_status)(execution_status - CAUSE_BASE);
    if (sp_cl_is_cause(cause)) {
        sp_error_format(&error, SP_ERROR_FAILED, "the user event was failed: %s",
                        sp_status_text(cause));
        error.cause = cause;
    } else {
        const result_row *row = find_result(execution_status);
        sp_error_format(&error, SP_ERROR_FAILED, "the event's command failed: %s (%d)%s", row->name,
                        (int)execution_status, row->advice);
        error.cause = row->status;
    }
    error.backend = SP_BACKEND_OPENCL;
    error.native_code = execution_status;
    error.native_call = "clGetEventInfo";
    return sp_fail_with(&error);
}
