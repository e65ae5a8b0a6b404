/* SPDX-License-Identifier: MIT */
#include "backends/cuda/cuda_driver.h"

#include "core/core.h"

#define FIRST_VERSION 10010 /* cuThreadExchangeStreamCaptureMode() */

#ifdef _WIN32
#define DEFAULT_LIBRARY "nvcuda.dll"
#else
#define DEFAULT_LIBRARY "libcuda.so.1"
#endif

/* The first required function that is not there, or NULL. */
static const char *load_functions(sp_cuda_driver *driver)
{
    const char *missing = NULL;
#define LOAD_OPTIONAL(member, type, symbol)                                                        \
    driver->member = (type *)sp_os_library_symbol(driver->library, symbol);
#define LOAD(member, type, symbol)                                                                 \
    LOAD_OPTIONAL(member, type, symbol)                                                            \
    if (!driver->member && !missing)                                                               \
        missing = symbol;
    SP_CUDA_REQUIRED(LOAD)
    SP_CUDA_OPTIONAL(LOAD_OPTIONAL)
#undef LOAD
#undef LOAD_OPTIONAL
    return missing;
}

static sp_status check_driver(sp_cuda_driver *driver, const char *missing, const char *library)
{
    int version = 0;
    if (driver->driver_get_version && driver->driver_get_version(&version) == CUDA_SUCCESS)
        driver->version = version;
    if (version > 0 && version < FIRST_VERSION) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_cuda_context_create: the driver is of CUDA %d.%d; 10.1 is needed",
                       version / 1000, version % 1000 / 10);
    }
    if (missing) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_cuda_context_create: %s has no function %s; CUDA 10.1 is needed",
                       library, missing);
    }
    if (version == 0) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_cuda_context_create: %s does not tell its version", library);
    }
    return SP_OK;
}

sp_status sp_cuda_driver_load(sp_cuda_driver *driver, const char *library)
{
    const char *name = library ? library : DEFAULT_LIBRARY;
    *driver = (sp_cuda_driver){.library = sp_os_library_open(name)};
    if (!driver->library) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "sp_cuda_context_create: the library %s is not there, or does not load; is "
                       "an NVIDIA driver installed?",
                       name);
    }
    sp_status status = check_driver(driver, load_functions(driver), name);
    if (status != SP_OK)
        sp_cuda_driver_unload(driver);
    return status;
}

void sp_cuda_driver_unload(sp_cuda_driver *driver)
{
    sp_os_library_close(driver->library);
    driver->library = NULL;
}
