#!/usr/bin/env bash
# runs: always
# CK-5, CK-6: flipped bits over every file of a checkpoint, truncations, zeroed sectors, swapped and stale files: all found,
# with the file named. 300 flips a format, 2,000 with --ci, 20,000 with --all. Then h5dump opens every shard.
set -eu -o pipefail
build=${BUILD:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
flips=300
[ "${CI:-0}" -eq 1 ] && flips=2000
[ "${ALL:-0}" -eq 1 ] && flips=20000
for component in gestalt.hdf5 gestalt.safetensors; do
  "$build/tests/checkpoint_faults" flips --folder "$work/$component" --component "$component" --writers 2 --bytes 40000 --runs "${RUNS:-$flips}" \
    --seed "${SEED:-$RANDOM}" 2>"$work/err" || { tail -n 5 "$work/err"; exit 1; }
done
"$build/bin/gestalt" checkpoint verify "$work/gestalt.hdf5/step-00000002" --json | grep -q '"ok": true'
printf '\001' | dd of="$work/gestalt.hdf5/step-00000002/shard-00000.h5" bs=1 seek=9000 conv=notrunc 2>/dev/null
status=0
"$build/bin/gestalt" checkpoint verify "$work/gestalt.hdf5/step-00000002" >"$work/said" || status=$?
[ "$status" -eq 65 ] && grep -q "shard-00000.h5: tensor 'model" "$work/said" || { echo "verify: exit code $status"; cat "$work/said"; exit 1; }
command -v h5dump >/dev/null || { echo "no h5dump here (Debian: hdf5-tools)"; exit 77; }
for shard in "$work"/gestalt.hdf5/step-00000001/*.h5; do h5dump "$shard" >/dev/null; done
