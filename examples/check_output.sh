#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: check_output.sh SOURCE PROGRAM
# The program exits with 0, and prints the lines that the first comment of its source promises.
set -euo pipefail

promised=$(sed -n '/^ \* Prints, in any order:$/,/^ \*\/$/ s/^ \*     //p' "$1" | sort)
[ -n "$promised" ] || { echo "$1 does not say what it prints"; exit 1; }
printed=$("$2" | sort)
diff <(echo "$promised") <(echo "$printed")
