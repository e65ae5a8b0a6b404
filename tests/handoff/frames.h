/* SPDX-License-Identifier: MIT
 *
 * A producer on a device of its own, whose frames go to a Vulkan synchronizer on the host's queue.
 */
#ifndef TESTS_HANDOFF_FRAMES_H
#define TESTS_HANDOFF_FRAMES_H

#include "vulkan/vk_case.h"

#include <syncpoint/handoff.h>

extern vk_context producer;
extern sp_synchronizer *synchronizer;

/* Opens host (`vk`), producer and synchronizer. */
void open_frames(void);
/* Finishes all work first. */
void close_frames(void);

/* A frame whose signal is submitted, behind whatever the producer has submitted before. */
sp_frame make_frame(void);
/* Closes the frame's fd, if it is still the caller's. */
void drop_frame(sp_frame *frame);

sp_status complete(const sp_frame *frame);
sp_point last_gate(void);

#endif
