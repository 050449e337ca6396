#pragma once

#include <algorithm>

#include "gestalt/view.hpp"

namespace gestalt::kernels_cuda {

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

}  // namespace gestalt::kernels_cuda
