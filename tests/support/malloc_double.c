/* SPDX-License-Identifier: MIT */
#include "malloc_double.h"

#include "census.h"
#include "test.h"

#include <errno.h>
#include <link.h>
#include <stdlib.h>
#include <string.h>

/* glibc's own. */
extern void *__libc_malloc(size_t size);
extern void *__libc_calloc(size_t count, size_t size);
extern void *__libc_realloc(void *old, size_t size);
extern void __libc_free(void *memory);

#define MAX_HELD 65536

static uintptr_t begin, end; /* the library's code */
static unsigned calls;
static unsigned refuse_in; /* 0: not at all; 1: the next one */
static bool refused;

/* What the library holds, by address: others may free it, and it may free what others gave. */
static uint32_t lock;
static void *held[MAX_HELD];
static long held_count;

static int find(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size;
    (void)user;
    if (!info->dlpi_name || !strstr(info->dlpi_name, "libsyncpoint.so"))
        return 0;
    for (unsigned i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *part = &info->dlpi_phdr[i];
        if (part->p_type == PT_LOAD && (part->p_flags & PF_X)) {
            begin = info->dlpi_addr + part->p_vaddr;
            end = begin + part->p_memsz;
        }
    }
    return 1;
}

void malloc_double_init(void)
{
    dl_iterate_phdr(find, NULL);
    assert_true(begin != 0);
}

static bool from_library(const void *caller)
{
    return (uintptr_t)caller >= begin && (uintptr_t)caller < end;
}

static void take_lock(void)
{
    while (__atomic_exchange_n(&lock, 1, __ATOMIC_ACQUIRE))
        ;
}

static void give_lock(void)
{
    __atomic_store_n(&lock, 0, __ATOMIC_RELEASE);
}

static size_t place_of(const void *memory)
{
    size_t place = ((uintptr_t)memory >> 4) % MAX_HELD;
    while (held[place] && held[place] != memory)
        place = (place + 1) % MAX_HELD;
    return place;
}

static void *note(void *memory)
{
    if (!memory)
        return NULL;
    take_lock();
    held[place_of(memory)] = memory;
    held_count++;
    give_lock();
    return memory;
}

/* Closes the gap, so that a search never stops too soon. */
static void forget_at(size_t place)
{
    held[place] = NULL;
    held_count--;
    for (size_t next = (place + 1) % MAX_HELD; held[next]; next = (next + 1) % MAX_HELD) {
        void *moved = held[next];
        held[next] = NULL;
        held[place_of(moved)] = moved;
    }
}

static void forget(const void *memory)
{
    if (!memory || !__atomic_load_n(&held_count, __ATOMIC_RELAXED))
        return;
    take_lock();
    size_t place = place_of(memory);
    if (held[place])
        forget_at(place);
    give_lock();
}

static bool allow(void)
{
    __atomic_fetch_add(&calls, 1, __ATOMIC_SEQ_CST);
    unsigned left = __atomic_load_n(&refuse_in, __ATOMIC_SEQ_CST);
    if (!left)
        return true;
    __atomic_store_n(&refuse_in, left - 1, __ATOMIC_SEQ_CST);
    if (left > 1)
        return true;
    refused = true;
    errno = ENOMEM;
    return false;
}

void *malloc(size_t size)
{
    if (!from_library(__builtin_return_address(0)))
        return __libc_malloc(size);
    return allow() ? note(__libc_malloc(size)) : NULL;
}

void *calloc(size_t count, size_t size)
{
    if (!from_library(__builtin_return_address(0)))
        return __libc_calloc(count, size);
    return allow() ? note(__libc_calloc(count, size)) : NULL;
}

void *realloc(void *old, size_t size)
{
    if (!from_library(__builtin_return_address(0)))
        return __libc_realloc(old, size);
    if (!allow())
        return NULL;
    forget(old);
    return note(__libc_realloc(old, size));
}

void free(void *memory)
{
    forget(memory);
    __libc_free(memory);
}

unsigned malloc_double_calls(void)
{
    return __atomic_load_n(&calls, __ATOMIC_SEQ_CST);
}
long malloc_double_held(void)
{
    return __atomic_load_n(&held_count, __ATOMIC_SEQ_CST);
}

void malloc_double_fail(unsigned skip)
{
    refused = false;
    __atomic_store_n(&refuse_in, skip + 1, __ATOMIC_SEQ_CST);
}

bool malloc_double_failed(void)
{
    __atomic_store_n(&refuse_in, 0, __ATOMIC_SEQ_CST);
    return refused;
}

void malloc_double_refuse_each(sp_status (*attempt)(void), void (*release)(void))
{
    long before = malloc_double_held();
    unsigned open = census_open_handles();
    for (unsigned n = 0;; n++) {
        malloc_double_fail(n);
        sp_status status = attempt();
        bool failed = malloc_double_failed();
        if (status == SP_OK)
            release();
        CHECK_EQUAL(malloc_double_held(), before);
        CHECK_HANDLES(open);
        if (!failed) {
            CHECK_STATUS(status, SP_OK);
            CHECK(n > 0); /* it does allocate */
            return;
        }
        CHECK_STATUS(status, SP_ERROR_OUT_OF_MEMORY);
        CHECK_STATUS(sp_last_error()->status, SP_ERROR_OUT_OF_MEMORY);
        CHECK_EQUAL(sp_status_class(status), SP_CLASS_RECOVERABLE);
    }
}
