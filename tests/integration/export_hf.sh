#!/usr/bin/env bash
# runs: always
# Models written for Hugging Face transformers: every stored byte of tests/golden/hf comes back, in one file and in shards;
# and a model trained here is written with its tokenizer and continues a prompt as its checkpoint does.
# (tests/peers/export_hf.py has transformers load what is written.)
set -eu -o pipefail
repo=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
gestalt=${BUILD:-$repo/build/release}/bin/gestalt
[ -x "$gestalt" ] || { echo "no gestalt is built"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# The bytes of the tensors, without the header.
data() {
  local bytes
  bytes=$(od -An -t u8 -N 8 "$1" | tr -d ' ')
  tail -c +$((9 + bytes)) "$1"
}
count=0
for folder in "$repo"/tests/golden/hf/* "$repo"/../shared/golden/hf/{gpt2,llama,qwen3,mistral-window,olmo2,gemma2}; do
  name=$(basename "$folder")
  [ -e "$folder/model.safetensors" ] && [ "$name" != llama-sinks ] || continue
  "$gestalt" checkpoint export "$folder" "$work/$name" 2>"$work/log" || { tail -n 2 "$work/log"; exit 1; }
  cmp <(data "$folder/model.safetensors") <(data "$work/$name/model.safetensors") ||
    { echo "$name comes back with other bytes"; exit 1; }
  count=$((count + 1))
done
"$gestalt" checkpoint export "$repo/tests/golden/hf/qwen2" "$work/shards" --shard-size 6000 2>/dev/null
[ "$(find "$work/shards" -name 'model-*-of-*.safetensors' | wc -l)" -ge 4 ] || { echo "expected shards"; exit 1; }
"$gestalt" checkpoint export "$work/shards" "$work/joined" 2>/dev/null
cmp "$work/qwen2/model.safetensors" "$work/joined/model.safetensors"

# Refused: a folder that is there, a family that does not fit, a model that no family has.
status=0
"$gestalt" checkpoint export "$repo/tests/golden/hf/qwen2" "$work/qwen2" 2>/dev/null || status=$?
[ "$status" -eq 2 ] || { echo "a folder that is not empty exits $status, expected 2"; exit 1; }
status=0
"$gestalt" checkpoint export "$repo/tests/golden/hf/qwen2" "$work/none" --family llama 2>"$work/log" || status=$?
[ "$status" -eq 69 ] && grep -q "qkv_bias = true" "$work/log" || { echo "exit $status"; cat "$work/log"; exit 1; }
[ ! -e "$work/none" ] && [ ! -e "$work/none.tmp" ] || { echo "a refused export left something"; exit 1; }

for ((i = 0; i < 2000; ++i)); do echo "the weather of day $i is hot, she sells $((i * i % 977)) shells"; done >"$work/text.txt"
cat >"$work/run.toml" <<END
[run]
name = "own"
output = "$work/own"
[plugins]
use = ["gestalt.device_cpu", "gestalt.kernels_cpu", "gestalt.comm_self", "gestalt.tokenizer_bpe", "gestalt.data_text",
  "gestalt.decoder", "gestalt.attention", "gestalt.mlp", "gestalt.norm", "gestalt.adam", "gestalt.ckpt_safetensors"]
[kernels]
cpu = ["gestalt.cpu"]
[model]
type = "gestalt.decoder"
hidden = 32
layers = 2
heads = 4
kv_heads = 2
ffn = 48
activation = "swiglu"
vocab = 340
seq_len = 64
tied = false
[tokenizer]
type = "gestalt.bpe"
file = "$repo/tests/golden/tokenizer/llama3/tokenizer.json"
[data]
type = "gestalt.text"
path = "$work/text.txt"
[optimizer]
type = "gestalt.adamw"
lr = 1e-2
[train]
steps = 30
global_batch = 4
[checkpoint]
type = "gestalt.safetensors"
END
"$gestalt" train "$work/run.toml" >"$work/log" 2>&1 || { tail -n 3 "$work/log"; exit 1; }
checkpoint=$(find "$work/own/checkpoints" -maxdepth 1 -name 'step-*' | sort | tail -n 1)
"$gestalt" checkpoint export "$checkpoint" "$work/own-model" 2>"$work/log" || { tail -n 2 "$work/log"; exit 1; }
grep -q '"model_type": "llama"' "$work/own-model/config.json"
cmp "$work/own-model/tokenizer.json" "$repo/tests/golden/tokenizer/llama3/tokenizer.json"
say=(--prompt "the weather" --max-tokens 12 --temperature 0)
[ "$("$gestalt" generate "$checkpoint" "${say[@]}" 2>/dev/null)" = "$("$gestalt" generate "$work/own-model" "${say[@]}" 2>/dev/null)" ] ||
  { echo "the exported model continues differently"; exit 1; }

# A training that begins as the exported model.
"$gestalt" train "$work/run.toml" --resume none --set "model.init_from=$work/own-model" --set train.steps=1 --set run.output="$work/more" \
  >"$work/log" 2>&1 || { tail -n 3 "$work/log"; exit 1; }
grep -q "parameters begin as in" "$work/log"
echo "$count models of other programs and one of its own"
