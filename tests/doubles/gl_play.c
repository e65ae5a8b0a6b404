/* SPDX-License-Identifier: MIT
 *
 * A double: see gl_play.h.
 */
#include "gl_play.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#define MAX_NAMES 4096
#define MAX_STREAMS 8

GLenum gl_play_last_type;
GLint gl_play_last_semaphore_type;
void *gl_play_last_handle;
GLuint gl_play_last_buffers, gl_play_last_textures, gl_play_last_layout;

/* Kept to the end: those of a lost context are forgotten, not deleted. */
typedef struct fence {
    struct fence *next;
    bool done;
} fence;

static fence *all_fences;

typedef enum operation_kind { WAIT, SIGNAL, FENCE } operation_kind;

typedef struct operation {
    struct operation *next;
    operation_kind kind;
    gl_play_semaphore *semaphore;
    uint64_t value;
    fence *fence;
} operation;

typedef struct stream {
    EGLContext context;
    operation *first;
    operation **last;
} stream;

typedef struct name_entry {
    bool used;
    gl_play_semaphore *payload;
    uint64_t value;
} name_entry;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static stream streams[MAX_STREAMS];
static unsigned stream_count;
static name_entry names[MAX_NAMES];
static gl_play_semaphore *next_import;
static unsigned wrong;
static bool holds;

/* ---- Streams ---- */

static stream *current_stream(void)
{
    EGLContext context = gl_hook_real.eglGetCurrentContext();
    for (unsigned i = 0; i < stream_count; i++) {
        if (streams[i].context == context)
            return &streams[i];
    }
    assert_true(stream_count < MAX_STREAMS);
    stream *made = &streams[stream_count++];
    *made = (stream){.context = context};
    made->last = &made->first;
    return made;
}

static void signal_payload(gl_play_semaphore *semaphore, uint64_t value)
{
    if (semaphore->counting ? value <= semaphore->value : semaphore->signalled)
        wrong++;
    semaphore->signalled = true;
    semaphore->value = value;
}

/* False: it has to wait. */
static bool run_one(const operation *self)
{
    gl_play_semaphore *semaphore = self->semaphore;
    if (self->kind == FENCE) {
        self->fence->done = true;
        return true;
    }
    if (self->kind == SIGNAL) {
        signal_payload(semaphore, self->value);
        return true;
    }
    if (semaphore->counting)
        return semaphore->value >= self->value;
    bool signalled = semaphore->signalled;
    semaphore->signalled = false;
    return signalled;
}

static bool run_stream(stream *self)
{
    bool any = false;
    while (self->first && run_one(self->first)) {
        operation *done = self->first;
        self->first = done->next;
        if (!self->first)
            self->last = &self->first;
        free(done);
        any = true;
    }
    return any;
}

static void run_all_locked(void)
{
    bool any = !holds;
    while (any) {
        any = false;
        for (unsigned i = 0; i < stream_count; i++)
            any = run_stream(&streams[i]) || any;
    }
    pthread_cond_broadcast(&changed);
}

static void insert_locked(operation what)
{
    stream *into = current_stream();
    operation *made = malloc(sizeof(*made));
    assert_non_null(made);
    *made = what;
    made->next = NULL;
    *into->last = made;
    into->last = &made->next;
    run_all_locked();
}

/* ---- The other side ---- */

void gl_play_next_import(gl_play_semaphore *semaphore)
{
    next_import = semaphore;
}

