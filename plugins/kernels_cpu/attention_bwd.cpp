#include "plugins/kernels_cpu/attention_shape.h"
#include "plugins/kernels_cpu/loops.h"

// With p = exp(scale q k^T - lse), recomputed tile by tile, and delta = rowsum(o do):
//   dv = p^T do,  ds = scale p (do v^T - delta),  dq = ds k,  dk = ds^T q.
// One thread does one segment of one key/value head, query heads and tiles in order: dk and dv of that head are summed
// in its scratch, so the bits do not depend on the number of threads.
namespace gestalt::kernels_cpu {
namespace {

class AttentionBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.attention_bwd";

  explicit AttentionBwd(Plan plan) : slots_(plan.host()), shape_(plan) {
    const View q = plan.in(0), v = plan.in(2), o = plan.in(4), lse = plan.in(5), grad = plan.in(6);
    for (auto [view, name] : {std::pair{o, "o"}, std::pair{grad, "do"}}) {
      need_like(plan, view, name, q);
      need_ndim(plan, view, name, 3);
      need_dim(plan, view, name, 0, q.dim(0));
      need_dim(plan, view, name, 1, q.dim(1));
      need_dim(plan, view, name, 2, v.dim(2));
    }
    need_like(plan, lse, "lse", q);
    need_ndim(plan, lse, "lse", 2);
    need_dim(plan, lse, "lse", 0, q.dim(0));
    need_dim(plan, lse, "lse", 1, q.dim(1));
    run_ = for_compute_type(q.dtype(), &AttentionBwd::run_as<float>, &AttentionBwd::run_as<double>);
    slot_bytes_ = q.is(kF64) ? bytes_per_slot<double>(q.dim(0), q.dim(2), v.dim(2))
                             : bytes_per_slot<float>(q.dim(0), q.dim(2), v.dim(2));
    plan.workspace(static_cast<uint64_t>(slots_.count() * slot_bytes_));
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  // Parts of one slot's scratch.
  template <class C>
  struct Scratch {
    Scratch(char* at, int64_t tokens, int64_t d, int64_t e)
        : p(reinterpret_cast<C*>(at)),
          ds(p + kQueryTile * kKeyTile),
          dq(ds + kQueryTile * kKeyTile),
          rows(dq + kQueryTile * d),
          delta(rows + 2 * std::max(d, e)),
          dk(delta + kQueryTile),
          dv(dk + tokens * d),
          product(at + ((dv + tokens * e - p) * static_cast<int64_t>(sizeof(C)) + 63) / 64 * 64) {}
    C *p, *ds, *dq, *rows, *delta, *dk, *dv;
    char* product;
  };

  template <class C>
  static int64_t bytes_per_slot(int64_t tokens, int64_t d, int64_t e) {
    const int64_t widest = std::max(d, e);
    const int64_t product =
        std::max({multiply_scratch<C>(kQueryTile, kKeyTile, widest), multiply_scratch<C>(kKeyTile, widest, kQueryTile),
                  multiply_scratch<C>(kQueryTile, widest, kKeyTile)});
    const int64_t own = 2 * kQueryTile * kKeyTile + kQueryTile * (d + 1) + 2 * widest + tokens * (d + e);
    return (own * static_cast<int64_t>(sizeof(C)) + 63) / 64 * 64 + product;
  }

  template <class C>
  void run_as(Call call) const {
    const View q = call.in(0), k = call.in(1), v = call.in(2), starts = call.in(3);
    AttentionShape::check_segments(op, starts, q.dim(0));
    for (uint64_t i = 0; i < 3; ++i) clear_uncovered<C>(call.out(i), starts);
    const int64_t groups = k.dim(1), shared = q.dim(1) / groups;
    slots_(AttentionShape::num_segments(starts) * groups, 1, [&](int64_t slot, int64_t begin, int64_t end) {
      const Scratch<C> scratch(static_cast<char*>(call.workspace()) + slot * slot_bytes_, q.dim(0), q.dim(2), v.dim(2));
      for (int64_t item = begin; item < end; ++item) {
        const int64_t group = item % groups, segment = item / groups;
        const int64_t first = AttentionShape::start_of(starts, segment);
        const int64_t last = AttentionShape::start_of(starts, segment + 1);
        std::fill(scratch.dk, scratch.dk + (last - first) * q.dim(2), C(0));
        std::fill(scratch.dv, scratch.dv + (last - first) * v.dim(2), C(0));
        for (int64_t head = group * shared; head < (group + 1) * shared; ++head)
          for (int64_t at = first; at < last; at += kQueryTile)
            one_tile<C>(call, head, group, first, last, at, std::min(kQueryTile, last - at), scratch);
        store(scratch.dk, call.out(1), first, last, group);
        store(scratch.dv, call.out(2), first, last, group);
      }
    });
  }

  template <class C>
  static void store(const C* rows, View to, int64_t first, int64_t last, int64_t head) {
    const int64_t size = to.dim(2);
    for (int64_t t = first; t < last; ++t)
      Out<C>(to).finish(rows + (t - first) * size, t * to.stride(0) + head * to.stride(1), to.stride(2), size);
  }

  template <class C>
  void one_tile(Call call, int64_t head, int64_t group, int64_t first, int64_t last, int64_t at, int64_t rows,
                const Scratch<C>& s) const {
    const View q = call.in(0), k = call.in(1), v = call.in(2), o = call.in(4), lse = call.in(5), grad = call.in(6);
    const int64_t d = q.dim(2), e = v.dim(2);
    const Loops<C>& table = loops<C>();
    const C scale = static_cast<C>(shape_.scale());
    for (int64_t i = 0; i < rows; ++i) {
      const C* x = In<C>(o).run((at + i) * o.stride(0) + head * o.stride(1), o.stride(2), e, s.rows);
      const C* y = In<C>(grad).run((at + i) * grad.stride(0) + head * grad.stride(1), grad.stride(2), e,
                                   s.rows + std::max(d, e));
      s.delta[i] = table.dot(x, y, e);
    }
    std::fill(s.dq, s.dq + rows * d, C(0));
    const Matrix query = head_matrix(q, at, head), out_grad = head_matrix(grad, at, head);
    const int64_t end = shape_.causal() ? at + rows : last;
    for (int64_t key = first; key < end; key += kKeyTile) {
      const int64_t keys = std::min(kKeyTile, end - key);
      const Matrix keys_matrix = head_matrix(k, key, group), values = head_matrix(v, key, group);
      multiply_tile(rows, keys, d, query, transposed(keys_matrix), s.p, keys, false, s.product);
      multiply_tile(rows, keys, e, out_grad, transposed(values), s.ds, keys, false, s.product);
      for (int64_t i = 0; i < rows; ++i) {
        C* p = s.p + i * keys;
        C* ds = s.ds + i * keys;
        const int64_t seen = shape_.seen(at + i, key, key + keys);
        table.exp_shift_sum(p, scale, In<C>(lse).one((at + i) * lse.stride(0) + head * lse.stride(1)), p, seen);
        table.score_grad(p, ds, s.delta[i], scale, ds, seen);
        std::fill(p + seen, p + keys, C(0));
        std::fill(ds + seen, ds + keys, C(0));
      }
      const Matrix p = dense(s.p, keys), ds = dense(s.ds, keys);
      multiply_tile(keys, e, rows, transposed(p), out_grad, s.dv + (key - first) * e, e, true, s.product);
      multiply_tile(rows, d, keys, ds, keys_matrix, s.dq, d, true, s.product);
      multiply_tile(keys, d, rows, transposed(ds), query, s.dk + (key - first) * d, d, true, s.product);
    }
    const View dq = call.out(0);
    for (int64_t i = 0; i < rows; ++i)
      Out<C>(dq).finish(s.dq + i * d, (at + i) * dq.stride(0) + head * dq.stride(1), dq.stride(2), d);
  }

  Slots slots_;
  AttentionShape shape_;
  int64_t slot_bytes_;
  void (AttentionBwd::*run_)(Call) const;
};
GESTALT_KERNEL(AttentionBwd);

}  // namespace
}  // namespace gestalt::kernels_cpu
