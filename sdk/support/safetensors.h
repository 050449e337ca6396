// safetensors: eight bytes of header length, a JSON header, then the tensors' bytes without holes.
//
// The reader checks everything before it allocates: size, header, types, shapes, byte ranges that tile the data and end
// at the end of the file. Bytes are read with pread through one held descriptor, so a file that is replaced by rename
// while open stays what it was. The writer gives the same bytes as the reference writer for the same tensors.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "gestalt/abi/base.h"
#include "support/file.h"

namespace gestalt::support {

struct SafetensorsType {
  std::string_view name;  // "BF16"
  uint32_t bits;          // of one element; below 8: a tensor must fill whole bytes
  uint32_t dtype;         // GESTALT_BF16, or 0 where Gestalt has no such type
};

// NULL when there is none.
const SafetensorsType* safetensors_type(std::string_view name) noexcept;
const SafetensorsType* safetensors_type(uint32_t dtype) noexcept;

struct SafetensorsEntry {
  std::string name;
  const SafetensorsType* type;
  std::vector<int64_t> shape;  // C order, little endian
  uint64_t offset;             // in the file
  uint64_t bytes;
};

struct SafetensorsLimits {
  uint64_t header_bytes = 100'000'000;
  uint64_t num_tensors = 1'000'000;
  uint64_t ndim = 16;
};

using SafetensorsMetadata = std::vector<std::pair<std::string, std::string>>;

class SafetensorsReader {
 public:
  explicit SafetensorsReader(std::string path, const SafetensorsLimits& limits = {});

  const std::string& path() const noexcept { return file_.path(); }
  const std::vector<SafetensorsEntry>& entries() const noexcept { return entries_; }  // in the order of the bytes
  const SafetensorsMetadata& metadata() const noexcept { return metadata_; }
  const std::string* metadata(std::string_view key) const noexcept;
  const SafetensorsEntry* find(std::string_view name) const noexcept;
  const SafetensorsEntry& at(std::string_view name) const;  // NOT_FOUND naming file and tensor

  // Any thread. `bytes` is the room at `out` and must be the entry's size.
  void read(const SafetensorsEntry& entry, void* out, uint64_t bytes) const;
  // Bytes [first, first + bytes) of the entry.
  void read_part(const SafetensorsEntry& entry, uint64_t first, void* out, uint64_t bytes) const;

 private:
  void parse_header(const std::string& header, const SafetensorsLimits& limits);

  ReadFile file_;
  std::vector<SafetensorsEntry> entries_;
  SafetensorsMetadata metadata_;
  std::unordered_map<std::string_view, uint64_t> index_;  // keys point into entries_
};

class SafetensorsWriter {
 public:
  explicit SafetensorsWriter(std::string path) : path_(std::move(path)) {}

  void set_metadata(std::string_view key, std::string_view value);
  // `data` (elements of the type, C order) is borrowed until commit; NULL only when the tensor is empty.
  void add(std::string_view name, const SafetensorsType& type, std::vector<int64_t> shape, const void* data);
  // The bytes come when the file is written: fill(out) is called once, with one tensor's room at a time.
  void add(std::string_view name, const SafetensorsType& type, std::vector<int64_t> shape,
           std::function<void(void* out)> fill);
  void commit();  // writes, syncs, renames; before it nothing of the file exists

 private:
  struct Item {
    std::string name;
    const SafetensorsType* type;
    std::vector<int64_t> shape;
    const void* data;
    std::function<void(void* out)> fill;
    uint64_t bytes;
  };
  void add(Item item);

  std::string path_;
  SafetensorsMetadata metadata_;
  std::vector<Item> items_;
};

}  // namespace gestalt::support
