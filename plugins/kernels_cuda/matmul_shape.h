#pragma once

#include "plugins/kernels_cuda/launch.h"

// Shapes of core.matmul and core.linear, shared by our own kernels and those of cuBLASLt.
namespace gestalt::kernels_cuda {

// y[m, n] = a b, `batch` times, all contiguous. Row-major a is [m, k] or, turned, [k, m]; b is [k, n] or [n, k].
struct ProductShape {
  int64_t m = 0, n = 0, k = 0, batch = 1;
  bool trans_a = false, trans_b = false;

  bool empty() const { return m == 0 || n == 0 || batch == 0; }
};

// Checks that hold at any size are made once, in prepare.
inline void need_product(const Plan& plan, View a, View b, View y) {
  need_float(plan, a, "a");
  need_dtype(plan, b, "b", {a.dtype()});
  if (!y.is(a.dtype()) && (a.is(kF64) || !y.is(kF32)))
    throw Unsupported(place(plan) + "y: dtype not supported, got " + describe(y) +
                      ", expected that of the operands or f32");
  if (!y.contiguous()) throw Unsupported(place(plan) + "y: not contiguous, got " + describe(y));
}

class MatmulShape {
 public:
  explicit MatmulShape(const Plan& plan)
      : trans_a_(plan.attrs().boolean("trans_a", false)), trans_b_(plan.attrs().boolean("trans_b", false)) {
    const View a = plan.in(0), b = plan.in(1), y = plan.out(0);
    if (a.ndim() < 2)
      throw InvalidArgument(place(plan) + "a: too few dimensions, got " + describe(a) + ", expected 2 or more");
    need_ndim(plan, b, "b", a.ndim());
    need_ndim(plan, y, "y", a.ndim());
    for (int d = 0; d + 2 < a.ndim(); ++d) need_dim(plan, b, "b", d, a.dim(d));
    const ProductShape s = of(a, b);
    need_dim(plan, b, "b", b.ndim() - (trans_b_ ? 1 : 2), s.k);
    need_dim(plan, y, "y", y.ndim() - 2, s.m);
    need_dim(plan, y, "y", y.ndim() - 1, s.n);
    need_product(plan, a, b, y);
  }

  ProductShape of(View a, View b) const {
    ProductShape s;
    s.m = a.dim(trans_a_ ? -1 : -2);
    s.k = a.dim(trans_a_ ? -2 : -1);
    s.n = b.dim(trans_b_ ? -2 : -1);
    for (int d = 0; d + 2 < a.ndim(); ++d) s.batch *= a.dim(d);
    s.trans_a = trans_a_;
    s.trans_b = trans_b_;
    return s;
  }

 private:
  bool trans_a_, trans_b_;
};

// y[t, o] = x[t, i] w[o, i]^T + b[o].
class LinearShape {
 public:
  explicit LinearShape(const Plan& plan) {
    const View x = plan.in(0), w = plan.in(1), y = plan.out(0);
    need_ndim(plan, x, "x", 2);
    need_ndim(plan, w, "w", 2);
    need_dim(plan, w, "w", 1, x.dim(1));
    need_ndim(plan, y, "y", 2);
    need_product(plan, x, w, y);
    if (!plan.has_in(2)) return;
    need_dtype(plan, plan.in(2), "b", {x.dtype()});
    need_ndim(plan, plan.in(2), "b", 1);
    need_dim(plan, plan.in(2), "b", 0, w.dim(0));
  }

  ProductShape of(View x, View w) const { return {x.dim(0), w.dim(0), x.dim(1), 1, false, true}; }
};

}  // namespace gestalt::kernels_cuda
