/* SPDX-License-Identifier: MIT */
#include "test.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define EXIT_SKIP 77

const uint64_t test_long_timeouts[] = {
    (uint64_t)INT64_MAX, (uint64_t)INT64_MAX + 1,  UINT64_MAX - 1,
    UINT64_MAX,          (UINT64_C(1) << 32) * MS,
};
const size_t test_long_timeout_count = COUNT_OF(test_long_timeouts);

static test_case *cases;
static unsigned failures; /* on other threads than the case's */
static pthread_t case_thread;

void test_register(test_case *test)
{
    test_case **last = &cases;
    while (*last && strcmp((*last)->name, test->name) < 0)
        last = &(*last)->next;
    test->next = *last;
    *last = test;
}

/* ---- Checks ---- */

static void note_failure(const char *file, int line)
{
    fflush(stdout);
    if (pthread_equal(case_thread, pthread_self()))
        _fail(file, line);
    print_error("%s:%d: (on another thread)\n", file, line);
    __atomic_fetch_add(&failures, 1, __ATOMIC_SEQ_CST);
}

bool test_check(bool condition, const char *text, const char *file, int line)
{
    if (!condition) {
        print_error("not so: %s\n", text);
        note_failure(file, line);
    }
    return condition;
}

bool test_check_status(sp_status got, sp_status expected, const char *text, const char *file,
                       int line)
{
    if (got != expected) {
        const char *why = got < 0 ? sp_last_error()->message : "";
        print_error("%s\n  gave %s (%d), not %s\n", text, sp_status_name(got), (int)got,
                    sp_status_name(expected));
        if (why[0])
            print_error("  sp_last_error(): %s\n", why);
        note_failure(file, line);
    }
    return got == expected;
}

bool test_check_equal(uint64_t a, uint64_t b, const char *text, const char *file, int line)
{
    if (a != b) {
        print_error("not so: %s\n  %llu and %llu\n", text, (unsigned long long)a,
                    (unsigned long long)b);
        note_failure(file, line);
    }
    return a == b;
}

void test_skip(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs("SKIP: ", stdout);
    vprintf(format, arguments);
    va_end(arguments);
    puts("");
    fflush(NULL);
    _exit(EXIT_SKIP);
}

/* ---- Time, random numbers ---- */

void test_sleep_ms(unsigned ms)
{
    struct timespec rest = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000};
    while (nanosleep(&rest, &rest) != 0)
        ;
}

/* xorshift64* */
uint64_t test_random(test_rng *rng)
{
    uint64_t x = rng->state ? rng->state : UINT64_C(0x9E3779B97F4A7C15);
    x ^= x >> 12;
    x ^= x << 25;
    x ^= x >> 27;
    rng->state = x;
    return x * UINT64_C(0x2545F4914F6CDD1D);
}

unsigned test_random_below(test_rng *rng, unsigned limit)
{
    return (unsigned)((test_random(rng) >> 33) % limit);
}

/* ---- Points ---- */

bool test_same_point(const sp_point *a, const sp_point *b)
{
    return a->kind == b->kind && a->flags == b->flags && a->value == b->value &&
           memcmp(a->raw.words, b->raw.words, sizeof(a->raw.words)) == 0 && a->waiter == b->waiter;
}

sp_point test_marked_point(void)
{
    return (sp_point){.kind = 1234, .flags = 0x5a5a, .value = 42, .raw = {.words = {1, 2, 3}}};
}

/* ---- Running ---- */

static const test_program *program;
static const test_target *target;
static const test_case *chosen;

static bool applies(const test_case *test)
{
    return !target || (test->needs & ~target->features) == 0;
}

/* cmocka turns a crash into a failure without a word, also one of a driver's thread. */
static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGSYS};
static struct sigaction crash_actions[COUNT_OF(crashes)];

static void save_crash_actions(void)
{
    for (unsigned i = 0; i < COUNT_OF(crashes); i++)
        sigaction(crashes[i], NULL, &crash_actions[i]);
}

static void restore_crash_actions(void)
{
    for (unsigned i = 0; i < COUNT_OF(crashes); i++)
        sigaction(crashes[i], &crash_actions[i], NULL);
}

static void run_chosen(void **state)
{
    (void)state;
    restore_crash_actions();
    case_thread = pthread_self();
    if (program->setup)
        program->setup(target);
    chosen->run();
    if (program->teardown)
        program->teardown();
}

static int run_one(const char *name)
{
    for (chosen = cases; chosen; chosen = chosen->next) {
        if (strcmp(chosen->name, name) == 0 && applies(chosen))
            break;
    }
    if (!chosen) {
        fprintf(stderr, "no case '%s'%s%s\n", name, target ? " for " : "",
                target ? target->name : "");
        return 2;
    }
    const struct CMUnitTest test = {.name = chosen->name, .test_func = run_chosen};
    save_crash_actions();
    int failed = _cmocka_run_group_tests(name, &test, 1, NULL, NULL);
    unsigned elsewhere = __atomic_load_n(&failures, __ATOMIC_SEQ_CST);
    if (elsewhere)
        print_error("%u checks failed on other threads\n", elsewhere);
    if (failed) {
        /* Threads of the case may still run: leave nothing for them to trip over. */
        fflush(NULL);
        _exit(1);
    }
    return elsewhere != 0;
}

static int list(void)
{
    for (const test_case *test = cases; test; test = test->next) {
        if (applies(test))
            puts(test->name);
    }
    return 0;
}

static int check_names(int count, char **names)
{
    int found = 0, wrong = 0;
    for (const test_case *test = cases; test; test = test->next) {
        if (!applies(test))
            continue;
        bool known = false;
        for (int i = 0; i < count; i++)
            known = known || strcmp(names[i], test->name) == 0;
        if (!known) {
            printf("'%s' is not registered with the build\n", test->name);
            wrong = 1;
        }
        found += known;
    }
    if (found != count)
        printf("%d cases are registered with the build, the program has %d of them\n", count,
               found);
    return wrong || found != count || count == 0;
}

static const test_target *find_target(const char *name)
{
    for (size_t i = 0; i < program->target_count; i++) {
        if (strcmp(program->targets[i].name, name) == 0)
            return &program->targets[i];
    }
    return NULL;
}

int test_main(int argc, char **argv, const test_program *with)
{
    program = with;
    int next = 1;
    if (program->targets) {
        target = argc > 1 ? find_target(argv[next++]) : NULL;
        if (!target) {
            fprintf(stderr, "usage: %s TARGET CASE|--list|--check, with TARGET one of\n", argv[0]);
            for (size_t i = 0; i < program->target_count; i++)
                fprintf(stderr, "  %s\n", program->targets[i].name);
            return 2;
        }
    }
    if (argc <= next || strcmp(argv[next], "--list") == 0)
        return list();
    if (strcmp(argv[next], "--check") == 0)
        return check_names(argc - next - 1, argv + next + 1);
    return run_one(argv[next]);
}
