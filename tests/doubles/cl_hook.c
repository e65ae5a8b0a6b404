/* SPDX-License-Identifier: MIT
 *
 * A double: see cl_hook.h.
 */
#include "cl_hook.h"

#include "cl_double.h"
#include "support/test.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define DOUBLED_EXTENSIONS                                                                         \
    " cl_khr_semaphore cl_khr_external_semaphore cl_khr_external_semaphore_opaque_fd"              \
    " cl_khr_device_uuid"

cl_hook_functions cl_hook_real;

static bool doubled;

/* ---- Counting and failing ---- */

typedef struct injection {
    bool armed;
    unsigned skip;
    unsigned times;
    cl_int result;
} injection;

#define MAX_QUEUES 16
#define MAX_EVENTS 8192

typedef struct queue_count {
    cl_command_queue queue;
    unsigned unflushed;
} queue_count;

/* An event of a command that the library has enqueued. */
typedef struct held_event {
    cl_event event;
    unsigned refs; /* of the library's */
} held_event;

typedef struct inside_call {
    void (*fn)(void *user, cl_event event);
    void *user;
} inside_call;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static held_event held[MAX_EVENTS];
static unsigned held_count, early_releases;
static inside_call inside[CL_HOOK_COUNT];
static injection injections[CL_HOOK_COUNT], step;
static unsigned calls[CL_HOOK_COUNT];
static int live_events, live_others;
static queue_count queues[MAX_QUEUES];
static const char *hidden, *device_version, *platform_version;
static bool closes_on_failure, two_devices, no_import_types;

static bool hit_locked(injection *in, cl_int *result)
{
    if (!in->armed)
        return false;
    if (in->skip) {
        in->skip--;
        return false;
    }
    *result = in->result;
    in->armed = --in->times > 0;
    return true;
}

static bool is_release(cl_hook_id id)
{
    return id == CL_HOOK_ReleaseContext || id == CL_HOOK_ReleaseCommandQueue ||
           id == CL_HOOK_ReleaseEvent || id == CL_HOOK_ReleaseSemaphoreKHR;
}

/* Counts a call. True: it is to fail with *result. */
static bool fails(cl_hook_id id, cl_int *result)
{
    __atomic_fetch_add(&calls[id], 1, __ATOMIC_SEQ_CST);
    pthread_mutex_lock(&lock);
    bool hit = hit_locked(&injections[id], result);
    if (!hit && !is_release(id))
        hit = hit_locked(&step, result);
    pthread_mutex_unlock(&lock);
    return hit;
}

static void count_live(int *live, int change)
{
    __atomic_fetch_add(live, change, __ATOMIC_SEQ_CST);
}

static void count_enqueued(cl_command_queue queue, bool flushed)
{
    pthread_mutex_lock(&lock);
    queue_count *at = queues;
    while (at < queues + MAX_QUEUES - 1 && at->queue && at->queue != queue)
        at++;
    at->queue = queue;
    at->unflushed = flushed ? 0 : at->unflushed + 1;
    pthread_mutex_unlock(&lock);
}

/* ---- References to events ---- */

/* The library's references change by so many. Returns how many there are now, if the event is that
 * of a command of its own, else -1. */
static int count_held(cl_event event, int change, bool made)
{
    int refs = -1;
    pthread_mutex_lock(&lock);
    unsigned at = 0;
    while (at < held_count && held[at].event != event)
        at++;
    if (made)
        assert_true(held_count < MAX_EVENTS);
    if (made)
        held[held_count++] = (held_event){.event = event, .refs = 1};
    else if (at < held_count)
        refs = (int)(held[at].refs += (unsigned)change);
    if (refs == 0)
        held[at] = held[--held_count];
    pthread_mutex_unlock(&lock);
    return refs;
}

/* Before the driver's release. */
static void note_release(cl_event event)
{
    cl_int status = CL_COMPLETE;
    if (count_held(event, -1, false) != 0)
        return;
    cl_hook_real.GetEventInfo(event, CL_EVENT_COMMAND_EXECUTION_STATUS, sizeof(status), &status,
                              NULL);
    __atomic_fetch_add(&early_releases, status > CL_COMPLETE, __ATOMIC_SEQ_CST);
}

