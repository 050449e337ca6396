#include "plugins/task_parity/token_batch.h"

#include <fmt/format.h>

#include "gestalt/dtype.hpp"

namespace gestalt::task_parity {

namespace {

template <class T>
std::vector<T> read_as(const support::SafetensorsReader& file, const support::SafetensorsEntry& e) {
  std::vector<T> values(e.bytes / sizeof(T));
  file.read(e, values.data(), e.bytes);
  return values;
}

gestalt_view view_of(void* data, DType dtype, std::vector<int64_t>& shape_and_strides) {
  const size_t ndim = shape_and_strides.size() / 2;
  gestalt_view v{};
  v.data = data;
  v.device_type = GESTALT_DEVICE_CPU;
  v.ndim = static_cast<int32_t>(ndim);
  v.dtype = dtype;
  v.shape = shape_and_strides.data();
  v.strides = shape_and_strides.data() + ndim;
  return v;
}

}  // namespace

std::vector<int32_t> read_ids(const support::SafetensorsReader& file, const std::string& name) {
  const support::SafetensorsEntry& e = file.at(name);
  if (e.type->dtype == kI32) return read_as<int32_t>(file, e);
  if (e.type->dtype != kI64)
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] tensor '{}' is of type {}, expected I32 or I64", file.path(), name,
                                                e.type->name));
  std::vector<int32_t> ids;
  for (int64_t id : read_as<int64_t>(file, e)) ids.push_back(static_cast<int32_t>(id));
  return ids;
}

std::vector<float> read_floats(const support::SafetensorsReader& file, const std::string& name) {
  const support::SafetensorsEntry& e = file.at(name);
  if (e.type->dtype != kF32)
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] tensor '{}' is of type {}, expected F32", file.path(), name, e.type->name));
  return read_as<float>(file, e);
}

TokenBatch::TokenBatch(std::span<const int32_t> ids, std::span<const int32_t> labels, int64_t rows)
    : rows_(rows), length_(static_cast<int64_t>(ids.size()) / rows), tokens_(ids.begin(), ids.end()) {
  starts_.push_back(0);
  for (int64_t r = 0; r < rows_; ++r) {
    for (int64_t t = 0; t < length_; ++t) {
      const bool last = t + 1 == length_;
      const int32_t label = last ? -1 : labels[static_cast<size_t>(r * length_ + t + 1)];
      labels_.push_back(label);
      weights_.push_back(label < 0 ? 0.0f : 1.0f);
      positions_.push_back(static_cast<int32_t>(t));
      keys_.push_back(static_cast<int32_t>(r));
      keys_.push_back(static_cast<int32_t>(t));
    }
    starts_.push_back(static_cast<int32_t>((r + 1) * length_));
  }
}

TokenBatch TokenBatch::read(const support::SafetensorsReader& file, const std::string& prefix) {
  const std::vector<int32_t> ids = read_ids(file, prefix + "input_ids"), labels = read_ids(file, prefix + "labels");
  const std::vector<int64_t>& shape = file.at(prefix + "input_ids").shape;
  if (shape.size() != 2 || shape[0] < 1 || labels.size() != ids.size())
    throw Error(GESTALT_DATA_ERROR, fmt::format("[{}] '{}input_ids' and labels have {} and {} elements, expected two equal "
                                                "matrices", file.path(), prefix, ids.size(), labels.size()));
  return TokenBatch(ids, labels, shape[0]);
}

std::vector<gestalt_batch_view> TokenBatch::fields() {
  const auto t = static_cast<int64_t>(tokens_.size());
  shapes_ = {{t, 1}, {t, 2, 2, 1}, {rows_ + 1, 1}};
  auto field = [&](const char* name, void* data, DType dtype, size_t shape) {
    return gestalt_batch_view{str_of(name), view_of(data, dtype, shapes_[shape])};
  };
  return {field("tokens", tokens_.data(), kI32, 0),      field("labels", labels_.data(), kI32, 0),
          field("positions", positions_.data(), kI32, 0), field("weights", weights_.data(), kF32, 0),
          field("seq_starts", starts_.data(), kI32, 2),   field("keys", keys_.data(), kI32, 1)};
}

}  // namespace gestalt::task_parity
