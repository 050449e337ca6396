#!/usr/bin/env bash
# runs: ci
# 100,000 damaged run files and manifests under AddressSanitizer and UndefinedBehaviorSanitizer: each is read or refused.
#
#   bash tests/reliability/mutate_config.sh [COUNT [SEED]]
set -eu -o pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
cmake --preset asan >/dev/null
cmake --build build/asan --target mutate_config -j "${JOBS:-$(nproc)}" >/dev/null
UBSAN_OPTIONS=print_stacktrace=1 build/asan/tests/mutate_config --count "${1:-100000}" --seed "${2:-1}"
