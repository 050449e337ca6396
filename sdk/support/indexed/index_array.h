#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "support/npy.h"

namespace gestalt::support::indexed {

// Integers of one of NumPy's types, in memory or mapped from a cache file.
class IndexArray {
 public:
  IndexArray() = default;
  template <class T>
  explicit IndexArray(std::vector<T> values)
      : type_(support::npy_type<T>()), size_(static_cast<int64_t>(values.size())) {
    auto held = std::make_shared<std::vector<T>>(std::move(values));
    data_ = reinterpret_cast<const std::byte*>(held->data());
    owner_ = std::move(held);
  }
  IndexArray(support::NpyType type, const std::byte* data, int64_t size, std::shared_ptr<const void> owner)
      : type_(type), size_(size), data_(data), owner_(std::move(owner)) {}

  support::NpyType type() const { return type_; }
  int64_t size() const { return size_; }
  const std::byte* data() const { return data_; }
  int64_t operator[](int64_t i) const {
    switch (type_) {
      case support::NpyType::kI2:
        return load<int16_t>(i);
      case support::NpyType::kI4:
        return load<int32_t>(i);
      case support::NpyType::kU4:
        return load<uint32_t>(i);
      default:
        return load<int64_t>(i);
    }
  }

 private:
  template <class T>
  int64_t load(int64_t i) const {
    T value;
    std::memcpy(&value, data_ + static_cast<uint64_t>(i) * sizeof(T), sizeof(T));
    return value;
  }

  support::NpyType type_ = support::NpyType::kI8;
  int64_t size_ = 0;
  const std::byte* data_ = nullptr;
  std::shared_ptr<const void> owner_;
};

}  // namespace gestalt::support::indexed
