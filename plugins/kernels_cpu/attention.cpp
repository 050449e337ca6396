#include <limits>

#include "plugins/kernels_cpu/attention_shape.h"
#include "plugins/kernels_cpu/loops.h"

// o = softmax(scores) v inside each segment, lse = log sum exp of the scores and of the sink. Tiles of queries go over
// tiles of keys with a running maximum m and sum l per query: when m grows, what has been summed shrinks by exp(old m -
// m).
namespace gestalt::kernels_cpu {
namespace {

class Attention : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.attention";

  explicit Attention(Plan plan) : slots_(plan.host()), shape_(plan, 4) {
    const View q = plan.in(0), v = plan.in(2);
    run_ = for_compute_type(q.dtype(), &Attention::run_as<float>, &Attention::run_as<double>);
    slot_bytes_ = q.is(kF64) ? bytes_per_slot<double>(q.dim(2), v.dim(2)) : bytes_per_slot<float>(q.dim(2), v.dim(2));
    plan.workspace(static_cast<uint64_t>(slots_.count() * slot_bytes_));
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  static int64_t bytes_per_slot(int64_t d, int64_t e) {
    const int64_t product =
        std::max(multiply_scratch<C>(kQueryTile, kKeyTile, d), multiply_scratch<C>(kQueryTile, e, kKeyTile));
    const int64_t own = kQueryTile * (kKeyTile + e + 2) * static_cast<int64_t>(sizeof(C));
    return product + (own + 63) / 64 * 64;
  }

  template <class C>
  void run_as(Call call) const {
    const View q = call.in(0), k = call.in(1), starts = call.in(3), o = call.out(0), lse = call.out(1);
    AttentionShape::check_segments(op, starts, q.dim(0));
    shape_.check_bias(op, call);
    clear_uncovered<C>(o, starts);
    clear_uncovered<C>(lse, starts);
    const int64_t segments = AttentionShape::num_segments(starts), heads = q.dim(1);
    slots_(segments * heads, 1, [&](int64_t slot, int64_t begin, int64_t end) {
      char* scratch = static_cast<char*>(call.workspace()) + slot * slot_bytes_;
      for (int64_t item = begin; item < end; ++item) {
        const int64_t head = item % heads, group = head / (heads / k.dim(1)), segment = item / heads;
        const int64_t first = AttentionShape::start_of(starts, segment);
        const int64_t last = AttentionShape::start_of(starts, segment + 1);
        for (int64_t at = first; at < last; at += kQueryTile)
          one_tile<C>(call, head, group, first, last, at, std::min(kQueryTile, last - at), scratch);
      }
    });
  }

  // Queries [at, at + rows) of one head against the keys [first, last).
  template <class C>
  void one_tile(Call call, int64_t head, int64_t group, int64_t first, int64_t last, int64_t at, int64_t rows,
                char* scratch) const {
    const View q = call.in(0), k = call.in(1), v = call.in(2), o = call.out(0), lse = call.out(1);
    const int64_t d = q.dim(2), e = v.dim(2);
    const Loops<C>& table = loops<C>();
    const C scale = shape_.plain() ? static_cast<C>(shape_.scale()) : C(1);
    C* scores = reinterpret_cast<C*>(scratch);
    C* sums = scores + kQueryTile * kKeyTile;
    C* m = sums + kQueryTile * e;
    C* l = m + kQueryTile;
    char* rest = scratch + ((l + kQueryTile - scores) * static_cast<int64_t>(sizeof(C)) + 63) / 64 * 64;
    std::fill(sums, sums + rows * e, C(0));
    const bool sink = shape_.has_sinks();
    const C none = -std::numeric_limits<C>::infinity();
    std::fill(m, m + rows, sink ? In<C>(shape_.sinks(call)).one(head * shape_.sinks(call).stride(0)) : none);
    std::fill(l, l + rows, C(sink ? 1 : 0));
    const int64_t end = shape_.last_seen(at + rows - 1, last);
    for (int64_t key = shape_.first_seen(at, first); key < end; key += kKeyTile) {
      const int64_t keys = std::min(kKeyTile, end - key);
      multiply_tile(rows, keys, d, head_matrix(q, at, head), transposed(head_matrix(k, key, group)), scores, keys,
                    false, rest);
      for (int64_t i = 0; i < rows; ++i) {
        C* row = scores + i * keys;
        const int64_t to = std::clamp<int64_t>(shape_.last_seen(at + i, last) - key, 0, keys);
        const int64_t from = std::clamp<int64_t>(shape_.first_seen(at + i, first) - key, 0, to), seen = to - from;
        if (seen > 0) {
          if (!shape_.plain()) shape_.finish_scores<C>(call, head, at + i, key + from, seen, row + from, nullptr);
          const C top = std::max(m[i], scale * table.max(row + from, seen));
          const C sum = table.exp_shift_sum(row + from, scale, top, row + from, seen);
          if (top != m[i] && l[i] > C(0)) {
            const C shrink = std::exp(m[i] - top);
            l[i] *= shrink;
            table.scale(sums + i * e, shrink, sums + i * e, e);
          }
          l[i] += sum;
          m[i] = top;
          if (shape_.drops()) shape_.drop(call, head, at + i, first, key + from, seen, row + from);
        }
        std::fill(row, row + from, C(0));
        std::fill(row + to, row + keys, C(0));
      }
      multiply_tile(rows, e, keys, dense(scores, keys), head_matrix(v, key, group), sums, e, true, rest);
    }
    for (int64_t i = 0; i < rows; ++i) {
      table.scale(sums + i * e, C(1) / l[i], sums + i * e, e);
      Out<C>(o).finish(sums + i * e, (at + i) * o.stride(0) + head * o.stride(1), o.stride(2), e);
      Out<C>(lse).one((at + i) * lse.stride(0) + head * lse.stride(1), m[i] + std::log(l[i]));
    }
  }

  Slots slots_;
  AttentionShape shape_;
  int64_t slot_bytes_;
  void (Attention::*run_)(Call) const;
};
GESTALT_KERNEL(Attention);

}  // namespace
}  // namespace gestalt::kernels_cpu
