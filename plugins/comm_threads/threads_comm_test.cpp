#include "plugins/comm_threads/threads_comm.h"

#include <functional>
#include <thread>
#include <vector>

#include "core/base/host.h"
#include "core/config/attr_list.h"
#include "core/tensor/half.h"
#include "core/tensor/tensor.h"
#include "tests/catch_compat.hpp"

namespace gestalt::comm_threads {

namespace {

// One rank: its communicator and the group of all ranks.
struct Rank {
  int64_t rank, size;
  const gestalt_comm_1& comm = threads_table();
  void *self = nullptr, *all = nullptr;

  Rank(const std::string& room, int64_t r, int64_t n) : rank(r), size(n) {
    core::ConfigNode config = core::ConfigNode::table();
    config.insert("rank", core::ConfigNode::integer(r));
    config.insert("size", core::ConfigNode::integer(n));
    config.insert("room", core::ConfigNode::string(room));
    const core::AttrList attrs = core::to_attrs(config);
    core::check(core::make_host("test.comm_threads"),
                threads_component().create(core::make_host("test.comm_threads"), attrs.data(), attrs.size(), &self));
    all = group([&] {
      std::vector<int64_t> ranks;
      for (int64_t i = 0; i < n; ++i) ranks.push_back(i);
      return ranks;
    }());
  }
  ~Rank() { threads_component().destroy(self); }
  void* group(const std::vector<int64_t>& ranks) {
    void* g = nullptr;
    ok(comm.group_open(self, ranks.data(), ranks.size(), &g));
    return g;
  }
  static void ok(gestalt_status* status) {
    if (status) throw core::take(status);
  }
};

// Runs `body` as every rank of a fresh room; the error text of each rank, empty where there was none.
std::vector<std::string> as_ranks(int64_t size, const std::function<void(Rank&)>& body) {
  static int rooms = 0;
  const std::string room = "room " + std::to_string(rooms++);
  std::vector<std::string> errors(static_cast<size_t>(size));
  std::vector<std::unique_ptr<Rank>> ranks;
  for (int64_t r = 0; r < size; ++r) ranks.push_back(std::make_unique<Rank>(room, r, size));
  std::vector<std::thread> threads;
  for (const auto& rank : ranks)
    threads.emplace_back([&errors, &body, &r = *rank] {
      try {
        body(r);
      } catch (const core::Error& e) {
        errors[static_cast<size_t>(r.rank)] = e.message();
      }
    });
  for (std::thread& t : threads) t.join();
  return errors;
}

core::Tensor over(uint32_t dtype, void* data, int64_t n) { return core::Tensor(dtype, {n}, data).on(GESTALT_DEVICE_CPU, 0); }

const std::vector<std::string> kNone(4);

}  // namespace

TEST_CASE("all_reduce sums, and takes maximum and minimum, in place and apart, whatever the length") {
  for (int64_t n : {0, 1, 3, 4099}) {
    CHECK(as_ranks(4, [&](Rank& r) {
            std::vector<double> in(static_cast<size_t>(n)), out(in.size());
            for (int32_t op : {GESTALT_REDUCE_SUM, GESTALT_REDUCE_MAX, GESTALT_REDUCE_MIN})
              for (bool in_place : {false, true}) {
                for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<double>(i) + static_cast<double>(r.rank) * 0.25;
                core::Tensor a = over(GESTALT_F64, in.data(), n), b = over(GESTALT_F64, in_place ? in.data() : out.data(), n);
                Rank::ok(r.comm.all_reduce(r.self, r.all, &a.view, &b.view, op, nullptr));
                const double* y = static_cast<double*>(b.view.data);
                for (size_t i = 0; i < in.size(); ++i) {
                  const double x = static_cast<double>(i);
                  const double expected = op == GESTALT_REDUCE_SUM ? 4 * x + 1.5 : op == GESTALT_REDUCE_MAX ? x + 0.75 : x;
                  if (y[i] != expected) core::fail(GESTALT_INTERNAL, "[{}] got {}, expected {}", i, y[i], expected);
                }
              }
          }) == kNone);
  }
}

TEST_CASE("bf16 is summed in f32 and rounded once") {
  CHECK(as_ranks(4, [](Rank& r) {
          // 256 + 1 + 1 + 1 = 259 -> 260 (nearest even of spacing 2); rounding at each step would stay at 256.
          uint16_t x = core::bf16_from_f32(r.rank == 0 ? 256.0f : 1.0f);
          core::Tensor t = over(GESTALT_BF16, &x, 1);
          Rank::ok(r.comm.all_reduce(r.self, r.all, &t.view, &t.view, GESTALT_REDUCE_SUM, nullptr));
          if (core::f32_from_bf16(x) != 260.0f) core::fail(GESTALT_INTERNAL, "got {}", core::f32_from_bf16(x));
        }) == kNone);
}

TEST_CASE("gather, reduce-scatter and all-to-all put each rank's part in its place") {
  CHECK(as_ranks(4, [](Rank& r) {
          std::vector<int32_t> all(8), mine = {static_cast<int32_t>(2 * r.rank), static_cast<int32_t>(2 * r.rank + 1)};
          core::Tensor whole = over(GESTALT_I32, all.data(), 8), part = over(GESTALT_I32, mine.data(), 2);
          Rank::ok(r.comm.all_gather(r.self, r.all, &part.view, &whole.view, nullptr));
          if (all != std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6, 7}) core::fail(GESTALT_INTERNAL, "all_gather");
          Rank::ok(r.comm.reduce_scatter(r.self, r.all, &whole.view, &part.view, GESTALT_REDUCE_SUM, nullptr));
          if (mine != std::vector<int32_t>{static_cast<int32_t>(8 * r.rank), static_cast<int32_t>(8 * r.rank + 4)})
            core::fail(GESTALT_INTERNAL, "reduce_scatter");
          // Rank r sends r elements to each rank but sends nothing to rank 0.
          const int64_t send[4] = {0, r.rank, r.rank, r.rank}, receives[4] = {0, 1, 2, 3}, nothing[4] = {0, 0, 0, 0};
          std::vector<int32_t> out(9, static_cast<int32_t>(r.rank)), in(6, -1);
          core::Tensor o = over(GESTALT_I32, out.data(), 9), i = over(GESTALT_I32, in.data(), 6);
          Rank::ok(r.comm.all_to_all(r.self, r.all, &o.view, send, &i.view, r.rank == 0 ? nothing : receives, nullptr));
          const std::vector<int32_t> expected =
              r.rank == 0 ? std::vector<int32_t>(6, -1) : std::vector<int32_t>{1, 2, 2, 3, 3, 3};
          if (in != expected) core::fail(GESTALT_INTERNAL, "all_to_all");
        }) == kNone);
}

