/* SPDX-License-Identifier: MIT */
#ifndef TESTS_DOUBLES_CUDA_PRIVATE_H
#define TESTS_DOUBLES_CUDA_PRIVATE_H

#include "cuda_double.h"

#include <pthread.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

/* Defines an entry point: counted, made to fail on command, under the one lock. */
#define API(name, parameters, body)                                                                \
    EXPORT CUresult CUDAAPI name parameters;                                                       \
    CUresult CUDAAPI name parameters                                                               \
    {                                                                                              \
        int result_ = double_begin(#name);                                                         \
        if (result_ == 0)                                                                          \
            result_ = (body);                                                                      \
        return double_end(result_);                                                                \
    }

#define R_INVALID_VALUE 1
#define R_NOT_INITIALIZED 3
#define R_DEINITIALIZED 4
#define R_INVALID_CONTEXT 201
#define R_INVALID_HANDLE 400
#define R_NOT_READY 600
#define R_CONTEXT_IS_DESTROYED 709
#define R_NOT_SUPPORTED 801
#define R_CAPTURE_UNSUPPORTED 900
#define R_CAPTURE_INVALIDATED 901
#define R_CAPTURE_UNMATCHED 903
#define R_CAPTURE_IMPLICIT 906
#define R_CAPTURED_EVENT 907

/* Objects are never freed, so that a handle which outlives its object is noticed. */
typedef struct CUctx_st {
    struct CUctx_st *next;
    bool alive;
    unsigned long long id;
    CUdevice device;
    int sticky;
    struct CUstream_st *legacy;
    struct CUstream_st *per_thread;
    unsigned primary; /* how often it is retained */
} context;

typedef struct shared_event { /* one record; perhaps in memory that processes share */
    struct shared_event *next;
    uint64_t recorded;
    uint64_t done;
} shared_event;

typedef struct CUevent_st {
    struct CUevent_st *next;
    bool alive;
    context *owner;
    unsigned flags;
    bool captured;
    shared_event *at; /* the last record; NULL: none                   */
    unsigned number;  /* of one that processes share, which is kept    */
} event;

typedef struct CUextSemaphore_st {
    struct CUextSemaphore_st *next;
    bool alive;
    context *owner;
    struct primitive *primitive;
} semaphore;

typedef struct primitive {
    struct primitive *next;
    bool counting;
    bool keyed;
    uint64_t
        value;  /* binary: 0 or 1; keyed mutex: the key it was released with, UINT64_MAX: held */
    int number; /* of the pty that names it; -1: none */
} primitive;

typedef enum operation_kind {
    OP_RECORD,
    OP_WAIT_EVENT,
    OP_WAIT_SEMAPHORE,
    OP_SIGNAL_SEMAPHORE,
    OP_WAIT_MEMORY,
    OP_WRITE_MEMORY,
    OP_DELAY
} operation_kind;

typedef struct operation {
    struct operation *next;
    operation_kind kind;
    shared_event *at;
    event *event;
    semaphore *semaphore;
    primitive *primitive;
    volatile uint32_t *memory;
    uint64_t value;
    uint64_t until; /* of a delay that has begun */
} operation;

typedef struct CUstream_st {
    struct CUstream_st *next;
    bool alive;
    context *owner;
    unsigned flags;
    unsigned long long id;
    operation *first;
    operation **last;
    int capture; /* 0 none, 1 active, 2 invalidated */
    int capture_mode;
    pthread_t capture_thread;
} stream;

/* ---- state.c ---- */

extern context *contexts;
extern bool double_exited;

int double_begin(const char *name);
CUresult double_end(int result);
void double_note_misuse(void);
context *double_current(void);
/* 0, or why nothing can be done in the current context. */
int double_check_current(void);
void double_lock(void);
void double_unlock(void);
unsigned long long double_new_id(void);

/* ---- stream.c ---- */

extern stream *streams;

stream *double_new_stream(context *owner, unsigned flags);
/* The stream behind a handle that may be a special one, or NULL. */
stream *double_stream(CUstream handle);
/* Adds a copy; 0, or why not. A stream that is being captured takes it into the graph. */
int double_enqueue(CUstream handle, operation added);
void double_wake(void); /* there may be something to do */
void double_drop_all(context *owner);
unsigned double_pending(void);
void double_delay(CUstream handle, uint64_t ns);
void double_move_stream(CUstream handle, CUcontext to);

/* ---- capture.c ---- */

/* 0, or the result of a call that a capture does not stand: it is invalidated. */
int double_unsafe(void);
/* The same for questions about one stream. */
int double_unsafe_stream(stream *asked);
/* For the legacy stream: does another stream's capture stand in the way? */
bool double_implicit_capture(const stream *asked);
int double_capture_mode(void);

#ifdef INCOMPLETE
extern int (*const not_exported)(CUevent, CUstream);
#endif

/* ---- event.c, semaphore.c ---- */

extern event *events;
extern semaphore *semaphores;

int double_make_fd(bool timeline);
void *double_make_handle(bool counting, bool keyed);
void *double_handle_of_fd(int fd);
void double_signal_handle(void *handle, uint64_t value);
uint64_t double_value_of_handle(void *handle);
void double_close_on_failed_import(bool on);
bool double_try_wait(primitive *primitive, uint64_t value);
void double_signal_primitive(primitive *primitive, uint64_t value);

#endif
