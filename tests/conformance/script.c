/* SPDX-License-Identifier: MIT
 *
 * Conformance: the same random script of operations on the fixture and on a software timeline,
 * which is the oracle. What the one says the other must say.
 */
#include "conformance.h"

#define HELD 24

static sp_host_timeline *oracle;

typedef struct pair {
    sp_point tested;
    sp_point oracle;
} pair;

typedef struct script {
    test_rng rng;
    pair held[HELD];
    uint64_t made; /* the highest number of a point */
    uint64_t signalled;
} script;

static void drop(pair *self)
{
    sp_point_unref(&self->tested);
    sp_point_unref(&self->oracle);
}

static pair *pick(script *self)
{
    return &self->held[test_random_below(&self->rng, HELD)];
}

static void make(script *self)
{
    pair *into = pick(self);
    drop(into);
    self->made += test_random_below(&self->rng, 3);
    if (self->made <= self->signalled)
        self->made = self->signalled + 1;
    into->tested = fx->point(self->made);
    CHECK_STATUS(sp_host_timeline_point(oracle, self->made, &into->oracle), SP_OK);
}

static void chain_two(script *self)
{
    const pair *first = pick(self), *then = pick(self);
    pair made = {0}, *into = pick(self);
    CHECK_STATUS(sp_chain(&first->tested, &then->tested, &made.tested), SP_OK);
    CHECK_STATUS(sp_chain(&first->oracle, &then->oracle, &made.oracle), SP_OK);
    drop(into);
    *into = made;
}

static void copy_one(script *self)
{
    const pair *from = pick(self);
    const pair made = {sp_point_ref(&from->tested), sp_point_ref(&from->oracle)};
    pair *into = pick(self);
    drop(into);
    *into = made;
}

static void send_signal(script *self)
{
    if (self->made <= self->signalled)
        return;
    uint64_t room = self->made - self->signalled;
    self->signalled += 1 + test_random_below(&self->rng, (unsigned)room);
    fx->signal(self->signalled);
    CHECK_STATUS(sp_host_timeline_signal(oracle, self->signalled), SP_OK);
}

/* A device may take a moment: what the oracle says is reached is waited for, what it says is not
 * must not be. */
static void compare(const pair *self)
{
    bool reached = sp_poll(&self->oracle) == SP_OK;
    if (reached)
        CHECK_STATUS(sp_wait(&self->tested), SP_OK);
    CHECK_STATUS(sp_poll(&self->tested), reached ? SP_OK : fx->pending);
    CHECK_STATUS(sp_wait_timeout(&self->tested, 0), reached ? SP_OK : fx->timed_out);
}

static void compare_many(script *self)
{
    sp_point tested[HELD], expected[HELD];
    unsigned count = 1 + test_random_below(&self->rng, HELD);
    for (unsigned i = 0; i < count; i++) {
        const pair *from = pick(self);
        compare(from);
        tested[i] = from->tested;
        expected[i] = from->oracle;
    }
    for (unsigned mode = SP_WAIT_ALL; mode <= SP_WAIT_ANY; mode++) {
        size_t a = 1000, b = 1000;
        sp_status status = sp_wait_many(tested, count, (sp_wait_mode)mode, 0, &a);
        bool reached = sp_wait_many(expected, count, (sp_wait_mode)mode, 0, &b) == SP_OK;
        CHECK_STATUS(status, reached ? SP_OK : fx->timed_out);
        if (mode == SP_WAIT_ALL)
            CHECK_EQUAL(a, b);
        else
            CHECK((a < count) == reached);
    }
}

static void step(script *self)
{
    switch (test_random_below(&self->rng, 8)) {
    case 0:
    case 1:
    case 2:
        make(self);
        break;
    case 3:
        chain_two(self);
        break;
    case 4:
        copy_one(self);
        break;
    case 5:
        send_signal(self);
        break;
    case 6:
        compare_many(self);
        break;
    default:
        compare(pick(self));
        break;
    }
}

TEST_NEEDING(random_script_against_the_oracle, INDEPENDENT | POLLED)
{
    static script self;
    uint64_t seed = UINT64_C(20261130);
    self.rng.state = seed;
    print_message("seed %llu\n", (unsigned long long)seed);
    CHECK_STATUS(sp_host_timeline_create(0, &oracle), SP_OK);
    for (unsigned i = 0; i < 1500; i++)
        step(&self);
    for (unsigned i = 0; i < HELD; i++) {
        compare(&self.held[i]);
        drop(&self.held[i]);
    }
    if (self.made > self.signalled)
        fx->signal(self.made);
    sp_host_timeline_destroy(oracle);
}
