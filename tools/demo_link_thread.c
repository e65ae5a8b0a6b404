/* SPDX-License-Identifier: MIT
 *
 * The link between two threads: points of the queue's timeline go through a mailbox.
 */
#include "commands.h"
#include "demo_link.h"

#include <time.h>

void demo_mailbox_init(struct demo_mailbox *mailbox)
{
    *mailbox = (struct demo_mailbox){.closed = false};
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&mailbox->lock, NULL);
    pthread_cond_init(&mailbox->changed, &attributes);
    pthread_condattr_destroy(&attributes);
}

void demo_mailbox_close(struct demo_mailbox *mailbox)
{
    pthread_mutex_lock(&mailbox->lock);
    mailbox->closed = true;
    pthread_cond_broadcast(&mailbox->changed);
    pthread_mutex_unlock(&mailbox->lock);
}

void demo_mailbox_destroy(struct demo_mailbox *mailbox)
{
    for (uint32_t i = 0; i < DEMO_SLOTS; i++) {
        sp_point_unref(&mailbox->frames[i].point);
        sp_point_unref(&mailbox->releases[i].point);
    }
    pthread_cond_destroy(&mailbox->changed);
    pthread_mutex_destroy(&mailbox->lock);
}

/* Puts a point for all that was submitted to the queue so far into a box. */
static bool post(struct demo_thread_end *end, struct demo_letter *letter, uint32_t frame)
{
    sp_point point = sp_point_noop();
    const uint64_t now = sp_now_ns();
    if (!demo_sync_ok(sp_vk_queue_signal(end->queue, &point), "sp_vk_queue_signal"))
        return false;
    pthread_mutex_lock(&end->mailbox->lock);
    *letter =
        (struct demo_letter){.full = true, .frame = frame, .submitted_ns = now, .point = point};
    pthread_cond_broadcast(&end->mailbox->changed);
    pthread_mutex_unlock(&end->mailbox->lock);
    return true;
}

/* Takes a point out of a box and makes the queue wait for it. */
static bool take(struct demo_thread_end *end, struct demo_letter *letter, uint32_t frame,
                 struct demo_letter *taken)
{
    const uint64_t deadline = sp_deadline_ns(DEMO_TIMEOUT_NS);
    const struct timespec until = {(time_t)(deadline / 1000000000), (long)(deadline % 1000000000)};
    struct demo_mailbox *mailbox = end->mailbox;
    int error = 0;
    pthread_mutex_lock(&mailbox->lock);
    while (!letter->full && !mailbox->closed && !error)
        error = pthread_cond_timedwait(&mailbox->changed, &mailbox->lock, &until);
    *taken = *letter;
    *letter = (struct demo_letter){.full = false};
    pthread_mutex_unlock(&mailbox->lock);
    if (taken->full && taken->frame == frame)
        return demo_sync_ok(sp_vk_queue_wait(end->queue, &taken->point), "sp_vk_queue_wait");
    tool_error("frame %u does not come: the other thread %s", frame,
               mailbox->closed ? "gave up" : "does not answer");
    return false;
}

static bool thread_is_there(void *self)
{
    struct demo_mailbox *mailbox = ((struct demo_thread_end *)self)->mailbox;
    pthread_mutex_lock(&mailbox->lock);
    const bool there = !mailbox->closed;
    pthread_mutex_unlock(&mailbox->lock);
    return there;
}

static bool thread_await_release(void *self, uint32_t frame)
{
    struct demo_thread_end *end = self;
    struct demo_letter taken;
    const bool ok = take(end, &end->mailbox->releases[frame % DEMO_SLOTS], frame, &taken);
    sp_point_unref(&taken.point);
    return ok;
}

static bool thread_publish(void *self, uint32_t frame, bool signal)
{
    (void)signal; /* --break is refused with one queue: see demo.c */
    struct demo_thread_end *end = self;
    return post(end, &end->mailbox->frames[frame % DEMO_SLOTS], frame);
}

static bool thread_await_frame(void *self, uint32_t frame, struct demo_arrival *arrival)
{
    struct demo_thread_end *end = self;
    struct demo_letter taken;
    const bool ok = take(end, &end->mailbox->frames[frame % DEMO_SLOTS], frame, &taken);
    arrival->submitted_ns = taken.submitted_ns;
    arrival->gate = taken.point;
    return ok;
}

static bool thread_release(void *self, uint32_t frame)
{
    struct demo_thread_end *end = self;
    return post(end, &end->mailbox->releases[frame % DEMO_SLOTS], frame);
}

struct demo_producer_link demo_thread_producer_link(struct demo_thread_end *self)
{
    return (struct demo_producer_link){
        .self = self,
        .queue = self->queue,
        .peer_is_there = thread_is_there,
        .await_release = thread_await_release,
        .publish = thread_publish,
    };
}

struct demo_consumer_link demo_thread_consumer_link(struct demo_thread_end *self)
{
    return (struct demo_consumer_link){
        .self = self,
        .queue = self->queue,
        .peer_is_there = thread_is_there,
        .await_frame = thread_await_frame,
        .release = thread_release,
    };
}
