#!/usr/bin/env bash
# From nothing to a language model trained on a book, on the CPU, within 25 minutes on two cores.
#
#   bash launcher/quickstart.sh [--text FILE] [--minutes N] [--output FOLDER]
#
#   --text FILE      train on this text, one sentence or paragraph a line; default: the King James Bible
#   --minutes N      how long to train; default 18
#   --output FOLDER  where everything goes; default runs/quickstart
#
# Exit codes: 0 done; 17 the model did not beat the byte 5-gram although it had 15 minutes or more; 65 the text cannot be
# used; 66 no such text; 69 a package is missing and cannot be installed; otherwise that of the command that failed.
set -eu -o pipefail
export LC_ALL=C

repo=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
text="" minutes=18 output=$repo/runs/quickstart
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

# What is wrong with a text is said before anything is installed or built.
refuse_text() {
  echo "[quickstart] --text '$text': $2" >&2
  exit "$1"
}
least_lines=218 # with fewer none is held out
check_text() {
  [ -f "$text" ] && [ -r "$text" ] || refuse_text 66 "no such file, or it cannot be read"
  [ -s "$text" ] || refuse_text 65 "the file is empty, expected a text of at least $least_lines lines"
  local lines
  [ "$(tr -d '\000' <"$text" | wc -c)" -eq "$(wc -c <"$text")" ] ||
    refuse_text 65 "the file holds zero bytes, so it is not text; expected UTF-8 or another text of one line a sentence"
  lines=$(wc -l <"$text")
  [ "$lines" -ge "$least_lines" ] ||
    refuse_text 65 "the file has $lines lines, expected at least $least_lines: lines are held out in blocks of 31"
}
if [ -n "$text" ]; then check_text; fi
cd "$repo"

echo "== 1/6  Packages"
. launcher/install_deps.sh
gestalt_install_deps || exit $?
echo "   all there"

echo "== 2/6  Build (a first one takes three to four minutes)"
build=$repo/build/release
mkdir -p "$output" "$build"
log=$output/build.log
if ! { cmake --preset release && bash launcher/build_product.sh "$build" gestalt_ngram; } >"$log" 2>&1; then
  grep -E '(error|Error|FAILED)' "$log" | head -n 20 >&2 || true
  echo "[quickstart] the build failed; the whole log is in $log" >&2
  exit 1
fi
gestalt=$build/bin/gestalt
echo "   $gestalt"

# The command logs to standard error; that goes to a file, and its last word is shown when something goes wrong.
run_log=$output/log.jsonl
: >"$run_log"
run() {
  local status=0
  "$gestalt" "$@" 2>>"$run_log" || status=$?
  if [ "$status" -ne 0 ]; then
    tail -n 1 "$run_log" >&2
    echo "[quickstart] 'gestalt $1' ended with exit code $status; its log is $run_log" >&2
    exit "$status"
  fi
}

echo "== 3/6  Text and vocabulary"
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
vocabulary=$output/bpe4096.tiktoken
awk 'int((NR - 1) / 31) % 20 != 7' "$text" >"$output/training_lines.txt"
run tokenizer train --input "$output/training_lines.txt" --output "$vocabulary" --vocab-size 4096 --no-special >"$output/vocabulary.txt"
rm -f "$output/training_lines.txt"
echo "   $vocabulary: BPE learned from the other lines"

echo "== 4/6  Training for $minutes minutes"
settings=(--set "data.path=$text" --set "tokenizer.ranks=$vocabulary" --set "run.output=$output" --set "train.minutes=$minutes")
rm -rf "$output/checkpoints" "$output/metrics.jsonl"
prompt=$(head -n 1 "$text" | cut -c 1-24)
run train configs/quickstart.toml "${settings[@]}" --set "train.sample_prompt=$prompt" --resume none | sed 's/^/   | /'

echo "== 5/6  Held-out text"
# The newest checkpoint; names sort by step.
model=$(find "$output/checkpoints" -mindepth 1 -maxdepth 1 -type d | sort -V | tail -n 1)
[ -n "$model" ] || { echo "[quickstart] the training left no checkpoint in $output/checkpoints" >&2; exit 1; }
run eval "$model" --set "data.path=$text" --json >"$output/eval.json"
bits=$(sed -n 's/.*"bits_per_byte" *: *\([0-9.eE+-]*\).*/\1/p' "$output/eval.json" | head -n 1)
[ -n "$bits" ] || { echo "[quickstart] no bits_per_byte in $output/eval.json" >&2; exit 1; }
byte_ngram=$("$build/bin/gestalt_ngram" --text "$text")
bpe_ngram=$("$build/bin/gestalt_ngram" --text "$text" --ranks "$vocabulary")
printf '   validation bits per byte, model:                    %.4f\n' "$bits"
printf '   validation bits per byte, byte 5-gram:              %.4f\n' "$byte_ngram"
printf '   validation bits per byte, Kneser-Ney 5-gram of BPE: %.4f\n' "$bpe_ngram"

echo "== 6/6  Samples and report"
run generate "$model" --prompt "$prompt" --max-tokens 120 --temperature 0.8 --top-k 50 --seed 1 | tee "$output/sample.txt" | sed 's/^/   | /'
report=$(run report "$output" --sample "$output/sample.txt")
cat <<END

   report   $report
   model    $model
   metrics  $output/metrics.jsonl
   settings configs/quickstart.toml (change one with --set, for example --set model.layers=6)
   more     $gestalt generate $model --prompt "And God said" --max-tokens 200 --temperature 0.8
END
better=$(awk -v a="$bits" -v b="$byte_ngram" 'BEGIN { print (a < b) ? 1 : 0 }')
if [ "$better" -eq 1 ]; then
  echo "   The model beats the byte 5-gram."
elif awk -v m="$minutes" 'BEGIN { exit !(m >= 15) }'; then
  echo "[quickstart] the model does not beat the byte 5-gram, got $bits bits per byte, expected below $byte_ngram; a slower or busy machine needs more --minutes" >&2
  exit 17
else
  echo "   The model does not beat the byte 5-gram yet; the default of 18 minutes is meant to."
fi
