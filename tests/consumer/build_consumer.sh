#!/bin/bash
# SPDX-License-Identifier: MIT
# usage: build_consumer.sh pkg-config|cmake shared|static BUILD_DIR SOURCE_DIR
# Installs the built library into a scratch folder, builds main.c against it and runs it.
set -euo pipefail
tool=$1 kind=$2 build=$3 source=$4
cc=${CC:-cc}

for need in meson "$tool"; do
    command -v "$need" >/dev/null || { echo "SKIP: $need is not installed"; exit 77; }
done

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
stage=$work/stage
meson install -C "$build" --no-rebuild --quiet --destdir "$stage"
pc=$(find "$stage" -name syncpoint.pc)
libdir=$(dirname "$(dirname "$pc")")
prefix=$stage$(sed -n 's/^prefix=//p' "$pc")
want=$(sed -n 's/^Version: //p' "$pc")

with_pkg_config()
{
    export PKG_CONFIG_PATH=$libdir/pkgconfig PKG_CONFIG_SYSROOT_DIR=$stage
    local flags static=()
    if [ "$kind" = static ]; then
        static=(--static)
        rm "$libdir"/libsyncpoint.so*
    fi
    flags=$(pkg-config --cflags --libs "${static[@]}" syncpoint)
    # shellcheck disable=SC2086 # a list of flags
    "$cc" -std=c11 -Wall -Wextra -Werror -o "$work/consumer" "$source/main.c" $flags
}

with_cmake()
{
    local target=syncpoint::syncpoint
    [ "$kind" = shared ] || target=syncpoint::syncpoint_static
    cmake -G Ninja -S "$source" -B "$work/build" -DCMAKE_PREFIX_PATH="$prefix" \
        -DSYNCPOINT_TARGET="$target"
    cmake --build "$work/build" --verbose
    cp "$work/build/consumer" "$work/consumer"
}

if [ "$tool" = cmake ]; then with_cmake; else with_pkg_config; fi

needed=$(readelf -d "$work/consumer" | grep -c 'NEEDED.*libsyncpoint\.so\.0' || true)
if [ "$kind" = shared ]; then
    [ "$needed" = 1 ] || { echo "the consumer does not need libsyncpoint.so.0"; exit 1; }
    export LD_LIBRARY_PATH=$libdir
else
    [ "$needed" = 0 ] || { echo "the consumer needs libsyncpoint.so"; exit 1; }
fi
got=$("$work/consumer")
[ "$got" = "$want" ] || { echo "sp_version() says $got, syncpoint.pc says $want"; exit 1; }
echo "built with $tool, $kind; runs version $got"
