#pragma once

#include <array>

#include "gestalt/parallel.hpp"
#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/strided.h"

namespace gestalt::kernels_cpu {

// Calls f(in, out, n) with arrays of n elements of the compute type C until every element of out[0]'s shape is done.
// Inputs of lower rank are repeated over the leading dimensions. out may overlay an input.
template <class C, size_t kIn, size_t kOut, class F>
void elementwise(const Parallel& team, const std::array<View, kIn>& in, const std::array<View, kOut>& out,
                 bool accumulate, const F& f) {
  constexpr int kAll = static_cast<int>(kIn + kOut);
  std::array<View, kAll> all;
  std::copy(in.begin(), in.end(), all.begin());
  std::copy(out.begin(), out.end(), all.begin() + kIn);
  const Loop<kAll> loop = make_loop<kAll>(out[0], all);
  team(loop.numel, 16 * kBlock, [&](int64_t begin, int64_t end) {
    C scratch[kAll][kBlock];
    for_runs(loop, begin, end, kBlock, [&](const std::array<int64_t, kAll>& offset, int64_t n) {
      const auto& stride = loop.inner_stride();
      std::array<const C*, kIn> from;
      std::array<C*, kOut> to;
      for (size_t i = 0; i < kIn; ++i) from[i] = In<C>(in[i]).run(offset[i], stride[i], n, scratch[i]);
      for (size_t i = 0; i < kOut; ++i)
        to[i] = Out<C>(out[i], accumulate).run(offset[kIn + i], stride[kIn + i], n, scratch[kIn + i]);
      f(from, to, n);
      for (size_t i = 0; i < kOut; ++i) Out<C>(out[i], accumulate).finish(to[i], offset[kIn + i], stride[kIn + i], n);
    });
  });
}

}  // namespace gestalt::kernels_cpu
