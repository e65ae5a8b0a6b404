/* SPDX-License-Identifier: MIT
 *
 * One signal of a binary semaphore as a waiter.
 *
 * A binary cannot be asked where it is. So a signal is known to be reached only through the wait
 * that used it up: that wait's submit also signals its queue's progress, the signal's *gate*. A
 * host wait makes such a submit itself if nobody has.
 */
#include "vk_internal.h"

/* ---- State ---- */

static uint32_t state_of(const sp_vk_signal *signal)
{
    return sp_load32(&signal->oneshot.state);
}

void sp_vk_signal_setup(sp_vk_signal *signal, sp_vk_semaphore *semaphore, uint32_t state)
{
    sp_oneshot_setup(&signal->oneshot, &sp_vk_signal_ops, state);
    signal->semaphore = sp_vk_semaphore_ref(semaphore);
    signal->ours = false;
    signal->home = NULL;
    signal->depends = 0;
    signal->submit = 0;
    signal->gate = NULL;
    sp_store64(&signal->gate_value, 0);
}

sp_point sp_vk_signal_point(sp_vk_signal *signal, uint32_t flags)
{
    sp_vk_semaphore *binary = signal->semaphore;
    return (sp_point){
        .kind = SP_KIND_VULKAN,
        .flags = SP_POINT_BINARY | flags,
        .raw.vulkan = {.semaphore = sp_vk_word_of_handle(binary->handle),
                       .device = binary->device->handle},
        .waiter = &signal->oneshot.base,
    };
}

sp_status sp_vk_signal_check_depends(sp_vk_signal *signal)
{
    if (signal->depends == 0)
        return SP_OK;
    sp_status status = sp_waiter_probe(&signal->home->base, signal->depends);
    return status == SP_PENDING ? SP_NOT_SUBMITTED : status;
}

static sp_status fail_consumed(void)
{
    return sp_fail(SP_ERROR_INVALID_STATE,
                   "this signal was exported as a sync_file, which used it up: wait on that");
}

static sp_status signal_probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    (void)value;
    sp_vk_signal *signal = sp_vk_signal_of(waiter);
    *reached = 0;
    switch (state_of(signal)) {
    case SP_ONESHOT_UNSUBMITTED:
        return SP_NOT_SUBMITTED;
    case SP_ONESHOT_CONSUMED:
        return fail_consumed();
    default:
        break;
    }
    uint64_t gate_value = sp_load64(&signal->gate_value);
    if (gate_value == 0)
        return SP_OK;
    sp_status status = sp_waiter_probe(&signal->gate->base, gate_value);
    *reached = status == SP_OK;
    return status == SP_PENDING ? SP_OK : status;
}

/* ---- Waiting on the host ---- */

/* Claims the signal and submits the wait that uses it up. SP_OK also if another thread did. */
static sp_status start_wait(sp_vk_signal *signal, sp_vk_queue *queue)
{
    sp_status status = sp_oneshot_claim_or_join(&signal->oneshot);
    if (status != SP_OK)
        return status == SP_PENDING ? SP_OK : status;
    const sp_vk_wait wait = {.semaphore = signal->semaphore, .signal = signal};
    sp_vk_batch batch = {.queue = queue, .waits = &wait, .wait_count = 1};
    status = sp_vk_batch_submit(&batch);
    if (status != SP_OK)
        sp_oneshot_unclaim(&signal->oneshot);
    return status;
}

/* What must be reached at the signal's home before its wait may be submitted; 0: nothing. Before all
 * that the signal depends on is submitted, a driver may hang in the submit. One blocks there until
 * the signal has run, with the user's lock held: then we rather block here. */
static uint64_t submit_after(const sp_vk_signal *signal)
{
    bool blocks = signal->semaphore->device->vk.binary_waits_block;
    return blocks && signal->ours ? signal->submit : signal->depends;
}

static sp_status consume_on_host(sp_vk_signal *signal, uint64_t deadline_ns)
{
    sp_vk_device *device = signal->semaphore->device;
    sp_status status = sp_vk_check_usable(device);
    uint64_t after = submit_after(signal);
    if (status == SP_OK && after)
        status = sp_vk_timeline_block(signal->home, after, deadline_ns);
    if (status != SP_OK)
        return status;
    sp_vk_queue *queue = sp_vk_queue_pin(device, signal->home);
    if (!queue) {
        return sp_fail(SP_ERROR_NOT_SUPPORTED,
                       "a host wait on a binary semaphore is submitted to a queue, and the device "
                       "has none: sp_vk_queue_create() first");
    }
    status = start_wait(signal, queue);
    sp_vk_queue_unpin(queue);
    return status;
}

static sp_status signal_block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    (void)value;
    sp_vk_signal *signal = sp_vk_signal_of(waiter);
    uint32_t state = state_of(signal);
    if (state == SP_ONESHOT_UNSUBMITTED)
        return sp_oneshot_wait_for_mark(&signal->oneshot, deadline_ns);
    if (state == SP_ONESHOT_CONSUMED)
        return fail_consumed();
    if (state == SP_ONESHOT_SUBMITTED) {
        sp_status status = consume_on_host(signal, deadline_ns);
        if (status != SP_OK)
            return status;
    }
    uint64_t gate_value = sp_load64(&signal->gate_value);
    if (gate_value == 0) /* another thread is submitting the wait */
        return SP_TIMEOUT;
    return sp_vk_timeline_block(signal->gate, gate_value, deadline_ns);
}

