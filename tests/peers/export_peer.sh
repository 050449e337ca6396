# What is exported, loaded by Hugging Face transformers: keys, logits, tensors; and a checkpoint trained here.
# runs: always
set -eu -o pipefail
python=${GESTALT_PEERS_PYTHON:-python3}
if ! "$python" -c 'import torch, transformers' 2>/dev/null; then
  echo "no Python with torch and transformers (GESTALT_PEERS_PYTHON names one)"
  exit 77
fi
models=("$REPO"/tests/golden/hf/*)
for name in gpt2 qwen3 mistral-window olmo2 gemma2 llama; do
  folder=$REPO/../shared/golden/hf/$name
  [ ! -e "$folder" ] || models+=("$folder")
done
"$python" "$REPO/tests/peers/export_hf.py" --gestalt "$BUILD/bin/gestalt" "${models[@]}"
