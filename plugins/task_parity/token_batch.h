#pragma once

#include <span>
#include <string>
#include <vector>

#include "gestalt/task.hpp"
#include "support/safetensors.h"

namespace gestalt::task_parity {

// A batch of equally long sequences for a causal model, in the fields of run_batch: position t is trained on the label of
// position t + 1 (labels stand unshifted), the last position on nothing.
class TokenBatch {
 public:
  TokenBatch(std::span<const int32_t> ids, std::span<const int32_t> labels, int64_t rows);
  // input_ids and labels [rows, length] under a prefix ("batch0.").
  static TokenBatch read(const support::SafetensorsReader& file, const std::string& prefix);

  // Borrowed from this.
  std::vector<gestalt_batch_view> fields();

 private:
  int64_t rows_, length_;
  std::vector<int32_t> tokens_, labels_, positions_, starts_, keys_;
  std::vector<float> weights_;
  std::vector<std::vector<int64_t>> shapes_;
};

// Integers of any stored width.
std::vector<int32_t> read_ids(const support::SafetensorsReader& file, const std::string& name);
std::vector<float> read_floats(const support::SafetensorsReader& file, const std::string& name);

}  // namespace gestalt::task_parity
