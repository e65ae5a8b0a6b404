/* SPDX-License-Identifier: MIT
 *
 * A reactor that waits in the driver: what it notices, whom it delays, and that it is out of the driver
 * before anybody is called back. On a driver whose wait for any of several is no good, it polls.
 */
#include "vk_case.h"

#include <dirent.h>
#include <string.h>
#include <syncpoint/async.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct told {
    flag called;
    unsigned calls;
    sp_status status;
} told;

static void tell(void *user, sp_status status)
{
    told *self = user;
    self->status = status;
    self->calls++;
    flag_set(&self->called);
}

static sp_reactor *make_reactor(void)
{
    sp_reactor *made = NULL;
    CHECK_STATUS(sp_reactor_create(NULL, &made), SP_OK);
    return made;
}

static sp_ticket notify(sp_reactor *reactor, sp_vk_semaphore *timeline, uint64_t value, told *one)
{
    sp_ticket ticket = 0;
    sp_point point = timeline_point(timeline, value);
    CHECK_STATUS(sp_notify(reactor, &point, SP_FOREVER, tell, one, &ticket), SP_OK);
    sp_point_unref(&point);
    return ticket;
}

static void wait_told(const told *one, sp_status status)
{
    CHECK(flag_wait(&one->called));
    CHECK_STATUS(one->status, status);
    CHECK_EQUAL(one->calls, 1);
}

/* Long enough for the reactor's thread to be in the driver. */
static void let_it_wait(void)
{
    test_sleep_ms(12);
}

/* ---- Who is called back may end the device ---- */

TEST(the_device_goes_after_the_last_callback)
{
    sp_reactor *reactor = make_reactor();
    for (unsigned round = 0; round < 6; round++) {
        told first = {{0}, 0, SP_OK}, second = {{0}, 0, SP_OK};
        start();
        sp_vk_semaphore *timeline = make_timeline(0);
        notify(reactor, timeline, 1, &first);
        sp_ticket ticket = notify(reactor, timeline, 2, &second);
        if (round % 2)
            let_it_wait();
        CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
        wait_told(&first, SP_OK);
        if (round % 2)
            let_it_wait();
        CHECK_STATUS(sp_cancel(reactor, ticket), SP_OK);
        wait_told(&second, SP_ERROR_CANCELLED);
        sp_vk_semaphore_unref(timeline);
        finish();
    }
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
}

static unsigned count_threads(void)
{
    unsigned count = 0;
    DIR *tasks = opendir("/proc/self/task");
    CHECK(tasks != NULL);
    while (readdir(tasks))
        count++;
    closedir(tasks);
    return count;
}

/* Threads of devices that have gone do not gather. */
TEST(many_devices_one_after_the_other)
{
    sp_reactor *reactor = make_reactor();
    unsigned before = 0;
    for (unsigned round = 0; round < 5; round++) {
        told one = {{0}, 0, SP_OK};
        start();
        sp_vk_semaphore *timeline = make_timeline(0);
        notify(reactor, timeline, 1, &one);
        let_it_wait();
        CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
        wait_told(&one, SP_OK);
        sp_vk_semaphore_unref(timeline);
        finish();
        if (round == 0)
            before = count_threads();
    }
    CHECK(count_threads() <= before + 1);
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
}

TEST(the_reactor_ends_while_it_waits)
{
    start();
    sp_vk_semaphore *timeline = make_timeline(0);
    for (unsigned round = 0; round < 10; round++) {
        told one = {{0}, 0, SP_OK};
        sp_reactor *reactor = make_reactor();
        notify(reactor, timeline, 1, &one);
        if (round % 2)
            let_it_wait();
        CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
        wait_told(&one, SP_ERROR_CANCELLED);
    }
    sp_vk_semaphore_unref(timeline);
    finish();
}

