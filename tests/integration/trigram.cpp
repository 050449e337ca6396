// A byte trigram with interpolated Witten-Bell smoothing: the yardstick that a freshly trained model has to beat.
//
// The text is a file of lines. Line i (from 0) is held out when (i div 31) mod 20 = 7; the model counts on the others
// and is scored, newline included, on the held-out ones. With h a history of n bytes and h' the same without its first
// byte,   P(c | h) = (count(h c) + T(h) P(c | h')) / (count(h) + T(h)),   where T(h) is the number of different bytes
// seen after h. Below the empty history stands the uniform 1/256.
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr int kBytes = 256;
constexpr int kOrder = 3;
constexpr int64_t kHoldOutRun = 31;
constexpr int64_t kHoldOutEvery = 20;
constexpr int64_t kHoldOutAt = 7;

struct Split {
  std::string train;
  std::string held_out;
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

// Counts after every history of length n, as a dense table of 256^n rows.
struct Order {
  explicit Order(int n) : length(n), rows(size_t{1} << (8 * n)), count(rows * kBytes), total(rows), kinds(rows) {}

  void add(size_t history, uint8_t byte) {
    uint32_t& seen = count[history * kBytes + byte];
    kinds[history] += seen == 0;
    ++seen;
    ++total[history];
  }

  int length;
  size_t rows;
  std::vector<uint32_t> count;  // [rows, 256]
  std::vector<uint32_t> total;  // [rows]
  std::vector<uint32_t> kinds;  // [rows], T(h)
};

class Trigram {
 public:
  explicit Trigram(std::string_view text) {
    for (int n = 0; n < kOrder; ++n) orders_.emplace_back(n);
    size_t history = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      for (Order& order : orders_) {
        if (i >= static_cast<size_t>(order.length)) order.add(history & (order.rows - 1), byte);
      }
      history = history << 8 | byte;
    }
  }

  double bits_per_byte(std::string_view text) const {
    double bits = 0.0;
    size_t history = 0;
    for (size_t i = 0; i < text.size(); ++i) {
      const auto byte = static_cast<uint8_t>(text[i]);
      bits -= std::log2(probability(history, i, byte));
      history = history << 8 | byte;
    }
    return bits / static_cast<double>(text.size());
  }

 private:
  double probability(size_t history, size_t known, uint8_t byte) const {
    double p = 1.0 / kBytes;
    for (const Order& order : orders_) {
      if (known < static_cast<size_t>(order.length)) break;
      const size_t row = history & (order.rows - 1);
      const double kinds = order.kinds[row];
      if (kinds == 0.0) break;
      p = (order.count[row * kBytes + byte] + kinds * p) / (order.total[row] + kinds);
    }
    return p;
  }

  std::vector<Order> orders_;
};

int usage() {
  std::fputs("usage: gestalt_trigram --text FILE [--number]\n", stderr);
  return 2;
}

}  // namespace

int main(int argc, char** argv) {
  std::string path;
  bool number_only = false;
  for (int i = 1; i < argc; ++i) {
    const std::string_view arg = argv[i];
    if (arg == "--text" && i + 1 < argc) {
      path = argv[++i];
    } else if (arg == "--number") {
      number_only = true;
    } else {
      return usage();
    }
  }
  if (path.empty()) return usage();

  std::ifstream file(path, std::ios::binary);
  if (!file) {
    std::fprintf(stderr, "[trigram] cannot open '%s'; give a text file of lines\n", path.c_str());
    return 66;
  }
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  const Split split = split_lines(text);
  if (split.train.empty() || split.held_out.empty()) {
    std::fprintf(stderr,
                 "[trigram] '%s' has %zu bytes to train on and %zu held out, expected some of both; "
                 "a text needs at least 218 lines\n",
                 path.c_str(), split.train.size(), split.held_out.size());
    return 65;
  }
  const double bits = Trigram(split.train).bits_per_byte(split.held_out);
  if (number_only) {
    std::printf("%.4f\n", bits);
  } else {
    std::printf("Witten-Bell byte trigram: %.4f bits per byte on %zu held-out bytes (trained on %zu)\n", bits,
                split.held_out.size(), split.train.size());
  }
  return 0;
}
