/* SPDX-License-Identifier: MIT
 *
 * The synchronizers that need no API, and what all have in common.
 */
#include "support/census.h"
#include "support/test.h"

#include <string.h>
#include <syncpoint/handoff.h>
#include <sys/eventfd.h>
#include <sys/wait.h>
#include <unistd.h>

static const sp_mechanism mechanisms[] = {
    SP_MECHANISM_NONE,
    SP_MECHANISM_IMPLICIT_GL_FLUSH,
    SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE,
    SP_MECHANISM_EXPLICIT_FENCE,
};

static sp_frame frame_of(sp_frame_kind kind)
{
    return (sp_frame){.size = sizeof(sp_frame), .kind = kind, .semaphore_fd = -1};
}

static sp_texture texture_of(sp_frame_kind kind)
{
    return (sp_texture){.size = sizeof(sp_texture), .kind = kind};
}

static bool is_explicit(sp_mechanism mechanism)
{
    return mechanism == SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE ||
           mechanism == SP_MECHANISM_EXPLICIT_FENCE;
}

static void check_nothing_queued(sp_synchronizer *synchronizer)
{
    sp_point gate = test_marked_point();
    CHECK_STATUS(sp_synchronizer_last_gate(synchronizer, &gate), SP_OK);
    CHECK_EQUAL(gate.kind, SP_KIND_NOOP);
    CHECK_STATUS(sp_poll(&gate), SP_OK);
    sp_point_unref(&gate);
}

TEST(noop_accepts_everything)
{
    sp_synchronizer *noop = NULL;
    CHECK_STATUS(sp_synchronizer_create_noop(&noop), SP_OK);
    for (unsigned i = 0; i < COUNT_OF(mechanisms); i++) {
        for (int kind = SP_FRAME_UNKNOWN; kind <= SP_FRAME_GL_TEXTURE; kind++) {
            sp_frame frame = frame_of((sp_frame_kind)kind);
            sp_texture texture = texture_of((sp_frame_kind)kind);
            CHECK_STATUS(sp_synchronizer_producer_complete(noop, &frame, mechanisms[i]), SP_OK);
            CHECK_STATUS(sp_synchronizer_consumer_ready(noop, &texture, mechanisms[i]), SP_OK);
        }
    }
    check_nothing_queued(noop);
    CHECK_STATUS(sp_synchronizer_destroy(noop, 0), SP_OK);
}

TEST(implicit_refuses_what_is_explicit)
{
    sp_synchronizer *implicit = NULL;
    CHECK_STATUS(sp_synchronizer_create_implicit(&implicit), SP_OK);
    for (unsigned i = 0; i < COUNT_OF(mechanisms); i++) {
        sp_frame frame = frame_of(SP_FRAME_VULKAN_OPAQUE_FD);
        sp_texture texture = texture_of(SP_FRAME_VULKAN_OPAQUE_FD);
        if (is_explicit(mechanisms[i])) {
            CHECK_ERROR(sp_synchronizer_producer_complete(implicit, &frame, mechanisms[i]),
                        SP_ERROR_UNSUPPORTED_SYNCHRONIZATION);
            CHECK_ERROR(sp_synchronizer_consumer_ready(implicit, &texture, mechanisms[i]),
                        SP_ERROR_UNSUPPORTED_SYNCHRONIZATION);
        } else {
            CHECK_STATUS(sp_synchronizer_producer_complete(implicit, &frame, mechanisms[i]), SP_OK);
            CHECK_STATUS(sp_synchronizer_consumer_ready(implicit, &texture, mechanisms[i]), SP_OK);
        }
    }
    check_nothing_queued(implicit);
    CHECK_STATUS(sp_synchronizer_destroy(implicit, 0), SP_OK);
}

