#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "gestalt/task.hpp"

namespace gestalt::task_parity {

// The most likely next ids after a prompt, without a stop.
inline std::vector<int32_t> greedy(Session& session, std::vector<int32_t> ids, size_t num) {
  std::vector<int32_t> out;
  while (out.size() < num) {
    int64_t vocabulary = 0;
    const std::vector<float> logits = session.logits(ids, &vocabulary);
    const auto last = logits.end() - vocabulary;
    out.push_back(static_cast<int32_t>(std::max_element(last, logits.end()) - last));
    ids.push_back(out.back());
  }
  return out;
}

inline int64_t num_unequal(const std::vector<int32_t>& a, const std::vector<int32_t>& b) {
  int64_t n = static_cast<int64_t>(std::max(a.size(), b.size()) - std::min(a.size(), b.size()));
  for (size_t i = 0; i < std::min(a.size(), b.size()); ++i) n += a[i] != b[i];
  return n;
}

}  // namespace gestalt::task_parity
