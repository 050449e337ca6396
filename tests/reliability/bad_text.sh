# `quickstart.sh --text` and `gestalt train` with texts that cannot be used: one message, the right exit code, at once.
# runs: always
set -u -o pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0
# expect CODE WORDS COMMAND...: the exit code, and words in the only line about it on standard error.
expect() {
  local code=$1 words=$2 status=0
  shift 2
  timeout 60 "$@" >"$work/out" 2>"$work/err" || status=$?
  local lines
  lines=$(grep -c -E '^(\[quickstart\]|gestalt: error)' "$work/err")
  if [ "$status" -ne "$code" ] || [ "$lines" -ne 1 ] || ! grep -q -- "$words" "$work/err"; then
    echo "$*: exit code $status and $lines messages, expected $code and one with '$words'"
    cat "$work/err"
    failed=1
  fi
}
: >"$work/empty.txt"
printf 'In the beginning.\n' >"$work/short.txt"
head -c 100000 /dev/urandom >"$work/junk.bin"
quickstart=(bash "$REPO/launcher/quickstart.sh" --output "$work/out" --text)
expect 66 'no such file' "${quickstart[@]}" "$work/missing.txt"
expect 66 'no such file' "${quickstart[@]}" "$work"
expect 65 'is empty' "${quickstart[@]}" "$work/empty.txt"
expect 65 '1 lines, expected at least 218' "${quickstart[@]}" "$work/short.txt"
expect 65 'not text' "${quickstart[@]}" "$work/junk.bin"
train=("$BUILD/bin/gestalt" train "$REPO/configs/bytes.toml" --set "run.output=$work/run" --set)
expect 78 'missing.txt' "${train[@]}" "data.path=$work/missing.txt"
expect 65 'empty.txt' "${train[@]}" "data.path=$work/empty.txt"
expect 65 'short.txt' "${train[@]}" "data.path=$work/short.txt"
exit "$failed"