int gl_play_fd(void)
{
    int fd = open("/dev/ptmx", O_RDWR | O_NOCTTY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

void gl_play_signal(gl_play_semaphore *semaphore, uint64_t value)
{
    pthread_mutex_lock(&mutex);
    signal_payload(semaphore, value);
    run_all_locked();
    pthread_mutex_unlock(&mutex);
}

bool gl_play_take(gl_play_semaphore *semaphore)
{
    pthread_mutex_lock(&mutex);
    bool signalled = semaphore->signalled;
    semaphore->signalled = false;
    run_all_locked();
    pthread_mutex_unlock(&mutex);
    return signalled;
}

uint64_t gl_play_value(gl_play_semaphore *semaphore)
{
    pthread_mutex_lock(&mutex);
    uint64_t value = semaphore->value;
    pthread_mutex_unlock(&mutex);
    return value;
}

void gl_play_hold(bool hold)
{
    pthread_mutex_lock(&mutex);
    holds = hold;
    run_all_locked();
    pthread_mutex_unlock(&mutex);
}

unsigned gl_play_wrong(void)
{
    return wrong;
}

/* ---- Semaphores ---- */

static name_entry *entry_of(GLuint name)
{
    static name_entry none;
    if (name > 0 && name < MAX_NAMES && names[name].used)
        return &names[name];
    wrong++;
    gl_hook_set_gl_error(GL_INVALID_OPERATION);
    return &none;
}

static void APIENTRY gen(GLsizei count, GLuint *out)
{
    pthread_mutex_lock(&mutex);
    GLuint at = 1;
    for (GLsizei i = 0; i < count; i++) {
        while (at < MAX_NAMES && names[at].used)
            at++;
        assert_true(at < MAX_NAMES);
        names[at] = (name_entry){.used = true};
        out[i] = at;
    }
    gl_play_last_semaphore_type = GL_SEMAPHORE_TYPE_BINARY_NV;
    pthread_mutex_unlock(&mutex);
}

static void APIENTRY delete_names(GLsizei count, const GLuint *list)
{
    pthread_mutex_lock(&mutex);
    for (GLsizei i = 0; i < count; i++)
        entry_of(list[i])->used = false;
    pthread_mutex_unlock(&mutex);
}

static void APIENTRY set_value(GLuint name, GLenum what, const GLuint64 *values)
{
    pthread_mutex_lock(&mutex);
    if (what != GL_TIMELINE_SEMAPHORE_VALUE_NV)
        wrong++;
    entry_of(name)->value = *values;
    pthread_mutex_unlock(&mutex);
}

static void APIENTRY set_type(GLuint name, GLenum what, const GLint *type)
{
    (void)name;
    if (what == GL_SEMAPHORE_TYPE_NV)
        gl_play_last_semaphore_type = *type;
}

static void import_payload(GLuint name, GLenum type, void *handle)
{
    pthread_mutex_lock(&mutex);
    entry_of(name)->payload = next_import;
    gl_play_last_type = type;
    gl_play_last_handle = handle;
    pthread_mutex_unlock(&mutex);
}

static void APIENTRY import_fd(GLuint name, GLenum type, GLint fd)
{
    import_payload(name, type, NULL);
    CHECK(close(fd) == 0);
}

static void APIENTRY import_handle(GLuint name, GLenum type, void *handle)
{
    import_payload(name, type, handle);
}

static void insert_for(operation_kind kind, GLuint name)
{
    const name_entry *entry = entry_of(name);
    if (entry->payload)
        insert_locked(
            (operation){.kind = kind, .semaphore = entry->payload, .value = entry->value});
}

static void note_barriers(GLuint buffer_count, GLuint texture_count, const GLenum *layouts)
{
    gl_play_last_buffers = buffer_count;
    gl_play_last_textures = texture_count;
    gl_play_last_layout = texture_count ? layouts[0] : 0;
}

static void APIENTRY wait_for(GLuint name, GLuint buffer_count, const GLuint *buffers,
                              GLuint texture_count, const GLuint *textures, const GLenum *layouts)
{
    (void)buffers;
    (void)textures;
    pthread_mutex_lock(&mutex);
    note_barriers(buffer_count, texture_count, layouts);
    insert_for(WAIT, name);
    pthread_mutex_unlock(&mutex);
}

static void APIENTRY signal_it(GLuint name, GLuint buffer_count, const GLuint *buffers,
                               GLuint texture_count, const GLuint *textures, const GLenum *layouts)
{
    (void)buffers;
    (void)textures;
    pthread_mutex_lock(&mutex);
    note_barriers(buffer_count, texture_count, layouts);
    insert_for(SIGNAL, name);
    pthread_mutex_unlock(&mutex);
}

/* ---- Fences ---- */

static fence *insert_fence(void)
{
    fence *made = calloc(1, sizeof(*made));
    assert_non_null(made);
    pthread_mutex_lock(&mutex);
    made->next = all_fences;
    all_fences = made;
    insert_locked((operation){.kind = FENCE, .fence = made});
    pthread_mutex_unlock(&mutex);
    return made;
}

static bool wait_for_fence(const fence *self, uint64_t timeout_ns)
{
    uint64_t end = sp_deadline_ns(timeout_ns);
    end = end < INT64_MAX ? end : INT64_MAX;
    const struct timespec until = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    pthread_mutex_lock(&mutex);
    int result = 0;
    while (!self->done && timeout_ns && result == 0)
        result = pthread_cond_timedwait(&changed, &mutex, &until);
    bool done = self->done;
    pthread_mutex_unlock(&mutex);
    return done;
}

static EGLSyncKHR EGLAPIENTRY create_sync(EGLDisplay display, EGLenum type,
                                          const EGLint *attributes)
{
    (void)display;
    (void)attributes;
    assert_true(type == EGL_SYNC_FENCE);
    return insert_fence();
}

static EGLBoolean EGLAPIENTRY destroy_sync(EGLDisplay display, EGLSync sync)
{
    (void)display;
    (void)sync;
    return EGL_TRUE;
}

static EGLint EGLAPIENTRY client_wait(EGLDisplay display, EGLSync sync, EGLint flags,
                                      EGLTime timeout)
{
    (void)display;
    (void)flags;
    return wait_for_fence(sync, timeout) ? EGL_CONDITION_SATISFIED : EGL_TIMEOUT_EXPIRED;
}

static GLsync APIENTRY fence_sync(GLenum condition, GLbitfield flags)
{
    (void)condition;
    (void)flags;
    return (GLsync)(void *)insert_fence();
}

static void APIENTRY delete_sync(GLsync sync)
{
    (void)sync;
}

static GLenum APIENTRY client_wait_gl(GLsync sync, GLbitfield flags, GLuint64 timeout)
{
    (void)flags;
    return wait_for_fence((const fence *)(void *)sync, timeout) ? GL_CONDITION_SATISFIED
                                                                : GL_TIMEOUT_EXPIRED;
}

/* ---- Installing ---- */

void gl_play_install(void)
{
    static const char *const extensions[] = {"GL_EXT_semaphore", "GL_EXT_semaphore_fd",
                                             "GL_EXT_semaphore_win32", "GL_NV_timeline_semaphore"};
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
    gl_hook_add_gl_extensions(extensions, COUNT_OF(extensions));
    GL_HOOK_REPLACE(PFNGLGENSEMAPHORESEXTPROC, glGenSemaphoresEXT, gen);
    GL_HOOK_REPLACE(PFNGLCREATESEMAPHORESNVPROC, glCreateSemaphoresNV, gen);
    GL_HOOK_REPLACE(PFNGLDELETESEMAPHORESEXTPROC, glDeleteSemaphoresEXT, delete_names);
    GL_HOOK_REPLACE(PFNGLSEMAPHOREPARAMETERUI64VEXTPROC, glSemaphoreParameterui64vEXT, set_value);
    GL_HOOK_REPLACE(PFNGLSEMAPHOREPARAMETERIVNVPROC, glSemaphoreParameterivNV, set_type);
    GL_HOOK_REPLACE(PFNGLIMPORTSEMAPHOREFDEXTPROC, glImportSemaphoreFdEXT, import_fd);
    GL_HOOK_REPLACE(PFNGLIMPORTSEMAPHOREWIN32HANDLEEXTPROC, glImportSemaphoreWin32HandleEXT,
                    import_handle);
    GL_HOOK_REPLACE(PFNGLWAITSEMAPHOREEXTPROC, glWaitSemaphoreEXT, wait_for);
    GL_HOOK_REPLACE(PFNGLSIGNALSEMAPHOREEXTPROC, glSignalSemaphoreEXT, signal_it);
    GL_HOOK_REPLACE(PFNEGLCREATESYNCKHRPROC, eglCreateSyncKHR, create_sync);
    GL_HOOK_REPLACE(PFNEGLDESTROYSYNCPROC, eglDestroySync, destroy_sync);
    GL_HOOK_REPLACE(PFNEGLCLIENTWAITSYNCPROC, eglClientWaitSync, client_wait);
    GL_HOOK_REPLACE(PFNGLFENCESYNCPROC, glFenceSync, fence_sync);
    GL_HOOK_REPLACE(PFNGLDELETESYNCPROC, glDeleteSync, delete_sync);
    GL_HOOK_REPLACE(PFNGLCLIENTWAITSYNCPROC, glClientWaitSync, client_wait_gl);
}
