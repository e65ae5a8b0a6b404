/* SPDX-License-Identifier: MIT
 *
 * What the devices of a context say about themselves. A context can do what each of them can.
 */
#include "cl_internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEMAPHORE "cl_khr_semaphore"
#define OPAQUE_FD "cl_khr_external_semaphore_opaque_fd"
#define DEVICE_UUID "cl_khr_device_uuid"

/* Text of any length; NULL: sp_last_error() says why. Free it. */
static char *read_device_text(const sp_cl_context *context, cl_device_id device,
                              cl_device_info name)
{
    size_t size = 0;
    cl_int result = context->cl.get_device_info(device, name, 0, NULL, &size);
    char *text = result == CL_SUCCESS ? calloc(1, size + 1) : NULL;
    if (text)
        result = context->cl.get_device_info(device, name, size, text, NULL);
    if (text && result == CL_SUCCESS)
        return text;
    free(text);
    if (result != CL_SUCCESS)
        sp_cl_fail(result, "clGetDeviceInfo");
    else
        sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_cl_context_create: out of memory");
    return NULL;
}

/* ---- Version ---- */

/* "OpenCL 1.2 whose it is" */
static sp_status check_version(const char *version, const char *whose)
{
    int major = 0, minor = 0;
    if (sscanf(version, "OpenCL %d.%d", &major, &minor) == 2 &&
        (major > 1 || (major == 1 && minor >= 2)))
        return SP_OK;
    return sp_fail(SP_ERROR_NOT_SUPPORTED,
                   "sp_cl_context_create: OpenCL 1.2 is needed, the %s has \"%s\"", whose, version);
}

static sp_status check_platform(const sp_cl_context *context, cl_platform_id platform)
{
    char version[256] = "";
    cl_int result = context->cl.get_platform_info(platform, CL_PLATFORM_VERSION,
                                                  sizeof(version) - 1, version, NULL);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clGetPlatformInfo");
    return check_version(version, "platform");
}

static sp_status check_device(const sp_cl_context *context, cl_device_id device)
{
    char *version = read_device_text(context, device, CL_DEVICE_VERSION);
    if (!version)
        return sp_last_error()->status;
    sp_status status = check_version(version, "device");
    free(version);
    return status;
}

/* ---- Extensions ---- */

static bool has_word(const char *text, const char *word)
{
    size_t length = strlen(word);
    for (const char *at = strstr(text, word); at; at = strstr(at + length, word)) {
        bool begins = at == text || at[-1] == ' ';
        if (begins && (at[length] == ' ' || at[length] == '\0'))
            return true;
    }
    return false;
}

static void note_missing(char *why, size_t size, const char *what)
{
    if (!why[0])
        snprintf(why, size, "%s is missing", what);
}

/* The extension says that the type exists, the list that it can be imported. */
static bool imports_opaque_fd(const sp_cl_context *context, cl_device_id device)
{
    cl_external_semaphore_handle_type_khr types[16] = {0};
    size_t size = 0;
    cl_int result = context->cl.get_device_info(device, CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR,
                                                sizeof(types), types, &size);
    for (size_t i = 0; result == CL_SUCCESS && i < size / sizeof(types[0]); i++) {
        if (types[i] == CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR)
            return true;
    }
    return false;
}

static void read_uuid(sp_cl_context *context, cl_device_id device)
{
    sp_cl_caps *caps = &context->caps;
    caps->has_uuid =
        context->cl.get_device_info(device, CL_DEVICE_UUID_KHR, sizeof(caps->device_uuid),
                                    caps->device_uuid, NULL) == CL_SUCCESS &&
        context->cl.get_device_info(device, CL_DRIVER_UUID_KHR, sizeof(caps->driver_uuid),
                                    caps->driver_uuid, NULL) == CL_SUCCESS;
}

