#!/usr/bin/env bash
# runs: part
# GPT-2 124M on GPT-2 tokens of a text: 1,000 steps of torch in f32, then ours in f32 and bf16 from the same weights and
# batches; the mean difference of the last 100 losses stays below 0.005.
#
#   bash gpu/curve.sh HOME LOGS RESULTS     (called by run.sh)
set -eu -o pipefail
if [ $# -ne 3 ]; then
  echo "called by run.sh"
  exit 77
fi
home=$1 logs=$2 results=$3 folder=$2/curve status=0
mkdir -p "$folder"
env -u LD_LIBRARY_PATH python3 "$home/gpu/curve.py" "$home/tokens.bin" "$folder/gpt2" >"$logs/curve_torch.log" 2>&1
tail -n 1 "$logs/curve_torch.log"
for dtype in f32 bf16; do
  gestalt parity "$folder/gpt2" --device cuda --set run.dtype=$dtype --set run.capture=true --set train.steps=1000 \
    --set optimizer.lr=6e-4 --set optimizer.min_lr=6e-5 --set optimizer.warmup_steps=100 --set model.seq_len=1024 \
    --losses "$results/losses_$dtype.txt" >"$logs/curve_$dtype.log" 2>&1 || status=1
  sed "s/^/$dtype: /" "$logs/curve_$dtype.log"
done
cp "$folder/gpt2/expect.json" "$results/losses_torch.json"
exit "$status"
