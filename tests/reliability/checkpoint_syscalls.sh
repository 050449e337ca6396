#!/usr/bin/env bash
# runs: always
# CK-2, CK-3, CK-7: one save, disturbed at each of its system calls: SIGKILL, ENOSPC, EIO, EDQUOT, EINTR, EMFILE. Each
# twentieth call in a short run, every one with --ci. Then each failpoint: death, abort and an error.
set -eu -o pipefail
build=${BUILD:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/release}
faults=$build/tests/checkpoint_faults
command -v strace >/dev/null || { echo "no strace here"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
strace -qq -o /dev/null true 2>/dev/null || { echo "tracing is not allowed here"; exit 77; }
stride=20
[ "${CI:-0}" -eq 1 ] && stride=1
stride=${STRIDE:-$stride}
# Two halves side by side: a run mostly waits.
for half in 0 1; do
  mkdir "$work/s$half"
  "$faults" syscalls --folder "$work/s$half" --writers 2 --bytes 40000 --stride $((2 * stride)) --first $((half * stride)) 2>"$work/err$half" &
  halves[half]=$!
done
for half in 0 1; do wait "${halves[half]}" || { tail -n 5 "$work/err$half"; exit 1; }; done

count=0
for name in $("$faults" failpoints); do
  for action in kill abort error; do
    rm -rf "$work/f"
    "$faults" train --folder "$work/f" --steps 3 >/dev/null
    status=0
    { GESTALT_FAILPOINTS="$name=$action:1" "$faults" train --folder "$work/f" --steps 2 --writers 2 >"$work/out" || status=$?; } 2>>"$work/err"
    case $action in kill) want=137 ;; abort) want=134 ;; *) want=0 ;; esac
    [ "$status" -eq "$want" ] || { echo "$name=$action: exit code $status, expected $want (never reached?)"; cat "$work/out"; exit 1; }
    # Whatever happened: the next training goes on.
    "$faults" train --folder "$work/f" --steps 1 >"$work/out" 2>>"$work/err"
    grep -q '^ack' "$work/out" || { echo "after $name=$action no save succeeds"; exit 1; }
    count=$((count + 1))
  done
done
echo "$count failpoint runs, each survived"

# Disks of 24 sizes that are too small for the second save, or not: it fails with a message or is there, and the first one stays.
full=0
mkdir "$work/disk"
for ((i = 0; i < 24; i++)); do
  size=$((64 * 1024 * (1 << (i * 10 / 23)) + 20480 * i))
  mount -t tmpfs -o "size=$size" tmpfs "$work/disk" 2>/dev/null || { echo "no disk can be mounted here: the full disks are left out"; exit 0; }
  status=0
  "$faults" train --folder "$work/disk/c" --steps 4 --bytes 200000 >"$work/out" 2>"$work/err" || status=$?
  newest=$(sed -n 's/^ack //p' "$work/out" | tail -n 1)
  [ -z "$newest" ] || "$build/bin/gestalt" checkpoint verify "$work/disk/c/step-$(printf %08d "$newest")" >/dev/null || status=99
  ! grep -q '^failed' "$work/out" || full=$((full + 1))
  leftovers=$(ls -d "$work"/disk/c/*.tmp-* 2>/dev/null || true)
  umount "$work/disk"
  grep -q '^trained' "$work/out" && [ "$status" -eq 0 ] && [ -z "$leftovers" ] || { echo "a disk of $size bytes: status $status"; cat "$work/out" "$work/err"; exit 1; }
done
[ "$full" -gt 3 ] || { echo "only $full disks were full"; exit 1; }
echo "24 disks, $full of them too small"
