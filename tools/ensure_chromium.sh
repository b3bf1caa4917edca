#!/bin/sh
# Prints the path of a Chromium for the viewer's tests. Installs one where it can, but not with --find.
set -eu

find_chromium() {
    for name in "${CHROMIUM:-}" chromium chromium-browser google-chrome; do
        [ -n "$name" ] && command -v "$name" && return 0
    done
    return 1
}

find_chromium && exit 0
if [ "${1:-}" = --find ]; then
    echo "No Chromium: run 'make browser', or name one in the variable CHROMIUM." >&2
    exit 1
fi

if ! command -v apt-get >/dev/null; then
    echo "No Chromium: put one on the PATH or name it in the variable CHROMIUM (there is no apt-get here)." >&2
    exit 1
fi
if [ "$(id -u)" -ne 0 ]; then
    echo "No Chromium: run 'apt-get install chromium' as root, or name one in the variable CHROMIUM." >&2
    exit 1
fi
apt-get update -qq >&2
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends chromium fonts-dejavu-core >&2
find_chromium || { echo "No Chromium: apt-get installed the package, but it is not on the PATH." >&2; exit 1; }
