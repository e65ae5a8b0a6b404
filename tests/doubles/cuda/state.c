/* SPDX-License-Identifier: MIT
 *
 * The double's state: counters, failures on command, devices and contexts.
 */
#include "private.h"

#include <stdlib.h>
#include <string.h>

#define MAX_NAMES 128
#define MAX_DEPTH 32
#define DEVICES 2

context *contexts;
bool double_exited;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static bool initialized;
#ifdef WITHOUT_IDS
static int version = 11040;
#else
static int version = 13000;
#endif
static int attributes[256];
static bool attributes_set;
static unsigned misuses;
static unsigned long long last_id = 100;
static context *primaries[DEVICES];

static struct {
    const char *name;
    unsigned calls;
} counters[MAX_NAMES];
static unsigned counter_count;
static unsigned all_calls;

static struct {
    const char *name;
    unsigned skip, count;
    int result;
} failure;
static unsigned failures;

static struct {
    const char *name;
    void (*run)(void *user);
    void *user;
} hook;
static __thread const char *calling;

static __thread context *stack[MAX_DEPTH];
static __thread unsigned depth;

void double_lock(void)
{
    pthread_mutex_lock(&lock);
}
void double_unlock(void)
{
    pthread_mutex_unlock(&lock);
}

/* Lets the child of a fork ask for counts, whatever the streams' threads do meanwhile. */
__attribute__((constructor)) static void survive_forks(void)
{
    pthread_atfork(double_lock, double_unlock, double_unlock);
}

unsigned long long double_new_id(void)
{
    return ++last_id;
}

void double_note_misuse(void)
{
    misuses++;
}

/* ---- Every call ---- */

static void count(const char *name)
{
    all_calls++;
    for (unsigned i = 0; i < counter_count; i++) {
        if (strcmp(counters[i].name, name) == 0) {
            counters[i].calls++;
            return;
        }
    }
    if (counter_count == MAX_NAMES)
        abort();
    counters[counter_count].name = name;
    counters[counter_count++].calls = 1;
}

static bool shall_fail(const char *name)
{
    if (failure.count == 0 || (failure.name && strcmp(failure.name, name) != 0))
        return false;
    if (failure.skip > 0) {
        failure.skip--;
        return false;
    }
    failure.count--;
    failures++;
    return true;
}

int double_begin(const char *name)
{
    double_lock();
    count(name);
    calling = name;
    if (double_exited)
        return R_DEINITIALIZED;
    if (shall_fail(name))
        return failure.result;
    bool any_time = strcmp(name, "cuInit") == 0 || strcmp(name, "cuDriverGetVersion") == 0 ||
                    strcmp(name, "cuGetErrorName") == 0;
    return initialized || any_time ? 0 : R_NOT_INITIALIZED;
}

CUresult double_end(int result)
{
    void (*run)(void *) = NULL;
    void *user = hook.user;
    if (hook.name && strcmp(hook.name, calling) == 0) {
        run = hook.run;
        hook.name = NULL;
    }
    double_wake();
    double_unlock();
    if (run)
        run(user);
    return (CUresult)result;
}

/* ---- Devices ---- */

static int init(void)
{
    initialized = true;
    return 0;
}

static int get_version(int *out)
{
    *out = version;
    return 0;
}

static int error_name(CUresult error, const char **out)
{
    switch ((int)error) {
    case R_INVALID_VALUE:
        *out = "CUDA_ERROR_INVALID_VALUE";
        return 0;
    case R_DEINITIALIZED:
        *out = "CUDA_ERROR_DEINITIALIZED";
        return 0;
    case 700:
        *out = "CUDA_ERROR_ILLEGAL_ADDRESS";
        return 0;
    default:
        *out = NULL;
        return R_INVALID_VALUE;
    }
}

static int device_get(CUdevice *out, int ordinal)
{
    if (ordinal < 0 || ordinal >= DEVICES)
        return 101;
    *out = ordinal;
    return 0;
}

static int device_uuid(CUuuid *out, CUdevice device)
{
    memset(out->bytes, 0x40 + device, sizeof(out->bytes));
    return 0;
}

static int attribute_at(int which)
{
    if (!attributes_set) {
        attributes[41] = attributes[114] = attributes[125] = 1;
        attributes_set = true;
    }
    return attributes[which];
}

