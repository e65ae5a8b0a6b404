/* SPDX-License-Identifier: MIT */
#include "support/test.h"

int main(int argc, char **argv)
{
    return test_main(argc, argv, &(test_program){0});
}
