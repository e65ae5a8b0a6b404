/* SPDX-License-Identifier: MIT */
#include "demo_options.h"

#include "commands.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FRAMES_DEFAULT 300u
#define FRAMES_NO_WAIT 60u
#define FRAMES_MAX 1000000u

static const char usage[] =
    "usage: syncpoint demo [OPTION...]\n"
    "\n"
    "A producer process renders a moving picture into a ring of three shared images. This process\n"
    "makes its queue wait for each frame, copies it, compares every pixel with what that frame\n"
    "must be, and gives the slot back. Both directions wait on the device only.\n"
    "\n"
    "  --frames N              how many frames (300; with --break=no-wait 60, with\n"
    "                          --break=no-signal always 11)\n"
    "  --slow                  delay each frame on the producer's GPU by some 30 ms\n"
    "  --break=no-wait         leave out the consumer's wait (implies --slow): torn frames appear\n"
    "  --break=no-signal       leave out frame 10's signal: the consumer must not go on\n"
    "  --device NAME-PART      a device of the system's Vulkan loader whose name has this in it\n"
    "  --swiftshader-icd FILE  SwiftShader's manifest, for the device used without --device;\n"
    "                          else $SP_TEST_SWIFTSHADER_ICD, else vk_swiftshader_icd.json beside\n"
    "                          this program\n"
    "  --validate              with the Vulkan validation layer; a message is a failure\n"
    "  --out DIR               where to write demo.png and demo.json (.)\n"
    "  --help                  this text\n"
    "\n"
    "Without opaque fds it falls back to one process with two threads, and says so.\n"
    "Exit status: 0 all frames came and none was torn; 1 torn frames, a signal that did not come,\n"
    "handles that were not closed, or validation messages; 2 it could not run, or a --break was\n"
    "not caught.\n";

enum option_id {
    OPTION_FRAMES = 1,
    OPTION_SLOW,
    OPTION_BREAK,
    OPTION_DEVICE,
    OPTION_ICD,
    OPTION_VALIDATE,
    OPTION_OUT,
    OPTION_HELP
};

static const struct option long_options[] = {
    {"frames", required_argument, NULL, OPTION_FRAMES},
    {"slow", no_argument, NULL, OPTION_SLOW},
    {"break", required_argument, NULL, OPTION_BREAK},
    {"device", required_argument, NULL, OPTION_DEVICE},
    {"swiftshader-icd", required_argument, NULL, OPTION_ICD},
    {"validate", no_argument, NULL, OPTION_VALIDATE},
    {"out", required_argument, NULL, OPTION_OUT},
    {"help", no_argument, NULL, OPTION_HELP},
    {NULL, 0, NULL, 0},
};

static bool parse_frames(const char *text, uint32_t *frames)
{
    char *end;
    errno = 0;
    const unsigned long number = strtoul(text, &end, 10);
    if (errno || end == text || *end || text[0] == '-' || number < 1 || number > FRAMES_MAX) {
        tool_error("--frames takes a number from 1 to %u, not '%s'", FRAMES_MAX, text);
        return false;
    }
    *frames = (uint32_t)number;
    return true;
}

static bool parse_break(const char *text, enum demo_break *broken)
{
    if (strcmp(text, "no-wait") == 0) {
        *broken = DEMO_BREAK_NO_WAIT;
    } else if (strcmp(text, "no-signal") == 0) {
        *broken = DEMO_BREAK_NO_SIGNAL;
    } else {
        tool_error("--break takes no-wait or no-signal, not '%s'", text);
        return false;
    }
    return true;
}

static bool apply_option(int option, const char *value, struct demo_options *options)
{
    switch (option) {
    case OPTION_FRAMES:
        return parse_frames(value, &options->frames);
    case OPTION_BREAK:
        return parse_break(value, &options->broken);
    case OPTION_SLOW:
        options->slow = true;
        return true;
    case OPTION_VALIDATE:
        options->validate = true;
        return true;
    case OPTION_DEVICE:
        options->device = value;
        return true;
    case OPTION_ICD:
        options->swiftshader_icd = value;
        return true;
    case OPTION_OUT:
        options->out = value;
        return true;
    default:
        return false; /* getopt_long() has said why */
    }
}

/* What one option means for others. */
static bool settle(struct demo_options *options)
{
    if (options->device && options->swiftshader_icd) {
        tool_error("--device and --swiftshader-icd exclude each other");
        return false;
    }
    if (options->broken == DEMO_BREAK_NO_WAIT)
        options->slow = true;
    if (options->broken == DEMO_BREAK_NO_SIGNAL) {
        if (options->frames) {
            tool_error("--break=no-signal ends with frame %u: leave --frames out",
                       DEMO_WITHHELD_FRAME);
            return false;
        }
        options->frames = DEMO_WITHHELD_FRAME + 1;
    }
    if (!options->frames)
        options->frames = options->broken ? FRAMES_NO_WAIT : FRAMES_DEFAULT;
    return true;
}

bool demo_parse_options(int argc, char **argv, struct demo_options *options, int *exit_status)
{
    *options = (struct demo_options){.out = "."};
    *exit_status = TOOL_EXIT_FAILED;
    optind = 1;
    int option;
    while ((option = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (option == OPTION_HELP) {
            fputs(usage, stdout);
            *exit_status = TOOL_EXIT_GOOD;
            return false;
        }
        if (!apply_option(option, optarg, options))
            return false;
    }
    if (optind < argc) {
        tool_error("'%s' is no option of the demo", argv[optind]);
        return false;
    }
    return settle(options);
}
