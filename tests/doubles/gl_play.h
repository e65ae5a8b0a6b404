/* SPDX-License-Identifier: MIT
 *
 * A double of GL semaphores of every sort, on top of gl_hook.h: streams, one for each context, whose
 * waits, signals and fences run in order, and semaphores that the test signals as the other side.
 *
 * It keeps to the extensions' rules, and counts what no driver may be asked for.
 */
#ifndef TESTS_DOUBLES_GL_PLAY_H
#define TESTS_DOUBLES_GL_PLAY_H

#include "gl_hook.h"

/* Replaces functions in the hook, which must be installed, and adds the extensions. Call before the
 * library's context is made. */
void gl_play_install(void);

/* The payload that two sides share. */
typedef struct gl_play_semaphore {
    bool counting;
    uint64_t value;
    bool signalled;
} gl_play_semaphore;

/* What the next import names. */
void gl_play_next_import(gl_play_semaphore *semaphore);
/* An fd that looks like a semaphore of some driver. */
int gl_play_fd(void);

/* As the other side: a signal, and a wait, which is false if there is no signal yet. */
void gl_play_signal(gl_play_semaphore *semaphore, uint64_t value);
bool gl_play_take(gl_play_semaphore *semaphore);
uint64_t gl_play_value(gl_play_semaphore *semaphore);

/* The streams stand still, or run. */
void gl_play_hold(bool hold);

/* Signals of what is signalled, values that go back, names that are none. */
unsigned gl_play_wrong(void);
/* How the last import was asked for, and the barriers of the last wait or signal. */
extern GLenum gl_play_last_type;
extern GLint gl_play_last_semaphore_type;
extern void *gl_play_last_handle;
extern GLuint gl_play_last_buffers, gl_play_last_textures, gl_play_last_layout;

#endif
