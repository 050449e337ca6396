# 4,096 tokens are learned from the King James Bible within ten seconds.
# runs: ci
set -eu -o pipefail
gestalt=$BUILD/bin/gestalt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
if ! command -v bible >/dev/null; then
  echo "the Debian package bible-kjv is not installed"
  exit 77
fi
bible -f gen1:1-rev22:21 >"$work/kjv.txt"
"$gestalt" tokenizer train --input "$work/kjv.txt" --output "$work/kjv.tiktoken" --vocab-size 4096 --json >"$work/train.json"
cat "$work/train.json"
sed 's/.*"seconds":\([0-9.e-]*\).*/\1/' "$work/train.json" | awk '{ exit !($1 < 10) }'
