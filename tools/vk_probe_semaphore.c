/* SPDX-License-Identifier: MIT
 *
 * Each step sets up work that depends on a gate, a timeline that the host opens. With the gate
 * shut a wait must not end (the negative twin); with the gate open it must. */
#include "vk_probe.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* How long a shut gate is watched: longer than any driver takes to notice a signal. */
#define SHUT_NS UINT64_C(30000000)
#define OPEN_NS UINT64_C(5000000000)
#define SLICE_NS 1000000

static void sleep_slice(void)
{
    nanosleep(&(struct timespec){.tv_nsec = SLICE_NS}, NULL);
}

/* A wait on a thread of its own: some drivers block inside vkQueueSubmit until the gate opens. On
 * the heap, because a wait that never ends keeps it. */
typedef struct gated_wait {
    sp_point point;
    vkp_device *device; /* whose queue waits; NULL: the host waits */
    sp_status status;
    vkp_why why;
    atomic_bool done;
} gated_wait;

static sp_status wait_on_queue(vkp_device *device, const sp_point *point)
{
    uint64_t deadline = sp_deadline_ns(OPEN_NS);
    sp_status status;
    while ((status = sp_vk_queue_wait(device->sp_queue, point)) == SP_NOT_SUBMITTED &&
           sp_now_ns() < deadline)
        sleep_slice();
    sp_point passed;
    if (status == SP_OK)
        status = sp_vk_queue_signal(device->sp_queue, &passed);
    if (status != SP_OK)
        return status;
    status = sp_wait_timeout(&passed, OPEN_NS);
    sp_point_unref(&passed);
    return status;
}

static void *run_wait(void *argument)
{
    gated_wait *wait = argument;
    wait->status = wait->device ? wait_on_queue(wait->device, &wait->point)
                                : sp_wait_timeout(&wait->point, OPEN_NS);
    if (wait->status != SP_OK)
        vkp_fail_status(&wait->why, "signalled, and the wait gave", wait->status);
    atomic_store(&wait->done, true);
    return NULL;
}

static bool ends_within(const gated_wait *wait, uint64_t timeout_ns)
{
    uint64_t deadline = sp_deadline_ns(timeout_ns);
    while (!atomic_load(&wait->done)) {
        if (sp_now_ns() >= deadline)
            return false;
        sleep_slice();
    }
    return true;
}

/* The point must be reached after gate's value is 1, and not before. */
static bool check_gated(const sp_point *point, vkp_device *device, sp_vk_semaphore *gate,
                        vkp_why *why)
{
    gated_wait *wait = calloc(1, sizeof *wait);
    pthread_t thread;
    if (!wait)
        return vkp_fail(why, "out of memory");
    wait->point = sp_point_ref(point);
    wait->device = device;
    if (pthread_create(&thread, NULL, run_wait, wait) != 0) {
        sp_point_unref(&wait->point);
        free(wait);
        return vkp_fail(why, "no thread");
    }
    bool early = ends_within(wait, SHUT_NS);
    sp_status opened = sp_vk_semaphore_signal(gate, 1);
    if (!ends_within(wait, 2 * OPEN_NS)) {
        pthread_detach(thread);
        return vkp_fail(why, "the wait does not end");
    }
    pthread_join(thread, NULL);
    bool ok = wait->status == SP_OK;
    if (!ok) {
        *why = wait->why;
    } else if (early) {
        ok = vkp_fail(why, "reached before it was signalled");
    } else if (opened != SP_OK) {
        ok = vkp_fail_status(why, "sp_vk_semaphore_signal", opened);
    }
    sp_point_unref(&wait->point);
    free(wait);
    return ok;
}

static sp_vk_semaphore *make(vkp_device *device, VkSemaphoreType type,
                             VkExternalSemaphoreHandleTypeFlags export_types, vkp_why *why)
{
    const sp_vk_semaphore_desc desc = {
        .size = sizeof desc, .type = type, .export_types = export_types};
    sp_vk_semaphore *semaphore = NULL;
    sp_status status = sp_vk_semaphore_create(device->sp_device, &desc, &semaphore);
    if (status != SP_OK)
        vkp_fail_status(why, "sp_vk_semaphore_create", status);
    return semaphore;
}

