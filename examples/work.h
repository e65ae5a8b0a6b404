/* SPDX-License-Identifier: MIT
 *
 * What the examples wait for. With a GPU these points would come from sp_vk_queue_signal(),
 * sp_cuda_stream_signal() and the like: to who waits for them there is no difference.
 */
#ifndef EXAMPLES_WORK_H
#define EXAMPLES_WORK_H

#include <pthread.h>
#include <syncpoint/syncpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { RENDER, UPLOAD, DECODE, WORK_COUNT };

/* Three points, and a thread that ends them 50 ms later: one is reached, one is a slot that is set
 * to a point that is reached, one fails. */
typedef struct work {
    sp_point points[WORK_COUNT];
    const char *names[WORK_COUNT];
    sp_host_timeline *rendering, *decoding;
    sp_slot *uploading;
    pthread_t thread;
} work;

void work_start(work *self);
void work_finish(work *self);

/* Ends the program, with what sp_last_error() says, unless the status is SP_OK. */
void must(sp_status status);

#ifdef __cplusplus
}
#endif

#endif
