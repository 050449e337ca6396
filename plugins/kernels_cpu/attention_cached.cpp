#include <algorithm>
#include <cmath>
#include <limits>

#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/loops.h"

// Attention of new tokens over the state of their sequences. Letters: t new tokens, s sequences, n query heads, g
// key/value heads, d size of a query and key head, e size of a value head, z tokens of a block.
//
// The new tokens of sequence i are [seq_starts[i], seq_starts[i + 1]) and stand at the end of its lengths[i] tokens. The
// state of its token p is row p mod z of block block_table[i, p div z]. First the keys and values of the new tokens go
// there, then each new token attends to itself and to what is before it.
namespace gestalt::kernels_cpu {
namespace {

class AttentionCached : public CpuKernel {
 public:
  static constexpr std::string_view op = "core.attention_cached";

  explicit AttentionCached(Plan plan)
      : slots_(plan.host()),
        scale_(plan.attrs().f64("scale", 0)),
        softcap_(plan.attrs().f64("softcap", 0)),
        window_(plan.attrs().i64("window", 0)),
        sinks_(plan.has_in(8)) {
    const View q = plan.in(0), k = plan.in(1), v = plan.in(2), table = plan.in(7);
    need_float(plan, q, "q");
    need_ndim(plan, q, "q", 3);
    const struct {
      uint64_t at;
      const char* name;
      int ndim;
    } like[] = {{1, "k", 3}, {2, "v", 3}, {3, "k_state", 4}, {4, "v_state", 4}};
    for (const auto& l : like) {
      need_like(plan, plan.in(l.at), l.name, q);
      need_ndim(plan, plan.in(l.at), l.name, l.ndim);
    }
    for (View view : {k, v}) need_dim(plan, view, "k and v", 0, q.dim(0));
    need_dim(plan, k, "k", 2, q.dim(2));
    need_dim(plan, v, "v", 1, k.dim(1));
    if (k.dim(1) < 1 || q.dim(1) % k.dim(1) != 0)
      throw InvalidArgument(place(plan) + "q: heads cannot be shared out among key heads, got " + describe(q) +
                            " and k " + describe(k) + ", expected a multiple of " + std::to_string(k.dim(1)));
    for (uint64_t i : {3, 4}) {
      need_dim(plan, plan.in(i), like[i - 1].name, 2, k.dim(1));
      need_dim(plan, plan.in(i), like[i - 1].name, 3, plan.in(i - 2).dim(2));
    }
    need_dim(plan, plan.in(4), "v_state", 0, plan.in(3).dim(0));
    need_dim(plan, plan.in(4), "v_state", 1, plan.in(3).dim(1));
    const char* names[] = {"seq_starts", "lengths", "block_table"};
    for (uint64_t i = 5; i < 8; ++i) {
      need_dtype(plan, plan.in(i), names[i - 5], {kI32});
      need_ndim(plan, plan.in(i), names[i - 5], i == 7 ? 2 : 1);
    }
    need_dim(plan, plan.in(5), "seq_starts", 0, plan.in(6).dim(0) + 1);
    need_dim(plan, table, "block_table", 0, plan.in(6).dim(0));
    if (sinks_) {
      need_like(plan, plan.in(8), "sinks", q);
      need_ndim(plan, plan.in(8), "sinks", 1);
      need_dim(plan, plan.in(8), "sinks", 0, q.dim(1));
    }
    if (!(scale_ >= 0 && softcap_ >= 0 && window_ >= 0))
      throw InvalidArgument(place(plan) + "got scale " + std::to_string(scale_) + ", softcap " +
                            std::to_string(softcap_) + " and window " + std::to_string(window_) +
                            ", expected 0 or more of each");
    if (scale_ == 0) scale_ = 1 / std::sqrt(static_cast<double>(std::max<int64_t>(q.dim(2), 1)));
    run_ = for_compute_type(q.dtype(), &AttentionCached::run_as<float>, &AttentionCached::run_as<double>);
    most_ = table.dim(1) * plan.in(3).dim(1);
    slot_bytes_ = (most_ + 2 * (q.dim(2) + v.dim(2)) + 16) * (q.is(kF64) ? 8 : 4);
    plan.workspace(static_cast<uint64_t>(slots_.count() * slot_bytes_));
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static int64_t index(View view, int64_t i) { return In<int64_t>(view).one(i * view.stride(0)); }

  [[noreturn]] static void refuse(const char* input, int64_t i, int64_t got, int64_t from, int64_t to) {
    throw InvalidArgument("[" + std::string(op) + "] " + input + ": got " + std::to_string(got) + " for sequence " +
                          std::to_string(i) + ", expected " + std::to_string(from) + " to " + std::to_string(to));
  }

  // What a wrong number would read or write outside of.
  void check(Call call) const {
    const View q = call.in(0), states = call.in(3), starts = call.in(5), lengths = call.in(6), table = call.in(7);
    const In<int64_t> blocks(table);
    int64_t previous = 0;
    for (int64_t i = 0; i < lengths.dim(0); ++i) {
      const int64_t first = index(starts, i), last = index(starts, i + 1), length = index(lengths, i);
      if (first < previous || first > last) refuse("seq_starts", i, first, previous, q.dim(0));
      if (last > q.dim(0)) refuse("seq_starts", i, last, first, q.dim(0));
      previous = last;
      if (first == last) continue;
      const int64_t most = table.dim(1) * states.dim(1);
      if (length < last - first || length > most) refuse("lengths", i, length, last - first, most);
      const int64_t seen = first_seen(length - (last - first));
      for (int64_t b = seen / states.dim(1); b * states.dim(1) < length; ++b)
        if (const int64_t block = blocks.one(i * table.stride(0) + b * table.stride(1));
            block < 0 || block >= states.dim(0))
          refuse("block_table", i, block, 0, states.dim(0) - 1);
    }
  }

  int64_t first_seen(int64_t position) const { return window_ > 0 ? std::max<int64_t>(0, position - window_ + 1) : 0; }

  template <class C>
  void run_as(Call call) const {
    check(call);
    const View starts = call.in(5), o = call.out(0);
    const int64_t sequences = call.in(6).dim(0), groups = call.in(1).dim(1);
    clear_uncovered<C>(o, starts, sequences);
    slots_(sequences * groups, 1, [&](int64_t slot, int64_t begin, int64_t end) {
      C* scratch = reinterpret_cast<C*>(static_cast<char*>(call.workspace()) + slot * slot_bytes_);
      for (int64_t item = begin; item < end; ++item) one_group<C>(call, item / groups, item % groups, scratch);
    });
  }

  template <class C>
  static void clear_uncovered(View o, View starts, int64_t sequences) {
    const int64_t first = sequences ? index(starts, 0) : o.dim(0), last = sequences ? index(starts, sequences) : o.dim(0);
    const Out<C> out(o);
    for (int64_t t = 0; t < o.dim(0); ++t) {
      if (t >= first && t < last && sequences) continue;
      for (int64_t h = 0; h < o.dim(1); ++h)
        for (int64_t i = 0; i < o.dim(2); ++i) out.one(t * o.stride(0) + h * o.stride(1) + i * o.stride(2), C(0));
    }
  }

  // One key/value head of one sequence: its new rows into the state, then its query heads.
  template <class C>
  void one_group(Call call, int64_t sequence, int64_t group, C* scratch) const {
    const View q = call.in(0), states[] = {call.in(3), call.in(4)}, table = call.in(7), o = call.out(0);
    const int64_t first = index(call.in(5), sequence), last = index(call.in(5), sequence + 1);
    const int64_t length = index(call.in(6), sequence), d = q.dim(2), e = states[1].dim(3), size = states[0].dim(1);
    C *scores = scratch, *query = scores + most_, *row = query + d, *sum = row + std::max(d, e);
    const In<int64_t> blocks(table);
    auto offset = [&](View state, int64_t position) {
      const int64_t block = blocks.one(sequence * table.stride(0) + position / size * table.stride(1));
      return block * state.stride(0) + position % size * state.stride(1) + group * state.stride(2);
    };
    for (int64_t t = first; t < last; ++t)
      for (uint64_t i = 0; i < 2; ++i) {
        const View x = call.in(1 + i), state = states[i];
        const C* values = In<C>(x).run(t * x.stride(0) + group * x.stride(1), x.stride(2), x.dim(2), row);
        Out<C>(state).finish(values, offset(state, length - (last - t)), state.stride(3), x.dim(2));
      }
    const In<C> k(states[0]), v(states[1]), in(q);
    const Loops<C>& table_of_loops = loops<C>();
    const C scale = static_cast<C>(scale_);
    const int64_t heads = q.dim(1) / call.in(1).dim(1);
    for (int64_t t = first; t < last; ++t) {
      const int64_t position = length - (last - t), from = first_seen(position), seen = position + 1 - from;
      for (int64_t head = group * heads; head < (group + 1) * heads; ++head) {
        const C* x = in.run(t * q.stride(0) + head * q.stride(1), q.stride(2), d, query);
        for (int64_t p = 0; p < seen; ++p)
          scores[p] = scale * table_of_loops.dot(x, k.run(offset(states[0], from + p), states[0].stride(3), d, row), d);
        if (softcap_ > 0) table_of_loops.softcap(scores, C(1), static_cast<C>(softcap_), scores, seen);
        C top = table_of_loops.max(scores, seen), total = 0;
        if (sinks_) {
          const C sink = In<C>(call.in(8)).one(head * call.in(8).stride(0));
          top = std::max(top, sink);
          total = std::exp(sink - top);
        }
        total += table_of_loops.exp_shift_sum(scores, C(1), top, scores, seen);
        std::fill(sum, sum + e, C(0));
        for (int64_t p = 0; p < seen; ++p) {
          const C* value = v.run(offset(states[1], from + p), states[1].stride(3), e, row);
          const C weight = scores[p];
          for (int64_t i = 0; i < e; ++i) sum[i] += weight * value[i];
        }
        table_of_loops.scale(sum, C(1) / total, sum, e);
        Out<C>(o).finish(sum, t * o.stride(0) + head * o.stride(1), o.stride(2), e);
      }
    }
  }

  Slots slots_;
  double scale_, softcap_;
  int64_t window_, most_ = 0, slot_bytes_ = 0;
  bool sinks_;
  void (AttentionCached::*run_)(Call) const;
};
GESTALT_KERNEL(AttentionCached);

}  // namespace
}  // namespace gestalt::kernels_cpu
