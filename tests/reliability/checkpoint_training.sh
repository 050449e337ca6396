#!/usr/bin/env bash
# runs: always
# A real training killed at random steps and resumed is the one that was never stopped: losses and state, byte for byte,
# with dropout, accumulation and recomputation, f32 and bf16. Three kills each; ten with --ci. Then the rules around it:
# one training a folder, SIGTERM, failing storage, the exit codes.
set -eu -o pipefail
build=${BUILD:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/release}
gestalt=$build/bin/gestalt
work=$(mktemp -d)
trap 'kill -9 $(jobs -p) 2>/dev/null || true; rm -rf "$work"' EXIT
cd "$work"
seq -f 'line %g of a text that says little and is long enough' 1 3000 >text.txt
cat >run.toml <<'END'
[run]
name = "killed"
seed = 5
output = "out"
[plugins]
use = ["gestalt.device_cpu", "gestalt.kernels_cpu", "gestalt.comm_self", "gestalt.tokenizer_byte", "gestalt.data_text",
       "gestalt.decoder", "gestalt.attention", "gestalt.mlp", "gestalt.norm", "gestalt.adam", "gestalt.tracker_jsonl",
       "gestalt.ckpt_hdf5"]
[model]
type = "gestalt.decoder"
hidden = 32
layers = 2
heads = 2
ffn = 64
vocab = 256
seq_len = 32
dropout = 0.1
recompute.paths = ["model.layers.*"]
[tokenizer]
type = "gestalt.byte"
[data]
type = "gestalt.text"
path = "text.txt"
[optimizer]
type = "gestalt.adamw"
lr = 1e-2
warmup_steps = 3
[train]
steps = 60
global_batch = 4
micro_batch = 2
log_every = 1
[checkpoint]
type = "gestalt.hdf5"
every = 1
writers = 2
[metrics]
trackers = ["gestalt.jsonl"]
END
export OMP_NUM_THREADS=1
train() { timeout 300 "$gestalt" train run.toml "$@"; }
state_of() { "$gestalt" checkpoint inspect "$1" --json | sed -n 's/^  "state": "\(.*\)",$/\1/p'; }
losses_of() { grep -h '"loss"' "$1"/*.jsonl | grep -o '"step":[0-9]*,\|"loss":[^,}]*'; }

kills=3
[ "${CI:-0}" -eq 1 ] && kills=10
for dtype in f32 bf16; do
  set -- --set run.dtype=$dtype --set checkpoint.every=1
  train --resume none "$@" --set run.output=whole_$dtype >whole.log 2>&1 || { tail -n 5 whole.log; exit 1; }
  for ((k = 0; k < kills; k++)); do
    : >part.log
    # In a group of its own, so that nothing but the kill ends it.
    setsid timeout 300 "$gestalt" train run.toml --resume auto "$@" --set run.output=parts_$dtype >part.log 2>part.err &
    shell=$!
    want=$((1 + RANDOM % 4))
    while kill -0 $shell 2>/dev/null && [ "$(grep -c '^saved' part.log)" -lt $want ]; do sleep 0.0$((RANDOM % 5)); done
    pkill -9 -s "$shell" || true
    wait $shell 2>/dev/null || true
  done
  train --resume auto "$@" --set run.output=parts_$dtype >part.log 2>part.err || { tail -n 5 part.err; exit 1; }
  grep -q "resumed '.*' at step [0-9]* state [0-9a-f]*" part.err || { echo "no state digest was printed at resume"; tail part.err; exit 1; }
  [ -n "$(state_of whole_$dtype)" ] && [ "$(state_of whole_$dtype)" = "$(state_of parts_$dtype)" ] ||
    { echo "$dtype: the state after $kills kills differs"; exit 1; }
  "$gestalt" checkpoint diff whole_$dtype parts_$dtype >/dev/null
  losses_of whole_$dtype >a
  losses_of parts_$dtype >b
  [ -s a ] && cmp a b || { echo "$dtype: the losses differ"; exit 1; }
  echo "$dtype: $kills kills, $(wc -l <a) metric values and the state are the same"
done

# expects CODE REGEX COMMAND...
expects() {
  local code=$1 regex=$2 status=0
  shift 2
  timeout 120 "$@" >said 2>&1 || status=$?
  [ "$status" -eq "$code" ] && grep -qE -- "$regex" said || { echo "$*: exit code $status, expected $code and /$regex/"; tail -n 5 said; ls -d */checkpoints/*; exit 1; }
}
expects 16 "say '--resume auto'" "$gestalt" train run.toml --set run.output=whole_f32
expects 66 "no such folder" "$gestalt" train run.toml --resume nowhere
expects 0 "set [0-9]+ later checkpoints of another history aside" "$gestalt" train run.toml --resume none --set run.output=whole_f32 --set train.steps=1

# A second training of the folder is refused while the first lives, also while it is stopped; a dead one's lock is taken over.
long=(--set train.steps=100000 --set checkpoint.every=5 --set run.output=held)
"$gestalt" train run.toml --resume none "${long[@]}" >held.log 2>&1 &
first=$!
while ! grep -q '^saved' held.log; do sleep 0.1; kill -0 $first; done
kill -STOP $first
expects 74 "is in use by process $first" "$gestalt" train run.toml --resume auto "${long[@]}"
kill -CONT $first
# SIGTERM: a checkpoint of the last update, exit code 75.
kill -TERM $first
status=0
wait $first || status=$?
[ "$status" -eq 75 ] || { echo "SIGTERM: exit code $status, expected 75"; tail -n 3 held.log; exit 1; }
stopped=$(sed -n 's/.*stopped after step \([0-9]*\).*/\1/p' held.log)
[ -d "held/checkpoints/step-$(printf %08d "$stopped")" ] || { echo "no checkpoint of step $stopped"; exit 1; }
[ ! -e held/checkpoints/LOCK ] || { echo "the lock is left"; exit 1; }
: >again.log  # before the loop below looks
"$gestalt" train run.toml --resume auto "${long[@]}" >again.log 2>&1 &
first=$!
while ! grep -q '^saved' again.log; do sleep 0.1; kill -0 $first; done
kill -9 $first
wait $first 2>/dev/null || true
expects 0 "took over the lock of process $first" "$gestalt" train run.toml --resume auto --set run.output=held --set train.steps=1

# A damaged newest checkpoint: refused with file and tensor, or passed over on demand.
newest=$(ls -d held/checkpoints/step-* | tail -n 1)
printf '\377\377\377' | dd of="$newest/shard-00000.h5" bs=1 seek=20000 conv=notrunc 2>/dev/null
expects 65 "shard-00000.h5: tensor '" "$gestalt" train run.toml --resume auto --set run.output=held
expects 0 "resuming from the checkpoint before" "$gestalt" train run.toml --resume auto --allow-older --set run.output=held --set train.steps=1

# Storage that fails: the training goes on; three failures in a row end it.
expects 74 "3 saves in a row failed" env GESTALT_FAILPOINTS=ckpt.folder_synced=error "$gestalt" train run.toml --resume none --set run.output=full --set train.steps=10
# After a failure a new saver counts anew, so that each second save fails and the last one does not.
expects 0 "training goes on \(1 of 3 in a row\)" env GESTALT_FAILPOINTS=ckpt.folder_synced=error:2 "$gestalt" train run.toml --resume none --set run.output=hiccup --set train.steps=9
echo "the rules hold"