static int device_attribute(int *out, CUdevice_attribute which)
{
    if ((int)which < 0 || (int)which >= 256)
        return R_INVALID_VALUE;
    *out = attribute_at((int)which);
    return 0;
}

static int device_count(int *out)
{
    *out = DEVICES;
    return 0;
}

API(cuInit, (unsigned int flags), flags ? R_INVALID_VALUE : init())
API(cuDriverGetVersion, (int *out), get_version(out))
API(cuGetErrorName, (CUresult error, const char **out), error_name(error, out))
API(cuDeviceGet, (CUdevice * out, int ordinal), device_get(out, ordinal))
API(cuDeviceGetCount, (int *out), device_count(out))
API(cuDeviceGetUuid, (CUuuid * out, CUdevice device), device_uuid(out, device))
API(cuDeviceGetAttribute, (int *out, CUdevice_attribute which, CUdevice device),
    device < DEVICES ? device_attribute(out, which) : 101)

/* ---- Contexts ---- */

/* The address of one that was destroyed is used again, as an allocator would. */
static context *new_context(CUdevice device)
{
    context *made = contexts;
    while (made && made->alive)
        made = made->next;
    if (!made) {
        made = calloc(1, sizeof(*made));
        made->next = contexts;
        contexts = made;
    }
    made->alive = true;
    made->id = double_new_id();
    made->device = device;
    made->sticky = 0;
    made->legacy = double_new_stream(made, 0);
    made->per_thread = double_new_stream(made, 0);
    return made;
}

static int push(context *pushed)
{
    if (!pushed || !pushed->alive) {
        double_note_misuse();
        return R_INVALID_CONTEXT;
    }
    if (depth == MAX_DEPTH)
        return R_INVALID_VALUE;
    stack[depth++] = pushed;
    return 0;
}

static int pop(CUcontext *out)
{
    if (depth == 0)
        return R_INVALID_CONTEXT;
    depth--;
    if (out)
        *out = stack[depth];
    return 0;
}

context *double_current(void)
{
    return depth > 0 ? stack[depth - 1] : NULL;
}

int double_check_current(void)
{
    const context *current = double_current();
    if (!current)
        return R_INVALID_CONTEXT;
    if (!current->alive)
        return R_CONTEXT_IS_DESTROYED;
    return current->sticky;
}

static int create(CUcontext *out, CUdevice device)
{
    *out = new_context(device);
    return push(*out);
}

static void end_context(context *ended)
{
    double_drop_all(ended);
    for (event *at = events; at; at = at->next)
        at->alive = at->alive && at->owner != ended;
    for (semaphore *at = semaphores; at; at = at->next)
        at->alive = at->alive && at->owner != ended;
    ended->alive = false;
}

static int destroy(context *destroyed)
{
    if (!destroyed || !destroyed->alive)
        return R_INVALID_CONTEXT;
    end_context(destroyed);
    if (double_current() == destroyed)
        depth--;
    return 0;
}

static int get_id(const context *asked, unsigned long long *out)
{
    asked = asked ? asked : double_current();
    if (!asked)
        return R_INVALID_CONTEXT;
    if (!asked->alive)
        return R_CONTEXT_IS_DESTROYED;
    *out = asked->id;
    return 0;
}

static int set_current(context *set)
{
    if (depth > 0)
        depth--;
    return set ? push(set) : 0;
}

static int get_current(CUcontext *out)
{
    *out = double_current();
    return *out && !(*out)->alive ? R_CONTEXT_IS_DESTROYED : 0;
}

static int get_device(CUdevice *out)
{
    int result = double_check_current();
    if (result == 0)
        *out = double_current()->device;
    return result;
}

static int api_version(const context *asked, unsigned int *out)
{
    asked = asked ? asked : double_current();
    if (!asked || !asked->alive)
        return R_INVALID_CONTEXT;
    *out = 3020;
    return 0;
}

static int retain(CUcontext *out, CUdevice device)
{
    if (device < 0 || device >= DEVICES)
        return 101;
    if (!primaries[device] || !primaries[device]->alive)
        primaries[device] = new_context(device);
    primaries[device]->primary++;
    *out = primaries[device];
    return 0;
}

static int release(CUdevice device)
{
    context *primary = primaries[device];
    if (!primary || !primary->alive || primary->primary == 0)
        return R_INVALID_CONTEXT;
    if (--primary->primary == 0)
        end_context(primary);
    return 0;
}

