#pragma once

#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/gemm.h"
#include "plugins/kernels_cpu/strided.h"

// Shapes of core.matmul and core.linear, shared by the fast kernels and their plain twins.
namespace gestalt::kernels_cpu {

// y[..., m, n] = a b, where a is [..., m, k] or, with trans_a, [..., k, m]; b likewise. Leading dimensions are equal.
class MatmulShape {
 public:
  explicit MatmulShape(const Plan& plan)
      : trans_a_(plan.attrs().boolean("trans_a", false)), trans_b_(plan.attrs().boolean("trans_b", false)) {
    const View a = plan.in(0), b = plan.in(1), y = plan.out(0);
    need_float(plan, a, "a");
    need_like(plan, b, "b", a);
    need_like(plan, y, "y", a);
    if (a.ndim() < 2)
      throw InvalidArgument(place(plan) + "a: too few dimensions, got " + describe(a) + ", expected 2 or more");
    need_ndim(plan, b, "b", a.ndim());
    need_ndim(plan, y, "y", a.ndim());
    for (int d = 0; d + 2 < a.ndim(); ++d) need_dim(plan, b, "b", d, a.dim(d));
    need_dim(plan, b, "b", b.ndim() - (trans_b_ ? 1 : 2), k(a));
    need_dim(plan, y, "y", y.ndim() - 2, m(a));
    need_dim(plan, y, "y", y.ndim() - 1, n(b));
  }

  int64_t m(View a) const { return a.dim(trans_a_ ? -1 : -2); }
  int64_t k(View a) const { return a.dim(trans_a_ ? -2 : -1); }
  int64_t n(View b) const { return b.dim(trans_b_ ? -2 : -1); }
  int64_t batch(View a) const {
    int64_t count = 1;
    for (int d = 0; d + 2 < a.ndim(); ++d) count *= a.dim(d);
    return count;
  }

  // Matrix i of the batch.
  template <class C>
  Product<C> product(Call call, int64_t i) const {
    const View a = call.in(0), b = call.in(1), y = call.out(0);
    return {.m = m(a),
            .n = n(b),
            .k = k(a),
            .a = {at(a, i), a.dtype(), a.stride(trans_a_ ? -1 : -2), a.stride(trans_a_ ? -2 : -1)},
            .b = {at(b, i), b.dtype(), b.stride(trans_b_ ? -1 : -2), b.stride(trans_b_ ? -2 : -1)},
            .y = at(y, i),
            .y_dtype = y.dtype(),
            .y_row = y.stride(-2),
            .y_col = y.stride(-1),
            .accumulate = call.accumulate(0)};
  }

 private:
  static void* at(View x, int64_t i) { return x.data<char>() + offset_of(x, x.ndim() - 2, i) * size_of(x.dtype()); }

  bool trans_a_, trans_b_;
};

inline void need_linear(const Plan& plan) {
  const View x = plan.in(0), w = plan.in(1), y = plan.out(0);
  need_float(plan, x, "x");
  need_ndim(plan, x, "x", 2);
  need_like(plan, w, "w", x);
  need_ndim(plan, w, "w", 2);
  need_dim(plan, w, "w", 1, x.dim(1));
  need_like(plan, y, "y", x);
  need_ndim(plan, y, "y", 2);
  if (!plan.has_in(2)) return;
  need_like(plan, plan.in(2), "b", x);
  need_ndim(plan, plan.in(2), "b", 1);
  need_dim(plan, plan.in(2), "b", 0, w.dim(0));
}

}  // namespace gestalt::kernels_cpu
