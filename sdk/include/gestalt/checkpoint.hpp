// Component kind "checkpoint/1": writes and reads shard files. A class names its files' ending:
//   static constexpr std::string_view extension = ".safetensors";
#pragma once

#include <memory>
#include <string_view>

#include "gestalt/abi/checkpoint.h"
#include "gestalt/component.hpp"

namespace gestalt {

// One file being written. Destroyed without finish: abandoned and removed by the implementation.
class ShardWriter {
 public:
  virtual ~ShardWriter() = default;
  // [any] The data behind the view is borrowed until finish or destruction.
  virtual void put(const gestalt_shard& shard) = 0;
  // Writes what is left and syncs it to storage.
  virtual void finish() = 0;
};

class ShardSink {
 public:
  explicit ShardSink(const gestalt_shard_sink* sink) : sink_(sink) {}
  // shard.view.data is NULL.
  void put(const gestalt_shard& shard) const { sink_->put(sink_->self, &shard); }

 private:
  const gestalt_shard_sink* sink_;
};

class ShardReader {
 public:
  virtual ~ShardReader() = default;
  virtual void list(const ShardSink& sink) = 0;
  // [any] Fills the contiguous view with the tensor of that name; refuses another type or shape.
  virtual void get(std::string_view name, const gestalt_view& out) = 0;
};

class Checkpoint : public detail::ComponentOf<Checkpoint> {
 public:
  virtual std::unique_ptr<ShardWriter> open_write(std::string_view path) = 0;
  virtual std::unique_ptr<ShardReader> open_read(std::string_view path) = 0;

  static constexpr std::string_view kKind = "checkpoint/1";
  template <class C>
  static constexpr const void* table();
};

namespace detail {

template <class C>
inline constexpr gestalt_checkpoint_1 checkpoint_table = {
    sizeof(gestalt_checkpoint_1),
    str_of(C::extension),
    [](void* self, gestalt_str path, void** writer) noexcept {
      return with<Checkpoint>(self, [&](Checkpoint& c) {
        *writer = new Held<ShardWriter>{held<Checkpoint>(self).host, c.open_write(view_of(path))};
      });
    },
    [](void* writer, const gestalt_shard* shard) noexcept {
      return with<ShardWriter>(writer, [&](ShardWriter& w) { w.put(*shard); });
    },
    [](void* writer, int32_t commit) noexcept {
      gestalt_status* status = nullptr;
      if (commit) status = with<ShardWriter>(writer, [](ShardWriter& w) { w.finish(); });
      delete &held<ShardWriter>(writer);
      return status;
    },
    [](void* self, gestalt_str path, void** reader) noexcept {
      return with<Checkpoint>(self, [&](Checkpoint& c) {
        *reader = new Held<ShardReader>{held<Checkpoint>(self).host, c.open_read(view_of(path))};
      });
    },
    [](void* reader, const gestalt_shard_sink* sink) noexcept {
      return with<ShardReader>(reader, [&](ShardReader& r) { r.list(ShardSink(sink)); });
    },
    [](void* reader, gestalt_str name, gestalt_view* out) noexcept {
      return with<ShardReader>(reader, [&](ShardReader& r) { r.get(view_of(name), *out); });
    },
    [](void* reader) noexcept { delete &held<ShardReader>(reader); }};

}  // namespace detail

template <class C>
constexpr const void* Checkpoint::table() {
  return &detail::checkpoint_table<C>;
}

}  // namespace gestalt
