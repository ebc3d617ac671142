#!/bin/sh
# Makes a base image for the docker sandbox without a registry: Debian by debootstrap, Python, git, a C compiler, uv.
#
#   docker/base.sh NAME [SUITE [MIRROR]]
#
# Without SUITE and MIRROR debootstrap's own defaults hold. UV: the uv binary to put in, `.venv/bin/uv` if not set.
set -eu

name=${1:?usage: docker/base.sh NAME [SUITE [MIRROR]]}
suite=${2:-stable}
mirror=${3:-}
here=$(cd "$(dirname "$0")/.." && pwd)
uv=${UV:-$here/.venv/bin/uv}
packages=bash,ca-certificates,gcc,git,libc6-dev,python3,python3-dev,python3-venv

command -v debootstrap >/dev/null || { echo "debootstrap is missing: apt-get install debootstrap" >&2; exit 2; }
[ "$(id -u)" = 0 ] || { echo "debootstrap needs root" >&2; exit 2; }

root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
# The word "mirror" is left out when there is none, so that debootstrap takes its own.
debootstrap --variant=minbase --include="$packages" "$suite" "$root" ${mirror:+"$mirror"} >&2
rm -rf "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/* "$root"/usr/share/doc "$root"/usr/share/locale
if [ -x "$uv" ]; then
    install -m 0755 "$uv" "$root/usr/local/bin/uv"
fi
tar -C "$root" -c . | docker import --change 'ENV PATH=/usr/local/bin:/usr/bin:/bin' - "$name"
