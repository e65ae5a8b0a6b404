/* SPDX-License-Identifier: MIT
 *
 * What the OpenGL test programs share: a context of the target's, with the library on it, behind
 * the double of doubles/gl_hook.h.
 */
#ifndef TESTS_OPENGL_GL_CASE_H
#define TESTS_OPENGL_GL_CASE_H

#include "doubles/gl_hook.h"
#include "doubles/gl_play.h"
#include "support/census.h"
#include "support/gl_fixture.h"
#include "support/test.h"
#include "support/threads.h"

extern const gl_options *options; /* the target's */
extern gl_context gl;             /* current on the case's thread */
extern gl_context helper;         /* shares with it; opened by with_helper() */
extern sp_gl_context *context;    /* the library's, on `gl` */

void open_gl(void); /* the native context, and the double */
void open_library(void);
void start(void);                     /* both */
void start_plays(void);               /* both, with the double of semaphores */
void start_with_glsyncs(bool helped); /* both, EGL without fences; with a helper or not */
void finish(void);                    /* closes both, with all that is checked then */
void close_library(void);
void close_gl(void);

/* What the library is given, with the double. */
sp_gl_context_desc context_desc(void);
/* The library on a second native context that shares with the first; that one is current then. */
sp_gl_context *open_sharing(gl_context *native);
/* Call before open_library(): it is given a helper context. */
void with_helper(void);

sp_point signal_point(void);
sp_gl_semaphore_import_desc import_desc(sp_gl_semaphore_type type, int fd);
sp_gl_semaphore *import_played(sp_gl_semaphore_type type, gl_play_semaphore *payload);
sp_point binary_point(sp_gl_semaphore *binary, uint32_t flags);
sp_point value_point(sp_gl_semaphore *semaphore, uint64_t value);
sp_point signal_semaphore(sp_gl_semaphore *semaphore, uint64_t value);

/* A signal of the other side, DELAY_MS from now. */
typedef struct late_signal {
    worker worker;
    gl_play_semaphore *payload;
    uint64_t value;
    flag sent;
} late_signal;
void signal_late(late_signal *self, gl_play_semaphore *payload, uint64_t value);
/* Joins, and checks that the wait that has just returned did not do so early. */
void join_not_early(late_signal *self);

/* Runs on a thread that has no context current, and waits for it. */
void run_elsewhere(void (*run)(void *user), void *user);

#endif
