# Plugins by clang++ with their own static C++ runtime, the host by g++: the ABI as vendors will use it.
# runs: ci
. tests/blocks/report.sh

log=$LOGS/build_clang.log
if ! { cmake --preset clang -DGESTALT_TESTS=OFF && cmake --build build/clang -j "$JOBS"; } >"$log" 2>&1; then
  echo "FAIL build_clang (log: $log)"
  { grep -E '(error|Error|FAILED|undefined reference)' "$log" | head -n 20; tail -n 20 "$log"; } | sed 's/^/  | /'
  exit 0
fi
plugins=$REPO/build/clang/lib/gestalt/plugins

made_by_clang() {
  local library
  for library in "$plugins"/*/*.so; do
    readelf -p .comment "$library" | grep -q clang || { echo "$library is not clang's"; return 1; }
    if readelf -d "$library" | grep -q 'NEEDED.*libstdc++'; then echo "$library needs libstdc++.so"; return 1; fi
  done
}
check clang/static_runtime made_by_clang

# train_20 PREFIX DEVICE OUTPUT: twenty steps of the quickstart with the command and plugins under PREFIX.
train_20() {
  "$1/bin/gestalt" train configs/quickstart.toml --set "run.device=$2" --set "run.output=$3" --set "data.path=$text" \
    --set train.steps=20 --set train.log_every=1 --set optimizer.warmup_steps=5 "${extra[@]}" --resume none
}
# What two trainings must share to the bit: losses and gradient norms as printed, and the weights.
fingerprint() {
  grep -o '"\(step\|loss\|grad_norm_preclip\)" *: *[^,}]*' "$1/metrics.jsonl"
  find "$1/checkpoints" -name '*.safetensors' | sort | xargs sha256sum | cut -d' ' -f1
}
text=$REPO/build/kjv.txt
[ -s "$text" ] || bible -f gen1:1-rev22:21 >"$text"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
chmod 755 "$work"
umask 022
extra=()

all_by_clang() { train_20 build/clang cpu "$work/clang"; }
check clang/train_20_steps all_by_clang

# Only the MLP by clang, everything else by g++: cpu twice, sim twice, and all by g++: five times the same bits.
mlp_by_clang() {
  mkdir -p "$work/mixed/lib/gestalt" "$work/mixed/bin"
  cp "$BUILD/bin/gestalt" "$work/mixed/bin/"
  cp -r "$BUILD/lib/gestalt/plugins" "$work/mixed/lib/gestalt/plugins"
  rm -rf "$work/mixed/lib/gestalt/plugins/mlp"
  cp -r "$plugins/mlp" "$work/mixed/lib/gestalt/plugins/mlp"
  chmod -R go-w "$work/mixed"
  local run
  train_20 build/release cpu "$work/gcc" || return 1
  for run in 1 2; do
    train_20 "$work/mixed" cpu "$work/cpu$run" || return 1
    train_20 "$work/mixed" sim "$work/sim$run" || return 1
  done
  fingerprint "$work/gcc" >"$work/gcc.txt"
  [ "$(grep -c . "$work/gcc.txt")" -gt 2 ] || { echo "nothing to compare in $work/gcc"; return 1; }
  for run in cpu1 cpu2 sim1 sim2; do
    fingerprint "$work/$run" | diff "$work/gcc.txt" - || { echo "$run differs from the g++ run"; return 1; }
  done
}
check clang/mlp_bit_equal mlp_by_clang
