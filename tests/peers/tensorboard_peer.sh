# The event files of gestalt.tensorboard through TensorBoard's own reader, also of a run that was stopped and resumed.
# runs: always
set -eu -o pipefail
gestalt=$BUILD/bin/gestalt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seq -f 'Line %g says that one word follows the other words.' 1 2000 >"$work/text.txt"
use=$(sed -n '/^use = \[/,/^\]/p' "$REPO/configs/bytes.toml" | tail -n +2 | tr -d '\n' | sed 's/ *\]$//')
train=("$gestalt" train "$REPO/configs/bytes.toml" --set "plugins.use=[$use \"gestalt.tracker_tensorboard\"]"
  --set 'metrics.trackers=["gestalt.jsonl", "gestalt.tensorboard"]' --set "data.path=$work/text.txt" --set "run.output=$work/run"
  --set model.layers=1 --set model.hidden=32 --set model.heads=2 --set model.ffn=64 --set model.seq_len=32
  --set train.log_every=1 --set train.minutes=10 --set train.eval_samples=4)
"${train[@]}" --set train.steps=10 --resume none
"${train[@]}" --set train.steps=20 --resume auto
"${GESTALT_PEERS_PYTHON:-python3}" "$REPO/tests/peers/read_tensorboard.py" "$work/run"
