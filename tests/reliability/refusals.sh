#!/usr/bin/env bash
# runs: always
# What `gestalt train` refuses, with which exit code and which words: plugins that are not what their manifest says, and
# run files with mistakes. A refused plugin is named with the step that found it, the file and the reason. Works on a copy of the installed shape (bin/ and lib/gestalt/plugins), one damage at a time.
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
  timeout 60 "$work/bin/gestalt" train "$config" --resume none --set "data.path=$text" --set train.steps=1 \
    --set "run.output=$work/run/out" "${sets[@]}" >"$work/out" 2>"$work/err" </dev/null || status=$?
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
# refuses_plugin NAME ID STEP FILE REGEX...: exit code 78, and the plugin, the step, the file and the reason in one line.
refuses_plugin() {
  local name=$1 id=$2 step=$3 file=$4
  shift 4
  refuses "$name" 78 "plugin '$id': step '$step': file [^ ]*$file[^:]*: [^ ]" "$@"
}
plain_config() { cp "$repo/configs/bytes.toml" "$config"; }

plain_config
fresh_plugins
refuses "the untouched copy runs" 0

# --- plugins
rm -rf "$work/lib/gestalt/plugins/$victim"
refuses_plugin "a missing plugin" "gestalt\.$victim" search plugin.toml "not found"

fresh_plugins
so=$(library $victim)
truncate -s "$(($(stat -c %s "$so") / 2))" "$so"
refuses_plugin "a truncated library" "gestalt\.$victim" hash "lib$victim.so" "SHA-256"

# With a manifest that agrees about the hash, the file itself must be found out.
rehash() {
  sed -i "s/^sha256 = .*/sha256 = \"$(sha256sum "$(library "$1")" | cut -d' ' -f1)\"/" "$work/lib/gestalt/plugins/$1/plugin.toml"
}
rehash $victim
refuses_plugin "a truncated library with the right hash" "gestalt\.$victim" elf "lib$victim.so" "truncated"

fresh_plugins
so=$(library $victim)
printf '\xb7' | dd of="$so" bs=1 seek=18 conv=notrunc 2>/dev/null # e_machine: AArch64
rehash $victim
refuses_plugin "a library of another architecture" "gestalt\.$victim" elf "lib$victim.so" "built for aarch64"

fresh_plugins
sed -i 's/^sha256 = .*/sha256 = "0000000000000000000000000000000000000000000000000000000000000000"/' \
  "$work/lib/gestalt/plugins/$victim/plugin.toml"
refuses_plugin "a wrong hash" "gestalt\.$victim" hash "lib$victim.so" "the manifest says 0000"

fresh_plugins
sed -i 's/^major = .*/major = 99/' "$work/lib/gestalt/plugins/$victim/plugin.toml"
refuses_plugin "a manifest of another ABI major" "gestalt\.$victim" abi "lib$victim.so" "ABI 99"

fresh_plugins
cat >>"$work/lib/gestalt/plugins/$victim/plugin.toml" <<'END'

[[provides.kernel]]
op = "core.add"
device = "cpu"
backend = "lies.cpu"
END
refuses_plugin "a manifest that promises a kernel that is not there" "gestalt\.$victim" compare "lib$victim.so" "core\.add" "does not tell the truth"

fresh_plugins
so=$(library $victim)
mv "$so" "$work/outside.so"
ln -s "$work/outside.so" "$so"
refuses_plugin "a link out of the plugin's folder" "gestalt\.$victim" path "lib$victim.so" "symbolic link"

fresh_plugins
chmod o+w "$work/lib/gestalt/plugins/$victim"
refuses_plugin "a world-writable folder" "gestalt\.$victim" owner "lib$victim.so" "world-writable"

fresh_plugins
sed -i '0,/=/s/=/= = [/' "$work/lib/gestalt/plugins/$victim/plugin.toml"
refuses_plugin "a manifest that is not TOML" "gestalt\.$victim" search plugin.toml "plugin\.toml:[0-9]+"

fresh_plugins
cp -r "$work/lib/gestalt/plugins/$victim" "$work/lib/gestalt/plugins/${victim}_again"
refuses_plugin "the same plugin in two places" "gestalt\.$victim" search plugin.toml "${victim}_again"

# Another plugin with a kernel of the same op, device and backend as gestalt.kernels_cpu.
fresh_plugins
mkdir "$work/lib/gestalt/plugins/twin"
cp "$build/tests/odd/libtwin.so" "$work/lib/gestalt/plugins/twin/"
"$work/bin/gestalt" plugin pack "$work/lib/gestalt/plugins/twin/libtwin.so" >/dev/null
sed -i 's/"gestalt.kernels_cpu", /&"acme.twin", /' "$config"
refuses_plugin "a duplicate kernel" "acme\.twin" register libtwin.so "core\.add" "gestalt\.cpu" "gestalt\.kernels_cpu"
plain_config

# A library of the next ABI under a manifest that says otherwise.
fresh_plugins
cp "$build/tests/odd/libabi2.so" "$(library $victim)"
rehash $victim
refuses_plugin "a library of another ABI major" "gestalt\.$victim" abi "lib$victim.so" "ABI major 2"

fresh_plugins
sed -i 's/"gestalt.kernels_cpu", //; /^\[kernels\]/,/^cpu/d' "$config"
refuses "an op without a kernel" 69 "\[core\.[a-z_]+ at (model\.|optimizer)" "no kernel serves it on device .cpu.: ."

plain_config
sets=(--set run.device=warp)
refuses "a device of no plugin" 78 "warp"

# --- run files
line_of() { grep -n -- "$1" "$config" | head -n 1 | cut -d: -f1; }
plain_config
sed -i '/^hidden = /a hiden = 5' "$config"
refuses "an unknown key" 78 "config\.toml:$(line_of '^hiden')" "model\.hiden" "nearest .*model\.hidden"

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

plain_config
sed -i '/^schedule = /a wsd_style = "linear"' "$config"
refuses "a key without effect" 78 "config\.toml:$(line_of '^wsd_style')" "wsd_style" "has no effect" "schedule=wsd"

plain_config
sed -i '/^type = "gestalt.text"/a shuffel = true' "$config"
refuses "an unknown key of a plugin's component" 78 "config\.toml:$(line_of '^shuffel')" "shuffel"

rm "$config"
refuses "a run file that is not there" 66 "config\.toml"

echo "$count cases, $failed failed"
[ "$failed" -eq 0 ]