/* The device's queue waits for the gate and then signals the semaphore. */
static bool signal_after_gate(vkp_device *device, sp_vk_semaphore *gate, sp_vk_semaphore *semaphore,
                              sp_point *signalled, vkp_why *why)
{
    sp_point open = sp_point_noop();
    sp_status status = sp_vk_timeline_point(gate, 1, &open);
    if (status == SP_OK)
        status = sp_vk_queue_wait(device->sp_queue, &open);
    sp_point_unref(&open);
    if (status != SP_OK)
        return vkp_fail_status(why, "sp_vk_queue_wait", status);
    status = sp_vk_queue_signal_semaphore(device->sp_queue, semaphore, 0, signalled);
    return status == SP_OK || vkp_fail_status(why, "sp_vk_queue_signal_semaphore", status);
}

static void set_both(vkp_cell *cells, bool ok, const vkp_why *why)
{
    for (int i = 0; i < 2; i++) {
        cells[i].result = ok ? VKP_PROVEN : VKP_FAILED;
        if (!ok)
            cells[i].why = *why;
    }
}

/* The host signals, the host waits. */
void vkp_run_timeline_host(vkp_pair *pair, const vkp_step *step, vkp_cell *cells)
{
    vkp_why why = {""};
    sp_point point = sp_point_noop();
    sp_vk_semaphore *semaphore = make(&pair->a, step->type, 0, &why);
    sp_status status = semaphore ? sp_vk_timeline_point(semaphore, 1, &point) : SP_ERROR_BACKEND;
    bool ok = status == SP_OK && check_gated(&point, NULL, semaphore, &why);
    set_both(cells, ok, &why);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(semaphore);
}

/* A gate, then a signal of the kind in question on the same queue, then `waiter` (NULL: the host)
 * waits for that. */
static bool queue_round(vkp_device *device, VkSemaphoreType type, vkp_device *waiter, vkp_why *why)
{
    sp_point point = sp_point_noop();
    sp_vk_semaphore *gate = make(device, VK_SEMAPHORE_TYPE_TIMELINE, 0, why);
    sp_vk_semaphore *semaphore = gate ? make(device, type, 0, why) : NULL;
    bool ok = semaphore && signal_after_gate(device, gate, semaphore, &point, why) &&
              check_gated(&point, waiter, gate, why);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(semaphore);
    sp_vk_semaphore_unref(gate);
    return ok;
}

/* The queue's wait for the gate is the wait that is proven; the host looks at the signal. */
void vkp_run_timeline_queue(vkp_pair *pair, const vkp_step *step, vkp_cell *cells)
{
    vkp_why why = {""};
    bool ok = queue_round(&pair->a, step->type, NULL, &why);
    set_both(cells, ok, &why);
}

void vkp_run_binary(vkp_pair *pair, const vkp_step *step, vkp_cell *cells)
{
    bool host = strcmp(step->cells[0], "host_wait") == 0;
    vkp_why why = {""};
    bool ok = queue_round(&pair->a, step->type, host ? NULL : &pair->a, &why);
    set_both(cells, ok, &why);
    if (!host)
        return;
    if (ok)
        vkp_fail(&cells[0].why, "by a wait on the device's queue: the host cannot wait itself");
    cells[1].result = VKP_NO;
    vkp_fail(&cells[1].why, "Vulkan has no host signal of a binary semaphore");
}

/* Takes the fd, in any case. */
static sp_vk_semaphore *import_fd(vkp_device *device, const vkp_step *step, int fd, vkp_why *why)
{
    const sp_vk_semaphore_import_desc desc = {
        .size = sizeof desc,
        .type = step->type,
        .handle_type = step->handle_type,
        .fd = fd,
        .temporary = step->handle_type == VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT,
    };
    sp_vk_semaphore *semaphore = NULL;
    sp_status status = sp_vk_semaphore_import(device->sp_device, &desc, &semaphore);
    if (fd >= 0)
        close(fd);
    if (status != SP_OK)
        vkp_fail_status(why, "sp_vk_semaphore_import", status);
    return semaphore;
}

