#!/usr/bin/env bash
# runs: ci
# Damaged corpora, rank files, merges and JSONL for 20 seconds each, under AddressSanitizer and
# UndefinedBehaviorSanitizer: each is read, or refused with file and place. The seed is new every time, and printed.
#
#   bash tests/reliability/mutate_text.sh [SECONDS [SEED]]
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cmake --preset asan >/dev/null
cmake --build build/asan --target mutate_text -j "${JOBS:-$(nproc)}" >/dev/null
seed=${2:-$(date +%s)}
echo "seed $seed"
# Every round writes files: in memory it does several times as many.
if [ -w /dev/shm ]; then export TMPDIR=/dev/shm; fi
UBSAN_OPTIONS=print_stacktrace=1 build/asan/tests/mutate_text --seconds "${1:-20}" --seed "$seed"
