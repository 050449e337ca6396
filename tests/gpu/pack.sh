#!/usr/bin/env bash
# runs: all
# Packs what tests/gpu/run.sh needs on a machine that has a GPU but not our build: the preset `gpu`, the shared libraries
# that its programs link, the golden models, and the scripts.
#
#   bash tests/gpu/pack.sh [--build FOLDER] [--out FOLDER]
#
# The default is build/gpu and build/gpu_pack, with build/gpu_pack.tar.gz beside it. The other machine needs a driver and, for products by cuBLASLt, that library
# (the CUDA toolkit or Python's packages have it); it builds nothing.
set -eu -o pipefail
cd "$(dirname "$0")/../.."
build=build/gpu out=build/gpu_pack own_build=1
while [ $# -gt 0 ]; do
  case "$1" in
    --build) build=$2 own_build=0 && shift ;;
    --out) out=$2 && shift ;;
    *) echo "[pack.sh] unknown argument, got '$1'" >&2 && exit 2 ;;
  esac
  shift
done
if ! command -v nvcc >/dev/null 2>&1; then
  echo "nvcc is not on PATH"
  exit 77
fi
if [ "$own_build" -eq 1 ]; then
  cmake --preset gpu >/dev/null
  cmake --build build/gpu -j "$(nproc)"
fi

rm -rf "$out"
mkdir -p "$out/bin" "$out/lib/gestalt/plugins" "$out/libs" "$out/golden" "$out/weights" "$out/gpu"
for program in gestalt gestalt_harness; do
  cp "$build/bin/$program" "$out/bin/"
  strip "$out/bin/$program"
done
# Beside bin, as in the build: a program finds its plugins from where it lies.
mkdir -p "$out/tests"
cp "$build/tests/test_training_cuda" "$build/tests/test_device_cuda" "$out/tests/"
strip "$out"/tests/*
# Plugins go as they are: a manifest holds the hash of its library.
for folder in "$build"/lib/gestalt/plugins/*/; do
  [ -f "$folder/plugin.toml" ] && cp -r "$folder" "$out/lib/gestalt/plugins/"
done
# Everything but the C and C++ libraries, which a newer machine has too.
for file in "$out"/bin/* "$out"/tests/* "$out"/lib/gestalt/plugins/*/*.so; do ldd "$file"; done |
  awk '$2 == "=>" && $3 ~ /^\// { print $3 }' | sort -u |
  { grep -vE '/(ld-linux[^/]*|libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s)\.so' || true; } |
  while read -r library; do cp -L "$library" "$out/libs/"; done
shared=../shared
[ -d "$shared" ] || shared=${GESTALT_SHARED:-/nonexistent}
if [ -d "$shared/golden/hf" ]; then
  for name in gpt2 llama qwen3 mistral-window olmo2 gemma2; do cp -r "$shared/golden/hf/$name" "$out/golden/"; done
  cp "$shared/golden/stories260K_golden.json" "$out/golden/"
  cp "$shared/data/weights/stories260K.bin" "$out/weights/"
fi
# GPT-2's tokens of a text, for the long training.
if [ -d "$shared/data/text" ]; then
  xz -dc "$shared/data/tokenizers/r50k_base.tiktoken.xz" >"$out/ranks.tiktoken"
  "$build/bin/gestalt" data tokenize --input "$shared/data/text/tinyshakespeare_input.txt" --output "$out/tokens" \
    --ranks "$out/ranks.tiktoken" --pattern gpt2
  rm -f "$out/ranks.tiktoken" "$out/tokens.idx"
fi
cp tests/gpu/*.sh tests/gpu/*.py tests/gpu/*.toml "$out/gpu/" 2>/dev/null || true
cp -r sdk/include "$out/include"
chmod -R u+w "$out"
tar -czf "$out.tar.gz" -C "$(dirname "$out")" "$(basename "$out")"
bytes=$(stat -c %s "$out.tar.gz")
echo "$out.tar.gz: $((bytes / 1048576)) MiB"
if [ "$bytes" -gt $((60 * 1048576)) ]; then
  echo "more than 60 MiB, which is what travels"
  exit 1
fi