/* Device b waits for what device a signals through the payload that they share. */
static bool share_opaque_fd(vkp_pair *pair, const vkp_step *step, sp_vk_semaphore *gate,
                            sp_vk_semaphore *exported, vkp_why *why)
{
    int fd = -1;
    sp_status status = sp_vk_semaphore_export(exported, step->handle_type, &fd);
    if (status != SP_OK)
        return vkp_fail_status(why, "sp_vk_semaphore_export", status);
    sp_vk_semaphore *imported = import_fd(&pair->b, step, fd, why);
    if (!imported)
        return false;
    sp_point signalled = sp_point_noop(), point = sp_point_noop();
    bool ok = signal_after_gate(&pair->a, gate, exported, &signalled, why);
    if (ok) {
        status = step->type == VK_SEMAPHORE_TYPE_TIMELINE
                     ? sp_vk_timeline_point(imported, signalled.value, &point)
                     : sp_vk_binary_point(imported, 0, &point);
        ok = status == SP_OK ? check_gated(&point, &pair->b, gate, why)
                             : vkp_fail_status(why, "a point of the import", status);
    }
    sp_point_unref(&point);
    sp_point_unref(&signalled);
    sp_vk_semaphore_unref(imported);
    return ok;
}

/* A sync_file can only be had once its signal is submitted with all that this depends on, so here
 * no gate can be shut: the twin is the export before the submit, which must be refused. */
static bool share_sync_fd(vkp_pair *pair, const vkp_step *step, sp_vk_semaphore *exported, int *out,
                          vkp_why *why)
{
    int fd = -1;
    sp_point point = sp_point_noop();
    sp_status status = sp_vk_binary_point(exported, SP_POINT_UNSUBMITTED, &point);
    if (status == SP_OK && sp_vk_point_export_sync_fd(&point, &fd) != SP_NOT_SUBMITTED) {
        sp_point_unref(&point);
        return vkp_fail(why, "exported before it was submitted");
    }
    sp_point_unref(&point);
    status = sp_vk_queue_signal_semaphore(pair->a.sp_queue, exported, 0, &point);
    if (status == SP_OK)
        status = sp_vk_point_export_sync_fd(&point, &fd);
    sp_point_unref(&point);
    if (status != SP_OK)
        return vkp_fail_status(why, "exporting a sync_file", status);
    *out = fd;
    sp_vk_semaphore *imported = import_fd(&pair->b, step, fd, why);
    if (!imported)
        return false;
    status = sp_vk_binary_point(imported, 0, &point);
    if (status == SP_OK)
        status = wait_on_queue(&pair->b, &point);
    sp_point_unref(&point);
    sp_vk_semaphore_unref(imported);
    return status == SP_OK || vkp_fail_status(why, "the wait for a sync_file", status);
}

static void share(vkp_pair *pair, const vkp_step *step, vkp_cell *cells)
{
    vkp_why why = {""};
    bool is_sync_fd = step->handle_type == VK_EXTERNAL_SEMAPHORE_HANDLE_TYPE_SYNC_FD_BIT;
    int sync_fd = -1;
    sp_vk_semaphore *gate = make(&pair->a, VK_SEMAPHORE_TYPE_TIMELINE, 0, &why);
    sp_vk_semaphore *exported = gate ? make(&pair->a, step->type, step->handle_type, &why) : NULL;
    bool ok = exported && (is_sync_fd ? share_sync_fd(pair, step, exported, &sync_fd, &why)
                                      : share_opaque_fd(pair, step, gate, exported, &why));
    sp_vk_semaphore_unref(exported);
    sp_vk_semaphore_unref(gate);
    set_both(cells, ok, &why);
    if (ok && is_sync_fd && sync_fd == -1) {
        cells[1].result = VKP_REPORTED;
        vkp_fail(&cells[1].why, "not run: the export was \"already signalled\", without a handle");
    }
}

/* The driver is asked first: one that cannot may crash when it is made to. */
void vkp_run_share(vkp_pair *pair, const vkp_step *step, vkp_cell *cells)
{
    vkp_why why = {""};
    sp_vk_semaphore_caps caps = {.size = sizeof caps};
    sp_status status =
        sp_vk_device_semaphore_caps(pair->a.sp_device, step->type, step->handle_type, &caps);
    if (status != SP_OK) {
        vkp_fail_status(&why, "sp_vk_device_semaphore_caps", status);
        set_both(cells, false, &why);
        return;
    }
    if (caps.can_export && caps.can_import) {
        share(pair, step, cells);
        return;
    }
    const bool can[2] = {caps.can_export, caps.can_import};
    for (int i = 0; i < 2; i++) {
        cells[i].result = can[i] ? VKP_REPORTED : VKP_NO;
        vkp_fail(&cells[i].why, "%s",
                 can[i]         ? "not run: it takes export and import to show either"
                 : caps.why_not ? caps.why_not
                                : "not supported");
    }
}