unsigned cl_hook_early_releases(void)
{
    return __atomic_exchange_n(&early_releases, 0, __ATOMIC_SEQ_CST);
}

/* ---- Inside a call ---- */

void cl_hook_inside(cl_hook_id id, void (*fn)(void *user, cl_event event), void *user)
{
    pthread_mutex_lock(&lock);
    inside[id] = (inside_call){.fn = fn, .user = user};
    pthread_mutex_unlock(&lock);
}

static void run_inside(cl_hook_id id, cl_event event)
{
    pthread_mutex_lock(&lock);
    inside_call call = inside[id];
    inside[id] = (inside_call){.fn = NULL};
    pthread_mutex_unlock(&lock);
    if (call.fn)
        call.fn(call.user, event);
}

unsigned cl_hook_calls(cl_hook_id id)
{
    return __atomic_load_n(&calls[id], __ATOMIC_SEQ_CST);
}

unsigned cl_hook_all_calls(void)
{
    unsigned sum = 0;
    for (int id = 0; id < CL_HOOK_COUNT; id++)
        sum += cl_hook_calls((cl_hook_id)id);
    return sum;
}

int cl_hook_live_events(void)
{
    return __atomic_load_n(&live_events, __ATOMIC_SEQ_CST);
}

int cl_hook_live_objects(void)
{
    return cl_hook_live_events() + __atomic_load_n(&live_others, __ATOMIC_SEQ_CST);
}

unsigned cl_hook_unflushed(cl_command_queue queue)
{
    unsigned count = 0;
    pthread_mutex_lock(&lock);
    for (unsigned i = 0; i < MAX_QUEUES; i++)
        count += queues[i].queue == queue ? queues[i].unflushed : 0;
    pthread_mutex_unlock(&lock);
    return count;
}

static void arm(injection *in, cl_int result, unsigned skip, unsigned times)
{
    pthread_mutex_lock(&lock);
    *in = (injection){.armed = true, .skip = skip, .times = times, .result = result};
    pthread_mutex_unlock(&lock);
}

void cl_hook_fail(cl_hook_id id, cl_int result, unsigned skip, unsigned times)
{
    arm(&injections[id], result, skip, times);
}

void cl_hook_fail_step(cl_int result, unsigned skip)
{
    arm(&step, result, skip, 1);
}

bool cl_hook_heal(void)
{
    pthread_mutex_lock(&lock);
    bool left = step.armed;
    step.armed = false;
    for (int id = 0; id < CL_HOOK_COUNT; id++) {
        left = left || injections[id].armed;
        injections[id].armed = false;
    }
    pthread_mutex_unlock(&lock);
    return left;
}

void cl_hook_close_on_failure(bool close)
{
    closes_on_failure = close;
}

void cl_hook_hide(const char *name)
{
    hidden = name;
}

void cl_hook_set_versions(const char *device, const char *platform)
{
    device_version = device;
    platform_version = platform;
}

void cl_hook_show_two_devices(bool two)
{
    two_devices = two;
}

void cl_hook_no_import_types(bool none)
{
    no_import_types = none;
}

/* ---- Answers to queries ---- */

static cl_int answer(const void *value, size_t length, size_t size, void *to, size_t *size_ret)
{
    if (size_ret)
        *size_ret = length;
    if (to && size < length)
        return CL_INVALID_VALUE;
    if (to)
        memcpy(to, value, length);
    return CL_SUCCESS;
}

static cl_int answer_text(const char *text, size_t size, void *to, size_t *size_ret)
{
    return answer(text, strlen(text) + 1, size, to, size_ret);
}

/* Leaves the hidden word out. */
static void drop_hidden(char *text)
{
    size_t length = hidden ? strlen(hidden) : 0;
    for (char *at = text; length && (at = strstr(at, hidden)) != NULL; at += length) {
        if (at[length] == ' ' || at[length] == '\0')
            memset(at, ' ', length);
    }
}

static cl_int answer_extensions(cl_device_id device, size_t size, void *to, size_t *size_ret)
{
    char text[16384] = "";
    cl_int result = cl_hook_real.GetDeviceInfo(device, CL_DEVICE_EXTENSIONS, 8192, text, NULL);
    size_t length = strlen(text);
    if (doubled)
        snprintf(text + length, sizeof(text) - length, "%s", DOUBLED_EXTENSIONS);
    drop_hidden(text);
    return result == CL_SUCCESS ? answer_text(text, size, to, size_ret) : result;
}