/* ---- The end of a signal ---- */

static void detach(sp_vk_signal *signal)
{
    sp_vk_semaphore *binary = signal->semaphore;
    sp_os_mutex_lock(&binary->lock);
    if (binary->current == signal)
        binary->current = NULL;
    sp_os_mutex_unlock(&binary->lock);
}

static void signal_release(sp_waiter *waiter)
{
    sp_vk_signal *signal = sp_vk_signal_of(waiter);
    sp_vk_semaphore *semaphore = signal->semaphore;
    sp_vk_semaphore *home = signal->home;
    sp_vk_semaphore *gate = signal->gate;
    if (!sp_waiter_is_forked(waiter)) {
        detach(signal);
        sp_pool_put(&semaphore->device->signals, signal);
    }
    sp_vk_semaphore_unref(home);
    sp_vk_semaphore_unref(gate);
    sp_vk_semaphore_unref(semaphore);
}

const sp_waiter_ops sp_vk_signal_ops = {
    .size = sizeof(sp_waiter_ops),
    .features = SP_FEATURE_CONSUMING | SP_FEATURE_ONESHOT | SP_FEATURE_BLOCK,
    .backend = SP_BACKEND_VULKAN,
    .name = "vulkan binary signal",
    .probe = signal_probe,
    .block = signal_block,
    .destroy = signal_release,
};

/* ---- A new signal of the semaphore ---- */

static sp_status fail_wait_not_run(void)
{
    return sp_fail(SP_ERROR_INVALID_STATE,
                   "a wait on this binary semaphore is submitted and has not run yet");
}

sp_status sp_vk_binary_check_free_locked(sp_vk_semaphore *binary, uint32_t slot)
{
    const sp_vk_signal *current = binary->current;
    /* Once: a wait may claim the signal, or give it up, any moment. One that the other side has
     * announced is in the way of ours, and gives way to another of theirs. */
    uint32_t state = current ? state_of(current) : SP_ONESHOT_CONSUMED;
    if (state < SP_ONESHOT_CLAIMED && (current->ours || slot != SP_VK_NO_SLOT))
        return sp_fail_signal_pending();
    if (state == SP_ONESHOT_CLAIMED && sp_load64(&current->gate_value) == 0)
        return fail_wait_not_run();
    /* On the wait's own queue the new signal runs after it in any case. */
    bool ordered = binary->wait_value == 0 || binary->wait_slot == slot;
    if (!ordered && !sp_vk_progress_reached(binary->device, binary->wait_slot, binary->wait_value))
        return fail_wait_not_run();
    return SP_OK;
}

/* Makes `next` the semaphore's signal. *earlier: one that never completes now, as a reference. */
static sp_status replace_current_locked(sp_vk_semaphore *binary, sp_vk_signal *next,
                                        sp_oneshot **earlier)
{
    sp_vk_signal *current = binary->current;
    if (binary->temporary && binary->spent) {
        return sp_fail(SP_ERROR_INVALID_STATE,
                       "a temporary import serves one wait, and has had its point");
    }
    sp_status status = sp_vk_binary_check_free_locked(binary, SP_VK_NO_SLOT);
    if (status != SP_OK)
        return status;
    if (current && state_of(current) != SP_ONESHOT_CLAIMED) {
        *earlier = sp_oneshot_supersede(&current->oneshot);
        if (state_of(current) == SP_ONESHOT_CLAIMED)
            return fail_wait_not_run(); /* claimed this very moment */
    }
    binary->current = next;
    binary->spent = true;
    return SP_OK;
}

static sp_status start_signal(sp_vk_semaphore *binary, sp_vk_signal *signal)
{
    sp_oneshot *earlier = NULL;
    sp_os_mutex_lock(&binary->lock);
    bool signalled = binary->signalled;
    sp_status status = replace_current_locked(binary, signal, &earlier);
    sp_os_mutex_unlock(&binary->lock);
    if (status == SP_OK && signalled)
        sp_waiter_reached(&signal->oneshot.base, 1);
    sp_oneshot_fail_superseded(earlier);
    return status;
}

sp_status sp_vk_binary_point(sp_vk_semaphore *semaphore, uint32_t flags, sp_point *out)
{
    SP_CHECK_ARGUMENT(semaphore && out, "semaphore and out are required");
    SP_CHECK_ARGUMENT(semaphore->type == VK_SEMAPHORE_TYPE_BINARY,
                      "a timeline has values: sp_vk_timeline_point()");
    SP_CHECK_ARGUMENT((flags & ~(uint32_t)SP_POINT_UNSUBMITTED) == 0,
                      "SP_POINT_UNSUBMITTED is the only flag");
    sp_status status = sp_vk_check(semaphore->device);
    if (status != SP_OK)
        return status;
    sp_vk_signal *signal = sp_pool_get(&semaphore->device->signals);
    if (!signal)
        return SP_ERROR_OUT_OF_MEMORY;
    sp_vk_signal_setup(signal, semaphore, flags ? SP_ONESHOT_UNSUBMITTED : SP_ONESHOT_SUBMITTED);
    status = start_signal(semaphore, signal);
    if (status != SP_OK) {
        sp_error error = *sp_last_error();
        sp_waiter_unref(&signal->oneshot.base);
        return sp_fail_with(&error);
    }
    *out = sp_vk_signal_point(signal, flags | (semaphore->temporary ? SP_POINT_TEMPORARY : 0u));
    return SP_OK;
}