TEST(implicit_refuses_unknown_mechanisms)
{
    const int unknown[] = {4, 31, 32, 33, 1000, -1, INT32_MAX, INT32_MIN};
    sp_synchronizer *implicit = NULL;
    CHECK_STATUS(sp_synchronizer_create_implicit(&implicit), SP_OK);
    for (unsigned i = 0; i < COUNT_OF(unknown); i++) {
        sp_frame frame = frame_of(SP_FRAME_GL_TEXTURE);
        CHECK_ERROR(sp_synchronizer_producer_complete(implicit, &frame, (sp_mechanism)unknown[i]),
                    SP_ERROR_UNSUPPORTED_SYNCHRONIZATION);
        assert_string_equal(sp_mechanism_name((sp_mechanism)unknown[i]), "unknown");
    }
    CHECK_STATUS(sp_synchronizer_destroy(implicit, 0), SP_OK);
}

TEST(mechanisms_have_names)
{
    assert_string_equal(sp_mechanism_name(SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE),
                        "explicit-external-semaphore");
    for (unsigned i = 0; i < COUNT_OF(mechanisms); i++) {
        CHECK(strcmp(sp_mechanism_name(mechanisms[i]), "unknown") != 0);
        for (unsigned j = 0; j < i; j++)
            CHECK(strcmp(sp_mechanism_name(mechanisms[i]), sp_mechanism_name(mechanisms[j])) != 0);
    }
}

static void check_arguments(sp_synchronizer *any)
{
    sp_frame frame = frame_of(SP_FRAME_UNKNOWN);
    sp_texture texture = texture_of(SP_FRAME_UNKNOWN);
    sp_point marked = test_marked_point(), out = marked;
    CHECK_ERROR(sp_synchronizer_producer_complete(NULL, &frame, SP_MECHANISM_NONE),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_synchronizer_producer_complete(any, NULL, SP_MECHANISM_NONE),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_synchronizer_consumer_ready(NULL, &texture, SP_MECHANISM_NONE),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_synchronizer_consumer_ready(any, NULL, SP_MECHANISM_NONE),
                SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_synchronizer_last_gate(NULL, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_synchronizer_last_gate(any, NULL), SP_ERROR_INVALID_ARGUMENT);
    const size_t sizes[] = {0, 1, sizeof(frame) + 8};
    for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
        frame.size = texture.size = sizes[i];
        CHECK_ERROR(sp_synchronizer_producer_complete(any, &frame, SP_MECHANISM_NONE),
                    SP_ERROR_INVALID_ARGUMENT);
        CHECK_ERROR(sp_synchronizer_consumer_ready(any, &texture, SP_MECHANISM_NONE),
                    SP_ERROR_INVALID_ARGUMENT);
    }
    CHECK(test_same_point(&out, &marked));
}

