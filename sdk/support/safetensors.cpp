#include "support/safetensors.h"

#include <algorithm>
#include <cstring>
#include <tuple>

#include "gestalt/error.hpp"
#include "support/json.h"
#include "support/utf8.h"

namespace gestalt::support {

namespace {

// In the order of the reference writer: by alignment, largest first.
constexpr SafetensorsType kTypes[] = {{"U64", 64, 0},
                                      {"I64", 64, GESTALT_I64},
                                      {"F64", 64, GESTALT_F64},
                                      {"C64", 64, 0},
                                      {"F32", 32, GESTALT_F32},
                                      {"U32", 32, 0},
                                      {"I32", 32, GESTALT_I32},
                                      {"BF16", 16, GESTALT_BF16},
                                      {"F16", 16, GESTALT_F16},
                                      {"U16", 16, 0},
                                      {"I16", 16, 0},
                                      {"F8_E5M2FNUZ", 8, 0},
                                      {"F8_E4M3FNUZ", 8, 0},
                                      {"F8_E8M0", 8, 0},
                                      {"F8_E4M3", 8, 0},
                                      {"F8_E5M2", 8, 0},
                                      {"I8", 8, 0},
                                      {"U8", 8, GESTALT_U8},
                                      {"F6_E3M2", 6, 0},
                                      {"F6_E2M3", 6, 0},
                                      {"F4", 4, 0},
                                      {"BOOL", 8, GESTALT_BOOL}};

[[noreturn]] void refuse(const std::string& path, std::string_view tensor, const std::string& problem) {
  std::string where = "[" + path;
  if (!tensor.empty()) where += ": " + std::string(tensor.substr(0, 512));
  throw Error(GESTALT_DATA_ERROR, where + "] " + problem);
}

// Bytes of a tensor, or a refusal when they overflow or do not fill whole bytes.
uint64_t checked_bytes(const std::string& path, std::string_view name, const SafetensorsType& type,
                       const std::vector<int64_t>& shape) {
  uint64_t count = 1;
  for (int64_t size : shape) {
    if (size < 0) refuse(path, name, "negative dimension, got " + std::to_string(size));
    if (__builtin_mul_overflow(count, static_cast<uint64_t>(size), &count)) {
      refuse(path, name, "the product of the shape overflows 64 bits, at dimension " + std::to_string(size));
    }
  }
  uint64_t bits = 0;
  if (__builtin_mul_overflow(count, uint64_t{type.bits}, &bits)) {
    refuse(path, name, "the size in bits overflows 64 bits, got " + std::to_string(count) + " elements");
  }
  if (bits % 8 != 0) {
    refuse(path, name, std::to_string(count) + " elements of " + std::string(type.name) + " do not fill whole bytes");
  }
  return bits / 8;
}

}  // namespace

const SafetensorsType* safetensors_type(std::string_view name) noexcept {
  const auto found = std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.name == name; });
  return found == std::end(kTypes) ? nullptr : found;
}

const SafetensorsType* safetensors_type(uint32_t dtype) noexcept {
  const auto found =
      std::find_if(std::begin(kTypes), std::end(kTypes), [&](const auto& t) { return t.dtype == dtype && dtype != 0; });
  return found == std::end(kTypes) ? nullptr : found;
}

SafetensorsReader::SafetensorsReader(std::string path, const SafetensorsLimits& limits) : file_(std::move(path)) {
  const std::string& name = file_.path();
  if (file_.size() < 8) {
    refuse(name, "", "too short for safetensors, got " + std::to_string(file_.size()) + " bytes, expected at least 8");
  }
  uint8_t head[8];
  file_.read(0, head, 8);
  uint64_t length = 0;
  for (int i = 7; i >= 0; --i) length = length << 8 | head[i];
  if (length > limits.header_bytes) {
    refuse(name, "",
           "header too large, got " + std::to_string(length) + " bytes, expected at most " +
               std::to_string(limits.header_bytes) + "; is this a safetensors file?");
  }
  if (length > file_.size() - 8) {
    refuse(name, "",
           "header ends after the file, got a header of " + std::to_string(length) + " bytes in a file of " +
               std::to_string(file_.size()));
  }
  std::string header(length, '\0');
  file_.read(8, header.data(), length);
  parse_header(header, limits);
}

