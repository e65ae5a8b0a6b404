/* SPDX-License-Identifier: MIT
 *
 * Atomics on plain fields, so that public structs stay plain C types in C11 and C++17.
 */
#ifndef SP_OS_ATOMIC_H
#define SP_OS_ATOMIC_H

#include <stdbool.h>
#include <stdint.h>

static inline uint32_t sp_load32(const uint32_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}
static inline uint64_t sp_load64(const uint64_t *p)
{
    return __atomic_load_n(p, __ATOMIC_ACQUIRE);
}

static inline void sp_store32(uint32_t *p, uint32_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}
static inline void sp_store64(uint64_t *p, uint64_t v)
{
    __atomic_store_n(p, v, __ATOMIC_RELEASE);
}

/* Taking a reference needs no ordering: whoever takes one already holds one. */
static inline void sp_ref_inc(uint32_t *refs)
{
    __atomic_fetch_add(refs, 1, __ATOMIC_RELAXED);
}

/* True for the last one, which then sees everything the other holders did. */
static inline bool sp_ref_dec(uint32_t *refs)
{
    return __atomic_fetch_sub(refs, 1, __ATOMIC_ACQ_REL) == 1;
}

static inline bool sp_cas32(uint32_t *p, uint32_t expected, uint32_t desired)
{
    return __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

static inline bool sp_cas64(uint64_t *p, uint64_t expected, uint64_t desired)
{
    return __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_ACQ_REL,
                                       __ATOMIC_ACQUIRE);
}

static inline void sp_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield" ::: "memory");
#endif
}

#endif
