#!/usr/bin/env bash
# runs: part
# First speeds on the GPU: single products and attention, then whole training steps of GPT-2 124M.
#
#   bash gpu/bench.sh HOME LOGS RESULTS     (called by run.sh)
set -u -o pipefail
if [ $# -ne 3 ]; then
  echo "called by run.sh"
  exit 77
fi
home=$1 logs=$2 results=$3
mkdir -p "$logs/bench" && cd "$logs/bench" || exit 1
out=$results/bench.txt
: >"$out"
timeout 60 gestalt_harness --device cuda --speed --family matrix --family attention >>"$out" 2>&1
cat "$home"/gpu/*.sh "$home"/include/gestalt/*.h "$home"/include/gestalt/*.hpp "$home"/include/gestalt/abi/*.h >bench.txt
for _ in 1 2 3 4; do cat bench.txt bench.txt >twice && mv twice bench.txt; done
status=0
# steps NAME SETTINGS...: the last line that shows tokens a second.
steps() {
  local name=$1
  shift
  timeout 60 gestalt train "$home/gpu/bench.toml" --set run.output="$logs/bench/$name" --set data.path="$PWD/bench.txt" "$@" >"$name.log" 2>&1 || status=1
  printf '%-28s %s\n' "$name" "$(grep 'tokens/s' "$name.log" | tail -n 1)" >>"$out"
  [ "$status" -eq 0 ] || tail -n 5 "$name.log" >>"$out"
}
steps bf16_8x1024
steps bf16_32x1024 --set train.global_batch=32
steps bf16_8x1024_two_streams --set run.streams=2
steps bf16_8x1024_uncaptured --set run.capture=false
steps f32_8x1024 --set run.dtype=f32
cat "$out"
exit "$status"
