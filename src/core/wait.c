/* SPDX-License-Identifier: MIT
 *
 * Waiting for one point: what is known, a probe, a short spin, then the primitive's own wait in
 * slices, or polling where that notices sooner.
 */
#include "core.h"

/* Kernels add some 50 us of slack to a sleep. So a wake-up comes every 75 us at first, and every
 * 150 us in the end: at 5 to 7 us each, a wait takes less than a tenth of a core. */
#define BACKOFF_FIRST UINT64_C(20000)
#define BACKOFF_LAST UINT64_C(100000)
#define BACKOFF_GROWTH 8 /* by one part in so many */

/* Where a wait polls, its spin is the larger part of what a short wait costs. After so many waits in
 * a row that ended long after their spin, the next ones spin for a part of it only. */
#define VAIN_SPINS 3
#define VAIN_SPIN_PART 8
#define LONG_AFTER 4 /* times the spin */

/* About 0.3 us. A probe takes the driver's lock of that primitive: without a pause the spinning
 * thread fights for it with the one that wants to signal, and sees the signal later. */
#define PROBE_PAUSES 16

#define SLICE_PAUSE UINT64_C(60000) /* long enough for a thread to wake and take a lock */

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t sp_backoff_next(sp_backoff *backoff)
{
    uint64_t next = backoff->sleep_ns + backoff->sleep_ns / BACKOFF_GROWTH;
    backoff->sleep_ns = next < BACKOFF_FIRST ? BACKOFF_FIRST : earlier(next, BACKOFF_LAST);
    return backoff->sleep_ns;
}

static void sleep_for(uint64_t ns, uint64_t deadline_ns)
{
    sp_os_sleep_until(earlier(sp_os_now_ns() + ns, deadline_ns));
}

void sp_backoff_sleep(sp_backoff *backoff, uint64_t deadline_ns)
{
    sleep_for(sp_backoff_next(backoff), deadline_ns);
}

void sp_pause_between_probes(void)
{
    for (int i = 0; i < PROBE_PAUSES; i++)
        sp_cpu_relax();
}

void sp_pause_between_slices(uint64_t deadline_ns)
{
    sleep_for(SLICE_PAUSE, deadline_ns);
}

/* Where one step down from `point` leads: PENDING and *member for a composite with work left. */
static sp_status step_down(const sp_point *point, const sp_point **member)
{
    sp_waiter *waiter = point->waiter;
    if (!waiter || sp_waiter_known_reached(waiter, sp_point_target(point)))
        return SP_OK;
    *member = NULL;
    if (!(waiter->features & SP_FEATURE_COMPOSITE))
        return sp_waiter_probe(waiter, sp_point_target(point));
    sp_status failed = sp_waiter_check_failed(waiter, 1);
    if (failed != SP_OK)
        return failed;
    return ((const sp_composite_ops *)(const void *)waiter->ops)->next(waiter, member);
}

sp_status sp_point_front(const sp_point *point, const sp_point **leaf)
{
    const sp_point *at = point;
    for (;;) {
        const sp_point *member = NULL;
        sp_status status = step_down(at, &member);
        if (status == SP_PENDING && member) {
            at = member;
            continue;
        }
        /* A member is done: its composite, asked again, knows that now and names the next. */
        if (status == SP_OK && at != point) {
            at = point;
            continue;
        }
        *leaf = at;
        return status;
    }
}

sp_status sp_poll_rest(const sp_point *point, sp_status status, uint64_t reached)
{
    sp_waiter *waiter;
    const sp_point *leaf;
    if (status != SP_PENDING) /* the primitive was asked, and this is what it said */
        return sp_waiter_note_probe(point->waiter, sp_point_target(point), status, reached);
    status = sp_point_check(point, &waiter);
    if (status != SP_OK || !waiter)
        return status;
    return sp_point_front(point, &leaf);
}

/* What the header inlines. */
sp_status sp_poll(const sp_point *point)
{
    return sp_poll_rest(point, SP_PENDING, 0);
}

