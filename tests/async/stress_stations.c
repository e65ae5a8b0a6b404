/* SPDX-License-Identifier: MIT */
#include "stress.h"

#include <poll.h>
#include <stdio.h>

station stations[STATIONS];

/* As a loop does it, and waiting in the call itself. */
static sp_status dispatch(sp_reactor *reactor, bool with_poll)
{
    struct pollfd wait = {.events = POLLIN};
    if (!with_poll)
        return sp_reactor_dispatch(reactor, MS);
    CHECK_STATUS(sp_reactor_fd(reactor, &wait.fd), SP_OK);
    poll(&wait, 1, 1);
    return sp_reactor_dispatch(reactor, 0);
}

static void run_loop(void *user)
{
    station *self = user;
    for (unsigned round = 0; !flag_is_set(&self->stop); round++) {
        pthread_rwlock_rdlock(&self->lock);
        sp_status status = dispatch(self->reactor, round % 2);
        pthread_rwlock_unlock(&self->lock);
        if (status != SP_OK && status != SP_TIMEOUT)
            complain("sp_reactor_dispatch said %s", sp_status_name(status));
    }
}

static void create(station *self)
{
    const sp_reactor_desc desc = {.size = sizeof(desc), .drive = self->drive};
    CHECK_STATUS(sp_reactor_create(&desc, &self->reactor), SP_OK);
}

static void destroy(station *self)
{
    __atomic_store_n(&self->ending, true, __ATOMIC_SEQ_CST);
    CHECK_STATUS(sp_reactor_destroy(self->reactor), SP_OK);
    unsigned lost = __atomic_load_n(&self->outstanding, __ATOMIC_SEQ_CST);
    if (lost)
        complain("%u were not called back for", lost);
    __atomic_store_n(&self->ending, false, __ATOMIC_SEQ_CST);
}

/* Who waits to write goes first, or it would never have its turn. */
static void make_lock(pthread_rwlock_t *lock)
{
    pthread_rwlockattr_t attributes;
    pthread_rwlockattr_init(&attributes);
    pthread_rwlockattr_setkind_np(&attributes, PTHREAD_RWLOCK_PREFER_WRITER_NONRECURSIVE_NP);
    pthread_rwlock_init(lock, &attributes);
    pthread_rwlockattr_destroy(&attributes);
}

void stations_make(test_rng *rng)
{
    for (unsigned i = 0; i < STATIONS; i++) {
        station *self = &stations[i];
        self->drive = i == 0 ? SP_REACTOR_LOOP : SP_REACTOR_THREAD;
        self->rng.state = test_random(rng);
        make_lock(&self->lock);
        create(self);
        if (self->drive == SP_REACTOR_LOOP)
            worker_start(&self->dispatcher, 0, run_loop, self);
    }
}

void station_replace(station *self)
{
    pthread_rwlock_wrlock(&self->lock);
    destroy(self);
    create(self);
    self->generation++;
    pthread_rwlock_unlock(&self->lock);
}

void stations_end(void)
{
    for (unsigned i = 0; i < STATIONS; i++) {
        station *self = &stations[i];
        flag_set(&self->stop);
        if (self->drive == SP_REACTOR_LOOP)
            worker_join(&self->dispatcher);
        destroy(self);
        self->generation++;
        pthread_rwlock_destroy(&self->lock);
    }
}
