/* SPDX-License-Identifier: MIT */
#include "loop.h"

watch *watched[WATCH_LIMIT];
size_t watched_count;

static const loop_ops *loop;

void watched_add(watch *self)
{
    CHECK(watched_count < WATCH_LIMIT);
    watched[watched_count++] = self;
}

void watched_remove(watch *self)
{
    for (size_t i = 0; i < watched_count; i++) {
        if (watched[i] == self)
            watched[i] = NULL;
    }
}

void watched_compact(void)
{
    size_t kept = 0;
    for (size_t i = 0; i < watched_count; i++) {
        if (watched[i])
            watched[kept++] = watched[i];
    }
    watched_count = kept;
}

void loop_add(watch *self, int fd, void (*ready)(watch *self))
{
    *self = (watch){.fd = fd, .ready = ready};
    loop->add(self);
}

void loop_remove(watch *self)
{
    loop->remove(self);
    self->ready = NULL;
}

void loop_turn(void)
{
    loop->turn(100);
}

bool loop_until(const unsigned *counter, unsigned target)
{
    uint64_t end = sp_now_ns() + PATIENCE_NS;
    while (*counter < target && sp_now_ns() < end)
        loop->turn(100);
    return *counter == target;
}

void loop_idle(unsigned ms)
{
    uint64_t end = sp_now_ns() + ms * MS;
    for (uint64_t now; (now = sp_now_ns()) < end;)
        loop->turn((int)((end - now) / MS) + 1);
}

static void setup(const test_target *target)
{
    loop = target->user;
    loop->open();
}

static void teardown(void)
{
    loop->close();
}

int main(int argc, char **argv)
{
    const test_target targets[] = {
        {.name = "epoll-edge", .user = (void *)&loop_epoll_edge},
        {.name = "epoll", .features = LEVEL, .user = (void *)&loop_epoll},
        {.name = "poll", .features = LEVEL, .user = (void *)&loop_poll},
        {.name = "select", .features = LEVEL, .user = (void *)&loop_select},
#if defined(SP_TEST_IO_URING)
        {.name = "io_uring", .features = LEVEL, .user = (void *)&loop_io_uring},
#endif
#if defined(SP_TEST_LIBUV)
        {.name = "libuv", .features = LEVEL, .user = (void *)&loop_libuv},
#endif
#if defined(SP_TEST_GLIB)
        {.name = "glib", .features = LEVEL, .user = (void *)&loop_glib},
#endif
    };
    const test_program program = {.targets = targets,
                                  .target_count = COUNT_OF(targets),
                                  .setup = setup,
                                  .teardown = teardown};
    return test_main(argc, argv, &program);
}