static cl_int answer_doubled(cl_device_id device, cl_device_info name, size_t size, void *to,
                             size_t *size_ret)
{
    static const cl_external_semaphore_handle_type_khr types[] = {
        CL_SEMAPHORE_HANDLE_SYNC_FD_KHR, CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR};
    static const cl_uchar uuids[2][16] = {"device's number", "driver's number"};
    switch (name) {
    case CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR:
        return answer(types, sizeof(types), size, to, size_ret);
    case CL_DEVICE_UUID_KHR:
        return answer(uuids[0], sizeof(uuids[0]), size, to, size_ret);
    case CL_DRIVER_UUID_KHR:
        return answer(uuids[1], sizeof(uuids[1]), size, to, size_ret);
    default:
        return cl_hook_real.GetDeviceInfo(device, name, size, to, size_ret);
    }
}

static cl_int CL_API_CALL wrap_GetDeviceInfo(cl_device_id device, cl_device_info name, size_t size,
                                             void *to, size_t *size_ret)
{
    cl_int result;
    if (fails(CL_HOOK_GetDeviceInfo, &result))
        return result;
    if (name == CL_DEVICE_EXTENSIONS)
        return answer_extensions(device, size, to, size_ret);
    if (name == CL_DEVICE_VERSION && device_version)
        return answer_text(device_version, size, to, size_ret);
    if (name == CL_DEVICE_SEMAPHORE_IMPORT_HANDLE_TYPES_KHR && no_import_types)
        return answer(NULL, 0, size, NULL, size_ret);
    if (doubled)
        return answer_doubled(device, name, size, to, size_ret);
    return cl_hook_real.GetDeviceInfo(device, name, size, to, size_ret);
}

static cl_int CL_API_CALL wrap_GetPlatformInfo(cl_platform_id platform, cl_platform_info name,
                                               size_t size, void *to, size_t *size_ret)
{
    cl_int result;
    if (fails(CL_HOOK_GetPlatformInfo, &result))
        return result;
    if (name == CL_PLATFORM_VERSION && platform_version)
        return answer_text(platform_version, size, to, size_ret);
    return cl_hook_real.GetPlatformInfo(platform, name, size, to, size_ret);
}

static cl_int CL_API_CALL wrap_GetContextInfo(cl_context context, cl_context_info name, size_t size,
                                              void *to, size_t *size_ret)
{
    cl_int result;
    if (fails(CL_HOOK_GetContextInfo, &result))
        return result;
    if (name != CL_CONTEXT_DEVICES || !two_devices)
        return cl_hook_real.GetContextInfo(context, name, size, to, size_ret);
    cl_device_id devices[2] = {NULL, NULL};
    result = cl_hook_real.GetContextInfo(context, name, sizeof(devices), devices, NULL);
    devices[1] = devices[0];
    return result == CL_SUCCESS ? answer(devices, sizeof(devices), size, to, size_ret) : result;
}

static cl_int CL_API_CALL wrap_GetCommandQueueInfo(cl_command_queue queue,
                                                   cl_command_queue_info name, size_t size,
                                                   void *to, size_t *size_ret)
{
    cl_int result;
    if (fails(CL_HOOK_GetCommandQueueInfo, &result))
        return result;
    return cl_hook_real.GetCommandQueueInfo(queue, name, size, to, size_ret);
}

static cl_int CL_API_CALL wrap_GetEventInfo(cl_event event, cl_event_info name, size_t size,
                                            void *to, size_t *size_ret)
{
    cl_int result;
    if (fails(CL_HOOK_GetEventInfo, &result))
        return result;
    cl_command_queue queue = NULL;
    if (name == CL_EVENT_COMMAND_QUEUE && (queue = cl_double_queue_of(event)) != NULL)
        return answer(&queue, sizeof(queue), size, to, size_ret);
    return cl_hook_real.GetEventInfo(event, name, size, to, size_ret);
}

