#pragma once

#include <cstring>

#include "gestalt/kernel.hpp"
#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/strided.h"

namespace gestalt::kernels_cpu {

template <class T>
void copy_run(const char* from, int64_t from_stride, char* to, int64_t to_stride, int64_t n) {
  if (from_stride == 1 && to_stride == 1) {
    std::memcpy(to, from, static_cast<size_t>(n) * sizeof(T));
    return;
  }
  const T* p = reinterpret_cast<const T*>(from);
  T* q = reinterpret_cast<T*>(to);
  for (int64_t i = 0; i < n; ++i) q[i * to_stride] = p[i * from_stride];
}

// The bits of every element of `from`, into `to` of the same shape and dtype.
inline void copy_elements(const Parallel& team, View from, View to) {
  const Loop<2> loop = make_loop<2>(to, {from, to});
  const int64_t size = size_of(from.dtype());
  const auto run = size == 8   ? &copy_run<uint64_t>
                   : size == 4 ? &copy_run<uint32_t>
                   : size == 2 ? &copy_run<uint16_t>
                               : &copy_run<uint8_t>;
  team(loop.numel, 32 * kBlock, [&](int64_t begin, int64_t end) {
    for_runs(loop, begin, end, end - begin, [&](const std::array<int64_t, 2>& offset, int64_t n) {
      run(from.data<const char>() + offset[0] * size, loop.inner_stride()[0], to.data<char>() + offset[1] * size,
          loop.inner_stride()[1], n);
    });
  });
}

// The part of `whole` that holds indices [begin, begin + size) of dimension dim.
class Part {
 public:
  Part(View whole, int dim, int64_t begin, int64_t size) : view_(*whole.raw()) {
    std::copy(view_.shape, view_.shape + view_.ndim, shape_);
    shape_[dim] = size;
    view_.shape = shape_;
    if (view_.data != nullptr)
      view_.data = static_cast<char*>(view_.data) + begin * whole.stride(dim) * size_of(whole.dtype());
  }
  Part(const Part&) = delete;
  Part& operator=(const Part&) = delete;
  View view() const { return View(&view_); }

 private:
  gestalt_view view_;
  int64_t shape_[GESTALT_MAX_NDIM];
};

}  // namespace gestalt::kernels_cpu
