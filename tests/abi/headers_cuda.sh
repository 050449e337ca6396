#!/usr/bin/env bash
# Every ABI header, the random numbers and the kernel layer as CUDA, without a warning.
set -u -o pipefail
cd "$(dirname "$0")/../.."
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ]; then
  echo "nvcc is not installed"
  exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
for header in sdk/include/gestalt/abi/*.h sdk/include/gestalt/philox.h; do
  echo "#include \"${header#sdk/include/}\""
done >"$out/abi.cu"
echo '__global__ void draw(float* out) { out[threadIdx.x] = gestalt::philox_normal(gestalt::philox(1, threadIdx.x, 0, 0, 0).word[0]); }' >>"$out/abi.cu"
echo '#include "gestalt/kernel.hpp"' >"$out/kernel.cu"
faults=0
for standard in 17 20; do
  "$nvcc" -std=c++$standard -arch=sm_80 -Xcompiler=-Wall,-Wextra -Werror all-warnings -Isdk/include -c "$out/abi.cu" \
    -o "$out/abi.o" || faults=1
done
"$nvcc" -std=c++20 -arch=sm_80 -Xcompiler=-Wall,-Wextra -Werror all-warnings -Isdk/include -c "$out/kernel.cu" \
  -o "$out/kernel.o" || faults=1
exit $faults
