/* SPDX-License-Identifier: MIT
 *
 * What the two processes of the demo say to each other: messages of one size over a
 * SOCK_SEQPACKET socket, each with one fd or none.
 */
#ifndef SYNCPOINT_TOOLS_DEMO_WIRE_H
#define SYNCPOINT_TOOLS_DEMO_WIRE_H

#include "demo.h"

enum wire_type {
    WIRE_HELLO = 1, /* consumer: id, the device to use                                          */
    WIRE_IMAGE,     /* producer: slot, image; fd: its memory                                    */
    WIRE_FRAME,     /* producer: frame, slot, time; fd: semaphore, signalled when it is rendered */
    WIRE_RELEASE,   /* consumer: frame, slot; fd: semaphore, signalled when it is copied        */
    WIRE_STUCK,     /* consumer: frame; its signal did not come                                 */
    WIRE_DONE,      /* producer: done                                                           */
    WIRE_TYPE_END
};

struct wire_message {
    uint32_t magic;
    uint16_t version;
    uint16_t type;
    uint32_t frame;
    uint32_t slot;
    uint64_t time_ns;
    union {
        uint8_t id[GPU_ID_SIZE];
        struct {
            uint64_t memory_size;
            uint32_t memory_type;
            uint32_t width;
            uint32_t height;
            uint32_t format;
        } image;
        struct {
            struct demo_handles handles;
            uint32_t validation_messages;
        } done;
    } body;
};

enum wire_status {
    WIRE_OK,
    WIRE_TIMEOUT,
    WIRE_CLOSED, /* the peer is gone                                                            */
    WIRE_BAD     /* not a message of ours, or a system call failed                              */
};

/* Sends a message; magic and version are filled in. The fd (-1: none) stays the caller's. */
enum wire_status wire_send(int socket, struct wire_message *message, int fd);

/* Receives a message and checks all that needs no context: its length, magic, version, type,
 * slot, and that an fd is there if its type has one, and only then. *fd is the caller's to close;
 * -1: none. */
enum wire_status wire_receive(int socket, uint64_t timeout_ns, struct wire_message *message,
                              int *fd);

/* wire_send() and wire_receive() that print what went wrong, and want one type. */
bool wire_say(int socket, struct wire_message *message, int fd);
bool wire_expect(int socket, enum wire_type type, uint64_t timeout_ns, struct wire_message *message,
                 int *fd);

/* Prints what a status other than WIRE_OK means. */
void wire_complain(enum wire_status status);

#endif
