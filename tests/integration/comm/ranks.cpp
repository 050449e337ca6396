// One rank of a check that a communicator's collectives do what gestalt/abi/comm.h says, for any number of ranks:
//   mpirun -np 4 comm_ranks gestalt.comm_mpi gestalt.mpi
// Prints one line a rank; exit code 1 names what differed.
#include <cstdio>
#include <numeric>
#include <vector>

#include "core/base/host.h"
#include "core/config/attr_list.h"
#include "core/plugin/registry.h"
#include "core/session/run.h"
#include "core/tensor/half.h"
#include "core/tensor/tensor.h"
#include "gestalt/abi/comm.h"

namespace gestalt::core {

namespace {

template <class T>
void expect_equal(const char* what, const std::vector<T>& got, const std::vector<T>& expected) {
  for (size_t i = 0; i < expected.size(); ++i)
    if (!(got[i] == expected[i]))
      fail(GESTALT_INTERNAL, "[{}] element {}: got {}, expected {}", what, i, got[i], expected[i]);
}

template <class T>
Tensor view_of_vector(uint32_t dtype, std::vector<T>& v) {
  return Tensor(dtype, {static_cast<int64_t>(v.size())}, v.data()).on(GESTALT_DEVICE_CPU, 0);
}

class Rank {
 public:
  Rank(const gestalt_comm_1& comm, void* self) : comm_(comm), self_(self) {
    ok(comm_.world(self_, &rank_, &size_));
    std::vector<int64_t> ranks(static_cast<size_t>(size_));
    std::iota(ranks.begin(), ranks.end(), 0);
    all_ = group(ranks);
  }

  void run() {
    reductions<double>(GESTALT_F64);
    reductions<float>(GESTALT_F32);
    reductions<int64_t>(GESTALT_I64);
    reductions<int32_t>(GESTALT_I32);
    halves();
    moves();
    ring();
    halves_of_the_world();
    ok(comm_.barrier(self_, all_));
    std::printf("rank %d of %d: all equal\n", static_cast<int>(rank_), static_cast<int>(size_));
  }

 private:
  static void ok(gestalt_status* status) {
    if (status) throw take(status);
  }
  void* group(const std::vector<int64_t>& ranks) {
    void* g = nullptr;
    ok(comm_.group_open(self_, ranks.data(), ranks.size(), &g));
    return g;
  }

  template <class T>
  void reductions(uint32_t dtype) {
    for (const size_t per_rank : {size_t{0}, size_t{1}, size_t{1000}}) {
      const size_t n = per_rank * static_cast<size_t>(size_);
      for (const int32_t op : {GESTALT_REDUCE_SUM, GESTALT_REDUCE_MAX, GESTALT_REDUCE_MIN}) {
        auto value = [&](int64_t rank, size_t i) { return static_cast<T>(static_cast<int64_t>(i) % 97 - 40 * rank); };
        auto reduced = [&](size_t i) {
          const T lowest = value(size_ - 1, i), highest = value(0, i);
          if (op == GESTALT_REDUCE_MAX) return highest;
          return op == GESTALT_REDUCE_MIN ? lowest : static_cast<T>((lowest + highest) * static_cast<T>(size_) / 2);
        };
        std::vector<T> in(n), out(n), part(per_rank), expected(n);
        for (size_t i = 0; i < n; ++i) in[i] = value(rank_, i), expected[i] = reduced(i);
        const std::vector<T> mine(expected.begin() + static_cast<ptrdiff_t>(per_rank) * rank_,
                                  expected.begin() + static_cast<ptrdiff_t>(per_rank) * (rank_ + 1));
        Tensor a = view_of_vector(dtype, in), b = view_of_vector(dtype, out), p = view_of_vector(dtype, part);
        ok(comm_.all_reduce(self_, all_, &a.view, &b.view, op, nullptr));
        expect_equal("all_reduce", out, expected);
        ok(comm_.reduce_scatter(self_, all_, &a.view, &p.view, op, nullptr));
        expect_equal("reduce_scatter", part, mine);
        // In place: the result lies in this rank's part of the input.
        std::vector<T> both = in;
        Tensor whole = view_of_vector(dtype, both);
        Tensor inside = Tensor(dtype, {static_cast<int64_t>(per_rank)}, both.data() + per_rank * static_cast<size_t>(rank_))
                            .on(GESTALT_DEVICE_CPU, 0);
        ok(comm_.reduce_scatter(self_, all_, &whole.view, &inside.view, op, nullptr));
        expect_equal("reduce_scatter in place",
                     std::vector<T>(both.begin() + static_cast<ptrdiff_t>(per_rank) * rank_,
                                    both.begin() + static_cast<ptrdiff_t>(per_rank) * (rank_ + 1)),
                     mine);
        ok(comm_.all_gather(self_, all_, &inside.view, &whole.view, nullptr));
        expect_equal("all_gather in place", both, expected);
        ok(comm_.all_reduce(self_, all_, &a.view, &a.view, op, nullptr));
        expect_equal("all_reduce in place", in, expected);
      }
    }
  }