TEST(two_devices_of_one_reactor)
{
    vk_context other = {0};
    told here = {{0}, 0, SP_OK}, there = {{0}, 0, SP_OK};
    start();
    vk_open(&other, options);
    vk_open_library(&other, other.get_instance_proc_addr);
    const sp_vk_semaphore_desc desc = {.size = sizeof(desc), .type = VK_SEMAPHORE_TYPE_TIMELINE};
    sp_vk_semaphore *ours = make_timeline(0), *theirs = NULL;
    CHECK_STATUS(sp_vk_semaphore_create(other.sp_device, &desc, &theirs), SP_OK);
    sp_reactor *reactor = make_reactor();
    notify(reactor, ours, 1, &here);
    notify(reactor, theirs, 1, &there);
    let_it_wait();
    CHECK_STATUS(sp_vk_semaphore_signal(theirs, 1), SP_OK);
    wait_told(&there, SP_OK);
    CHECK(!flag_is_set(&here.called));
    CHECK_STATUS(sp_vk_semaphore_signal(ours, 1), SP_OK);
    wait_told(&here, SP_OK);
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    sp_vk_semaphore_unref(ours);
    sp_vk_semaphore_unref(theirs);
    vk_close_library(&other);
    vk_close(&other);
    finish();
}

/* ---- Many ---- */

/* More than one wait in the driver takes; the last made is signalled first. */
TEST(many_timelines)
{
    enum { COUNT = 300 };
    static sp_vk_semaphore *timelines[COUNT];
    static told all[COUNT];
    start();
    sp_reactor *reactor = make_reactor();
    for (unsigned i = 0; i < COUNT; i++) {
        timelines[i] = make_timeline(0);
        notify(reactor, timelines[i], 1, &all[i]);
    }
    let_it_wait();
    for (unsigned i = COUNT; i-- > 0;) {
        CHECK(!flag_is_set(&all[i].called));
        CHECK_STATUS(sp_vk_semaphore_signal(timelines[i], 1), SP_OK);
    }
    for (unsigned i = 0; i < COUNT; i++) {
        wait_told(&all[i], SP_OK);
        sp_vk_semaphore_unref(timelines[i]);
    }
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    finish();
}

/* A lower value comes to what is waited for already. */
TEST(W7_each_at_its_own_value)
{
    told at3 = {{0}, 0, SP_OK}, at1 = {{0}, 0, SP_OK}, at2 = {{0}, 0, SP_OK};
    start();
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_reactor *reactor = make_reactor();
    notify(reactor, timeline, 3, &at3);
    let_it_wait();
    notify(reactor, timeline, 1, &at1);
    notify(reactor, timeline, 2, &at2);
    let_it_wait();
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    wait_told(&at1, SP_OK);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 2), SP_OK);
    wait_told(&at2, SP_OK);
    let_it_wait();
    CHECK(!flag_is_set(&at3.called));
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 3), SP_OK);
    wait_told(&at3, SP_OK);
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    sp_vk_semaphore_unref(timeline);
    finish();
}

/* ---- W1, W6, F1 ---- */

static void signal_and_wait(void *user)
{
    (void)user;
    sp_vk_semaphore *timeline = make_timeline(0);
    for (uint64_t i = 1; i <= 50; i++) {
        sp_point point = queue_signals(timeline, i);
        CHECK_STATUS(sp_wait(&point), SP_OK);
        sp_point_unref(&point);
    }
    sp_vk_semaphore_unref(timeline);
}

TEST(W1_a_reactor_delays_nobody)
{
    told one = {{0}, 0, SP_OK};
    worker busy;
    start();
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_reactor *reactor = make_reactor();
    notify(reactor, timeline, 1, &one);
    let_it_wait();
    worker_start(&busy, 0, signal_and_wait, NULL);
    worker_join(&busy);
    CHECK(!flag_is_set(&one.called));
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    sp_vk_semaphore_unref(timeline);
    finish();
}