static sp_status read_device(sp_cl_context *context, cl_device_id device, bool first)
{
    sp_status status = check_device(context, device);
    if (status != SP_OK)
        return status;
    char *extensions = read_device_text(context, device, CL_DEVICE_EXTENSIONS);
    if (!extensions)
        return sp_last_error()->status;
    if (!has_word(extensions, SEMAPHORE))
        note_missing(context->why_no_semaphore, sizeof(context->why_no_semaphore), SEMAPHORE);
    if (!has_word(extensions, OPAQUE_FD))
        note_missing(context->why_no_import, sizeof(context->why_no_import), OPAQUE_FD);
    else if (!imports_opaque_fd(context, device))
        note_missing(context->why_no_import, sizeof(context->why_no_import),
                     "an opaque fd among CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR");
    if (first && has_word(extensions, DEVICE_UUID))
        read_uuid(context, device);
    free(extensions);
    return SP_OK;
}

static void conclude(sp_cl_context *context, cl_platform_id platform)
{
    char *why = context->why_no_semaphore;
    sp_cl_caps *caps = &context->caps;
    if (!why[0]) {
        const char *missing = sp_cl_driver_load_semaphores(&context->cl, platform);
        if (missing)
            note_missing(why, sizeof(context->why_no_semaphore), missing);
    }
    if (why[0])
        snprintf(context->why_no_import, sizeof(context->why_no_import), "%s", why);
    caps->semaphore = !why[0];
    caps->import_opaque_fd = !context->why_no_import[0];
    caps->why_no_semaphore = caps->semaphore ? NULL : why;
    caps->why_no_import = caps->import_opaque_fd ? NULL : context->why_no_import;
}

/* ---- The devices of the context ---- */

static sp_status get_devices(const sp_cl_context *context, cl_device_id **devices, size_t *count)
{
    size_t size = 0;
    cl_int result =
        context->cl.get_context_info(context->handle, CL_CONTEXT_DEVICES, 0, NULL, &size);
    cl_device_id *list = result == CL_SUCCESS ? calloc(1, size + sizeof(*list)) : NULL;
    if (list)
        result =
            context->cl.get_context_info(context->handle, CL_CONTEXT_DEVICES, size, list, NULL);
    if (list && result == CL_SUCCESS) {
        *devices = list;
        *count = size / sizeof(*list);
        return SP_OK;
    }
    free(list);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clGetContextInfo");
    return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_cl_context_create: out of memory");
}

/* A semaphore of a context with several devices is made for one: that of the wait queue. */
static sp_status choose_import_device(sp_cl_context *context, const cl_device_id *devices,
                                      size_t count)
{
    if (count < 2)
        return SP_OK;
    context->import_device = devices[0];
    if (!context->wait_queue)
        return SP_OK;
    cl_int result =
        context->cl.get_queue_info(context->wait_queue, CL_QUEUE_DEVICE,
                                   sizeof(context->import_device), &context->import_device, NULL);
    return result == CL_SUCCESS ? SP_OK : sp_cl_fail(result, "clGetCommandQueueInfo");
}

static sp_status read_devices(sp_cl_context *context, const cl_device_id *devices, size_t count)
{
    cl_platform_id platform = NULL;
    cl_int result = context->cl.get_device_info(devices[0], CL_DEVICE_PLATFORM, sizeof(platform),
                                                &platform, NULL);
    if (result != CL_SUCCESS)
        return sp_cl_fail(result, "clGetDeviceInfo");
    sp_status status = check_platform(context, platform);
    for (size_t i = 0; status == SP_OK && i < count; i++)
        status = read_device(context, devices[i], i == 0);
    if (status == SP_OK)
        status = choose_import_device(context, devices, count);
    if (status == SP_OK)
        conclude(context, platform);
    return status;
}

sp_status sp_cl_caps_read(sp_cl_context *context)
{
    cl_device_id *devices = NULL;
    size_t count = 0;
    sp_status status = get_devices(context, &devices, &count);
    if (status != SP_OK)
        return status;
    status = count ? read_devices(context, devices, count)
                   : sp_fail(SP_ERROR_BACKEND, "clGetContextInfo: the context has no devices");
    free(devices);
    return status;
}
