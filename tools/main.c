/* SPDX-License-Identifier: MIT
 *
 * The `syncpoint` command: finds the subcommand and hands over.
 */
#include "commands.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <syncpoint/syncpoint.h>

struct command {
    const char *name;
    const char *summary; /* NULL: not listed */
    int (*run)(int argc, char **argv);
};

static int run_help(int argc, char **argv);
static int run_version(int argc, char **argv);

static const struct command commands[] = {
    {"demo", "hand rendered frames from one process to another, and check every pixel",
     sp_cmd_demo},
    {"info", "what the drivers of this machine can wait for, signal, export and import",
     sp_cmd_info},
    {"version", "the version of the library", run_version},
    {"help", "this text", run_help},
    {DEMO_PRODUCER_COMMAND, NULL, sp_cmd_demo_producer},
};
#define COMMAND_COUNT (sizeof commands / sizeof commands[0])

static const char *speaker = "syncpoint";

void tool_set_name(const char *name)
{
    speaker = name;
}

void tool_error(const char *format, ...)
{
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    /* One write: two processes share this stderr. */
    fprintf(stderr, "%s: %s\n", speaker, text);
}

static void print_usage(FILE *file)
{
    fputs("usage: syncpoint COMMAND [OPTION...]\n\n", file);
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (commands[i].summary)
            fprintf(file, "  %-9s %s\n", commands[i].name, commands[i].summary);
    }
    fputs("\n`syncpoint COMMAND --help` lists a command's options.\n", file);
}

static int run_help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    print_usage(stdout);
    return TOOL_EXIT_GOOD;
}

static int run_version(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    const uint32_t version = sp_version();
    printf("syncpoint %u.%u.%u\n", version >> 16, (version >> 8) & 0xff, version & 0xff);
    return TOOL_EXIT_GOOD;
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        print_usage(stderr);
        return TOOL_EXIT_FAILED;
    }
    const char *name = argv[1];
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, commands[i].name) == 0)
            return commands[i].run(argc - 1, argv + 1);
    }
    tool_error("no command '%s'; `syncpoint help` lists them", name);
    return TOOL_EXIT_FAILED;
}
