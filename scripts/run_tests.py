#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Builds every variant and runs its tests.

Ends with one line `N passed, N failed, N skipped`. Exits non-zero on a failure, and on a skip that
tests/allowed-skips.txt does not name.
"""

import argparse
import dataclasses
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
BUILD = ROOT / "build" / "test"
LOGS = ROOT / "build" / "logs"
ALLOWED_SKIPS = ROOT / "tests" / "allowed-skips.txt"
PROJECT = "syncpoint"
SLOW = "slow"

GCC = {"CC": "gcc", "CXX": "g++"}
CLANG = {"CC": "clang", "CXX": "clang++"}
DEBUG = ["-Dbuildtype=debug", "-Dwerror=true", "-Dlibdir=lib"]
EVERYTHING = DEBUG + ["-Dauto_features=enabled", "-Dtests=enabled", "-Dbench=enabled",
                      "-Dexamples=enabled"]
# clang links the sanitizers' run-time library into programs only, so the shared library has
# undefined symbols of theirs.
SANITIZED = EVERYTHING + ["-Db_lundef=false", "-Doptimization=1"]
# The validation layer sees the same calls as with gcc. Chains of 100,000 run the same code whatever
# they are made of; those of the host's points, of chains and of slots stay.
SLOW_WITH_SANITIZERS = (
    "*-validation *", "*conformance *-* *_of_100000", "*conformance *-* *long_chain*",
)


@dataclasses.dataclass
class Variant:
    """One way to build and run. Suites for headers, installed files and models need one."""

    name: str
    what: str
    compiler: dict
    options: list
    only: tuple = ()
    without: tuple = ()
    too_slow: tuple = ()  # tests that need --full here, and not elsewhere
    setup: str = "default"
    timeouts: float = 1
    crowd: float = 1  # tests at once for each core
    alone: tuple = ()  # tests that are run after the others, one by one
    directory: str = ""

    @property
    def build(self):
        return BUILD / (self.directory or self.name)


VARIANTS = [
    Variant("gcc", "gcc, debug", GCC, EVERYTHING),
    # The sanitizers' variants run the rest, as clang builds it.
    Variant("clang", "clang, debug", CLANG, EVERYTHING, only=("core", "headers", "consumer")),
    Variant(
        "asan",
        "clang, address and undefined-behaviour sanitizers",
        CLANG,
        SANITIZED + ["-Db_sanitize=address,undefined"],
        without=("headers", "consumer", "model"),
        too_slow=SLOW_WITH_SANITIZERS,
        timeouts=3,
    ),
    Variant(
        "tsan",
        "clang, thread sanitizer",
        CLANG,
        SANITIZED + ["-Db_sanitize=thread"],
        without=("headers", "consumer", "model"),
        too_slow=SLOW_WITH_SANITIZERS,
        timeouts=5,
    ),
    Variant(
        "none",
        "gcc, no backend",
        GCC,
        DEBUG + ["-Dauto_features=disabled", "-Dtests=enabled"],
    ),
    Variant(
        "valgrind",
        "the core and the reactor under valgrind",
        GCC,
        EVERYTHING,
        only=("core", "async"),
        # Chains of 100,000: half a minute each. Shorter ones run the same code, and so do the other
        # fixtures of user-made primitives.
        too_slow=(
            "*_of_100000", "*long_chain*",
            "*conformance custom-probe *", "*conformance custom-one-shot *",
            # The reactor that a loop drives runs the same code on fewer threads; the stress test takes
            # an hour; valgrind has an allocator of its own, and opens handles of its own in a child.
            "*/async/async-* loop *", "*/async/async-fork *", "*/async/loop-*", "*/async/async-stress *", "*/async/async-memory *",
        ),
        setup="valgrind",
        timeouts=10,
        directory="gcc",
    ),
]


# What needs a GPU: run by --gpu alone. Its tests have the GPU's name among theirs' words.
GPU_VARIANTS = {
    "nvidia": Variant(
        "nvidia",
        "gcc, release, on an NVIDIA GPU",
        GCC,
        # Whatever compiler that machine has: its warnings are not what is tested. No example or model
        # needs a GPU.
        EVERYTHING + ["-Dtest_gpu=nvidia", "-Dbuildtype=release", "-Dwerror=false",
                      "-Dexamples=disabled", "-Dmodel=disabled"],
        # The driver makes and ends devices and what is shared one after the other. More tests at once
        # only wait longer, and those that do little else than that would take minutes beside others.
        timeouts=0.6,
        crowd=0.75,
        alone=(
            "*open_handles*", "*H1_imports_*", "*H1_closed_numbers_*", "*no_memory_for_points*",
            "*while_the_context_is_destroyed", "*V6_all_of_any_number",
        ),
    ),
}


@dataclasses.dataclass
class Result:
    name: str  # variant/suite/test
    outcome: str  # passed, failed, skipped
    detail: str = ""  # why it failed or was skipped
    output: str = ""


class BuildError(Exception):
    pass


def run_logged(log, command, env):
    """Runs a command with its output in a log; on failure raises with what the log ends in."""
    with open(log, "a", encoding="utf-8") as file:
        done = subprocess.run(command, cwd=ROOT, env=env, stdout=file, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        lines = log.read_text(encoding="utf-8", errors="replace").splitlines()
        first = next((i for i, line in enumerate(lines) if "FAILED:" in line or "ERROR:" in line), 0)
        raise BuildError("\n".join(lines[first:][:80]))


def build(variant, env):
    log = LOGS / f"build-{variant.name}.log"
    log.write_text("", encoding="utf-8")
    if (variant.build / "build.ninja").exists():
        setup = ["meson", "configure", str(variant.build)]
    else:
        setup = ["meson", "setup", str(variant.build)]
    run_logged(log, setup + variant.options, env)
    run_logged(log, ["ninja", "-C", str(variant.build)], env)


@dataclasses.dataclass
class Test:
    """One of meson's tests. Its own suite is its first one that is not `slow`."""

    name: str
    suite: str
    slow: bool
    log_names: tuple  # what meson's log may call it: depends on how many suites there are

    @staticmethod
    def read(entry):
        project, _, _ = entry["suite"][0].partition(":")
        suites = [suite.partition(":")[2] for suite in entry["suite"]]
        own = next((suite for suite in suites if suite and suite != SLOW), "none")
        pretty = f"{project}:{'+'.join(suites)} / {entry['name']}"
        return Test(entry["name"], own, SLOW in suites, (pretty, entry["name"]))


