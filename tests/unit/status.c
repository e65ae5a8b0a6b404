/* SPDX-License-Identifier: MIT
 *
 * Statuses, names, the last error, the clock.
 */
#include "support/test.h"
#include "support/threads.h"

#include <string.h>

typedef struct known {
    sp_status status;
    const char *name;
    sp_class class_;
    const char *text;
} known;

static const known table[] = {
#define ROW(name, number, class_, text) {SP_##name, "SP_" #name, SP_CLASS_##class_, text},
    SP_STATUS_MAP(ROW)
#undef ROW
};

TEST(each_status_has_name_text_and_class)
{
    for (unsigned i = 0; i < COUNT_OF(table); i++) {
        assert_string_equal(sp_status_name(table[i].status), table[i].name);
        assert_string_equal(sp_status_text(table[i].status), table[i].text);
        CHECK_EQUAL(sp_status_class(table[i].status), table[i].class_);
        for (unsigned j = 0; j < i; j++) {
            CHECK(table[i].status != table[j].status);
            CHECK(strcmp(table[i].text, table[j].text) != 0);
        }
    }
}

TEST(signs_tell_the_sort_of_status)
{
    CHECK_EQUAL(SP_OK, 0);
    for (unsigned i = 0; i < COUNT_OF(table); i++) {
        bool error = strncmp(table[i].name, "SP_ERROR_", 9) == 0;
        CHECK(error == (table[i].status < 0));
        CHECK(!error || table[i].class_ != SP_CLASS_DONE);
        CHECK((table[i].class_ == SP_CLASS_DONE) == (table[i].status == SP_OK));
    }
}

TEST(unknown_numbers)
{
    const int numbers[] = {4, 1000, -19, -1000, INT32_MAX, INT32_MIN};
    for (unsigned i = 0; i < COUNT_OF(numbers); i++) {
        assert_string_equal(sp_status_name((sp_status)numbers[i]), "SP_UNKNOWN");
        CHECK(sp_status_text((sp_status)numbers[i])[0] != '\0');
        CHECK_EQUAL(sp_status_class((sp_status)numbers[i]), SP_CLASS_FATAL);
    }
    assert_string_equal(sp_kind_name((sp_kind)999), "unknown");
    assert_string_equal(sp_kind_name((sp_kind)-1), "unknown");
    assert_string_equal(sp_backend_name((sp_backend)999), "unknown");
    assert_string_equal(sp_backend_name((sp_backend)-1), "unknown");
}

TEST(kinds_and_backends_have_names)
{
    for (int kind = SP_KIND_NOOP; kind <= SP_KIND_DEFERRED; kind++) {
        CHECK(strcmp(sp_kind_name((sp_kind)kind), "unknown") != 0);
        for (int other = 0; other < kind; other++)
            CHECK(strcmp(sp_kind_name((sp_kind)kind), sp_kind_name((sp_kind)other)) != 0);
    }
    for (int backend = SP_BACKEND_CPU; backend <= SP_BACKEND_CUSTOM; backend++) {
        CHECK(strcmp(sp_backend_name((sp_backend)backend), "unknown") != 0);
        for (int other = 0; other < backend; other++)
            CHECK(strcmp(sp_backend_name((sp_backend)backend),
                         sp_backend_name((sp_backend)other)) != 0);
    }
    assert_string_equal(sp_kind_name(SP_KIND_HOST), "host");
    assert_string_equal(sp_backend_name(SP_BACKEND_VULKAN), "vulkan");
}

TEST(version_is_the_headers)
{
    CHECK_EQUAL(sp_version(), SP_VERSION_MAJOR << 16 | SP_VERSION_MINOR << 8 | SP_VERSION_PATCH);
}

/* ---- The last error ---- */

TEST(last_error_before_any)
{
    const sp_error *error = sp_last_error();
    assert_non_null(error);
    CHECK_STATUS(error->status, SP_OK);
    CHECK_STATUS(error->cause, SP_OK);
    CHECK(error->native_call == NULL);
    CHECK_EQUAL(error->native_code, 0);
    CHECK(error->message[0] == '\0');
}

TEST(last_error_tells_the_last_one)
{
    sp_point out = {0}, point = sp_point_noop();
    CHECK_ERROR(sp_poll(NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_point_at(&point, 1, &out), SP_ERROR_NOT_SUPPORTED);
    CHECK_STATUS(sp_last_error()->cause, SP_ERROR_NOT_SUPPORTED);
    CHECK(memchr(sp_last_error()->message, '\0', sizeof(sp_last_error()->message)) != NULL);
    CHECK_STATUS(sp_poll(&point), SP_OK);
    CHECK_STATUS(sp_last_error()->status, SP_ERROR_NOT_SUPPORTED);
}

static void use_other_thread(void *unused)
{
    (void)unused;
    CHECK_STATUS(sp_last_error()->status, SP_OK);
    CHECK_ERROR(sp_poll(NULL), SP_ERROR_INVALID_ARGUMENT);
}

TEST(last_error_is_the_threads_own)
{
    worker other;
    sp_point out = {0}, point = sp_point_noop();
    CHECK_ERROR(sp_point_at(&point, 1, &out), SP_ERROR_NOT_SUPPORTED);
    worker_start(&other, 0, use_other_thread, NULL);
    worker_join(&other);
    CHECK_STATUS(sp_last_error()->status, SP_ERROR_NOT_SUPPORTED);
}

/* ---- Time ---- */

TEST(clock_goes_on)
{
    uint64_t before = sp_now_ns();
    test_sleep_ms(5);
    uint64_t after = sp_now_ns();
    CHECK(after >= before + 5 * MS);
}

TEST(deadlines_saturate)
{
    uint64_t now = sp_now_ns();
    CHECK_EQUAL(sp_deadline_ns(SP_FOREVER), SP_FOREVER);
    CHECK_EQUAL(sp_deadline_ns(SP_FOREVER - 1), SP_FOREVER);
    CHECK_EQUAL(sp_deadline_ns(UINT64_MAX - now), SP_FOREVER);
    CHECK(sp_deadline_ns(0) >= now);
    CHECK(sp_deadline_ns(1000) >= now + 1000);
    uint64_t half = sp_deadline_ns((uint64_t)INT64_MAX);
    CHECK(half >= (uint64_t)INT64_MAX);
    CHECK(sp_deadline_ns((uint64_t)INT64_MAX + 1) > (uint64_t)INT64_MAX);
    CHECK_EQUAL(SP_TIMEOUT_DEFAULT, UINT64_C(10000000000));
}
