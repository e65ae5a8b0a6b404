/* SPDX-License-Identifier: MIT
 *
 * Events. Those between processes are a page of shared memory, which their handle names.
 */
#include "private.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define INTERPROCESS 4u

typedef struct ipc_handle {
    char bytes[64];
} ipc_handle;

typedef struct ipc_name {
    char mark[8];
    int process;
    unsigned number;
} ipc_name;

event *events;

static unsigned last_number;
static shared_event *records; /* all that are not shared: nothing is freed */

static event *find(CUevent handle)
{
    for (event *at = events; at; at = at->next) {
        if (at == handle && at->alive)
            return at;
    }
    double_note_misuse();
    return NULL;
}

/* ---- Shared memory ---- */

static void path_of(char *path, size_t size, int process, unsigned number)
{
    snprintf(path, size, "/dev/shm/syncpoint-double-%d-%u", process, number);
}

static shared_event *map(int process, unsigned number, bool make)
{
    char path[80];
    path_of(path, sizeof(path), process, number);
    int fd = open(path, O_RDWR | O_CLOEXEC | (make ? O_CREAT | O_TRUNC : 0), 0600);
    if (fd < 0)
        return NULL;
    bool sized = !make || ftruncate(fd, sizeof(shared_event)) == 0;
    void *memory = sized
                       ? mmap(NULL, sizeof(shared_event), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                       : MAP_FAILED;
    close(fd);
    return memory == MAP_FAILED ? NULL : memory;
}

static void unlink_shared(const event *ended)
{
    char path[80];
    path_of(path, sizeof(path), getpid(), ended->number);
    if (ended->number)
        unlink(path);
}

/* ---- Life ---- */

static event *new_event(unsigned flags)
{
    event *made = calloc(1, sizeof(*made));
    made->alive = true;
    made->owner = double_current();
    made->flags = flags;
    made->next = events;
    events = made;
    return made;
}

static int create(CUevent *out, unsigned flags)
{
    int result = double_check_current();
    result = result ? result : double_unsafe();
    if (result != 0)
        return result;
    event *made = new_event(flags);
    if (flags & INTERPROCESS) {
        made->number = ++last_number;
        made->at = map(getpid(), made->number, true);
    }
    *out = made;
    return made->number && !made->at ? 2 : 0;
}

static int destroy(CUevent handle)
{
    event *destroyed = find(handle);
    int result = double_unsafe();
    if (result != 0)
        return result;
    if (!destroyed)
        return R_INVALID_HANDLE;
    if (double_current() != destroyed->owner)
        double_note_misuse();
    unlink_shared(destroyed);
    destroyed->alive = false;
    return destroyed->owner->sticky;
}

/* ---- Use ---- */

static int query(CUevent handle)
{
    event *asked = find(handle);
    int result = double_unsafe();
    if (result != 0)
        return result;
    if (!asked)
        return R_INVALID_HANDLE;
    if (asked->owner->sticky)
        return asked->owner->sticky;
    if (asked->captured)
        return R_CAPTURED_EVENT;
    if (!asked->at)
        return 0;
    uint64_t recorded = __atomic_load_n(&asked->at->recorded, __ATOMIC_ACQUIRE);
    return __atomic_load_n(&asked->at->done, __ATOMIC_ACQUIRE) >= recorded ? 0 : R_NOT_READY;
}

/* Each record is one of its own: to record again leaves waits for the one before alone. */
static shared_event *new_record(void)
{
    shared_event *made = calloc(1, sizeof(*made));
    made->next = records;
    records = made;
    return made;
}

static int record(CUevent handle, CUstream on)
{
    event *recorded = find(handle);
    const stream *into = double_stream(on);
    if (!recorded || !into)
        return R_INVALID_HANDLE;
    if (into->owner != recorded->owner)
        return R_INVALID_HANDLE;
    shared_event *at = recorded->number ? recorded->at : new_record();
    operation op = {.kind = OP_RECORD, .event = recorded, .at = at, .value = at->recorded + 1};
    int result = double_enqueue(on, op);
    if (result != 0 || into->capture)
        return result;
    recorded->captured = false;
    recorded->at = at;
    __atomic_store_n(&at->recorded, op.value, __ATOMIC_RELEASE);
    return 0;
}

static int wait(CUstream on, CUevent handle)
{
    event *awaited = find(handle);
    if (!awaited)
        return R_INVALID_HANDLE;
    if (!awaited->at)
        return 0;
    uint64_t recorded = __atomic_load_n(&awaited->at->recorded, __ATOMIC_ACQUIRE);
    return double_enqueue(on,
                          (operation){.kind = OP_WAIT_EVENT, .at = awaited->at, .value = recorded});
}

API(cuEventCreate, (CUevent * out, unsigned int flags), create(out, flags))
API(cuEventDestroy_v2, (CUevent destroyed), destroy(destroyed))
API(cuEventQuery, (CUevent asked), query(asked))
#ifdef INCOMPLETE
int (*const not_exported)(CUevent, CUstream) = record;
#else
API(cuEventRecord, (CUevent recorded, CUstream on), record(recorded, on))
#endif
API(cuStreamWaitEvent, (CUstream on, CUevent awaited, unsigned int flags),
    flags ? R_INVALID_VALUE : wait(on, awaited))

/* ---- Between processes ---- */

static int get_ipc(ipc_handle *out, CUevent handle)
{
    const event *shared = find(handle);
    ipc_name name = {.mark = "dblevnt", .process = getpid()};
    int result = double_unsafe();
    if (result != 0)
        return result;
    if (!shared || !shared->number)
        return R_INVALID_HANDLE;
    name.number = shared->number;
    memset(out, 0, sizeof(*out));
    memcpy(out->bytes, &name, sizeof(name));
    return 0;
}

static int open_ipc(CUevent *out, const ipc_handle *handle)
{
    ipc_name name;
    memcpy(&name, handle->bytes, sizeof(name));
    int result = double_check_current();
    result = result ? result : double_unsafe();
    if (result != 0)
        return result;
    if (memcmp(name.mark, "dblevnt", 8) != 0)
        return R_INVALID_VALUE;
    if (name.process == getpid())
        return R_INVALID_CONTEXT;
    shared_event *memory = map(name.process, name.number, false);
    if (!memory)
        return 205; /* MAP_FAILED */
    *out = new_event(0);
    (*out)->at = memory;
    return 0;
}

API(cuIpcGetEventHandle, (ipc_handle * out, CUevent shared), get_ipc(out, shared))
API(cuIpcOpenEventHandle, (CUevent * out, ipc_handle handle), open_ipc(out, &handle))