def select(variant, args, env):
    """The tests of a variant that are asked for, by "variant/suite/test"."""
    listing = subprocess.run(
        ["meson", "introspect", "--tests", str(variant.build)],
        env=env, stdout=subprocess.PIPE, check=True,
    )
    chosen = {}
    for test in map(Test.read, json.loads(listing.stdout)):
        full = f"{variant.name}/{test.suite}/{test.name}"
        if variant.only and test.suite not in variant.only or test.suite in variant.without:
            continue
        if args.gpu and args.gpu not in re.split(r"[ -]", test.name):
            continue
        slow = test.slow or any(fnmatch.fnmatchcase(full, p) for p in variant.too_slow)
        if slow and not args.full or args.filter and not matches(full, args.filter):
            continue
        if full in chosen:
            raise BuildError(f"two tests are named {full}")
        chosen[full] = test
    return chosen


def matches(full, pattern):
    return fnmatch.fnmatchcase(full, pattern) or fnmatch.fnmatchcase(full, f"*{pattern}*")


def read_result(full, entry):
    """One line of meson's testlog.json."""
    output = entry.get("stdout", "") + entry.get("stderr", "")
    if entry["result"] in ("OK", "EXPECTEDFAIL"):
        return Result(full, "passed")
    if entry["result"] == "SKIP":
        reason = re.search(r"^SKIP: *(.+)$", output, flags=re.M)
        return Result(full, "skipped", reason.group(1) if reason else "no reason given")
    how = f"{entry['result'].lower()}, exit {entry['returncode']}, {entry['duration']:.1f} s"
    return Result(full, "failed", how, output)


def names(chosen, full_names):
    return sorted({f"{PROJECT}:{chosen[full].name}" for full in full_names})


