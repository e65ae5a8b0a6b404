/* SPDX-License-Identifier: MIT
 *
 * sp_vk_queue_wait(): finds what a point waits for, claims what a wait uses up, then submits. An
 * error leaves nothing changed.
 */
#include "vk_internal.h"

#include <inttypes.h>

typedef struct wait_list {
    sp_vk_queue *queue;
    sp_vk_wait *waits;
    size_t count;
    size_t capacity;
    sp_vk_wait few[SP_VK_FEW_WAITS];
} wait_list;

/* ---- The list ---- */

static sp_vk_wait *find(wait_list *list, const sp_vk_semaphore *semaphore,
                        const sp_vk_signal *signal)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->waits[i].semaphore == semaphore && list->waits[i].signal == signal)
            return &list->waits[i];
    }
    return NULL;
}

static bool grow(wait_list *list)
{
    sp_vk_wait *waits =
        sp_array_grow(list->waits, list->few, &list->capacity, sizeof(*list->waits));
    if (waits)
        list->waits = waits;
    return waits != NULL;
}

static sp_status append(wait_list *list, sp_vk_wait wait)
{
    if (list->count == list->capacity && !grow(list)) {
        return sp_fail(SP_ERROR_OUT_OF_MEMORY, "sp_vk_queue_wait: out of memory for %zu waits",
                       list->count + 1);
    }
    list->waits[list->count++] = wait;
    return SP_OK;
}

static void unclaim(const wait_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->waits[i].signal)
            sp_oneshot_unclaim(&list->waits[i].signal->oneshot);
    }
}

static void list_fini(wait_list *list)
{
    sp_array_free(list->waits, list->few);
}

/* ---- Leaves ---- */

static sp_status check_device(const wait_list *list, const sp_vk_semaphore *semaphore)
{
    if (semaphore->device == list->queue->device)
        return SP_OK;
    return sp_fail(SP_ERROR_DEVICE_MISMATCH,
                   "sp_vk_queue_wait: the point is of another sp_vk_device; export its semaphore "
                   "and import it to this one");
}

static sp_status add_timeline(wait_list *list, sp_vk_semaphore *timeline, uint64_t value)
{
    uint64_t last = sp_load64(&timeline->minted);
    if (timeline == list->queue->lane->progress && value > last) {
        return sp_fail(
            SP_ERROR_INVALID_STATE,
            "sp_vk_queue_wait: value %" PRIu64 " of the queue's own timeline is signalled"
            " by a later submit to this queue, which would wait for itself (last: %" PRIu64 ")",
            value, last);
    }
    sp_status status = sp_waiter_probe(&timeline->base, value);
    if (status != SP_PENDING)
        return status;
    status = sp_vk_timeline_check_distance(timeline, value);
    if (status != SP_OK)
        return status;
    sp_vk_wait *same = find(list, timeline, NULL);
    if (!same)
        return append(list, (sp_vk_wait){.semaphore = timeline, .value = value});
    same->value = value > same->value ? value : same->value;
    return SP_OK;
}

static sp_status add_signal(wait_list *list, sp_vk_signal *signal)
{
    if (find(list, signal->semaphore, signal))
        return SP_OK;
    sp_status status = sp_waiter_probe(&signal->oneshot.base, 1);
    if (status != SP_PENDING)
        return status;
    status = sp_vk_signal_check_depends(signal);
    if (status == SP_OK)
        status = sp_oneshot_claim(&signal->oneshot);
    if (status != SP_OK)
        return status;
    status = append(list, (sp_vk_wait){.semaphore = signal->semaphore, .signal = signal});
    if (status != SP_OK)
        sp_oneshot_unclaim(&signal->oneshot);
    return status;
}

static sp_status add_leaf(void *user, const sp_point *leaf)
{
    wait_list *list = user;
    sp_waiter *waiter = leaf->waiter;
    if (waiter->ops == &sp_vk_timeline_ops.base) {
        sp_vk_semaphore *timeline = sp_vk_timeline_of(waiter);
        sp_status status = check_device(list, timeline);
        return status == SP_OK ? add_timeline(list, timeline, leaf->value) : status;
    }
    if (waiter->ops == &sp_vk_signal_ops) {
        sp_vk_signal *signal = sp_vk_signal_of(waiter);
        sp_status status = check_device(list, signal->semaphore);
        return status == SP_OK ? add_signal(list, signal) : status;
    }
    return sp_waiter_require_reached(waiter, sp_point_target(leaf), "sp_vk_queue_wait",
                                     "a Vulkan queue");
}

/* ---- Submitting ---- */

/* All in one submit: so an error leaves every signal as it was. */
static sp_status submit_list(const wait_list *list)
{
    if (list->count == 0)
        return SP_OK;
    sp_vk_batch batch = {.queue = list->queue, .waits = list->waits, .wait_count = list->count};
    return sp_vk_batch_submit(&batch);
}

static sp_status wait_for_leaves(wait_list *list, const sp_point *point)
{
    sp_status status = sp_point_visit_leaves(point, add_leaf, list);
    if (status == SP_OK)
        status = submit_list(list);
    if (status != SP_OK)
        unclaim(list);
    return status;
}

sp_status sp_vk_queue_wait(sp_vk_queue *queue, const sp_point *point)
{
    sp_waiter *waiter;
    SP_CHECK_ARGUMENT(queue && point, "queue and point are required");
    sp_status status = sp_vk_check_usable(queue->device);
    if (status == SP_OK)
        status = sp_point_check(point, &waiter);
    if (status != SP_OK || !waiter)
        return status;
    sp_vk_drain(queue->device);
    wait_list list = {.queue = queue, .capacity = SP_VK_FEW_WAITS};
    list.waits = list.few;
    status = wait_for_leaves(&list, point);
    list_fini(&list);
    return status;
}