TEST(W6_a_lost_device)
{
    told all[4] = {{{0}, 0, SP_OK}};
    start();
    sp_vk_semaphore *timelines[2] = {make_timeline(0), make_timeline(0)};
    sp_reactor *reactor = make_reactor();
    for (unsigned i = 0; i < COUNT_OF(all); i++)
        notify(reactor, timelines[i % 2], 1 + i / 2, &all[i]);
    let_it_wait();
    hook_lose_device(true);
    for (unsigned i = 0; i < COUNT_OF(all); i++)
        wait_told(&all[i], SP_ERROR_DEVICE_LOST);
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    hook_lose_device(false);
    sp_vk_semaphore_unref(timelines[0]);
    sp_vk_semaphore_unref(timelines[1]);
    finish();
}

static int use_in_child(sp_reactor *reactor, sp_vk_semaphore *timeline, const told *one)
{
    sp_point point = sp_point_noop();
    bool good = sp_notify(reactor, &point, 0, tell, NULL, NULL) == SP_ERROR_FORKED &&
                sp_reactor_destroy(reactor) == SP_OK && one->calls == 0;
    sp_vk_semaphore_unref(timeline);
    return good ? 0 : 1;
}

TEST(F1_forked_while_it_waits)
{
    told one = {{0}, 0, SP_OK};
    int status = -1;
    start();
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_reactor *reactor = make_reactor();
    notify(reactor, timeline, 1, &one);
    let_it_wait();
    pid_t child = fork();
    if (child == 0)
        _exit(use_in_child(reactor, timeline, &one));
    CHECK_EQUAL(waitpid(child, &status, 0), child);
    CHECK_EQUAL(status, 0);
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    wait_told(&one, SP_OK);
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    sp_vk_semaphore_unref(timeline);
    finish();
}

/* ---- Waits that are good, and no good (the double's) ---- */

static unsigned any_calls; /* atomic */

/* That driver's own is known to be no good. */
static bool any_is_tried(void)
{
    return strcmp(options->driver, "nvidia") != 0;
}

static VKAPI_ATTR VkResult VKAPI_CALL says_yes(VkDevice device, const VkSemaphoreWaitInfo *info,
                                               uint64_t timeout_ns)
{
    if (!info->flags)
        return hook_real.WaitSemaphores(device, info, timeout_ns);
    __atomic_add_fetch(&any_calls, 1, __ATOMIC_RELAXED);
    return VK_SUCCESS;
}

static VKAPI_ATTR VkResult VKAPI_CALL has_no_memory(VkDevice device,
                                                    const VkSemaphoreWaitInfo *info,
                                                    uint64_t timeout_ns)
{
    if (!info->flags)
        return hook_real.WaitSemaphores(device, info, timeout_ns);
    __atomic_add_fetch(&any_calls, 1, __ATOMIC_RELAXED);
    return VK_ERROR_OUT_OF_HOST_MEMORY;
}

static VKAPI_ATTR VkResult VKAPI_CALL spins(VkDevice device, const VkSemaphoreWaitInfo *info,
                                            uint64_t timeout_ns)
{
    if (!info->flags)
        return hook_real.WaitSemaphores(device, info, timeout_ns);
    __atomic_add_fetch(&any_calls, 1, __ATOMIC_RELAXED);
    uint64_t end = sp_now_ns() + timeout_ns;
    while (sp_now_ns() < end)
        ;
    return VK_TIMEOUT;
}

static bool any_reached(VkDevice device, const VkSemaphoreWaitInfo *info)
{
    for (uint32_t i = 0; i < info->semaphoreCount; i++) {
        uint64_t counter = 0;
        hook_real.GetSemaphoreCounterValue(device, info->pSemaphores[i], &counter);
        if (counter >= info->pValues[i])
            return true;
    }
    return false;
}

static VKAPI_ATTR VkResult VKAPI_CALL is_good(VkDevice device, const VkSemaphoreWaitInfo *info,
                                              uint64_t timeout_ns)
{
    if (!info->flags)
        return hook_real.WaitSemaphores(device, info, timeout_ns);
    __atomic_add_fetch(&any_calls, 1, __ATOMIC_RELAXED);
    uint64_t end = sp_now_ns() + timeout_ns;
    bool reached = any_reached(device, info);
    while (!reached && sp_now_ns() < end) {
        test_sleep_ms(2);
        reached = any_reached(device, info);
    }
    return reached ? VK_SUCCESS : VK_TIMEOUT;
}

