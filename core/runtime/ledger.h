#pragma once

#include <array>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace gestalt::core {

// What memory is for. kPinned is host memory that a device copies fast; it is listed, but not part of the device total.
enum class Category { kWeights, kGradients, kMaster, kOptimizer, kActivations, kBatch, kWorkspace, kState, kOther, kPinned };
inline constexpr int kNumCategories = 10;

std::string_view category_name(Category category);

// Bytes of one device by category, now and at most. [any]
class Ledger {
 public:
  struct Line {
    uint64_t current = 0, peak = 0;
  };

  void add(Category category, uint64_t bytes);
  void remove(Category category, uint64_t bytes);
  Line line(Category category) const;
  // Device memory of all categories; its peak is the largest sum at one time, not the sum of peaks.
  Line total() const;
  // One row a category that was ever used, and the total.
  std::string table() const;

 private:
  mutable std::mutex mutex_;
  std::array<Line, kNumCategories> lines_{};
  Line total_;
};

}  // namespace gestalt::core
