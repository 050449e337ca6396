#!/usr/bin/env bash
# From nothing to a language model trained on a book, on the CPU, in a few minutes.
#
#   bash launcher/quickstart.sh [--text FILE] [--minutes N] [--output FOLDER]
#
#   --text FILE      train on this text, one sentence or paragraph a line; default: the King James Bible
#   --minutes N      how long to train; default 3
#   --output FOLDER  where everything goes; default runs/quickstart
#
# Exit codes: 0 done; 17 the model did not beat the trigram although it had three minutes or more; 66 no such text;
# 69 a package is missing and cannot be installed; otherwise that of the command that failed.
set -eu -o pipefail
export LC_ALL=C

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
text="" minutes=3 output=$repo/runs/quickstart
while [ $# -gt 0 ]; do
  case "$1" in
    --text | --minutes | --output)
      [ $# -ge 2 ] || { echo "[quickstart] $1 needs a value" >&2; exit 2; }
      case "$1" in
        --text) text=$(realpath -m "$2") ;;
        --minutes) minutes=$2 ;;
        --output) output=$(realpath -m "$2") ;;
      esac
      shift ;;
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0"; exit 0 ;;
    *) echo "[quickstart] unknown argument, got '$1', expected --text FILE, --minutes N or --output FOLDER" >&2; exit 2 ;;
  esac
  shift
done
[[ $minutes =~ ^[0-9]+(\.[0-9]+)?$ ]] && awk -v m="$minutes" 'BEGIN { exit !(m > 0) }' || {
  echo "[quickstart] --minutes must be a number above 0, got '$minutes'" >&2
  exit 2
}
if [ -n "$text" ] && [ ! -r "$text" ]; then
  echo "[quickstart] cannot read the text '$text'" >&2
  exit 66
fi
cd "$repo"

echo "== 1/5  Packages"
. launcher/install_deps.sh
gestalt_install_deps || exit $?
echo "   all there"

echo "== 2/5  Build (a first one takes up to three minutes)"
build=$repo/build/release
mkdir -p "$output" "$build"
log=$output/build.log
if ! { cmake --preset release && bash launcher/build_product.sh "$build" gestalt_trigram; } >"$log" 2>&1; then
  grep -E '(error|Error|FAILED)' "$log" | head -n 20 >&2 || true
  echo "[quickstart] the build failed; the whole log is in $log" >&2
  exit 1
fi
gestalt=$build/bin/gestalt
echo "   $gestalt"

echo "== 3/5  Text"
if [ -z "$text" ]; then
  text=$output/kjv.txt
  if [ ! -s "$text" ]; then
    bible=$(command -v bible || echo /usr/games/bible)
    "$bible" -f gen1:1-rev22:21 >"$text.part"
    mv "$text.part" "$text"
  fi
  echo "   the King James Bible, one verse a line"
fi
echo "   $text: $(wc -l <"$text") lines, $(wc -c <"$text") bytes; the lines i with (i div 31) mod 20 = 7 are held out"

# The command logs to standard error; that goes to a file, and its end is shown when something goes wrong.
run_log=$output/log.jsonl
: >"$run_log"
run() {
  local status=0
  "$gestalt" "$@" 2>>"$run_log" || status=$?
  if [ "$status" -ne 0 ]; then
    tail -n 5 "$run_log" >&2
    echo "[quickstart] 'gestalt $1' ended with exit code $status; its log is $run_log" >&2
    exit "$status"
  fi
}

echo "== 4/5  Training for $minutes minutes"
settings=(--set "data.path=$text" --set "run.output=$output" --set "train.minutes=$minutes")
rm -rf "$output/checkpoints" "$output/metrics.jsonl"
# The whole held-out part is scored once, below; the evaluation at the end of the training looks at a little of it.
run train configs/quickstart.toml "${settings[@]}" --set train.eval_samples=32 --resume none | sed 's/^/   | /'

echo "== 5/5  Result"
# The newest checkpoint; names sort by step.
model=$(find "$output/checkpoints" -mindepth 1 -maxdepth 1 -type d | sort -V | tail -n 1)
[ -n "$model" ] || { echo "[quickstart] the training left no checkpoint in $output/checkpoints" >&2; exit 1; }
run eval "$model" --set "data.path=$text" --json >"$output/eval.json"
bits=$(sed -n 's/.*"bits_per_byte" *: *\([0-9.eE+-]*\).*/\1/p' "$output/eval.json" | head -n 1)
[ -n "$bits" ] || { echo "[quickstart] no bits_per_byte in $output/eval.json" >&2; exit 1; }
trigram=$("$build/bin/gestalt_trigram" --text "$text" --number)
printf '   validation bits per byte, model:               %.4f\n' "$bits"
printf '   validation bits per byte, Witten-Bell trigram: %.4f\n' "$trigram"
prompt=$(head -n 1 "$text" | cut -c 1-24)
printf '\n   A sample after "%s":\n\n' "$prompt"
run generate "$model" --prompt "$prompt" --max-tokens 300 --temperature 0.8 --seed 1 | sed 's/^/   | /'
cat <<END

   model    $model
   metrics  $output/metrics.jsonl
   settings configs/quickstart.toml (change one with --set, for example --set model.layers=6)
   more     $gestalt generate $model --prompt "And God said" --max-tokens 200 --temperature 0.8
END
better=$(awk -v a="$bits" -v b="$trigram" 'BEGIN { print (a < b) ? 1 : 0 }')
if [ "$better" -eq 1 ]; then
  echo "   The model beats the trigram."
elif awk -v m="$minutes" 'BEGIN { exit !(m >= 3) }'; then
  echo "[quickstart] the model does not beat the trigram, got $bits bits per byte, expected below $trigram; a slower or busy machine needs more --minutes" >&2
  exit 17
else
  echo "   The model does not beat the trigram yet; the default of 3 minutes is meant to."
fi
