/* SPDX-License-Identifier: MIT */
#include "vk_probe_icd.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

extern char **environ;

static const char *env_or(const char *name, const char *fallback)
{
    const char *value = getenv(name);
    return value && *value ? value : fallback;
}

static bool known(const vkp_icd_list *list, const char *path)
{
    for (size_t i = 0; i < list->count; i++) {
        if (strcmp(list->items[i].path, path) == 0)
            return true;
    }
    return false;
}

/* A file that is not there is left out: the loader would do the same. */
static bool add_file(vkp_icd_list *list, const char *name, const char *origin)
{
    char *path = realpath(name, NULL);
    if (!path)
        return true;
    if (known(list, path)) {
        free(path);
        return true;
    }
    vkp_icd *items = realloc(list->items, (list->count + 1) * sizeof *items);
    if (!items) {
        free(path);
        return false;
    }
    list->items = items;
    list->items[list->count++] = (vkp_icd){path, origin};
    return true;
}

static bool is_json(const char *name)
{
    size_t length = strlen(name);
    return length > 5 && strcmp(name + length - 5, ".json") == 0;
}

/* In the order of their names, so that two runs report alike. */
static bool add_folder(vkp_icd_list *list, const char *base, const char *below)
{
    char folder[PATH_MAX];
    struct dirent **entries = NULL;
    snprintf(folder, sizeof folder, "%s%s/vulkan/icd.d", base, below);
    int count = scandir(folder, &entries, NULL, alphasort);
    bool ok = true;
    for (int i = 0; i < count; i++) {
        char file[PATH_MAX + 257];
        snprintf(file, sizeof file, "%s/%s", folder, entries[i]->d_name);
        if (is_json(entries[i]->d_name))
            ok = add_file(list, file, "standard folder") && ok;
        free(entries[i]);
    }
    free(entries);
    return ok;
}

typedef bool (*add_fn)(vkp_icd_list *list, const char *part, const char *argument);

/* Calls `add` for each part of a list that ':' separates. */
static bool each_part(vkp_icd_list *list, const char *parts, add_fn add, const char *argument)
{
    bool ok = true;
    char *copy = strdup(parts), *rest = NULL;
    if (!copy)
        return false;
    for (char *part = strtok_r(copy, ":", &rest); part; part = strtok_r(NULL, ":", &rest))
        ok = add(list, part, argument) && ok;
    free(copy);
    return ok;
}

static bool add_standard_folders(vkp_icd_list *list)
{
    const char *home = env_or("HOME", "");
    const char *config = env_or("XDG_CONFIG_HOME", NULL), *data = env_or("XDG_DATA_HOME", NULL);
    bool ok = config ? add_folder(list, config, "") : add_folder(list, home, "/.config");
    ok = each_part(list, env_or("XDG_CONFIG_DIRS", "/etc/xdg"), add_folder, "") && ok;
    ok = add_folder(list, "/etc", "") && ok;
    ok = (data ? add_folder(list, data, "") : add_folder(list, home, "/.local/share")) && ok;
    return each_part(list, env_or("XDG_DATA_DIRS", "/usr/local/share:/usr/share"), add_folder,
                     "") &&
           ok;
}

/* SP_TEST_<NAME>_ICD: how this project's scripts name drivers that are not installed. */
static bool add_test_drivers(vkp_icd_list *list)
{
    bool ok = true;
    for (char **entry = environ; *entry; entry++) {
        const char *value = strchr(*entry, '=');
        if (!value || strncmp(*entry, "SP_TEST_", 8) != 0 || value - *entry < 12 ||
            strncmp(value - 4, "_ICD", 4) != 0)
            continue;
        ok = add_file(list, value + 1, "SP_TEST_*_ICD") && ok;
    }
    return ok;
}

bool vkp_find_icds(vkp_icd_list *list)
{
    const char *only = env_or("VK_DRIVER_FILES", env_or("VK_ICD_FILENAMES", NULL));
    *list = (vkp_icd_list){NULL, 0};
    bool ok = only ? each_part(list, only, add_file, "VK_DRIVER_FILES or VK_ICD_FILENAMES")
                   : add_standard_folders(list);
    ok = each_part(list, env_or("VK_ADD_DRIVER_FILES", ""), add_file, "VK_ADD_DRIVER_FILES") && ok;
    return add_test_drivers(list) && ok;
}

void vkp_free_icds(vkp_icd_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        free(list->items[i].path);
    free(list->items);
    *list = (vkp_icd_list){NULL, 0};
}

void vkp_use_icd(const char *path)
{
    /* The new name and the old one: loaders before 1.3.207 know only the second. */
    setenv("VK_DRIVER_FILES", path, 1);
    setenv("VK_ICD_FILENAMES", path, 1);
    unsetenv("VK_ADD_DRIVER_FILES");
}
