# A clean release build of core, SDK, launcher and the quickstart's plugins, without a warm compiler cache.
# runs: ci
# The target is three minutes on two cores. Machines differ, so the test fails only above twice that.
. tests/blocks/report.sh
target=180 limit=360
wanted build_time || exit 0
seconds=
if [ -f "$LOGS/clean_build_seconds" ]; then
  seconds=$(cat "$LOGS/clean_build_seconds")
elif [ "$ALL" -eq 1 ]; then
  folder=$(mktemp -d)
  trap 'rm -rf "$folder"' EXIT
  cmake --preset release -B "$folder" >"$LOGS/build_time.log" 2>&1
  begin=$SECONDS
  CCACHE_DISABLE=1 bash launcher/build_product.sh "$folder" >>"$LOGS/build_time.log" 2>&1 || {
    echo "FAIL build_time the clean build failed (log: $LOGS/build_time.log)"
    exit 0
  }
  seconds=$((SECONDS - begin))
fi
if [ -z "$seconds" ]; then
  echo "SKIP build_time build/release was not clean when this run began"
elif [ "$seconds" -le "$limit" ]; then
  echo "PASS build_time"
  echo "  clean release build: $seconds s on $(nproc) cores, target $target s$([ "$seconds" -le "$target" ] || echo ': OVER')"
elif [ "$(nproc)" -lt 2 ]; then
  echo "SKIP build_time $seconds s, but the limit of $limit s is for two cores and this machine has one"
else
  echo "FAIL build_time got $seconds s on $(nproc) cores, expected at most $limit s"
fi
