// The yardsticks of the quickstart: 5-grams with interpolated modified Kneser-Ney smoothing (Chen and Goodman, 1998), over
// bytes and over the ids of a BPE vocabulary, in bits per byte on the held-out lines.
//
//   gestalt_ngram --text FILE [--ranks FILE] [--order 5] [--smoothing kneser-ney|witten-bell]
//
// Line i (from 0) is held out when (i div 31) mod 20 = 7; the others are counted. The highest order counts occurrences,
// every lower one the different symbols seen before an n-gram; below the unigrams stands the uniform distribution. For n
// = 1, 2 and 3 or more occurrences D_n is taken off, with Y = n1 / (n1 + 2 n2) and D_i = i - (i + 1) Y n_{i+1} / n_i.
// Every held-out symbol but the first is scored, with what precedes it in the held-out text.
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "gestalt/error.hpp"
#include "support/bpe/open.h"

namespace {

constexpr int64_t kHoldOutRun = 31, kHoldOutEvery = 20, kHoldOutAt = 7;

using Ids = std::vector<int32_t>;
// An n-gram as one number, the newest symbol in the low bits. The bits are spread before they choose a bucket.
struct Spread {
  size_t operator()(uint64_t x) const {
    x ^= x >> 31;
    x *= 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
  }
};
template <class T>
using Table = std::unordered_map<uint64_t, T, Spread>;

struct Split {
  std::string train, held_out;
};

Split split_lines(std::string_view text) {
  Split split;
  int64_t line = 0;
  for (size_t begin = 0; begin < text.size(); ++line) {
    size_t end = text.find('\n', begin);
    end = end == std::string_view::npos ? text.size() : end + 1;
    const bool held_out = (line / kHoldOutRun) % kHoldOutEvery == kHoldOutAt;
    (held_out ? split.held_out : split.train).append(text.substr(begin, end - begin));
    begin = end;
  }
  return split;
}

// What followed one context.
struct Followers {
  uint64_t total = 0;
  std::array<uint32_t, 3> with = {};  // different symbols that followed once, twice, more often
  uint64_t kinds() const { return with[0] + with[1] + with[2]; }
};

class NGram {
 public:
  NGram(const Ids& ids, int order, int bits, int64_t vocab, bool kneser_ney)
      : order_(order), bits_(bits), vocab_(vocab), kneser_ney_(kneser_ney), counts_(order), followers_(order), discount_(order) {
    for (int n = 1; n <= order; ++n) {
      auto& counts = counts_[static_cast<size_t>(n - 1)];
      counts.reserve(ids.size());
      uint64_t key = 0;
      for (size_t i = 0; i < ids.size(); ++i) {
        key = (key << bits | static_cast<uint64_t>(ids[i])) & mask(n);
        if (i + 1 >= static_cast<size_t>(n)) ++counts[key];
      }
    }
    if (kneser_ney)
      for (int n = 1; n < order; ++n) {
        auto& counts = counts_[static_cast<size_t>(n - 1)];
        for (auto& [key, count] : counts) count = 0;
        for (const auto& [key, count] : counts_[static_cast<size_t>(n)]) ++counts[key & mask(n)];
      }
    for (int n = 1; n <= order; ++n) sum_up(static_cast<size_t>(n - 1));
  }

  double bits_of(const Ids& ids) const {
    double bits = 0;
    uint64_t history = ids.empty() ? 0 : static_cast<uint64_t>(ids[0]);
    for (size_t i = 1; i < ids.size(); ++i) {
      bits -= std::log2(probability(history, static_cast<int>(std::min<size_t>(i, static_cast<size_t>(order_ - 1))),
                                    static_cast<uint64_t>(ids[i])));
      history = history << bits_ | static_cast<uint64_t>(ids[i]);
    }
    return bits;
  }

 private:
  uint64_t mask(int n) const { return n * bits_ >= 64 ? ~uint64_t{0} : (uint64_t{1} << (n * bits_)) - 1; }

  void sum_up(size_t at) {
    std::array<double, 5> n_with = {};
    for (const auto& [key, count] : counts_[at]) {
      if (count == 0) continue;
      Followers& f = followers_[at][key >> bits_];
      f.total += count;
      ++f.with[std::min<uint32_t>(count, 3) - 1];
      if (count <= 4) ++n_with[count];
    }
    const double y = n_with[1] / std::max(n_with[1] + 2 * n_with[2], 1.0);
    for (size_t i = 1; i <= 3; ++i)
      discount_[at][i - 1] =
          n_with[i] > 0 ? std::max(0.0, static_cast<double>(i) - static_cast<double>(i + 1) * y * n_with[i + 1] / n_with[i]) : 0;
  }

