#!/usr/bin/env bash
# Everything that needs a GPU, from a folder made by pack.sh: the op harness on the device, parity of every golden model
# in f32 and bf16, direct, captured and on two streams, the memory and race checkers, and first speeds.
#
#   bash gpu/run.sh [--only PATTERN] [--long] [--results FOLDER]
#
# --long adds a profile of a step, and a training of 1,000 steps beside torch.
# One line a part, a short table last; logs in the results folder (default: $OUT, else results beside the script).
# Exit 77 without a GPU.
set -u -o pipefail
home=$(cd "$(dirname "$0")/.." && pwd)
only=. results=${OUT:-$home/results} long=0
while [ $# -gt 0 ]; do
  case "$1" in
    --only) only=$2 && shift ;;
    --results) results=$2 && shift ;;
    --long) long=1 ;;
    *) echo "[run.sh] unknown argument, got '$1'" >&2 && exit 2 ;;
  esac
  shift
done
if [ ! -f "$home/bin/gestalt_harness" ]; then
  echo "this is not a packed folder; see tests/gpu/pack.sh"
  exit 77
fi
if ! nvidia-smi -L >/dev/null 2>&1; then
  echo "there is no GPU"
  exit 77
fi
mkdir -p "$results"
logs=$(mktemp -d)

# cuBLASLt, from the toolkit or from Python's packages.
vendor=$(find /usr/local /opt /usr/lib -name libcublasLt.so.13 2>/dev/null | head -n 1)
vendor=${vendor:+:$(dirname "$vendor")}
# As a plugin must lie: nobody else may write it.
chmod -R go-w "$home"
chmod +x "$home"/bin/* "$home"/tests/*
export LD_LIBRARY_PATH=$home/libs$vendor GESTALT_CACHE_DIR=$logs/cache OMP_NUM_THREADS=2
export PATH=$home/bin:/usr/local/cuda/bin:$PATH
mkdir -p "$GESTALT_CACHE_DIR"

passed=0 failed=0
: >"$results/table.txt"
say() { echo "$*" | tee -a "$results/table.txt"; }
# report NAME STATUS SECONDS DETAIL
report() {
  if [ "$2" -eq 0 ]; then passed=$((passed + 1)) && say "PASS $1 ($3 s) $4"; else failed=$((failed + 1)) && say "FAIL $1 exit $2 ($3 s) $4"; fi
}
# part NAME LIMIT COMMAND...: the detail is the last line of its output.
part() {
  local name=$1 limit=$2 began=$SECONDS status=0
  shift 2
  [[ $name =~ $only ]] || return 0
  timeout "$limit" "$@" >"$logs/${name//\//_}.log" 2>&1 || status=$?
  report "$name" "$status" $((SECONDS - began)) "$(grep -v "^$" "$logs/${name//\//_}.log" | tail -n 1 | cut -c1-120)"
}
# together NAME LIMIT WIDTH: lines "NAME<tab>COMMAND" on the input, WIDTH at a time; one report a line.
together() {
  local name=$1 limit=$2 width=$3 began=$SECONDS
  [[ $name =~ $only ]] || { cat >/dev/null; return 0; }
  export logs limit
  tr '\n' '\0' | xargs -0 -P "$width" -I{} bash -c '
    one=${1%%$'"'\t'"'*} command=${1#*$'"'\t'"'} status=0 began=$SECONDS
    timeout "$limit" bash -c "$command" >"$logs/${one//\//_}.log" 2>&1 || status=$?
    printf "%s\t%s\t%s\t%s\n" "$one" "$status" "$((SECONDS - began))" "$(tail -n 1 "$logs/${one//\//_}.log" | cut -c1-120)"' _ {} |
    sort >"$logs/$name.done"
  while IFS=$'\t' read -r one status took detail; do report "$one" "$status" "$took" "$detail"; done <"$logs/$name.done"
  say "---- $name: $((SECONDS - began)) s"
}

say "$(nvidia-smi --query-gpu=name,driver_version,memory.total --format=csv,noheader)"
say "vendor libraries: ${vendor:-none}"

part philox 60 bash "$home/gpu/philox.sh"
part training 150 "$home/tests/test_training_cuda" --use-colour no

families=$(gestalt_harness --list | cut -d' ' -f1 | sort -u)
for f in $families; do printf 'harness/%s\tgestalt_harness --device cuda --family %s\n' "$f" "$f"; done >"$logs/harness.list"
together harness 150 16 <"$logs/harness.list"

models="gpt2 llama qwen3 mistral-window olmo2 gemma2"
{
  for m in $models; do
    [ -d "$home/golden/$m" ] || continue
    for dtype in f32 bf16 f16; do
      printf 'parity/%s/%s\tgestalt parity %s/golden/%s --device cuda --set run.dtype=%s\n' "$m" "$dtype" "$home" "$m" "$dtype"
    done
    printf 'parity/%s/captured\tgestalt parity %s/golden/%s --device cuda --set run.capture=true --set run.streams=2\n' "$m" "$home" "$m"
    printf 'parity/%s/plain\tgestalt parity %s/golden/%s --device cuda --set "kernels.cuda=['"'gestalt.cuda'"']"\n' "$m" "$home" "$m"
  done
  printf 'parity/stories260K\tgestalt parity %s/weights/stories260K.bin --golden %s/golden/stories260K_golden.json --device cuda\n' "$home" "$home"
} >"$logs/parity.list"
together parity 90 12 <"$logs/parity.list"

if command -v compute-sanitizer >/dev/null 2>&1; then
  for tool in memcheck racecheck; do
    for f in $families; do
      small=--small
      [ "$f" = attention ] && small=  # its tensor-core tiles only have large cases
      printf '%s/%s\tcompute-sanitizer --tool %s --error-exitcode 9 --target-processes all gestalt_harness --device cuda --family %s --check kernel %s\n' \
        "$tool" "$f" "$tool" "$f" "$small"
    done
  done >"$logs/sanitizer.list"
  together sanitizer 240 16 <"$logs/sanitizer.list"
fi

[ -f "$home/gpu/bench.sh" ] && part bench 200 bash "$home/gpu/bench.sh" "$home" "$logs" "$results"
[ "$long" -eq 1 ] && part profile 150 bash "$home/gpu/profile.sh" "$home" "$logs" "$results"
[ "$long" -eq 1 ] && [ -f "$home/tokens.bin" ] && part curve 400 bash "$home/gpu/curve.sh" "$home" "$logs" "$results"

tar -czf "$results/logs.tgz" -C "$logs" $(cd "$logs" && echo ./*.log)
say "$passed passed, $failed failed"
grep '^FAIL' "$results/table.txt"
[ "$failed" -eq 0 ]
