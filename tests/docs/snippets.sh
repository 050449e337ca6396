#!/usr/bin/env bash
# runs: always
# Executes the snippets of README.md and docs/*.md that say they run:
#
#   ```sh run            a shell script, run from the root of the repository, must exit 0
#   ```toml run          a run file, checked by `gestalt explain config`
#   ```toml run name=X   the same, and kept as X in the folder that $SNIPPETS names, for shell snippets after it
set -u -o pipefail
repo=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${BUILD:-$repo/build/release}
cd "$repo" || exit 1
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
export SNIPPETS=$folder PATH=$build/bin:$PATH

# One file a snippet: NNN.KIND, first line "FILE:LINE NAME".
awk -v folder="$folder" '
  FNR == 1 { open = 0 }
  !open && /^```(sh|toml) run( |$)/ {
    open = 1; kind = substr($1, 4); name = ""
    if ($3 ~ /^name=[A-Za-z0-9_.-]+$/) name = substr($3, 6)
    out = sprintf("%s/%03d.%s", folder, ++count, kind)
    print FILENAME ":" FNR, name > out
    next
  }
  open && /^```/ { open = 0; close(out); next }
  open { print > out }
  END { if (open) { print FILENAME ": a snippet is not closed"; exit 1 } }
' README.md docs/*.md || exit 1

failed=0 count=0
for snippet in "$folder"/[0-9][0-9][0-9].*; do
  [ -f "$snippet" ] || break
  read -r place name <"$snippet"
  body=$folder/body.${snippet##*.}
  tail -n +2 "$snippet" >"$body"
  count=$((count + 1))
  case "$snippet" in
    *.sh) bash -eu -o pipefail "$body" >"$folder/log" 2>&1 </dev/null ;;
    *.toml)
      [ -z "$name" ] || cp "$body" "$folder/$name"
      "$build/bin/gestalt" explain config "$body" >"$folder/log" 2>&1 </dev/null ;;
  esac
  status=$?
  if [ "$status" -ne 0 ]; then
    failed=$((failed + 1))
    echo "[snippets] $place exit code $status:"
    sed 's/^/  /' "$folder/log"
  fi
done
echo "$count snippets, $failed failed"
[ "$failed" -eq 0 ]
