#!/usr/bin/env bash
# runs: all
# In a Debian 12 root made by debootstrap, with nothing else installed: the quickstart and the test suite pass on a
# clean clone. Needs root, debootstrap, git and a way to Debian's packages; about as long as both take, plus a minute.
#
#   bash tests/reliability/bare_debian.sh [--minutes N] [--keep] [--only quickstart|tests|install]
#
# Packages come from the mirror that this machine's apt uses; GESTALT_DEBIAN_MIRROR names another.
set -u -o pipefail
repo=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
mirror=${GESTALT_DEBIAN_MIRROR:-$(cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list /etc/apt/sources.list.d/*.sources \
  2>/dev/null | sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb  *\(\[[^]]*\] *\)*\([^ ]*\) .*/\2/p' | head -n 1)}
minutes=3 keep=0 only=
while [ $# -gt 0 ]; do
  case "$1" in
    --minutes) minutes=$2; shift ;;
    --keep) keep=1 ;;
    --only) only=$2; shift ;;
    *) echo "[bare_debian] unknown argument, got '$1', expected --minutes N, --keep or --only PART" >&2; exit 2 ;;
  esac
  shift
done
if [ "$(id -u)" -ne 0 ]; then echo "chroot needs root"; exit 77; fi
if ! command -v debootstrap >/dev/null 2>&1; then echo "debootstrap is not installed"; exit 77; fi

if [ -z "$mirror" ]; then echo "apt names no mirror here; set GESTALT_DEBIAN_MIRROR"; exit 77; fi

root=$(mktemp -d /tmp/gestalt-bare-debian.XXXXXX)
leave() {
  mountpoint -q "$root/proc" && umount "$root/proc"
  if [ "$keep" -eq 1 ]; then echo "kept: $root"; else rm -rf --one-file-system "$root"; fi
}
trap leave EXIT

step() { echo "--- $1: $((SECONDS - begin)) s"; begin=$SECONDS; }
begin=$SECONDS
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$root.log" 2>&1 || {
  tail -n 20 "$root.log"
  echo "debootstrap could not make a root from $mirror"
  exit 1
}
rm -f "$root.log"
# The network as this machine knows it. Everything else is the bare root's own.
cp -L /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc" || exit 1
step debootstrap

git clone -q --no-hardlinks "$repo" "$root/gestalt" || exit 1
inside() { chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root bash -c "cd /gestalt && $1"; }
status=0
if [ -z "$only" ] || [ "$only" = install ]; then
  inside 'bash launcher/install_deps.sh' || status=1
  step install
fi
if [ -z "$only" ] || [ "$only" = quickstart ]; then
  inside "bash launcher/quickstart.sh --minutes $minutes" || status=1
  step quickstart
fi
if [ -z "$only" ] || [ "$only" = tests ]; then
  inside 'bash tests/run.sh' || status=1
  step tests
fi
exit "$status"
