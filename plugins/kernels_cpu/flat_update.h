#pragma once

#include <algorithm>

#include "gestalt/op_plans/update.hpp"
#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"

// The frame of a weight update: flat vectors, cut by a table of segments with their own weight decay and learning rate.
namespace gestalt::kernels_cpu {

using namespace flat_update;

// Vectors of one update. Elements of narrow types go through scratch of one block.
template <class C>
struct UpdateBlock {
  C* weight;  // master weights if there are any, else the parameter
  const C* grad;
  C* state[2];  // null where absent
  int64_t n;
};

inline double scalar(View view, int64_t i = 0) {
  return In<double>(view).one(view.ndim() > 0 ? i * view.stride(0) : i);
}

// Calls f(block, decay, lr_scale) until every element of every segment is done. states: inputs that hold the state.
template <class C, size_t kStates, class F>
void update_segments(const Parallel& team, Call call, const std::array<uint64_t, kStates>& states, uint64_t segments,
                     const F& f) {
  const View param = call.in(kParam), grad = call.in(kGrad), table = call.in(segments), hyper = call.in(segments + 1);
  const bool has_master = call.has_in(kMaster);
  const View weight = has_master ? call.in(kMaster) : param;
  team(param.dim(0), 16 * kBlock, [&](int64_t begin, int64_t end) {
    C scratch[2 + kStates][kBlock];
    for (int64_t s = 0; s < table.dim(0); ++s) {
      const int64_t offset = In<int64_t>(table).one(s * table.stride(0));
      const int64_t length = In<int64_t>(table).one(s * table.stride(0) + table.stride(1));
      const double decay = In<double>(hyper).one(s * hyper.stride(0));
      const double lr_scale = In<double>(hyper).one(s * hyper.stride(0) + hyper.stride(1));
      const int64_t last = std::min(end, offset + length);
      for (int64_t at = std::max(begin, offset); at < last; at += kBlock) {
        UpdateBlock<C> block{};
        block.n = std::min(kBlock, last - at);
        const auto held = [&](View view, C* own) {
          return const_cast<C*>(In<C>(view).run(at * view.stride(0), view.stride(0), block.n, own));
        };
        const auto put = [&](View view, const C* values) {
          Out<C>(view).finish(values, at * view.stride(0), view.stride(0), block.n);
        };
        block.weight = held(weight, scratch[0]);
        block.grad = held(grad, scratch[1]);
        for (size_t i = 0; i < kStates; ++i)
          if (call.has_in(states[i])) block.state[i] = held(call.in(states[i]), scratch[2 + i]);
        f(block, decay, lr_scale);
        put(weight, block.weight);
        if (has_master) put(param, block.weight);
        for (size_t i = 0; i < kStates; ++i)
          if (call.has_in(states[i])) put(call.in(states[i]), block.state[i]);
      }
    }
  });
}

}  // namespace gestalt::kernels_cpu
