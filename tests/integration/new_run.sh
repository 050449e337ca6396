# `gestalt new run` writes run files that pass their check, and refuses what it should.
# runs: always
set -eu -o pipefail
gestalt=$BUILD/bin/gestalt
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
seq 1 2000 >text.txt
"$gestalt" new run | grep -q '^  quickstart'
for file in "$REPO"/configs/*.toml; do
  name=$(basename "$file" .toml)
  "$gestalt" new run "$name"
  cmp "$file" "$name.toml"
  missing=0
  for plugin in $(sed -n '/^use = \[/,/^\]/p' "$file" | grep -o '"[^"]*"' | tr -d '"'); do
    "$gestalt" plugin show "$plugin" >/dev/null 2>&1 || missing=1
  done
  if [ "$missing" -eq 1 ]; then
    echo "$name needs plugins that this build has not; not checked"
    continue
  fi
  "$gestalt" explain config "$name.toml" --set data.path=text.txt >/dev/null
done
code() { local status=0; "$gestalt" "$@" >out.txt 2>&1 || status=$?; echo "$status"; }
[ "$(code new run quickstart)" -eq 2 ] && grep -q 'is there already' out.txt
[ "$(code new run quickstrat)" -eq 2 ] && grep -q "did you mean 'quickstart'" out.txt
[ "$(code new walk)" -eq 2 ]
"$gestalt" new run quickstart --output other.toml
"$gestalt" new run quickstart --force
cmp quickstart.toml other.toml
