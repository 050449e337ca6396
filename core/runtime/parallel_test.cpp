#include "core/runtime/parallel.h"

#include <atomic>
#include <mutex>
#include <set>
#include <thread>
#include <vector>

#include "core/base/host.h"
#include "tests/catch_compat.hpp"

namespace gestalt::core {

namespace {
std::set<std::pair<int64_t, int64_t>> ranges_of(int64_t n, int64_t grain) {
  std::mutex mutex;
  std::set<std::pair<int64_t, int64_t>> ranges;
  parallel_for(n, grain, [&](int64_t begin, int64_t end) {
    std::lock_guard lock(mutex);
    ranges.emplace(begin, end);
  });
  return ranges;
}

struct Threads {
  explicit Threads(int64_t n) : before(parallel()->num_threads(parallel()->self)) { set_num_threads(n); }
  ~Threads() { set_num_threads(before); }
  int64_t before;
};
}  // namespace

TEST_CASE("ranges cover [0, n) once, hold at least grain items and are at most num_threads") {
  for (int64_t threads : {1, 2, 3, 7}) {
    Threads scope(threads);
    for (int64_t n : {1, 2, 5, 64, 1000, 1001})
      for (int64_t grain : {0, 1, 3, 64, 5000}) {
        CAPTURE(threads, n, grain);
        const auto ranges = ranges_of(n, grain);
        CHECK(static_cast<int64_t>(ranges.size()) <= threads);
        int64_t at = 0;
        for (auto [begin, end] : ranges) {
          CHECK(begin == at);
          CHECK((end - begin >= grain || ranges.size() == 1));
          at = end;
        }
        CHECK(at == n);
      }
  }
}

TEST_CASE("the table is published under its id") {
  const gestalt_parallel_1* table = parallel();
  const gestalt_host* host = make_host("test");
  CHECK(host->get_interface(host->self, str_of("gestalt.parallel/1")) == table);
  CHECK(table->struct_size == sizeof(gestalt_parallel_1));
}

TEST_CASE("no work calls nothing") { CHECK(ranges_of(0, 1).empty()); }

TEST_CASE("a nested call walks the same ranges on its own thread") {
  Threads scope(2);
  const auto expected = ranges_of(10, 1);
  std::atomic<int> same{0};
  parallel_for(2, 1, [&](int64_t, int64_t) {
    const auto me = std::this_thread::get_id();
    bool mine = true;
    std::set<std::pair<int64_t, int64_t>> ranges;
    parallel_for(10, 1, [&](int64_t begin, int64_t end) {
      mine = mine && std::this_thread::get_id() == me;
      ranges.emplace(begin, end);
    });
    if (mine && ranges == expected) ++same;
  });
  CHECK(same == 2);
}

TEST_CASE("calls from several host threads at once all finish with the right sum") {
  Threads scope(2);
  std::vector<int64_t> sums(4);
  std::vector<std::thread> callers;
  for (int64_t& sum : sums)
    callers.emplace_back([&sum] {
      for (int round = 0; round < 50; ++round) {
        std::atomic<int64_t> total{0};
        parallel_for(1000, 10, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) total += i;
        });
        sum += total;
      }
    });
  for (std::thread& t : callers) t.join();
  for (int64_t sum : sums) CHECK(sum == 50 * 999 * 500);
}

TEST_CASE("a number of threads below one is refused") { CHECK_THROWS_AS(set_num_threads(0), Error); }

}  // namespace gestalt::core
