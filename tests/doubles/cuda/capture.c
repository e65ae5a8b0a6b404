/* SPDX-License-Identifier: MIT
 *
 * Stream capture: what it refuses, and what invalidates it. After CUDA's documentation of
 * cuThreadExchangeStreamCaptureMode() and cuStreamIsCapturing().
 */
#include "private.h"

enum { GLOBAL, THREAD_LOCAL, RELAXED };

static __thread int thread_mode = GLOBAL;

int double_capture_mode(void)
{
    return thread_mode;
}

static bool forbids(const stream *captured)
{
    bool own = pthread_equal(captured->capture_thread, pthread_self());
    if (captured->capture == 0 || thread_mode == RELAXED || captured->capture_mode == RELAXED)
        return false;
    return own || (thread_mode == GLOBAL && captured->capture_mode == GLOBAL);
}

int double_unsafe(void)
{
    int result = 0;
    for (stream *at = streams; at; at = at->next) {
        if (!forbids(at))
            continue;
        at->capture = 2;
        result = R_CAPTURE_UNSUPPORTED;
    }
    return result;
}

int double_unsafe_stream(stream *asked)
{
    if (asked->capture == 0)
        return 0;
    asked->capture = 2;
    return R_CAPTURE_UNSUPPORTED;
}

static bool is_blocking(const stream *other)
{
    return other != other->owner->legacy && (other->flags & CU_STREAM_NON_BLOCKING) == 0;
}

bool double_implicit_capture(const stream *asked)
{
    if (asked != asked->owner->legacy)
        return false;
    for (const stream *at = streams; at; at = at->next) {
        if (at->alive && at->owner == asked->owner && at->capture && is_blocking(at))
            return true;
    }
    return false;
}

static int is_capturing(CUstream handle, int *status)
{
    const stream *asked = double_stream(handle);
    if (!asked)
        return R_INVALID_HANDLE;
    *status = asked->capture;
    return double_implicit_capture(asked) ? R_CAPTURE_IMPLICIT : asked->owner->sticky;
}

static int begin(CUstream handle, int mode)
{
    stream *captured = double_stream(handle);
    if (!captured || captured == captured->owner->legacy)
        return R_INVALID_HANDLE;
    if (captured->capture)
        return R_INVALID_VALUE;
    captured->capture = 1;
    captured->capture_mode = mode;
    captured->capture_thread = pthread_self();
    return 0;
}

static int end(CUstream handle, void **graph)
{
    stream *captured = double_stream(handle);
    if (!captured || !captured->capture)
        return R_CAPTURE_UNMATCHED;
    int was = captured->capture;
    captured->capture = 0;
    *graph = was == 1 ? captured : NULL;
    return was == 1 ? 0 : R_CAPTURE_INVALIDATED;
}

static int exchange(int *mode)
{
    int before = thread_mode;
    if (*mode < GLOBAL || *mode > RELAXED)
        return R_INVALID_VALUE;
    thread_mode = *mode;
    *mode = before;
    return 0;
}

API(cuThreadExchangeStreamCaptureMode, (int *mode), exchange(mode))
API(cuStreamIsCapturing, (CUstream asked, int *status), is_capturing(asked, status))
API(cuStreamBeginCapture_v2, (CUstream captured, int mode), begin(captured, mode))
API(cuStreamEndCapture, (CUstream captured, void **graph), end(captured, graph))
API(cuGraphDestroy, (void *graph), graph ? 0 : R_INVALID_VALUE)
