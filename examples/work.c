/* SPDX-License-Identifier: MIT */
#include "work.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void *end_them(void *user)
{
    work *self = user;
    nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
    must(sp_host_timeline_signal(self->rendering, 1));
    must(sp_slot_set(self->uploading, &self->points[RENDER]));
    must(sp_host_timeline_fail(self->decoding, SP_ERROR_PEER_CLOSED, "the file is cut off"));
    return NULL;
}

void work_start(work *self)
{
    *self = (work){.names = {"render", "upload", "decode"}};
    must(sp_host_timeline_create(0, &self->rendering));
    must(sp_host_timeline_create(0, &self->decoding));
    must(sp_slot_create(&self->uploading));
    must(sp_host_timeline_point(self->rendering, 1, &self->points[RENDER]));
    must(sp_slot_point(self->uploading, &self->points[UPLOAD]));
    must(sp_host_timeline_point(self->decoding, 1, &self->points[DECODE]));
    if (pthread_create(&self->thread, NULL, end_them, self) != 0)
        abort();
}

void work_finish(work *self)
{
    pthread_join(self->thread, NULL);
    for (int i = 0; i < WORK_COUNT; i++)
        sp_point_unref(&self->points[i]);
    sp_host_timeline_destroy(self->rendering);
    sp_host_timeline_destroy(self->decoding);
    sp_slot_destroy(self->uploading);
}

void must(sp_status status)
{
    if (status == SP_OK)
        return;
    const char *why = status < 0 ? sp_last_error()->message : sp_status_text(status);
    fprintf(stderr, "%s: %s\n", sp_status_name(status), why);
    exit(1);
}