void SafetensorsReader::parse_header(const std::string& header, const SafetensorsLimits& limits) {
  const std::string& path = file_.path();
  if (header.empty() || header[0] != '{') refuse(path, "", "header does not start with '{'");
  const Json root = parse_json(header, path + " header", {limits.header_bytes, 3});
  const uint64_t data_start = 8 + header.size();
  const uint64_t data_bytes = file_.size() - data_start;

  if (root.members().size() > limits.num_tensors + 1) {
    refuse(path, "",
           "too many tensors, got " + std::to_string(root.members().size()) + ", expected at most " +
               std::to_string(limits.num_tensors));
  }
  for (const JsonMember& member : root.members()) {
    if (!member.value.is_object()) {
      refuse(path, member.key, "expected an object, got " + std::string(member.value.kind()));
    }
    if (member.key == "__metadata__") {
      for (const JsonMember& pair : member.value.members()) {
        if (!pair.value.is_string()) {
          refuse(path, member.key, "\"" + pair.key + "\" is not a string, got " + std::string(pair.value.kind()));
        }
        metadata_.emplace_back(pair.key, pair.value.str());
      }
      continue;
    }
    const std::string& name = member.key;
    SafetensorsEntry entry{name, nullptr, {}, 0, 0};
    std::vector<int64_t> range;
    try {
      for (const JsonMember& field : member.value.members()) {
        if (field.key != "dtype" && field.key != "shape" && field.key != "data_offsets") {
          throw Error(GESTALT_DATA_ERROR, "unknown field \"" + field.key + "\"");
        }
      }
      const std::string& type = member.value.str("dtype");
      entry.type = safetensors_type(type);
      if (entry.type == nullptr) throw Error(GESTALT_DATA_ERROR, "unknown dtype, got \"" + type.substr(0, 40) + "\"");
      entry.shape = member.value.i64_list("shape");
      range = member.value.i64_list("data_offsets");
    } catch (const Error& error) {
      refuse(path, name, error.what());
    }
    if (entry.shape.size() > limits.ndim) {
      refuse(path, name,
             "too many dimensions, got " + std::to_string(entry.shape.size()) + ", expected at most " +
                 std::to_string(limits.ndim));
    }
    if (range.size() != 2 || range[0] < 0 || range[1] < range[0]) {
      refuse(path, name, "data_offsets are not [begin, end] with 0 <= begin <= end");
    }
    entry.bytes = checked_bytes(path, name, *entry.type, entry.shape);
    const auto begin = static_cast<uint64_t>(range[0]), end = static_cast<uint64_t>(range[1]);
    if (end - begin != entry.bytes) {
      refuse(path, name,
             "data_offsets hold " + std::to_string(end - begin) + " bytes, expected " + std::to_string(entry.bytes) +
                 " for dtype and shape");
    }
    if (end > data_bytes) {
      refuse(path, name,
             "ends after the file, got data offset " + std::to_string(end) + ", expected at most " +
                 std::to_string(data_bytes) + "; is the file truncated?");
    }
    entry.offset = data_start + begin;
    entries_.push_back(std::move(entry));
  }
  // A tensor without bytes sorts before the one that starts at the same place.
  std::sort(entries_.begin(), entries_.end(), [](const SafetensorsEntry& a, const SafetensorsEntry& b) {
    return std::tie(a.offset, a.bytes, a.name) < std::tie(b.offset, b.bytes, b.name);
  });
  uint64_t next = data_start;
  for (const SafetensorsEntry& entry : entries_) {
    if (entry.offset != next) {
      refuse(path, entry.name,
             std::string(entry.offset < next ? "overlaps the tensor before it" : "leaves a hole before it") +
                 ", got data offset " + std::to_string(entry.offset - data_start) + ", expected " +
                 std::to_string(next - data_start));
    }
    next += entry.bytes;
  }
  if (next != file_.size()) {
    refuse(path, "", "has " + std::to_string(file_.size() - next) + " bytes after the last tensor, expected none");
  }
  index_.reserve(entries_.size());
  for (uint64_t i = 0; i < entries_.size(); ++i) index_.emplace(entries_[i].name, i);
}

const std::string* SafetensorsReader::metadata(std::string_view key) const noexcept {
  for (const auto& [name, value] : metadata_) {
    if (name == key) return &value;
  }
  return nullptr;
}

const SafetensorsEntry* SafetensorsReader::find(std::string_view name) const noexcept {
  const auto found = index_.find(name);
  return found == index_.end() ? nullptr : &entries_[found->second];
}

const SafetensorsEntry& SafetensorsReader::at(std::string_view name) const {
  const SafetensorsEntry* entry = find(name);
  if (entry == nullptr) {
    throw Error(GESTALT_NOT_FOUND,
                "[" + path() + ": " + std::string(name) + "] no such tensor among " + std::to_string(entries_.size()));
  }
  return *entry;
}