API(cuCtxCreate_v2, (CUcontext * out, unsigned int flags, CUdevice device),
    flags ? R_INVALID_VALUE : create(out, device))
API(cuCtxDestroy_v2, (CUcontext destroyed), destroy(destroyed))
API(cuCtxPushCurrent_v2, (CUcontext pushed), push(pushed))
API(cuCtxPopCurrent_v2, (CUcontext * out), pop(out))
API(cuCtxSetCurrent, (CUcontext set), set_current(set))
API(cuCtxGetCurrent, (CUcontext * out), get_current(out))
#ifdef WITHOUT_IDS
API(cuCtxGetIdNotExported, (CUcontext asked, unsigned long long *out), get_id(asked, out))
#else
API(cuCtxGetId, (CUcontext asked, unsigned long long *out), get_id(asked, out))
#endif
API(cuCtxGetDevice, (CUdevice * out), get_device(out))
API(cuCtxGetApiVersion, (CUcontext asked, unsigned int *out), api_version(asked, out))
API(cuDevicePrimaryCtxRetain, (CUcontext * out, CUdevice device), retain(out, device))
API(cuDevicePrimaryCtxRelease_v2, (CUdevice device), release(device))

/* ---- Control ---- */

static unsigned calls(const char *name)
{
    unsigned found = 0;
    double_lock();
    for (unsigned i = 0; name && i < counter_count; i++) {
        if (strcmp(counters[i].name, name) == 0)
            found = counters[i].calls;
    }
    found = name ? found : all_calls;
    double_unlock();
    return found;
}

static void fail_calls(const char *name, unsigned skip, unsigned number, int result)
{
    double_lock();
    failure.name = name;
    failure.skip = skip;
    failure.count = number;
    failure.result = result;
    failures = 0;
    double_unlock();
}

static unsigned failed(void)
{
    double_lock();
    unsigned number = failures;
    double_unlock();
    return number;
}

static void heal(void)
{
    fail_calls(NULL, 0, 0, 0);
}

static void call_after(const char *name, void (*run)(void *), void *user)
{
    double_lock();
    hook.name = name;
    hook.run = run;
    hook.user = user;
    double_unlock();
}

static void set_version(int set)
{
    version = set;
}

static void set_attribute(int which, int value)
{
    double_lock();
    attribute_at(which);
    attributes[which] = value;
    double_unlock();
}

static void break_context(CUcontext broken, int result)
{
    double_lock();
    broken->sticky = result;
    double_unlock();
}

static void end(bool ended)
{
    double_lock();
    double_exited = ended;
    double_unlock();
}

static unsigned live(cuda_double_kind kind)
{
    unsigned number = 0;
    double_lock();
    for (const event *at = events; kind == CUDA_DOUBLE_EVENT && at; at = at->next)
        number += at->alive;
    for (const semaphore *at = semaphores; kind == CUDA_DOUBLE_SEMAPHORE && at; at = at->next)
        number += at->alive;
    for (const stream *at = streams; kind == CUDA_DOUBLE_STREAM && at; at = at->next)
        number += at->alive && at != at->owner->legacy && at != at->owner->per_thread;
    double_unlock();
    return number;
}

static unsigned misuse(void)
{
    double_lock();
    unsigned number = misuses;
    double_unlock();
    return number;
}

static unsigned context_depth(void)
{
    return depth;
}

EXPORT extern const cuda_double cuda_double_table __asm__(CUDA_DOUBLE_SYMBOL);
const cuda_double cuda_double_table = {
    .calls = calls,
    .inject = fail_calls,
    .failed = failed,
    .heal = heal,
    .call_after = call_after,
    .close_on_failed_import = double_close_on_failed_import,
    .set_version = set_version,
    .set_attribute = set_attribute,
    .break_context = break_context,
    .end = end,
    .live = live,
    .misuse = misuse,
    .context_depth = context_depth,
    .capture_mode = double_capture_mode,
    .pending = double_pending,
    .delay = double_delay,
    .move_stream = double_move_stream,
    .make_fd = double_make_fd,
    .make_handle = double_make_handle,
    .handle_of_fd = double_handle_of_fd,
    .signal_handle = double_signal_handle,
    .value_of_handle = double_value_of_handle,
};
