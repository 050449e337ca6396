// Which tokens a sample holds: pure arithmetic on the sample's number, no stored order.
#pragma once

#include <cstdint>

namespace gestalt::data_text {

// A sample: tokens [start, start + seq_len) of the stream, each with the token after it as its label. Labels before
// `first_trained` have weight 0, and so have those beyond the stream's end.
struct Window {
  int64_t start, first_trained;
};

// Epoch after epoch: in each one every window once, shuffled, and the cuts between windows moved.
class TrainWindows {
 public:
  TrainWindows() = default;
  // num_tokens > seq_len.
  TrainWindows(int64_t num_tokens, int64_t seq_len, int64_t seed);
  Window operator()(int64_t sample) const;
  int64_t samples_per_epoch() const { return num_windows_; }

 private:
  int64_t seq_len_ = 0, num_windows_ = 1, slack_ = 0;
  uint64_t seed_ = 0;
};

// In order; every token but the first is a trained label of exactly one sample. With `context` each sample but the
// first repeats that many tokens on its left, so that no label is predicted from fewer.
class ValidWindows {
 public:
  ValidWindows() = default;
  ValidWindows(int64_t num_tokens, int64_t seq_len, int64_t context);  // 0 <= context < seq_len
  Window operator()(int64_t sample) const;
  int64_t num_samples() const { return num_samples_; }

 private:
  int64_t seq_len_ = 0, context_ = 0, num_samples_ = 0;
};

}  // namespace gestalt::data_text
