#!/usr/bin/env bash
# runs: always
# CK-1: SIGKILL at random times of a saving trainer, its saver process, one of four writers, or all of them; 8 MiB of state.
# No acknowledged checkpoint is lost. 300 kills with --ci, 1,000 with --all; SEED repeats a run.
set -eu -o pipefail
build=${BUILD:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
kills=25
[ "${CI:-0}" -eq 1 ] && kills=300
[ "${ALL:-0}" -eq 1 ] && kills=1000
kills=${RUNS:-$kills} seed=${SEED:-$RANDOM}
# Two halves side by side: a run mostly waits.
for half in 0 1; do
  "$build/tests/checkpoint_faults" kill --folder "$work/c$half" --runs $(((kills + half) / 2)) --writers 4 --bytes 8388608 \
    --seed $((seed + half)) 2>"$work/err$half" &
  halves[half]=$!
done
for half in 0 1; do wait "${halves[half]}" || { tail -n 5 "$work/err$half"; exit 1; }; done
