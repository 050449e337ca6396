#!/usr/bin/env bash
# runs: all
# What saves cost a training with about 64 MiB of state: the snapshot's stall, and updates beside a save against the others.
# Figures for docs/benchmarks.md; on a machine that does other work they say little, so only gross excess fails.
set -eu -o pipefail
build=${BUILD:-$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/build/release}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cd "$work"
seq -f 'line %g of a text that says little and is long enough' 1 6000 >text.txt
cat >run.toml <<'END'
[run]
name = "cost"
output = "out"
[plugins]
use = ["gestalt.device_cpu", "gestalt.kernels_cpu", "gestalt.comm_self", "gestalt.tokenizer_byte", "gestalt.data_text",
       "gestalt.decoder", "gestalt.attention", "gestalt.mlp", "gestalt.norm", "gestalt.adam", "gestalt.tracker_jsonl",
       "gestalt.ckpt_hdf5"]
[model]
type = "gestalt.decoder"
hidden = 256
layers = 7
heads = 4
ffn = 1024
vocab = 256
seq_len = 128
[tokenizer]
type = "gestalt.byte"
[data]
type = "gestalt.text"
path = "text.txt"
[optimizer]
type = "gestalt.adamw"
lr = 1e-3
[train]
steps = 160
global_batch = 4
log_every = 1
[checkpoint]
type = "gestalt.hdf5"
every = 20
[metrics]
trackers = ["gestalt.jsonl"]
END
timeout 580 "$build/bin/gestalt" train run.toml --resume none ${1+"$@"} >out.log 2>err.log || { tail -n 5 err.log; exit 1; }
grep -o 'snapshot of step [0-9]* in [^"]*\|checkpoint of step [0-9]* written in [^"]*' err.log
"$build/bin/gestalt" checkpoint inspect out | sed -n '3p'
# Updates that began while a save was being written, and the others.
grep -h '"step":' out/metrics.jsonl | sed -n 's/.*"step":\([0-9]*\),.*"step_seconds":\([0-9.e-]*\).*/\1 \2/p' | sort -n >seconds
sed -n 's/.*checkpoint of step \([0-9]*\) written in \([0-9.]*\) \(m*s\)".*/\1 \2 \3/p' err.log >written
awk 'FILENAME == "written" { left[$1] = $3 == "ms" ? $2 / 1000 : $2; next }
     $1 > 5 { print (busy > 0 ? "beside" : "alone"), $2 }
     { busy -= $2; if ($1 in left) busy = left[$1] }' written seconds >kinds
median() { awk -v k="$1" '$1 == k { print $2 }' kinds | sort -g | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }
beside=$(median beside)
alone=$(median alone)
awk -v a="$beside" -v b="$alone" 'BEGIN { printf "update beside a save %.1f ms, alone %.1f ms: %+.1f%%\n", a * 1e3, b * 1e3, 100 * (a / b - 1); exit a > 2 * b }'