TEST_CASE("groups of some ranks work side by side") {
  CHECK(as_ranks(4, [](Rank& r) {
          void* half = r.rank % 2 == 0 ? r.group({2, 0}) : r.group({1, 3});
          if (r.group({})) core::fail(GESTALT_INTERNAL, "a group of nobody");
          float x = static_cast<float>(r.rank), y = -1;
          core::Tensor in = over(GESTALT_F32, &x, 1), out = over(GESTALT_F32, &y, 1);
          Rank::ok(r.comm.broadcast(r.self, half, &in.view, &out.view, 0, nullptr));
          if (y != (r.rank % 2 == 0 ? 2.0f : 1.0f)) core::fail(GESTALT_INTERNAL, "broadcast gave {}", y);
        }) == kNone);
}

TEST_CASE("a ring of sends and receives in one batch does not wait for ever") {
  CHECK(as_ranks(4, [](Rank& r) {
          int64_t mine = r.rank, theirs = -1;
          core::Tensor out = over(GESTALT_I64, &mine, 1), in = over(GESTALT_I64, &theirs, 1);
          Rank::ok(r.comm.batch(r.self, 1));
          Rank::ok(r.comm.send(r.self, r.all, &out.view, (r.rank + 1) % 4, nullptr));
          Rank::ok(r.comm.recv(r.self, r.all, &in.view, (r.rank + 3) % 4, nullptr));
          Rank::ok(r.comm.batch(r.self, 0));
          if (theirs != (r.rank + 3) % 4) core::fail(GESTALT_INTERNAL, "got {}", theirs);
          Rank::ok(r.comm.barrier(r.self, r.all));
        }) == kNone);
}

TEST_CASE("an abort and a mistake of one rank end the waiting of all") {
  const auto aborted = as_ranks(3, [](Rank& r) {
    if (r.rank == 2) return r.comm.abort(r.self);
    Rank::ok(r.comm.barrier(r.self, r.all));
  });
  CHECK_THAT(aborted[0], Catch::Contains("aborted"));
  CHECK_THAT(aborted[1], Catch::Contains("aborted"));
  const auto wrong = as_ranks(2, [](Rank& r) {
    std::vector<float> x(static_cast<size_t>(r.rank + 1));
    core::Tensor t = over(GESTALT_F32, x.data(), r.rank + 1);
    Rank::ok(r.comm.all_reduce(r.self, r.all, &t.view, &t.view, GESTALT_REDUCE_SUM, nullptr));
  });
  CHECK_THAT(wrong[0] + wrong[1], Catch::Contains("ranks disagree"));
}

TEST_CASE("a rank twice in a room, and rooms of two sizes, are refused") {
  Rank first("a room", 0, 2);
  CHECK_THROWS_WITH(Rank("a room", 0, 2), Catch::Contains("already"));
  CHECK_THROWS_WITH(Rank("a room", 1, 3), Catch::Contains("has 2 ranks, got 3"));
}

}  // namespace gestalt::comm_threads