TEST(bad_arguments)
{
    sp_synchronizer *noop = NULL, *implicit = NULL;
    CHECK_ERROR(sp_synchronizer_create_noop(NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_synchronizer_create_implicit(NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_STATUS(sp_synchronizer_create_noop(&noop), SP_OK);
    CHECK_STATUS(sp_synchronizer_create_implicit(&implicit), SP_OK);
    check_arguments(noop);
    check_arguments(implicit);
    CHECK_STATUS(sp_synchronizer_destroy(noop, 0), SP_OK);
    CHECK_STATUS(sp_synchronizer_destroy(implicit, SP_FOREVER), SP_OK);
    CHECK_STATUS(sp_synchronizer_destroy(NULL, 0), SP_OK);
}

TEST(vulkan_needs_a_vulkan_host)
{
    sp_synchronizer *out = (sp_synchronizer *)16;
    sp_host host = {.size = sizeof(host), .backend = SP_BACKEND_OPENGL};
    CHECK_ERROR(sp_synchronizer_create_vulkan(NULL, &out), SP_ERROR_INVALID_ARGUMENT);
    CHECK_ERROR(sp_synchronizer_create_vulkan(&host, NULL), SP_ERROR_INVALID_ARGUMENT);
#ifdef SP_TEST_VULKAN
    for (int backend = SP_BACKEND_CPU; backend <= SP_BACKEND_CUSTOM; backend++) {
        host.backend = (sp_backend)backend;
        if (backend != SP_BACKEND_VULKAN)
            CHECK_ERROR(sp_synchronizer_create_vulkan(&host, &out), SP_ERROR_BACKEND_MISMATCH);
    }
    host.backend = SP_BACKEND_VULKAN;
    CHECK_ERROR(sp_synchronizer_create_vulkan(&host, &out), SP_ERROR_INVALID_ARGUMENT);
    host.size--;
    CHECK_ERROR(sp_synchronizer_create_vulkan(&host, &out), SP_ERROR_INVALID_ARGUMENT);
#else
    CHECK_ERROR(sp_synchronizer_create_vulkan(&host, &out), SP_ERROR_NOT_SUPPORTED);
    host.backend = SP_BACKEND_VULKAN;
    CHECK_ERROR(sp_synchronizer_create_vulkan(&host, &out), SP_ERROR_NOT_SUPPORTED);
#endif
    CHECK(out == (sp_synchronizer *)16);
}

/* F1 */
TEST(F1_child_of_a_fork)
{
    sp_synchronizer *noop = NULL;
    sp_frame frame = frame_of(SP_FRAME_UNKNOWN);
    sp_texture texture = texture_of(SP_FRAME_UNKNOWN);
    CHECK_STATUS(sp_synchronizer_create_noop(&noop), SP_OK);
    pid_t child = fork();
    if (child == 0) {
        sp_point gate = {0};
        int wrong = 0;
        wrong +=
            sp_synchronizer_producer_complete(noop, &frame, SP_MECHANISM_NONE) != SP_ERROR_FORKED;
        wrong +=
            sp_synchronizer_consumer_ready(noop, &texture, SP_MECHANISM_NONE) != SP_ERROR_FORKED;
        wrong += sp_synchronizer_last_gate(noop, &gate) != SP_ERROR_FORKED;
        wrong += sp_synchronizer_destroy(noop, SP_FOREVER) != SP_ERROR_FORKED;
        _exit(wrong);
    }
    int status = 0;
    CHECK(waitpid(child, &status, 0) == child);
    CHECK(WIFEXITED(status));
    CHECK_EQUAL(WEXITSTATUS(status), 0);
    CHECK_STATUS(sp_synchronizer_producer_complete(noop, &frame, SP_MECHANISM_NONE), SP_OK);
    CHECK_STATUS(sp_synchronizer_destroy(noop, 0), SP_OK);
}

/* Whoever takes the frame takes its fd, also a synchronizer that has no use for it. */
TEST(noop_takes_what_is_adopted)
{
    sp_synchronizer *noop = NULL, *implicit = NULL;
    CHECK_STATUS(sp_synchronizer_create_noop(&noop), SP_OK);
    CHECK_STATUS(sp_synchronizer_create_implicit(&implicit), SP_OK);
    sp_frame frame = SP_FRAME_INIT;
    CHECK_EQUAL(frame.size, sizeof(frame));
    CHECK_EQUAL(frame.semaphore_fd, -1);
    frame.adopt_fd = true;
    frame.semaphore_fd = eventfd(0, EFD_CLOEXEC);
    const sp_mechanism explicits = SP_MECHANISM_EXPLICIT_EXTERNAL_SEMAPHORE;
    CHECK_ERROR(sp_synchronizer_producer_complete(implicit, &frame, explicits),
                SP_ERROR_UNSUPPORTED_SYNCHRONIZATION);
    CHECK_STATUS(sp_synchronizer_producer_complete(noop, &frame, SP_MECHANISM_NONE), SP_OK);
    CHECK(census_is_open(frame.semaphore_fd));
    CHECK_STATUS(sp_synchronizer_producer_complete(noop, &frame, explicits), SP_OK);
    CHECK(!census_is_open(frame.semaphore_fd));
    CHECK_STATUS(sp_synchronizer_destroy(noop, 0), SP_OK);
    CHECK_STATUS(sp_synchronizer_destroy(implicit, 0), SP_OK);
}

TEST(frame_kinds_have_names)
{
    for (int kind = SP_FRAME_VULKAN_OPAQUE_FD; kind <= SP_FRAME_GL_TEXTURE; kind++)
        CHECK(strcmp(sp_frame_kind_name((sp_frame_kind)kind), "unknown") != 0);
    assert_string_equal(sp_frame_kind_name((sp_frame_kind)99), "unknown");
}
