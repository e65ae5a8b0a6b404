/* SPDX-License-Identifier: MIT
 *
 * What the parts of `syncpoint demo` share: a producer renders frames into a ring of images, a
 * consumer copies each one and checks all its pixels. They are two processes, or, where opaque fds
 * cannot be had, two threads on one device. The loops are the same for both (demo_producer.c,
 * demo_consumer.c); how a frame crosses is the link's part (demo_link.h).
 */
#ifndef SYNCPOINT_TOOLS_DEMO_H
#define SYNCPOINT_TOOLS_DEMO_H

#include "demo_picture.h"
#include "gpu.h"

#include <stdbool.h>
#include <stdint.h>

#define DEMO_SLOTS 3u
#define DEMO_TIMEOUT_NS UINT64_C(10000000000)       /* for what the peer does per frame         */
#define DEMO_SETUP_TIMEOUT_NS UINT64_C(60000000000) /* for the peer to start its driver         */

/* What --break leaves out, to show that it would be noticed. */
enum demo_break {
    DEMO_BREAK_NOTHING,
    DEMO_BREAK_NO_WAIT,  /* the consumer does not wait for the producer                         */
    DEMO_BREAK_NO_SIGNAL /* the producer does not signal frame DEMO_WITHHELD_FRAME              */
};
#define DEMO_WITHHELD_FRAME 10u
#define DEMO_WITHHELD_WAIT_NS UINT64_C(2000000000)

struct demo_options {
    uint32_t frames;
    bool slow; /* long GPU work before each frame */
    bool validate;
    enum demo_break broken;
    const char *device;          /* part of its name; NULL: SwiftShader */
    const char *swiftshader_icd; /* NULL: look for it */
    const char *out;             /* folder for the files */
};

/* Open handles of one process when its device and the ring are there, and when all that the
 * hand-off needed is gone again. */
struct demo_handles {
    uint32_t before;
    uint32_t after;
};

#define DEMO_TILES 12u

/* The consumed frames that demo.png shows. */
struct demo_sheet {
    uint32_t *pixels; /* the whole sheet, RGBA; NULL: none */
};

/* What the consumer found out, and what it was told at the end. */
struct demo_result {
    uint32_t frames; /* came, and were checked */
    uint32_t torn_frames;
    uint64_t torn_pixels;
    uint64_t elapsed_ns;
    uint64_t *latencies_ns; /* one for each frame that came through a gate */
    uint32_t latency_count;
    struct demo_handles consumer_handles;
    struct demo_handles producer_handles; /* one process: the same numbers */
    uint32_t validation_messages;         /* of both */
    bool withheld_timed_out; /* NO_SIGNAL: the bounded wait ended, nothing was copied */
    bool withheld_resolved;  /* NO_SIGNAL: the late signal let it go on */
    struct demo_sheet sheet;
};

/* Open handles of this process now. */
uint32_t demo_count_handles(void);

/* False, with the gpu's problem printed, if ok is false. */
bool demo_gpu_ok(const struct gpu *gpu, bool ok);

/* False, printed with the call's name and the library's message, unless status is SP_OK. */
bool demo_sync_ok(sp_status status, const char *call);

/* The two ways to run. Both fill *result and end the gpu; false: it failed, the reason is printed.
 * demo_run_processes() may end with *unsupported set and nothing printed: gpu->problem says why
 * this device cannot. */
bool demo_run_processes(const struct demo_options *options, const struct gpu_choice *choice,
                        char **argv, struct gpu *gpu, bool *unsupported,
                        struct demo_result *result);
bool demo_run_threads(const struct demo_options *options, const struct gpu_choice *choice,
                      struct gpu *gpu, struct demo_result *result);

#endif
