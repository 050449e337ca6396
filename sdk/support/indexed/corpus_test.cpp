#include "support/indexed/corpus.h"

#include <algorithm>
#include <set>

#include "gestalt/error.hpp"
#include "support/indexed/test_corpus.h"
#include "tests/catch_compat.hpp"

namespace gestalt::support::indexed {
namespace {

struct Sample {
  std::vector<int32_t> tokens, labels, positions, starts;
  std::vector<float> weights;
};

Sample read(Corpus& corpus, std::string_view split, int64_t n) {
  const auto length = static_cast<size_t>(corpus.config().seq_len);
  Sample s{std::vector<int32_t>(length),
           std::vector<int32_t>(length),
           std::vector<int32_t>(length),
           {},
           std::vector<float>(length)};
  const Split* found = corpus.split(split);
  REQUIRE(found);
  corpus.read(*found, n, {s.tokens.data(), s.labels.data(), s.weights.data(), s.positions.data()}, &s.starts);
  return s;
}

CorpusConfig config(const std::string& prefix, int64_t seq_len) {
  CorpusConfig c;
  c.paths = {prefix};
  c.split = "1,0,0";
  c.seq_len = seq_len;
  return c;
}

}  // namespace

TEST_CASE("Splits are read as shares of one") {
  CHECK(parse_split("80,10,10")[0] == 0.8);
  CHECK(parse_split("1")[2] == 0.0);
  CHECK(parse_split(" 969, 30, 1 ")[1] == 0.03);
  CHECK_THROWS_AS(parse_split("0,0,0"), Error);
  CHECK_THROWS_AS(parse_split("1,2,3,4"), Error);
}

TEST_CASE("Labels are the tokens one place later") {
  Corpus corpus(config(write_corpus("labels", {40, 30}), 8));
  for (int64_t n = 0; n < corpus.split("train")->num_samples; ++n) {
    const Sample s = read(corpus, "train", n);
    for (size_t i = 0; i + 1 < s.tokens.size(); ++i) CHECK(s.labels[i] == s.tokens[i + 1]);
    CHECK(s.starts == std::vector<int32_t>{0});
    CHECK(s.positions.back() == 7);
  }
}

TEST_CASE("Ranks that take slices of the global order are disjoint and complete") {
  Corpus corpus(config(write_corpus("ranks", {100, 200, 57, 91}), 6));
  const int64_t total = corpus.split("train")->num_samples;
  const auto key = [&](int64_t n) { return read(corpus, "train", n).tokens; };
  std::multiset<std::vector<int32_t>> whole;
  for (int64_t n = 0; n < total; ++n) whole.insert(key(n));
  CHECK(std::set<std::vector<int32_t>>(whole.begin(), whole.end()).size() == static_cast<size_t>(total));
  for (const int64_t ranks : {2, 3, 5}) {
    std::multiset<std::vector<int32_t>> together;
    for (int64_t rank = 0; rank < ranks; ++rank)
      for (int64_t n = rank; n < total; n += ranks) together.insert(key(n));
    CHECK(together == whole);
  }
}

TEST_CASE("Documents cut attention and positions where that is asked") {
  CorpusConfig c = config(write_corpus("cut", {3, 4, 5, 6}), 17);
  c.inter_document_masking = true;
  Corpus corpus(c);
  const Sample s = read(corpus, "train", 0);
  std::vector<int32_t> starts{0};
  for (int32_t i = 1; i < 17; ++i)
    if (s.tokens[static_cast<size_t>(i)] % 1000 == 0) starts.push_back(i);
  CHECK(s.starts == starts);
  CHECK(starts.size() == 4);
  for (size_t i = 0; i < 17; ++i) CHECK(s.positions[i] == s.tokens[i] % 1000);
}

TEST_CASE("The end of a document cuts attention, positions and loss where that is asked") {
  CorpusConfig c = config(write_corpus("eod", {20}), 19);
  c.eod = 4;
  c.reset_attention_mask = c.reset_position_ids = c.eod_mask_loss = true;
  Corpus corpus(c);
  const Sample s = read(corpus, "train", 0);
  CHECK(s.starts == std::vector<int32_t>{0, 5});
  CHECK(s.positions[4] == 4);
  CHECK(s.positions[5] == 0);
  CHECK(s.positions[18] == 13);
  CHECK(s.weights[4] == 0.0f);
  CHECK(std::count(s.weights.begin(), s.weights.end(), 1.0f) == 18);
}

TEST_CASE("A validation tail that is kept is padded and its padding not trained on") {
  CorpusConfig c = config(write_corpus("tail", {12, 13}), 10);
  c.split = "0,1,0";
  c.keep_partial_valid = true;
  Corpus corpus(c);
  REQUIRE(corpus.split("valid")->num_samples == 3);
  float trained = 0;
  for (int64_t n = 0; n < 3; ++n)
    for (const float w : read(corpus, "valid", n).weights) trained += w;
  CHECK(trained == 24);
  CHECK_FALSE(corpus.split("train"));
}

TEST_CASE("Mixtures give each corpus its share, and without a size are refused") {
  const std::string a = write_corpus("mix_a", {400}), b = write_corpus("mix_b", {400});
  CorpusConfig c = config(a, 4);
  c.paths = {"0.75", a, "0.25", b};
  CHECK_THROWS_AS(Corpus(c), Error);
  c.num_samples = {40, 0, 0};
  Corpus corpus(c);
  const Split& split = *corpus.split("train");
  CHECK(split.num_samples == 40);
  int64_t of_a = 0;
  for (int64_t k = 0; k < 40; ++k) of_a += split.blend.dataset[k] == 0;
  CHECK(of_a == 30);
  c.paths = {a, b, a};
  c.num_samples = {-1, 0, 0};
  CHECK(Corpus(c).split("train")->num_samples == 3 * 99);
  c.paths = {"0.5", a, "x", b};
  CHECK_THROWS_AS(Corpus(c), Error);
}

TEST_CASE("Ids outside the vocabulary are refused when read") {
  CorpusConfig c = config(write_corpus("ids", {20, 20}), 8);
  c.vocab_size = 1000;  // the second document starts at 1000
  Corpus corpus(c);
  CHECK_THROWS_AS(
      [&] {
        for (int64_t n = 0; n < corpus.split("train")->num_samples; ++n) read(corpus, "train", n);
      }(),
      Error);
}

TEST_CASE("Samples outside the split, empty splits and settings without effect are refused") {
  const std::string prefix = write_corpus("refuse", {30});
  Corpus corpus(config(prefix, 8));
  std::vector<int32_t> starts;
  const Split& split = *corpus.split("train");
  for (const int64_t n : {int64_t{-1}, split.num_samples}) CHECK_THROWS_AS(corpus.read(split, n, {}, &starts), Error);
  CorpusConfig c = config(prefix, 8);
  c.split = "1,1,0";  // one document cannot be halved
  CHECK_THROWS_AS(Corpus(c), Error);
  c = config(prefix, 8);
  c.reset_position_ids = true;  // without an eod
  CHECK_THROWS_AS(Corpus(c), Error);
  c.eod = 1;
  c.inter_document_masking = true;
  CHECK_THROWS_AS(Corpus(c), Error);
  c = config(prefix, 8);
  c.paths.clear();
  CHECK_THROWS_AS(Corpus(c), Error);
}

TEST_CASE("The digest follows the corpus and what decides the order") {
  const std::string prefix = write_corpus("digest", {30, 40});
  const auto digest = [&](auto change) {
    CorpusConfig c = config(prefix, 8);
    change(c);
    return Corpus(c).digest();
  };
  const auto base = digest([](CorpusConfig&) {});
  CHECK(base == digest([](CorpusConfig&) {}));
  CHECK(base != digest([](CorpusConfig& c) { c.seed = 5; }));
  CHECK(base != digest([](CorpusConfig& c) { c.seq_len = 9; }));
  CHECK(base != digest([](CorpusConfig& c) {
          c.eod = 5;
          c.eod_mask_loss = true;
        }));
  write_corpus("digest", {30, 41});
  CHECK(base != digest([](CorpusConfig&) {}));
}

}  // namespace gestalt::support::indexed
