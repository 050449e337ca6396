#!/usr/bin/env bash
# runs: always
# plugins-contrib/clang_mlp is built by clang++ with a static C++ runtime against the installed SDK, then takes the MLP
# slot of a training on cpu and on sim, twice each: the same bits as gestalt.mlp, five times.
set -eu -o pipefail
repo=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${BUILD:-$repo/build/release}
command -v clang++ >/dev/null || { echo "no clang++"; exit 77; }
[ -x "$build/bin/gestalt" ] || { echo "no gestalt is built in $build"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
chmod 755 "$work"
cmake --install "$build" --prefix "$work/gestalt" >"$work/install.log"
cp -r "$repo/plugins-contrib/clang_mlp" "$work/acme"
cmake -S "$work/acme" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_COMPILER=clang++ \
  "-DCMAKE_MODULE_LINKER_FLAGS=-static-libstdc++ -static-libgcc" -DCMAKE_PREFIX_PATH="$work/gestalt"
cmake --build "$work/build"
plugins=$work/build/lib/gestalt/plugins
library=$plugins/clang_mlp/libclang_mlp.so
readelf -p .comment "$library" | grep -q clang || { echo "$library is not clang's"; exit 1; }
if readelf -d "$library" | grep -Eq 'NEEDED.*(libstdc\+\+|libgcc_s)'; then
  echo "$library has no static runtime"
  exit 1
fi
for ((i = 0; i < 3000; ++i)); do echo "line $i: $((i * i % 977)) leaves and $((i * 7919 % 1009)) stones"; done >"$work/text.txt"
ids=$(sed -n '/^use = \[/,/^\]/p' "$repo/configs/bytes.toml" | tail -n +2 | tr -d '\n' | sed 's/ *\]$//')
export GESTALT_PLUGIN_PATH=$plugins

# train NAME DEVICE [more]: twenty updates, each logged, and the checkpoint after the last.
train() {
  local name=$1 device=$2
  shift 2
  "$work/gestalt/bin/gestalt" train "$repo/configs/bytes.toml" --resume none --device "$device" \
    --set "run.output=$work/$name" --set "data.path=$work/text.txt" --set train.steps=20 --set train.log_every=1 \
    --set optimizer.warmup_steps=5 --set train.eval_samples=4 \
    --set "plugins.use=[$ids \"gestalt.device_sim\", \"acme.mlp\"]" \
    --set model.hidden=64 --set model.layers=2 --set model.ffn=256 --set model.seq_len=64 "$@"
}
# Every loss and norm as printed, and the weights, moments and all byte for byte.
fingerprint() {
  grep -o '"\(step\|loss\|lr\|grad_norm_preclip\|valid_loss\)" *: *[^,}]*' "$1/metrics.jsonl"
  find "$1/checkpoints" -name '*.safetensors' | sort | xargs sha256sum | cut -d' ' -f1
}

train own cpu
fingerprint "$work/own" >"$work/own.txt"
[ "$(grep -c '"loss"' "$work/own.txt")" -eq 20 ] || { echo "expected 20 losses in $work/own"; exit 1; }
slot=(--set 'model.slots={mlp = "acme.mlp"}')
for run in 1 2; do
  for device in cpu sim; do
    train "$device$run" "$device" "${slot[@]}"
    fingerprint "$work/$device$run" | diff "$work/own.txt" - || { echo "$device, run $run: other bits than gestalt.mlp"; exit 1; }
  done
done
grep '"loss"' "$work/own.txt" | sed -n '1p;$p'
echo "20 updates with acme.mlp by clang: cpu and sim, twice each, have the bits of gestalt.mlp"

# The same through the core's classes, with dropout and two streams, to the last bit of the optimizer's state.
if [ -x "$build/tests/test_training" ]; then
  GESTALT_TEST_CLANG_MLP=$plugins "$build/tests/test_training" "an MLP of another compiler*"
fi
