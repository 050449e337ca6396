#include "plugins/kernels_cpu/attention_shape.h"
#include "plugins/kernels_cpu/loops.h"

// With p = exp(scores - lse), recomputed tile by tile, and delta = rowsum(o do):
//   dv = p^T do,  ds = p (do v^T - delta) times the slope of the score,  dq = ds k,  dk = ds^T q,
// where dropout acts on the p of dv and on do v^T.
// dbias sums ds before the slope over the pairs of one distance, dsinks sums -exp(sink - lse) delta over the tokens.
// One thread does one segment of one key/value head, query heads and tiles in order: dk and dv of that head are summed
// in its scratch, so the bits do not depend on the number of threads. With sinks or bias it does all segments of the
// head, and their gradients are summed in double at the start of the workspace.
namespace gestalt::kernels_cpu {
namespace {

class AttentionBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.attention_bwd";
  static constexpr uint64_t flags = CpuKernel::accumulating;

  explicit AttentionBwd(Plan plan) : slots_(plan.host()), shape_(plan, 7) {
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
    distances_ = shape_.has_bias() ? plan.in(8).dim(1) : 0;
    sums_bytes_ = q.dim(1) * (1 + distances_) * 8 / 64 * 64 + 64;
    plan.workspace(static_cast<uint64_t>(sums_bytes_ + slots_.count() * slot_bytes_));
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
          slope(delta + kQueryTile),
          dk(slope + kKeyTile),
          dv(dk + tokens * d),
          product(at + ((dv + tokens * e - p) * static_cast<int64_t>(sizeof(C)) + 63) / 64 * 64) {}
    C *p, *ds, *dq, *rows, *delta, *slope, *dk, *dv;
    char* product;
  };

  template <class C>
  static int64_t bytes_per_slot(int64_t tokens, int64_t d, int64_t e) {
    const int64_t widest = std::max(d, e);
    const int64_t product =
        std::max({multiply_scratch<C>(kQueryTile, kKeyTile, widest), multiply_scratch<C>(kKeyTile, widest, kQueryTile),
                  multiply_scratch<C>(kQueryTile, widest, kKeyTile)});
    const int64_t own = 2 * kQueryTile * kKeyTile + kQueryTile * (d + 1) + 2 * widest + kKeyTile + tokens * (d + e);
    return (own * static_cast<int64_t>(sizeof(C)) + 63) / 64 * 64 + product;
  }

  template <class C>
  void run_as(Call call) const {
    const View q = call.in(0), k = call.in(1), v = call.in(2), starts = call.in(3);
    AttentionShape::check_segments(op, starts, q.dim(0));
    shape_.check_bias(op, call);
    for (uint64_t i = 0; i < 3; ++i) clear_uncovered<C>(call.out(i), starts);
    const int64_t groups = k.dim(1), shared = q.dim(1) / groups, segments = AttentionShape::num_segments(starts);
    const bool whole = shape_.has_sinks() || shape_.has_bias();
    double* sums = static_cast<double*>(call.workspace());  // of each head: the sink, then the distances
    std::fill(sums, sums + q.dim(1) * (1 + distances_), 0.0);
    slots_(whole ? groups : segments * groups, 1, [&](int64_t slot, int64_t begin, int64_t end) {
      const Scratch<C> scratch(static_cast<char*>(call.workspace()) + sums_bytes_ + slot * slot_bytes_, q.dim(0),
                               q.dim(2), v.dim(2));
      for (int64_t item = begin; item < end; ++item)
        for (int64_t part = 0; part < (whole ? segments : 1); ++part) {
          const int64_t group = item % groups, segment = whole ? part : item / groups;
          const int64_t first = AttentionShape::start_of(starts, segment);
          const int64_t last = AttentionShape::start_of(starts, segment + 1);
          std::fill(scratch.dk, scratch.dk + (last - first) * q.dim(2), C(0));
          std::fill(scratch.dv, scratch.dv + (last - first) * v.dim(2), C(0));
          for (int64_t head = group * shared; head < (group + 1) * shared; ++head)
            for (int64_t at = first; at < last; at += kQueryTile)
              one_tile<C>(call, head, group, first, last, at, std::min(kQueryTile, last - at), scratch,
                          sums + head * (1 + distances_));
          store(scratch.dk, call.out(1), first, last, group);
          store(scratch.dv, call.out(2), first, last, group);
        }
    });
    for (int64_t head = 0; whole && head < q.dim(1); ++head) {
      const double* own = sums + head * (1 + distances_);
      const View dsinks = call.out(3), dbias = call.out(4);
      if (shape_.has_sinks()) Out<C>(dsinks, call.accumulate(3)).one(head * dsinks.stride(0), static_cast<C>(own[0]));
      for (int64_t i = 0; i < distances_; ++i)
        Out<C>(dbias, call.accumulate(4)).one(head * dbias.stride(0) + i * dbias.stride(1), static_cast<C>(own[1 + i]));
    }
  }

