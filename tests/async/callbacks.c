/* SPDX-License-Identifier: MIT
 *
 * What a callback may do (W3): anything but destroy or dispatch its own reactor.
 */
#include "async_case.h"

/* ---- The same point ---- */

static void wait_for_it(listener *self)
{
    const sp_point *point = self->user;
    CHECK_STATUS(sp_poll(point), self->status);
    CHECK_STATUS(sp_wait(point), self->status);
    CHECK_STATUS(sp_wait_timeout(point, SP_FOREVER), self->status);
    CHECK_STATUS(sp_wait_many(point, 1, SP_WAIT_ANY, SP_FOREVER, NULL), self->status);
}

TEST(W3_waits_for_the_same_point)
{
    for (EACH_SORT(which)) {
        for (unsigned failing = 0; failing < 2; failing++) {
            source from = source_make(which);
            sp_point point = source_point(&from, 1);
            listener one = {.then = wait_for_it, .user = &point};
            listen(&one, &point, SP_FOREVER);
            if (failing)
                source_fail(&from);
            else
                source_signal(&from, 1);
            CHECK_HEARD(&one, failing ? sort_failure(which) : SP_OK);
            sp_point_unref(&point);
            source_end(&from);
        }
    }
}

typedef struct owner {
    source from;
    sp_point point;
} owner;

static void release_all(listener *self)
{
    owner *owned = self->user;
    sp_point_unref(&owned->point);
    source_end(&owned->from);
}

TEST(W3_releases_the_last_reference)
{
    for (EACH_SORT(which)) {
        owner owned = {.from = source_make(which)};
        listener one = {.then = release_all, .user = &owned};
        owned.point = source_point(&owned.from, 1);
        listen(&one, &owned.point, SP_FOREVER);
        if (which >= SORT_PROBE)
            source_signal(&owned.from, 1);
        else
            CHECK_STATUS(cancel(&one), SP_OK); /* a timeline may not end while it signals */
        CHECK_HEARD(&one, which >= SORT_PROBE ? SP_OK : SP_ERROR_CANCELLED);
    }
}

/* ---- Others ---- */

static void cancel_all(listener *self)
{
    listener *others = self->user;
    for (unsigned i = 0; i < 3; i++)
        CHECK_STATUS(cancel(&others[i]), SP_OK);
    for (unsigned i = 0; i < 3; i++)
        CHECK_EQUAL(listener_calls(&others[i]), 0); /* not inside this one */
}

TEST(W3_cancels_others)
{
    listener others[3] = {0};
    listener one = {.then = cancel_all, .user = others};
    source from = source_make(SORT_HOST), slow = source_make(SORT_PROBE);
    for (unsigned i = 0; i < 3; i++)
        listen_to(&others[i], i ? &slow : &from, 2);
    listen_to(&one, &from, 1);
    source_signal(&from, 1);
    CHECK_HEARD(&one, SP_OK);
    for (unsigned i = 0; i < 3; i++)
        CHECK_HEARD(&others[i], SP_ERROR_CANCELLED);
    source_end(&from);
    source_end(&slow);
}

/* ---- Notify again ---- */

#define ROUNDS 500

static unsigned depth;

static void notify_again(listener *self)
{
    source *from = self->user;
    unsigned calls = listener_calls(self) + 1;
    CHECK_EQUAL(depth++, 0);
    if (calls < ROUNDS) {
        listen_to(self, from, calls + 1);
        if (calls % 2)
            source_signal(from, calls + 1); /* reached before this callback returns */
    }
    depth--;
}

TEST(W3_notifies_again)
{
    listener one = {.then = notify_again};
    source from = source_make(SORT_HOST);
    one.user = &from;
    listen_to(&one, &from, 1);
    source_signal(&from, 1);
    for (unsigned calls = 1; calls <= ROUNDS; calls++) {
        CHECK(listener_wait(&one, calls));
        if (calls % 2 == 0 && calls < ROUNDS)
            source_signal(&from, calls + 1);
    }
    go_on_ms(2);
    CHECK_EQUAL(listener_calls(&one), ROUNDS);
    source_end(&from);
}

