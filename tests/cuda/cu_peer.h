/* SPDX-License-Identifier: MIT
 *
 * The other API's side of an external semaphore: on the double its own, on the driver a Vulkan
 * semaphore of the same GPU.
 */
#ifndef TESTS_CUDA_CU_PEER_H
#define TESTS_CUDA_CU_PEER_H

#include "cu_case.h"

typedef struct cu_peer {
    bool timeline;
    int fd;       /* the double's */
    void *handle; /* and its name for the semaphore */
} cu_peer;

void peer_init(cu_peer *peer, bool timeline);
void peer_fini(cu_peer *peer);
int peer_export(cu_peer *peer);    /* an fd of the caller's */
void peer_exported(cu_peer *peer); /* for the last time: keeps no fd open */
/* Timeline: by the host. Binary: submitted now. */
void peer_signal(cu_peer *peer, uint64_t value);
/* Of a timeline. */
uint64_t peer_value(cu_peer *peer);
/* A point of the peer's own API, to be an origin; of the double's a custom one. */
sp_point peer_origin(cu_peer *peer);

/* Imports it. */
sp_cuda_semaphore *peer_import(cu_peer *peer, const sp_point *origin);

/* peer_signal() on a thread, DELAY_MS from now. */
typedef struct late_peer {
    worker worker;
    cu_peer *peer;
    uint64_t value;
    flag sent;
} late_peer;
void peer_signal_late(late_peer *late, cu_peer *peer, uint64_t value);
void peer_join_not_early(late_peer *late);

sp_point timeline_point(sp_cuda_semaphore *timeline, uint64_t value);
sp_point binary_point(sp_cuda_semaphore *binary, uint32_t flags);
sp_point stream_signals(CUstream stream, sp_cuda_semaphore *semaphore, uint64_t value);

#endif
