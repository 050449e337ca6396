#!/usr/bin/env bash
# Random bits, uniforms and normals of philox.h are the same on the GPU as on the CPU, a million of each.
set -u -o pipefail
cd "$(dirname "$0")/.." || exit 1
include=include  # in a packed folder
[ -d "$include" ] || include=../sdk/include
nvcc=$(command -v nvcc || echo /usr/local/cuda/bin/nvcc)
if [ ! -x "$nvcc" ]; then
  echo "nvcc is not installed"
  exit 77
fi
if ! nvidia-smi -L >/dev/null 2>&1; then
  echo "there is no GPU"
  exit 77
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cat >"$out/philox.cu" <<'CUDA'
#include <cstdio>
#include <cstring>
#include <vector>

#include "gestalt/philox.h"

struct Drawn {
  gestalt::PhiloxBlock block;
  float uniform[4], normal[4];
};

__host__ __device__ void draw(uint32_t i, Drawn* d) {
  d->block = gestalt::philox_token(0x123456789abcdefu, 7, i, i * 3, 5, i & 0xfffff);
  for (int k = 0; k < 4; ++k) d->uniform[k] = gestalt::philox_uniform(d->block.word[k]);
  for (int k = 0; k < 4; ++k) d->normal[k] = gestalt::philox_normal(d->block.word[k]);
}
__global__ void draw_all(Drawn* d) { draw(blockIdx.x * blockDim.x + threadIdx.x, d + blockIdx.x * blockDim.x + threadIdx.x); }

int main() {
  constexpr uint32_t kNum = 1 << 18;
  std::vector<Drawn> host(kNum), device(kNum);
  Drawn* memory = nullptr;
  if (cudaMalloc(&memory, kNum * sizeof(Drawn)) != cudaSuccess) return 77;
  draw_all<<<kNum / 256, 256>>>(memory);
  if (cudaMemcpy(device.data(), memory, kNum * sizeof(Drawn), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  for (uint32_t i = 0; i < kNum; ++i) draw(i, &host[i]);
  const bool equal = std::memcmp(host.data(), device.data(), kNum * sizeof(Drawn)) == 0;
  std::printf("%u blocks, %s\n", kNum, equal ? "equal" : "different");
  return equal ? 0 : 1;
}
CUDA
"$nvcc" -std=c++20 -O2 --use_fast_math -gencode=arch=compute_80,code=compute_80 \
  -I"$include" "$out/philox.cu" -o "$out/philox" || exit 1
"$out/philox"
