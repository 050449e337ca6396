# A training that is told to stop or to save at any time: SIGTERM ends it with exit 75 and a state that the next one goes
# on from; SIGUSR1 saves and goes on.
# runs: always
set -eu -o pipefail
gestalt=$BUILD/bin/gestalt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
seq -f 'Line %g says that one word follows the other words.' 1 3000 >"$work/text.txt"
config=(configs/bytes.toml --set "data.path=$work/text.txt" --set "run.output=$work/run" --set model.layers=1
  --set model.hidden=32 --set model.heads=2 --set model.ffn=64 --set model.seq_len=32 --set train.log_every=1)
cd "$REPO"
begin() { # begin LOG RESUME
  "$gestalt" train "${config[@]}" --set train.steps=1000000 --set train.minutes=60 --resume "$2" >"$1" 2>"$1.err" &
  pid=$!
}
# wait_for LOG PATTERN: until a line matches; fails when the training ends before.
wait_for() {
  local i
  for i in $(seq 1 600); do
    grep -q "$2" "$1" && return 0
    kill -0 "$pid" 2>/dev/null || { echo "the training ended before '$2'"; tail -n 5 "$1" "$1.err"; return 1; }
    sleep 0.05
  done
  echo "no '$2' after 30 seconds"
  return 1
}
last_step() { sed -n 's/^step *\([0-9]*\).*/\1/p' "$1" | tail -n 1; }
saved_step() { find "$work/run/checkpoints" -mindepth 1 -maxdepth 1 -name 'step-*' ! -name '*.tmp' | sort | tail -n 1 | sed 's/.*step-0*//'; }

rounds=3
[ "${CI:-0}" = 1 ] && rounds=20
resume=none from=0
for round in $(seq 1 "$rounds"); do
  begin "$work/log" "$resume"
  target=$((from + 1 + RANDOM % 40))
  wait_for "$work/log" "^step *$target/"
  kill -TERM "$pid"
  status=0
  wait "$pid" || status=$?
  [ "$status" -eq 75 ] || { echo "round $round: exit code $status, expected 75"; tail -n 5 "$work/log" "$work/log.err"; exit 1; }
  done=$(last_step "$work/log") saved=$(saved_step)
  [ "$done" -eq "$saved" ] || { echo "round $round: stopped after step $done, saved $saved"; exit 1; }
  [ "$saved" -gt "$from" ] || { echo "round $round: saved $saved, began at $from"; exit 1; }
  first=$(sed -n 's/^step *\([0-9]*\).*/\1/p' "$work/log" | head -n 1)
  [ "$first" -eq $((from + 1)) ] || { echo "round $round: began at step $first, expected $((from + 1))"; exit 1; }
  from=$saved resume=auto
  echo "round $round: stopped at step $saved"
done
"$gestalt" eval "$work/run/checkpoints/$(ls "$work/run/checkpoints" | sort | tail -n 1)" --samples 2 >"$work/eval.txt"
grep -q 'loss' "$work/eval.txt"

# SIGUSR1 in the middle, and as early as the process takes it.
begin "$work/log" auto
wait_for "$work/log" "^step *$((from + 5))/"
kill -USR1 "$pid"
wait_for "$work/log" '^saved '
at=$(last_step "$work/log")
wait_for "$work/log" "^step *$((at + 20))/"
kill -TERM "$pid"
status=0
wait "$pid" || status=$?
[ "$status" -eq 75 ] || { echo "after SIGUSR1: exit code $status, expected 75"; exit 1; }
[ "$(grep -c '^saved ' "$work/log")" -eq 2 ] || { echo "expected two saves"; grep '^saved' "$work/log"; exit 1; }
