#include "core/ops/op.h"

namespace gestalt::core {

namespace {

std::vector<bool> reduced(InferContext& c) {
  const TensorType& x = c.in(0);
  std::vector<bool> r(static_cast<size_t>(x.ndim), c.attrs().i64_list("dims").empty());
  for (int64_t d : c.attrs().i64_list("dims")) {
    const int64_t k = d < 0 ? d + x.ndim : d;
    if (k < 0 || k >= x.ndim) c.error(fmt::format("dims holds {}, expected {} to {}", d, -x.ndim, x.ndim - 1));
    r[static_cast<size_t>(k)] = true;
  }
  return r;
}

void infer_sum(InferContext& c) {
  c.expect_float(0);
  TensorType t;
  t.dtype = c.in(0).dtype;
  const auto r = reduced(c);
  for (size_t i = 0; i < r.size(); ++i) {
    if (!r[i])
      t.shape[static_cast<size_t>(t.ndim++)] = c.in(0).shape[i];
    else if (c.attrs().boolean("keep"))
      t.shape[static_cast<size_t>(t.ndim++)] = 1;
  }
  c.out(t);
}

void vjp_sum(ComposeContext& c) {
  const TensorType& x = c.in(0)->type;
  std::vector<int64_t> kept(x.shape.begin(), x.shape.begin() + x.ndim), full = kept;
  const auto& dims = c.attrs().i64_list("dims");
  if (dims.empty()) std::fill(kept.begin(), kept.end(), 1);
  for (int64_t d : dims) kept[static_cast<size_t>(d < 0 ? d + x.ndim : d)] = 1;
  Value* g = c.op("core.reshape", {c.grad(0)}, {{"shape", kept}});
  c.result[0] = c.op("core.broadcast", {g}, {{"shape", full}});
}

}  // namespace

void add_reduce_ops(OpRegistry& r) {
  add_core_ops(r, {{"core.sum(x, *, dims: i64[] = [], keep: bool = false) -> (y!acc(f32))", "reduce", infer_sum, vjp_sum},
                   {"core.sum_squares(x) -> (y!nograd)", "reduce", [](InferContext& c) {
                      c.expect_float(0);
                      c.out(TensorType(accumulation_dtype(c.in(0).dtype), {}));
                    }}});
}

}  // namespace gestalt::core
