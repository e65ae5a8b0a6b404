/* SPDX-License-Identifier: MIT
 *
 * Making a reactor: what its description says, and what is refused.
 */
#include "async_case.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

/* Is a thread of this name there? */
static bool thread_is_named(const char *name)
{
    DIR *folder = opendir("/proc/self/task");
    bool found = false;
    assert_non_null(folder);
    for (struct dirent *entry; !found && (entry = readdir(folder)) != NULL;) {
        char path[300], text[32] = "";
        snprintf(path, sizeof(path), "/proc/self/task/%s/comm", entry->d_name);
        FILE *file = fopen(path, "r");
        if (file && fgets(text, sizeof(text), file)) {
            text[strcspn(text, "\n")] = '\0';
            found = strcmp(text, name) == 0;
        }
        if (file)
            fclose(file);
    }
    closedir(folder);
    return found;
}

static bool is_named(const void *name)
{
    return thread_is_named(name);
}

TEST(threads)
{
    unsigned one = drive == SP_REACTOR_THREAD;
    unsigned before = thread_count();
    sp_reactor *other = make_reactor();
    CHECK_EQUAL(thread_count(), before + one);
    if (one)
        CHECK(go_on_until(other, is_named, "test"));
    else
        CHECK(!thread_is_named("test"));
    destroy_reactor(&other);
    check_thread_count(before);
}

TEST_NEEDING(long_names_are_cut, ON_THREAD)
{
    char name[] = "fifteen bytes long and more";
    const sp_reactor_desc desc = {.size = sizeof(desc), .name = name};
    sp_reactor *named = NULL;
    CHECK_STATUS(sp_reactor_create(&desc, &named), SP_OK);
    memset(name, '#', sizeof(name) - 1); /* duplicated */
    CHECK(go_on_until(named, is_named, "fifteen bytes l"));
    destroy_reactor(&named);
}

static void heard(void *user, sp_status status)
{
    CHECK_STATUS(status, SP_OK);
    flag_set(user);
}

TEST_NEEDING(no_description_is_a_thread, ON_THREAD)
{
    flag done = {0};
    sp_reactor *plain = NULL;
    const sp_point point = sp_point_cpu();
    unsigned before = thread_count();
    CHECK_STATUS(sp_reactor_create(NULL, &plain), SP_OK);
    CHECK_EQUAL(thread_count(), before + 1);
    CHECK_STATUS(sp_notify(plain, &point, 0, heard, &done, NULL), SP_OK);
    CHECK(flag_wait(&done));
    destroy_reactor(&plain);
}

static void never_logged(void *user, sp_log_level level, const char *message)
{
    (void)user;
    (void)level;
    print_error("logged: %s\n", message);
    CHECK(false);
}

TEST(each_pace_notices)
{
    for (int pace = SP_PACE_BALANCED; pace <= SP_PACE_POWER; pace++) {
        const sp_reactor_desc desc = {.size = sizeof(desc),
                                      .drive = drive,
                                      .pace = (sp_pace)pace,
                                      .log = {.fn = never_logged}};
        late_signal late;
        listener one = {0};
        source from = source_make(SORT_PROBE);
        sp_point point = source_point(&from, 1);
        CHECK_STATUS(sp_reactor_create(&desc, &one.reactor), SP_OK);
        CHECK_STATUS(try_to_listen(&one, &point, SP_FOREVER), SP_OK);
        signal_late(&late, &from, 1);
        CHECK_HEARD(&one, SP_OK);
        join_not_early(&late);
        destroy_reactor(&one.reactor);
        sp_point_unref(&point);
        source_end(&from);
    }
}

TEST(refused)
{
    sp_reactor *const marked = (sp_reactor *)(uintptr_t)16;
    const sp_reactor_desc good = {.size = sizeof(good), .drive = drive};
    sp_reactor_desc bad[5] = {good, good, good, good, good};
    bad[0].size = 0;
    bad[1].size = sizeof(good) + 8;
    bad[2].drive = (sp_reactor_drive)2;
    bad[3].pace = (sp_pace)3;
    bad[4].pace = (sp_pace)-1;
    for (unsigned i = 0; i < COUNT_OF(bad); i++) {
        sp_reactor *out = marked;
        CHECK_ERROR(sp_reactor_create(&bad[i], &out), SP_ERROR_INVALID_ARGUMENT);
        CHECK(out == marked);
    }
    CHECK_ERROR(sp_reactor_create(&good, NULL), SP_ERROR_INVALID_ARGUMENT);
    CHECK_STATUS(sp_reactor_destroy(NULL), SP_OK);
}

/* With 0, 1, 2, ... handles left, until it works. */
TEST(no_handle_to_be_had)
{
    sp_reactor *const marked = (sp_reactor *)(uintptr_t)16;
    const sp_reactor_desc desc = {.size = sizeof(desc), .drive = drive};
    unsigned open = census_open_handles(), threads = thread_count();
    rlim_t lowest = (rlim_t)census_free_number();
    struct rlimit limit;
    CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
    const rlim_t usual = limit.rlim_cur;
    for (unsigned left = 0;; left++) {
        sp_reactor *out = marked;
        limit.rlim_cur = lowest + left;
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        sp_status status = sp_reactor_create(&desc, &out);
        const sp_error error = *sp_last_error();
        limit.rlim_cur = usual;
        CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
        if (status == SP_OK) {
            destroy_reactor(&out);
            return;
        }
        CHECK_STATUS(status, SP_ERROR_SYSTEM);
        CHECK_EQUAL(error.native_code, EMFILE);
        CHECK(out == marked);
        CHECK_HANDLES(open);
        check_thread_count(threads);
        CHECK(left < 16);
    }
}
