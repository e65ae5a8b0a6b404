/* SPDX-License-Identifier: MIT */
#include "threads.h"

#include "test.h"

static void *work(void *argument)
{
    worker *self = argument;
    if (self->delay_ms)
        test_sleep_ms(self->delay_ms);
    self->run(self->user);
    __atomic_store_n(&self->done, 1, __ATOMIC_SEQ_CST);
    return NULL;
}

void worker_start(worker *self, unsigned delay_ms, void (*run)(void *user), void *user)
{
    self->run = run;
    self->user = user;
    self->delay_ms = delay_ms;
    self->done = 0;
    assert_int_equal(pthread_create(&self->thread, NULL, work, self), 0);
}

void worker_join(worker *self)
{
    assert_int_equal(pthread_join(self->thread, NULL), 0);
}

bool worker_is_done(const worker *self)
{
    return __atomic_load_n(&self->done, __ATOMIC_SEQ_CST) != 0;
}

void run_on_small_stack(size_t stack_size, void (*run)(void *user), void *user)
{
    worker self = {.run = run, .user = user};
    pthread_attr_t attributes;
    assert_int_equal(pthread_attr_init(&attributes), 0);
    assert_int_equal(pthread_attr_setstacksize(&attributes, stack_size), 0);
    assert_int_equal(pthread_create(&self.thread, &attributes, work, &self), 0);
    worker_join(&self);
    pthread_attr_destroy(&attributes);
}

void flag_set(flag *self)
{
    __atomic_store_n(&self->set, 1, __ATOMIC_SEQ_CST);
}
bool flag_is_set(const flag *self)
{
    return __atomic_load_n(&self->set, __ATOMIC_SEQ_CST) != 0;
}

bool flag_wait(const flag *self)
{
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (!flag_is_set(self)) {
        if (sp_now_ns() > end)
            return false;
        test_sleep_ms(1);
    }
    return true;
}