  // 256 and ones: exact in f32, and rounded once at the end.
  void halves() {
    const float sum = 255.0f + static_cast<float>(size_);
    std::vector<uint16_t> b = {bf16_from_f32(rank_ ? 1.0f : 256.0f)}, h = {f16_from_f32(rank_ ? 1.0f : 256.0f)};
    Tensor tb = view_of_vector(GESTALT_BF16, b), th = view_of_vector(GESTALT_F16, h);
    ok(comm_.all_reduce(self_, all_, &tb.view, &tb.view, GESTALT_REDUCE_SUM, nullptr));
    ok(comm_.all_reduce(self_, all_, &th.view, &th.view, GESTALT_REDUCE_SUM, nullptr));
    expect_equal("all_reduce of bf16", b, {bf16_from_f32(sum)});
    expect_equal("all_reduce of f16", h, {f16_from_f32(sum)});
  }

  // Rank r sends r + 1 elements "100 r + k" to rank k.
  void moves() {
    std::vector<int64_t> send(static_cast<size_t>(size_), rank_ + 1), receive(static_cast<size_t>(size_));
    std::vector<int32_t> out, expected;
    for (int64_t k = 0; k < size_; ++k) {
      receive[static_cast<size_t>(k)] = k + 1;
      out.insert(out.end(), static_cast<size_t>(rank_ + 1), static_cast<int32_t>(100 * rank_ + k));
      expected.insert(expected.end(), static_cast<size_t>(k + 1), static_cast<int32_t>(100 * k + rank_));
    }
    std::vector<int32_t> in(expected.size());
    Tensor a = view_of_vector(GESTALT_I32, out), b = view_of_vector(GESTALT_I32, in);
    ok(comm_.all_to_all(self_, all_, &a.view, send.data(), &b.view, receive.data(), nullptr));
    expect_equal("all_to_all", in, expected);
    for (int64_t root = 0; root < size_; ++root) {
      std::vector<int64_t> x = {rank_, 7}, y = {-1, -1};
      Tensor from = view_of_vector(GESTALT_I64, x), to = view_of_vector(GESTALT_I64, y);
      ok(comm_.broadcast(self_, all_, &from.view, &to.view, root, nullptr));
      expect_equal("broadcast", y, {root, 7});
    }
  }

  void ring() {
    if (size_ == 1) return;
    std::vector<double> mine = {static_cast<double>(rank_), 0.5}, theirs(2);
    Tensor a = view_of_vector(GESTALT_F64, mine), b = view_of_vector(GESTALT_F64, theirs);
    const int64_t before = (rank_ + size_ - 1) % size_;
    ok(comm_.batch(self_, 1));
    ok(comm_.send(self_, all_, &a.view, (rank_ + 1) % size_, nullptr));
    ok(comm_.recv(self_, all_, &b.view, before, nullptr));
    ok(comm_.batch(self_, 0));
    expect_equal("ring", theirs, {static_cast<double>(before), 0.5});
  }

  // The even ranks in reverse order, and the odd ones, at the same time.
  void halves_of_the_world() {
    std::vector<int64_t> ranks[2];
    for (int64_t r = 0; r < size_; ++r) ranks[r % 2].insert(r % 2 ? ranks[1].end() : ranks[0].begin(), r);
    void* mine = group(ranks[rank_ % 2]);
    if (!mine || group({})) fail(GESTALT_INTERNAL, "[group_open] wrong membership");
    std::vector<int64_t> x = {rank_}, all(ranks[rank_ % 2].size());
    Tensor a = view_of_vector(GESTALT_I64, x), b = view_of_vector(GESTALT_I64, all);
    ok(comm_.all_gather(self_, mine, &a.view, &b.view, nullptr));
    expect_equal("all_gather of a group", all, ranks[rank_ % 2]);
    comm_.group_close(self_, mine);
  }

  const gestalt_comm_1& comm_;
  void* self_;
  int64_t rank_ = 0, size_ = 1;
  void* all_ = nullptr;
};

}  // namespace

}  // namespace gestalt::core

int main(int argc, char** argv) {
  using namespace gestalt::core;
  if (argc != 3) {
    std::fprintf(stderr, "usage: comm_ranks PLUGIN COMPONENT\n");
    return 2;
  }
  int code = 0;
  Registry registry;
  try {
    publish_interfaces();
    registry.discover(plugin_search({}, Trust::kNamed));
    registry.load({argv[1]});
    const AttrList none;
    const Instance comm(registry.component("comm/1", argv[2]), none.data(), none.size());
    try {
      Rank(*comm.table<gestalt_comm_1>(), comm.self()).run();
    } catch (const Error& e) {
      std::fprintf(stderr, "%s\n", e.what());
      code = 1;
      comm.table<gestalt_comm_1>()->abort(comm.self());
    }
  } catch (const Error& e) {
    std::fprintf(stderr, "%s\n", e.what());
    code = exit_code(e.code());
  }
  registry.shutdown();
  return code;
}
