// TensorBoard's Event message (tensorflow/core/util/event.proto) in the wire format of protocol buffers: only the fields
// that this tracker needs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace gestalt::tracker_tensorboard {

// A message under construction.
class Message {
 public:
  Message& varint(uint32_t field, uint64_t value);
  Message& f32(uint32_t field, float value);
  Message& f64(uint32_t field, double value);
  Message& bytes(uint32_t field, std::string_view value);
  Message& message(uint32_t field, const Message& value) { return bytes(field, value.text_); }
  const std::string& text() const { return text_; }

 private:
  void raw(uint64_t value);
  std::string text_;
};

// The first event of every file.
Message version_event(double wall_time);
// What older files hold from `step` on is void.
Message start_event(double wall_time, int64_t step);
// A scalar or text value of a summary.
Message scalar(std::string_view tag, double value);
Message text_value(std::string_view tag, std::string_view text);
// An event with a summary of such values.
Message summary_event(double wall_time, int64_t step, const Message& summary);

}  // namespace gestalt::tracker_tensorboard
