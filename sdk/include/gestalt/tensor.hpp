// The composition plane: symbolic tensors and the context that records ops on them. Handles are valid until the call
// that recorded them returns.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <span>
#include <string_view>
#include <vector>

#include "gestalt/abi/build.h"
#include "gestalt/attrs.hpp"
#include "gestalt/dtype.hpp"

namespace gestalt {

using Shape = std::vector<int64_t>;

// Sizes may be handles of named dimensions (negative): they are combined by these functions only.
class Dims {
 public:
  explicit Dims(const gestalt_dims* dims) : dims_(dims) {}
  int64_t mul(int64_t a, int64_t b) const { return dims_->mul(dims_->self, a, b); }
  int64_t add(int64_t a, int64_t b) const { return dims_->add(dims_->self, a, b); }
  int64_t div(int64_t a, int64_t b) const { return dims_->div(dims_->self, a, b); }  // 0: does not divide
  int64_t max(int64_t a) const { return dims_->max(dims_->self, a); }

 private:
  const gestalt_dims* dims_;
};

// A symbolic tensor; false for none (an absent input, a gradient that does not flow).
class Tensor {
 public:
  Tensor() = default;
  Tensor(gestalt_build* build, const gestalt_host* host, gestalt_tensor* handle)
      : build_(build), host_(host), handle_(handle) {}
  explicit operator bool() const { return handle_ != nullptr; }

  DType dtype() const { return describe().dtype; }
  int ndim() const { return describe().ndim; }
  // Negative i counts from the end. The result may be a handle of a named dimension.
  int64_t dim(int i) const {
    const Description d = describe();
    return d.shape[i < 0 ? i + d.ndim : i];
  }
  Shape shape() const {
    const Description d = describe();
    return Shape(d.shape, d.shape + d.ndim);
  }

  gestalt_tensor* raw() const { return handle_; }
  gestalt_build* build() const { return build_; }
  const gestalt_host* host() const { return host_; }

 private:
  struct Description {
    DType dtype;
    int32_t ndim;
    int64_t shape[GESTALT_MAX_NDIM];
  };
  Description describe() const {
    if (!handle_) throw InvalidArgument("[tensor] got no tensor, expected one; test it with operator bool first");
    Description d{};
    check(host_, build_->api->describe(build_, handle_, &d.dtype, &d.ndim, d.shape));
    return d;
  }

  gestalt_build* build_ = nullptr;
  const gestalt_host* host_ = nullptr;
  gestalt_tensor* handle_ = nullptr;
};

// Records ops.
class Recorder {
 public:
  static constexpr uint64_t kMaxOutputs = 64;

  Recorder(gestalt_build* build, const gestalt_host* host) : build_(build), host_(host) {}

  // All outputs of an op. Empty tensors stand for absent optional inputs.
  std::vector<Tensor> ops(std::string_view name, std::span<const Tensor> in, std::span<const Attr> attrs = {}) {
    std::vector<gestalt_attr> sorted(attrs.begin(), attrs.end());
    std::sort(sorted.begin(), sorted.end(),
              [](const gestalt_attr& a, const gestalt_attr& b) { return view_of(a.name) < view_of(b.name); });
    return apply(name, in, {sorted.data(), sorted.size()});
  }
  std::vector<Tensor> ops(std::string_view name, std::initializer_list<Tensor> in,
                          std::initializer_list<Attr> attrs = {}) {
    return ops(name, std::span(in.begin(), in.size()), std::span(attrs.begin(), attrs.size()));
  }
  // The first output of an op.
  Tensor op(std::string_view name, std::initializer_list<Tensor> in, std::initializer_list<Attr> attrs = {}) {
    return ops(name, in, attrs).at(0);
  }
  // With attributes as they came, sorted by name.
  std::vector<Tensor> apply(std::string_view name, std::span<const Tensor> in, Attrs attrs) {
    const std::vector<gestalt_tensor*> handles = raw(in);
    gestalt_tensor* out[kMaxOutputs];
    uint64_t num_out = kMaxOutputs;
    check(host_, build_->api->apply(build_, str_of(name), handles.data(), handles.size(), attrs.data(), attrs.size(),
                                    out, &num_out));
    return wrap({out, num_out});
  }

  Dims dims() const { return Dims(build_->api->dims(build_)); }
  gestalt_build* raw() const { return build_; }
  const gestalt_host* host() const { return host_; }

  Tensor wrap(gestalt_tensor* handle) const { return {build_, host_, handle}; }
  std::vector<Tensor> wrap(std::span<gestalt_tensor* const> handles) const {
    std::vector<Tensor> tensors;
    for (gestalt_tensor* h : handles) tensors.push_back(wrap(h));
    return tensors;
  }
  static std::vector<gestalt_tensor*> raw(std::span<const Tensor> tensors) {
    std::vector<gestalt_tensor*> handles;
    for (const Tensor& t : tensors) handles.push_back(t.raw());
    return handles;
  }

 protected:
  gestalt_build* build_;
  const gestalt_host* host_;
};

}  // namespace gestalt
