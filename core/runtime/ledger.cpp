#include "core/runtime/ledger.h"

#include <algorithm>

#include <fmt/format.h>

namespace gestalt::core {

namespace {
constexpr std::string_view kNames[kNumCategories] = {"weights", "gradients", "master", "optimizer", "activations",
                                                     "batch",   "workspace", "state",  "other",     "pinned"};
}

std::string_view category_name(Category category) { return kNames[static_cast<int>(category)]; }

void Ledger::add(Category category, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  auto grow = [bytes](Line& line) {
    line.current += bytes;
    line.peak = std::max(line.peak, line.current);
  };
  grow(lines_[static_cast<size_t>(category)]);
  if (category != Category::kPinned) grow(total_);
}

void Ledger::remove(Category category, uint64_t bytes) {
  std::lock_guard lock(mutex_);
  lines_[static_cast<size_t>(category)].current -= bytes;
  if (category != Category::kPinned) total_.current -= bytes;
}

Ledger::Line Ledger::line(Category category) const {
  std::lock_guard lock(mutex_);
  return lines_[static_cast<size_t>(category)];
}

Ledger::Line Ledger::total() const {
  std::lock_guard lock(mutex_);
  return total_;
}

std::string Ledger::table() const {
  std::lock_guard lock(mutex_);
  std::string text = fmt::format("{:<12} {:>16} {:>16}\n", "memory", "bytes now", "peak");
  auto row = [&text](std::string_view name, const Line& line) {
    text += fmt::format("{:<12} {:>16} {:>16}\n", name, line.current, line.peak);
  };
  for (int i = 0; i < kNumCategories; ++i)
    if (lines_[static_cast<size_t>(i)].peak) row(kNames[i], lines_[static_cast<size_t>(i)]);
  row("total", total_);
  return text;
}

}  // namespace gestalt::core
