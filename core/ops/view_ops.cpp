// Ops that only describe storage in another way. They record no work; where strides do not allow it, the builder copies.

#include <algorithm>

#include "core/ops/op.h"

namespace gestalt::core {

namespace {

constexpr int64_t kInferDim = INT64_MIN;  // in a reshape: this dimension is what is left

ViewType like(InferContext& c) {
  const Value& x = *c.inputs()[0];
  return {x.type, x.strides, x.offset};
}

int checked_dim(InferContext& c, const char* attr) {
  const int64_t d = c.attrs().i64(attr), n = c.in(0).ndim;
  if (d < -n || d >= n)
    c.error(fmt::format("{} out of range, got {}, expected {} to {} for shape {}", attr, d, -n, n - 1,
                        c.shape_text(c.in(0))));
  return static_cast<int>(d < 0 ? d + n : d);
}

TensorType reshaped_type(InferContext& c) {
  const auto& want = c.attrs().i64_list("shape");
  if (want.size() > GESTALT_MAX_NDIM)
    c.error(fmt::format("shape has {} dimensions, expected at most {}", want.size(), GESTALT_MAX_NDIM));
  TensorType t;
  t.dtype = c.in(0).dtype;
  int64_t known = 1;
  int unknown = -1;
  for (int64_t d : want) {
    if (d == kInferDim) {
      if (unknown >= 0) c.error("more than one dimension is to be inferred");
      unknown = t.ndim;
    } else {
      known = c.dims().mul(known, d);
    }
    t.shape[static_cast<size_t>(t.ndim++)] = d;
  }
  const int64_t total = numel(c.in(0), c.dims());
  if (unknown >= 0) {
    const int64_t rest = c.dims().div(total, known);
    if (rest == 0 && total != 0)
      c.error(fmt::format("{} elements do not divide into {}", c.dims().text(total), c.dims().text(known)));
    t.shape[static_cast<size_t>(unknown)] = rest;
  } else if (known != total) {
    c.error(fmt::format("{} elements in {} cannot become {}", c.dims().text(total), c.shape_text(c.in(0)),
                        c.shape_text(t)));
  }
  return t;
}

// Splits or merges runs of dimensions whose strides chain; false when a merge would need a copy.
bool reshape_strides(const Value& x, ViewType& v, DimTable& dims) {
  if (is_contiguous(x.type, x.strides, dims)) {
    v.strides = contiguous_strides(v.type, dims);
    return true;
  }
  int i = 0, j = 0;
  while (i < x.type.ndim || j < v.type.ndim) {
    const int i0 = i, j0 = j;
    int64_t a = i < x.type.ndim ? x.type.dim(i++) : 1;
    int64_t b = j < v.type.ndim ? v.type.dim(j++) : 1;
    while (a != b) {
      if (i < x.type.ndim && dims.div(b, a) != 0)
        a = dims.mul(a, x.type.dim(i++));
      else if (j < v.type.ndim && dims.div(a, b) != 0)
        b = dims.mul(b, v.type.dim(j++));
      else
        return false;
    }
    int64_t stride = 1;  // of the innermost dimension of the run
    bool first = true;
    for (int k = i - 1; k >= i0; --k) {
      if (x.type.dim(k) == 1) continue;
      const int64_t s = x.strides[static_cast<size_t>(k)];
      if (!first) {
        int64_t chained = stride;
        for (int m = i - 1; m > k; --m) chained = dims.mul(chained, x.type.dim(m));
        if (s != chained) return false;
      } else {
        stride = s;
        first = false;
      }
    }
    for (int k = j - 1; k >= j0; --k) {
      v.strides[static_cast<size_t>(k)] = stride;
      stride = dims.mul(stride, v.type.dim(k));
    }
  }
  return true;
}

bool reshape_view(InferContext& c, std::vector<ViewType>& out) {
  const Value& x = *c.inputs()[0];
  ViewType& v = out.emplace_back(ViewType{reshaped_type(c), {}, x.offset});
  return reshape_strides(x, v, c.dims());
}

bool transpose_view(InferContext& c, std::vector<ViewType>& out) {
  ViewType v = like(c);
  const auto a = static_cast<size_t>(checked_dim(c, "dim0")), b = static_cast<size_t>(checked_dim(c, "dim1"));
  std::swap(v.type.shape[a], v.type.shape[b]);
  std::swap(v.strides[a], v.strides[b]);
  out.push_back(v);
  return true;
}

void add_slice(InferContext& c, std::vector<ViewType>& out, size_t dim, int64_t begin, int64_t length) {
  ViewType v = like(c);
  v.offset = c.dims().add(v.offset, c.dims().mul(begin, v.strides[dim]));
  v.type.shape[dim] = length;
  out.push_back(v);
}

bool slice_view(InferContext& c, std::vector<ViewType>& out) {
  const auto dim = static_cast<size_t>(checked_dim(c, "dim"));
  const int64_t begin = c.attrs().i64("begin"), end = c.attrs().i64("end"), size = c.in(0).shape[dim];
  // Of sizes that vary, what can be known now: that the slice fits the largest.
  const bool ends_inside = size >= 0 ? end >= begin && end <= size
                                     : c.dims().max(end) >= begin && c.dims().max(end) <= c.dims().max(size);
  if (begin < 0 || !ends_inside)
    c.error(fmt::format("slice [{}, {}) of dimension {} is outside its size {}", begin, c.dims().text(end), dim,
                        c.dims().text(size)));
  add_slice(c, out, dim, begin, c.dims().sub(end, begin));
  return true;
}

bool split_parts_view(InferContext& c, std::vector<ViewType>& out) {
  const auto dim = static_cast<size_t>(checked_dim(c, "dim"));
  int64_t at = 0;
  for (int64_t part : c.attrs().i64_list("parts")) {
    add_slice(c, out, dim, at, part);
    at = c.dims().add(at, part);
  }
  if (at != c.in(0).shape[dim])
    c.error(fmt::format("parts sum to {}, expected the size {} of dimension {}", c.dims().text(at),
                        c.dims().text(c.in(0).shape[dim]), dim));
  return true;
}

// New leading dimensions and dimensions of size 1 get stride 0.
bool broadcast_view(InferContext& c, std::vector<ViewType>& out) {
  const Value& x = *c.inputs()[0];
  const auto& want = c.attrs().i64_list("shape");
  const int extra = static_cast<int>(want.size()) - x.type.ndim;
  if (extra < 0 || want.size() > GESTALT_MAX_NDIM)
    c.error(fmt::format("cannot broadcast {} to {} dimensions", c.shape_text(x.type), want.size()));
  ViewType v{{}, {}, x.offset};
  v.type.dtype = x.type.dtype;
  for (int64_t d : want) v.type.shape[static_cast<size_t>(v.type.ndim++)] = d;
  for (int i = extra; i < v.type.ndim; ++i) {
    const auto k = static_cast<size_t>(i), s = static_cast<size_t>(i - extra);
    if (x.type.shape[s] == v.type.shape[k])
      v.strides[k] = x.strides[s];
    else if (x.type.shape[s] != 1)
      c.error(fmt::format("cannot broadcast {} to {}", c.shape_text(x.type), c.shape_text(v.type)));
  }
  out.push_back(v);
  return true;
}

std::vector<int64_t> shape_of(const Value* v) {
  return {v->type.shape.begin(), v->type.shape.begin() + v->type.ndim};
}

void vjp_reshape(ComposeContext& c) {
  c.result[0] = c.op("core.reshape", {c.grad(0)}, {{"shape", shape_of(c.in(0))}});
}

void vjp_transpose(ComposeContext& c) { c.result[0] = c.op("core.transpose", {c.grad(0)}, c.attrs()); }

void vjp_slice(ComposeContext& c) {
  const int64_t n = c.in(0)->type.ndim;
  int64_t dim = c.attrs().i64("dim");
  if (dim < 0) dim += n;
  const int64_t size = c.in(0)->type.dim(static_cast<int>(dim));
  const int64_t end = c.attrs().i64("end");
  if (size < 0 || end < 0)
    fail(GESTALT_UNSUPPORTED, "[core.slice] no gradient for a slice of a dimension that varies");
  c.result[0] = c.op("core.pad", {c.grad(0)},
                     {{"dim", dim}, {"before", c.attrs().i64("begin")}, {"after", size - end}});
}

void vjp_split_parts(ComposeContext& c) {
  std::vector<Value*> grads;
  for (size_t i = 0; i < c.outputs().size(); ++i) {
    Value* g = c.grad(i);
    if (!g) {
      const std::string dtype(dtype_name(c.out(i)->type.dtype));
      g = c.op("core.fill", {}, {{"shape", shape_of(c.out(i))}, {"dtype", dtype}, {"value", 0.0}});
    }
    grads.push_back(g);
  }
  c.result[0] = c.op("core.concat", grads, {{"dim", c.attrs().i64("dim")}});
}

void vjp_broadcast(ComposeContext& c) {
  const TensorType &x = c.in(0)->type, &y = c.out(0)->type;
  const int extra = y.ndim - x.ndim;
  std::vector<int64_t> reduce;
  for (int i = 0; i < y.ndim; ++i)
    if (i < extra || x.dim(i - extra) != y.dim(i)) reduce.push_back(i);
  Value* g = reduce.empty() ? c.grad(0) : c.op("core.sum", {c.grad(0)}, {{"dims", reduce}, {"keep", false}});
  c.result[0] = c.op("core.reshape", {g}, {{"shape", shape_of(c.in(0))}});
}

InferFn by_view(ViewFn view) {
  // The shapes of a view op do not depend on strides, so a failed view still tells the type.
  return [view](InferContext& c) {
    std::vector<ViewType> v;
    view(c, v);
    for (const ViewType& t : v) c.out(t.type);
  };
}

}  // namespace

void add_view_ops(OpRegistry& r) {
  add_core_ops(
      r, {{"core.reshape(x, *, shape: i64[]) -> (y!view)", "view", by_view(reshape_view), vjp_reshape, nullptr, reshape_view},
          {"core.transpose(x, *, dim0: i64, dim1: i64) -> (y!view)", "view", by_view(transpose_view), vjp_transpose,
           nullptr, transpose_view},
          {"core.slice(x, *, dim: i64, begin: i64, end: i64) -> (y!view)", "view", by_view(slice_view), vjp_slice, nullptr,
           slice_view},
          {"core.split_parts(x, *, dim: i64 = -1, parts: i64[]) -> (y...!view)", "view", by_view(split_parts_view),
           vjp_split_parts, nullptr, split_parts_view},
          {"core.broadcast(x, *, shape: i64[]) -> (y!view)", "view", by_view(broadcast_view), vjp_broadcast, nullptr,
           broadcast_view}});
}

}  // namespace gestalt::core
