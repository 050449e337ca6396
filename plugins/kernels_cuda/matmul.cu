// core.matmul and core.linear by our own kernel: tiles of 64 x 64 in shared memory, 4 x 4 elements a thread, sums along
// k in one order. Every dtype and size; it is the oracle of the library's products and serves what they decline (f64).
#include "plugins/kernels_cuda/lt_product.h"

namespace gestalt::kernels_cuda {
namespace {

constexpr int kTile = 64, kDepth = 16, kOwn = 4, kSide = kTile / kOwn;

struct Operand {
  int64_t row, col, batch;  // strides in elements
};

template <class T, class O>
__global__ void __launch_bounds__(kSide* kSide)
    multiply(ProductShape s, const T* a, Operand at_a, const T* b, Operand at_b, O* y, const T* bias, bool accumulate) {
  using C = Compute<T>;
  __shared__ C left[kDepth][kTile + 1], right[kDepth][kTile + 1];
  const int64_t row0 = static_cast<int64_t>(blockIdx.x) * kTile, col0 = static_cast<int64_t>(blockIdx.y) * kTile;
  const int tx = static_cast<int>(threadIdx.x) % kSide, ty = static_cast<int>(threadIdx.x) / kSide;
  for (int64_t i = blockIdx.z; i < s.batch; i += gridDim.z) {
    const T *ai = a + i * at_a.batch, *bi = b + i * at_b.batch;
    C sum[kOwn][kOwn] = {};
    for (int64_t k0 = 0; k0 < s.k; k0 += kDepth) {
      for (int e = static_cast<int>(threadIdx.x); e < kTile * kDepth; e += kSide * kSide) {
        // Neighbouring threads read neighbouring addresses, whichever way an operand lies.
        const int ak = s.trans_a ? e / kTile : e % kDepth, ar = s.trans_a ? e % kTile : e / kDepth;
        const int bk = s.trans_b ? e % kDepth : e / kTile, bc = s.trans_b ? e / kDepth : e % kTile;
        const bool in_a = row0 + ar < s.m && k0 + ak < s.k, in_b = col0 + bc < s.n && k0 + bk < s.k;
        left[ak][ar] = in_a ? load(ai + (row0 + ar) * at_a.row + (k0 + ak) * at_a.col) : C(0);
        right[bk][bc] = in_b ? load(bi + (k0 + bk) * at_b.row + (col0 + bc) * at_b.col) : C(0);
      }
      __syncthreads();
      for (int k = 0; k < kDepth; ++k) {
        C r[kOwn], c[kOwn];
        for (int j = 0; j < kOwn; ++j) {
          r[j] = left[k][ty + j * kSide];
          c[j] = right[k][tx + j * kSide];
        }
        for (int p = 0; p < kOwn; ++p)
          for (int q = 0; q < kOwn; ++q) sum[p][q] += r[p] * c[q];
      }
      __syncthreads();
    }
    for (int p = 0; p < kOwn; ++p) {
      for (int q = 0; q < kOwn; ++q) {
        const int64_t row = row0 + ty + p * kSide, col = col0 + tx + q * kSide;
        if (row >= s.m || col >= s.n) continue;
        const C value = bias ? sum[p][q] + load(bias + col) : sum[p][q];
        put(y + (i * s.m + row) * s.n + col, value, accumulate);
      }
    }
  }
}

void launch(const ProductShape& s, Call call, const void* bias, bool accumulate) {
  multiply_plainly(s, {call.in(0).dtype(), call.out(0).dtype(), bias != nullptr}, call.in(0).data<void>(),
                   call.in(1).data<void>(), call.out(0).data<void>(), bias, accumulate, stream_of(call));
}

class Matmul : public CudaKernel {
 public:
  static constexpr std::string_view op = "core.matmul";
  static constexpr uint64_t flags = CudaKernel::accumulating;

  explicit Matmul(Plan plan) : shape_(plan) {}
  void run(Call call) const { launch(shape_.of(call.in(0), call.in(1)), call, nullptr, call.accumulate(0)); }

 private:
  MatmulShape shape_;
};
GESTALT_KERNEL(Matmul);

class Linear : public CudaKernel {
 public:
  static constexpr std::string_view op = "core.linear";

  explicit Linear(Plan plan) : shape_(plan), has_bias_(plan.has_in(2)) {}
  void run(Call call) const {
    launch(shape_.of(call.in(0), call.in(1)), call, has_bias_ ? call.in(2).data<void>() : nullptr, false);
  }

 private:
  LinearShape shape_;
  bool has_bias_;
};
GESTALT_KERNEL(Linear);

__global__ void fill_with_numbers(uint16_t* data, int64_t n) {
  // 0x3c00 to 0x3cff: 0.0078 to 0.03 as bf16, 1.0 to 1.25 as f16, near 0.01 as f32.
  each_index(n, [&](int64_t i) {
    data[i] = static_cast<uint16_t>(0x3c00 | (static_cast<uint64_t>(i) * 2654435761u >> 13 & 0xff));
  });
}

}  // namespace

void multiply_plainly(const ProductShape& s, const ProductTypes& types, const void* a, const void* b, void* y,
                      const void* bias, bool accumulate, cudaStream_t stream) {
  if (s.empty()) return;
  const Operand at_a{s.trans_a ? 1 : s.k, s.trans_a ? s.m : 1, s.m * s.k};
  const Operand at_b{s.trans_b ? 1 : s.n, s.trans_b ? s.k : 1, s.k * s.n};
  const dim3 grid(blocks_for(s.m, kTile), blocks_for(s.n, kTile),
                  static_cast<unsigned>(std::min<int64_t>(s.batch, 65535)));
  with_float(types.in, [&](auto type) {
    using T = typename decltype(type)::T;
    const auto run = [&](auto out) {
      using O = typename decltype(out)::T;
      multiply<T, O><<<grid, kSide * kSide, 0, stream>>>(s, static_cast<const T*>(a), at_a, static_cast<const T*>(b),
                                                         at_b, static_cast<O*>(y), static_cast<const T*>(bias),
                                                         accumulate);
    };
    if (types.out == types.in)
      run(Type<T>{});
    else
      run(Type<float>{});
  });
  check_launch("product");
}

void fill_for_timing(void* data, uint64_t bytes, cudaStream_t stream) {
  const auto n = static_cast<int64_t>(bytes / 2);
  fill_with_numbers<<<blocks_for(n), kThreads, 0, stream>>>(static_cast<uint16_t*>(data), n);
}

}  // namespace gestalt::kernels_cuda