static bool stopped; /* atomic */

static void notify_for_ever(listener *self)
{
    const sp_point done = sp_point_cpu();
    if (!__atomic_load_n(&stopped, __ATOMIC_SEQ_CST))
        listen(self, &done, 0);
}

/* One that notifies itself without end holds up no other. */
TEST(notifying_without_end_starves_nobody)
{
    const sp_point done = sp_point_cpu();
    static listener endless = {.then = notify_for_ever}; /* its last call may come at the end */
    source from = source_make(SORT_HOST), polled = source_make(SORT_PROBE);
    listen(&endless, &done, 0);
    CHECK(listener_wait(&endless, 100));
    for (unsigned i = 1; i <= 20; i++) {
        listener ones[2] = {0}, impatient = {0};
        sp_point never = source_point(&from, 100);
        listen_to(&ones[0], &from, i);
        listen_to(&ones[1], &polled, i);
        listen(&impatient, &never, MS);
        source_signal(&from, i);
        source_signal(&polled, i);
        CHECK_HEARD(&ones[0], SP_OK);
        CHECK_HEARD(&ones[1], SP_OK);
        CHECK_HEARD(&impatient, SP_TIMEOUT);
        sp_point_unref(&never);
    }
    __atomic_store_n(&stopped, true, __ATOMIC_SEQ_CST);
    flush(); /* the callback that has not seen this yet has returned */
    source_end(&from);
    source_end(&polled);
}

/* ---- Reactors ---- */

static void destroy_other(listener *self)
{
    destroy_reactor(self->user);
}

TEST(W3_destroys_another_reactor)
{
    sp_reactor *other = make_reactor();
    listener one = {.then = destroy_other, .user = &other};
    listener theirs[10] = {0};
    source from = source_make(SORT_HOST), polled = source_make(SORT_PROBE);
    for (unsigned i = 0; i < COUNT_OF(theirs); i++) {
        sp_point point = source_point(i % 2 ? &from : &polled, 9);
        theirs[i].reactor = other;
        CHECK_STATUS(try_to_listen(&theirs[i], &point, SP_FOREVER), SP_OK);
        sp_point_unref(&point);
    }
    listen_to(&one, &from, 1);
    source_signal(&from, 1);
    CHECK_HEARD(&one, SP_OK);
    for (unsigned i = 0; i < COUNT_OF(theirs); i++) {
        CHECK_EQUAL(listener_calls(&theirs[i]), 1);
        CHECK_STATUS(theirs[i].status, SP_ERROR_CANCELLED);
    }
    source_end(&from);
    source_end(&polled);
}

static void misuse_own(listener *self)
{
    CHECK_ERROR(sp_reactor_destroy(self->reactor), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_reactor_dispatch(self->reactor, 0), SP_ERROR_INVALID_STATE);
    CHECK_ERROR(sp_reactor_dispatch(self->reactor, SP_FOREVER), SP_ERROR_INVALID_STATE);
}

TEST(own_reactor_is_neither_destroyed_nor_dispatched)
{
    for (EACH_SORT(which)) {
        listener one = {.then = misuse_own}, pending = {0};
        source from = source_make(which), other = source_make(which);
        listen_to(&pending, &other, 1);
        listen_to(&one, &from, 1);
        source_signal(&from, 1);
        CHECK_HEARD(&one, SP_OK);
        CHECK_EQUAL(listener_calls(&pending), 0);
        source_signal(&other, 1); /* all goes on */
        CHECK_HEARD(&pending, SP_OK);
        source_end(&from);
        source_end(&other);
    }
}

/* ---- One at a time ---- */

