#!/usr/bin/env bash
# What a run says and how it exits where there is no driver, an old driver, a driver without a GPU: with stand-ins for the
# driver's library, so that it needs none.
set -eu -o pipefail
build=${BUILD:-build/release}
gestalt=$build/bin/gestalt
if [ ! -f "$build/lib/gestalt/plugins/device_cuda/libdevice_cuda.so" ]; then
  echo "the CUDA device is not built"
  exit 77
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
cat >"$work/run.toml" <<'TOML'
[run]
name = "answers"
device = "cuda"
[plugins]
use = ["gestalt.device_cuda", "gestalt.device_cpu", "gestalt.kernels_cpu", "gestalt.comm_self", "gestalt.decoder",
  "gestalt.attention", "gestalt.mlp", "gestalt.norm", "gestalt.adam", "gestalt.tokenizer_byte", "gestalt.data_text",
  "gestalt.ckpt_safetensors"]
[model]
type = "gestalt.decoder"
layers = 1
hidden = 32
heads = 2
ffn = 64
vocab = 256
seq_len = 16
[tokenizer]
type = "gestalt.byte"
[data]
type = "gestalt.text"
path = "text.txt"
[optimizer]
type = "gestalt.adamw"
lr = 1e-3
[train]
steps = 1
global_batch = 1
[checkpoint]
type = "gestalt.safetensors"
TOML
head -c 20000 /dev/zero | tr '\0' 'x' >"$work/text.txt"

# driver NAME VERSION RESULT: a library that says it serves CUDA VERSION and answers RESULT to every other call.
driver() {
  mkdir -p "$work/$1"
  cat >"$work/$1.c" <<'C'
#include <string.h>
static int answer(void) { return RESULT; }
int cuDriverGetVersion(int* version) { *version = VERSION; return 0; }
int cuGetProcAddress_v2(const char* name, void** function, int version, unsigned long flags, int* status) {
  (void)version, (void)flags;
  *function = strcmp(name, "cuDriverGetVersion") == 0 ? (void*)cuDriverGetVersion
            : strcmp(name, "cuGetProcAddress") == 0   ? (void*)cuGetProcAddress_v2
                                                      : (void*)answer;
  if (status) *status = 0;
  return 0;
}
C
  ${CC:-cc} -shared -fPIC -DVERSION="$2" -DRESULT="$3" -o "$work/$1/libcuda.so.1" "$work/$1.c"
}

# answers NAME PATTERN: exit 69 and a message with the pattern.
answers() {
  local name=$1 pattern=$2 status=0
  shift 2
  (cd "$work" && env "$@" "$gestalt" train run.toml) >"$work/out" 2>&1 || status=$?
  if [ "$status" -ne 69 ] || ! grep -q "$pattern" "$work/out"; then
    echo "$name: exit $status, expected 69 and '$pattern', got:"
    cat "$work/out"
    exit 1
  fi
  echo "$name: $(grep "$pattern" "$work/out" | head -n 1)"
}

case $gestalt in /*) ;; *) gestalt=$PWD/$gestalt ;; esac
if nvidia-smi -L >/dev/null 2>&1; then
  answers hidden "unavailable because there is no GPU that this process may see" CUDA_VISIBLE_DEVICES=
else
  answers "no driver" "unavailable because no NVIDIA driver is installed"
fi
driver old 11040 999
answers "old driver" "unavailable because the driver is too old: it serves CUDA 11.4, expected" LD_LIBRARY_PATH="$work/old"
driver empty 13000 100
answers "no GPU" "unavailable because there is no GPU" LD_LIBRARY_PATH="$work/empty"
