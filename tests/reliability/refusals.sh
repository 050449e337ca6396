#!/usr/bin/env bash
# runs: always
# What the command refuses, with which exit code and which words: plugins that are not what their manifest says, and
# run files with mistakes. Works on a copy of the installed shape (bin/ and lib/gestalt/plugins), one damage at a time.
set -u -o pipefail
repo=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${BUILD:-$repo/build/release}
work=$(mktemp -d)
trap 'chmod -R u+w "$work"; rm -rf "$work"' EXIT
chmod 755 "$work"
umask 022
mkdir -p "$work/bin" "$work/lib/gestalt" "$work/run"
cp "$build/bin/gestalt" "$work/bin/"
config=$work/run/config.toml
victim=mlp
text=$work/run/text.txt
seq 1 2000 >"$text"

fresh_plugins() {
  rm -rf "$work/lib/gestalt/plugins"
  cp -r "$build/lib/gestalt/plugins" "$work/lib/gestalt/plugins"
  chmod -R go-w "$work/lib/gestalt/plugins"
}
# The library of a plugin's folder.
library() { find "$work/lib/gestalt/plugins/$1" -name '*.so' | head -n 1; }

count=0 failed=0
# refuses NAME CODE REGEX...: runs the configuration; every expression must be found in what is said on standard error.
refuses() {
  local name=$1 code=$2 status=0 wrong="" regex
  shift 2
  count=$((count + 1))
  timeout 60 "$work/bin/gestalt" explain kernels "$config" --set "data.path=$text" "${sets[@]}" \
    >"$work/out" 2>"$work/err" </dev/null || status=$?
  [ "$status" -eq "$code" ] || wrong="exit code $status, expected $code"
  for regex in "$@"; do
    grep -qE -- "$regex" "$work/err" || wrong="$wrong${wrong:+; }standard error lacks /$regex/"
  done
  if [ -n "$wrong" ]; then
    failed=$((failed + 1))
    echo "[refusals] $name: $wrong; it said:"
    head -n 10 "$work/err" | sed 's/^/    /'
  fi
  sets=()
}
sets=()
plain_config() { cp "$repo/configs/quickstart.toml" "$config"; }

plain_config
fresh_plugins
refuses "the untouched copy runs" 0

# --- plugins
rm -rf "$work/lib/gestalt/plugins/$victim"
refuses "a missing plugin" 78 "gestalt\.$victim"

fresh_plugins
so=$(library $victim)
truncate -s "$(($(stat -c %s "$so") / 2))" "$so"
refuses "a truncated library" 78 "gestalt\.$victim" "$(basename "$so")" "step"

# With a manifest that agrees about the hash, the file itself must be found out.
rehash() {
  sed -i "s/^sha256 = .*/sha256 = \"$(sha256sum "$(library "$1")" | cut -d' ' -f1)\"/" "$work/lib/gestalt/plugins/$1/plugin.toml"
}
rehash $victim
refuses "a truncated library with the right hash" 78 "gestalt\.$victim" "elf"

fresh_plugins
so=$(library $victim)
printf '\xb7' | dd of="$so" bs=1 seek=18 conv=notrunc 2>/dev/null # e_machine: AArch64
rehash $victim
refuses "a library of another architecture" 78 "gestalt\.$victim" "elf" "(rchitecture|machine)"

fresh_plugins
sed -i 's/^sha256 = .*/sha256 = "0000000000000000000000000000000000000000000000000000000000000000"/' \
  "$work/lib/gestalt/plugins/$victim/plugin.toml"
refuses "a wrong hash" 78 "gestalt\.$victim" "hash"

fresh_plugins
sed -i 's/^major = .*/major = 99/' "$work/lib/gestalt/plugins/$victim/plugin.toml"
refuses "another ABI major" 78 "gestalt\.$victim" "99"

fresh_plugins
cat >>"$work/lib/gestalt/plugins/$victim/plugin.toml" <<'END'

[[provides.kernel]]
op = "core.add"
device = "cpu"
backend = "lies.cpu"
END
refuses "a manifest that promises a kernel that is not there" 78 "gestalt\.$victim" "compare" "core\.add"

fresh_plugins
so=$(library $victim)
mv "$so" "$work/outside.so"
ln -s "$work/outside.so" "$so"
refuses "a link out of the plugin's folder" 78 "gestalt\.$victim" "(link|outside)"

fresh_plugins
chmod o+w "$work/lib/gestalt/plugins/$victim"
refuses "a world-writable folder" 78 "gestalt\.$victim" "writable"

fresh_plugins
sed -i '0,/=/s/=/= = [/' "$work/lib/gestalt/plugins/$victim/plugin.toml"
refuses "a manifest that is not TOML" 78 "plugin\.toml"

# The same backend twice: a copy of kernels_cpu under another id cannot be made by hand (the id is in the binary), so
# the id found twice stands in; a duplicate kernel is a unit test of the registry.
fresh_plugins
cp -r "$work/lib/gestalt/plugins/$victim" "$work/lib/gestalt/plugins/${victim}_again"
refuses "the same plugin in two places" 78 "gestalt\.$victim"

fresh_plugins
sed -i 's/"gestalt.kernels_cpu", //; /^\[kernels\]/,/^cpu/d' "$config"
refuses "an op without a kernel" 69 "core\."

plain_config
sets=(--set run.device=warp)
refuses "a device of no plugin" 78 "warp"

# --- run files
line_of() { grep -n -- "$1" "$config" | head -n 1 | cut -d: -f1; }
plain_config
sed -i '/^hidden = /a hiden = 5' "$config"
refuses "an unknown key" 78 "config\.toml:$(line_of '^hiden')" "hiden" "hidden"

plain_config
sed -i 's/^hidden = .*/hidden = "wide"/' "$config"
refuses "a wrong type" 78 "config\.toml:$(line_of '^hidden')" "hidden" "wide"

plain_config
sed -i 's/^hidden = .*/hidden = -1/' "$config"
refuses "a value out of range" 78 "config\.toml:$(line_of '^hidden')" "hidden" "-1"

plain_config
sed -i 's/^hidden = .*/hidden = = 3/' "$config"
refuses "a file that is not TOML" 78 "config\.toml:$(line_of '^hidden')"

plain_config
sets=(--set optimizer.momentum=0.9)
refuses "a key without effect, on the command line" 78 "optimizer\.momentum"

rm "$config"
refuses "a run file that is not there" 66 "config\.toml"

echo "$count cases, $failed failed"
[ "$failed" -eq 0 ]
