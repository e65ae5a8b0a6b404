#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The functions and constants that a model says it stands for are there.

usage: check_names.py SOURCE_DIR MODEL...
"""

import pathlib
import re
import sys


def names(model):
    text = model.read_text(encoding="utf-8")
    comments = " ".join(re.findall(r"/\*.*?\*/", text, flags=re.S))
    constants = re.findall(r"^#define (SP_\w+)", text, flags=re.M)
    return set(re.findall(r"\b(\w+)\(\)", comments) + constants)


def main(source, *models):
    files = pathlib.Path(source).rglob("*.[ch]")
    words = set(re.findall(r"\w+", " ".join(path.read_text(encoding="utf-8") for path in files)))
    wanted = {(model, name) for model in models for name in names(pathlib.Path(model))}
    missing = sorted(f"{model}: {name}" for model, name in wanted if name not in words)
    print(*missing, sep="\n")
    print(f"{len(wanted)} names in {len(models)} models")
    return 1 if missing or not wanted else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
