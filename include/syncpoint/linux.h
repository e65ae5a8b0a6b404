/* SPDX-License-Identifier: MIT
 *
 * Linux: points of file descriptors.
 *
 * What the kernel tells about by poll() is a point like any other: a sync_file of a compositor or a
 * camera, an eventfd, a timerfd, a pidfd, a pipe.
 */
#ifndef SYNCPOINT_LINUX_H
#define SYNCPOINT_LINUX_H

#include <syncpoint/syncpoint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum {
    SP_FD_SYNC_FILE = 1 << 0, /* it is a sync_file, and -1 one that is signalled already         */
    SP_FD_ADOPT = 1 << 1      /* takes the descriptor, on success only, and closes it            */
};

/* A point of kind SP_KIND_FD: reached once the descriptor is readable, for good, whoever reads it
 * later. A sync_file whose fence failed fails the point (FAILED, native_code is its error); so does a
 * descriptor that can never become readable because its other end was closed without a word
 * (ABANDONED): a pipe, a socket at its end, a socket that is not connected.
 * Ownership: duplicates the descriptor, or takes it with SP_FD_ADOPT. *out is a new reference.
 * Returns: SP_OK; INVALID_ARGUMENT (NULL, unknown flags); INVALID_HANDLE: closed, of a file that is
 *   always readable or never (files, folders, /dev/null, O_PATH), or no sync_file though
 *   SP_FD_SYNC_FILE says so; OUT_OF_MEMORY; SYSTEM: no free descriptor.
 * On error: *out is unchanged, the descriptor is still the caller's. Since: 0.1 */
SP_API sp_status sp_fd_point(int fd, uint32_t flags, sp_point *out);

#ifdef __cplusplus
}
#endif

#endif
