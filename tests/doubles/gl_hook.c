/* SPDX-License-Identifier: MIT
 *
 * A double: see gl_hook.h. Counting, injecting, look-ups.
 */
#include "gl_hook_private.h"

#include <pthread.h>
#include <string.h>

gl_hook_functions gl_hook_real;

typedef struct rule {
    gl_hook_error error;
    unsigned skip;
    unsigned times;
} rule;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static PFNEGLGETPROCADDRESSPROC real_get;
static unsigned calls[GL_HOOK_COUNT];
static unsigned all_calls;
static unsigned steps;
static rule rules[GL_HOOK_COUNT];
static rule any_step;
static bool context_lost;
static char hidden[128];
static gl_hook_function replacements[GL_HOOK_COUNT];
static GLenum gl_errors[4]; /* the oldest first, each once, as GL keeps them */
static _Thread_local EGLint next_egl_error;
static int live_syncs, live_semaphores;

/* ---- Injecting ---- */

static bool applies(rule *self)
{
    if (!self->times)
        return false;
    if (self->skip) {
        self->skip--;
        return false;
    }
    self->times--;
    return true;
}

void gl_hook_count(gl_hook_id id)
{
    __atomic_fetch_add(&calls[id], 1, __ATOMIC_SEQ_CST);
    __atomic_fetch_add(&all_calls, 1, __ATOMIC_SEQ_CST);
}

gl_hook_error gl_hook_step(gl_hook_id id)
{
    gl_hook_error error = 0;
    gl_hook_count(id);
    pthread_mutex_lock(&mutex);
    steps++;
    bool by_step = applies(&any_step), by_rule = applies(&rules[id]);
    if (by_step)
        error = any_step.error;
    else if (by_rule)
        error = rules[id].error;
    pthread_mutex_unlock(&mutex);
    return error;
}

bool gl_hook_egl_step(gl_hook_id id)
{
    static const EGLint codes[] = {EGL_SUCCESS, EGL_BAD_ALLOC, EGL_BAD_PARAMETER, EGL_CONTEXT_LOST};
    gl_hook_error error = gl_hook_step(id);
    if (error)
        next_egl_error = codes[error];
    return error != 0;
}

bool gl_hook_gl_step(gl_hook_id id)
{
    static const GLenum codes[] = {GL_NO_ERROR, GL_OUT_OF_MEMORY, GL_INVALID_OPERATION, 0x0507};
    gl_hook_error error = gl_hook_step(id);
    if (error)
        gl_hook_set_gl_error(codes[error]);
    return error != 0;
}

void gl_hook_set_gl_error(GLenum error)
{
    unsigned at = 0;
    pthread_mutex_lock(&mutex);
    while (at + 1 < COUNT_OF(gl_errors) && gl_errors[at] && gl_errors[at] != error)
        at++;
    gl_errors[at] = error;
    pthread_mutex_unlock(&mutex);
}

void gl_hook_set_egl_error(EGLint error)
{
    next_egl_error = error;
}

GLenum gl_hook_take_gl_error(void)
{
    pthread_mutex_lock(&mutex);
    GLenum oldest = gl_errors[0];
    memmove(gl_errors, gl_errors + 1, sizeof(gl_errors) - sizeof(gl_errors[0]));
    gl_errors[COUNT_OF(gl_errors) - 1] = GL_NO_ERROR;
    pthread_mutex_unlock(&mutex);
    return oldest;
}

EGLint gl_hook_take_egl_error(void)
{
    EGLint error = next_egl_error;
    next_egl_error = 0;
    return error;
}

void gl_hook_fail(gl_hook_id id, gl_hook_error error, unsigned skip, unsigned times)
{
    pthread_mutex_lock(&mutex);
    rules[id] = (rule){error, skip, times};
    pthread_mutex_unlock(&mutex);
}

void gl_hook_fail_step(gl_hook_error error, unsigned skip)
{
    pthread_mutex_lock(&mutex);
    any_step = (rule){error, skip, 1};
    pthread_mutex_unlock(&mutex);
}

void gl_hook_lose_context(bool lost)
{
    __atomic_store_n(&context_lost, lost, __ATOMIC_SEQ_CST);
}

