#include "plugins/kernels_cpu/kernel_caller.h"
#include "tests/catch_compat.hpp"

namespace gestalt::kernels_cpu {
namespace {

Reference product(int64_t batch, int64_t m, int64_t n, int64_t k, bool trans_a, bool trans_b) {
  return [=](const std::vector<Values>& in) {
    Values y;
    for (int64_t s = 0; s < batch; ++s)
      for (int64_t i = 0; i < m; ++i)
        for (int64_t j = 0; j < n; ++j) {
          double sum = in.size() > 2 && !in[2].empty() ? in[2][static_cast<size_t>(j)] : 0;
          for (int64_t l = 0; l < k; ++l)
            sum += in[0][static_cast<size_t>(s * m * k + (trans_a ? l * m + i : i * k + l))] *
                   in[1][static_cast<size_t>(s * n * k + (trans_b ? j * k + l : l * n + j))];
          y.push_back(sum);
        }
    return std::vector<Values>{y};
  };
}

void check_matmul(int64_t m, int64_t n, int64_t k, std::string_view backend, const Shape& lead = {}) {
  for (bool trans_a : {false, true}) {
    for (bool trans_b : {false, true}) {
      Shape a = lead, b = lead, y = lead;
      a.insert(a.end(), {trans_a ? k : m, trans_a ? m : k});
      b.insert(b.end(), {trans_b ? n : k, trans_b ? k : n});
      y.insert(y.end(), {m, n});
      INFO(m << " " << n << " " << k << " trans " << trans_a << trans_b);
      check_op({"core.matmul",
                {{a, some_values(count_of(a))}, {b, some_values(count_of(b), 2)}},
                {{y, true}},
                {{"trans_a", trans_a}, {"trans_b", trans_b}},
                product(count_of(lead), m, n, k, trans_a, trans_b),
                4,
                backend});
    }
  }
}

TEST_CASE("matmul matches three loops at sizes around the tile's") {
  for (std::string_view backend : {"gestalt.cpu", "gestalt.cpu_ref"}) {
    check_matmul(1, 1, 1, backend);
    check_matmul(2, 33, 5, backend);
    check_matmul(15, 31, 40, backend);
    check_matmul(29, 66, 17, backend);
  }
}

TEST_CASE("matmul adds up depths of several blocks") { check_matmul(17, 35, 530, "gestalt.cpu"); }

TEST_CASE("matmul has column blocks and row panels to share out") { check_matmul(70, 300, 12, "gestalt.cpu"); }

TEST_CASE("matmul takes stacks of matrices") {
  for (std::string_view backend : {"gestalt.cpu", "gestalt.cpu_ref"}) check_matmul(5, 6, 7, backend, {2, 3});
}

TEST_CASE("matmul of empty matrices is empty, and of depth 0 zero") {
  check_matmul(0, 4, 3, "gestalt.cpu");
  check_matmul(4, 0, 3, "gestalt.cpu");
  check_matmul(4, 5, 0, "gestalt.cpu");
  check_matmul(2, 2, 2, "gestalt.cpu", {0});
}

TEST_CASE("linear multiplies by the transpose and adds the bias") {
  for (std::string_view backend : {"gestalt.cpu", "gestalt.cpu_ref"})
    for (bool bias : {true, false})
      for (int64_t rows : {1, 40})
        check_op({"core.linear",
                  {{{rows, 300}, some_values(rows * 300)},
                   {{45, 300}, some_values(45 * 300, 2)},
                   {{45}, some_values(45, 3), 0, false, !bias}},
                  {{{rows, 45}}},
                  {},
                  product(1, rows, 45, 300, false, true),
                  4,
                  backend});
}

TEST_CASE("a batch-invariant product gives a row the same bits in any batch") {
  const Values w = some_values(40 * 64, 2), x = some_values(30 * 64, 1);
  Array weight(kF32, {40, 64}, w), many(kF32, {30, 64}, x), all(kF32, {30, 40});
  Array one(kF32, {1, 64}, Values(x.begin(), x.begin() + 64)), single(kF32, {1, 40});
  CallOptions options;
  options.require = GESTALT_REQUIRE_BATCH_INVARIANT;
  call_kernel("core.linear", {&many, &weight, nullptr}, {&all}, {}, options);
  call_kernel("core.linear", {&one, &weight, nullptr}, {&single}, {}, options);
  const Values first = all.get();
  CHECK(single.get() == Values(first.begin(), first.begin() + 40));
}

TEST_CASE("matrices that do not fit are refused with their shapes") {
  Array a(kF32, {2, 3}), b(kF32, {4, 5}), y(kF32, {2, 5});
  CHECK_THROWS_WITH(call_kernel("core.matmul", {&a, &b}, {&y}, {{"trans_a", false}, {"trans_b", false}}),
                    Catch::Contains("got f32[4, 5], expected 3"));
}

}  // namespace
}  // namespace gestalt::kernels_cpu
