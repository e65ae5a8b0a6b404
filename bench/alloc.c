/* SPDX-License-Identifier: MIT
 * Counts calls of the allocator: these definitions in the program stand before the C library's,
 * also for the shared libraries. Each thread counts its own, so that a driver's threads do not
 * spoil the count. */
#include "bench.h"

#include <errno.h>
#include <stdlib.h>

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
    __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

/* Only glibc gives its own functions a second name; sanitizers need the names for themselves. */
#if defined(__GLIBC__) && !defined(SANITIZED)

void *__libc_malloc(size_t size);
void *__libc_calloc(size_t count, size_t size);
void *__libc_realloc(void *memory, size_t size);
void *__libc_memalign(size_t alignment, size_t size);
void __libc_free(void *memory);

static _Thread_local size_t calls;

void *malloc(size_t size)
{
    calls++;
    return __libc_malloc(size);
}

void *calloc(size_t count, size_t size)
{
    calls++;
    return __libc_calloc(count, size);
}

void *realloc(void *memory, size_t size)
{
    calls++;
    return __libc_realloc(memory, size);
}

void *aligned_alloc(size_t alignment, size_t size)
{
    calls++;
    return __libc_memalign(alignment, size);
}

int posix_memalign(void **memory, size_t alignment, size_t size)
{
    calls++;
    *memory = __libc_memalign(alignment, size);
    return *memory ? 0 : ENOMEM;
}

void free(void *memory)
{
    calls++;
    __libc_free(memory);
}

size_t bench_allocations(void)
{
    return calls;
}

/* Not through a compiler that may know what malloc and free come to. */
bool bench_counts_allocations(void)
{
    void *(*volatile allocate)(size_t) = malloc;
    void (*volatile release)(void *) = free;
    size_t before = calls;
    release(allocate(1));
    return calls == before + 2;
}

#else

size_t bench_allocations(void)
{
    return 0;
}

bool bench_counts_allocations(void)
{
    return false;
}

#endif
