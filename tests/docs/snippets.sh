#!/usr/bin/env bash
# runs: always
# Checks the marked snippets of README.md and docs/*.md:
#
#   ```sh run            a shell script, run from the root of the repository, must exit 0
#   ```sh run bare       the same, without the text that other snippets' run files are given
#   ```toml run          a run file, must pass `gestalt explain config`
#   ```toml run name=X   the same, and kept as X in the folder that $SNIPPETS names, for shell snippets after it
#   ```LANG file=PATH    must be that file, word for word
set -u -o pipefail
repo=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${BUILD:-$repo/build/release}
cd "$repo" || exit 1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export SNIPPETS=$folder PATH=$build/bin:$PATH
# Run files name a text that a reader has and a fresh clone has not.
seq 1 2000 >"$folder/text.txt"
export GESTALT_SET_data__path=$folder/text.txt
# A run file of the docs stands in the root of the repository and extends configs/...
ln -s "$repo/configs" "$folder/configs"

# One file a snippet and one line a snippet in `list`: NUMBER KIND PLACE ARGUMENT.
awk -v folder="$folder" '
  FNR == 1 && open { print place ": a snippet is not closed"; exit 1 }
  !open && /^```[a-z]+ (run|file=)/ {
    open = 1; kind = substr($1, 4); argument = "-"; place = FILENAME ":" FNR
    if ($2 ~ /^file=/) { kind = "file"; argument = substr($2, 6) }
    else if ($3 == "bare") argument = "bare"
    else if ($3 ~ /^name=[A-Za-z0-9_.-]+$/) argument = substr($3, 6)
    out = sprintf("%s/%d", folder, ++count)
    printf "" > out
    print count, kind, place, argument > (folder "/list")
    next
  }
  open && /^```/ { open = 0; close(out); next }
  open { print > out }
  END { if (open) { print place ": a snippet is not closed"; exit 1 } }
' README.md docs/*.md || exit 1

count=0 failed=0
while read -r number kind place argument; do
  count=$((count + 1))
  body=$folder/$number
  status=0
  case "$kind" in
    sh)
      (
        [ "$argument" = bare ] && unset GESTALT_SET_data__path
        exec bash -eu -o pipefail "$body"
      ) >"$folder/log" 2>&1 </dev/null || status=$? ;;
    toml)
      [ "$argument" = - ] && argument=$number.toml
      cp "$body" "$folder/$argument"
      gestalt explain config "$folder/$argument" >"$folder/log" 2>&1 </dev/null || status=$? ;;
    file) diff -u "$argument" "$body" >"$folder/log" 2>&1 || status=$? ;;
    *)
      echo "nobody knows how to run a snippet of kind '$kind'" >"$folder/log"
      status=1 ;;
  esac
  if [ "$status" -ne 0 ]; then
    failed=$((failed + 1))
    echo "[snippets] $place ($kind) exit code $status:"
    sed 's/^/  /' "$folder/log"
  fi
done <"$folder/list"
echo "$count snippets, $failed failed"
[ "$failed" -eq 0 ]