static cl_int CL_API_CALL wrap_GetSemaphoreInfoKHR(cl_semaphore_khr semaphore,
                                                   cl_semaphore_info_khr name, size_t size,
                                                   void *to, size_t *size_ret)
{
    cl_int result;
    if (fails(CL_HOOK_GetSemaphoreInfoKHR, &result))
        return result;
    return cl_hook_real.GetSemaphoreInfoKHR(semaphore, name, size, to, size_ret);
}

/* ---- References ---- */

#define COUNTED(name, type, live, change)                                                          \
    static cl_int CL_API_CALL wrap_##name(type object)                                             \
    {                                                                                              \
        cl_int result;                                                                             \
        if (fails(CL_HOOK_##name, &result))                                                        \
            return result;                                                                         \
        result = cl_hook_real.name(object);                                                        \
        if (result == CL_SUCCESS)                                                                  \
            count_live(&(live), (change));                                                         \
        return result;                                                                             \
    }

COUNTED(RetainContext, cl_context, live_others, 1)
COUNTED(ReleaseContext, cl_context, live_others, -1)
COUNTED(RetainCommandQueue, cl_command_queue, live_others, 1)
COUNTED(ReleaseCommandQueue, cl_command_queue, live_others, -1)
COUNTED(RetainSemaphoreKHR, cl_semaphore_khr, live_others, 1)
COUNTED(ReleaseSemaphoreKHR, cl_semaphore_khr, live_others, -1)

static cl_int CL_API_CALL wrap_RetainEvent(cl_event event)
{
    cl_int result;
    if (fails(CL_HOOK_RetainEvent, &result))
        return result;
    result = cl_hook_real.RetainEvent(event);
    if (result != CL_SUCCESS)
        return result;
    count_live(&live_events, 1);
    count_held(event, 1, false);
    return result;
}

static cl_int CL_API_CALL wrap_ReleaseEvent(cl_event event)
{
    cl_int result;
    if (fails(CL_HOOK_ReleaseEvent, &result))
        return result;
    note_release(event);
    result = cl_hook_real.ReleaseEvent(event);
    if (result == CL_SUCCESS)
        count_live(&live_events, -1);
    return result;
}

/* ---- Commands and events ---- */

static cl_int note_enqueued(cl_command_queue queue, cl_int result, const cl_event *event)
{
    if (result != CL_SUCCESS)
        return result;
    count_enqueued(queue, false);
    if (event) {
        count_live(&live_events, 1);
        count_held(*event, 1, true);
    }
    return result;
}

#define ENQUEUE(name)                                                                              \
    static cl_int CL_API_CALL wrap_##name(cl_command_queue queue, cl_uint count,                   \
                                          const cl_event *events, cl_event *event)                 \
    {                                                                                              \
        cl_int result;                                                                             \
        if (fails(CL_HOOK_##name, &result))                                                        \
            return result;                                                                         \
        return note_enqueued(queue, cl_hook_real.name(queue, count, events, event), event);        \
    }

ENQUEUE(EnqueueMarkerWithWaitList)
ENQUEUE(EnqueueBarrierWithWaitList)

#define ENQUEUE_SEMAPHORES(name)                                                                   \
    static cl_int CL_API_CALL wrap_##name(                                                         \
        cl_command_queue queue, cl_uint count, const cl_semaphore_khr *semaphores,                 \
        const cl_semaphore_payload_khr *payloads, cl_uint event_count, const cl_event *events,     \
        cl_event *event)                                                                           \
    {                                                                                              \
        cl_int result;                                                                             \
        if (fails(CL_HOOK_##name, &result))                                                        \
            return result;                                                                         \
        result = note_enqueued(                                                                    \
            queue,                                                                                 \
            cl_hook_real.name(queue, count, semaphores, payloads, event_count, events, event),     \
            event);                                                                                \
        run_inside(CL_HOOK_##name, event ? *event : NULL);                                         \
        return result;                                                                             \
    }

ENQUEUE_SEMAPHORES(EnqueueWaitSemaphoresKHR)
ENQUEUE_SEMAPHORES(EnqueueSignalSemaphoresKHR)

static cl_int CL_API_CALL wrap_Flush(cl_command_queue queue)
{
    cl_int result;
    if (fails(CL_HOOK_Flush, &result))
        return result;
    count_enqueued(queue, true);
    return cl_hook_real.Flush(queue);
}

static cl_event CL_API_CALL wrap_CreateUserEvent(cl_context context, cl_int *result)
{
    if (fails(CL_HOOK_CreateUserEvent, result))
        return NULL;
    cl_event event = cl_hook_real.CreateUserEvent(context, result);
    count_live(&live_events, event != NULL);
    return event;
}

static cl_int CL_API_CALL wrap_SetUserEventStatus(cl_event event, cl_int status)
{
    cl_int result;
    if (fails(CL_HOOK_SetUserEventStatus, &result))
        return result;
    result = cl_hook_real.SetUserEventStatus(event, status);
    run_inside(CL_HOOK_SetUserEventStatus, NULL);
    return result;
}

static int fd_in(const cl_semaphore_properties_khr *properties)
{
    for (; *properties; properties += 2) {
        if (*properties == CL_SEMAPHORE_HANDLE_OPAQUE_FD_KHR)
            return (int)properties[1];
    }
    return -1;
}

static cl_semaphore_khr CL_API_CALL wrap_CreateSemaphoreWithPropertiesKHR(
    cl_context context, const cl_semaphore_properties_khr *properties, cl_int *result)
{
    if (fails(CL_HOOK_CreateSemaphoreWithPropertiesKHR, result)) {
        if (closes_on_failure)
            close(fd_in(properties));
        return NULL;
    }
    cl_semaphore_khr made =
        cl_hook_real.CreateSemaphoreWithPropertiesKHR(context, properties, result);
    count_live(&live_others, made != NULL);
    return made;
}

/* ---- Look-ups ---- */

static void *CL_API_CALL wrap_GetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                                     const char *name);

typedef struct wrapper {
    const char *name;
    void (*function)(void);
    size_t offset;
} wrapper;

#define ROW(name) {"cl" #name, (void (*)(void))wrap_##name, offsetof(cl_hook_functions, name)},
static const wrapper core_wrappers[] = {CL_HOOK_CORE_FUNCTIONS(ROW)};
static const wrapper semaphore_wrappers[] = {CL_HOOK_SEMAPHORE_FUNCTIONS(ROW)};

static void *find(const wrapper *list, size_t count, const char *name)
{
    void *function = NULL;
    if (hidden && strcmp(hidden, name) == 0)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if (strcmp(list[i].name, name) == 0)
            memcpy(&function, &list[i].function, sizeof(function));
    }
    return function;
}

static void *CL_API_CALL wrap_GetExtensionFunctionAddressForPlatform(cl_platform_id platform,
                                                                     const char *name)
{
    void *real = cl_hook_real.GetExtensionFunctionAddressForPlatform(platform, name);
    __atomic_fetch_add(&calls[CL_HOOK_GetExtensionFunctionAddressForPlatform], 1, __ATOMIC_SEQ_CST);
    if (!real && !doubled)
        return NULL;
    for (size_t i = 0; real && !doubled && i < COUNT_OF(semaphore_wrappers); i++) {
        if (strcmp(semaphore_wrappers[i].name, name) == 0)
            memcpy((char *)&cl_hook_real + semaphore_wrappers[i].offset, &real, sizeof(real));
    }
    return find(semaphore_wrappers, COUNT_OF(semaphore_wrappers), name);
}

void *cl_hook_get_function(void *user, const char *name)
{
    (void)user;
    return find(core_wrappers, COUNT_OF(core_wrappers), name);
}

void cl_hook_install(void *library, bool with_double)
{
    doubled = with_double;
    memset(&cl_hook_real, 0, sizeof(cl_hook_real));
    for (size_t i = 0; i < COUNT_OF(core_wrappers); i++) {
        void *function = dlsym(library, core_wrappers[i].name);
        assert_non_null(function);
        memcpy((char *)&cl_hook_real + core_wrappers[i].offset, &function, sizeof(function));
    }
    if (doubled)
        cl_double_install(&cl_hook_real);
    cl_hook_heal();
    memset(calls, 0, sizeof(calls));
    memset(queues, 0, sizeof(queues));
    memset(inside, 0, sizeof(inside));
    held_count = early_releases = 0;
    live_events = live_others = 0;
    hidden = device_version = platform_version = NULL;
    closes_on_failure = two_devices = no_import_types = false;
}
