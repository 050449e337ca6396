#!/usr/bin/env bash
# runs: ci
# CK-4: power cuts. A trainer saves onto an ext4 image; at random moments it is stopped, the image's file is copied without any
# sync, and the copy mounted: what was not synced is gone, and each acknowledged checkpoint must be there and whole. 40 cuts,
# 200 with --all.
set -eu -o pipefail
build=${BUILD:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/release}
faults=$build/tests/checkpoint_faults
work=$(mktemp -d)
cleanup() {
  [ -z "${session:-}" ] || pkill -KILL -s "$session" || true
  # The disk is busy until the last of them is gone.
  for ((try = 0; try < 100; try++)); do
    umount -q "$work/after" 2>/dev/null || true
    umount -q "$work/mnt" 2>/dev/null && break
    mountpoint -q "$work/mnt" || break
    sleep 0.1
  done
  rm -rf "$work"
}
trap cleanup EXIT
truncate -s 24M "$work/image"
mkdir "$work/mnt" "$work/after"
mkfs.ext4 -q "$work/image" 2>/dev/null && mount -o loop "$work/image" "$work/mnt" 2>/dev/null || { echo "no image can be mounted here"; exit 77; }
cuts=40
[ "${ALL:-0}" -eq 1 ] && cuts=200
: >"$work/log"
setsid "$faults" train --folder "$work/mnt/c" --steps 1000000 --writers 2 --bytes 400000 --process >"$work/log" 2>"$work/err" &
session=$!
while ! grep -q ^ack "$work/log"; do sleep 0.05; kill -0 $session; done
for ((i = 0; i < ${RUNS:-$cuts}; i++)); do
  sleep "0.$((RANDOM % 3))$((RANDOM % 10))"
  pkill -STOP -s $session
  acknowledged=$(sed -n 's/^ack //p' "$work/log" | tail -n 1)
  cp "$work/image" "$work/copy"
  pkill -CONT -s $session
  mount -o loop "$work/copy" "$work/after"
  newest=$("$faults" check --folder "$work/after/c") || { echo "cut $i: the newest checkpoint is not whole"; exit 1; }
  umount "$work/after"
  [ "$newest" -ge "$acknowledged" ] || { echo "cut $i: step $acknowledged was acknowledged, the newest is $newest"; exit 1; }
done
echo "${RUNS:-$cuts} power cuts, newest step $newest, none lost"