bool gl_hook_is_lost(void)
{
    return __atomic_load_n(&context_lost, __ATOMIC_SEQ_CST);
}

void gl_hook_heal(void)
{
    pthread_mutex_lock(&mutex);
    memset(rules, 0, sizeof(rules));
    any_step = (rule){0};
    memset(gl_errors, 0, sizeof(gl_errors));
    pthread_mutex_unlock(&mutex);
    gl_hook_lose_context(false);
}

/* ---- Counts ---- */

unsigned gl_hook_calls(gl_hook_id id)
{
    return __atomic_load_n(&calls[id], __ATOMIC_SEQ_CST);
}

unsigned gl_hook_all_calls(void)
{
    return __atomic_load_n(&all_calls, __ATOMIC_SEQ_CST);
}

unsigned gl_hook_steps(void)
{
    return __atomic_load_n(&steps, __ATOMIC_SEQ_CST);
}

void gl_hook_count_syncs(int change)
{
    __atomic_fetch_add(&live_syncs, change, __ATOMIC_SEQ_CST);
}

void gl_hook_count_semaphores(int change)
{
    __atomic_fetch_add(&live_semaphores, change, __ATOMIC_SEQ_CST);
}

unsigned gl_hook_live_syncs(void)
{
    return (unsigned)__atomic_load_n(&live_syncs, __ATOMIC_SEQ_CST);
}

unsigned gl_hook_live_semaphores(void)
{
    return (unsigned)__atomic_load_n(&live_semaphores, __ATOMIC_SEQ_CST);
}

/* ---- Look-ups ---- */

void gl_hook_hide(const char *name)
{
    memset(hidden, 0, sizeof(hidden));
    if (name)
        strncpy(hidden, name, sizeof(hidden) - 1);
}

void gl_hook_replace(gl_hook_id id, gl_hook_function replacement)
{
    __atomic_store_n(&replacements[id], replacement, __ATOMIC_SEQ_CST);
}

gl_hook_function gl_hook_replacement(gl_hook_id id)
{
    return __atomic_load_n(&replacements[id], __ATOMIC_SEQ_CST);
}

typedef struct entry {
    const char *name;
    const char *alias;
    gl_hook_function *real;
} entry;

static const entry entries[] = {
#define GL_HOOK_ENTRY(type, name, alias)                                                           \
    {#name, alias, (gl_hook_function *)(void *)&gl_hook_real.name},
    GL_HOOK_FUNCTIONS(GL_HOOK_ENTRY)
#undef GL_HOOK_ENTRY
};

/* Functions of other loaders, and APPLE's, are played by EGL's and the core's: a driver may have a
 * stub by that name. */
static gl_hook_function from_driver(const entry *known, const char *name)
{
    bool egl = strncmp(name, "egl", 3) == 0;
    gl_hook_function driver = (gl_hook_function)real_get(egl ? name : known->name);
    return driver ? driver : (gl_hook_function)real_get(known->name);
}

static gl_hook_function EGLAPIENTRY hook_get(const char *name)
{
    if (hidden[0] && strcmp(hidden, name) == 0)
        return NULL;
    for (gl_hook_id id = 0; id < GL_HOOK_COUNT; id++) {
        const entry *known = &entries[id];
        if (strcmp(name, known->name) != 0 && (!known->alias || strcmp(name, known->alias) != 0))
            continue;
        *known->real = from_driver(known, name);
        return *known->real || gl_hook_replacement(id) ? gl_hook_call(id) : NULL;
    }
    return (gl_hook_function)real_get(name);
}

PFNEGLGETPROCADDRESSPROC gl_hook_install(PFNEGLGETPROCADDRESSPROC real)
{
    real_get = real;
    memset(calls, 0, sizeof(calls));
    all_calls = 0;
    steps = 0;
    live_syncs = 0;
    live_semaphores = 0;
    memset(replacements, 0, sizeof(replacements));
    gl_hook_hide(NULL);
    gl_hook_heal();
    gl_hook_strings_reset();
    gl_hook_calls_reset();
    return hook_get;
}
