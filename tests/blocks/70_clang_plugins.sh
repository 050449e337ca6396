# All plugins by clang++ with their own static C++ runtime, the host by g++, through the preset `clang`.
# runs: all
# The short forms stand in tests/abi/sdk_lane.sh and tests/integration/clang_mlp.sh.
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

text=$REPO/build/kjv.txt
[ -s "$text" ] || bible -f gen1:1-rev22:21 >"$text"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
train_20() {
  build/clang/bin/gestalt train configs/bytes.toml --set "run.output=$work/run" --set "data.path=$text" \
    --set train.steps=20 --set train.eval_samples=4 --set optimizer.warmup_steps=5 --resume none
}
check clang/train_20_steps train_20
