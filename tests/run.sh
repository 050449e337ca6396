#!/usr/bin/env bash
# Installs what is missing, builds, and runs the test blocks of tests/blocks in the order of their names.
#
#   bash tests/run.sh [--build-only] [--ci] [--all] [--filter PATTERN]
#
#   --build-only      stop after the release build
#   --ci              also run the blocks marked "runs: ci" (sanitizers, the second compiler, build time)
#   --all             also run those marked "runs: all" (a bare Debian root; long)
#   --filter PATTERN  an extended regular expression: only blocks, or tests inside blocks, whose name matches
#
# A block is a file tests/blocks/NN_name.sh; adding one needs no change here. Its second line says when it runs
# ("# runs: always", "ci" or "all"). It prints PASS, FAIL or SKIP, a name and, where there is one, a reason.
# The last line of the output is "N passed, N failed, N skipped"; the exit code is 0 only if nothing failed.
set -u -o pipefail
export LC_ALL=C

REPO=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
BUILD=$REPO/build/release
LOGS=$REPO/build/test-logs
JOBS=$(nproc)
CI=0 ALL=0 FILTER=
build_only=0
while [ $# -gt 0 ]; do
  case "$1" in
    --build-only) build_only=1 ;;
    --ci) CI=1 ;;
    --all) CI=1 ALL=1 ;;
    --filter)
      [ $# -ge 2 ] || { echo "[run.sh] --filter needs a pattern" >&2; exit 2; }
      FILTER=$2
      shift ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "[run.sh] unknown argument, got '$1', expected --build-only, --ci, --all or --filter PATTERN" >&2; exit 2 ;;
  esac
  shift
done
export REPO BUILD LOGS JOBS CI ALL FILTER
cd "$REPO" || exit 1
mkdir -p "$LOGS"

minutes_since() { awk -v a="$1" -v b="$(date +%s.%N)" 'BEGIN { printf "%.1f", (b - a) / 60 }'; }

started=$(date +%s.%N)
passed=0 failed=0 skipped=0
finish() {
  echo "--- all: $(minutes_since "$started") min"
  echo "$passed passed, $failed failed, $skipped skipped"
  [ "$failed" -eq 0 ]
  exit
}

. launcher/install_deps.sh
gestalt_install_deps --with-tests || exit $?

# The release build. In CI a fresh one is timed without help from an earlier cache (90_build_time reads the result),
# first the product, then the tests.
block=$(date +%s.%N)
build_log=$LOGS/build.log
: >"$build_log"
rm -f "$LOGS/clean_build_seconds"
fresh=0
[ -f "$BUILD/build.ninja" ] || fresh=1
build_release() {
  cmake --preset release || return 1
  if [ "$fresh" -eq 1 ] && [ "$CI" -eq 1 ]; then
    local begin=$SECONDS
    # What the quickstart runs: host, command and its plugins. Later plugins have their own budgets.
    local ground=(bin/gestalt)
    local plugin
    for plugin in adam attention ckpt_safetensors comm_self data_text decoder device_cpu device_sim kernels_cpu mlp norm \
      sgd task_eval task_generate task_train tokenizer_byte tracker_jsonl; do
      ground+=("lib/gestalt/plugins/$plugin/lib$plugin.so")
    done
    CCACHE_RECACHE=1 cmake --build "$BUILD" -j "$JOBS" --target "${ground[@]}" || return 1
    echo $((SECONDS - begin)) >"$LOGS/clean_build_seconds"
  fi
  cmake --build "$BUILD" -j "$JOBS"
}
if build_release >"$build_log" 2>&1; then
  echo "--- build: $(minutes_since "$block") min"
  passed=$((passed + 1))
else
  grep -nE '(error|Error|FAILED|undefined reference)' "$build_log" | head -n 20
  tail -n 40 "$build_log"
  echo "FAIL build (log: $build_log)"
  failed=$((failed + 1))
  finish
fi
[ "$build_only" -eq 1 ] && finish

for script in tests/blocks/[0-9][0-9]_*.sh; do
  name=$(basename "$script" .sh)
  runs=$(sed -n '2s/^# runs: \([a-z]*\).*/\1/p' "$script")
  case "$runs" in
    always) ;;
    ci) [ "$CI" -eq 1 ] || continue ;;
    all) [ "$ALL" -eq 1 ] || continue ;;
    *)
      echo "FAIL $name second line must be '# runs: always', 'ci' or 'all', got '$(sed -n 2p "$script")'"
      failed=$((failed + 1))
      continue ;;
  esac
  # A pattern that names a block runs all of it.
  block_filter=$FILTER
  if [ -n "$FILTER" ] && [[ $name =~ $FILTER ]]; then block_filter=; fi
  echo "--- $name"
  block=$(date +%s.%N)
  before=$((passed + failed + skipped))
  results=$LOGS/$name.results
  FILTER=$block_filter bash "$script" </dev/null 2>&1 | tee "$results"
  status=${PIPESTATUS[0]}
  passed=$((passed + $(grep -c '^PASS ' "$results")))
  skipped=$((skipped + $(grep -c '^SKIP ' "$results")))
  failures=$(grep -c '^FAIL ' "$results")
  if [ "$status" -ne 0 ] && [ "$failures" -eq 0 ]; then
    echo "FAIL $name the block itself ended with exit code $status"
    failures=1
  elif [ $((passed + failed + skipped + failures)) -eq "$before" ] && [ -z "$block_filter" ]; then
    echo "FAIL $name the block reported no result"
    failures=1
  fi
  failed=$((failed + failures))
  echo "--- $name: $(minutes_since "$block") min"
done
finish