def runs_of(variant, chosen, args):
    """What meson is to run: lists of tests or suites, and how many at once."""
    alone = {full for full in chosen if any(fnmatch.fnmatchcase(full, p) for p in variant.alone)}
    # Tests wait more than they compute: one more than there are cores.
    at_once = int((os.cpu_count() or 1) * variant.crowd) + 1
    runs = []
    if not (args.filter or args.gpu or variant.too_slow):
        without = variant.without if args.full else (SLOW, *variant.without)
        suites = [f"--suite={suite}" for suite in variant.only]
        runs.append((suites + [f"--no-suite={suite}" for suite in without], at_once))
    elif chosen.keys() - alone:
        runs.append((names(chosen, chosen.keys() - alone), at_once))
    if alone:
        runs.append((names(chosen, alone), 1))
    return runs


def run_tests(variant, chosen, args, env):
    base = f"testlog-{variant.name}"
    logs = variant.build / "meson-logs"
    for old in logs.glob(base + "*"):
        old.unlink()
    with open(LOGS / f"test-{variant.name}.log", "w", encoding="utf-8") as file:
        for number, (what, at_once) in enumerate(runs_of(variant, chosen, args)):
            command = ["meson", "test", "-C", str(variant.build), "--no-rebuild",
                       "--logbase", f"{base}-{number}", "--num-processes", str(at_once),
                       "--setup", variant.setup, "--timeout-multiplier", str(variant.timeouts)]
            subprocess.run(command + what, env=env, stdout=file, stderr=subprocess.STDOUT)

    by_log_name = {name: full for full, test in chosen.items() for name in test.log_names}
    results = {full: Result(full, "failed", "left no result") for full in chosen}
    for log in logs.glob(base + "*.json"):
        for line in log.read_text(encoding="utf-8", errors="replace").splitlines():
            entry = json.loads(line)
            full = by_log_name.get(entry["name"])
            if full:
                results[full] = read_result(full, entry)
    return list(results.values())


def count(results, outcome):
    return sum(result.outcome == outcome for result in results)


def run_variant(variant, args):
    """Builds and runs one variant. Prints its progress line."""
    env = dict(os.environ, **variant.compiler)
    start = time.monotonic()
    try:
        build(variant, env)
        built = time.monotonic()
        chosen = select(variant, args, env)
    except BuildError as error:
        print("build failed", flush=True)
        return [Result(f"{variant.name}/build", "failed", "does not build", str(error))]
    if chosen:
        results = run_tests(variant, chosen, args, env)
    elif args.filter:
        results = []
    else:
        results = [Result(f"{variant.name}/run", "failed", "there is no test")]
    print(
        f"build {built - start:.0f} s, tests {time.monotonic() - built:.0f} s:"
        f" {count(results, 'passed')} passed, {count(results, 'failed')} failed,"
        f" {count(results, 'skipped')} skipped",
        flush=True,
    )
    return results


def print_failures(results):
    for result in results:
        if result.outcome == "failed":
            print(f"\nFAILED {result.name} ({result.detail})")
            print("\n".join("    " + line for line in result.output.splitlines()[-100:]), flush=True)


def allowed_skips():
    patterns = []
    for line in ALLOWED_SKIPS.read_text(encoding="utf-8").splitlines():
        if line.strip() and not line.startswith("#"):
            pattern, *reason = re.split(r"\t+|  +", line.strip(), maxsplit=1)
            if not reason:
                sys.exit(f"{ALLOWED_SKIPS.name}: '{pattern}' has no reason")
            patterns.append(pattern)
    return patterns


def report_skips(results, patterns):
    """Prints each reason, and how many tests were skipped for it; those that may not be, one by one.
    Returns how many these are."""
    allowed, refused = {}, []
    for result in results:
        if result.outcome != "skipped":
            continue
        if any(fnmatch.fnmatchcase(result.name, pattern) for pattern in patterns):
            allowed.setdefault(result.detail, []).append(result.name)
        else:
            refused.append(result)
    for reason, skipped in allowed.items():
        more = f" and {len(skipped) - 1} more" if len(skipped) > 1 else ""
        print(f"skipped {skipped[0]}{more}: {reason}")
    for result in refused:
        print(f"SKIP NOT ALLOWED {result.name}: {result.detail}")
    all_skips = [f"{name}: {reason}\n" for reason, names_ in allowed.items() for name in names_]
    (LOGS / "skips.txt").write_text("".join(all_skips), encoding="utf-8")
    return len(refused)


