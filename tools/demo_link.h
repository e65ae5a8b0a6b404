/* SPDX-License-Identifier: MIT
 *
 * How a frame crosses from the producer's queue to the consumer's, and its slot back. All of the
 * synchronisation of the demo is behind these calls, and none of it blocks the host on the GPU:
 * both directions make the *queue* wait.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_LINK_H
#define SYNCPOINT_TOOLS_DEMO_LINK_H

#include "demo.h"

#include <pthread.h>
#include <syncpoint/handoff.h>

/* Is the other side still there? `self` is the link. */
typedef bool demo_peer_check(void *self);

/* Waits for a point that only a living peer can let us reach, DEMO_TIMEOUT_NS at the longest, and
 * gives up soon after the peer is gone. Prints what went wrong, and `what` it waited for. */
bool demo_wait(const sp_point *point, const char *what, demo_peer_check *peer_is_there, void *self);

/* Each function prints what went wrong and returns false; `self` is the link. */
struct demo_producer_link {
    void *self;
    sp_vk_queue *queue;
    demo_peer_check *peer_is_there;
    /* Makes the queue wait until the consumer is done with `frame`, whose slot comes next. */
    bool (*await_release)(void *self, uint32_t frame);
    /* Gives the frame away, done when all is done that was submitted to the queue so far. With
     * `signal` false the consumer gets it, and the signal is kept back. */
    bool (*publish)(void *self, uint32_t frame, bool signal);
    /* Waits until the consumer says that it is stuck, then submits the signal that was kept. NULL
     * if this link cannot. */
    bool (*signal_late)(void *self, uint32_t frame);
};

/* A frame that came. */
struct demo_arrival {
    uint64_t submitted_ns; /* when the producer submitted its signal */
    sp_point gate;         /* reached when the consumer's queue has passed it; NOOP: no wait    */
};

struct demo_consumer_link {
    void *self;
    sp_vk_queue *queue;
    demo_peer_check *peer_is_there;
    /* Takes the next frame, which must be `frame`, and makes the queue wait for it. The arrival's
     * gate is a new reference. */
    bool (*await_frame)(void *self, uint32_t frame, struct demo_arrival *arrival);
    /* Gives the slot back: free when all is done that was submitted to the queue so far. */
    bool (*release)(void *self, uint32_t frame);
    /* Tells the producer that the frame's signal does not come. NULL if this link cannot. */
    bool (*report_stuck)(void *self, uint32_t frame);
};

/* Over opaque fds, between processes. */
struct demo_fd_producer {
    int socket;
    sp_vk_device *device;
    sp_vk_queue *queue;
    sp_vk_semaphore *withheld;
};
struct demo_fd_consumer {
    int socket;
    sp_vk_device *device;
    sp_vk_queue *queue;
    sp_synchronizer *synchronizer;
    bool skip_wait; /* --break=no-wait */
};
struct demo_producer_link demo_fd_producer_link(struct demo_fd_producer *self);
struct demo_consumer_link demo_fd_consumer_link(struct demo_fd_consumer *self);

/* Over points, between two threads with one VkQueue. */
struct demo_letter {
    bool full;
    uint32_t frame;
    uint64_t submitted_ns;
    sp_point point; /* owned while full */
};
struct demo_mailbox {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool closed; /* one side gave up */
    struct demo_letter frames[DEMO_SLOTS];
    struct demo_letter releases[DEMO_SLOTS];
};
struct demo_thread_end {
    struct demo_mailbox *mailbox;
    sp_vk_queue *queue;
};
void demo_mailbox_init(struct demo_mailbox *mailbox);
void demo_mailbox_close(struct demo_mailbox *mailbox);
void demo_mailbox_destroy(struct demo_mailbox *mailbox);
struct demo_producer_link demo_thread_producer_link(struct demo_thread_end *self);
struct demo_consumer_link demo_thread_consumer_link(struct demo_thread_end *self);

#endif
