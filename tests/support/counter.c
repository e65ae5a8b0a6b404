/* SPDX-License-Identifier: MIT */
#include "counter.h"

#include "test.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* One lock for all: what is tested is the library. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed;
static unsigned alive;
static unsigned armed;

__attribute__((constructor)) static void make_condition(void)
{
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

/* ---- Operations ---- */

static counter *of(sp_waiter *waiter)
{
    return (counter *)(void *)waiter;
}

/* The library promises to hold no lock of its own: use it. */
static void use_library(void)
{
    sp_point done = sp_point_cpu();
    sp_point copy = sp_point_ref(&done);
    CHECK_STATUS(sp_poll(&copy), SP_OK);
    sp_point_unref(&copy);
}

static sp_status probe(sp_waiter *waiter, uint64_t value, uint64_t *reached)
{
    counter *self = of(waiter);
    (void)value;
    use_library();
    pthread_mutex_lock(&mutex);
    self->probes++;
    *reached = self->value;
    sp_status status = self->probe_status;
    pthread_mutex_unlock(&mutex);
    return status;
}

static bool wait_until_locked(uint64_t deadline_ns)
{
    if (deadline_ns == SP_FOREVER) {
        pthread_cond_wait(&changed, &mutex);
        return true;
    }
    uint64_t seconds = deadline_ns / 1000000000u;
    struct timespec until = {.tv_sec = (time_t)seconds,
                             .tv_nsec = (long)(deadline_ns % 1000000000u)};
    return pthread_cond_timedwait(&changed, &mutex, &until) == 0;
}

static sp_status block(sp_waiter *waiter, uint64_t value, uint64_t deadline_ns)
{
    counter *self = of(waiter);
    sp_status status = SP_OK;
    use_library();
    pthread_mutex_lock(&mutex);
    self->blocks++;
    while (self->value < value && status == SP_OK) {
        if (self->failed != SP_OK)
            status = self->failed;
        else if (!wait_until_locked(deadline_ns))
            status = self->value < value ? SP_TIMEOUT : SP_OK;
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

static const void *group(sp_waiter *waiter)
{
    (void)waiter;
    return &changed;
}

static sp_status look_locked(sp_waiter *const *waiters, const uint64_t *values, size_t count,
                             sp_wait_mode mode)
{
    size_t reached = 0;
    for (size_t i = 0; i < count; i++) {
        counter *self = of(waiters[i]);
        if (self->value >= values[i])
            reached++;
        else if (self->failed != SP_OK) {
            if (self->fails_probe_later)
                self->probe_status = self->failed;
            return self->failed;
        }
    }
    return (mode == SP_WAIT_ALL ? reached == count : reached > 0) ? SP_OK : SP_PENDING;
}

static sp_status block_many(sp_waiter *const *waiters, const uint64_t *values, size_t count,
                            sp_wait_mode mode, uint64_t deadline_ns)
{
    sp_status status;
    pthread_mutex_lock(&mutex);
    while ((status = look_locked(waiters, values, count, mode)) == SP_PENDING) {
        if (!wait_until_locked(deadline_ns)) {
            status = SP_TIMEOUT;
            break;
        }
    }
    pthread_mutex_unlock(&mutex);
    return status;
}

static sp_status arm(sp_waiter *waiter, uint64_t value, sp_waker *waker)
{
    counter *self = of(waiter);
    pthread_mutex_lock(&mutex);
    waker->value = value;
    waker->prev = NULL;
    waker->next = self->armed;
    if (waker->next)
        waker->next->prev = waker;
    self->armed = waker;
    armed++;
    if (self->value >= value || self->failed != SP_OK)
        sp_waker_wake(waker);
    pthread_mutex_unlock(&mutex);
    return SP_OK;
}

static void disarm(sp_waiter *waiter, sp_waker *waker)
{
    counter *self = of(waiter);
    pthread_mutex_lock(&mutex);
    if (waker->prev)
        waker->prev->next = waker->next;
    else
        self->armed = waker->next;
    if (waker->next)
        waker->next->prev = waker->prev;
    armed--;
    pthread_mutex_unlock(&mutex);
}

static void destroy(sp_waiter *waiter)
{
    counter *self = of(waiter);
    if (!sp_waiter_forked(waiter)) {
        pthread_mutex_lock(&mutex);
        alive--;
        CHECK(self->armed == NULL);
        pthread_mutex_unlock(&mutex);
    }
    free(self);
}

static const sp_waiter_ops tables[] = {
    [COUNTER_PROBE] = {.size = sizeof(sp_waiter_ops),
                       .features = SP_FEATURE_COUNTING,
                       .backend = SP_BACKEND_CUSTOM,
                       .name = "probe-only counter",
                       .probe = probe,
                       .destroy = destroy},
    [COUNTER_BLOCK] = {.size = sizeof(sp_waiter_ops),
                       .features = SP_FEATURE_COUNTING | SP_FEATURE_BLOCK,
                       .backend = SP_BACKEND_CUSTOM,
                       .name = "blocking counter",
                       .probe = probe,
                       .block = block,
                       .destroy = destroy},
    [COUNTER_ARM] = {.size = sizeof(sp_waiter_ops),
                     .features = SP_FEATURE_COUNTING | SP_FEATURE_ARM,
                     .backend = SP_BACKEND_CUSTOM,
                     .name = "armed counter",
                     .probe = probe,
                     .arm = arm,
                     .disarm = disarm,
                     .destroy = destroy},
    [COUNTER_GROUP] = {.size = sizeof(sp_waiter_ops),
                       .features = SP_FEATURE_COUNTING | SP_FEATURE_BLOCK | SP_FEATURE_GROUP,
                       .backend = SP_BACKEND_CUSTOM,
                       .name = "grouped counter",
                       .probe = probe,
                       .block = block,
                       .group = group,
                       .block_many = block_many,
                       .destroy = destroy},
    [COUNTER_ONE_SHOT_PROBE] = {.size = sizeof(sp_waiter_ops),
                                .features = 0,
                                .backend = SP_BACKEND_CUSTOM,
                                .name = "probe-only signal",
                                .probe = probe,
                                .destroy = destroy},
    [COUNTER_ONE_SHOT_ARM] = {.size = sizeof(sp_waiter_ops),
                              .features = SP_FEATURE_ARM,
                              .backend = SP_BACKEND_CUSTOM,
                              .name = "armed signal",
                              .probe = probe,
                              .arm = arm,
                              .disarm = disarm,
                              .destroy = destroy},
};

/* ---- Use ---- */

counter *counter_create(counter_style style)
{
    counter *self = calloc(1, sizeof(*self));
    assert_non_null(self);
    CHECK_STATUS(sp_waiter_init(&self->base, &tables[style]), SP_OK);
    pthread_mutex_lock(&mutex);
    alive++;
    pthread_mutex_unlock(&mutex);
    return self;
}

sp_point counter_point(counter *self, uint64_t value)
{
    sp_point point = {0};
    CHECK_STATUS(sp_point_custom(&self->base, value, NULL, &point), SP_OK);
    return point;
}

/* Each is told once: when its value is reached, or at the failure. */
static void wake_all_locked(counter *self, uint64_t before)
{
    for (sp_waker *waker = self->armed; waker; waker = waker->next) {
        bool reached = waker->value > before && waker->value <= self->value;
        if (reached || self->failed != SP_OK)
            sp_waker_wake(waker);
    }
    pthread_cond_broadcast(&changed);
}

void counter_signal(counter *self, uint64_t value)
{
    pthread_mutex_lock(&mutex);
    uint64_t before = self->value;
    if (value > before && self->failed == SP_OK)
        self->value = value;
    wake_all_locked(self, before);
    pthread_mutex_unlock(&mutex);
}

void counter_fail(counter *self, sp_status status)
{
    sp_error error = {.status = status, .cause = status, .backend = SP_BACKEND_CUSTOM};
    error.message[0] = 'x';
    CHECK_STATUS(sp_waiter_fail(&self->base, self->value + 1, &error), SP_OK);
    pthread_mutex_lock(&mutex);
    self->failed = status;
    wake_all_locked(self, self->value);
    pthread_mutex_unlock(&mutex);
}

void counter_set_probe_status(counter *self, sp_status status)
{
    pthread_mutex_lock(&mutex);
    self->probe_status = status;
    pthread_mutex_unlock(&mutex);
}

void counter_unref(counter *self)
{
    sp_waiter_unref(&self->base);
}

static unsigned read_locked(const unsigned *number)
{
    pthread_mutex_lock(&mutex);
    unsigned result = *number;
    pthread_mutex_unlock(&mutex);
    return result;
}

unsigned counter_alive(void)
{
    return read_locked(&alive);
}
unsigned counter_armed(void)
{
    return read_locked(&armed);
}