  // With the newest `known` symbols of the history.
  double probability(uint64_t history, int known, uint64_t symbol) const {
    double p = 1.0 / static_cast<double>(vocab_);
    for (int n = 0; n <= known; ++n) {
      const auto at = static_cast<size_t>(n);
      const uint64_t context = n == 0 ? 0 : history & mask(n);
      const auto f = followers_[at].find(context);
      if (f == followers_[at].end()) break;
      const auto c = counts_[at].find(context << bits_ | symbol);
      const double count = c == counts_[at].end() ? 0 : c->second, total = static_cast<double>(f->second.total);
      if (!kneser_ney_) {
        const auto kinds = static_cast<double>(f->second.kinds());
        p = (count + kinds * p) / (total + kinds);
        continue;
      }
      const std::array<double, 3>& d = discount_[at];
      double left = 0;
      for (size_t i = 0; i < 3; ++i) left += d[i] * static_cast<double>(f->second.with[i]);
      const double taken = count > 0 ? d[static_cast<size_t>(std::min(count, 3.0)) - 1] : 0;
      p = (count - taken) / total + left / total * p;
    }
    return p;
  }

  int order_, bits_;
  int64_t vocab_;
  bool kneser_ney_;
  std::vector<Table<uint32_t>> counts_;
  std::vector<Table<Followers>> followers_;
  std::vector<std::array<double, 3>> discount_;
};

Ids bytes_of(std::string_view text) {
  Ids ids;
  for (const char c : text) ids.push_back(static_cast<uint8_t>(c));
  return ids;
}

int usage() {
  std::fputs("usage: gestalt_ngram --text FILE [--ranks FILE] [--order 5] [--smoothing kneser-ney|witten-bell]\n", stderr);
  return 2;
}

int run(const std::string& path, const std::string& ranks, int order, bool kneser_ney) {
  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "[ngram] cannot open '%s'; give a text file of lines\n", path.c_str());
    return 66;
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const Split split = split_lines(text);
  if (split.train.empty() || split.held_out.empty()) {
    std::fprintf(stderr, "[ngram] '%s' has %zu bytes to count and %zu held out, expected some of both\n", path.c_str(),
                 split.train.size(), split.held_out.size());
    return 65;
  }
  int64_t vocab = 256;
  int bits = 8;
  Ids train = bytes_of(split.train), held_out = bytes_of(split.held_out);
  auto scored = static_cast<double>(held_out.size() - 1);
  if (!ranks.empty()) {
    gestalt::support::bpe::Source source;
    source.ranks = ranks;
    const auto engine = gestalt::support::bpe::open_tokenizer(source);
    auto scratch = engine.make_scratch();
    auto encode = [&](const std::string& from, Ids* to) {
      to->clear();
      engine.encode(from, gestalt::support::bpe::Specials::kAsText, &scratch, to);
    };
    encode(split.train, &train);
    encode(split.held_out, &held_out);
    int32_t largest = 0;
    for (const Ids* ids : {&train, &held_out})
      for (const int32_t id : *ids) largest = std::max(largest, id);
    vocab = largest + 1;
    for (bits = 1; int64_t{1} << bits < vocab; ++bits) {
    }
    std::string first;
    engine.decode({held_out.data(), 1}, &first);
    scored = static_cast<double>(split.held_out.size() - first.size());
  }
  if (order < 1 || order * bits > 64) {
    std::fprintf(stderr, "[ngram] order %d over %lld symbols does not fit, expected at most %d\n", order,
                 static_cast<long long>(vocab), 64 / bits);
    return 65;
  }
  std::printf("%.4f\n", NGram(train, order, bits, vocab, kneser_ney).bits_of(held_out) / scored);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  std::string path, ranks, smoothing = "kneser-ney";
  int order = 5;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view flag = argv[i];
    if (flag == "--text")
      path = argv[i + 1];
    else if (flag == "--ranks")
      ranks = argv[i + 1];
    else if (flag == "--order")
      order = std::atoi(argv[i + 1]);
    else if (flag == "--smoothing")
      smoothing = argv[i + 1];
    else
      return usage();
  }
  if (argc % 2 == 0 || path.empty() || (smoothing != "kneser-ney" && smoothing != "witten-bell")) return usage();
  try {
    return run(path, ranks, order, smoothing == "kneser-ney");
  } catch (const gestalt::Error& e) {
    std::fprintf(stderr, "[ngram] %s\n", e.what());
    return 65;
  }
}