sp_status sp_point_block_slice(const sp_point *leaf, uint64_t deadline_ns, sp_backoff *backoff)
{
    sp_waiter *waiter = leaf->waiter;
    uint64_t slice_end = earlier(sp_os_now_ns() + SP_WAIT_SLICE, deadline_ns);
    if (waiter->features & SP_FEATURE_COMPOSITE)
        return ((const sp_composite_ops *)(const void *)waiter->ops)->block(waiter, slice_end);
    if (!(waiter->features & SP_FEATURE_BLOCK) || (waiter->features & SP_FEATURE_POLL)) {
        sp_backoff_sleep(backoff, deadline_ns);
        return SP_OK;
    }
    sp_status status = sp_waiter_block(waiter, sp_point_target(leaf), slice_end);
    if (status == SP_PENDING)
        sp_pause_between_slices(deadline_ns);
    return status < 0 ? status : SP_OK;
}

static bool waiting(sp_status status)
{
    return status == SP_PENDING || status == SP_NOT_SUBMITTED;
}

static bool is_polled(const sp_waiter *waiter)
{
    const uint32_t own_ways = SP_FEATURE_BLOCK | SP_FEATURE_COMPOSITE;
    return (waiter->features & SP_FEATURE_POLL) || !(waiter->features & own_ways);
}

/* Where only the wait itself notices, spinning on probes is in vain. */
static bool spins(const sp_waiter *waiter, uint64_t waited_ns, uint64_t spin_ns)
{
    if (sp_waiter_shows_only_to_waits(waiter))
        return false;
    if (is_polled(waiter) && sp_load32(&waiter->vain_spins) >= VAIN_SPINS)
        spin_ns /= VAIN_SPIN_PART;
    return waited_ns < spin_ns;
}

/* How long the wait was is a hint for the next one on this primitive: nothing depends on it. */
static void note_wait(sp_waiter *waiter, uint64_t waited_ns, uint64_t spin_ns)
{
    if (!is_polled(waiter))
        return;
    uint32_t vain = sp_load32(&waiter->vain_spins);
    if (waited_ns / LONG_AFTER <= spin_ns)
        sp_store32(&waiter->vain_spins, 0);
    else if (vain < VAIN_SPINS)
        sp_store32(&waiter->vain_spins, vain + 1);
}

static sp_status wait_until(const sp_point *point, uint64_t deadline_ns,
                            const sp_wait_options *options)
{
    const uint64_t spin_ns = options->spin_ns;
    const sp_point *leaf = NULL;
    sp_waiter *last = NULL;
    sp_backoff backoff = {0};
    uint64_t start = sp_os_now_ns();
    for (;;) {
        sp_status status = sp_point_front(point, &leaf);
        if (!waiting(status)) {
            if (last)
                note_wait(last, sp_os_now_ns() - start, spin_ns);
            return status;
        }
        last = leaf->waiter;
        uint64_t now = sp_os_now_ns();
        sp_status interrupted = sp_interrupt_check(options->interrupt);
        if (interrupted != SP_OK)
            return interrupted;
        if (now >= deadline_ns)
            return status == SP_PENDING ? SP_TIMEOUT : status;
        if (spins(last, now - start, spin_ns)) {
            sp_pause_between_probes();
            continue;
        }
        status = sp_point_block_slice(leaf, deadline_ns, &backoff);
        if (status != SP_OK)
            return status;
    }
}

static sp_status wait_for(const sp_point *point, const sp_wait_options *options)
{
    sp_waiter *waiter;
    sp_status status = sp_point_check(point, &waiter);
    if (status != SP_OK || !waiter)
        return status;
    if (sp_waiter_known_reached(waiter, sp_point_target(point)))
        return SP_OK;
    return wait_until(point, sp_deadline_ns(options->timeout_ns), options);
}

sp_status sp_wait(const sp_point *point)
{
    return sp_wait_timeout(point, SP_TIMEOUT_DEFAULT);
}

sp_status sp_wait_timeout(const sp_point *point, uint64_t timeout_ns)
{
    const sp_wait_options options = {.timeout_ns = timeout_ns, .spin_ns = SP_SPIN_DEFAULT};
    return wait_for(point, &options);
}

sp_status sp_wait_with(const sp_point *point, const sp_wait_options *options)
{
    SP_CHECK_ARGUMENT(options, "options are required");
    SP_CHECK_SIZE(options);
    return wait_for(point, options);
}
