#pragma once

#include <string>

#include "gestalt/abi/base.h"
#include "gestalt/dtype.hpp"

namespace gestalt {

// A borrowed tensor. Empty (false) for an absent optional input. Strides are in elements.
class View {
 public:
  View() = default;
  explicit View(const gestalt_view* view) : view_(view) {}
  explicit operator bool() const { return view_ != nullptr; }

  template <class T>
  T* data() const {
    return static_cast<T*>(view_->data);
  }
  DType dtype() const { return view_->dtype; }
  bool is(DType dtype) const { return view_->dtype == dtype; }
  int ndim() const { return view_->ndim; }
  // Negative i counts from the end.
  int64_t dim(int i) const { return view_->shape[i < 0 ? i + view_->ndim : i]; }
  int64_t stride(int i) const { return view_->strides[i < 0 ? i + view_->ndim : i]; }
  int64_t numel() const {
    int64_t n = 1;
    for (int i = 0; i < view_->ndim; ++i) n *= view_->shape[i];
    return n;
  }
  bool contiguous() const {
    int64_t expected = 1;
    for (int i = view_->ndim - 1; i >= 0; --i) {
      if (view_->shape[i] != 1 && view_->strides[i] != expected) return numel() == 0;
      expected *= view_->shape[i];
    }
    return true;
  }
  const gestalt_view* raw() const { return view_; }

 private:
  const gestalt_view* view_ = nullptr;
};

inline bool same_shape(View a, View b) {
  if (a.ndim() != b.ndim()) return false;
  for (int i = 0; i < a.ndim(); ++i)
    if (a.dim(i) != b.dim(i)) return false;
  return true;
}

// "f32[4, 8]", for messages.
inline std::string describe(View view) {
  if (!view) return "nothing";
  std::string text(name_of(view.dtype()));
  text += '[';
  for (int i = 0; i < view.ndim(); ++i) text += (i ? ", " : "") + std::to_string(view.dim(i));
  return text + ']';
}

}  // namespace gestalt
