/* SPDX-License-Identifier: MIT
 *
 * What every test program shares: cases that run one to a process, checks that work on any thread,
 * skips with a reason.
 *
 *   PROGRAM --list             the names of the cases, one a line
 *   PROGRAM --check NAME...    fails unless these are exactly the cases
 *   PROGRAM CASE               runs one
 *
 * A program for several drivers or fixtures takes that name before each of these.
 */
#ifndef TESTS_SUPPORT_TEST_H
#define TESTS_SUPPORT_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <syncpoint/syncpoint.h>

typedef struct test_case {
    const char *name;
    void (*run)(void);
    unsigned needs; /* what a fixture must have: the program's own bits                          */
    struct test_case *next;
} test_case;

void test_register(test_case *test);

/* Defines a case. The build reads these lines to know the names: one a line, nothing before it. */
#define TEST_NEEDING(case_name, needs_)                                                            \
    static void test_##case_name(void);                                                            \
    __attribute__((constructor)) static void register_##case_name(void)                            \
    {                                                                                              \
        static test_case test = {#case_name, test_##case_name, (needs_), NULL};                    \
        test_register(&test);                                                                      \
    }                                                                                              \
    static void test_##case_name(void)

#define TEST(case_name) TEST_NEEDING(case_name, 0)

/* How a program picks what its cases run on: each but the names may be NULL. */
typedef struct test_target {
    const char *name;
    unsigned features;
    void *user;
} test_target;

typedef struct test_program {
    const test_target *targets; /* NULL: the program takes no target                             */
    size_t target_count;
    void (*setup)(const test_target *target);
    void (*teardown)(void);
} test_program;

int test_main(int argc, char **argv, const test_program *program);

/* Ends the process: this case cannot run here. */
_Noreturn void test_skip(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* ---- Checks --------------------------------------------------------------------------------- */

/* On the thread that runs the case they end it, on any other they note the failure and go on. */
#define CHECK(condition) test_check((condition), #condition, __FILE__, __LINE__)
#define CHECK_STATUS(call, expected)                                                               \
    test_check_status((call), (expected), #call, __FILE__, __LINE__)
#define CHECK_EQUAL(a, b)                                                                          \
    test_check_equal((uint64_t)(a), (uint64_t)(b), #a " == " #b, __FILE__, __LINE__)

bool test_check(bool condition, const char *text, const char *file, int line);
bool test_check_status(sp_status got, sp_status expected, const char *text, const char *file,
                       int line);
bool test_check_equal(uint64_t a, uint64_t b, const char *text, const char *file, int line);

/* The status is negative, and sp_last_error() tells about it. */
#define CHECK_ERROR(call, expected)                                                                \
    do {                                                                                           \
        CHECK_STATUS(call, expected);                                                              \
        CHECK_STATUS(sp_last_error()->status, expected);                                           \
        CHECK(sp_last_error()->message[0] != '\0');                                                \
    } while (0)

/* ---- Time ----------------------------------------------------------------------------------- */

#define MS UINT64_C(1000000) /* in ns */
#define DELAY_MS 40u         /* how late a producer is, so that a wait that works by luck fails  */
#define PATIENCE_NS (UINT64_C(20000) * MS) /* how late anything may be on a loaded machine      */

void test_sleep_ms(unsigned ms);

/* Timeouts that must wait for the signal (V5), and how many. */
extern const uint64_t test_long_timeouts[];
extern const size_t test_long_timeout_count;

/* ---- Random numbers ------------------------------------------------------------------------- */

typedef struct test_rng {
    uint64_t state;
} test_rng;

uint64_t test_random(test_rng *rng);
unsigned test_random_below(test_rng *rng, unsigned limit);

/* ---- Other ---------------------------------------------------------------------------------- */

/* Compares two points field by field. */
bool test_same_point(const sp_point *a, const sp_point *b);

/* A point to compare with what must be left unchanged. */
sp_point test_marked_point(void);

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

#endif
