#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the shared library shows to the outside.

usage: check_symbols.py LIBRARY HEADER...

Every function and variable that a public header declares is exported, nothing else is, the SONAME is the major
version's, and no GPU driver or loader is linked.
"""

import re
import subprocess
import sys

ALLOWED_LIBRARIES = re.compile(r"(libc|libm|libdl|libpthread|librt|libgcc_s|ld-linux[\w-]*)\.so\.\d+$")
SONAME = "libsyncpoint.so.0"


def declared(headers):
    names = set()
    for path in headers:
        with open(path, encoding="utf-8") as file:
            text = re.sub(r"/\*.*?\*/", " ", file.read(), flags=re.S)
        for declaration in re.findall(r"^SP_API\b([^;{]*)", text, flags=re.M):
            names.add(re.search(r"\b(sp_\w+)\s*(\(|$)", declaration).group(1))
    return names


def output(*command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def exported(library):
    symbols = (line.split() for line in output("nm", "-D", "--defined-only", library).splitlines())
    # An absolute symbol is the version node's own name.
    return {fields[2].split("@")[0] for fields in symbols if fields[1] != "A"}


def dynamic(library, tag):
    return re.findall(rf"\({tag}\).*\[(.*)\]", output("readelf", "-d", library))


def main(library, headers):
    problems = []
    in_headers, in_library = declared(headers), exported(library)
    if not in_headers:
        problems.append("the headers declare nothing: is the pattern in this test right?")
    problems += [f"declared, not exported: {name}" for name in sorted(in_headers - in_library)]
    problems += [f"exported, not declared: {name}" for name in sorted(in_library - in_headers)]
    problems += [
        f"links {name}" for name in dynamic(library, "NEEDED") if not ALLOWED_LIBRARIES.match(name)
    ]
    if dynamic(library, "SONAME") != [SONAME]:
        problems.append(f"SONAME is {dynamic(library, 'SONAME')}, not {SONAME}")
    print(*problems, sep="\n")
    print(f"{len(in_headers)} functions declared, {len(in_library)} symbols exported")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
