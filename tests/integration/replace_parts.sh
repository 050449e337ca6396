#!/usr/bin/env bash
# runs: always
# plugins-contrib/acme_parts is built against the installed SDK; then the host that runs it is linked anew, so the plugin
# is older than its host. One line of TOML each puts its attention, norm and loss in place of the decoder's: the program
# shows them at their paths, and the losses stay those of the first-party parts.
set -eu -o pipefail
repo=${REPO:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}
build=${BUILD:-$repo/build/release}
[ -x "$build/bin/gestalt" ] || { echo "no gestalt is built in $build"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
umask 022
chmod 755 "$work"
cmake --install "$build" --prefix "$work/gestalt" >"$work/install.log"
cp -r "$repo/plugins-contrib/acme_parts" "$work/acme"
cmake -S "$work/acme" -B "$work/build" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_PREFIX_PATH="$work/gestalt"
cmake --build "$work/build"
export GESTALT_PLUGIN_PATH=$work/build/lib/gestalt/plugins
library=$GESTALT_PLUGIN_PATH/acme_parts/libacme_parts.so

# The host's own link, with another output and without what the build does after it.
host=$work/gestalt/bin/gestalt
rm "$host"
if link=$(ninja -C "$build" -t commands bin/gestalt 2>/dev/null | tail -n 1) && [[ $link == *" -o bin/gestalt "* ]]; then
  link=${link#": && "}
  link=${link%%" && "*}
  (cd "$build" && eval "${link/ -o bin\/gestalt / -o $host }")
else
  echo "the build in $build is not Ninja's"
  exit 77
fi
[ "$host" -nt "$library" ] || { echo "$host is not newer than $library"; exit 1; }

for ((i = 0; i < 3000; ++i)); do echo "line $i: $((i * i % 977)) leaves and $((i * 7919 % 1009)) stones"; done >"$work/text.txt"
ids=$(sed -n '/^use = \[/,/^\]/p' "$repo/configs/bytes.toml" | tail -n +2 | tr -d '\n' | sed 's/ *\]$//')
# run_file NAME [LINE...]: a run file with the lines under [model.slots].
run_file() {
  local name=$1 line
  shift
  {
    printf 'extends = ["%s"]\n' "$repo/configs/bytes.toml"
    printf '[run]\nname = "%s"\noutput = "%s"\n' "$name" "$work/$name"
    printf '[plugins]\nuse = [%s "gestalt.device_sim", "acme.parts"]\n' "$ids"
    printf '[model]\nhidden = 64\nlayers = 2\nheads = 4\nffn = 256\nseq_len = 64\n'
    printf '[data]\npath = "%s"\n' "$work/text.txt"
    printf '[optimizer]\nwarmup_steps = 5\n'
    printf '[train]\nsteps = 20\nlog_every = 1\neval_samples = 4\n'
    printf '[model.slots]\n'
    for line in "$@"; do printf '%s\n' "$line"; done
  } >"$work/$name.toml"
}
losses() { grep -o '"loss" *: *[^,}]*' "$1/metrics.jsonl" | grep -o '[0-9.e+-]*$'; }

count=0
# replaces NAME "SLOT LINES" "PATH OP" ...: trains on cpu and sim; each op must stand at each path of the program.
replaces() {
  local name=$1 lines=$2 pair device worst
  shift 2
  mapfile -t lines <<<"$lines"
  run_file "$name" "${lines[@]}"
  "$host" explain program "$work/$name.toml" >"$work/$name.program" 2>/dev/null
  for pair in "$@"; do
    grep -qE " = ${pair#* }\(.*# forward ${pair% *}\$" "$work/$name.program" ||
      { echo "$name: explain program shows no ${pair#* } at ${pair% *}"; exit 1; }
  done
  for device in cpu sim; do
    "$host" train "$work/$name.toml" --resume none --device "$device" >"$work/$name.log" 2>&1 ||
      { tail -n 5 "$work/$name.log"; exit 1; }
    worst=$(losses "$work/$name" | paste "$work/own.losses" - | awk '
      { d = $1 - $2; if (d < 0) d = -d; if (d / $1 > worst) worst = d / $1; n += NF == 2 }
      END { if (n != 20) print "inf"; else printf "%.2g\n", worst }')
    echo "$name on $device: losses of 20 updates differ by $worst at most, relative"
    awk -v worst="$worst" 'BEGIN { exit !(worst != "inf" && worst < 1e-4) }' || exit 1
    rm -rf "${work:?}/$name"
  done
  count=$((count + 1))
}

run_file own
"$host" train "$work/own.toml" --resume none --device cpu >"$work/own.log" 2>&1 || { tail -n 5 "$work/own.log"; exit 1; }
losses "$work/own" >"$work/own.losses"
[ "$(wc -l <"$work/own.losses")" -eq 20 ] || { echo "expected 20 losses in $work/own"; exit 1; }
[ "$(sort -u "$work/own.losses" | wc -l)" -gt 15 ] || { echo "the losses stand still"; exit 1; }

attention='core_attention = "acme.attention"' norm='norm = "acme.rms_norm"' loss='loss = "acme.cross_entropy"'
at_attention="model.layers.1.attention.core_attention core.scale"
at_norm="model.layers.1.mlp_norm core.rsqrt" at_final="model.final_norm core.rsqrt"
at_loss="model.loss core.logsumexp"
replaces attention "$attention" "$at_attention"
replaces norm "$norm" "$at_norm" "$at_final"
replaces loss "$loss" "$at_loss"
replaces all "$attention"$'\n'"$norm"$'\n'"$loss" "$at_attention" "$at_norm" "$at_final" "$at_loss"
if grep -qE ' core\.(rms_norm|cross_entropy)\(' "$work/all.program"; then
  echo "the decoder's own norm or loss is still in the program"
  exit 1
fi
echo "$count run files with parts of a plugin that is older than its host"
