#!/usr/bin/env bash
# Gestalt beside other programs: what they read of ours, and how fast they are. Not part of tests/run.sh. A peer that is not
# there is skipped, visibly; GESTALT_PEERS_PYTHON names a Python that has them (h5py, tensorboard, tiktoken, torch,
# transformers from PyPI).
#
#   bash tests/peers/run.sh [PATTERN]      after bash tests/run.sh --build-only
set -u -o pipefail
REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
BUILD=${BUILD:-$REPO/build/release}
LOGS=$REPO/build/test-logs
FILTER=${1:-}
export REPO BUILD LOGS FILTER JOBS=${JOBS:-$(nproc)} CI=1 ALL=1
[ -x "$BUILD/bin/gestalt" ] || { echo "no gestalt is built in $BUILD; run bash tests/run.sh --build-only"; exit 1; }
. "$REPO/tests/blocks/report.sh"
results=$(mktemp)
trap 'rm -f "$results"' EXIT
for script in tests/peers/*_peer.sh; do check "peers/$(basename "$script" .sh)" bash "$script"; done | tee "$results"
count() { grep -c "^$1 " "$results"; }
echo "$(count PASS) passed, $(count FAIL) failed, $(count SKIP) skipped"
[ "$(count FAIL)" -eq 0 ]
