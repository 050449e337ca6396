#!/usr/bin/env bash
# runs: part
# Where the time of a training step goes: kernels of GPT-2 124M by name, with Nsight Compute.
#
#   bash gpu/profile.sh HOME LOGS RESULTS     (called by run.sh)
set -u -o pipefail
if [ $# -ne 3 ]; then
  echo "called by run.sh"
  exit 77
fi
home=$1 folder=$2/profile results=$3
if ! command -v ncu >/dev/null 2>&1; then
  echo "ncu is not installed"
  exit 77
fi
mkdir -p "$folder" && cd "$folder" || exit 1
head -c 4000000 /dev/urandom | base64 -w 100 >text.txt
train=(gestalt train "$home/gpu/bench.toml" --set run.output="$folder/run" --set data.path="$folder/text.txt"
  --set run.capture=false --set train.global_batch=32)
# The first run fills the cache of searched algorithms, so that the second has only the kernels of training.
"${train[@]}" --set train.steps=2 >first.log 2>&1 || exit 1
timeout 90 ncu --csv --metrics gpu__time_duration.sum --clock-control none --launch-skip 700 --launch-count 900 \
  "${train[@]}" --set train.steps=4 >profile.csv 2>profile.err
# "ID","Process ID",...: the name is the 5th field, the value the last; nanoseconds or microseconds.
python3 - profile.csv >"$results/profile.txt" <<'PY'
import collections, csv, sys
rows = [r for r in csv.reader(open(sys.argv[1], errors="replace")) if len(r) > 10]
head = next(r for r in rows if "Kernel Name" in r)
name, value, unit = head.index("Kernel Name"), head.index("Metric Value"), head.index("Metric Unit")
total, count = collections.Counter(), collections.Counter()
for r in rows:
    if r is head or len(r) != len(head) or r[name] == "Kernel Name":
        continue
    factor = {"ns": 1e-3, "nsecond": 1e-3, "us": 1, "usecond": 1, "ms": 1e3, "msecond": 1e3}.get(r[unit], 1)
    total[r[name][:150]] += float(r[value].replace(",", "")) * factor
    count[r[name][:150]] += 1
all_us = sum(total.values())
print(f"{all_us / 1e3:.2f} ms in {sum(count.values())} launches")
for n, t in total.most_common(45):
    print(f"{100 * t / all_us:5.1f}% {t / 1e3:8.3f} ms {count[n]:5d} x {t / count[n]:8.1f} us  {n}")
PY
head -n 1 "$results/profile.txt"