static void take_a_while(listener *self)
{
    (void)self;
    CHECK_EQUAL(__atomic_fetch_add(&depth, 1, __ATOMIC_SEQ_CST), 0);
    test_sleep_ms(1);
    __atomic_fetch_sub(&depth, 1, __ATOMIC_SEQ_CST);
}

TEST(never_two_at_a_time)
{
    listener ones[5 * SORT_COUNT] = {0};
    source from[SORT_COUNT];
    for (EACH_SORT(which))
        from[which] = source_make(which);
    for (unsigned i = 0; i < COUNT_OF(ones); i++) {
        ones[i].then = take_a_while;
        listen_to(&ones[i], &from[i % SORT_COUNT], 1);
    }
    for (EACH_SORT(which))
        source_signal(&from[which], 1);
    for (unsigned i = 0; i < COUNT_OF(ones); i++) {
        CHECK_HEARD(&ones[i], SP_OK);
        CHECK(pthread_equal(ones[i].thread, ones[0].thread));
    }
    for (EACH_SORT(which))
        source_end(&from[which]);
}

/* ---- Locks ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;

static void take_the_lock(listener *self)
{
    (void)self;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
}

/* Who notifies, signals and cancels holds a lock that the callbacks want. */
TEST_NEEDING(a_lock_around_every_call, ON_THREAD)
{
    for (unsigned round = 0; round < 50; round++) {
        listener ones[4] = {{.then = take_the_lock},
                            {.then = take_the_lock},
                            {.then = take_the_lock},
                            {.then = take_the_lock}};
        const sp_point done = sp_point_cpu();
        source from = source_make(round % 2 ? SORT_HOST : SORT_ARM);
        pthread_mutex_lock(&mutex);
        listen(&ones[0], &done, 0);
        test_sleep_ms(round % 5); /* its callback waits for the lock by now */
        listen_to(&ones[1], &from, 1);
        listen_to(&ones[2], &from, 2);
        source_signal(&from, 1);
        CHECK_STATUS(cancel(&ones[2]), SP_OK);
        listen(&ones[3], &done, 0);
        for (unsigned i = 0; i < COUNT_OF(ones); i++)
            CHECK_EQUAL(listener_calls(&ones[i]), 0);
        pthread_mutex_unlock(&mutex);
        for (unsigned i = 0; i < COUNT_OF(ones); i++)
            CHECK_HEARD(&ones[i], i == 2 ? SP_ERROR_CANCELLED : SP_OK);
        source_end(&from);
    }
}

typedef struct busy {
    worker worker;
    source *from;
    listener ones[3];
} busy;

static void use_the_reactor(void *user)
{
    busy *self = user;
    const sp_point done = sp_point_cpu();
    listen_to(&self->ones[0], self->from, 3);
    listen_to(&self->ones[1], self->from, 2);
    CHECK_STATUS(cancel(&self->ones[0]), SP_OK);
    source_signal(self->from, 2);
    listen(&self->ones[2], &done, SP_FOREVER);
}

/* A callback that does not return for as long as others use the reactor. */
static void wait_for_others(listener *self)
{
    busy *others = self->user;
    worker_start(&others->worker, 0, use_the_reactor, others);
    worker_join(&others->worker);
    for (unsigned i = 0; i < COUNT_OF(others->ones); i++)
        CHECK_EQUAL(listener_calls(&others->ones[i]), 0);
}

TEST(no_lock_is_held_while_it_runs)
{
    for (EACH_SORT(which)) {
        if (!sort_counts(which))
            continue;
        source from = source_make(which);
        busy others = {.from = &from};
        listener one = {.then = wait_for_others, .user = &others};
        listen_to(&one, &from, 1);
        source_signal(&from, 1);
        CHECK_HEARD(&one, SP_OK);
        CHECK_HEARD(&others.ones[0], SP_ERROR_CANCELLED);
        CHECK_HEARD(&others.ones[1], SP_OK);
        CHECK_HEARD(&others.ones[2], SP_OK);
        source_end(&from);
    }
}