def measure(gpu):
    """The benchmarks' rows on this GPU, and whether all of them are there."""
    rows = LOGS / f"bench-{gpu}.json"
    bench = GPU_VARIANTS[gpu].build / "bench" / "syncpoint-bench"
    rows.unlink(missing_ok=True)
    with open(LOGS / f"bench-{gpu}.log", "w", encoding="utf-8") as file:
        done = subprocess.run([str(bench), "--json", str(rows)], stdout=file, stderr=subprocess.STDOUT)
    whole = done.returncode == 0 and rows.exists()
    if not whole:
        print(f"the benchmarks did not get to their end: {file.name}")
    return (json.loads(rows.read_text(encoding="utf-8")) if rows.exists() else None), whole


def ask(*command):
    try:
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return done.stdout.strip()


def write_proof(gpu, results):
    """What ran on this machine's GPU, with each test and each figure. False: some are missing."""
    figures, whole = measure(gpu)
    query = ("nvidia-smi", "--format=csv,noheader", "--id=0")
    proof = {
        "device": ask(*query, "--query-gpu=name"),
        "driver": ask(*query, "--query-gpu=driver_version"),
        "date": time.strftime("%Y-%m-%d"),
        "commit": ask("git", "-C", str(ROOT), "rev-parse", "--short", "HEAD"),
        "passed": count(results, "passed"),
        "failed": count(results, "failed"),
        "skipped": count(results, "skipped"),
        "tests": {r.name.partition("/")[2]: r.outcome + (": " + r.detail if r.detail else "")
                  for r in sorted(results, key=lambda result: result.name)},
        "figures": figures,
    }
    path = ROOT / "docs" / "proof" / f"{gpu}.json"
    path.write_text(json.dumps(proof, indent=1) + "\n", encoding="utf-8")
    print(f"wrote {path.relative_to(ROOT)}")
    return whole


def parse_arguments():
    parser = argparse.ArgumentParser(prog="./run test", description=__doc__)
    names = [variant.name for variant in VARIANTS]
    parser.add_argument("--variant", nargs="+", action="extend", choices=names, metavar="NAME",
                        help="only these variants: " + ", ".join(names))
    parser.add_argument("--filter", metavar="PATTERN",
                        help="only tests whose variant/suite/test matches this glob, or holds it")
    parser.add_argument("--gpu", choices=list(GPU_VARIANTS),
                        help="instead of all that, what needs this GPU; writes docs/proof/")
    parser.add_argument("--full", action="store_true", help="slow tests too")
    parser.add_argument("--check", action="store_true", help=argparse.SUPPRESS)
    return parser.parse_args()


def main():
    args = parse_arguments()
    if args.check:  # the arguments alone
        return 0
    variants = [v for v in VARIANTS if not args.variant or v.name in args.variant]
    if args.gpu:
        variants = [GPU_VARIANTS[args.gpu]]
    patterns = allowed_skips()
    LOGS.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()

    results = []
    for number, variant in enumerate(variants, 1):
        print(f"[{number}/{len(variants)}] {variant.name} ({variant.what}): ", end="", flush=True)
        done = run_variant(variant, args)
        print_failures(done)
        results += done

    print()
    refused = report_skips(results, patterns)
    if not results:
        print(f"no test matches {args.filter}")
    if refused:
        print(f"{refused} skips are not in tests/allowed-skips.txt")
    built = not any(result.name.endswith("/build") for result in results)
    whole = True
    if args.gpu and not args.filter and built:
        whole = write_proof(args.gpu, results)
    print(f"total time {time.monotonic() - start:.0f} s")
    print(
        f"{count(results, 'passed')} passed, {count(results, 'failed')} failed,"
        f" {count(results, 'skipped')} skipped",
        flush=True,
    )
    return 1 if refused or not results or not whole or count(results, "failed") else 0


if __name__ == "__main__":
    sys.exit(main())
