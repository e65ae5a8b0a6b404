#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Explores a model with spin, to its last state.

Passes if nothing is violated. With --breaks: if something is, and spin's word for it has that text.
"""

import argparse
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile

MEGABYTES = 800
DEPTH = 10000
CUT_SHORT = ("Search not completed", "max search depth too small", "out of memory")


def parse_arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", type=pathlib.Path)
    parser.add_argument("-D", dest="switches", action="append", default=[], metavar="SWITCH")
    parser.add_argument("--cycles", action="store_true", help="each cycle is an error")
    parser.add_argument("--breaks", metavar="TEXT", help="what spin must say")
    parser.add_argument("--spin", default="spin")
    parser.add_argument("--cc", default="cc")
    return parser.parse_args()


def run(folder, *command):
    done = subprocess.run(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, errors="replace")
    if done.returncode != 0:
        sys.exit(f"{shlex.join(command)}: exit {done.returncode}\n{done.stdout}")
    return done.stdout


def explore(folder, args, switches):
    """Has spin write the explorer, builds it, runs it; what it prints."""
    run(folder, args.spin, *switches, "-a", str(args.model))
    kind = ["-DNP"] if args.cycles else ["-DSAFETY", "-DNOCLAIM"]
    # What goes wrong is found soon; there, building takes longer.
    level = "-O0" if args.breaks else "-O2"
    run(folder, *shlex.split(args.cc), "-w", level, "-DCOLLAPSE", f"-DMEMLIM={MEGABYTES}", *kind,
        "-o", "pan", "pan.c")
    return run(folder, "./pan", f"-m{DEPTH}", "-w22", *(["-l"] if args.cycles else []))


def print_way(folder, args, switches):
    """The steps to what spin has found."""
    trail = next(pathlib.Path(folder).glob("*.trail"), None)
    if trail:
        print(run(folder, args.spin, *switches, "-p", "-g", "-k", str(trail), str(args.model)))


def main():
    args = parse_arguments()
    args.model = args.model.resolve()
    switches = [f"-D{switch}" for switch in args.switches]
    with tempfile.TemporaryDirectory(prefix="model-") as folder:
        output = explore(folder, args, switches)
        states = re.search(r"(\d+) states, stored", output)
        errors = re.search(r"errors: (\d+)", output)
        found = re.search(r"^pan:1: (.*) \(at depth \d+\)$", output, flags=re.M)
        if not states or not errors:
            sys.exit(f"no result:\n{output}")
        print(f"{states.group(1)} states; {found.group(1) if found else 'nothing is violated'}")
        if args.breaks:
            return 0 if found and args.breaks in found.group(1) else 1
        if found:
            print_way(folder, args, switches)
        short = [line for line in output.splitlines() if any(text in line for text in CUT_SHORT)]
        print(*short, sep="\n")
        return 0 if errors.group(1) == "0" and not found and not short else 1


if __name__ == "__main__":
    sys.exit(main())