/* The driver tells of values that nobody waits for any more. That is no reason to give it up. */
TEST(values_of_the_cancelled_are_reached)
{
    told last = {{0}, 0, SP_OK};
    start();
    HOOK_REPLACE(WaitSemaphores, is_good);
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_reactor *reactor = make_reactor();
    notify(reactor, timeline, 100, &last);
    for (uint64_t value = 1; value <= 8; value++) {
        told one = {{0}, 0, SP_OK};
        sp_ticket ticket = notify(reactor, timeline, value, &one);
        let_it_wait();
        CHECK_STATUS(sp_cancel(reactor, ticket), SP_OK);
        wait_told(&one, SP_ERROR_CANCELLED);
        CHECK_STATUS(sp_vk_semaphore_signal(timeline, value), SP_OK);
        let_it_wait();
    }
    unsigned before = __atomic_load_n(&any_calls, __ATOMIC_RELAXED);
    test_sleep_ms(DELAY_MS);
    CHECK((__atomic_load_n(&any_calls, __ATOMIC_RELAXED) > before) == any_is_tried());
    CHECK(!flag_is_set(&last.called));
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 100), SP_OK);
    wait_told(&last, SP_OK);
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    sp_vk_semaphore_unref(timeline);
    finish();
}

/* It is given up after a few calls, and what is not signalled is not told. */
static void check_no_good(PFN_vkWaitSemaphores wait, unsigned most_calls)
{
    told one = {{0}, 0, SP_OK}, withheld = {{0}, 0, SP_OK};
    start();
    hook_replace(HOOK_WaitSemaphores, (PFN_vkVoidFunction)wait);
    sp_vk_semaphore *timeline = make_timeline(0);
    sp_reactor *reactor = make_reactor();
    notify(reactor, timeline, 1, &one);
    notify(reactor, timeline, 2, &withheld);
    test_sleep_ms(DELAY_MS);
    unsigned before = __atomic_load_n(&any_calls, __ATOMIC_RELAXED);
    CHECK(before <= most_calls && (before > 0) == any_is_tried());
    CHECK(!flag_is_set(&one.called));
    CHECK_STATUS(sp_vk_semaphore_signal(timeline, 1), SP_OK);
    wait_told(&one, SP_OK);
    test_sleep_ms(DELAY_MS);
    CHECK_EQUAL(__atomic_load_n(&any_calls, __ATOMIC_RELAXED), before);
    CHECK(!flag_is_set(&withheld.called));
    CHECK_STATUS(sp_reactor_destroy(reactor), SP_OK);
    wait_told(&withheld, SP_ERROR_CANCELLED);
    sp_vk_semaphore_unref(timeline);
    finish();
}

TEST(a_wait_that_always_says_yes)
{
    check_no_good(says_yes, 8);
}

TEST(a_wait_that_has_no_memory)
{
    check_no_good(has_no_memory, 8);
}

TEST(a_wait_that_takes_a_whole_core)
{
    check_no_good(spins, 3);
}

/* And so for a plain wait: sp_wait_many() polls from the second slice on. */
TEST(a_wait_for_any_that_takes_a_whole_core)
{
    start();
    HOOK_REPLACE(WaitSemaphores, spins);
    sp_vk_semaphore *timelines[2] = {make_timeline(0), make_timeline(0)};
    const sp_point points[2] = {timeline_point(timelines[0], 1), timeline_point(timelines[1], 1)};
    CHECK_STATUS(sp_wait_many(points, 2, SP_WAIT_ANY, 100 * MS, NULL), SP_TIMEOUT);
    CHECK(__atomic_load_n(&any_calls, __ATOMIC_RELAXED) <= 3);
    for (unsigned i = 0; i < 2; i++) {
        sp_point point = points[i];
        sp_point_unref(&point);
        sp_vk_semaphore_unref(timelines[i]);
    }
    finish();
}
