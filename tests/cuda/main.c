/* SPDX-License-Identifier: MIT */
#include "cu_case.h"

static void setup(const test_target *target)
{
    cu_target = target->user; /* opened by start(): some cases fork before */
}

int main(int argc, char **argv)
{
    return test_main(
        argc, argv,
        &(test_program){.targets = cu_targets, .target_count = cu_target_count, .setup = setup});
}
