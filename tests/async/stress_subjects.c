/* SPDX-License-Identifier: MIT */
#include "stress.h"

#include <stdlib.h>

#define AHEAD 4 /* values that points wait for are not farther away                              */

static pthread_mutex_t table_lock = PTHREAD_MUTEX_INITIALIZER;
static subject *table[SUBJECTS];

static subject *make(test_rng *rng)
{
    subject *self = calloc(1, sizeof(*self));
    assert_non_null(self);
    self->source = source_make((sort)test_random_below(rng, SORT_COUNT));
    self->refs = 1;
    pthread_mutex_init(&self->lock, NULL);
    return self;
}

/* Software timelines and slots tell their points that nobody will signal them. */
static void end(subject *self)
{
    pthread_mutex_lock(&self->lock);
    self->ended = true;
    if (self->source.sort < SORT_PROBE)
        __atomic_store_n(&self->failing, true, __ATOMIC_SEQ_CST);
    source_end(&self->source);
    pthread_mutex_unlock(&self->lock);
    subject_drop(self);
}

void subjects_make(test_rng *rng)
{
    for (unsigned i = 0; i < SUBJECTS; i++)
        table[i] = make(rng);
}

void subjects_end(void)
{
    for (unsigned i = 0; i < SUBJECTS; i++)
        end(table[i]);
}

subject *subject_get(test_rng *rng)
{
    pthread_mutex_lock(&table_lock);
    subject *got = table[test_random_below(rng, SUBJECTS)];
    __atomic_fetch_add(&got->refs, 1, __ATOMIC_SEQ_CST);
    pthread_mutex_unlock(&table_lock);
    return got;
}

void subject_drop(subject *self)
{
    if (__atomic_sub_fetch(&self->refs, 1, __ATOMIC_SEQ_CST) > 0)
        return;
    pthread_mutex_destroy(&self->lock);
    free(self);
}

void subject_replace(test_rng *rng)
{
    subject *made = make(rng);
    pthread_mutex_lock(&table_lock);
    unsigned at = test_random_below(rng, SUBJECTS);
    subject *old = table[at];
    table[at] = made;
    pthread_mutex_unlock(&table_lock);
    end(old);
}

static uint64_t begun(const subject *self)
{
    return __atomic_load_n(&self->begun, __ATOMIC_SEQ_CST);
}

bool subject_point(subject *self, test_rng *rng, sp_point *point, uint64_t *value)
{
    pthread_mutex_lock(&self->lock);
    bool there = !self->ended;
    if (there) {
        *value = sort_counts(self->source.sort) ? begun(self) + test_random_below(rng, AHEAD) : 1;
        *point = source_point(&self->source, *value);
    }
    pthread_mutex_unlock(&self->lock);
    return there;
}

/* One that has had its one signal can neither have another nor fail. */
static bool may_change_locked(const subject *self)
{
    bool open = sort_counts(self->source.sort) || begun(self) == 0;
    return open && !self->ended && !self->failing;
}

bool subject_signal(subject *self, test_rng *rng)
{
    pthread_mutex_lock(&self->lock);
    bool may = may_change_locked(self);
    if (may) {
        uint64_t value = begun(self) + 1;
        if (sort_counts(self->source.sort))
            value += test_random_below(rng, AHEAD - 1);
        __atomic_store_n(&self->begun, value, __ATOMIC_SEQ_CST);
        source_signal(&self->source, value);
    }
    pthread_mutex_unlock(&self->lock);
    return may;
}

bool subject_fail(subject *self)
{
    pthread_mutex_lock(&self->lock);
    bool may = may_change_locked(self);
    if (may) {
        __atomic_store_n(&self->failing, true, __ATOMIC_SEQ_CST);
        source_fail(&self->source);
    }
    pthread_mutex_unlock(&self->lock);
    return may;
}

bool subject_may_say(const subject *self, uint64_t value, sp_status status)
{
    if (status == SP_OK)
        return begun(self) >= value;
    if (!__atomic_load_n(&self->failing, __ATOMIC_SEQ_CST))
        return false;
    return status == sort_failure(self->source.sort) ||
           (status == SP_ERROR_ABANDONED && self->source.sort < SORT_PROBE);
}
