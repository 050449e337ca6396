#include "plugins/tracker_tensorboard/event.h"

#include <cstring>

namespace gestalt::tracker_tensorboard {

namespace {

// Wire types.
constexpr uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5;

// Field numbers of Event.
constexpr uint32_t kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5, kSessionLog = 7;

Message event(double wall_time, int64_t step) {
  Message e;
  e.f64(kWallTime, wall_time);
  if (step != 0) e.varint(kStep, static_cast<uint64_t>(step));
  return e;
}

}  // namespace

void Message::raw(uint64_t value) {
  for (; value >= 0x80; value >>= 7) text_ += static_cast<char>((value & 0x7f) | 0x80);
  text_ += static_cast<char>(value);
}

Message& Message::varint(uint32_t field, uint64_t value) {
  raw(field << 3 | kVarint);
  raw(value);
  return *this;
}

Message& Message::f32(uint32_t field, float value) {
  raw(field << 3 | kFixed32);
  char data[4];
  std::memcpy(data, &value, 4);
  text_.append(data, 4);
  return *this;
}

Message& Message::f64(uint32_t field, double value) {
  raw(field << 3 | kFixed64);
  char data[8];
  std::memcpy(data, &value, 8);
  text_.append(data, 8);
  return *this;
}

Message& Message::bytes(uint32_t field, std::string_view value) {
  raw(field << 3 | kBytes);
  raw(value.size());
  text_ += value;
  return *this;
}

Message version_event(double wall_time) { return event(wall_time, 0).bytes(kFileVersion, "brain.Event:2"); }

Message start_event(double wall_time, int64_t step) {
  constexpr uint32_t kStatus = 1, kStart = 1;
  return event(wall_time, step).message(kSessionLog, Message().varint(kStatus, kStart));
}

// Summary { repeated Value value = 1 }, Value { tag = 1, simple_value = 2, tensor = 8, metadata = 9 }
Message scalar(std::string_view tag, double value) {
  return Message().message(1, Message().bytes(1, tag).f32(2, static_cast<float>(value)));
}

Message text_value(std::string_view tag, std::string_view text) {
  // SummaryMetadata { plugin_data = 1 { plugin_name = 1 }, data_class = 4 (2: tensor) }
  const Message metadata = Message().message(1, Message().bytes(1, "text")).varint(4, 2);
  // TensorProto { dtype = 1 (7: string), tensor_shape = 2 { dim = 2 { size = 1 } }, string_val = 8 }
  const Message tensor =
      Message().varint(1, 7).message(2, Message().message(2, Message().varint(1, 1))).bytes(8, text);
  return Message().message(1, Message().bytes(1, tag).message(8, tensor).message(9, metadata));
}

Message summary_event(double wall_time, int64_t step, const Message& summary) {
  return event(wall_time, step).message(kSummary, summary);
}

}  // namespace gestalt::tracker_tensorboard
