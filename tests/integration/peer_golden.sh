#!/usr/bin/env bash
# runs: always
# Models of tests/golden/hf (made by tests/peers/make_model_golden.py with Hugging Face transformers): logits, loss, every
# gradient, greedy ids and, where there is one, a training curve. Biases on queries, keys and values (qwen2), windows by
# layer, every rotary kind, rotations of a part of the head, attention without a window, and sinks.
set -eu -o pipefail
repo=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
gestalt=${BUILD:-$repo/build/release}/bin/gestalt
[ -x "$gestalt" ] || { echo "no gestalt is built"; exit 77; }
count=0
for folder in "$repo"/tests/golden/hf/*/; do
  name=$(basename "$folder")
  more=()
  [ "$name" = llama-sinks ] && more=(--set model.attention_sinks=true)
  for device in cpu sim; do
    echo "--- $name on $device"
    "$gestalt" parity "$folder" --device "$device" "${more[@]}"
  done
  count=$((count + 1))
done
[ "$count" -ge 10 ] || { echo "$count models, expected ten"; exit 1; }

# The comparison notices what is wrong.
folder=$repo/tests/golden/hf
for wrong in "phi3-longrope model.rope_original_len=32" "llama-yarn model.rope_factor=8.0" \
  "llama-llama3 model.rope_high_freq_factor=2.0" "qwen2-window model.slots.sliding.window=7"; do
  status=0
  "$gestalt" parity "$folder/${wrong% *}" --set "${wrong#* }" >/dev/null 2>&1 || status=$?
  [ "$status" -eq 17 ] || { echo "$wrong exits $status, expected 17"; exit 1; }
done

# A setting that nobody understands is refused with file and key, unless it is allowed by name.
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cp "$folder/llama-linear/"* "$work/"
sed -i 's/"hidden_act"/"attention_temperature": 0.5,\n  "hidden_act"/' "$work/config.json"
status=0
"$gestalt" parity "$work" >"$work/out" 2>&1 || status=$?
[ "$status" -eq 65 ] && grep -q "attention_temperature is 0.5 in .*config.json" "$work/out" ||
  { echo "an unknown setting exits $status with"; cat "$work/out"; exit 1; }
"$gestalt" parity "$work" --set 'model.allow_keys=["attention_temperature"]' >/dev/null