void SafetensorsReader::read(const SafetensorsEntry& entry, void* out, uint64_t bytes) const {
  if (bytes != entry.bytes) {
    throw Error(GESTALT_INVALID_ARGUMENT, "[" + path() + ": " + entry.name + "] room for " + std::to_string(bytes) +
                                              " bytes, expected " + std::to_string(entry.bytes));
  }
  file_.read(entry.offset, out, bytes);
}

void SafetensorsReader::read_part(const SafetensorsEntry& entry, uint64_t first, void* out, uint64_t bytes) const {
  if (first > entry.bytes || bytes > entry.bytes - first) {
    throw Error(GESTALT_INVALID_ARGUMENT, "[" + path() + ": " + entry.name + "] bytes from " + std::to_string(first) +
                                              ", " + std::to_string(bytes) + " long, expected to lie within " +
                                              std::to_string(entry.bytes));
  }
  file_.read(entry.offset + first, out, bytes);
}

void SafetensorsWriter::set_metadata(std::string_view key, std::string_view value) {
  for (auto& [name, old] : metadata_) {
    if (name == key) {
      old = value;
      return;
    }
  }
  metadata_.emplace_back(key, value);
}

void SafetensorsWriter::add(std::string_view name, const SafetensorsType& type, std::vector<int64_t> shape,
                            const void* data) {
  add(Item{std::string(name), &type, std::move(shape), data, nullptr, 0});
}

void SafetensorsWriter::add(std::string_view name, const SafetensorsType& type, std::vector<int64_t> shape,
                            std::function<void(void* out)> fill) {
  add(Item{std::string(name), &type, std::move(shape), nullptr, std::move(fill), 0});
}

void SafetensorsWriter::add(Item item) {
  if (item.name == "__metadata__" || !valid_utf8(item.name)) {
    throw Error(GESTALT_INVALID_ARGUMENT, "[" + path_ + ": " + item.name + "] is no name for a tensor");
  }
  if (item.shape.size() > SafetensorsLimits{}.ndim) {
    throw Error(GESTALT_INVALID_ARGUMENT,
                "[" + path_ + ": " + item.name + "] too many dimensions, got " + std::to_string(item.shape.size()));
  }
  item.bytes = checked_bytes(path_, item.name, *item.type, item.shape);
  if (item.bytes > 0 && item.data == nullptr && !item.fill) {
    throw Error(GESTALT_INVALID_ARGUMENT, "[" + path_ + ": " + item.name + "] has no data");
  }
  items_.push_back(std::move(item));
}

void SafetensorsWriter::commit() {
  // The table is one array, so the order of pointers into it is the order of the reference writer.
  std::sort(items_.begin(), items_.end(),
            [](const Item& a, const Item& b) { return std::tie(a.type, a.name) < std::tie(b.type, b.name); });
  std::unordered_map<std::string_view, bool> seen;
  std::string header = "{";
  const auto separate = [&] {
    if (header.size() > 1) header += ',';
  };
  if (!metadata_.empty()) {
    Json metadata = Json::object();
    for (const auto& [key, value] : metadata_) metadata.set(key, value);
    header += "\"__metadata__\":" + write_json(metadata);
  }
  uint64_t offset = 0;
  for (const Item& item : items_) {
    if (!seen.emplace(item.name, true).second) {
      throw Error(GESTALT_INVALID_ARGUMENT, "[" + path_ + ": " + item.name + "] was added twice");
    }
    separate();
    append_json_string(&header, item.name);
    header += ":{\"dtype\":\"" + std::string(item.type->name) + "\",\"shape\":[";
    for (size_t i = 0; i < item.shape.size(); ++i) header += (i == 0 ? "" : ",") + std::to_string(item.shape[i]);
    header += "],\"data_offsets\":[" + std::to_string(offset) + "," + std::to_string(offset + item.bytes) + "]}";
    offset += item.bytes;
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > SafetensorsLimits{}.header_bytes) {
    throw Error(GESTALT_INVALID_ARGUMENT, "[" + path_ + "] header too large, got " + std::to_string(header.size()) +
                                              " bytes, expected at most 100000000; write several files");
  }
  uint8_t head[8];
  for (int i = 0; i < 8; ++i) head[i] = static_cast<uint8_t>(uint64_t{header.size()} >> (8 * i));

  AtomicFile file(path_);
  file.write(head, 8);
  file.write(header);
  std::vector<char> room;
  for (const Item& item : items_) {
    if (!item.fill) {
      file.write(item.data, item.bytes);
      continue;
    }
    room.resize(item.bytes);
    item.fill(room.data());
    file.write(room.data(), item.bytes);
  }
  file.commit();
}

}  // namespace gestalt::support
