#include "support/indexed/gpt_index.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "gestalt/error.hpp"
#include "support/indexed/blend.h"
#include "support/indexed/index_cache.h"
#include "support/indexed/test_corpus.h"
#include "tests/catch_compat.hpp"

namespace gestalt::support::indexed {
namespace {

using Values = std::vector<int64_t>;

Values values(const IndexArray& array) {
  Values out;
  for (int64_t i = 0; i < array.size(); ++i) out.push_back(array[i]);
  return out;
}

GptIndexRequest request(int64_t num_sequences, int64_t num_samples, int64_t seq_len) {
  GptIndexRequest r;
  r.end = num_sequences;
  r.num_samples = num_samples;
  r.seq_len = seq_len;
  r.seed = 1234;
  return r;
}

}  // namespace

TEST_CASE("One epoch gives the published indices") {
  const IndexFile corpus(write_corpus("five", {5, 3, 7, 2, 6}));
  for (const int64_t wanted : {-1, 5}) {
    const GptIndex index = build_gpt_index(corpus, request(5, wanted, 4));
    CHECK(values(index.documents) == Values{4, 0, 1, 2, 3});
    CHECK(values(index.samples) == Values{0, 0, 0, 4, 1, 2, 2, 1, 3, 2, 3, 6});
    CHECK(values(index.shuffle) == Values{3, 2, 1, 0, 4});
  }
}

TEST_CASE("A short last epoch is shuffled on its own") {
  const IndexFile corpus(write_corpus("five", {5, 3, 7, 2, 6}));
  const GptIndex index = build_gpt_index(corpus, request(5, 7, 4));
  CHECK(index.separate_last_epoch);
  CHECK(values(index.documents) == Values{4, 0, 1, 2, 3, 3, 2, 1, 0, 4});
  CHECK(values(index.samples) == Values{0, 0, 0, 4, 1, 2, 2, 1, 3, 2, 3, 6, 5, 1, 6, 3, 7, 0, 8, 1, 9, 0, 9, 4});
  CHECK(values(index.shuffle) == Values{2, 0, 4, 3, 1, 6, 10, 7, 5, 9, 8});
}

TEST_CASE("A full last epoch is shuffled with the others") {
  const IndexFile corpus(write_corpus("five", {5, 3, 7, 2, 6}));
  const GptIndex index = build_gpt_index(corpus, request(5, 10, 4));
  CHECK_FALSE(index.separate_last_epoch);
  CHECK(values(index.documents) == Values{2, 2, 4, 1, 0, 3, 4, 0, 1, 3});
  CHECK(values(index.samples) == Values{0, 0, 0, 4, 1, 1, 1, 5, 2, 2, 3, 0, 4, 1, 5, 0, 6, 2, 7, 0, 7, 4, 9, 0});
  CHECK(values(index.shuffle) == Values{3, 10, 2, 1, 7, 5, 4, 0, 8, 6, 9});
}

TEST_CASE("Every document appears once an epoch, and every sample once") {
  std::vector<int> lengths;
  for (int d = 0; d < 10; ++d) lengths.push_back(3 + d % 4);
  const IndexFile corpus(write_corpus("ten", lengths));
  const GptIndex index = build_gpt_index(corpus, request(10, 24, 5));
  REQUIRE(index.num_epochs == 3);
  std::vector<int> seen(10, 0);
  for (const int64_t d : values(index.documents)) ++seen[static_cast<size_t>(d)];
  CHECK(seen == std::vector<int>(10, 3));
  Values order = values(index.shuffle);
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) CHECK(order[i] == static_cast<int64_t>(i));
}

TEST_CASE("A last epoch on its own holds each document once") {
  const IndexFile corpus(write_corpus("five", {5, 3, 7, 2, 6}));
  const Values documents = values(build_gpt_index(corpus, request(5, 13, 4)).documents);
  REQUIRE(documents.size() == 15);
  CHECK(std::set<int64_t>(documents.end() - 5, documents.end()).size() == 5);
}

TEST_CASE("A corpus shorter than one sample is refused with its size") {
  const IndexFile corpus(write_corpus("short", {3}));
  try {
    build_gpt_index(corpus, request(1, -1, 8));
    FAIL("not refused");
  } catch (const Error& e) {
    CHECK(e.code == GESTALT_DATA_ERROR);
    CHECK(e.message().find("hold 3 tokens") != std::string::npos);
  }
  // Asked for samples, a short corpus is repeated.
  CHECK(build_gpt_index(corpus, request(1, 2, 8)).num_samples() >= 2);
}

TEST_CASE("Mixtures follow the published orders") {
  const Blend two = blend_by_weight(normalized({0.3, 0.7}), 10);
  CHECK(values(two.dataset) == Values{1, 0, 1, 1, 0, 1, 1, 0, 1, 1});
  CHECK(values(two.sample) == Values{0, 0, 1, 2, 1, 3, 4, 2, 5, 6});
  const Blend three = blend_by_weight(normalized({1, 2, 3}), 12);
  CHECK(values(three.dataset) == Values{2, 1, 0, 2, 1, 2, 0, 2, 1, 2, 1, 2});
  CHECK(values(three.sample) == Values{0, 0, 0, 1, 1, 2, 1, 3, 2, 4, 3, 5});
  const Blend all = blend_exhaustive({3, 5});
  CHECK(values(all.dataset) == Values{1, 0, 1, 0, 1, 1, 0, 1});
  CHECK(values(all.sample) == Values{0, 0, 1, 1, 2, 3, 2, 4});
}

TEST_CASE("Counts of a mixture stay within one of their share") {
  const std::vector<double> weights = normalized({0.31, 0.07, 0.5, 0.12});
  const Blend blend = blend_by_weight(weights, 20'000);
  std::vector<int64_t> counts(4, 0);
  double worst = 0;
  for (int64_t k = 0; k < blend.size(); ++k) {
    ++counts[static_cast<size_t>(blend.dataset[k])];
    for (size_t d = 0; d < 4; ++d)
      worst = std::max(worst, std::abs(static_cast<double>(counts[d]) - weights[d] * static_cast<double>(k + 1)));
  }
  CHECK(worst < 1.0 + 1e-9);
}

TEST_CASE("Weights that are no shares are refused") {
  for (const double wrong : {0.0, -1.0, std::nan(""), HUGE_VAL}) CHECK_THROWS_AS(normalized({1, wrong}), Error);
}

TEST_CASE("A cache gives the arrays that were built, and is rebuilt when it is damaged") {
  const std::string prefix = write_corpus("five", {5, 3, 7, 2, 6}), folder = scratch("cache");
  const IndexFile corpus(prefix);
  const GptIndexRequest r = request(5, 7, 4);
  const GptIndex built = build_gpt_index(corpus, r);
  const auto check = [&] {
    const GptIndex index = load_or_build_gpt_index(corpus, corpus.digest(), r, folder);
    CHECK(values(index.documents) == values(built.documents));
    CHECK(values(index.samples) == values(built.samples));
    CHECK(values(index.shuffle) == values(built.shuffle));
    CHECK(index.shuffle.type() == built.shuffle.type());
    CHECK(index.separate_last_epoch);
  };
  check();
  check();
  const std::string file = folder + "/" + cache_name(corpus.digest(), r) + "/shuffle.index";
  std::string bytes = read_bytes(file);
  bytes[70] ^= 1;
  std::filesystem::remove(file);
  write_bytes(file, bytes);
  check();
  CHECK(read_bytes(file) != bytes);
}

}  // namespace gestalt::support::indexed
