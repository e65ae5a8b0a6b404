/* SPDX-License-Identifier: MIT
 *
 * The entry points of one GL context, and what the context says that it can do. Each context object
 * has its own table, so that two loaders, two contexts and a test's double can live side by side.
 *
 * A pointer proves nothing: loaders hand out stubs for what the context cannot do. So a function is
 * looked up only if a version or an extension string says that it is there.
 */
#ifndef SP_OPENGL_GL_DRIVER_H
#define SP_OPENGL_GL_DRIVER_H

#define EGL_NO_X11
#include <GL/gl.h>

#include <GL/glext.h>

#include <EGL/egl.h>

#include <EGL/eglext.h>

#include <syncpoint/opengl.h>

#ifndef GL_CONTEXT_LOST
#define GL_CONTEXT_LOST 0x0507
#endif

/* In no header as types of their own. */
typedef void *(APIENTRY *sp_gl_get_current)(void);
typedef GLenum(APIENTRY *sp_gl_get_error)(void);
typedef const GLubyte *(APIENTRY *sp_gl_get_string)(GLenum name);
typedef void(APIENTRY *sp_gl_get_integerv)(GLenum name, GLint *value);
typedef void(APIENTRY *sp_gl_flush)(void);

/* Members are NULL where the capability that they belong to is missing. */
typedef struct sp_gl_driver {
    sp_gl_loader loader;
    sp_gl_get_current get_current;

    sp_gl_get_error get_error;
    sp_gl_get_string get_string;
    sp_gl_get_integerv get_integerv;
    sp_gl_flush flush;
    PFNGLGETSTRINGIPROC get_string_i; /* from version 3.0 on */

    /* gl_sync */
    PFNGLFENCESYNCPROC fence_sync;
    PFNGLISSYNCPROC is_sync;
    PFNGLDELETESYNCPROC delete_sync;
    PFNGLCLIENTWAITSYNCPROC client_wait_sync;
    PFNGLWAITSYNCPROC wait_sync;

    /* semaphore */
    PFNGLGENSEMAPHORESEXTPROC gen_semaphores;
    PFNGLDELETESEMAPHORESEXTPROC delete_semaphores;
    PFNGLSEMAPHOREPARAMETERUI64VEXTPROC semaphore_parameter_ui64v;
    PFNGLWAITSEMAPHOREEXTPROC wait_semaphore;
    PFNGLSIGNALSEMAPHOREEXTPROC signal_semaphore;
    PFNGLIMPORTSEMAPHOREFDEXTPROC import_semaphore_fd;             /* semaphore_fd      */
    PFNGLIMPORTSEMAPHOREWIN32HANDLEEXTPROC import_semaphore_win32; /* semaphore_win32   */
    PFNGLCREATESEMAPHORESNVPROC create_semaphores;                 /* timeline_semaphore */
    PFNGLSEMAPHOREPARAMETERIVNVPROC semaphore_parameter_iv;        /* timeline_semaphore */
    PFNGLGETUNSIGNEDBYTEVEXTPROC get_unsigned_bytev;               /* has_uuid          */
    PFNGLGETUNSIGNEDBYTEI_VEXTPROC get_unsigned_bytei_v;           /* has_uuid          */

    /* The EGL loaders. */
    PFNEGLGETCURRENTDISPLAYPROC egl_get_current_display;
    PFNEGLQUERYSTRINGPROC egl_query_string;
    PFNEGLGETERRORPROC egl_get_error;

    /* egl_sync. One of the first two: EGL 1.5 and the extension differ in the attributes. */
    PFNEGLCREATESYNCPROC egl_create_sync;
    PFNEGLCREATESYNCKHRPROC egl_create_sync_khr;
    PFNEGLDESTROYSYNCPROC egl_destroy_sync;
    PFNEGLCLIENTWAITSYNCPROC egl_client_wait_sync;
    PFNEGLWAITSYNCPROC egl_wait_sync;                          /* egl_wait_sync     */
    PFNEGLDUPNATIVEFENCEFDANDROIDPROC egl_dup_native_fence_fd; /* native_fence      */

    bool closes_failed_fd; /* closes the fd of a failed import, against the rules               */
    bool is_swiftshader;   /* its semaphores are memory files                                   */
} sp_gl_driver;

/* Fills the table and the capabilities from the context that is current. `native` and `display`
 * are that context's. WRONG_CONTEXT: none is; NOT_SUPPORTED names what is missing. */
sp_status sp_gl_driver_load(sp_gl_driver *driver, const sp_gl_context_desc *desc, sp_gl_caps *caps,
                            void **native, void **display);

/* ---- Between gl_driver.c and gl_caps.c ---- */

/* What the strings say. */
typedef struct sp_gl_strings {
    bool es;
    int version; /* 10 * major + minor */
    bool arb_sync;
    bool apple_sync;
    bool memory_object;
    bool semaphore;
    bool semaphore_fd;
    bool semaphore_win32;
    bool timeline_semaphore;
    int egl_version;
    bool egl_fence_sync;
    bool egl_wait_sync;
    bool egl_native_fence;
} sp_gl_strings;

void sp_gl_strings_read_gl(const sp_gl_driver *driver, sp_gl_strings *strings);
void sp_gl_strings_read_egl(const sp_gl_driver *driver, void *display, sp_gl_strings *strings);
void sp_gl_caps_read_uuid(const sp_gl_driver *driver, sp_gl_caps *caps);
const char *sp_gl_why_no_semaphore(const sp_gl_caps *caps);

#endif
