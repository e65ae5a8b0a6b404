#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""usage: check_guide.py ROOT: what docs/guide.md shows as "c examples/NAME" stands there, as it is."""

import pathlib
import re
import sys

root = pathlib.Path(sys.argv[1])
guide = (root / "docs" / "guide.md").read_text(encoding="utf-8")
samples = re.findall(r"^```c (examples/\S+)\n(.*?)^```$", guide, flags=re.M | re.S)
missing = [path for path, sample in samples if sample not in (root / path).read_text(encoding="utf-8")]
for path in missing:
    print(f"{path} does not hold what docs/guide.md shows of it")
if not samples:
    print("docs/guide.md shows nothing of an example")
sys.exit(1 if missing or not samples else 0)
