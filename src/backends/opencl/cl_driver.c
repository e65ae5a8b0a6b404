/* SPDX-License-Identifier: MIT */
#include "backends/opencl/cl_driver.h"

#include "core/core.h"

#include <string.h>

#if defined(_WIN32)
#define SYSTEM_LOADER "OpenCL.dll"
#else
#define SYSTEM_LOADER "libOpenCL.so.1"
#endif

typedef struct row {
    const char *name;
    size_t offset; /* of the member in sp_cl_driver */
} row;

#define ROW(member, function) {#function, offsetof(sp_cl_driver, member)},
static const row core_rows[] = {SP_CL_CORE_FUNCTIONS(ROW)};
static const row semaphore_rows[] = {SP_CL_SEMAPHORE_FUNCTIONS(ROW)};

/* Functions and objects have pointers of one size wherever libraries are opened at run time. */
static void put(sp_cl_driver *driver, const row *to, void *function)
{
    memcpy((char *)driver + to->offset, &function, sizeof(function));
}

static void *find(const sp_cl_driver *driver, const sp_cl_context_desc *desc, const char *name)
{
    if (desc->get_function)
        return desc->get_function(desc->user, name);
    return sp_os_library_symbol(driver->library, name);
}

static sp_status open_library(sp_cl_driver *driver, const sp_cl_context_desc *desc)
{
    const char *name = desc->library ? desc->library : SYSTEM_LOADER;
    if (desc->get_function)
        return SP_OK;
    driver->library = sp_os_library_open(name);
    if (driver->library)
        return SP_OK;
    return sp_fail(SP_ERROR_NOT_SUPPORTED,
                   "sp_cl_context_create: the library %s is not there, or does not load; is "
                   "an OpenCL loader installed?",
                   name);
}

sp_status sp_cl_driver_load(sp_cl_driver *driver, const sp_cl_context_desc *desc)
{
    memset(driver, 0, sizeof(*driver));
    sp_status status = open_library(driver, desc);
    for (size_t i = 0; status == SP_OK && i < SP_ARRAY_LENGTH(core_rows); i++) {
        void *function = find(driver, desc, core_rows[i].name);
        put(driver, &core_rows[i], function);
        if (!function)
            status = sp_fail(SP_ERROR_NOT_SUPPORTED,
                             "sp_cl_context_create: %s is missing; OpenCL 1.2 is needed",
                             core_rows[i].name);
    }
    if (status != SP_OK)
        sp_cl_driver_unload(driver);
    return status;
}

const char *sp_cl_driver_load_semaphores(sp_cl_driver *driver, cl_platform_id platform)
{
    for (size_t i = 0; i < SP_ARRAY_LENGTH(semaphore_rows); i++) {
        void *function = driver->get_extension_function(platform, semaphore_rows[i].name);
        if (!function)
            return semaphore_rows[i].name;
        put(driver, &semaphore_rows[i], function);
    }
    return NULL;
}

void sp_cl_driver_unload(sp_cl_driver *driver)
{
    if (driver->library)
        sp_os_library_close(driver->library);
    driver->library = NULL;
}
