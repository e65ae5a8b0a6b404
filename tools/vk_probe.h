/* SPDX-License-Identifier: MIT
 * Finds out, by doing it, what the semaphores of a Vulkan driver can do. A driver may crash or
 * hang at that: run it in a process of its own, and start again after the step that it died in. */
#ifndef SP_TOOLS_VK_PROBE_H
#define SP_TOOLS_VK_PROBE_H

#include "vk_probe_driver.h"

typedef enum vkp_result {
    VKP_PROVEN,   /* done here, with a twin that was not signalled and was not reached          */
    VKP_REPORTED, /* the driver says so; only one half of it, so it cannot be run alone         */
    VKP_NO,       /* not there, and the driver says so, or Vulkan does                          */
    VKP_FAILED    /* the driver says that it can, and it did not work                           */
} vkp_result;

const char *vkp_result_name(vkp_result result);

typedef struct vkp_cell {
    vkp_result result;
    vkp_why why; /* empty if there is nothing to say */
} vkp_cell;

/* Two devices on one physical device: what is shared must work between devices. */
typedef struct vkp_pair {
    vkp_device a, b;
} vkp_pair;

typedef struct vkp_step vkp_step;
struct vkp_step {
    const char *kind;     /* "timeline", "binary"; NULL: the step that opens the device         */
    const char *cells[2]; /* what it finds out; the second may be NULL                          */
    VkSemaphoreType type;
    VkExternalSemaphoreHandleTypeFlagBits handle_type; /* steps that share                      */
    void (*run)(vkp_pair *pair, const vkp_step *step, vkp_cell *cells);
};

/* One device's steps. Steps are counted through: step n is steps[n % count] of device n / count. */
extern const vkp_step vkp_steps[];
extern const size_t vkp_step_count;

/* Runs the steps from `first` on and writes what they find to `fd`, one JSON object a line:
 *   {"loader": "1.3.239"}
 *   {"device": 0, "about": {...}}                what the device is
 *   {"begin": n}                                 before each step
 *   {"finish": n, "cells": [{"result", "why"}]}  after it
 *   {"finish": n, "why": "..."}                  the device does not open: its other steps are left out
 *   {"why": "..."}                               the driver does not open
 *   {"end": true}                                that was all
 * It ends without {"end"} after a step that failed, since what came of it is not known: start
 * again, in a new process, with the next step. */
void vkp_probe(size_t first, int fd);

/* The steps, in vk_probe_semaphore.c. */
void vkp_run_timeline_host(vkp_pair *pair, const vkp_step *step, vkp_cell *cells);
void vkp_run_timeline_queue(vkp_pair *pair, const vkp_step *step, vkp_cell *cells);
void vkp_run_binary(vkp_pair *pair, const vkp_step *step, vkp_cell *cells);
void vkp_run_share(vkp_pair *pair, const vkp_step *step, vkp_cell *cells);

#endif
