#include "plugins/kernels_cpu/block_io.h"
#include "plugins/kernels_cpu/cpu_kernel.h"
#include "plugins/kernels_cpu/strided.h"

namespace gestalt::kernels_cpu {
namespace {

// Before any row is touched: an id outside the table stops the run instead of reading beyond it.
void check_ids(std::string_view op, View ids, int64_t vocab) {
  const In<int64_t> in(ids);
  for (int64_t i = 0; i < ids.dim(0); ++i) {
    const int64_t id = in.one(i * ids.stride(0));
    if (id < 0 || id >= vocab)
      throw InvalidArgument("[" + std::string(op) + "] ids: out of range, got " + std::to_string(id) + " at position " +
                            std::to_string(i) + ", expected 0 to " + std::to_string(vocab - 1));
  }
}

// Which inputs are the ids and the rows of numbers, in both ops of a pair, and their names.
struct EmbeddingOp {
  static constexpr std::string_view name = "core.embedding", backward_name = "core.embedding_bwd";
  static constexpr std::string_view table = "w", rows = "dy";
  static constexpr uint64_t ids = 0, numbers = 1;
};
struct GatherOp {
  static constexpr std::string_view name = "core.gather_rows", backward_name = "core.scatter_add_rows";
  static constexpr std::string_view table = "x", rows = "x";
  static constexpr uint64_t ids = 1, numbers = 0;
};

// y[t] = w[ids[t]].
template <class Op>
class Embedding : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::name;

  explicit Embedding(Plan plan) : team_(plan.host()) {
    const View ids = plan.in(Op::ids), w = plan.in(Op::numbers);
    need_index(plan, ids, "ids");
    need_ndim(plan, ids, "ids", 1);
    need_float(plan, w, Op::table);
    need_ndim(plan, w, Op::table, 2);
    run_ = for_compute_type(w.dtype(), &Embedding::run_as<float>, &Embedding::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  template <class C>
  void run_as(Call call) const {
    const View ids = call.in(Op::ids), w = call.in(Op::numbers), y = call.out(0);
    check_ids(op, ids, w.dim(0));
    const int64_t width = w.dim(1);
    team_(ids.dim(0), row_grain(width), [&](int64_t begin, int64_t end) {
      C scratch[kBlock];
      for (int64_t t = begin; t < end; ++t) {
        const int64_t id = In<int64_t>(ids).one(t * ids.stride(0));
        for (int64_t at = 0; at < width; at += kBlock) {
          const int64_t n = std::min(kBlock, width - at);
          const C* from = In<C>(w).run(id * w.stride(0) + at * w.stride(1), w.stride(1), n, scratch);
          Out<C>(y).finish(from, t * y.stride(0) + at * y.stride(1), y.stride(1), n);
        }
      }
    });
  }

  Parallel team_;
  void (Embedding::*run_)(Call) const;
};
GESTALT_KERNEL(Embedding<EmbeddingOp>);
GESTALT_KERNEL(Embedding<GatherOp>);

// dw[v] = sum of dy[t] over the tokens with ids[t] = v. Threads share out the columns, and every column adds its tokens
// in order, so the bits do not depend on the number of threads. A narrow dw is summed in the workspace first.
template <class Op>
class EmbeddingBwd : public CpuKernel {
 public:
  static constexpr std::string_view op = Op::backward_name;
  static constexpr uint64_t flags = CpuKernel::accumulating;

  explicit EmbeddingBwd(Plan plan) : team_(plan.host()) {
    const View ids = plan.in(Op::ids), dy = plan.in(Op::numbers), dw = plan.out(0);
    need_index(plan, ids, "ids");
    need_ndim(plan, ids, "ids", 1);
    need_float(plan, dy, Op::rows);
    need_ndim(plan, dy, Op::rows, 2);
    need_dim(plan, dy, Op::rows, 0, ids.dim(0));
    need_like(plan, dw, "y", dy);
    need_ndim(plan, dw, "y", 2);
    need_dim(plan, dw, "y", 1, dy.dim(1));
    if (!sums_in_place(dw)) plan.workspace(static_cast<uint64_t>(dw.numel()) * sizeof(float));
    run_ = for_compute_type(dy.dtype(), &EmbeddingBwd::run_as<float>, &EmbeddingBwd::run_as<double>);
  }
  void run(Call call) const { (this->*run_)(call); }

 private:
  static bool sums_in_place(View dw) { return dw.is(kF32) || dw.is(kF64); }

  template <class C>
  void run_as(Call call) const {
    const View ids = call.in(Op::ids), dy = call.in(Op::numbers), dw = call.out(0);
    const int64_t vocab = dw.dim(0);
    check_ids(op, ids, vocab);
    const int64_t tokens = ids.dim(0), width = dy.dim(1);
    const bool in_place = sums_in_place(dw);
    C* sums = in_place ? dw.data<C>() : static_cast<C*>(call.workspace());
    const int64_t row = in_place ? dw.stride(0) : width, column = in_place ? dw.stride(1) : 1;
    const bool keep = in_place && call.accumulate(0);
    team_(width, std::max<int64_t>(16, row_grain(tokens)), [&](int64_t begin, int64_t end) {
      C scratch[kBlock];
      for (int64_t at = begin; at < end; at += kBlock) {
        const int64_t n = std::min(kBlock, end - at);
        if (!keep)
          for (int64_t v = 0; v < vocab; ++v)
            for (int64_t i = 0; i < n; ++i) sums[v * row + (at + i) * column] = C(0);
        for (int64_t t = 0; t < tokens; ++t) {
          const int64_t id = In<int64_t>(ids).one(t * ids.stride(0));
          const C* from = In<C>(dy).run(t * dy.stride(0) + at * dy.stride(1), dy.stride(1), n, scratch);
          C* to = sums + id * row + at * column;
          if (column == 1)
            for (int64_t i = 0; i < n; ++i) to[i] += from[i];
          else
            for (int64_t i = 0; i < n; ++i) to[i * column] += from[i];
        }
        if (!in_place)
          for (int64_t v = 0; v < vocab; ++v)
            Out<C>(dw, call.accumulate(0))
                .finish(sums + v * row + at, v * dw.stride(0) + at * dw.stride(1), dw.stride(1), n);
      }
    });
  }

  Parallel team_;
  void (EmbeddingBwd::*run_)(Call) const;
};
GESTALT_KERNEL(EmbeddingBwd<EmbeddingOp>);
GESTALT_KERNEL(EmbeddingBwd<GatherOp>);

}  // namespace
}  // namespace gestalt::kernels_cpu
