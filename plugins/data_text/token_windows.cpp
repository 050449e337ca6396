#include "plugins/data_text/token_windows.h"

#include <algorithm>

#include "plugins/data_text/permutation.h"

namespace gestalt::data_text {

TrainWindows::TrainWindows(int64_t num_tokens, int64_t seq_len, int64_t seed)
    : seq_len_(seq_len), seed_(static_cast<uint64_t>(seed)) {
  // One window less than fits leaves room to move the first cut anywhere within a window.
  num_windows_ = std::max<int64_t>(1, (num_tokens - 1) / seq_len - 1);
  slack_ = num_tokens - 1 - num_windows_ * seq_len;
}

Window TrainWindows::operator()(int64_t sample) const {
  const auto epoch = static_cast<uint64_t>(sample / num_windows_);
  const auto index = static_cast<uint64_t>(sample % num_windows_);
  const uint64_t key = mixed(seed_, epoch);
  const auto offset = static_cast<int64_t>(mixed(key, 0) % static_cast<uint64_t>(slack_ + 1));
  const auto window = static_cast<int64_t>(Permutation(static_cast<uint64_t>(num_windows_), key)(index));
  return {offset + window * seq_len_, 0};
}

ValidWindows::ValidWindows(int64_t num_tokens, int64_t seq_len, int64_t context)
    : seq_len_(seq_len), context_(context) {
  const int64_t num_labels = num_tokens - 1;
  const int64_t step = seq_len - context;
  if (num_labels > 0) num_samples_ = 1 + (std::max<int64_t>(0, num_labels - seq_len) + step - 1) / step;
}

Window ValidWindows::operator()(int64_t sample) const {
  return {sample * (seq_len_ - context_), sample == 0 ? 0 : context_};
}

}  // namespace gestalt::data_text
