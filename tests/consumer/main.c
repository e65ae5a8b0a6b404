/* SPDX-License-Identifier: MIT
 *
 * The smallest user of the library: a software timeline, a point, a wait. Prints the version.
 */
#include <stdio.h>

#include <syncpoint/handoff.h>
#include <syncpoint/syncpoint.h>

int main(void)
{
    sp_host_timeline *timeline = NULL;
    sp_point point = {0};
    uint32_t version = sp_version();

    if (sp_host_timeline_create(0, &timeline) != SP_OK)
        return 1;
    if (sp_host_timeline_point(timeline, 1, &point) != SP_OK)
        return 2;
    if (sp_wait_timeout(&point, 0) != SP_TIMEOUT)
        return 3;
    if (sp_host_timeline_signal(timeline, 1) != SP_OK || sp_wait(&point) != SP_OK)
        return 4;
    sp_point_unref(&point);
    sp_host_timeline_destroy(timeline);

    printf("%u.%u.%u\n", (unsigned)(version >> 16), (unsigned)(version >> 8 & 0xff),
           (unsigned)(version & 0xff));
    return 0;
}
