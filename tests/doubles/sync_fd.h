/* SPDX-License-Identifier: MIT
 *
 * A double of sync files, which this kernel cannot make without a GPU driver: on top of
 * doubles/hook.h, a driver that exports and imports SYNC_FD for binary semaphores. The fds are
 * eventfds, and this program's ioctl() says that they are sync files.
 *
 * For a device with synchronization2, used by one thread.
 */
#ifndef TESTS_DOUBLES_SYNC_FD_H
#define TESTS_DOUBLES_SYNC_FD_H

#include "support/vk_fixture.h"

/* Replaces functions in the hook, which must be installed. Call before the library's device is
 * made; `desc` is given the extension. */
void sync_fd_install(vk_context *vk, sp_vk_device_desc *desc);
/* Joins what runs, and frees it. Call after the library's device is gone. */
void sync_fd_uninstall(void);

/* A fresh sync file, and its signal. */
int sync_fd_make(void);
void sync_fd_signal(int fd);
bool sync_fd_is_signalled(int fd);

/* From now on an export of what is signalled already gives -1. */
void sync_fd_export_minus_one(bool minus_one);

#endif
