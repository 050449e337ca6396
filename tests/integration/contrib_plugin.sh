#!/usr/bin/env bash
# runs: always
# A third party's day: install Gestalt, build plugins-contrib/acme_gelu against the installed SDK away from the source
# tree, and see the run choose its kernel for the forward and Gestalt's own for the gradient.
set -eu -o pipefail
repo=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${BUILD:-$repo/build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
chmod 755 "$work"
cmake --install "$build" --prefix "$work/gestalt" >"$work/install.log"
cp -r "$repo/plugins-contrib/acme_gelu" "$work/acme"
cmake -S "$work/acme" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/gestalt"
cmake --build "$work/build"
manifest=$(find "$work/build" -name plugin.toml)
grep -q 'id = "acme.gelu"' "$manifest"
grep -q 'backend = "acme.cpu"' "$manifest"

seq 1 2000 >"$work/text.txt"
ids=$(sed -n '/^use = \[/,/^\]/p' "$repo/configs/bytes.toml" | tail -n +2 | tr -d '\n' | sed 's/ *\]$//')
export GESTALT_PLUGIN_PATH
GESTALT_PLUGIN_PATH=$(dirname "$(dirname "$manifest")")
"$work/gestalt/bin/gestalt" explain kernels "$repo/configs/bytes.toml" --set "data.path=$work/text.txt" \
  --set "plugins.use=[$ids \"acme.gelu\"]" --set 'kernels.cpu=["acme.cpu", "gestalt.cpu"]' >"$work/kernels.txt"
cat "$work/kernels.txt"
grep -E 'core\.gelu\b' "$work/kernels.txt" | grep -v gelu_bwd | grep -q 'acme\.cpu'
grep -E 'core\.gelu_bwd\b' "$work/kernels.txt" | grep -q 'gestalt\.cpu'