  template <class C>
  static void store(const C* rows, View to, int64_t first, int64_t last, int64_t head) {
    const int64_t size = to.dim(2);
    for (int64_t t = first; t < last; ++t)
      Out<C>(to).finish(rows + (t - first) * size, t * to.stride(0) + head * to.stride(1), to.stride(2), size);
  }

  template <class C>
  void one_tile(Call call, int64_t head, int64_t group, int64_t first, int64_t last, int64_t at, int64_t rows,
                const Scratch<C>& s, double* sums) const {
    const View q = call.in(0), k = call.in(1), v = call.in(2), o = call.in(4), lse = call.in(5), grad = call.in(6);
    const int64_t d = q.dim(2), e = v.dim(2);
    const Loops<C>& table = loops<C>();
    const C full_scale = static_cast<C>(shape_.scale());
    const C scale = shape_.plain() ? full_scale : C(1);  // what finished scores still lack
    const C sink = shape_.has_sinks() ? In<C>(shape_.sinks(call)).one(head * shape_.sinks(call).stride(0)) : C(0);
    for (int64_t i = 0; i < rows; ++i) {
      const C* x = In<C>(o).run((at + i) * o.stride(0) + head * o.stride(1), o.stride(2), e, s.rows);
      const C* y = In<C>(grad).run((at + i) * grad.stride(0) + head * grad.stride(1), grad.stride(2), e,
                                   s.rows + std::max(d, e));
      s.delta[i] = table.dot(x, y, e);
      if (shape_.has_sinks())
        sums[0] -= static_cast<double>(
            std::exp(sink - In<C>(lse).one((at + i) * lse.stride(0) + head * lse.stride(1))) * s.delta[i]);
    }
    std::fill(s.dq, s.dq + rows * d, C(0));
    const Matrix query = head_matrix(q, at, head), out_grad = head_matrix(grad, at, head);
    const int64_t end = shape_.last_seen(at + rows - 1, last);
    for (int64_t key = shape_.first_seen(at, first); key < end; key += kKeyTile) {
      const int64_t keys = std::min(kKeyTile, end - key);
      const Matrix keys_matrix = head_matrix(k, key, group), values = head_matrix(v, key, group);
      multiply_tile(rows, keys, d, query, transposed(keys_matrix), s.p, keys, false, s.product);
      multiply_tile(rows, keys, e, out_grad, transposed(values), s.ds, keys, false, s.product);
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t to = std::clamp<int64_t>(shape_.last_seen(at + i, last) - key, 0, keys);
        const int64_t from = std::clamp<int64_t>(shape_.first_seen(at + i, first) - key, 0, to), seen = to - from;
        C* p = s.p + i * keys + from;
        C* ds = s.ds + i * keys + from;
        if (!shape_.plain()) shape_.finish_scores<C>(call, head, at + i, key + from, seen, p, s.slope);
        table.exp_shift_sum(p, scale, In<C>(lse).one((at + i) * lse.stride(0) + head * lse.stride(1)), p, seen);
        if (shape_.drops()) shape_.drop(call, head, at + i, first, key + from, seen, ds);
        table.score_grad(p, ds, s.delta[i], scale, ds, seen);
        if (shape_.drops()) shape_.drop(call, head, at + i, first, key + from, seen, p);
        if (shape_.has_bias()) {
          double* distance = sums + 1 + key + from - (at + i) + distances_ / 2;
          for (int64_t j = 0; j < seen; ++j) distance[j] += static_cast<double>(ds[j]);
        }
        if (shape_.capped()) table.mul(ds, s.slope, ds, seen);
        if (!shape_.plain()) table.scale(ds, full_scale, ds, seen);
        for (C* row : {p, ds}) {
          std::fill(row - from, row, C(0));
          std::fill(row + seen, row - from + keys, C(0));
        }
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
  int64_t slot_bytes_, sums_bytes_, distances_;
  void (AttentionBwd::*run_)(Call) const;
};
GESTALT_KERNEL(AttentionBwd);

}  // namespace
}  // namespace gestalt::kernels_cpu
