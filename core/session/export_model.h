#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace gestalt::core {

// A checkpoint (or any model that Run opens) written as a model of another program.
struct ExportOptions {
  std::filesystem::path model, folder;
  std::string format = "hf";  // the component gestalt.NAME, or a name with a dot
  std::string family;         // empty: the model's own, else the first that expresses it
  int64_t shard_bytes = int64_t{5} << 30;
  std::vector<std::string> sets, environment;
};

struct ExportReport {
  int64_t num_tensors = 0;
  uint64_t bytes = 0;
  int64_t num_tokens = 0;  // of the check
  double difference = 0;   // largest of the logits of what was written and of the model
};

// Writes beside `folder`, opens what was written, compares logits on a fixed batch, and only then renames. One tensor
// is read at a time. VALIDATION when the logits differ by more than 1e-4.
ExportReport export_model(const ExportOptions& options);

}  // namespace gestalt::core
